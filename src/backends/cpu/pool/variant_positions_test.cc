// Maxima with their positions on every unit of this machine against the reference: ties, NaN, infinities, windows without
// elements.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/pool/pool.h"
#include "families/pool/pool_reference.h"

namespace sparkle::cpu {
namespace {

TEST(PositionPool, EqualsTheReference) {
  for (const std::string& unit : test_units())
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(cases_on(unit, 300)); ++seed) {
      TestRandom random(seed);
      const int spatial = static_cast<int>(random.between(1, 3));
      const int64_t channels[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 40};
      Dims x{random.between(1, 2), channels[random.between(0, 10)]}, y = x;
      PoolParams p;
      Window& w = p.window;
      for (int i = 0; i < spatial; ++i) {
        const auto at = static_cast<size_t>(3 - spatial + i);
        w.filter[at] = random.between(1, 4), w.stride[at] = random.between(1, 3), w.dilation[at] = random.between(1, 2);
        w.pad_begin[at] = random.between(-1, 5), w.pad_end[at] = random.between(0, 5);
        const int64_t reach = (w.filter[at] - 1) * w.dilation[at] + 1, size = random.between(1, 9);
        x.push_back(size), y.push_back(std::max<int64_t>(0, size + w.pad_begin[at] + w.pad_end[at] - reach) / w.stride[at] + 1);
      }
      const auto maps = [&](const Dims& shape) { return TensorDesc{DType::f32, shape, channels_last(shape)}; };
      const Stage stage{p, {maps(x)}, {maps(y), {DType::i64, y, random.layout(y)}}};
      TestTensor from(stage.inputs[0]), got(stage.outputs[0]), want(stage.outputs[0]), places(stage.outputs[1]),
          wanted_places(stage.outputs[1]);
      const bool odd = random.chance(30);
      from.fill([&] {
        if (odd && random.chance(10)) return std::nan("");
        if (odd && random.chance(10)) return -std::numeric_limits<double>::infinity();
        return static_cast<double>(random.between(-3, 3));
      });
      const TensorView input = from.view(), expected[] = {want.view(), wanted_places.view()};
      pool_reference(p, {&input, 1}, expected);
      const LoopSchedule schedule{"positions", unit, random.between(0, 1) * 64};
      auto kernel = factory_of(Family::pool, "positions")(stage, schedule, Device{}, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      ThreadPool pool(static_cast<int>(random.between(1, 2)));
      std::byte *in = from.origin(), *out[] = {got.origin(), places.origin()};
      (*kernel)->run({{&in, 1}, out, nullptr, &pool});
      EXPECT_TRUE(got.sentinels_hold() && places.sentinels_hold()) << unit << ", seed " << seed;
      for_each_index(y, [&](const Dims& at) {
        ASSERT_TRUE(close(got.at(at), want.at(at), 0)) << unit << ", seed " << seed << " at " << at.to_string();
        ASSERT_EQ(places.at(at), wanted_places.at(at)) << unit << ", seed " << seed << " at " << at.to_string();
      });
    }
}

}  // namespace
}  // namespace sparkle::cpu
