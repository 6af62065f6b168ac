// Non-maximum suppression of random boxes with equal scores, both forms of boxes and all limits: row for row, -1 behind them.
#include "backends/cpu/copy/index_testing.h"
#include "families/family.h"
#include "families/non_max/non_max.h"

namespace sparkle::cpu::testing {
namespace {

TEST(NonMax, RandomBoxes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    const int64_t images = pick(random, 1, 3), classes = pick(random, 1, 4), count = pick(random, 1, 40);
    NonMaxParams params;
    params.centers = pick(random, 0, 1);
    params.most = pick(random, 1, count);
    params.overlap = static_cast<double>(pick(random, 0, 10)) / 10;
    params.has_threshold = pick(random, 0, 1);
    params.threshold = static_cast<double>(pick(random, 0, 8)) / 10;
    Memory boxes(DType::f32, {images, count, 4}, row_major({images, count, 4}));
    Memory scores(DType::f32, {images, classes, count}, row_major({images, classes, count}));
    for_each_index(boxes.desc().shape, [&](const Dims& at) {
      store_element(DType::f32, static_cast<double>(pick(random, 0, 12)) / 4, element_at(boxes.view(), at));
    });
    for_each_index(scores.desc().shape, [&](const Dims& at) {
      const bool nan = pick(random, 0, 30) == 0;
      store_element(DType::f32, nan ? std::nan("") : static_cast<double>(pick(random, 0, 9)) / 10,
                    element_at(scores.view(), at));
    });
    const Dims rows{images * classes * params.most, 3};
    SCOPED_TRACE(describe(scores.desc()) + " " + to_text(params));
    compare_outputs(make_non_max, non_max_info(), params, "classes", {&boxes, &scores}, {{DType::i64, rows, row_major(rows)}});
  }
}

}  // namespace
}  // namespace sparkle::cpu::testing
