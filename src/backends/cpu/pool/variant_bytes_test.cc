// Maxima of 8-bit integers on every unit of this machine against the reference, byte for byte.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/pool/pool.h"
#include "families/pool/pool_reference.h"

namespace sparkle::cpu {
namespace {

// Feature maps with channels innermost, gaps between pixels and rows among them.
TensorDesc maps(TestRandom& random, DType type, const Dims& shape) {
  Dims padded = shape;
  for (int i = 0; i < shape.size(); ++i)
    if (random.chance(25)) padded[i] += random.between(1, 3);
  TensorDesc desc{type, shape, channels_last(padded)};
  desc.layout.offset = random.between(0, 9);
  return desc;
}

TEST(BytePool, EqualsTheReferenceToTheByte) {
  for (const std::string& unit : test_units())
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(cases_on(unit, 300)); ++seed) {
      TestRandom random(seed);
      const int spatial = static_cast<int>(random.between(1, 3));
      const DType type = random.chance(50) ? DType::u8 : DType::i8;
      const int64_t channels[] = {1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 200};
      Dims x{random.between(1, 2), channels[random.between(0, 12)]}, y = x;
      PoolParams p;
      Window& w = p.window;
      for (int i = 0; i < spatial; ++i) {
        const auto at = static_cast<size_t>(3 - spatial + i);
        w.filter[at] = random.between(1, 4), w.stride[at] = random.between(1, 3), w.dilation[at] = random.between(1, 2);
        w.pad_begin[at] = random.between(-1, 5), w.pad_end[at] = random.between(0, 5);  // windows without elements too
        const int64_t reach = (w.filter[at] - 1) * w.dilation[at] + 1, size = random.between(1, 9);
        x.push_back(size), y.push_back(std::max<int64_t>(0, size + w.pad_begin[at] + w.pad_end[at] - reach) / w.stride[at] + 1);
      }
      const Stage stage{p, {maps(random, type, x)}, {maps(random, type, y)}};
      TestTensor from(stage.inputs[0]), got(stage.outputs[0]), want(stage.outputs[0]);
      const int64_t low = type == DType::u8 ? 0 : -128;
      from.fill([&] { return static_cast<double>(random.between(low, low + (random.chance(50) ? 255 : 3))); });
      const TensorView input = from.view(), expected = want.view();
      pool_reference(p, {&input, 1}, {&expected, 1});
      auto kernel =
          factory_of(Family::pool, "bytes")(stage, LoopSchedule{"bytes", unit, random.between(0, 1) * 64}, Device{}, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      ThreadPool pool(static_cast<int>(random.between(1, 2)));
      std::byte *in = from.origin(), *out = got.origin();
      (*kernel)->run({{&in, 1}, {&out, 1}, nullptr, &pool});
      EXPECT_TRUE(got.sentinels_hold()) << unit << ", seed " << seed;
      for_each_index(y, [&](const Dims& at) {
        ASSERT_EQ(got.at(at), want.at(at)) << unit << ", seed " << seed << " at " << at.to_string() << ": " << to_text(p);
      });
    }
}

TEST(BytePool, RefusalsNameTheReason) {
  const auto units = test_units();
  if (units.empty()) GTEST_SKIP() << "no vector unit with kernels on this machine";
  const Dims shape{1, 8, 6, 6};
  const TensorDesc nhwc{DType::u8, shape, channels_last(shape)}, nchw = dense_desc(DType::u8, shape);
  const TensorDesc floats{DType::f32, shape, channels_last(shape)};
  PoolParams p;
  const auto reason = [&](const Stage& stage, const std::string& unit) {
    auto made = factory_of(Family::pool, "bytes")(stage, LoopSchedule{"bytes", unit, 0}, Device{}, 0);
    return made.ok() ? Reason::none : made.error().reason;
  };
  EXPECT_EQ(reason({p, {nhwc}, {nhwc}}, units[0]), Reason::none);
  EXPECT_EQ(reason({p, {nchw}, {nhwc}}, units[0]), Reason::layout_not_served);
  EXPECT_EQ(reason({p, {floats}, {floats}}, units[0]), Reason::type_not_served);
  EXPECT_EQ(reason({p, {nhwc}, {nhwc, dense_desc(DType::i64, shape)}}, units[0]), Reason::operator_not_served);
  EXPECT_EQ(reason({p, {nhwc}, {nhwc}}, "no-such-unit"), Reason::backend_lacks_variant);
  p.kind = PoolKind::average;
  EXPECT_EQ(reason({p, {nhwc}, {nhwc}}, units[0]), Reason::operator_not_served);
}

}  // namespace
}  // namespace sparkle::cpu
