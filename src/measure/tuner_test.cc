// The tuner's rule on a synthetic clock: what candidates really cost, times seeded noise. No test here looks at a real clock.
#include "measure/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/record.h"
#include "device/device_json.h"
#include "families/registry.h"
#include "families/loops/tile_schedule.h"
#include "plan/choose/choose.h"
#include "plan/choose/cost.h"
#include "plan/choose/tuning_store.h"
#include "measure/prepared_layer.h"

namespace sparkle {
namespace {

// Each sample is the true time, off by some share (normally distributed) and in one of forty cases late by half.
class NoisyClock final : public TuneClock {
 public:
  NoisyClock(std::vector<double> truth, double noise, uint64_t seed)
      : truth_(std::move(truth)), dropped_(truth_.size(), false), noise_(noise), random_(seed) {}
  Result<double> seconds(size_t candidate) override {
    EXPECT_FALSE(dropped_[candidate]) << "candidate " << candidate << " was dropped before";
    ++asked_;
    const double late = noise_ > 0 && random_() % 40 == 0 ? 1.5 : 1;
    spent_ += truth_[candidate];
    return truth_[candidate] * late * std::max(0.5, 1 + noise_ * normal_(random_));
  }
  void drop(size_t candidate) override { dropped_[candidate] = true; }
  double spent() const override { return spent_; }
  int asked() const { return asked_; }

 private:
  std::vector<double> truth_;
  std::vector<bool> dropped_;
  double noise_, spent_ = 0;
  int asked_ = 0;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

TuneRule patient() {
  TuneRule rule;
  rule.most_seconds = HUGE_VAL;
  return rule;
}

TuneVerdict verdict_of(std::vector<double> truth, double noise, uint64_t seed, const TuneRule& rule = patient(),
                       std::vector<double> errors = {}) {
  errors.resize(truth.size(), 0);
  NoisyClock clock(std::move(truth), noise, seed);
  auto verdict = tune(errors, clock, rule);
  EXPECT_TRUE(verdict.ok());
  return *verdict;
}

TEST(Tuner, KeepsTheModelsChoiceWithinTheMarginAndChangesBeyond) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    for (const double noise : {0.0, 0.01, 0.05}) {
      EXPECT_EQ(verdict_of({1, 1.1, 2}, noise, seed).outcome, TuneOutcome::confirmed);
      EXPECT_EQ(verdict_of({1, 0.99, 0.995}, noise, seed).chosen, 0u) << noise << " " << seed;
      EXPECT_EQ(verdict_of({1, 0.94, 1.2}, noise, seed).chosen, 1u) << noise << " " << seed;
      // Of two that are better by the same the one that the model likes more, however often it is asked.
      EXPECT_EQ(verdict_of({1, 0.5, 0.499, 0.501}, noise, seed).chosen, 1u) << noise << " " << seed;
    }
  }
}

TEST(Tuner, LargerErrorsMustBeWorthIt) {
  const std::vector<double> errors = {1e-6, 2e-5};
  EXPECT_EQ(verdict_of({1, 0.93}, 0, 1, patient(), errors).chosen, 0u);
  EXPECT_EQ(verdict_of({1, 0.8}, 0, 1, patient(), errors).chosen, 1u);
  // The other way round nothing is gained: a smaller error pays for no time.
  EXPECT_EQ(verdict_of({1, 1.02}, 0, 1, patient(), {2e-5, 1e-6}).chosen, 0u);
  EXPECT_EQ(verdict_of({0.89, 1}, 0, 1, patient(), {2e-5, 1e-6}).chosen, 0u);
  EXPECT_EQ(verdict_of({1, 0.9}, 0, 1, patient(), {2e-5, 1e-6}).chosen, 1u);
}

// A machine with other work on it: bursts of some samples each in which everything takes up to four times as long.
class LoadedClock final : public TuneClock {
 public:
  LoadedClock(std::vector<double> truth, int first_burst, uint64_t seed)
      : truth_(std::move(truth)), left_(first_burst), random_(seed) {}
  Result<double> seconds(size_t candidate) override {
    if (left_-- <= 0) {
      late_ = random_() % 2 == 0 ? 1.0 : 1.0 + static_cast<double>(random_() % 300) / 100;
      left_ = static_cast<int>(1 + random_() % 12);
    }
    const double taken = truth_[candidate] * late_ * (0.9 + 0.001 * static_cast<double>(random_() % 200));
    spent_ += taken;
    return taken;
  }
  double spent() const override { return spent_; }

