// Tiny ONNX files, each of which breaks one rule of `check` - or none - on a device that is not here.
#include "check/check.h"

#include <gtest/gtest.h>

#include <functional>

#include "check/rules.h"
#include "device/known/known_devices.h"
#include "networks/writer.h"
#include "onnx/reader.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

// A graph builder with weights of any type.
struct Tiny : GraphBuilder {
  TensorId constant(DType type, const Dims& shape, unsigned value = 0x11) {
    HostTensor t = HostTensor::zeros(type, shape);
    // Bytes that are a number in every type.
    for (int64_t i = 0; i < t.size_bytes(); ++i) t.bytes[i] = static_cast<std::byte>((value + i) & 0x3f);
    return graph.add_constant("c" + std::to_string(graph.tensors.size()), t);
  }
  TensorId scalar(float value) { return floats({}, {value}); }
  TensorId byte(DType type, int value) {
    return graph.add_constant("z" + std::to_string(graph.tensors.size()),
                              HostTensor::of(type, {}, std::vector<int8_t>{static_cast<int8_t>(value)}));
  }
  TensorId conv(TensorId x, DType type, int64_t c, int64_t k, int64_t r, int64_t groups = 1, int64_t stride = 1) {
    ConvOp op;
    op.kernel = {r, r}, op.strides = {stride, stride}, op.groups = groups;
    op.pads_begin = op.pads_end = {r / 2, r / 2};
    return this->op("Conv", op, {x, constant(type, {k, c / groups, r, r})});
  }
  TensorId matmul(TensorId x, DType type, int64_t depth, int64_t columns) {
    return op("MatMul", MatMulOp{}, {x, constant(type, {depth, columns})});
  }
  TensorId quantize(TensorId x, DType to = DType::u8) {
    QuantizeOp q;
    q.to = to;
    return op("QuantizeLinear", q, {x, scalar(0.05f), byte(to, 0)});
  }
  TensorId dequantize(TensorId x, DType from = DType::u8, int zero = 0) {
    return op("DequantizeLinear", DequantizeOp{}, {x, scalar(0.05f), byte(from, zero)});
  }
  TensorId cast(TensorId x, DType to) {
    CastOp c;
    c.to = to;
    return op("Cast", c, {x});
  }
  // DequantizeLinear on both sides, QuantizeLinear behind: an integer convolution.
  TensorId integer_conv(TensorId x, int64_t c, int64_t k, int64_t r, DType weights = DType::i8, int zero = 0) {
    ConvOp op;
    op.kernel = {r, r}, op.strides = {1, 1};
    op.pads_begin = op.pads_end = {r / 2, r / 2};
    const TensorId w = dequantize(constant(weights, {k, c, r, r}), weights, zero);
    return quantize(this->op("Conv", op, {dequantize(x), w}));
  }
};

using Build = std::function<void(Tiny&)>;

Build conv(DType type, int64_t n, int64_t c, int64_t size, int64_t k, int64_t r, int64_t groups = 1, int64_t stride = 1) {
  return [=](Tiny& t) { t.done(t.conv(t.input({n, c, size, size}, type), type, c, k, r, groups, stride)); };
}
Build gemm(DType type, int64_t rows, int64_t depth, int64_t columns) {
  return [=](Tiny& t) { t.done(t.matmul(t.input({rows, depth}, type), type, depth, columns)); };
}
Build heads(DType type, int64_t size) {
  return [=](Tiny& t) {
    const Dims shape{16, 16, 512, size};
    const TensorId q = t.input(shape, type), k = t.input(shape, type), v = t.input(shape, type);
    const TensorId across = t.op("Transpose", TransposeOp{{0, 1, 3, 2}}, {k});
    const TensorId scores = t.op("Softmax", SoftmaxOp{}, {t.op("MatMul", MatMulOp{}, {q, across})});
    t.done(t.op("MatMul", MatMulOp{}, {scores, v}));
  };
}
Build integer_conv(int64_t c, int64_t k, DType weights = DType::i8, int zero = 0) {
  return [=](Tiny& t) { t.done(t.integer_conv(t.input({64, c, 28, 28}, DType::u8), c, k, 3, weights, zero)); };
}

struct Case {
  const char* name;
  const char* target;
  Build build;
  std::vector<Reason> codes;  // exactly these; none: a clean model
  int64_t open = 1;           // what open sizes become
};

constexpr DType kF16 = DType::f16, kBf16 = DType::bf16, kF32 = DType::f32, kF64 = DType::f64;

