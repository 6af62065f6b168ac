// `sparkle run` for networks that enlarge a picture: tiles, the result, and a comparison beside bicubic.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/text/format.h"
#include "base/median.h"
#include "base/printable.h"
#include "onnx/npy.h"
#include "run_command/progress.h"
#include "vision/pictures/comparison_picture.h"
#include "vision/pictures/resample.h"
#include "vision/pictures/tiled.h"
#include "vision/tasks/answer.h"
#include "run_command/run_options.h"

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

// What was executed as a share of that. There cannot be more than all of it: then neighbours slowed the probes down.
std::string of_peak(double share) {
  return share > 1.05 ? "more than the FMA peak of a disturbed machine" : format("%.0f %% of the FMA peak", 100 * share);
}

int64_t picture_bytes(const Dims& shape, int factor) {
  return dense_desc(DType::f32, shape).bytes() * (1 + static_cast<int64_t>(factor) * factor);
}

// Tensors and weights at their peak: those of a tile, and the whole picture before and after where it is cut.
int64_t peak_of(const Session& session, const TiledPlan& plan, const Dims& shape) {
  return session.peak_bytes(*plan.plan) + (plan.tiles() > 1 ? picture_bytes(shape, plan.factor) : 0);
}

// The sentence for a picture that the memory budget has no room for, with the largest tile that it has room for.
Error over_budget(Session& session, const Dims& shape, const TileOptions& tiling, int64_t budget) {
  for (const int tile : {4096, 2048, 1024, 512, 256, 128, 64, 32}) {
    if ((tiling.tile > 0 && tile >= tiling.tile) || tile <= 2 * tiling.overlap) continue;
    if (tile >= std::max(shape[2], shape[3])) continue;
    const auto plan = plan_tiles(session, shape, {tile, tiling.overlap});
    if (!plan.ok() || (plan->factor > 0 && peak_of(session, *plan, shape) > budget)) continue;
    if (plan->factor == 0) break;
    return {Reason::over_memory_budget, "The memory budget of " + std::to_string(budget) + " bytes has no room for tiles of " +
                                            (tiling.tile > 0 ? std::to_string(tiling.tile) : "the whole picture") +
                                            "; give --tile " + std::to_string(tile) + " or a larger --memory-budget."};
  }
  return {Reason::over_memory_budget, "The memory budget of " + std::to_string(budget) +
                                          " bytes has no room for this picture, however small the tiles; give a larger "
                                          "--memory-budget or a smaller picture."};
}

