// How benches time layers on a device that has a BurstClock: by so many runs in one program that what the host takes to hand
// them over is nothing beside them.
#include "measure/prepared_layer.h"

#include <gtest/gtest.h>

#include <map>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "measure/layer_bench.h"

namespace sparkle {
namespace {

constexpr double kHostSeconds = 8e-6;  // that the device waits for the host between a timestamp and the work behind it

// The CPU with the clock of a device on which each run of a layer takes `seconds`. It is as a card is: where nothing keeps it
// busy it waits for the host behind the first timestamp.
class SimulatedDevice final : public Backend, public BurstClock {
 public:
  SimulatedDevice(std::shared_ptr<Backend> under, double seconds) : under_(std::move(under)), seconds_(seconds) {}
  const Device& device() const override { return under_->device(); }
  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override { return under_->allocate(bytes, kind); }
  Result<std::shared_ptr<Buffer>> import(void* memory, int64_t bytes) override { return under_->import(memory, bytes); }
  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    return under_->compile(stage, schedule, constants);
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    auto program = under_->record(launches);
    if (!program.ok()) return program;
    if (shortest_ == 0) shortest_ = launches.size();
    runs_in_[program->get()] = static_cast<double>(launches.size()) / static_cast<double>(shortest_);
    return program;
  }
  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    return under_->submit(program, slots, options);
  }
  Result<Token> copy(std::span<const CopyRegion> regions, Token after) override { return under_->copy(regions, after); }
  bool done(Token token) override { return under_->done(token); }
  Status wait(Token token, std::chrono::nanoseconds timeout) override { return under_->wait(token, timeout); }
  bool keeps_time() const override { return true; }
  Result<std::vector<StepTime>> timestamps(Token) override { return std::vector<StepTime>{{0, seconds_ + kHostSeconds}}; }
  Executor& executor() override { return under_->executor(); }
  Result<double> seconds_of_run(const Program& program, std::span<Buffer* const> slots, const Burst& burst) override {
    for (int i = 0; i < burst.runs + burst.before; ++i) SPARKLE_CHECK(wait(*submit(program, slots, {}), {}));
    const double run = runs_in_.at(&program) * seconds_;
    bursts.push_back({burst, runs_in_.at(&program)});
    return run + std::max(0.0, kHostSeconds - burst.before * run) / burst.runs;
  }
  struct Seen {
    Burst burst;
    double repeats = 0;
  };
  std::vector<Seen> bursts;

 private:
  std::shared_ptr<Backend> under_;
  double seconds_;
  size_t shortest_ = 0;
  std::map<const Program*, double> runs_in_;
};

class LayersOnDevices : public ::testing::Test {
 protected:
  // On a device where a run takes so long.
  LayerMeasurement measured(double seconds) {
    Device device = probe_cpu({.threads = 1});
    estimate_rates(device);
    device_ = std::make_unique<SimulatedDevice>(cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1)), seconds);
    LayerBenchOptions options;
    options.rounds = 1, options.seconds_per_round = 2e-3, options.seed = 7;
    const auto found = measure_layer(*device_, *parse_conv("ic3ih5oc4kh3ph1"), options);
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
    return found.ok() ? *found : LayerMeasurement{};
  }
  std::unique_ptr<SimulatedDevice> device_;
};

TEST_F(LayersOnDevices, AreTimedWithoutTheHostsPart) {
  const LayerMeasurement found = measured(5e-6);
  EXPECT_NEAR(found.median_seconds, 5e-6, 1e-10);
  EXPECT_NEAR(found.repeats, 40, 1);
  EXPECT_EQ(device_->bursts.back().repeats, found.repeats);
  EXPECT_EQ(found.checked.times, 2);  // its outputs are looked at as those of any device are
  EXPECT_TRUE(found.clock_of_device);
}

TEST_F(LayersOnDevices, HaveNoMoreRunsInASampleThanSixtyFour) {
  const LayerMeasurement found = measured(0.4e-6);
  EXPECT_EQ(found.repeats, 64);
  EXPECT_NEAR(found.median_seconds, 0.4e-6, 1e-10);
}

TEST_F(LayersOnDevices, ThatTakeLongAreRunOnceASample) {
  for (const double seconds : {0.3e-3, 5e-3}) {
    const LayerMeasurement found = measured(seconds);
    EXPECT_EQ(found.repeats, 1);
    EXPECT_NEAR(found.median_seconds, seconds, 1e-5);
    // Nothing has to keep the device busy before what takes milliseconds.
    EXPECT_EQ(device_->bursts.back().burst.before, seconds < 1e-3 ? 1 : 0);
    EXPECT_EQ(device_->bursts.back().burst.runs, 1);
  }
}

}  // namespace
}  // namespace sparkle