// Sizes are such that nothing else is wrong: enough pixels for the cores, enough arithmetic for the bytes.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      // -- clean
      {"clean fp16 convolution", "h200", conv(kF16, 64, 128, 28, 128, 3), {}},
      {"clean bf16 convolution", "a100", conv(kBf16, 64, 128, 28, 128, 3), {}},
      {"clean fp16 product", "a100", gemm(kF16, 8192, 512, 512), {}},
      {"clean heads of 64", "h200", heads(kF16, 64), {}},
      {"clean heads of 32", "a40", heads(kBf16, 32), {}},
      // Kernels of attention fill heads up to tiles of 32, 48 and 96 by themselves.
      {"clean heads of 24", "h200", heads(kF16, 24), {}},
      {"clean heads of 48", "h200", heads(kF16, 48), {}},
      {"clean heads of 80 in bf16", "a100", heads(kBf16, 80), {}},
      // Columns are filled up too, and what is read of the L2 takes longer than storing them one by one.
      {"130 filters of bf16", "rtx3090", conv(kBf16, 64, 128, 28, 130, 3), {}},
      // Pixels of eight channels would be read of the L2 for each tap: 49 times 8 beside 147 elements.
      {"a stem of 3 channels", "h200", conv(kF16, 32, 3, 224, 64, 7, 1, 2), {}},
      {"clean integer convolution", "rtx3090", integer_conv(128, 128), {}},
      {"clean fp32 convolution on AVX-512", "avx512", conv(kF32, 1, 64, 56, 64, 3), {}},
      {"clean fp32 convolution on AVX2", "avx2", conv(kF32, 1, 67, 56, 129, 3), {}},
      {"clean fp32 convolution on NEON", "neon", conv(kF32, 64, 64, 56, 64, 3), {}},
      {"clean fp32 convolution without matrix units", "rdna2", conv(kF32, 16, 128, 56, 128, 3), {}},
      // -- sizes
      {"67 input channels", "h200", conv(kF16, 64, 67, 28, 128, 3), {Reason::channels_unaligned}},
      {"129 filters", "h200", conv(kF16, 64, 128, 28, 129, 3), {Reason::channels_unaligned}},
      {"67 to 129 channels", "a100", conv(kF16, 64, 67, 28, 129, 3), {Reason::channels_unaligned}},
      {"12 input channels", "h200", conv(kF16, 64, 12, 56, 64, 3), {Reason::channels_unaligned}},
      {"100 channels of bf16", "h200", conv(kBf16, 64, 100, 28, 128, 3), {Reason::channels_unaligned}},
      {"132 input channels of bf16", "a100", conv(kBf16, 64, 132, 28, 128, 3), {Reason::channels_unaligned}},
      {"24 channels of bytes", "h200", integer_conv(24 * 5, 128), {Reason::channels_unaligned}},
      {"50 filters after pruning", "a4500", conv(kF16, 64, 128, 28, 50, 3), {Reason::channels_unaligned}},
      {"513 features in", "h200", gemm(kF16, 8192, 513, 512), {Reason::features_unaligned}},
      {"251 features out", "h200", gemm(kF16, 8192, 512, 251), {Reason::features_unaligned}},
      {"129 to 251 features", "a100", gemm(kF16, 8192, 129, 251), {Reason::features_unaligned}},
      {"588 features of bf16", "h200", gemm(kBf16, 8192, 588, 512), {Reason::features_unaligned}},
      {"a product of two inputs, depth 100",
       "a100",
       [](Tiny& t) { t.done(t.op("MatMul", MatMulOp{}, {t.input({32, 512, 100}, kF16), t.input({32, 100, 512}, kF16)})); },
       {Reason::features_unaligned}},
      {"heads of 12", "h200", heads(kF16, 12), {Reason::head_unaligned}},
      {"heads of 20", "rtx3090", heads(kF16, 20), {Reason::head_unaligned}},
      {"heads of 44", "h200", heads(kF16, 44), {Reason::head_unaligned}},
      {"heads of 84 in bf16", "a100", heads(kBf16, 84), {Reason::head_unaligned}},
      {"32 groups of 4", "h200", conv(kF16, 64, 128, 28, 128, 3, 32), {Reason::grouped_channels}},
      {"16 groups of 12", "a100", conv(kF16, 64, 192, 28, 192, 3, 16), {Reason::grouped_channels}},
      {"a filter per channel", "h200", conv(kF16, 64, 128, 56, 128, 3, 128), {Reason::depthwise}},
      {"a filter per channel on RDNA 3", "rdna3", conv(kF16, 64, 128, 56, 128, 3, 128), {Reason::depthwise}},
      {"a filter of 13 x 13", "h200", conv(kF16, 16, 32, 56, 32, 13), {Reason::large_kernel}},
      {"a filter of 11 x 11", "a100", conv(kF16, 16, 64, 56, 64, 11), {Reason::large_kernel}},
      // -- types
      {"an fp32 convolution", "h200", conv(kF32, 64, 128, 28, 128, 3), {Reason::wide_type}},
      {"an fp32 product", "a100", gemm(kF32, 8192, 512, 512), {Reason::wide_type}},
      {"an fp32 convolution on RDNA 3", "rdna3", conv(kF32, 64, 128, 28, 128, 3), {Reason::wide_type}},
      {"an fp64 convolution", "h200", conv(kF64, 64, 128, 28, 128, 3), {Reason::double_type}},
      {"an fp64 product", "rtx3090", gemm(kF64, 8192, 512, 512), {Reason::double_type}},
      {"fp16 on AVX2", "avx2", conv(kF16, 1, 64, 56, 64, 3), {Reason::type_without_unit}},
      {"fp16 on AVX-512", "avx512", gemm(kF16, 512, 512, 512), {Reason::type_without_unit}},
      {"bf16 on RDNA 2", "rdna2", conv(kBf16, 16, 128, 56, 128, 3), {Reason::type_without_unit}},
      {"a Cast in front of a convolution",
       "avx512",
       [](Tiny& t) { t.done(t.conv(t.cast(t.input({1, 64, 56, 56}, kF16), kF32), kF32, 64, 64, 3)); },
       {Reason::mixed_types}},
      {"a Cast in front of a product",
       "h200",
       [](Tiny& t) { t.done(t.matmul(t.cast(t.input({8192, 512}, kF16), kF32), kF32, 512, 512)); },
       {Reason::mixed_types}},
      {"a convolution in floats between bytes",
       "h200",
       [](Tiny& t) { t.done(t.quantize(t.conv(t.dequantize(t.input({64, 128, 28, 28}, DType::u8)), kF32, 128, 128, 3))); },
       {Reason::float_island}},
      {"a Softmax in floats between bytes",
       "avx512",
       [](Tiny& t) { t.done(t.quantize(t.op("Softmax", SoftmaxOp{}, {t.dequantize(t.input({64, 1024}, DType::u8))}))); },
       {Reason::float_island}},
      {"weights around 128", "h200", integer_conv(128, 128, DType::u8, -128), {Reason::weights_asymmetric}},
      {"weights around 3", "a100", integer_conv(128, 128, DType::i8, 3), {Reason::weights_asymmetric}},
      // -- what the plan came to
      {"filters that are an input",
       "h200",
       [](Tiny& t) {
         ConvOp op;
         op.kernel = {3, 3}, op.pads_begin = op.pads_end = {1, 1};
         t.done(t.op("Conv", op, {t.input({64, 128, 28, 28}, kF16), t.input({128, 128, 3, 3}, kF16)}));
       },
       {Reason::weights_not_constant}},
      {"channels and rows exchanged between layers",
       "h200",
       [](Tiny& t) {
         const TensorId y = t.conv(t.input({64, 64, 64, 64}, kF16), kF16, 64, 64, 3);
         t.done(t.conv(t.op("Transpose", TransposeOp{{0, 2, 1, 3}}, {y}), kF16, 64, 64, 3));
       },
       {Reason::layout_change}},
      {"maps flattened in front of a product",
       "a100",
       [](Tiny& t) {
         ReshapeOp flat;
         flat.form = ReshapeOp::Form::flatten, flat.target = {1};
         const TensorId y = t.conv(t.input({8192, 64, 4, 4}, kF16), kF16, 64, 64, 3);
         t.done(t.matmul(t.op("Flatten", flat, {y}), kF16, 1024, 512));
       },
       {Reason::layout_change}},
      {"one picture of 14 x 14", "h200", conv(kF16, 1, 256, 14, 256, 3), {Reason::device_not_filled}},
      {"a product of 64 rows", "a100", gemm(kF16, 64, 512, 512), {Reason::device_not_filled}},
      {"one row on a GPU", "h200", gemm(kF16, 1, 1024, 1024), {Reason::single_row}},
      {"one row on a CPU", "avx512", gemm(kF32, 1, 1024, 512), {Reason::single_row}},
      {"64 to 64 channels by 1 x 1", "h200", conv(kF16, 64, 64, 56, 64, 1), {Reason::memory_bound}},
      {"a product of depth 64", "a100", gemm(kF16, 1 << 20, 64, 64), {Reason::memory_bound}},
      {"small layers one behind the other",
       "h200",
       [](Tiny& t) {
         TensorId x = t.input({1, 16, 8, 8}, kF16);
         for (int i = 0; i < 4; ++i) x = t.conv(x, kF16, 16, 16, 3);
         t.done(x);
       },
       {Reason::launch_bound}},
      {"a batch that is left open",
       "h200",
       [](Tiny& t) { t.done(t.conv(t.input({-1, 128, 28, 28}, kF16), kF16, 128, 128, 3)); },
       {Reason::dynamic_shape},
       64},
      {"boxes that the data counts",
       "avx512",
       [](Tiny& t) {
         const TensorId boxes = t.input({1, 256, 4}), scores = t.input({1, 8, 256});
         t.done(t.op("NonMaxSuppression", NonMaxSuppressionOp{},
                     {boxes, scores, t.ints({100}), t.floats({1}, {0.5f}), t.floats({1}, {0.1f})}));
       },
       {Reason::data_shape}},
      {"doubles on a GPU without them",
       "rdna2",
       [](Tiny& t) { t.done(t.op("Softmax", SoftmaxOp{}, {t.input({512, 512}, kF64)})); },
       {Reason::no_device_kernel}},
      {"a normalisation in front of a padded convolution",
       "h200",
       [](Tiny& t) {
         const TensorId x = t.input({64, 128, 28, 28}, kF16);
         std::vector<TensorId> in{x};
         for (int i = 0; i < 4; ++i) in.push_back(t.constant(kF16, {128}, 0x30));
         t.done(t.conv(t.op("BatchNormalization", BatchNormalizationOp{}, in), kF16, 128, 128, 3));
       },
       {Reason::batchnorm_apart}},
      {"a result that two read",
       "h200",
       [](Tiny& t) {
         const TensorId y = t.conv(t.input({64, 128, 28, 28}, kF16), kF16, 128, 128, 3);
         t.graph.outputs = {y, t.pointwise(PointwiseOp::tanh, {y})};
       },
       {Reason::unfused_pointwise}},
      {"scores between products",
       "h200",
       [](Tiny& t) {
         const TensorId q = t.input({16, 1024, 1024}, kF16), k = t.input({16, 1024, 1024}, kF16),
                        v = t.input({16, 1024, 1024}, kF16);
         const TensorId scores = t.op("Softmax", SoftmaxOp{1, false, false}, {t.op("MatMul", MatMulOp{}, {q, k})});
         t.done(t.op("MatMul", MatMulOp{}, {scores, v}));
       },
       {Reason::attention_unfused}},
      {"maps larger than the memory", "rtx3080", conv(kF16, 8192, 128, 112, 128, 3), {Reason::does_not_fit}},
  };
  return all;
}

