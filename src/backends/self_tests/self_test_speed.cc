#include "backends/self_tests/self_test_speed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "families/loops/tile_schedule.h"

namespace sparkle {
namespace {

constexpr const char* kPlain = "implicit";
// Stages grow until the rival takes so long: then the clock's steps and the dispatch itself count for little.
constexpr double kEnoughSeconds = 200e-6;
struct Size {
  int64_t channels, side;
};
constexpr Size kSizes[] = {{32, 14}, {64, 28}, {128, 56}, {256, 56}};
constexpr int kRounds = 4;  // the first may be compiled on its way

// A convolution of square planes by the self-test's window, or a product with as many rows as such a plane has pixels.
Stage stage_of(const GemmParams& params, const Size& size, OperandType operands) {
  Stage stage;
  GemmParams p = params;
  p.operands = operands;
  p.epilogue.post_op = {};  // what follows a sum is the same for both
  stage.params = p;
  const int64_t c = size.channels;
  if (p.loader == Loader::dense) {
    const int64_t m = size.side * size.side;
    stage.inputs = {dense_desc(DType::f32, {m, c}), dense_desc(DType::f32, {c, c})};
    stage.outputs = {dense_desc(DType::f32, {m, c})};
  } else {
    const Window& w = p.window;
    Dims x{1, p.groups * c}, y{1, p.groups * c}, f{p.groups * c, c};
    for (size_t i = 0; i < 3; ++i) {
      const int64_t out = i == 0 ? 1 : size.side;
      y.push_back(out), f.push_back(w.filter[i]);
      x.push_back(std::max<int64_t>(1, (out - 1) * w.stride[i] + (w.filter[i] - 1) * w.dilation[i] + 1 - 2 * w.pad_begin[i]));
    }
    stage.inputs = {{DType::f32, x, channels_last(x)}, dense_desc(DType::f32, f)};
    stage.outputs = {{DType::f32, y, channels_last(y)}};
  }
  const Epilogue& e = p.epilogue;
  const int64_t filters = p.loader == Loader::dense ? c : p.groups * c;
  for (int i = 0; i < e.scale + e.bias; ++i) stage.inputs.push_back(dense_desc(DType::f32, {filters}));
  for (int i = 0; i < e.residuals_before + e.residuals_after; ++i) stage.inputs.push_back(stage.outputs[0]);
  return stage;
}

// The variant's schedule with the fewest rounds of work over the cores; none where the device lacks what it needs.
std::vector<Schedule> best_schedule(const Stage& stage, std::string_view name, const Device& device) {
  const FamilyInfo& family = info(stage.family());
  std::vector<Schedule> best;
  double least = 0;
  for (const Variant& variant : family.variants) {
    if (variant.name != name || !variant.runs_on(device)) continue;
    Reason ignored = Reason::none;
    for (const Schedule& s : family.schedules(stage, variant, device, ignored)) {
      const auto* tile = get_if<TileSchedule>(&s);
      if (!tile || tile->split > 1) continue;
      const Footprint f = family.footprint(stage, s, device);
      const double cores = std::max(1, device.cores), rounds = std::ceil(f.parallel_items / cores);
      const double work = f.executed_flops / std::max(1.0, f.parallel_items) * rounds;
      if (best.empty() || work < least) best = {s}, least = work;
    }
  }
  return best;
}

class Race {
 public:
  Race(Backend& backend, std::chrono::nanoseconds timeout) : backend_(backend), timeout_(timeout) {}

  Status add(const Stage& stage, const Schedule& schedule) {
    SPARKLE_TRY(kernel, backend_.compile(stage, schedule, 2));
    Launch launch;
    launch.kernel = kernel.get();
    for (size_t i = 0; i < stage.inputs.size(); ++i) {
      std::vector<float> values(static_cast<size_t>(stage.inputs[i].bytes() / 4));
      uint32_t state = 1;
      for (float& v : values)
        state = state * 1664525 + 1013904223, v = static_cast<float>(static_cast<int>(state >> 24) - 128) / 64;
      const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
      std::vector<std::byte> image(bytes, bytes + values.size() * 4);
      if (const int64_t packed = i == 1 ? kernel->packed_bytes(1) : 0; packed > 0) {
        image.resize(static_cast<size_t>(packed));
        kernel->pack(1, bytes, image.data(), backend_.executor());
      }
      SPARKLE_TRY(buffer, upload(image));
      launch.inputs.push_back(bind(std::move(buffer)));
    }
    SPARKLE_TRY(y, backend_.allocate(stage.outputs[0].bytes(), MemoryKind::device));
    launch.outputs.push_back(bind(std::move(y)));
    SPARKLE_TRY(workspace, backend_.allocate(std::max<int64_t>(64, kernel->workspace_bytes()), MemoryKind::device));
    launch.workspace = bind(std::move(workspace));
    launches_.push_back(launch);
    kept_.push_back(std::shared_ptr<Kernel>(std::move(kernel)));
    return ok();
  }

