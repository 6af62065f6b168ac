// The kernels of inverted blocks of every unit against their parts in double precision, on random shapes.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/inverted/inverted_rows.h"
#include "backends/cpu/window_test_support.h"
#include "families/family.h"
#include "families/gemm/gemm.h"
#include "families/inverted/inverted.h"
#include "families/inverted/inverted_family.h"

namespace sparkle::cpu {
namespace {

using test::Operand;
using test::pick;
using test::Random;
using test::units_of_this_machine;

struct Case {
  int64_t n = 1, c = 8, wide = 16, k = 8, h = 8, w = 8;
  InvertedParams params;
  InvertedSchedule schedule;
  bool gaps = false;
  uint32_t constants = ~1u;
  int threads = 1, cores = 1;
};

std::string describe(const Case& c) {
  return "n=" + std::to_string(c.n) + " c=" + std::to_string(c.c) + " wide=" + std::to_string(c.wide) +
         " k=" + std::to_string(c.k) + " h=" + std::to_string(c.h) + " w=" + std::to_string(c.w) + " " + to_text(c.params) +
         " " + to_text(c.schedule) + " gaps=" + std::to_string(c.gaps) + " constants=" + std::to_string(c.constants) +
         " threads=" + std::to_string(c.threads) + " cores=" + std::to_string(c.cores);
}

Activation any_activation(Random& random) {
  const int64_t kind = pick(random, 0, 9);
  return kind < 2   ? Activation::none
         : kind < 5 ? Activation::relu
         : kind < 8 ? Activation::clip
                    : static_cast<Activation>(pick(random, 0, 14));
}

Case random_case(Random& random, const std::string& unit) {
  Case c;
  const auto chance = [&](int percent) { return pick(random, 1, 100) <= percent; };
  c.n = pick(random, 1, 3), c.c = pick(random, 1, 40), c.wide = pick(random, 1, 90), c.k = pick(random, 1, 90);
  c.h = pick(random, 1, 20), c.w = pick(random, 1, 20);
  InvertedParams& p = c.params;
  p.expand = chance(70);
  if (!p.expand) c.wide = c.c;
  const int64_t filter = chance(70) ? 3 : 5, stride = pick(random, 1, 2);
  p.window.filter = {1, filter, filter}, p.window.stride = {1, stride, stride};
  for (size_t i = 1; i < 3; ++i) {
    p.window.pad_begin[i] = pick(random, 0, filter), p.window.pad_end[i] = pick(random, 0, filter);
    if ((i == 1 ? c.h : c.w) + p.window.pad_begin[i] + p.window.pad_end[i] < filter) p.window.pad_begin[i] = filter;
  }
  for (Epilogue* e : {&p.wide, &p.deep, &p.project}) {
    e->bias = chance(80);
    e->activation = any_activation(random);
    e->a = 0.25, e->b = 0.75;
  }
  if (!p.expand) p.wide = {};
  if (chance(40)) (chance(70) ? p.project.residuals_before : p.project.residuals_after) = 1;
  c.schedule.unit = unit;
  const int widest = tile_kernels_of(unit)->max_vectors;
  c.schedule.variant = widest == 2 ? "rows6x2" : "rows6x4";
  c.schedule.nr = static_cast<int>(pick(random, 1, widest));
  c.schedule.rows = chance(60) ? pick(random, 1, 4) : pick(random, 1, kMostInvertedRows);
  c.schedule.tasks = pick(random, 1, 4);
  const int64_t lanes = inverted_kernels_of(unit)->lanes;
  if (chance(30)) c.k = pick(random, 1, 2) * lanes + pick(random, 1, lanes / 2);
  if (chance(80) && inverted_kernels_of(unit)->pairs[0] && inverted_pairs(c.k, lanes)) c.schedule.variant = "pairs6x4";
  c.gaps = chance(40);
  c.constants = chance(70) ? ~1u : static_cast<uint32_t>(pick(random, 0, 127));
  c.threads = static_cast<int>(pick(random, 1, 3)), c.cores = chance(80) ? c.threads : 1;
  return c;
}

void check(Random& random, const Case& c) {
  const Window& w = c.params.window;
  const auto outputs = [&](size_t i, int64_t size) {
    return (size + w.pad_begin[i] + w.pad_end[i] - w.filter[i]) / w.stride[i] + 1;
  };
  const Dims x_shape{c.n, c.c, c.h, c.w}, y_shape{c.n, c.k, outputs(1, c.h), outputs(2, c.w)};
  std::vector<Operand> inputs;
  inputs.push_back(test::random_operand(random, test::channels_last_desc(random, x_shape, c.gaps)));
  const auto part = [&](int64_t filters, int64_t channels, int64_t size, bool bias) {
    inputs.push_back(test::random_operand(random, dense_desc(DType::f32, {filters, channels, size, size})));
    if (bias) inputs.push_back(test::random_operand(random, dense_desc(DType::f32, {filters})));
  };
  if (c.params.expand) part(c.wide, c.c, 1, c.params.wide.bias);
  part(c.wide, 1, w.filter[1], c.params.deep.bias);
  part(c.k, c.wide, 1, c.params.project.bias);
  const Epilogue& e = c.params.project;
  if (e.residuals_before + e.residuals_after > 0)
    inputs.push_back(test::random_operand(random, test::channels_last_desc(random, y_shape, c.gaps)));
  Operand y = test::poisoned_output(random, y_shape, c.gaps);

  const Stage stage = test::stage_of(c.params, inputs, y);
  const test::Expected expected = test::expected_of(inverted_info(), stage, inputs);

  const Device device = test::device_with(c.schedule.unit, c.cores);
  auto made = make_inverted(stage, c.schedule, device, c.constants);
  ASSERT_TRUE(made.ok()) << made.error().message;

  // As run_kernel of window_test_support.h, with every operand that is packed.
  ThreadPool pool(c.threads);
  std::vector<std::byte*> in, out{y.origin()};
  std::vector<HostTensor> packed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(inputs[i].origin());
    const int64_t bytes = (*made)->packed_bytes(static_cast<int>(i));
    if (bytes == 0) continue;
    packed.push_back(HostTensor::zeros(DType::u8, Dims{bytes}));
    (*made)->pack(static_cast<int>(i), inputs[i].origin() - inputs[i].desc.layout.offset * 4, packed.back().bytes.get(), pool);
    in.back() = packed.back().bytes.get();
  }
  const HostTensor workspace = HostTensor::zeros(DType::u8, Dims{(*made)->workspace_bytes()});
  std::fill_n(workspace.data<uint8_t>(), (*made)->workspace_bytes(), uint8_t{255});
  (*made)->run({in, out, workspace.bytes.get(), &pool});