// Written as a file, read as the command reads it.
Result<Graph> read_back(const Case& c, CheckOptions& options) {
  Tiny tiny;
  tiny.graph.name = c.name;
  c.build(tiny);
  SPARKLE_TRY(bytes, onnx_bytes(tiny.graph));
  EXPECT_LT(bytes.size(), 2'500'000u) << c.name << " is no tiny file";
  SPARKLE_TRY(graph, read_onnx_bytes(std::as_bytes(std::span(bytes)), "", c.name));
  options.open = open_inputs(graph);
  return testing::ready(std::move(graph), c.open);
}

std::string listed(const Verdict& v) {
  std::string text;
  for (const Finding& f : v.findings) text += "  " + std::string(code_of(f.code)) + ": " + f.rule + " | " + f.fix + "\n";
  for (const CheckRow& row : v.rows)
    text += "  " + row.name + " " + row.what + " " + row.types + " " + row.kind + " " + row.unit + " " + row.kernel + " " +
            in_time(row.seconds) + " -> " + in_time(row.then_seconds) + " " + row.bound + "\n";
  return text;
}

class TinyModels : public ::testing::TestWithParam<size_t> {};

TEST_P(TinyModels, BreakTheRulesThatTheyAreMadeFor) {
  const Case& c = cases()[GetParam()];
  SCOPED_TRACE(c.name);
  const auto device = known_device(c.target);
  ASSERT_TRUE(device.ok()) << device.error().message;
  CheckOptions options;
  const auto graph = read_back(c, options);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto verdict = check_model(*graph, *device, options);
  ASSERT_TRUE(verdict.ok()) << verdict.error().message;
  std::vector<std::string_view> codes, wanted;
  for (const Finding& f : verdict->findings) codes.push_back(code_of(f.code));
  for (const Reason code : c.codes) wanted.push_back(code_of(code));
  EXPECT_EQ(codes, wanted) << listed(*verdict);
  for (const Finding& f : verdict->findings) {
    EXPECT_FALSE(f.rule.empty());
    EXPECT_FALSE(f.fix.empty());
    EXPECT_LE(f.then_seconds, f.now_seconds);
  }
  for (const CheckRow& row : verdict->rows) EXPECT_LE(row.then_seconds, row.seconds) << row.name;
  EXPECT_GT(verdict->seconds, 0);
  EXPECT_LE(verdict->then_seconds, verdict->seconds);
}

