// Scatters over random shapes, types and reductions, many updates of one place among them, byte for byte.
#include "backends/cpu/copy/index_testing.h"
#include "families/family.h"
#include "families/scatter/scatter.h"

namespace sparkle::cpu::testing {
namespace {

ScatterReduction random_reduction(Random& random) { return static_cast<ScatterReduction>(pick(random, 0, 4)); }

// Sums and products of NaN leave it open which NaN they are; the others hand one of two elements on.
bool hands_on(ScatterReduction reduction) { return reduction != ScatterReduction::add && reduction != ScatterReduction::mul; }

TEST(Scatter, Elements) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const Dims shape = random_shape(random, 1, 4, 9);
    Dims picked = shape;
    for (int64_t& size : picked) size = pick(random, 1, size);
    const int axis = static_cast<int>(pick(random, 0, shape.size() - 1));
    picked[axis] = pick(random, 1, 12);
    const DType type = any_number_type(random), index_type = pick(random, 0, 1) ? DType::i64 : DType::i32;
    Memory data(type, shape, row_major(shape)), indices(index_type, picked, row_major(picked));
    Memory updates(type, picked, row_major(picked));
    const ScatterParams params{ScatterForm::elements, random_reduction(random), axis};
    fill_coarse(data, random, hands_on(params.reduction));
    fill_coarse(updates, random, hands_on(params.reduction));
    fill_indices(indices, random, shape[axis]);
    SCOPED_TRACE(describe(data.desc()) + " updates " + describe(updates.desc()) + " " + to_text(params));
    compare_outputs(make_scatter, scatter_info(), params, "lines", {&data, &indices, &updates}, {data.desc()});
  }
}

TEST(Scatter, Tuples) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const Dims shape = random_shape(random, 1, 4, 6);
    const int64_t length = pick(random, 1, shape.size());
    Dims places, shape_of_updates;
    for (int64_t more = pick(random, 0, 2); more > 0; --more) places.push_back(pick(random, 1, 7));
    shape_of_updates = places;
    places.push_back(length);
    for (int i = static_cast<int>(length); i < shape.size(); ++i) shape_of_updates.push_back(shape[i]);
    const DType type = any_number_type(random);
    Memory data(type, shape, row_major(shape)), indices(DType::i64, places, row_major(places));
    Memory updates(type, shape_of_updates, row_major(shape_of_updates));
    const ScatterParams params{ScatterForm::tuples, random_reduction(random), 0};
    fill_coarse(data, random, hands_on(params.reduction));
    fill_coarse(updates, random, hands_on(params.reduction));
    for_each_index(places, [&](const Dims& at) {
      const int64_t size = shape[static_cast<int>(at.back())];
      store_element(DType::i64, static_cast<double>(pick(random, -size, size - 1)), element_at(indices.view(), at));
    });
    SCOPED_TRACE(describe(data.desc()) + " indices " + describe(indices.desc()) + " " + to_text(params));
    compare_outputs(make_scatter, scatter_info(), params, "lines", {&data, &indices, &updates}, {data.desc()});
  }
}

// Indices of any type, some of them outside of the axis: those set nothing.
TEST(Scatter, OneHot) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const Dims shape = random_shape(random, 0, 3, 7);
    const int axis = static_cast<int>(pick(random, 0, shape.size()));
    Dims result = shape;
    result.insert(axis, pick(random, 1, 5));
    const DType type = random_type(random);
    Memory indices(any_number_type(random), shape, row_major(shape)), values(type, {2}, row_major({2}));
    fill_coarse(indices, random, true);
    values.fill(random);
    const ScatterParams params{ScatterForm::one_hot, ScatterReduction::none, axis};
    SCOPED_TRACE(describe(indices.desc()) + " -> " + result.to_string() + " " + to_text(params));
    compare_outputs(make_scatter, scatter_info(), params, "lines", {&indices, &values}, {{type, result, row_major(result)}});
  }
}

// 64-bit integers are added exactly, beyond what a double holds.
TEST(Scatter, WideIntegers) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const HostTensor data = HostTensor::of(DType::i64, {2}, std::vector<int64_t>{large, 5});
  const HostTensor indices = HostTensor::of(DType::i64, {1}, std::vector<int64_t>{0});
  const HostTensor updates = HostTensor::of(DType::i64, {1}, std::vector<int64_t>{2});
  HostTensor y = HostTensor::zeros(DType::i64, {2});
  const ScatterParams params{ScatterForm::elements, ScatterReduction::add, 0};
  const TensorView out = y.view();
  scatter_info().reference(params, std::vector<TensorView>{data.view(), indices.view(), updates.view()}, {&out, 1});
  EXPECT_EQ(y.data<int64_t>()[0], large + 2);
  EXPECT_EQ(y.data<int64_t>()[1], 5);
}

}  // namespace
}  // namespace sparkle::cpu::testing
