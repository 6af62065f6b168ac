// View algebra against brute force: each operation must name, element by element, the places that the definition names.
#include "plan/lower/view.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sparkle {
namespace {

int64_t pick(std::mt19937_64& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

// Places of all elements in logical order.
std::vector<int64_t> places(const TensorDesc& desc) {
  std::vector<int64_t> list;
  Dims at = Dims::filled(desc.shape.size(), 0);
  for (int64_t n = desc.elements(); n > 0; --n) {
    int64_t p = desc.layout.offset;
    for (int i = 0; i < at.size(); ++i) p += at[i] * desc.layout.strides[i];
    list.push_back(p);
    for (int i = at.size() - 1; i >= 0 && ++at[i] == desc.shape[i]; --i) at[i] = 0;
  }
  return list;
}

bool is_permutation(const Dims& order) {
  std::vector<bool> seen(static_cast<size_t>(order.size()), false);
  for (int64_t axis : order) {
    if (axis < 0 || axis >= order.size() || seen[static_cast<size_t>(axis)]) return false;
    seen[static_cast<size_t>(axis)] = true;
  }
  return true;
}

Dims random_order(std::mt19937_64& rng, int rank) {
  Dims order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  for (int i = rank - 1; i > 0; --i) std::swap(order[i], order[static_cast<int>(pick(rng, 0, i))]);
  return order;
}

// A dense tensor of random axis order, often narrowed, turned or broadcast along some axes.
TensorDesc random_view(std::mt19937_64& rng) {
  const int rank = static_cast<int>(pick(rng, 1, 4));
  Dims shape;
  for (int i = 0; i < rank; ++i) shape.push_back(pick(rng, 1, 4));
  TensorDesc desc{DType::f32, shape, dense(shape, random_order(rng, rank))};
  if (rng() % 2) {
    const int axis = static_cast<int>(pick(rng, 0, rank - 1));
    const int64_t size = pick(rng, 1, shape[axis]);
    Dims starts = Dims::filled(rank, 0), steps = Dims::filled(rank, 1), part = shape;
    if (rng() % 2) {
      starts[axis] = shape[axis] - 1, steps[axis] = -1;
    } else {
      starts[axis] = pick(rng, 0, shape[axis] - size);
    }
    part[axis] = size;
    desc = slice_view(desc, starts, steps, part);
  }
  return desc;
}

Dims random_shape_of(std::mt19937_64& rng, int64_t elements) {
  Dims shape;
  while (elements > 1 && shape.size() < 5) {
    int64_t factor = pick(rng, 1, elements);
    while (elements % factor != 0) --factor;
    shape.push_back(factor);
    elements /= factor;
  }
  if (elements > 1) shape.push_back(elements);
  while (shape.size() < 6 && rng() % 3 == 0) shape.insert(static_cast<int>(pick(rng, 0, shape.size())), 1);
  return shape;
}

TEST(View, ReshapeKeepsElementsInOrder) {
  int supported = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 rng(seed);
    const TensorDesc x = random_view(rng);
    const Dims shape = random_shape_of(rng, x.elements());
    const auto y = reshape_view(x, shape);
    if (!y) {
      EXPECT_FALSE(is_row_major(x.shape, x.layout)) << "seed " << seed << ": a dense row-major tensor has every shape";
      continue;
    }
    ++supported;
    ASSERT_EQ(y->shape, shape);
    ASSERT_EQ(places(*y), places(x)) << "seed " << seed << " " << x.shape.to_string() << " -> " << shape.to_string();
    ASSERT_TRUE(is_permutation(y->layout.order) && y->layout.order.size() == shape.size());
  }
  EXPECT_GT(supported, 500);
  EXPECT_FALSE(reshape_view(dense_desc(DType::f32, {2, 3}), {7}));
  EXPECT_TRUE(reshape_view(dense_desc(DType::f32, {0, 3}), {5, 0}));
}

TEST(View, TransposePermutesAxes) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 rng(seed);
    const TensorDesc x = random_view(rng);
    const Dims permutation = random_order(rng, x.shape.size());
    const TensorDesc y = transpose_view(x, permutation);
    ASSERT_TRUE(is_permutation(y.layout.order));
    for (int i = 0; i < permutation.size(); ++i) {
      ASSERT_EQ(y.shape[i], x.shape[static_cast<int>(permutation[i])]);
      ASSERT_EQ(y.layout.strides[i], x.layout.strides[static_cast<int>(permutation[i])]);
    }
    Dims inverse = permutation;
    for (int i = 0; i < permutation.size(); ++i) inverse[static_cast<int>(permutation[i])] = i;
    const TensorDesc back = transpose_view(y, inverse);
    ASSERT_EQ(back.shape, x.shape);
    ASSERT_EQ(places(back), places(x)) << "seed " << seed;
    ASSERT_EQ(is_dense(y.shape, y.layout), is_dense(x.shape, x.layout)) << "seed " << seed;
  }
}