// `shrunk_from`: what the picture was shrunk from, to be compared with the result.
int enlarge(const CommonOptions& common, const RunOptions& o, OpenDevice& device, Session& session, const Image& image,
            const Preprocess& preprocess, const Image* shrunk_from, bool& handled) {
  const Dims shape = tensor_shape(image, preprocess);
  const TileOptions tiling{o.tile, o.overlap};
  auto plan = plan_tiles(session, shape, tiling);
  handled = !plan.ok() || plan->factor > 0;
  if (!handled) return kDone;
  const auto budget = parse_bytes(common.memory_budget);
  if (!budget.ok()) return fail(budget.error());
  const bool over =
      plan.ok() ? *budget > 0 && peak_of(session, *plan, shape) > *budget : plan.error().reason == Reason::over_memory_budget;
  if (over) return fail(over_budget(session, shape, tiling, *budget));
  if (!plan.ok()) return fail(plan.error(), common);
  if (auto applies = refuse_options(*o.command, {"--labels", "--top"}, "is for classifiers; this network enlarges pictures");
      !applies.ok())
    return fail(applies.error());
  if (auto fast = check_fallback(*plan->plan, common); !fast.ok()) return fail(fast.error(), common);
  const int width = static_cast<int>(shape[3]), height = static_cast<int>(shape[2]);
  if (static_cast<int64_t>(width) * height * plan->factor * plan->factor > 4 * kMaxPixels)
    return fail({Reason::size_overflow, "The picture of " + image.size_text() + " is too large to enlarge; cut it first."});
  std::optional<Image> reference;
  if (shrunk_from || !o.reference.empty()) {
    auto read = shrunk_from ? Result<Image>(*shrunk_from) : read_image(o.reference);
    if (!read.ok()) return fail(read.error());
    if (read->width != width * plan->factor || read->height != height * plan->factor)
      return fail({Reason::bad_input, "The reference is " + read->size_text() + ", the result will be " +
                                          std::to_string(width * plan->factor) + "x" + std::to_string(height * plan->factor) +
                                          "; give one of that size."});
    reference = std::move(*read);
  }
  const std::string note = "'" + printable(session.inputs()[0].name) + "' from " +
                           printable(std::filesystem::path(o.inputs[0]).filename().string()) + " (" +
                           (shrunk_from ? shrunk_from->size_text() + " shrunk to " : "") + image.size_text() +
                           "): " + note_of(preprocess, o);
  const int64_t peak = peak_of(session, *plan, shape);
  if (!common.json) {
    std::printf("device   %s\n", device.note.empty() ? common.device.c_str() : device.note.c_str());
    std::printf("input    %s\n", note.c_str());
    std::printf("memory   %s at peak (tensors and weights)\n", format_bytes(peak).c_str());
    if (plan->tiles() > 1)
      std::printf("tiles    %d of %dx%d, %d pixels of overlap\n", plan->tiles(), plan->tile_w, plan->tile_h, o.overlap);
    std::fflush(stdout);
  }
  auto made = to_tensor(image, preprocess);
  if (!made.ok()) return fail(made.error());
  const HostTensor input = std::move(*made);
  std::vector<double> seconds;
  TiledRun last;
  const double peak_before = fma_peak(*session.backend());
  Progress progress("enlarging", static_cast<int64_t>(plan->tiles()) * o.repeat, !common.json);
  for (int i = 0; i < o.repeat; ++i) {
    auto result = run_tiles(session, input, *plan, tiling, [&] { progress.step(); });
    if (!result.ok()) return progress.clear(), fail(result.error(), common);
    last = std::move(*result);
    seconds.push_back(last.seconds);
  }
  progress.clear();
  const double first = seconds[0];
  const double middle = median(seconds);
  double nominal = 0, executed = 0;
  for (const PlanStep& step : plan->plan->steps) {
    nominal += step.footprint.nominal_flops;
    executed += std::min(step.footprint.executed_flops, step.footprint.nominal_flops);
  }
  const double rate = middle > 0 ? nominal * plan->tiles() / middle : 0;
  const double share = middle > 0 ? executed * plan->tiles() / middle : 0;
  const double roof = std::max(peak_before, fma_peak(*session.backend()));
  const Image enlarged = undone(last.output, preprocess);
  std::string captions[2] = {"bicubic " + enlarged.size_text(),
                             "network " + std::to_string(width) + "x" + std::to_string(height) + " to " + enlarged.size_text()};
  captions[1] += format(", %.3f s, %.1f GFLOP/s", middle, rate * 1e-9);
  if (roof > 0) captions[1] += ", " + of_peak(share / roof);
  nlohmann::json json{
      {"model", o.model},
      {"device", device.note},
      {"inputs", nlohmann::json::array({note})},
      {"outputs", nlohmann::json::array({show_output(session.outputs()[0].name, last.output, last.output.dtype, {}, 1, true)})},
      {"input_width", width},
      {"input_height", height},
      {"output_width", enlarged.width},
      {"output_height", enlarged.height},
      {"tiles", plan->tiles()},
      {"peak_bytes", peak},
      {"first_ms", first * 1e3},
      {"median_ms", middle * 1e3},
      {"gflops", rate * 1e-9},
      {"written", nlohmann::json::array()}};
  if (roof > 0) json["percent_of_fma_peak"] = 100 * share / roof;
  if (!common.json) {
    std::printf("size     %dx%d to %s\n", width, height, enlarged.size_text().c_str());
    std::printf("time     first %.3f s", first);
    if (o.repeat > 1) std::printf(", median %.3f s of %d", middle, o.repeat);
    std::printf(", %.1f GFLOP/s", rate * 1e-9);
    if (roof > 0) std::printf(", %s measured beside", of_peak(share / roof).c_str());
    std::printf("\n");
  }
  if (!o.output.empty() || reference) {
    const Image source = preprocess.color == Color::grey ? to_grey(image) : to_rgb(image);
    const Image same =
        source.width == width && source.height == height ? source : resample(source, width, height, Filter::bilinear);
    const Image bicubic = resample(same, enlarged.width, enlarged.height, Filter::bicubic);
    if (reference) {
      const double ours = luma_psnr(enlarged, *reference, 4), plain = luma_psnr(bicubic, *reference, 4);
      json["psnr_db"] = ours, json["bicubic_psnr_db"] = plain;
      captions[0] += format(", %.2f dB", plain), captions[1] += format(", %.2f dB", ours);
      if (!common.json) std::printf("quality  %.2f dB luma PSNR, bicubic %.2f dB (border of 4 left out)\n", ours, plain);
    }
    if (!o.output.empty()) {
      const auto base = std::filesystem::path(o.output) / std::filesystem::path(o.inputs[0]).stem();
      const std::string tensor = tensor_path(o.output, session.outputs()[0].name);
      const std::string paths[] = {base.string() + "_upscaled.png", base.string() + "_comparison.png", tensor};
      if (auto saved = write_png(paths[0], enlarged); !saved.ok()) return fail(saved.error());
      if (auto saved = write_png(paths[1], comparison_picture(bicubic, enlarged, {captions[0], captions[1]})); !saved.ok())
        return fail(saved.error());
      if (auto saved = write_npy(tensor, last.output); !saved.ok()) return fail(saved.error());
      for (const std::string& path : paths) json["written"].push_back(path);
      if (!common.json) {
        std::printf("written  %s\n", printable(paths[0]).c_str());
        std::printf("written  %s (left bicubic, right the network; below a detail four times as large)\n",
                    printable(paths[1]).c_str());
        std::printf("written  %s\n", printable(tensor).c_str());
      }
    }
  }
  if (common.json) std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return kDone;
}

}  // namespace

int run_upscale(const CommonOptions& common, const RunOptions& o, OpenDevice& device, Session& session, const Image& image,
                const Preprocess& preprocess, bool& handled) {
  if (!o.shrink_first) return enlarge(common, o, device, session, image, preprocess, nullptr, handled);
  if (!o.reference.empty())
    return fail({Reason::bad_usage, "--shrink-first compares with the picture itself; leave --reference out."});
  const auto plan = plan_tiles(session, tensor_shape(image, preprocess), {o.tile, o.overlap});
  handled = !plan.ok() || plan->factor > 0;
  if (!plan.ok()) return fail(plan.error(), common);
  if (!handled) return kDone;
  const int factor = static_cast<int>(plan->factor), width = image.width / factor, height = image.height / factor;
  if (width < 1 || height < 1)
    return fail({Reason::bad_input, "The picture of " + image.size_text() + " is too small to be shrunk first."});
  const Image original = crop(image, 0, 0, width * factor, height * factor);
  Image shrunk = resample(original, width, height, Filter::bicubic);
  for (float& v : shrunk.pixels) v = std::round(std::clamp(v, 0.f, 255.f));  // as a file would hold it
  return enlarge(common, o, device, session, shrunk, preprocess, &original, handled);
}

}  // namespace sparkle::cli
