// Padding of random shapes in all modes, byte for byte as the reference makes it.
#include "backends/cpu/copy/moves_testing.h"
#include "families/family.h"
#include "families/pad/pad.h"

namespace sparkle::cpu::testing {
namespace {

TEST(Pad, RandomShapes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const int rank = static_cast<int>(pick(random, 0, 6));
    Dims shape, padded;
    PadParams params;
    params.mode = static_cast<PadMode>(pick(random, 0, 3));
    params.value = static_cast<double>(pick(random, 0, 100));
    for (int i = 0; i < rank; ++i) {
      shape.push_back(pick(random, 1, rank <= 2 ? 150 : rank <= 4 ? 9 : 4));
      const bool padded_axis = pick(random, 0, 1);
      params.begin.push_back(padded_axis ? pick(random, -1, rank <= 4 ? 12 : 4) : 0);
      params.end.push_back(padded_axis ? pick(random, -1, rank <= 4 ? 12 : 4) : 0);
      if (shape[i] + params.begin[i] + params.end[i] < 0) params.end[i] = 0;
      padded.push_back(shape[i] + params.begin[i] + params.end[i]);
    }
    const DType type = random_type(random);
    const bool gaps = pick(random, 0, 1), last = pick(random, 0, 1);
    const Layout from = last ? channels_last(shape) : random_layout(random, shape, gaps, true);
    const Layout to = last ? channels_last(padded) : random_layout(random, padded, gaps, false);
    const TensorDesc y{type, padded, to};
    SCOPED_TRACE(describe({type, shape, from}) + " -> " + describe(y) + " " + to_text(params));
    Memory input(type, shape, from);
    input.fill(random);
    compare(make_pad, pad_info(), params, "rows", {&input}, y, same_bytes);
  }
}

// Lines that are one stretch of x between a few elements, of less than a vector, of some, and longer than these are copied.
TEST(Pad, BordersOfPlanes) {
  Random random(9);
  for (PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::wrap})
    for (DType type : {DType::u8, DType::f16, DType::f32, DType::i64})
      for (int64_t width : {8, 13, 28, 70, 1100})
        for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{1, 1}, {0, 3}, {5, 0}, {-1, 2}}) {
          const Dims shape{2, 3, 9, width};
          Dims padded = shape;
          padded[1] += mode == PadMode::constant ? 1 : 0, padded[2] += begin + end, padded[3] += begin + end;
          PadParams params{mode, {0, 0, begin, begin}, {0, padded[1] - shape[1], end, end}, 3};
          Memory input(type, shape, row_major(shape));
          input.fill(random);
          const TensorDesc y{type, padded, row_major(padded)};
          SCOPED_TRACE(describe(input.desc()) + " -> " + describe(y) + " " + to_text(params));
          compare(make_pad, pad_info(), params, "rows", {&input}, y, same_bytes);
          if (HasFailure()) return;
        }
}

TEST(Pad, WrongSizesAreAnError) {
  const Stage stage{PadParams{PadMode::constant, {1}, {1}, 0}, {dense_desc(DType::f32, {4})}, {dense_desc(DType::f32, {5})}};
  for (const std::string& unit : units())
    EXPECT_FALSE(make_pad(stage, LoopSchedule{"rows", unit, 0}, device_with(unit, 1 << 20), 0).ok());
}

}  // namespace
}  // namespace sparkle::cpu::testing
