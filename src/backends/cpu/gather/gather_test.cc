// Gathers over random layouts, with indices from the end and beyond the axis.
#include "backends/cpu/copy/index_testing.h"
#include "families/gather/gather.h"
#include "families/registry.h"

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

TEST(Gather, Elements) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const Dims shape = random_shape(random, 1, 4, 12);
    Dims picked = shape;
    for (int64_t& size : picked) size = pick(random, 1, size);
    const int axis = static_cast<int>(pick(random, 0, shape.size() - 1));
    picked[axis] = pick(random, 1, 20);
    const DType type = random_type(random), index_type = pick(random, 0, 1) ? DType::i64 : DType::i32;
    const bool gaps = pick(random, 0, 1);
    Memory x(type, shape, random_layout(random, shape, gaps, true));
    Memory indices(index_type, picked, random_layout(random, picked, gaps, true));
    x.fill(random);
    fill_indices(indices, random, shape[axis]);
    SCOPED_TRACE(describe(x.desc()) + " indices " + describe(indices.desc()) + " axis " + std::to_string(axis));
    compare_outputs(make_gather, gather_info(), GatherParams{axis, GatherForm::elements, 0}, "elements", {&x, &indices},
                    {{type, picked, random_layout(random, picked, gaps, false)}});
  }
}

TEST(Gather, Tuples) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const Dims shape = random_shape(random, 1, 4, 6);
    const int batch = static_cast<int>(pick(random, 0, shape.size() - 1));
    const int64_t length = pick(random, 1, shape.size() - batch);
    Dims places, result;
    for (int i = 0; i < batch; ++i) places.push_back(shape[i]);
    for (int64_t more = pick(random, 0, 2); more > 0; --more) places.push_back(pick(random, 1, 9));
    result = places;
    places.push_back(length);
    for (int i = batch + static_cast<int>(length); i < shape.size(); ++i) result.push_back(shape[i]);
    const DType type = random_type(random);
    Memory x(type, shape, row_major(shape)), indices(DType::i64, places, row_major(places));
    x.fill(random);
    for_each_index(places, [&](const Dims& at) {
      const int64_t size = shape[batch + static_cast<int>(at.back())];
      store_element(DType::i64, static_cast<double>(pick(random, -size, size - 1)), element_at(indices.view(), at));
    });
    SCOPED_TRACE(describe(x.desc()) + " indices " + describe(indices.desc()) + " batch axes " + std::to_string(batch));
    compare_outputs(make_gather, gather_info(), GatherParams{0, GatherForm::tuples, batch}, "slices", {&x, &indices},
                    {{type, result, row_major(result)}});
  }
}

// The first index outside of the axis is named with its place.
TEST(Gather, ChecksIndices) {
  const Dims shape{3, 5}, places{2, 2};
  Memory x(DType::f32, shape, row_major(shape));
  HostTensor indices = HostTensor::of(DType::i64, places, std::vector<int64_t>{0, -5, 4, 5});
  const Stage stage{GatherParams{1, GatherForm::elements, 0}, {x.desc(), indices.view().desc}, {}};
  const Status status = check_data(stage, std::vector<TensorView>{x.view(), indices.view()}, "pick");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "Node 'pick': index 5 at 1x1 lies outside of axis 1 of size 5.");
  indices.data<int64_t>()[3] = -1;
  EXPECT_TRUE(check_data(stage, std::vector<TensorView>{x.view(), indices.view()}, "pick").ok());
  const Stage tuples{GatherParams{0, GatherForm::tuples, 0}, stage.inputs, {}};
  indices.data<int64_t>()[2] = 3;
  const Status outside = check_data(tuples, std::vector<TensorView>{x.view(), indices.view()}, "pick");
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error().message, "Node 'pick': index 3 at 1x0 lies outside of axis 0 of size 3.");
}

}  // namespace
}  // namespace sparkle::cpu::testing
