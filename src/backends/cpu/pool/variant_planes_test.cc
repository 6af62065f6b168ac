// Pools of planes as they come, on every unit of this machine, against the reference.
#include <cmath>
#include <limits>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/pool/pool.h"
#include "families/pool/pool_reference.h"

namespace sparkle::cpu {
namespace {

// Row-major with gaps between rows, planes and images.
TensorDesc planes(TestRandom& random, const Dims& shape) {
  Dims padded = shape;
  for (int i = 0; i < shape.size(); ++i)
    if (random.chance(25)) padded[i] += random.between(1, 3);
  TensorDesc desc{DType::f32, shape, row_major(padded)};
  desc.layout.offset = random.between(0, 9);
  return desc;
}

void check(TestRandom& random, const std::string& unit, const PoolParams& p, const Dims& x, const Dims& y,
           const std::string& note) {
  const Stage stage{p, {planes(random, x)}, {planes(random, y)}};
  TestTensor from(stage.inputs[0]), got(stage.outputs[0]), want(stage.outputs[0]);
  const bool odd = p.kind == PoolKind::max && random.chance(30);  // NaN and infinities among the elements
  from.fill([&] {
    const double infinity = std::numeric_limits<double>::infinity();
    if (odd && random.chance(5)) return std::nan("");
    return odd && random.chance(10) ? (random.chance(50) ? infinity : -infinity) : random.normal();
  });
  const TensorView input = from.view(), expected = want.view();
  pool_reference(p, {&input, 1}, {&expected, 1});
  Device device;
  device.cores = static_cast<int>(random.between(1, 2));
  auto kernel = factory_of(Family::pool, "planes")(stage, LoopSchedule{"planes", unit, random.between(0, 1) * 64}, device, 0);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  ThreadPool pool(static_cast<int>(random.between(1, 2)));
  const HostTensor workspace = HostTensor::zeros(DType::u8, Dims{(*kernel)->workspace_bytes()});
  std::fill_n(workspace.data<uint8_t>(), (*kernel)->workspace_bytes(), uint8_t{255});  // NaN
  std::byte *in = from.origin(), *out = got.origin();
  (*kernel)->run({{&in, 1}, {&out, 1}, workspace.bytes.get(), &pool});
  EXPECT_TRUE(got.sentinels_hold()) << unit << ", " << note;
  // Each of them is rounded once when it is added, and the sum of elements below 6 in size three times after that.
  const auto taps = static_cast<double>(p.window.taps());
  const double bound =
      p.kind == PoolKind::max ? 0 : std::ldexp(6.0, -24) * (taps + 4) * (p.kind == PoolKind::lp ? 6 * taps : 1);
  for_each_index(y, [&](const Dims& at) {
    const double a = got.at(at), b = want.at(at);
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= bound)
        << unit << ", " << note << " at " << at.to_string() << ": " << a << " instead of " << b << " " << to_text(p) << " x "
        << x.to_string();
  });
}

TEST(PlanePool, RandomShapesMatchTheReference) {
  for (const std::string& unit : test_units())
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(cases_on(unit, 500)) && !::testing::Test::HasFailure(); ++seed) {
      TestRandom random(seed);
      const int spatial = static_cast<int>(random.between(1, 3));
      Dims x{random.between(1, 2), random.between(1, 4)}, y = x;
      PoolParams p;
      p.kind = static_cast<PoolKind>(random.between(0, 2)), p.p = random.between(1, 2), p.count_pad = random.chance(50);
      const bool ceil = random.chance(50);
      Window& w = p.window;
      for (int i = 0; i < spatial; ++i) {
        const auto at = static_cast<size_t>(3 - spatial + i);
        w.filter[at] = random.between(1, 5), w.stride[at] = random.between(1, 3), w.dilation[at] = random.between(1, 3);
        w.pad_begin[at] = random.between(-1, 5), w.pad_end[at] = random.between(0, 5);  // windows without elements too
        const int64_t reach = (w.filter[at] - 1) * w.dilation[at] + 1, size = random.between(1, i + 1 == spatial ? 60 : 9);
        const int64_t room = std::max<int64_t>(0, size + w.pad_begin[at] + w.pad_end[at] - reach);
        x.push_back(size), y.push_back((room + ceil * (w.stride[at] - 1)) / w.stride[at] + 1);
      }
      check(random, unit, p, x, y, "seed " + std::to_string(seed));
    }
}

// Rows that are made part by part, and layers that networks have.
TEST(PlanePool, LayersMatchTheReference) {
  struct Layer {
    int64_t height, width, filter, stride, pad, dilation;
  };
  const Layer layers[] = {{1, 9001, 3, 1, 1, 1},  {2, 9002, 4, 2, 0, 1}, {1, 9003, 5, 3, 2, 1}, {3, 5000, 2, 1, 900, 1900},
                          {112, 112, 3, 2, 1, 1}, {20, 20, 13, 1, 6, 1}, {28, 28, 28, 28, 0, 1}};
  TestRandom random(3);
  for (const std::string& unit : test_units())
    for (const Layer& l : layers)
      for (PoolKind kind : {PoolKind::max, PoolKind::average}) {
        PoolParams p;
        p.kind = kind, p.count_pad = true;
        const bool row = l.height < l.filter;
        p.window.filter = {1, row ? 1 : l.filter, l.filter}, p.window.stride = {1, row ? 1 : l.stride, l.stride};
        p.window.dilation = {1, 1, l.dilation};
        p.window.pad_begin = p.window.pad_end = {0, row ? 0 : std::min(l.pad, l.filter), l.pad};
        const auto out = [&](size_t i, int64_t size) {
          const Window& w = p.window;
          return (size + 2 * w.pad_begin[i] - (w.filter[i] - 1) * w.dilation[i] - 1) / w.stride[i] + 1;
        };
        check(random, unit, p, {1, 3, l.height, l.width}, {1, 3, out(1, l.height), out(2, l.width)},
              std::to_string(l.height) + "x" + std::to_string(l.width));
      }
}

TEST(PlanePool, RefusalsNameTheReason) {
  const auto units = test_units();
  if (units.empty()) GTEST_SKIP() << "no vector unit with kernels on this machine";
  const Dims shape{1, 8, 6, 6};
  const TensorDesc nhwc{DType::f32, shape, channels_last(shape)}, nchw = dense_desc(DType::f32, shape);
  PoolParams p;
  const auto reason = [&](const Stage& stage, const std::string& unit) {
    auto made = factory_of(Family::pool, "planes")(stage, LoopSchedule{"planes", unit, 0}, Device{}, 0);
    return made.ok() ? Reason::none : made.error().reason;
  };
  EXPECT_EQ(reason({p, {nchw}, {nchw}}, units[0]), Reason::none);
  EXPECT_EQ(reason({p, {nhwc}, {nchw}}, units[0]), Reason::layout_not_served);
  EXPECT_EQ(reason({p, {dense_desc(DType::u8, shape)}, {dense_desc(DType::u8, shape)}}, units[0]), Reason::type_not_served);
  EXPECT_EQ(reason({p, {nchw}, {nchw, dense_desc(DType::i64, shape)}}, units[0]), Reason::operator_not_served);
  EXPECT_EQ(reason({p, {nchw}, {nchw}}, "no-such-unit"), Reason::backend_lacks_variant);
  p.kind = PoolKind::lp, p.p = 3;
  EXPECT_EQ(reason({p, {nchw}, {nchw}}, units[0]), Reason::operator_not_served);
}

}  // namespace
}  // namespace sparkle::cpu
