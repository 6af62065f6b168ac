// Running sums over random shapes and types: kernel and reference add in one order and one precision, so byte for byte.
#include "backends/cpu/copy/index_testing.h"
#include "families/family.h"
#include "families/scan/scan.h"

namespace sparkle::cpu::testing {
namespace {

TEST(Scan, RandomShapes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    Dims shape = random_shape(random, 1, 4, 9);
    if (pick(random, 0, 3) == 0) shape[shape.size() - 1] = pick(random, 100, 300);
    const ScanParams params{static_cast<int>(pick(random, 0, shape.size() - 1)), pick(random, 0, 1) == 1,
                            pick(random, 0, 1) == 1};
    Memory x(any_number_type(random), shape, row_major(shape));
    fill_coarse(x, random, false);
    SCOPED_TRACE(describe(x.desc()) + " " + to_text(params));
    compare_outputs(make_scan, scan_info(), params, "columns", {&x}, {x.desc()});
  }
}

TEST(Scan, Forms) {
  const HostTensor x = HostTensor::of(DType::i64, {4}, std::vector<int64_t>{1, 2, 3, int64_t{1} << 60});
  const auto sums = [&](ScanParams params) {
    HostTensor y = HostTensor::zeros(DType::i64, {4});
    const TensorView input = x.view(), output = y.view();
    scan_info().reference(params, {&input, 1}, {&output, 1});
    return std::vector<int64_t>(y.data<int64_t>(), y.data<int64_t>() + 4);
  };
  const int64_t large = int64_t{1} << 60;
  EXPECT_EQ(sums({0, false, false}), (std::vector<int64_t>{1, 3, 6, large + 6}));
  EXPECT_EQ(sums({0, true, false}), (std::vector<int64_t>{0, 1, 3, 6}));
  EXPECT_EQ(sums({0, false, true}), (std::vector<int64_t>{large + 6, large + 5, large + 3, large}));
  EXPECT_EQ(sums({0, true, true}), (std::vector<int64_t>{large + 5, large + 3, large, 0}));
}

}  // namespace
}  // namespace sparkle::cpu::testing
