// Formulas of resize against numbers of the ONNX reference evaluator (onnx 1.23.2, numpy in double precision).
#include <gtest/gtest.h>

#include "families/family.h"
#include "families/resize/resize_taps.h"
#include "families/stage.h"

namespace sparkle {
namespace {

struct Stored {
  ResizeMode mode;
  ResizeCoordinates coordinates;
  ResizeNearest nearest;
  bool exclude_outside;
  double scale, roi_begin, roi_end;
  std::vector<float> x;
  std::vector<double> y;
};
const Stored kStored[] = {
    {ResizeMode::nearest,
     ResizeCoordinates::half_pixel,
     ResizeNearest::round_prefer_floor,
     false,
     2.0,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, 1, -2, -2, 4, 4, 0.5, 0.5, 3, 3}},
    {ResizeMode::linear,
     ResizeCoordinates::half_pixel,
     ResizeNearest::round_prefer_floor,
     false,
     0.6,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {-1.110223e-16, 4, 2.166667}},
    {ResizeMode::cubic,
     ResizeCoordinates::half_pixel,
     ResizeNearest::round_prefer_floor,
     false,
     1.5,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1.260417, -1.0625, -1.338542, 3.390625, 2.578125, 0.5549769, 2.58044}},
    {ResizeMode::nearest,
     ResizeCoordinates::half_pixel_symmetric,
     ResizeNearest::round_prefer_ceil,
     false,
     0.6,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, 4, 3}},
    {ResizeMode::linear,
     ResizeCoordinates::half_pixel_symmetric,
     ResizeNearest::round_prefer_ceil,
     false,
     1.5,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, -1, 8.881784e-16, 4, 1.666667, 1.333333, 3}},
    {ResizeMode::cubic,
     ResizeCoordinates::half_pixel_symmetric,
     ResizeNearest::round_prefer_ceil,
     false,
     2.0,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1.316406, 0.109375, -1.953125, -0.8339844, 2.904297, 3.751953, 1.240234, 0.6972656, 2.310547, 3.263672}},
    {ResizeMode::nearest,
     ResizeCoordinates::pytorch_half_pixel,
     ResizeNearest::floor,
     false,
     1.5,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, 1, -2, -2, 4, 0.5, 0.5}},
    {ResizeMode::linear,
     ResizeCoordinates::pytorch_half_pixel,
     ResizeNearest::floor,
     false,
     2.0,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, 0.25, -1.25, -0.5, 2.5, 3.125, 1.375, 1.125, 2.375, 3}},
    {ResizeMode::cubic,
     ResizeCoordinates::pytorch_half_pixel,
     ResizeNearest::floor,
     false,
     0.6,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {-0.2777778, 4, 2.018519}},
    {ResizeMode::nearest,
     ResizeCoordinates::align_corners,
     ResizeNearest::ceil,
     false,
     2.0,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, -2, -2, 4, 4, 0.5, 0.5, 3, 3, 3}},
    {ResizeMode::linear,
     ResizeCoordinates::align_corners,
     ResizeNearest::ceil,
     false,
     0.6,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, 4, 3}},
    {ResizeMode::cubic,
     ResizeCoordinates::align_corners,
     ResizeNearest::ceil,
     false,
     1.5,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, -1.542558, -0.9584661, 3.45619, 2.788462, 0.4827037, 2.109923}},
    {ResizeMode::nearest,
     ResizeCoordinates::asymmetric,
     ResizeNearest::round_prefer_floor,
     false,
     0.6,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, 4, 0.5}},
    {ResizeMode::linear,
     ResizeCoordinates::asymmetric,
     ResizeNearest::round_prefer_floor,
     false,
     1.5,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, -1, -4.440892e-16, 4, 1.666667, 1.333333, 3}},
    {ResizeMode::cubic,
     ResizeCoordinates::asymmetric,
     ResizeNearest::round_prefer_floor,
     false,
     2.0,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, -1.0625, -2, 1.046875, 4, 2.578125, 0.5, 1.421875, 3, 3.234375}},
    {ResizeMode::nearest,
     ResizeCoordinates::tf_crop,
     ResizeNearest::round_prefer_ceil,
     false,
     1.5,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1, -2, 4, 4, 0.5, 3, 9}},
    {ResizeMode::linear,
     ResizeCoordinates::tf_crop,
     ResizeNearest::round_prefer_ceil,
     false,
     2.0,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {-0.2, -1.666667, 0.2666667, 3.2, 2.755556, 1.044444, 1.333333, 2.555556, 9, 9}},
    {ResizeMode::cubic,
     ResizeCoordinates::tf_crop,
     ResizeNearest::round_prefer_ceil,
     false,
     0.6,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {-0.596, 2.02, 9}},
    {ResizeMode::cubic,
     ResizeCoordinates::half_pixel,
     ResizeNearest::round_prefer_floor,
     true,
     0.6,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {-0.15, 4, 2.116667}},
    {ResizeMode::cubic,
     ResizeCoordinates::half_pixel,
     ResizeNearest::round_prefer_floor,
     true,
     2.0,
     0.1,
     1.2,
     {1, -2, 4, 0.5, 3},
     {1.409091, 0.1943463, -1.85283, -0.8339844, 2.904297, 3.751953, 1.240234, 0.7754717, 2.376325, 3.340909}},
};

TEST(Resize, MatchesOnnxReference) {
  for (const Stored& c : kStored) {
    ResizeParams params;
    params.mode = c.mode;
    params.coordinates = c.coordinates;
    params.nearest = c.nearest;
    params.exclude_outside = c.exclude_outside;
    params.extrapolation = 9;
    params.scales = {c.scale};
    params.roi_begin = {c.roi_begin};
    params.roi_end = {c.roi_end};
    SCOPED_TRACE(to_text(params));
    const auto x = HostTensor::of<float>(DType::f32, {static_cast<int64_t>(c.x.size())}, c.x);
    const auto y = HostTensor::zeros(DType::f32, {static_cast<int64_t>(c.y.size())});
    const TensorView from = x.view(), to = y.view();
    resize_info().reference(params, {&from, 1}, {&to, 1});
    for (int64_t i = 0; i < y.elements(); ++i) EXPECT_NEAR(y.data<float>()[i], c.y[static_cast<size_t>(i)], 2e-6) << "at " << i;
  }
}

TEST(Resize, NamesAreReadBack) {
  for (int i = 0; i < 6; ++i) {
    ResizeCoordinates read{};
    EXPECT_TRUE(parse_name(name_of(static_cast<ResizeCoordinates>(i)), read));
    EXPECT_EQ(read, static_cast<ResizeCoordinates>(i));
  }
  ResizeParams params;
  params.scales = {1, 2.5};
  const auto read = from_text<ResizeParams>(to_text(params));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, params);
}

TEST(Resize, NearestRoundsAsAsked) {
  EXPECT_EQ(nearest_index(ResizeNearest::round_prefer_floor, 1.5, 4), 1);
  EXPECT_EQ(nearest_index(ResizeNearest::round_prefer_ceil, 1.5, 4), 2);
  EXPECT_EQ(nearest_index(ResizeNearest::floor, 1.9, 4), 1);
  EXPECT_EQ(nearest_index(ResizeNearest::ceil, 1.1, 4), 2);
  EXPECT_EQ(nearest_index(ResizeNearest::ceil, 3.5, 4), 3);
  EXPECT_EQ(nearest_index(ResizeNearest::floor, -0.5, 4), 0);
}

}  // namespace
}  // namespace sparkle