  // Least seconds of each, one after the other in turns.
  Result<std::vector<double>> run() {
    std::vector<Launch> turns;
    for (int i = 0; i < kRounds; ++i) turns.insert(turns.end(), launches_.begin(), launches_.end());
    SPARKLE_TRY(recorded, backend_.record(turns));
    std::shared_ptr<Program> program(std::move(recorded));
    SubmitOptions options;
    options.timestamps = true;
    SPARKLE_TRY(token, backend_.submit(*program, slots_, options));
    if (Status done = backend_.wait(token, timeout_); !done.ok()) {
      if (backend_.done(token)) return done.take_error();
      kept_.push_back(program);  // it may end later
      backend_.keep_until(token, std::move(kept_));
      return Error{Reason::failed_probe, "slow: no answer within " + std::to_string(timeout_.count() / 1000000) + " ms"};
    }
    SPARKLE_TRY(times, backend_.timestamps(token));
    std::vector<double> least;
    for (size_t i = 0; i < times.size(); ++i) {
      const double seconds = times[i].end - times[i].begin;
      const size_t which = i % launches_.size();
      if (i < 2 * launches_.size() && i >= launches_.size()) least.push_back(seconds);
      else if (i >= launches_.size()) least[which] = std::min(least[which], seconds);
    }
    return least;
  }

 private:
  Binding bind(std::shared_ptr<Buffer> buffer) {
    slots_.push_back(buffer.get());
    kept_.push_back(std::move(buffer));
    return {static_cast<int>(slots_.size()) - 1, 0};
  }
  Result<std::shared_ptr<Buffer>> upload(const std::vector<std::byte>& bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    SPARKLE_TRY(buffer, backend_.allocate(size, MemoryKind::device));
    SPARKLE_TRY(staging, backend_.allocate(size, MemoryKind::staging));
    std::memcpy(staging->host(), bytes.data(), bytes.size());
    const CopyRegion region{staging.get(), 0, buffer.get(), 0, size};
    SPARKLE_TRY(token, backend_.copy({&region, 1}, {}));
    SPARKLE_CHECK(backend_.wait(token, timeout_));
    return buffer;
  }

  Backend& backend_;
  std::chrono::nanoseconds timeout_;
  std::vector<Launch> launches_;
  std::vector<Buffer*> slots_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace

bool needs_speed(const SelfTest& self_test) {
  if (self_test.family() != Family::gemm) return false;
  const auto row = [](std::string_view name) -> const Variant* {
    for (const Variant& v : info(Family::gemm).variants)
      if (v.name == name) return &v;
    return nullptr;
  };
  // Where some backend has both.
  const Variant *v = row(variant_of(self_test.schedule)), *rival = row(kPlain);
  return v && rival && v->for_workgroups() && v->unit == UnitKind::matrix && (v->backends.kinds & rival->backends.kinds) != 0;
}

std::string rival_of(const SelfTest& self_test) { return std::string(name_of(self_test.family())) + "/" + kPlain; }

Result<double> times_of_rival(Backend& backend, const SelfTest& self_test, std::chrono::nanoseconds timeout) {
  const auto& params = get<GemmParams>(self_test.params);
  const Device device = backend.device();
  double times = 0;
  for (const Size& size : kSizes) {
    const Stage own = stage_of(params, size, params.operands), plain = stage_of(params, size, OperandType::own);
    auto schedule = best_schedule(own, variant_of(self_test.schedule), device);
    if (schedule.empty()) schedule = {self_test.schedule};  // what stands in for a unit that the device has not
    const auto rival = best_schedule(plain, kPlain, device);
    if (rival.empty()) return 0.0;
    Race race(backend, timeout);
    SPARKLE_CHECK(race.add(plain, rival[0]));
    SPARKLE_CHECK(race.add(own, schedule[0]));
    SPARKLE_TRY(seconds, race.run());
    if (seconds[0] <= 0) return 0.0;
    times = seconds[1] / seconds[0];
    if (seconds[0] >= kEnoughSeconds || seconds[1] >= 10 * kEnoughSeconds) break;
  }
  return times;
}

}  // namespace sparkle