std::string name_of_case(const ::testing::TestParamInfo<size_t>& info) {
  std::string name;
  for (const char c : std::string(cases()[info.param].name) + " " + cases()[info.param].target)
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, TinyModels, ::testing::Range(size_t{0}, cases().size()), name_of_case);

// What sizes cost is said without `fix`; that they are mended is said where `fix` mends them.
TEST(Check, CountsTheSizesThatFixPads) {
  const auto device = known_device("h200");
  ASSERT_TRUE(device.ok());
  const Case* odd = nullptr;
  for (const Case& c : cases())
    if (c.name == std::string("67 to 129 channels")) odd = &c;
  ASSERT_NE(odd, nullptr);
  CheckOptions options;
  const auto graph = read_back(*odd, options);
  ASSERT_TRUE(graph.ok());
  const auto alone = check_model(*graph, *device, options);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->speedup(), 1);
  EXPECT_FALSE(alone->findings[0].by_fix);

  const std::string node = graph->ops.back().name;
  PaddedLayer layer{67, 72, 129, 136, ""};
  options.paddings = [&](const Device&, Precision precision) {
    EXPECT_EQ(precision, Precision::fp16);
    return Paddings{{{node, layer}}, 0};
  };
  const auto padded = check_model(*graph, *device, options);
  ASSERT_TRUE(padded.ok());
  EXPECT_TRUE(padded->findings[0].by_fix);
  EXPECT_NE(padded->findings[0].fix.find("72 input channels and 136 filters"), std::string::npos) << padded->findings[0].fix;
  EXPECT_GT(padded->speedup(), 1.5);

  layer = {67, 67, 129, 129, "above the limit"};
  const auto refused = check_model(*graph, *device, options);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->speedup(), 1);
  EXPECT_NE(refused->findings[0].fix.find("above the limit"), std::string::npos) << refused->findings[0].fix;
}

