// Items of a stream: files that a command line names, folders and patterns among them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sparkle::cli {

// Whether it names several files: a folder, or a pattern such as photos/*.jpg that is no file.
bool names_several(const std::string& path);
// All of them: of a folder the pictures and tensors by name (.jpg, .jpeg, .png, .webp, .tif, .tiff, .bmp, .pnm, .pgm, .ppm,
// .npy, .npz, .pb, not those of folders in it), of a pattern what fits it. Errors: file_unreadable where a folder or pattern
// has none.
Result<std::vector<std::string>> items_of(const std::vector<std::string>& paths);

}  // namespace sparkle::cli
