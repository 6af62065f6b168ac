// Plain loops shared among threads give the reference's own bits, whatever the family, type and layout.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/gemm/gemm.h"
#include "families/normalize/normalize.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"
#include "families/registry.h"
#include "families/softmax/softmax.h"
#include "families/loops/split.h"

namespace sparkle::cpu {
namespace {

void check(const Stage& stage, TestRandom& random, bool is_cut, const std::string& note) {
  EXPECT_EQ(split_axes(stage).size > 1, is_cut) << note;
  std::vector<TestTensor> inputs;
  std::vector<TensorView> views;
  std::vector<std::byte*> pointers;
  for (const TensorDesc& desc : stage.inputs) {
    inputs.emplace_back(desc);
    inputs.back().fill([&] { return std::round(random.normal() * 8); });
  }
  for (TestTensor& input : inputs) views.push_back(input.view()), pointers.push_back(input.origin());
  TestTensor want(stage.outputs[0]), got(stage.outputs[0]);
  const TensorView want_view = want.view();
  info(stage.family()).reference(stage.params, views, {&want_view, 1});
  auto kernel = make_plain(stage, LoopSchedule{}, Device{}, 0);
  ASSERT_TRUE(kernel.ok());
  ThreadPool pool(3);
  std::byte* const out = got.origin();
  (*kernel)->run({pointers, {&out, 1}, nullptr, &pool});
  ASSERT_TRUE(got.sentinels_hold()) << note;
  for_each_index(stage.outputs[0].shape, [&](const Dims& at) {
    ASSERT_EQ(std::memcmp(element_at(got.view(), at), element_at(want.view(), at),
                          static_cast<size_t>(size_of(stage.outputs[0].dtype))),
              0)
        << note << " at " << at.to_string();
  });
}

TEST(Plain, ThreadsShareEveryFamilyThatCanBeCut) {
  TestRandom random(3);
  const auto tensor = [&](DType type, const Dims& shape) { return TensorDesc{type, shape, random.layout(shape)}; };
  for (const DType type : {DType::f64, DType::f32, DType::i64}) {
    const std::string note(name_of(type));
    GemmParams dense;
    dense.loader = Loader::dense;
    dense.epilogue.bias = true;
    dense.epilogue.residuals_before = 1;
    check({dense,
           {tensor(type, {2, 31, 5}), tensor(type, {2, 5, 9}), tensor(type, {9}), tensor(type, {2, 31, 9})},
           {tensor(type, {2, 31, 9})}},
          random, true, "gemm rows " + note);
    check({dense,
           {tensor(type, {3, 5}), tensor(type, {5, 40}), tensor(type, {40}), tensor(type, {3, 40})},
           {tensor(type, {3, 40})}},
          random, true, "gemm columns " + note);
    check({PoolParams{PoolKind::max, {{1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}}, false, 2},
           {tensor(type, {1, 7, 6, 5})},
           {tensor(type, {1, 7, 5, 4})}},
          random, true, "pool " + note);
    check({ReduceParams{ReduceKind::sum, {1}}, {tensor(type, {3, 9, 40})}, {tensor(type, {3, 1, 40})}}, random, true,
          "reduce " + note);
    check({ReduceParams{ReduceKind::sum, {0, 1}}, {tensor(type, {9, 40})}, {tensor(type, {1, 1})}}, random, false,
          "reduce all " + note);
  }
  GemmParams window;
  window.window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}};
  window.epilogue.bias = true;
  const DType type = DType::f64;
  check({window, {tensor(type, {1, 4, 6, 5}), tensor(type, {10, 4, 3, 3}), tensor(type, {10})}, {tensor(type, {1, 10, 6, 5})}},
        random, true, "conv");
  window.groups = 2;
  check({window, {tensor(type, {3, 4, 6, 5}), tensor(type, {10, 2, 3, 3}), tensor(type, {10})}, {tensor(type, {3, 10, 6, 5})}},
        random, true, "conv in groups");
  SoftmaxParams softmax;
  softmax.first_axis = softmax.last_axis = 1;
  check({softmax, {tensor(type, {3, 9, 20})}, {tensor(type, {3, 9, 20})}}, random, true, "softmax");
  NormalizeParams normalize;
  normalize.axes = {2};
  normalize.bias = false;
  TensorDesc scale = tensor(type, {3, 9, 20});
  scale.layout.strides = {0, 1, 0};
  scale.layout.offset = 0;
  check({normalize, {tensor(type, {3, 9, 20}), scale}, {tensor(type, {3, 9, 20})}}, random, true, "normalize");
}

}  // namespace
}  // namespace sparkle::cpu
