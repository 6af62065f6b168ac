// For tests of streaming kernels: tensors with random layouts (row-major, channels last, permuted, views with gaps,
// broadcasts), poisoned outputs and sentinels between and around the elements.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/test_units.h"
#include "base/system/thread_pool.h"
#include "families/values/element.h"
#include "families/stage.h"
#include "families/loops/walk.h"

namespace sparkle::cpu {

class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  bool chance(int percent) { return between(1, 100) <= percent; }
  double normal() { return std::normal_distribution<double>()(engine_); }

  Dims shape(int rank, int64_t largest) {
    Dims shape;
    for (int i = 0; i < rank; ++i) shape.push_back(chance(15) ? 1 : between(1, largest));
    return shape;
  }
  // `broadcast`: percent of axes that get stride 0.
  Layout layout(const Dims& shape, int broadcast = 0) {
    Dims order = row_major(shape).order;
    if (chance(30)) order = channels_last(shape).order;
    if (chance(25)) std::shuffle(order.begin(), order.end(), engine_);
    Dims padded = shape;
    const bool view = chance(30);
    for (int i = 0; i < shape.size(); ++i)
      if (view && chance(40)) padded[i] += between(1, 3);
    std::vector<bool> repeated;
    for (int i = 0; i < shape.size(); ++i) {
      repeated.push_back(chance(broadcast));
      if (repeated.back()) padded[i] = 1;
    }
    Layout layout = dense(padded, order);
    for (int i = 0; i < shape.size(); ++i)
      if (repeated[static_cast<size_t>(i)]) layout.strides[i] = 0;
    layout.offset = chance(50) ? 0 : between(1, 40);
    return layout;
  }

 private:
  std::mt19937_64 engine_;
};

// Memory of one tensor: poisoned, with a margin on both sides.
class TestTensor {
 public:
  explicit TestTensor(const TensorDesc& desc) : desc_(desc) {
    bytes_.assign(static_cast<size_t>(extent(desc.shape, desc.layout) * size_of(desc.dtype)) + 2 * kMargin, kPoison);
    // Poison floats are NaN: reading what was never written shows.
    if (desc.dtype == DType::f32) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      for (size_t i = 0; i + sizeof nan <= bytes_.size(); i += sizeof nan) std::memcpy(&bytes_[i], &nan, sizeof nan);
    }
    before_ = bytes_;
  }
  TensorView view() { return {bytes_.data() + kMargin, desc_}; }
  std::byte* origin() { return bytes_.data() + kMargin + desc_.layout.offset * size_of(desc_.dtype); }
  const TensorDesc& desc() const { return desc_; }
  template <class F>
  void fill(F&& value) {
    for_each_index(desc_.shape, [&](const Dims& at) { store_element(desc_.dtype, value(), element_at(view(), at)); });
  }
  double at(const Dims& index) { return load_element(desc_.dtype, element_at(view(), index)); }
  // True if no byte outside of the tensor's elements has changed.
  bool sentinels_hold() {
    std::vector<bool> owned(bytes_.size(), false);
    for_each_index(desc_.shape, [&](const Dims& at) {
      const auto begin = element_at(view(), at) - bytes_.data();
      std::fill_n(owned.begin() + begin, size_of(desc_.dtype), true);
    });
    for (size_t i = 0; i < bytes_.size(); ++i)
      if (!owned[i] && bytes_[i] != before_[i]) return false;
    return true;
  }

 private:
  static constexpr size_t kMargin = 256;
  static constexpr std::byte kPoison{0xA5};
  TensorDesc desc_;
  std::vector<std::byte> bytes_, before_;
};

// Both NaN, or the same infinity, or within the bound.
inline bool close(double got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= bound;
}

}  // namespace sparkle::cpu
