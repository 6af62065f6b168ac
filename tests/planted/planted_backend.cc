#include "planted_backend.h"

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "backends/memory_probe.h"
#include "families/common.h"
#include "families/loops/walk.h"
#include "measure/roofs/roof_judge.h"

namespace sparkle::testing {
namespace {

constexpr std::array<std::string_view, 7> kFaults = {"nothing",    "half",     "fourth",       "inherits",
                                                     "first_only", "low_peak", "low_bandwidth"};
constexpr double kLow = 1e-6;  // of what is probed

bool sums_products(Family family) {
  constexpr Family kThese[] = {Family::gemm,      Family::direct,  Family::winograd, Family::fft,
                               Family::depthwise, Family::grouped, Family::inverted};
  return std::find(std::begin(kThese), std::end(kThese), family) != std::end(kThese);
}

class PlantedKernel final : public Kernel {
 public:
  PlantedKernel(std::unique_ptr<Kernel> kernel, const Stage& s, bool heir)
      : inner(std::move(kernel)), stage(s), inherits(heir) {}
  int64_t workspace_bytes() const override { return inner->workspace_bytes(); }
  int64_t packed_bytes(int input) const override { return inner->packed_bytes(input); }
  std::string packed_key(int input) const override { return inner->packed_key(input); }
  void pack(int input, const std::byte* from, std::byte* to, Executor& executor) const override {
    inner->pack(input, from, to, executor);
  }

  std::unique_ptr<Kernel> inner;
  Stage stage;
  bool inherits;
  mutable int runs = 0;
};

class PlantedProgram final : public Program {
 public:
  std::vector<Launch> launches;
  std::vector<std::unique_ptr<Program>> inner;  // of one launch each
};

// The elements of a view that `which` names, to be put back later.
template <class Which>
class Kept {
 public:
  Kept(const TensorView& view, Which which) : view_(view), which_(which) {
    each([&](std::byte* at, size_t size) { bytes_.insert(bytes_.end(), at, at + size); });
  }
  void zero() {
    each([](std::byte* at, size_t size) { std::memset(at, 0, size); });
  }
  void put_back() {
    const std::byte* from = bytes_.data();
    each([&](std::byte* at, size_t size) {
      std::memcpy(at, from, size);
      from += size;
    });
  }

 private:
  template <class F>
  void each(F f) {
    for_each_index(view_.desc.shape, [&](const Dims& index) {
      if (which_(index)) f(element_at(view_, index), static_cast<size_t>(size_of(view_.desc.dtype)));
    });
  }
  TensorView view_;
  Which which_;
  std::vector<std::byte> bytes_;
};

class PlantedBackend final : public Backend, public MemoryProbe {
 public:
  PlantedBackend(std::shared_ptr<Backend> inner, Fault fault) : inner_(std::move(inner)), fault_(fault) {}