// What a user padded on an H100, where it brought 3.5 times with other kernels: rows of 588 elements of bf16 are gathered, of
// 592 copied by the engine or asynchronously. And columns that are no multiple cost their stores, less.
TEST(Check, OddRowsCostWhatGatheringThemTakes) {
  const auto seconds = [](const char* name, int64_t depth, int64_t columns) {
    Problem p;
    p.kind = ProblemKind::matmul, p.dtype = "bf16";
    p.rows = 8192, p.depth = depth, p.columns = columns;
    const auto e = estimate(p, Precision::bf16, *known_device(name));
    EXPECT_TRUE(e) << name;
    return e ? std::pair(e->cost.seconds, e->variant) : std::pair(0.0, std::string());
  };
  for (const char* name : {"h200", "a100"}) {
    const auto [odd, gathered] = seconds(name, 588, 512);
    const auto [whole, copied] = seconds(name, 592, 512);
    EXPECT_EQ(gathered, "mma_elements") << name;
    EXPECT_TRUE(copied == "mma" || copied.starts_with("wgmma")) << name << ": " << copied;
    EXPECT_GT(odd, 2 * whole) << name;
    EXPECT_LT(odd, 4 * whole) << name;
    EXPECT_GT(seconds(name, 512, 588).first, 1.1 * seconds(name, 512, 592).first) << name;
  }
}

TEST(Check, EachRuleIsBrokenBySomeFile) {
  std::vector<Reason> codes;
  for (const Case& c : cases()) codes.insert(codes.end(), c.codes.begin(), c.codes.end());
  for (const Rule& rule : rules())
    EXPECT_NE(std::find(codes.begin(), codes.end(), rule.code), codes.end()) << code_of(rule.code);
  // And each finding of the vocabulary, those on the model as a whole with them.
  for (int code = static_cast<int>(Reason::channels_unaligned); code <= static_cast<int>(Reason::does_not_fit); ++code)
    EXPECT_NE(std::find(codes.begin(), codes.end(), static_cast<Reason>(code)), codes.end())
        << code_of(static_cast<Reason>(code));
  const auto broken = std::count_if(cases().begin(), cases().end(), [](const Case& c) { return c.codes.size() == 1; });
  EXPECT_GE(broken, 50);
}

}  // namespace
}  // namespace sparkle