 private:
  std::vector<double> truth_;
  double spent_ = 0, late_ = 3;
  int left_;
  std::mt19937_64 random_;
};
TEST(Tuner, NeverChangesToASlowerCandidateOnALoadedMachine) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> truth(2 + random() % 12), errors;
    for (double& seconds : truth) seconds = 0.01 * (0.85 + 0.001 * static_cast<double>(random() % 400));
    for (size_t i = 0; i < truth.size(); ++i) errors.push_back(random() % 3 == 0 ? 2e-5 : 1e-6);
    LoadedClock clock(truth, static_cast<int>(random() % 4), seed);  // the first samples are the planned candidate's
    TuneRule rule;
    rule.most_seconds = random() % 2 == 0 ? 2 : 10;
    const auto verdict = tune(errors, clock, rule);
    ASSERT_TRUE(verdict.ok());
    EXPECT_LE(truth[verdict->chosen], truth[0]) << "seed " << seed;
    EXPECT_LE(verdict->seconds[verdict->chosen], verdict->seconds[0]) << "seed " << seed;
    changed += verdict->chosen != 0;
  }
  EXPECT_GT(changed, 50);  // and what is faster is found for all that
}

TEST(Tuner, SlowCandidatesAreAskedSeldom) {
  NoisyClock clock({1, 1.05, 5, 50, 2}, 0.05, 1);
  const std::vector<double> errors(5, 0);
  const auto verdict = tune(errors, clock, patient());
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->finalists, 2u);
  EXPECT_LE(clock.asked(), 3 + 3 + 3 + 1 + 3 + 2 * verdict->rounds);
  for (const double seconds : verdict->seconds) EXPECT_GT(seconds, 0);
}

TEST(Tuner, WithoutTimeNothingChanges) {
  TuneRule rule;
  rule.most_seconds = 5;
  const TuneVerdict none = verdict_of({1, 0.5, 0.9}, 0, 1, rule);
  EXPECT_EQ(none.outcome, TuneOutcome::out_of_time);
  EXPECT_EQ(none.chosen, 0u);
  rule.most_seconds = 60;  // time for a look, not for certainty about 4 % with 5 % noise
  const TuneVerdict noise = verdict_of({1, 0.96}, 0.05, 3, rule);
  EXPECT_EQ(noise.chosen, 0u);
  EXPECT_NE(noise.outcome, TuneOutcome::changed);
}

class FailingClock final : public TuneClock {
 public:
  explicit FailingClock(Reason reason) : reason_(reason) {}
  Result<double> seconds(size_t candidate) override {
    if (candidate == 1) return Error{reason_, "no"};
    return 1.0;
  }
  double spent() const override { return 0; }

 private:
  Reason reason_;
};
TEST(Tuner, AWayThatDoesNotFitMemoryIsOutAndOtherErrorsEnd) {
  const std::vector<double> errors(2, 0);
  // Too large, wrong, or refused by the driver.
  for (const Reason reason :
       {Reason::over_memory_budget, Reason::out_of_memory, Reason::failed_probe, Reason::device_unusable}) {
    FailingClock out(reason);
    const auto verdict = tune(errors, out, {});
    ASSERT_TRUE(verdict.ok());
    EXPECT_EQ(verdict->chosen, 0u);
    EXPECT_EQ(verdict->finalists, 1u);
  }
  FailingClock broken(Reason::internal);
  EXPECT_EQ(tune(errors, broken, {}).error().reason, Reason::internal);
}

// What a candidate costs on a device, by the model.
double cost_on(const Choice& candidate, const Device& device) {
  double seconds = 0;
  for (size_t s = 0; s < candidate.schedules.size(); ++s) {
    const Stage& stage = candidate.plan.stages[s].stage;
    seconds +=
        cost_of(info(stage.family()).footprint(stage, candidate.schedules[s], device), candidate.schedules[s], device).seconds;
  }
  return seconds;
}

