// NumPy's .npz files (numpy.savez and savez_compressed): a ZIP archive of .npy files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "onnx/tensor_file.h"

namespace sparkle {

// The arrays by the names they were saved under, in the order of the archive. At most 4 GiB of them, and no more than zlib can
// unfold from the file's bytes. Errors: file_unreadable, bad_format, type_not_served, size_overflow, out_of_memory.
Result<std::vector<NamedTensor>> read_npz(const std::string& path);
// The same from memory; `file` is what errors call it.
Result<std::vector<NamedTensor>> read_npz_bytes(std::span<const std::byte> bytes, const std::string& file);

}  // namespace sparkle
