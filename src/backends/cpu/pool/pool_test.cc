// Every pool variant on every unit of this machine against the double-precision reference.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/window_test_support.h"
#include "families/pool/pool.h"
#include "families/pool/pool_reference.h"

namespace sparkle::cpu {
namespace {

using test::Operand;
using test::pick;
using test::Random;

struct Case {
  Dims x_shape;  // N,C,spatial
  PoolParams params;
  int64_t ceil_mode = 0, gaps = 0;
  std::string variant = "window", unit;
  int threads = 1, cores = 2;
};

Dims output_shape(const Case& c) {
  const int spatial = c.x_shape.size() - 2;
  Dims shape{c.x_shape[0], c.x_shape[1]};
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(3 - spatial + i);
    const Window& w = c.params.window;
    const int64_t reach = (w.filter[at] - 1) * w.dilation[at] + 1;
    const int64_t room = c.x_shape[2 + i] + w.pad_begin[at] + w.pad_end[at] - reach;
    shape.push_back(room < 0 ? 0 : (room + c.ceil_mode * (w.stride[at] - 1)) / w.stride[at] + 1);
  }
  return shape;
}

std::string describe(const Case& c) {
  return c.variant + " " + c.unit + " x=" + c.x_shape.to_string() + " " + to_text(c.params) +
         " ceil=" + std::to_string(c.ceil_mode) + " gaps=" + std::to_string(c.gaps) + " threads=" + std::to_string(c.threads);
}

std::string check(Random& random, const Case& c) {
  const Dims y_shape = output_shape(c);
  Operand x = test::random_operand(random, test::channels_last_desc(random, c.x_shape, c.gaps));
  Operand y{test::channels_last_desc(random, y_shape, c.gaps), {}};
  y.values.assign(static_cast<size_t>(extent(y_shape, y.desc.layout)), std::numeric_limits<float>::quiet_NaN());
  const Stage stage{c.params, {x.desc}, {y.desc}};
  test::Expected expected(y.desc);
  const TensorView x_view = x.view(), expected_view = expected.view();
  pool_reference(stage.params, {&x_view, 1}, {&expected_view, 1});

  LoopSchedule schedule;
  schedule.variant = c.variant, schedule.unit = c.unit, schedule.grain = 64;
  Device device;
  device.cores = c.cores;
  auto made = make_pool(stage, schedule, device, 0);
  if (!made.ok()) return "not made: " + made.error().message;
  ThreadPool pool(c.threads);
  const HostTensor workspace = HostTensor::zeros(DType::u8, Dims{(*made)->workspace_bytes()});
  std::fill_n(workspace.data<uint8_t>(), (*made)->workspace_bytes(), uint8_t{255});  // NaN
  std::byte *in = x.origin(), *out = y.origin();
  (*made)->run({{&in, 1}, {&out, 1}, workspace.bytes.get(), &pool});
  const auto taps = static_cast<double>(c.params.window.taps());
  return test::compare(y, expected, c.params.kind == PoolKind::max ? 0 : 1.2e-7 * (taps + 4) * taps);
}

Case random_case(Random& random, bool separable) {
  Case c;
  const int spatial = static_cast<int>(separable ? pick(random, 1, 2) : pick(random, 1, 3));
  const int64_t channels[] = {1, 3, 8, 15, 16, 17, 24, 32, 40, 67, 130};
  c.x_shape = Dims{pick(random, 1, 2), channels[pick(random, 0, 10)]};
  Window& w = c.params.window;
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(3 - spatial + i);
    c.x_shape.push_back(pick(random, 1, spatial == 3 ? 7 : 20));
    w.filter[at] = pick(random, 1, separable ? 14 : 5);
    w.stride[at] = separable ? 1 : pick(random, 1, 3), w.dilation[at] = separable ? 1 : pick(random, 1, 3);
    w.pad_begin[at] = pick(random, -1, w.filter[at]), w.pad_end[at] = pick(random, 0, w.filter[at]);
  }
  c.params.kind = separable ? PoolKind::max : static_cast<PoolKind>(pick(random, 0, 2));
  c.params.p = pick(random, 1, 2);
  c.params.count_pad = pick(random, 0, 1), c.ceil_mode = pick(random, 0, 1), c.gaps = pick(random, 0, 1);
  c.variant = separable ? "separable" : "window";
  c.threads = static_cast<int>(pick(random, 1, 2)), c.cores = static_cast<int>(pick(random, 1, 2));
  return c;
}

void run_cases(unsigned seed, int count, bool separable) {
  for (const std::string& unit : test::units_of_this_machine())
    for (int i = 0; i < cases_on(unit, count); ++i) {
      Random random(seed + static_cast<unsigned>(i));
      Case c = random_case(random, separable);
      c.unit = unit;
      ASSERT_EQ(check(random, c), "") << "seed " << seed + static_cast<unsigned>(i) << ": " << describe(c);
    }
}

TEST(CpuPool, WindowMatchesReferenceOnRandomShapes) { run_cases(100, 400, false); }
TEST(CpuPool, SeparableMatchesReferenceOnRandomShapes) { run_cases(3000, 300, true); }

TEST(CpuPool, LayersOfNetworks) {
  struct Layer {
    int64_t c, size, filter, stride, pad;
  };
  // ResNet's stem, VGG, YOLOX's SPP.
  const Layer layers[] = {{64, 112, 3, 2, 1}, {64, 28, 2, 2, 0}, {128, 20, 5, 1, 2}, {128, 20, 9, 1, 4}, {128, 13, 13, 1, 6}};
  Random random(7);
  for (const std::string& unit : test::units_of_this_machine())
    for (const Layer& l : layers)
      for (const char* variant : {"window", "separable"}) {
        Case c;
        c.x_shape = Dims{1, l.c, l.size, l.size};
        c.params.window = {{1, l.filter, l.filter}, {1, l.stride, l.stride}, {1, 1, 1}, {0, l.pad, l.pad}, {0, l.pad, l.pad}};
        c.variant = variant, c.unit = unit, c.threads = 2;
        if (c.variant == "separable" && l.stride > 1) continue;
        ASSERT_EQ(check(random, c), "") << describe(c);
      }
}

TEST(CpuPool, RefusalsNameTheReason) {
  const auto units = test::units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit with kernels on this machine";
  const Dims shape{1, 8, 6, 6};
  PoolParams params;
  params.window = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}};
  const TensorDesc nhwc{DType::f32, shape, channels_last(shape)}, nchw = dense_desc(DType::f32, shape);
  LoopSchedule schedule{"window", units[0], 0};
  const auto reason = [&](const Stage& stage) {
    auto made = make_pool(stage, schedule, Device{}, 0);
    return made.ok() ? Reason::none : made.error().reason;
  };
  EXPECT_EQ(reason({params, {nhwc}, {nhwc}}), Reason::none);
  EXPECT_EQ(reason({params, {nchw}, {nhwc}}), Reason::layout_not_served);
  EXPECT_EQ(reason({params, {nhwc}, {nhwc, dense_desc(DType::i64, shape)}}), Reason::operator_not_served);
  params.kind = PoolKind::lp, params.p = 3;
  EXPECT_EQ(reason({params, {nhwc}, {nhwc}}), Reason::operator_not_served);
  schedule.variant = "separable", params.kind = PoolKind::average;
  EXPECT_EQ(reason({params, {nhwc}, {nhwc}}), Reason::operator_not_served);
}

}  // namespace
}  // namespace sparkle::cpu