  // Inputs and weights are uniform in [-1, 1], so sums of t products stay near sqrt(t / 9) and err by t roundings at random;
  // each part hands its errors, grown like its sums, to the next one. Six deviations; activations at most double them.
  const auto deviation = [](double length) { return std::sqrt(length) / 3 + 1; };
  const double first = c.params.expand ? deviation(static_cast<double>(c.c)) : 1;
  const double second = first * deviation(static_cast<double>(w.taps())),
               third = second * deviation(static_cast<double>(c.wide));
  const double roundings = std::sqrt(static_cast<double>(c.c + w.taps() + c.wide));
  const double tolerance = 6.0e-8 * 12 * third * (1 + roundings);
  EXPECT_EQ(test::compare(y, expected, tolerance), "");
}

TEST(InvertedKernel, LikeItsParts) {
  for (const std::string& unit : units_of_this_machine()) {
    if (!inverted_kernels_of(unit)) continue;
    Random random(11);
    for (int i = 0; i < cases_on(unit, 400); ++i) {
      const Case c = random_case(random, unit);
      SCOPED_TRACE(describe(c));
      check(random, c);
      if (HasFailure()) return;
    }
  }
}

TEST(InvertedKernel, ErrorsNameTheReason) {
  std::string unit_name;
  for (const std::string& unit : units_of_this_machine())
    if (unit_name.empty() && inverted_kernels_of(unit)) unit_name = unit;
  if (unit_name.empty()) GTEST_SKIP() << "no vector unit here";
  const Device device = test::device_with(unit_name);
  InvertedParams params;
  params.window.filter = {1, 3, 3};
  Stage stage{params,
              {dense_desc(DType::f32, {1, 8, 4, 4}), dense_desc(DType::f32, {24, 8, 1, 1}),
               dense_desc(DType::f32, {24, 1, 3, 3}), dense_desc(DType::f32, {4, 24, 1, 1})},
              {dense_desc(DType::f32, {1, 4, 2, 2})}};
  InvertedSchedule schedule;
  schedule.unit = unit_name;
  schedule.nr = 1;
  const auto reason = [&] { return make_inverted(stage, schedule, device, 0).error().reason; };
  EXPECT_EQ(reason(), Reason::layout_not_served);
  stage.inputs[0].layout = channels_last({1, 8, 4, 4}), stage.outputs[0].layout = channels_last({1, 4, 2, 2});
  EXPECT_TRUE(make_inverted(stage, schedule, device, 0).ok());
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(reason(), Reason::type_not_served);
  stage.inputs[0].dtype = DType::f32;
  params.window.filter = {1, 7, 7};
  stage.params = params;
  EXPECT_EQ(reason(), Reason::filter_not_served);
  params.window.filter = {1, 3, 3};
  params.project.residuals_before = 1;
  stage.params = params;
  EXPECT_EQ(reason(), Reason::internal);
  schedule.nr = 9;
  EXPECT_EQ(reason(), Reason::backend_lacks_variant);
  schedule.nr = 1, schedule.rows = kMostInvertedRows + 1;
  EXPECT_EQ(reason(), Reason::backend_lacks_variant);
  EXPECT_EQ(make_inverted(stage, GemmSchedule{}, device, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
