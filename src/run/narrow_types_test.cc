// Cast between every pair of element types and the quantised forms of the narrow ones: the CPU backend against the reference
// backend, byte for byte, on every code and on random values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "families/values/element.h"
#include "graph/test_graphs.h"
#include "run/session.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

// Every code of the types of up to 8 bits; else random values around the ends of the narrow types, some far beyond.
HostTensor values_of(DType type, const Dims& shape, bool finite, std::mt19937& random) {
  HostTensor t = HostTensor::zeros(type, shape);
  std::uniform_real_distribution<double> exponent(-30, 20);
  for (int64_t i = 0; i < t.elements(); ++i) {
    std::byte* at = t.bytes.get() + i * size_of(type);
    if (size_of(type) == 1 && type != DType::boolean) {
      *at = static_cast<std::byte>(is_narrow(type) ? static_cast<unsigned>(i) & ((1u << stored_bits(type)) - 1)
                                                   : static_cast<unsigned>(i));
    } else if (is_float(type)) {
      constexpr double kSpecial[] = {0, -0.0, INFINITY, -INFINITY, NAN, 448, 480, 57344, 61440, 6, 7, 240, 0x1p-100};
      const double v = random() % 8 == 0 ? kSpecial[random() % std::size(kSpecial)] : std::exp2(exponent(random));
      store_element(type, random() % 2 ? -v : v, at);
    } else {
      store_element(type, static_cast<double>(static_cast<int>(random() % 200000) - 100000), at);
    }
    // 2^-127 is a denormal float, which kernels take for zero.
    if (type == DType::f8e8m0 && *at == std::byte{0}) *at = std::byte{1};
    if (finite && !std::isfinite(load_element(type, at))) store_element(type, 1, at);
  }
  return t;
}

// On both backends; bytes are the same, or both are NaN.
void expect_same(const Graph& graph, const std::vector<HostTensor>& inputs, const std::string& what) {
  static const auto pool = std::make_shared<ThreadPool>(2);
  std::vector<HostTensor> results;
  for (const auto& backend : {cpu::make_cpu_backend(probe_cpu(), pool), make_reference_backend()}) {
    auto session = Session::open(graph, backend, {});
    ASSERT_TRUE(session.ok()) << what << ": " << session.error().message;
    auto got = (*session)->run(inputs);
    ASSERT_TRUE(got.ok()) << what << ": " << got.error().message;
    results.push_back((*got)[0]);
  }
  const HostTensor &a = results[0], &b = results[1];
  ASSERT_EQ(a.dtype, b.dtype) << what;
  const int64_t size = size_of(a.dtype);
  for (int64_t i = 0; i < a.elements(); ++i) {
    const std::byte *x = a.bytes.get() + i * size, *y = b.bytes.get() + i * size;
    const double have = load_element(a.dtype, x), want = load_element(b.dtype, y);
    ASSERT_TRUE(std::memcmp(x, y, static_cast<size_t>(size)) == 0 || (std::isnan(have) && std::isnan(want)))
        << what << ", element " << i << ": " << have << ", expected " << want;
  }
}

TEST(NarrowTypes, EveryCast) {
  std::mt19937 random(5);
  for (int from = 0; from < kDTypes; ++from)
    for (int to = 0; to < kDTypes; ++to) {
      const DType x_type = static_cast<DType>(from), y_type = static_cast<DType>(to);
      if (!is_narrow(x_type) && !is_narrow(y_type)) continue;
      for (const bool saturate : {true, false}) {
        if (!saturate && !is_narrow_float(y_type)) continue;
        const CastOp cast{y_type, saturate, saturate ? PowerRounding::up : PowerRounding::nearest};
        GraphBuilder b;
        const TensorId x = b.input({4, 128}, x_type);
        expect_same(
            b.done(b.op("Cast", cast, {x})), {values_of(x_type, {4, 128}, false, random)},
            std::string(name_of(x_type)) + " to " + std::string(name_of(y_type)) + (saturate ? "" : ", not saturating"));
      }
    }
}

TEST(NarrowTypes, MovesKeepBytes) {
  std::mt19937 random(6);
  for (int t = static_cast<int>(DType::f8e4m3fn); t < kDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    GraphBuilder b;
    const TensorId x = b.input({4, 8, 8}, type), y = b.input({4, 8, 8}, type);
    const TensorId both =
        b.op("Concat", ConcatOp{1},
             {b.op("Transpose", TransposeOp{{1, 2, 0}}, {x}), b.op("Transpose", TransposeOp{{1, 2, 0}}, {y})});
    const TensorId padded = b.op("Pad", PadOp{}, {both, b.ints({0, 1, 2, 0, 0, 1})});
    const TensorId rows = b.op("Gather", GatherOp{1}, {padded, b.ints({3, 0, 7, 7})});
    expect_same(b.done(rows), {values_of(type, {4, 8, 8}, false, random), values_of(type, {4, 8, 8}, false, random)},
                std::string(name_of(type)));
  }
}

TEST(NarrowTypes, Quantised) {
  std::mt19937 random(7);
  for (int t = static_cast<int>(DType::f8e4m3fn); t < kDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    for (const DType scale_type : {DType::f32, DType::f16, DType::f8e8m0})
      for (const int64_t block : {0, 4}) {
        if (type == DType::f8e8m0) continue;
        const Dims blocks = block > 0 ? Dims{32, 4} : Dims{16};
        const HostTensor scales = HostTensor::zeros(scale_type, blocks);
        for (int64_t i = 0; i < scales.elements(); ++i)
          store_element(scale_type, std::exp2(static_cast<double>(random() % 5) - 2),
                        scales.bytes.get() + i * size_of(scale_type));
        const std::string what =
            std::string(name_of(type)) + " by " + std::string(name_of(scale_type)) + (block > 0 ? ", blocks" : "");
        GraphBuilder from, to;
        const TensorId x = from.input({32, 16}, type);
        const DequantizeOp dequantize{1, block, scale_type == DType::f16 ? DType::f16 : DType::f32};
        expect_same(from.done(from.op("DequantizeLinear", dequantize, {x, from.graph.add_constant("s", scales)})),
                    {values_of(type, {32, 16}, true, random)}, what);
        const TensorId y = to.input({32, 16});
        const QuantizeOp quantize{1, block, type, block == 0};
        expect_same(to.done(to.op("QuantizeLinear", quantize, {y, to.graph.add_constant("s", scales)})),
                    {values_of(DType::f32, {32, 16}, true, random)}, what);
      }
  }
}

}  // namespace
}  // namespace sparkle
