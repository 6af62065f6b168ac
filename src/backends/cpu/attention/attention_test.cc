// Attention against the reference: random sizes, shared heads, layouts, masks, ranges, score outputs, units and threads.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/attention/attention.h"
#include "families/family.h"

namespace sparkle::cpu {
namespace {

constexpr int kRandomCases = 150;

struct Case {
  int number = 0;  // of the random cases
  Dims batch;      // axes before the rows
  Dims shared;     // 1 where keys and values have stride 0
  int64_t queries = 1, keys = 1, depth = 1, columns = 1;
  int64_t mask_columns = -1;  // -1: as many as keys
  bool boolean_mask = false;
  bool hide_rows = false;  // the mask hides all keys of some queries
  AttentionParams params;
};

Dims with(Dims batch, int64_t rows, int64_t columns) {
  batch.push_back(rows), batch.push_back(columns);
  return batch;
}

TensorDesc any_layout(DType type, const Dims& shape, TestRandom& random, const Dims& shared) {
  Dims own = shape;
  for (int i = 0; i < shared.size(); ++i)
    if (shared[i]) own[i] = 1;
  TensorDesc desc{type, shape, random.layout(own)};
  for (int i = 0; i < shared.size(); ++i)
    if (shared[i]) desc.layout.strides[i] = 0;
  return desc;
}

// Rows are contiguous, everything else may have gaps.
TensorDesc row_layout(const Dims& shape, TestRandom& random) {
  Dims padded = shape;
  for (int i = 0; i < shape.size(); ++i)
    if (random.chance(20)) padded[i] += random.between(1, 3);
  return {DType::f32, shape, row_major(padded)};
}

void check(const Case& c, TestRandom& random, const std::string& note) {
  const AttentionParams& p = c.params;
  const Dims none = Dims::filled(c.batch.size(), 0);
  Stage stage;
  stage.params = p;
  stage.inputs = {row_layout(with(c.batch, c.queries, c.depth), random),
                  any_layout(DType::f32, with(c.batch, c.keys, c.depth), random, c.shared),
                  any_layout(DType::f32, with(c.batch, c.keys, c.columns), random, c.shared)};
  std::vector<TestTensor> inputs;
  for (const TensorDesc& desc : stage.inputs) {
    inputs.emplace_back(desc);
    inputs.back().fill([&] { return random.normal(); });
  }
  if (p.mask) {
    const DType type = c.boolean_mask ? DType::boolean : DType::f32;
    Dims repeated = none;
    for (int64_t& axis : repeated) axis = random.chance(40);
    stage.inputs.push_back(
        any_layout(type, with(c.batch, c.queries, c.mask_columns < 0 ? c.keys : c.mask_columns), random, repeated));
    inputs.emplace_back(stage.inputs.back());
    const double hidden = c.boolean_mask ? 0 : -std::numeric_limits<double>::infinity();
    for_each_index(stage.inputs.back().shape, [&](const Dims& at) {
      const bool hide = random.chance(30) || (c.hide_rows && at[at.size() - 2] % 3 == 1);
      store_element(type, hide ? hidden : c.boolean_mask ? 1 : random.normal(), element_at(inputs.back().view(), at));
    });
  }
  if (p.lengths) {
    stage.inputs.push_back({DType::i64, c.batch, row_major(c.batch)});
    inputs.emplace_back(stage.inputs.back());
    inputs.back().fill([&] { return static_cast<double>(random.between(0, c.keys)); });
  }
  stage.outputs.push_back(any_layout(DType::f32, with(c.batch, c.queries, c.columns), random, none));
  if (p.scores != ScoreOutput::none) stage.outputs.push_back(row_layout(with(c.batch, c.queries, c.keys), random));
  std::vector<TensorView> views;
  std::vector<std::byte*> pointers;
  for (TestTensor& input : inputs) views.push_back(input.view()), pointers.push_back(input.origin());
  const auto make_outputs = [&] {
    std::vector<TestTensor> outputs;
    for (const TensorDesc& desc : stage.outputs) outputs.emplace_back(desc);
    return outputs;
  };
  std::vector<TestTensor> want = make_outputs();
  std::vector<TensorView> want_views;
  for (TestTensor& output : want) want_views.push_back(output.view());
  attention_info().reference(p, views, want_views);
  // A score is a sum of `depth` products of about 1 (0.64 on average); its error moves the weights as much.
  const double depth = static_cast<double>(c.depth);
  const double score = 6e-8 * (depth + 8) * (std::abs(p.scale) * depth + 4);
  const double weight = 2 * score + 1e-6 + 1e-7 * std::sqrt(static_cast<double>(c.keys));
  for (const std::string& unit : test_units()) {
    if (c.number >= cases_on(unit, kRandomCases)) continue;
    for (int threads : {1, 2}) {
      auto kernel = make_attention(stage, LoopSchedule{"stream", unit, 0}, Device{}, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      ThreadPool pool(threads);
      std::vector<TestTensor> got = make_outputs();
      std::vector<std::byte*> out;
      for (TestTensor& output : got) out.push_back(output.origin());
      std::vector<double> workspace(static_cast<size_t>((*kernel)->workspace_bytes()) / 8 + 1,
                                    std::numeric_limits<double>::quiet_NaN());
      workspace.back() = 77.0;
      (*kernel)->run({pointers, out, reinterpret_cast<std::byte*>(workspace.data()), &pool});
      ASSERT_EQ(workspace.back(), 77.0) << note << " wrote past its workspace";
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(got[i].sentinels_hold()) << note << " on " << unit << " output " << i;
        const double bound = i == 0 ? 4 * weight : p.scores == ScoreOutput::softmax ? weight : 2 * score + 1e-6;
        for_each_index(stage.outputs[i].shape, [&](const Dims& at) {
          ASSERT_TRUE(close(got[i].at(at), want[i].at(at), bound))
              << note << " on " << unit << " threads " << threads << " output " << i << " queries " << c.queries << " keys "
              << c.keys << " depth " << c.depth << " columns " << c.columns << " at " << at.to_string() << " got "
              << got[i].at(at) << " want " << want[i].at(at) << " bound " << bound << " " << to_text(p);
        });
      }
    }
  }
}

TEST(Attention, RandomStagesMatchTheReference) {
  for (int number = 0; number < kRandomCases; ++number) {
    const auto seed = static_cast<uint64_t>(number + 1);
    TestRandom random(seed);
    Case c;
    c.number = number;
    for (int64_t axes = random.between(1, 3); axes > 0; --axes) {
      c.batch.push_back(random.between(1, 3));
      c.shared.push_back(random.chance(30));
    }
    c.queries = random.chance(20) ? 1 : random.between(1, 70);
    c.keys = random.chance(15) ? 1 : random.between(1, random.chance(20) ? 600 : 90);
    c.depth = random.between(1, 40), c.columns = random.between(1, random.chance(20) ? 150 : 30);
    AttentionParams& p = c.params;
    p.scale = 1 / std::sqrt(static_cast<double>(c.depth));
    if (random.chance(30)) p.softcap = 1.5;
    p.mask = random.chance(50), p.lengths = random.chance(30);
    c.boolean_mask = random.chance(50), c.hide_rows = random.chance(30);
    if (random.chance(25)) c.mask_columns = random.between(1, c.keys);
    if (random.chance(40)) p.right = random.chance(50) ? 0 : random.between(0, 20);
    if (random.chance(20)) p.left = random.between(0, 20);
    p.offset = random.chance(30) ? random.between(0, 10) : 0;
    p.offset_from_length = p.lengths && random.chance(50);
    p.scores = static_cast<ScoreOutput>(random.chance(50) ? 0 : random.between(1, 4));
    check(c, random, "seed " + std::to_string(seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Attention, TypicalFormsMatchTheReference) {
  TestRandom random(3);
  Case c;
  c.batch = {1, 3}, c.shared = {0, 0}, c.queries = c.keys = 197, c.depth = c.columns = 64;
  c.params.scale = 0.125;
  check(c, random, "vision transformer");
  c.params.right = 0;
  check(c, random, "causal");
  c.batch = {2, 2, 4}, c.shared = {0, 0, 1}, c.queries = 1, c.keys = 777;
  check(c, random, "one query, shared keys");
  // More columns than the sums of one tile of rows hold.
  c.batch = {1}, c.shared = {0}, c.params = {}, c.params.scale = 1, c.queries = 7, c.keys = 5, c.depth = 3, c.columns = 2500;
  c.params.scores = ScoreOutput::softmax;
  check(c, random, "wide values");
}

TEST(Attention, LargeScoresDoNotOverflow) {
  // Scores far beyond exp's range, growing from block to block: the sums are scaled down again and again.
  const int64_t keys = 700;
  Stage stage;
  AttentionParams p;
  p.scale = 1;
  stage.params = p;
  stage.inputs = {dense_desc(DType::f32, {1, 1, 1}), dense_desc(DType::f32, {1, keys, 1}),
                  dense_desc(DType::f32, {1, keys, 1})};
  stage.outputs = {dense_desc(DType::f32, {1, 1, 1})};
  std::vector<float> q{1}, k(static_cast<size_t>(keys)), v(k.size());
  for (size_t i = 0; i < k.size(); ++i) k[i] = 10 * static_cast<float>(i), v[i] = static_cast<float>(i);
  for (const std::string& unit : test_units()) {
    auto kernel = make_attention(stage, LoopSchedule{"stream", unit, 0}, Device{}, 0);
    ASSERT_TRUE(kernel.ok());
    float y = 0;
    std::byte* in[] = {reinterpret_cast<std::byte*>(q.data()), reinterpret_cast<std::byte*>(k.data()),
                       reinterpret_cast<std::byte*>(v.data())};
    std::byte* out[] = {reinterpret_cast<std::byte*>(&y)};
    std::vector<double> workspace(static_cast<size_t>((*kernel)->workspace_bytes()) / 8 + 1);
    InlineExecutor executor;
    (*kernel)->run({in, out, reinterpret_cast<std::byte*>(workspace.data()), &executor});
    // The last key weighs 1 / (1 + e^-10 + ...), the one before e^-10 of that.
    EXPECT_NEAR(y, 699 - std::exp(-10.0), 1e-4) << unit;
  }
}

TEST(Attention, OperandsThatItCannotTakeAreRefused) {
  if (test_units().empty()) GTEST_SKIP() << "no vector unit with kernels on this machine";
  Stage stage;
  stage.params = AttentionParams{};
  stage.inputs = {dense_desc(DType::f32, {1, 2, 2}), dense_desc(DType::f32, {1, 2, 2}), dense_desc(DType::f32, {1, 2, 2})};
  stage.outputs = {dense_desc(DType::f32, {1, 2, 2})};
  const LoopSchedule schedule{"stream", test_units()[0], 0};
  EXPECT_EQ(make_attention(stage, LoopSchedule{"rows", test_units()[0], 0}, Device{}, 0).error().reason,
            Reason::backend_lacks_variant);
  stage.inputs[1].dtype = DType::f16;
  EXPECT_EQ(make_attention(stage, schedule, Device{}, 0).error().reason, Reason::type_not_served);
  stage.inputs[1].dtype = DType::f32;
  stage.inputs[0].layout = dense({1, 2, 2}, {0, 2, 1});
  EXPECT_EQ(make_attention(stage, schedule, Device{}, 0).error().reason, Reason::layout_not_served);
}

}  // namespace
}  // namespace sparkle::cpu
