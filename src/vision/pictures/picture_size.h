// What is too large a picture, for all formats: looked at before anything is allocated for it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sparkle {

inline constexpr int64_t kLongestSide = 65536;

// The sentence for a picture that is too large or has no pixels; ok where it is neither. Errors: size_overflow, bad_format.
inline Status check_picture_size(int64_t width, int64_t height, const std::string& file, int64_t max_pixels) {
  if (width < 1 || height < 1) return Error{Reason::bad_format, "'" + file + "' declares a picture without pixels."};
  const std::string declared = "'" + file + "' declares " + std::to_string(width) + "x" + std::to_string(height);
  if (width > kLongestSide || height > kLongestSide)
    return Error{Reason::size_overflow,
                 declared + " pixels; at most " + std::to_string(kLongestSide) + " a side are read, make it smaller first."};
  if (width * height > max_pixels)
    return Error{Reason::size_overflow, declared + " pixels; at most " + std::to_string(max_pixels / 1000000) +
                                            " million are read, make it smaller first."};
  return ok();
}

}  // namespace sparkle
