// `sparkle run` for networks that enlarge a picture: tiles, the result, and a comparison beside bicubic.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "progress.h"
#include "report/comparison_picture.h"
#include "report/resample.h"
#include "report/tiled.h"
#include "run_options.h"

namespace sparkle::cli {
namespace {

// The fp32 peak at this moment, all cores together: the best of a few short probes, for neighbours make them slower, never
// faster.
double fma_peak(Backend& backend) {
  double peak = 0;
  for (const MathUnit& u : backend.device().units)
    if (u.kind == UnitKind::vector_fma && u.input == DType::f32)
      for (int i = 0; i < 3; ++i) peak = std::max(peak, backend.probe_peak(u.name));
  return peak;
}

// Undoes the preprocessing: the network's values as pixels. Only for values that the preset maps to 0..1 or 0..255.
Image result_image(const HostTensor& output, const Preprocess& p) {
  Image image = to_image(output, p.scale != 0 ? 1 / p.scale : 1);
  for (float& v : image.pixels) v = std::clamp(v, 0.f, 255.f);
  if (p.color == Color::bgr)
    for (size_t i = 0; i + 2 < image.pixels.size(); i += 3) std::swap(image.pixels[i], image.pixels[i + 2]);
  return image;
}

}  // namespace

int run_upscale(const CommonOptions& common, const RunOptions& o, OpenDevice& device, Session& session, const Image& image,
                const Preprocess& preprocess, bool& served) {
  const Dims shape = tensor_shape(image, preprocess);
  const TileOptions tiling{o.tile, o.overlap};
  auto plan = plan_tiles(session, shape, tiling);
  served = !plan.ok() || plan->factor > 0;
  if (!plan.ok()) return fail(plan.error());
  if (!served) return kDone;
  if (const int status = check_fallback(*plan->plan, common); status != kDone) return status;
  const int width = static_cast<int>(shape[3]), height = static_cast<int>(shape[2]);
  if (static_cast<int64_t>(width) * height * plan->factor * plan->factor > 4 * kMaxPixels)
    return fail({Reason::size_overflow, "The picture of " + image.size_text() + " is too large to enlarge; cut it first."});
  const std::string name = std::filesystem::path(o.inputs[0]).filename().string();
  const int64_t peak = session.peak_bytes(*plan->plan);
  if (!common.json) {
    std::printf("device   %s\n", device.note.empty() ? common.device.c_str() : device.note.c_str());
    std::printf("input    %s (%s): %s, %s\n", name.c_str(), image.size_text().c_str(), preprocess.preset.c_str(),
                to_text(preprocess).c_str());
    std::printf("memory   %s at peak for a tile (tensors and weights)\n", format_bytes(peak).c_str());
    if (plan->tiles() > 1)
      std::printf("tiles    %d of %dx%d, %d pixels of overlap\n", plan->tiles(), plan->tile_w, plan->tile_h, o.overlap);
    std::fflush(stdout);
  }
  auto made = to_tensor(image, preprocess);
  if (!made.ok()) return fail(made.error());
  const HostTensor input = std::move(*made);
  std::vector<double> seconds;
  TiledRun last;
  Progress progress("enlarging", static_cast<int64_t>(plan->tiles()) * o.repeat, !common.json);
  for (int i = 0; i < o.repeat; ++i) {
    auto result = run_tiles(session, input, *plan, tiling, [&] { progress.step(); });
    if (!result.ok()) return progress.clear(), fail(result.error());
    last = std::move(*result);
    seconds.push_back(last.seconds);
  }
  progress.clear();
  const double first = seconds[0];
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  double flops = 0;
  for (const PlanStep& step : plan->plan->steps) flops += step.footprint.nominal_flops;
  const double rate = median > 0 ? flops * plan->tiles() / median : 0;
  const double roof = fma_peak(session.backend());
  const Image enlarged = result_image(last.output, preprocess);
  nlohmann::json json{{"model", o.model},
                      {"device", device.note},
                      {"input_width", width},
                      {"input_height", height},
                      {"output_width", enlarged.width},
                      {"output_height", enlarged.height},
                      {"tiles", plan->tiles()},
                      {"peak_bytes", peak},
                      {"first_ms", first * 1e3},
                      {"median_ms", median * 1e3},
                      {"gflops", rate * 1e-9},
                      {"written", nlohmann::json::array()}};
  if (roof > 0) json["percent_of_fma_peak"] = 100 * rate / roof;
  if (!common.json) {
    std::printf("size     %dx%d to %s\n", width, height, enlarged.size_text().c_str());
    std::printf("time     first %.3f s", first);
    if (o.repeat > 1) std::printf(", median %.3f s of %d", median, o.repeat);
    std::printf(", %.1f GFLOP/s", rate * 1e-9);
    if (roof > 0) std::printf(", %.0f %% of the measured FMA peak", 100 * rate / roof);
    std::printf("\n");
  }
  if (!o.output.empty() || !o.reference.empty()) {
    const Image source = preprocess.color == Color::grey ? to_grey(image) : to_rgb(image);
    const Image same =
        source.width == width && source.height == height ? source : resample(source, width, height, Filter::bilinear);
    const Image bicubic = resample(same, enlarged.width, enlarged.height, Filter::bicubic);
    if (!o.reference.empty()) {
      auto reference = read_image(o.reference);
      if (!reference.ok()) return fail(reference.error());
      if (reference->width != enlarged.width || reference->height != enlarged.height)
        return fail(
            {Reason::bad_input, "The reference is " + reference->size_text() + ", the result " + enlarged.size_text() + "."});
      const double ours = luma_psnr(enlarged, *reference, 4), plain = luma_psnr(bicubic, *reference, 4);
      json["psnr_db"] = ours, json["bicubic_psnr_db"] = plain;
      if (!common.json) std::printf("quality  %.2f dB luma PSNR, bicubic %.2f dB (border of 4 left out)\n", ours, plain);
    }
    if (!o.output.empty()) {
      const auto base = std::filesystem::path(o.output) / std::filesystem::path(o.inputs[0]).stem();
      const std::string paths[2] = {base.string() + "_upscaled.png", base.string() + "_comparison.png"};
      if (auto saved = write_png(paths[0], enlarged); !saved.ok()) return fail(saved.error());
      if (auto saved = write_png(paths[1], comparison_picture(bicubic, enlarged)); !saved.ok()) return fail(saved.error());
      for (const std::string& path : paths) json["written"].push_back(path);
      std::vector<std::string> tensors;
      if (auto saved = save_output(o.output, session.outputs()[0].name, last.output, tensors); !saved.ok())
        return fail(saved.error());
      for (const std::string& path : tensors) json["written"].push_back(path);
      if (!common.json) {
        std::printf("written  %s\n", paths[0].c_str());
        std::printf("written  %s (left bicubic, right the network; below a detail four times as large)\n", paths[1].c_str());
        for (const std::string& path : tensors) std::printf("written  %s\n", path.c_str());
      }
    }
  }
  if (common.json) std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return kDone;
}

}  // namespace sparkle::cli
