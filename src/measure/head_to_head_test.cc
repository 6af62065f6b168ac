// What is taken off a peer's time: its fixed cost, but never so much that its products would run above the peak.
#include "measure/head_to_head.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"

namespace sparkle {
namespace {

// Shorter than the products of any layer take on any machine.
constexpr double kClaimed = 1e-9, kFixed = 0.9e-9;

// A right 1x1 convolution with a clock of its own.
class ClaimingRun final : public PeerRun {
 public:
  ClaimingRun(const PeerLayer& layer, std::string chose) : layer_(layer), chose_(std::move(chose)) {}
  Status run(int64_t) override { return ok(); }
  Result<double> seconds(int64_t) override { return kClaimed; }
  Result<double> fixed_seconds(int64_t) override { return kFixed; }
  std::string chose() const override { return chose_; }
  Status result(float* y) override {
    const Problem& p = layer_.call.problem;
    const Dims &xs = layer_.call.inputs[0].layout.strides, &ys = layer_.call.output.layout.strides;
    for (int64_t h = 0; h < p.out[1]; ++h)
      for (int64_t w = 0; w < p.out[2]; ++w)
        for (int64_t k = 0; k < p.k; ++k) {
          double sum = layer_.bias ? layer_.bias[k] : 0;
          for (int64_t c = 0; c < p.c; ++c) sum += double{layer_.x[c * xs[1] + h * xs[2] + w * xs[3]]} * layer_.w[k * p.c + c];
          y[k * ys[1] + h * ys[2] + w * ys[3]] = static_cast<float>(sum);
        }
    return ok();
  }

 private:
  PeerLayer layer_;
  std::string chose_;
};

class ClaimingPeer final : public Peer {
 public:
  explicit ClaimingPeer(std::string chose) : chose_(std::move(chose)) {}
  std::string name() const override { return "claims " + chose_; }
  std::string version() const override { return "1"; }
  Result<std::unique_ptr<PeerRun>> prepare(const PeerLayer& layer) override {
    return std::unique_ptr<PeerRun>(std::make_unique<ClaimingRun>(layer, chose_));
  }

 private:
  std::string chose_;
};

TEST(HeadToHead, FixedCostsLeaveProductsAtThePeak) {
  Device device = probe_cpu({.threads = 1});
  estimate_rates(device);
  if (!best_vector_unit(device)) GTEST_SKIP() << "SKIP: this CPU has no vector unit with kernels";
  const auto backend = cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
  auto problem = parse_conv("ic32ih8oc32kh1");
  ASSERT_TRUE(problem.ok());
  problem->epilogue.bias = true;
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<ClaimingPeer>("direct"));
  peers.push_back(std::make_unique<ClaimingPeer>("winograd"));
  LayerBenchOptions options;
  options.rounds = 1, options.seconds_per_round = 1e-3, options.seed = 7;
  const auto found = head_to_head(*backend, *problem, options, peers);
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->peers.size(), 2u);
  EXPECT_DOUBLE_EQ(found->peers[0].median_seconds, kClaimed);  // nothing could be taken off
  EXPECT_DOUBLE_EQ(found->peers[0].fixed_seconds, kFixed);
  // One with fewer products has no such limit.
  EXPECT_NEAR(found->peers[1].median_seconds, kClaimed - kFixed, 1e-12);
}

}  // namespace
}  // namespace sparkle