  const Device& device() const override { return inner_->device(); }
  Status try_out(std::span<const ScheduledStage> stages) override { return inner_->try_out(stages); }
  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    if (fault_ != Fault::inherits) return inner_->allocate(bytes, kind);
    std::shared_ptr<Buffer> block;
    {
      const std::lock_guard lock(pool_->mutex);
      if (const auto at = pool_->free.find(bytes); at != pool_->free.end()) block = at->second, pool_->free.erase(at);
    }
    if (!block) {
      SPARKLE_TRY(made, inner_->allocate(bytes, kind));
      block = std::move(made);
    }
    return std::shared_ptr<Buffer>(block.get(), [pool = pool_, block, bytes](Buffer*) {
      const std::lock_guard lock(pool->mutex);
      pool->free.emplace(bytes, block);
    });
  }
  Result<std::shared_ptr<Buffer>> import(void* memory, int64_t bytes) override { return inner_->import(memory, bytes); }
  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    SPARKLE_TRY(kernel, inner_->compile(stage, schedule, constants));
    const bool first = sums_products(stage.family()) && sizes_.insert(stage.outputs[0].bytes()).second;
    return std::unique_ptr<Kernel>(std::make_unique<PlantedKernel>(std::move(kernel), stage, !first));
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    auto program = std::make_unique<PlantedProgram>();
    program->launches.assign(launches.begin(), launches.end());
    for (const Launch& launch : launches) {
      Launch own = launch;
      own.kernel = static_cast<const PlantedKernel*>(launch.kernel)->inner.get();
      SPARKLE_TRY(one, inner_->record({&own, 1}));
      program->inner.push_back(std::move(one));
    }
    return std::unique_ptr<Program>(std::move(program));
  }
  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    const auto& planted = static_cast<const PlantedProgram&>(program);
    std::vector<StepTime> times;
    Token last = options.after;
    for (size_t i = 0; i < planted.launches.size(); ++i) {
      SPARKLE_TRY(token, launch(planted.launches[i], *planted.inner[i], slots, {last, options.timestamps, nullptr}));
      if (!token) {
        times.push_back({});
        continue;
      }
      last = *token;
      if (!options.timestamps) continue;
      SPARKLE_TRY(own, inner_->timestamps(last));
      times.insert(times.end(), own.begin(), own.end());
    }
    if (options.timestamps) times_ = std::move(times);
    return last;
  }
  Result<Token> copy(std::span<const CopyRegion> regions, Token after) override { return inner_->copy(regions, after); }
  bool done(Token token) override { return inner_->done(token); }
  Status wait(Token token, std::chrono::nanoseconds timeout) override { return inner_->wait(token, timeout); }
  Result<std::vector<StepTime>> timestamps(Token) override { return times_; }
  bool keeps_time() const override { return inner_->keeps_time(); }
  double probe_peak(std::string_view unit) override {
    return inner_->probe_peak(unit) * (fault_ == Fault::low_peak ? kLow : 1);
  }
  bool knows_caches() const override { return sparkle::knows_caches(*inner_); }
  double probe_bandwidth(size_t level, double bytes) override {
    return bandwidth_of(*inner_, level, bytes) * (fault_ == Fault::low_bandwidth ? kLow : 1);
  }
  Executor& executor() override { return inner_->executor(); }

 private:
  struct Pool {
    std::mutex mutex;
    std::multimap<int64_t, std::shared_ptr<Buffer>> free;
  };

  static TensorView view_of(const TensorDesc& desc, const Binding& binding, std::span<Buffer* const> slots) {
    return {slots[static_cast<size_t>(binding.slot)]->host() + binding.offset_bytes, desc};
  }

  // None where nothing was done.
  Result<std::optional<Token>> launch(const Launch& launch, const Program& inner, std::span<Buffer* const> slots,
                                      const SubmitOptions& options) {
    const auto& kernel = static_cast<const PlantedKernel&>(*launch.kernel);
    const Stage& stage = kernel.stage;
    const bool planted = sums_products(stage.family());
    ++kernel.runs;
    const bool idle = fault_ == Fault::nothing || (fault_ == Fault::inherits && kernel.inherits) ||
                      (fault_ == Fault::first_only && kernel.runs > 1);
    if (planted && idle) return std::optional<Token>();
    const auto run = [&]() -> Result<std::optional<Token>> {
      SPARKLE_TRY(token, inner_->submit(inner, slots, options));
      return std::optional<Token>(token);
    };
    if (planted && fault_ == Fault::half) {
      const TensorView y = view_of(stage.outputs[0], launch.outputs[0], slots);
      const int axis = y.desc.shape.size() >= 4 ? 2 : std::max(0, y.desc.shape.size() - 2);
      Kept rest(y, [axis, half = y.desc.shape[axis] / 2](const Dims& at) { return at[axis] >= half; });
      auto ran = run();
      rest.put_back();
      return ran;
    }
    if (planted && fault_ == Fault::fourth) {
      const TensorView x = view_of(stage.inputs[0], launch.inputs[0], slots);
      const int axis = x.desc.shape.size() >= 4 ? 1 : x.desc.shape.size() - 1;
      Kept others(x, [axis](const Dims& at) { return at[axis] % 4 != 0; });
      others.zero();
      auto ran = run();
      others.put_back();
      return ran;
    }
    return run();
  }

  std::shared_ptr<Backend> inner_;
  Fault fault_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  std::set<int64_t> sizes_;
  std::vector<StepTime> times_;
};

}  // namespace

std::optional<Fault> fault_named(std::string_view name) {
  for (size_t i = 0; i < kFaults.size(); ++i)
    if (kFaults[i] == name) return static_cast<Fault>(i);
  return {};
}

bool needs_host_memory(Fault fault) { return fault == Fault::half || fault == Fault::fourth; }

std::shared_ptr<Backend> plant(std::shared_ptr<Backend> inner, Fault fault) {
  return std::make_shared<PlantedBackend>(std::move(inner), fault);
}

}  // namespace sparkle::testing
