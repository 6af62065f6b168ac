// What tests of the public interface share: the demo network, pictures for it, the status that a call ends with.
#pragma once

#include <gtest/gtest.h>

#include <sparkle/sparkle.hpp>
#include <string>

namespace sparkle::testing {

inline const std::string kModel = SPARKLE_SOURCE_DIR "/models/upscale2x.onnx";

inline Tensor picture(int64_t h, int64_t w, unsigned seed = 1) {
  Tensor x(Type::f32, {1, 3, h, w});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.data<float>()[i] = static_cast<float>((static_cast<unsigned>(i) * 2654435761u + seed) >> 8 & 255) / 255;
  return x;
}

template <class F>
sparkle_status status_of(F&& f) {
  try {
    f();
  } catch (const Exception& e) {
    EXPECT_FALSE(std::string(e.what()).empty());
    return e.status();
  }
  return SPARKLE_OK;
}

}  // namespace sparkle::testing