struct Wrong {
  const char* what;
  void (*spoil)(Device&);
};
void scale_level(Device& device, const char* name, double factor) {
  for (MemoryLevel& level : device.memory)
    if (level.name == name)
      level.bytes_per_second *= factor, level.total_bytes_per_second *= factor, level.copy_bytes_per_second *= factor;
}
const Wrong kWrong[] = {
    {"as it is", [](Device&) {}},
    {"L1 four times slower", [](Device& d) { scale_level(d, "L1", 0.25); }},
    {"L2 four times slower", [](Device& d) { scale_level(d, "L2", 0.25); }},
    {"L2 four times faster", [](Device& d) { scale_level(d, "L2", 4); }},
    {"L3 four times slower", [](Device& d) { scale_level(d, "L3", 0.25); }},
    {"L3 four times faster", [](Device& d) { scale_level(d, "L3", 4); }},
    {"units four times slower",
     [](Device& d) {
       for (MathUnit& u : d.units) u.flops_per_second /= 4, u.total_flops_per_second /= 4;
     }},
    {"units four times faster",
     [](Device& d) {
       for (MathUnit& u : d.units) u.flops_per_second *= 4, u.total_flops_per_second *= 4;
     }},
};

struct Tuned {
  std::string store;
  double worst_share = 1;  // of the best candidate's speed, of the slowest layer
  int changed = 0;
};
// Tunes all layers of the list as somebody who believes in `believed` on a machine that is `real`.
Tuned tune_layers(const std::vector<NamedProblem>& layers, const Device& believed, const Device& real, uint64_t seed) {
  TuningStore store(TuningStore::header_for(believed));
  Tuned result;
  for (const NamedProblem& layer : layers) {
    const AnchorCall call = call_of(layer.problem);
    const auto found = candidates_of(call, believed, {});
    EXPECT_TRUE(found.ok()) << layer.name;
    std::vector<double> truth, errors;
    for (const Choice& candidate : *found) truth.push_back(cost_on(candidate, real)), errors.push_back(candidate.error);
    // The one that planning would take if it knew.
    size_t best = truth.size();
    for (const double bound : std::set<double>(errors.begin(), errors.end())) {
      size_t of_bound = truth.size();
      for (size_t i = 0; i < truth.size(); ++i)
        if (errors[i] == bound && (of_bound == truth.size() || truth[i] < truth[of_bound])) of_bound = i;
      if (best == truth.size() || truth[of_bound] < kWorth * truth[best]) best = of_bound;
    }
    NoisyClock clock(truth, 0.05, seed ^ hash_text(layer.name));
    const auto verdict = tune(errors, clock, patient());
    EXPECT_TRUE(verdict.ok()) << layer.name;
    const Choice& chosen = (*found)[verdict->chosen];
    result.changed += verdict->chosen != 0;
    // A more accurate candidate than the best may take the longer for it.
    const double worth = errors[verdict->chosen] < errors[best] ? kWorth : 1;
    result.worst_share = std::min(result.worst_share, truth[best] / (worth * truth[verdict->chosen]));
    store.put(tuning_key(call, {}), {chosen.algorithm, to_text(chosen.schedules[0])});
  }
  result.store = store.to_text();
  return result;
}

std::vector<NamedProblem> real_layers(const std::string& list = "layers") {
  auto layers = read_layers(SPARKLE_SOURCE_DIR "/shapes/" + list + ".csv");
  EXPECT_TRUE(layers.ok());
  return layers.ok() ? std::move(*layers) : std::vector<NamedProblem>{};
}
Device real_device(const std::string& name = "epyc-zen4") {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/" + name + ".json");
  EXPECT_TRUE(device.ok());
  return device.ok() ? std::move(*device) : Device{};
}

TEST(Tuner, TwentyTunesWithNoiseGiveOneStore) {
  const std::vector<NamedProblem> layers = real_layers();
  const Device real = real_device();
  for (const Wrong& wrong : {kWrong[0], kWrong[2]}) {
    Device believed = real;
    wrong.spoil(believed);
    std::set<uint64_t> hashes;
    for (uint64_t seed = 1; seed <= 20; ++seed) hashes.insert(hash_text(tune_layers(layers, believed, real, seed).store));
    EXPECT_EQ(hashes.size(), 1u) << wrong.what;
  }
}

