// Gathers over random layouts, with indices from the end and beyond the axis.
#include "backends/cpu/copy/moves_testing.h"

namespace sparkle::cpu::testing {
namespace {

TEST(Gather, RandomShapes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    const int rank = static_cast<int>(pick(random, 1, 4)), index_rank = static_cast<int>(pick(random, 0, 3));
    const int axis = static_cast<int>(pick(random, 0, rank - 1));
    Dims shape, index_shape, result;
    for (int i = 0; i < rank; ++i) shape.push_back(pick(random, 1, 12));
    for (int i = 0; i < index_rank; ++i) index_shape.push_back(pick(random, 1, 6));
    for (int i = 0; i < axis; ++i) result.push_back(shape[i]);
    for (int64_t size : index_shape) result.push_back(size);
    for (int i = axis + 1; i < rank; ++i) result.push_back(shape[i]);
    const DType type = random_type(random), index_type = pick(random, 0, 1) ? DType::i64 : DType::i32;
    const bool gaps = pick(random, 0, 1);
    Memory x(type, shape, random_layout(random, shape, gaps, true));
    Memory indices(index_type, index_shape, random_layout(random, index_shape, gaps, true));
    x.fill(random);
    for_each_index(index_shape, [&](const Dims& at) {
      // A few lie outside of the axis: they are clamped.
      const int64_t index = pick(random, -shape[axis] - 1, shape[axis]);
      if (index_type == DType::i64) {
        *reinterpret_cast<int64_t*>(element_at(indices.view(), at)) = index;
      } else {
        *reinterpret_cast<int32_t*>(element_at(indices.view(), at)) = static_cast<int32_t>(index);
      }
    });
    const TensorDesc y{type, result, random_layout(random, result, gaps, false)};
    SCOPED_TRACE(describe(x.desc()) + " indices " + describe(indices.desc()) + " axis " + std::to_string(axis));
    compare(make_gather, gather_info(), GatherParams{axis}, "slices", {&x, &indices}, y, same_bytes);
  }
}

}  // namespace
}  // namespace sparkle::cpu::testing
