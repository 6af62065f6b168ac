// What the tests of the families that work with places share: data with ties, NaN and zeros of both signs, indices, and a
// kernel beside the reference with any number of outputs.
#pragma once

#include "backends/cpu/copy/moves_testing.h"
#include "families/values/element.h"
#include "families/family.h"
#include "families/values/indices.h"

namespace sparkle::cpu::testing {

inline DType any_number_type(Random& random) {
  constexpr DType types[] = {DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                             DType::u8,  DType::i16, DType::i32, DType::u32, DType::i64,  DType::u64};
  return types[pick(random, 0, 11)];
}

// Few different values, so that equal ones happen.
inline void fill_coarse(Memory& memory, Random& random, bool special) {
  const TensorDesc& desc = memory.desc();
  for_each_index(desc.shape, [&](const Dims& at) {
    double value = static_cast<double>(pick(random, -4, 4));
    if (special && is_float(desc.dtype)) {
      const int64_t kind = pick(random, 0, 19);
      if (kind == 0) value = std::nan("");
      if (kind == 1) value = -0.0;
      if (kind == 2) value = HUGE_VAL;
      if (kind == 3) value = -HUGE_VAL;
    }
    store_element(desc.dtype, value, element_at(memory.view(), at));
  });
}

// Indices within an axis, from both ends.
inline void fill_indices(Memory& memory, Random& random, int64_t size) {
  for_each_index(memory.desc().shape, [&](const Dims& at) {
    store_element(memory.desc().dtype, static_cast<double>(pick(random, -size, size - 1)), element_at(memory.view(), at));
  });
}

inline Dims random_shape(Random& random, int least, int most, int64_t largest) {
  Dims shape;
  for (int64_t rank = pick(random, least, most); shape.size() < rank;) shape.push_back(pick(random, 1, largest));
  return shape;
}

// Kernel and reference on outputs poisoned alike: all bytes, guards included, are the same.
template <class Make>
void compare_outputs(Make make, const FamilyInfo& family, const StageParams& params, std::string_view variant,
                     const std::vector<const Memory*>& inputs, const std::vector<TensorDesc>& outputs) {
  Stage stage{params, {}, outputs};
  std::vector<TensorView> views;
  std::vector<std::byte*> origins;
  for (const Memory* input : inputs) {
    stage.inputs.push_back(input->desc());
    views.push_back(input->view());
    origins.push_back(input->origin());
  }
  std::vector<Memory> expected, actual;
  std::vector<TensorView> expected_views;
  for (const TensorDesc& y : outputs) {
    expected.emplace_back(y.dtype, y.shape, y.layout);
    expected.back().fill(0xff);
    expected_views.push_back(expected.back().view());
  }
  family.reference(params, views, expected_views);
  for (int width : {1, 3}) {
    SCOPED_TRACE(std::to_string(width) + " threads");
    const std::string unit = units().empty() ? "" : units().back();
    const LoopSchedule schedule{std::string(variant), unit, width == 1 ? 0 : 16};
    auto kernel = make(stage, schedule, device_with(unit, int64_t{1} << 30), 0u);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    actual.clear();
    std::vector<std::byte*> places;
    for (const TensorDesc& y : outputs) actual.emplace_back(y.dtype, y.shape, y.layout);
    for (Memory& memory : actual) {
      memory.fill(0xff);
      places.push_back(memory.origin());
    }
    Threads executor(width);
    std::vector<int64_t> workspace(static_cast<size_t>(((*kernel)->workspace_bytes() + 7) / 8));
    (*kernel)->run({origins, places, reinterpret_cast<std::byte*>(workspace.data()), &executor});
    for (size_t i = 0; i < outputs.size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      same_bytes(expected[i].bytes(), actual[i].bytes());
    }
  }
}

}  // namespace sparkle::cpu::testing
