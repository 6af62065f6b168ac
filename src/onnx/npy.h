// NumPy's .npy files, format versions 1 to 3 (numpy.lib.format): one tensor each, C or Fortran order, either byte order.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

Result<HostTensor> read_npy(const std::string& path);
// The same from memory; `file` is what errors call it.
Result<HostTensor> read_npy_bytes(std::span<const std::byte> bytes, const std::string& file);
// What it holds, by its header alone.
Result<Dims> read_npy_shape(const std::string& path);
// Version 1, C order, little endian. NumPy has no bfloat16: that type is refused.
Status write_npy(const std::string& path, const HostTensor& value);

}  // namespace sparkle