// GPUs have more candidates that are nearly as good as each other: tiles of the same size cut among threads in another way.
TEST(Tuner, TunesOfGpusGiveOneStore) {
  for (const char* name : {"radeon-rx-7900-xtx", "h200-vulkan", "lavapipe"}) {
    const std::vector<NamedProblem> layers = real_layers("resnet50");
    const Device believed = real_device(name);
    Device real = believed;
    scale_level(real, "shared", 0.25);
    std::set<uint64_t> hashes;
    for (uint64_t seed = 1; seed <= 10; ++seed) hashes.insert(hash_text(tune_layers(layers, believed, real, seed).store));
    EXPECT_EQ(hashes.size(), 1u) << name;
  }
}

// Subgroups of 32 and of 64 are candidates of their own on RDNA3. Whichever is faster there is found, kept, and planned with.
TEST(Tuner, DecidesBetweenSubgroupsSplitsAndTiles) {
  const Device device = real_device("radeon-rx-7900-xtx");
  auto problem = parse_conv("ic512ih7oc512oh7kh3ph1");
  ASSERT_TRUE(problem.ok());
  const AnchorCall call = call_of(*problem);
  PlanOptions options;
  options.algorithm = "gemm";
  const auto found = candidates_of(call, device, options);
  ASSERT_TRUE(found.ok());
  const auto tile = [&](size_t candidate) { return get<TileSchedule>((*found)[candidate].schedules[0]); };
  std::set<std::pair<int, int>> tiles;
  std::set<int> splits;
  for (size_t i = 0; i < found->size(); ++i) tiles.insert({tile(i).m, tile(i).n}), splits.insert(tile(i).split);
  EXPECT_GT(tiles.size(), 4u);
  EXPECT_GT(splits.size(), 1u);
  for (const int subgroup : {32, 64})
    for (const bool split : {false, true}) {
      std::vector<double> truth;
      for (size_t i = 0; i < found->size(); ++i) {
        const TileSchedule t = tile(i);
        const bool wanted = t.subgroup == subgroup && (t.split > 1) == split && t.variant == "implicit";
        truth.push_back(1e-3 * (wanted ? 1 : 1.2) * (1 + 0.01 * std::abs(t.m - 64) / 16));
      }
      const TuneVerdict verdict = verdict_of(truth, 0.05, 7);
      const TileSchedule chosen = tile(verdict.chosen);
      EXPECT_EQ(chosen.subgroup, subgroup);
      EXPECT_EQ(chosen.split > 1, split);
      TuningStore store(TuningStore::header_for(device));
      store.put(tuning_key(call, options), {"gemm", to_text((*found)[verdict.chosen].schedules[0])});
      PlanOptions tuned = options;
      tuned.tuning = &store;
      const auto planned = choose(call, device, tuned);
      ASSERT_TRUE(planned.ok());
      EXPECT_TRUE(planned->tuned);
      EXPECT_EQ(get<TileSchedule>(planned->schedules[0]), chosen);
    }
}

TEST(Tuner, StoresBelongToADriver) {
  Device device = real_device("radeon-rx-7900-xtx");
  device.driver = "radv Mesa 25.0.7";
  const TuningStore store(TuningStore::header_for(device));
  EXPECT_TRUE(TuningStore::parse(store.to_text(), TuningStore::header_for(device)).ok());
  Device newer = device;
  newer.driver = "radv Mesa 25.1.0";
  const auto other = TuningStore::parse(store.to_text(), TuningStore::header_for(newer));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().reason, Reason::bad_input);
  EXPECT_NE(TuningStore::kept_path(device), TuningStore::kept_path(newer));
}

TEST(Tuner, WrongDevicesAreMadeUpFor) {
  const std::vector<NamedProblem> layers = real_layers();
  const Device real = real_device();
  for (const Wrong& wrong : kWrong) {
    Device believed = real;
    wrong.spoil(believed);
    const Tuned tuned = tune_layers(layers, believed, real, 1);
    EXPECT_GE(tuned.worst_share, 0.95) << wrong.what;
    std::printf("%-28s %3d layers changed, the worst at %.3f of the best choice's speed\n", wrong.what, tuned.changed,
                tuned.worst_share);
  }
}

}  // namespace
}  // namespace sparkle