TEST(View, SliceTakesEveryStepthElement) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 rng(seed);
    const TensorDesc x = random_view(rng);
    const int rank = x.shape.size();
    Dims starts, steps, shape;
    for (int i = 0; i < rank; ++i) {
      const int64_t step = pick(rng, 1, 3) * (rng() % 2 ? 1 : -1), start = pick(rng, 0, x.shape[i] - 1);
      const int64_t room = step > 0 ? (x.shape[i] - 1 - start) / step + 1 : start / -step + 1;
      starts.push_back(start), steps.push_back(step), shape.push_back(pick(rng, 1, room));
    }
    const TensorDesc y = slice_view(x, starts, steps, shape);
    const std::vector<int64_t> whole = places(x);
    std::vector<int64_t> want;
    Dims at = Dims::filled(rank, 0);
    for (int64_t n = shape.product(); n > 0; --n) {
      int64_t index = 0;
      for (int i = 0; i < rank; ++i) index = index * x.shape[i] + starts[i] + at[i] * steps[i];
      want.push_back(whole[static_cast<size_t>(index)]);
      for (int i = rank - 1; i >= 0 && ++at[i] == shape[i]; --i) at[i] = 0;
    }
    ASSERT_EQ(places(y), want) << "seed " << seed;
  }
}

TEST(View, SplitAxisAndBroadcast) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 rng(seed);
    const int rank = static_cast<int>(pick(rng, 1, 3)), axis = static_cast<int>(pick(rng, 0, rank - 1));
    const int64_t outer = pick(rng, 1, 4), inner = pick(rng, 1, 4);
    Dims shape;
    for (int i = 0; i < rank; ++i) shape.push_back(i == axis ? outer * inner : pick(rng, 1, 4));
    const TensorDesc x{DType::f32, shape, dense(shape, random_order(rng, rank))};
    const TensorDesc y = split_axis(x, axis, outer, inner);
    ASSERT_EQ(places(y), places(x)) << "seed " << seed;
    ASSERT_TRUE(is_permutation(y.layout.order));

    Dims narrow = shape;
    for (int i = 0; i < rank; ++i)
      if (rng() % 2) narrow[i] = 1;
    const TensorDesc small{DType::f32, narrow, row_major(narrow)};
    Dims wide = shape;
    wide.insert(0, 2);
    const TensorDesc b = broadcast_view(small, wide);
    ASSERT_TRUE(is_permutation(b.layout.order));
    const std::vector<int64_t> from = places(small), got = places(b);
    Dims at = Dims::filled(rank + 1, 0);
    for (size_t n = 0; n < got.size(); ++n) {
      int64_t index = 0;
      for (int i = 0; i < rank; ++i) index = index * narrow[i] + (narrow[i] == 1 ? 0 : at[i + 1]);
      ASSERT_EQ(got[n], from[static_cast<size_t>(index)]) << "seed " << seed;
      for (int i = rank; i >= 0 && ++at[i] == wide[i]; --i) at[i] = 0;
    }
  }
}

// A part moves into its whole: each element of any view of the part lies where the whole has that element.
TEST(View, RehomeFollowsThePartIntoTheWhole) {
  int supported = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 rng(seed);
    const int rank = static_cast<int>(pick(rng, 1, 4)), axis = static_cast<int>(pick(rng, 0, rank - 1));
    Dims shape, order = random_order(rng, rank);
    for (int i = 0; i < rank; ++i) shape.push_back(pick(rng, 1, 4));
    Dims whole_shape = shape;
    const int64_t begin = pick(rng, 0, 3), total = begin + shape[axis] + pick(rng, 0, 3);
    whole_shape[axis] = total;
    const TensorDesc part{DType::f32, shape, dense(shape, order)}, whole{DType::f32, whole_shape, dense(whole_shape, order)};
    // Where each place of the part's buffer goes.
    Dims starts = Dims::filled(rank, 0);
    starts[axis] = begin;
    const std::vector<int64_t> from = places(part), to = places(slice_view(whole, starts, Dims::filled(rank, 1), shape));
    std::vector<int64_t> moved(from.size());
    for (size_t i = 0; i < from.size(); ++i) moved[static_cast<size_t>(from[i])] = to[i];

    TensorDesc view = part;
    if (rng() % 2) view = transpose_view(view, random_order(rng, rank));
    if (rng() % 2) {
      const auto other = reshape_view(view, random_shape_of(rng, view.elements()));
      if (other) view = *other;
    }
    if (rng() % 2 && view.shape.size() > 0) {
      const int cut = static_cast<int>(pick(rng, 0, view.shape.size() - 1));
      Dims first = Dims::filled(view.shape.size(), 0), size = view.shape;
      first[cut] = pick(rng, 0, size[cut] - 1), size[cut] = pick(rng, 1, size[cut] - first[cut]);
      view = slice_view(view, first, Dims::filled(size.size(), 1), size);
    }
    const auto layout = rehome(view, shape[axis], total, begin, whole.layout.strides[axis]);
    if (!layout) continue;
    ++supported;
    const std::vector<int64_t> before = places(view), after = places({DType::f32, view.shape, *layout});
    for (size_t i = 0; i < before.size(); ++i)
      ASSERT_EQ(after[i], moved[static_cast<size_t>(before[i])])
          << "seed " << seed << ": " << shape.to_string() << " into " << whole_shape.to_string();
  }
  EXPECT_GT(supported, 1000);
}

}  // namespace
}  // namespace sparkle
