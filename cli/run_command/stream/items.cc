#include "run_command/stream/items.h"

#include <glob.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/printable.h"

namespace sparkle::cli {
namespace {

namespace fs = std::filesystem;

bool is_item(const fs::path& path) {
  static constexpr const char* kEndings[] = {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp",
                                             ".pnm", ".pgm",  ".ppm", ".npy",  ".npz", ".pb"};
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
}

bool is_pattern(const std::string& path) {
  std::error_code none;
  return path.find_first_of("*?[") != std::string::npos && !fs::exists(path, none);
}

Status add_folder(const std::string& path, std::vector<std::string>& items) {
  std::error_code error;
  const size_t before = items.size();
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code none;
    if (is_item(at->path()) && at->is_regular_file(none)) items.push_back(at->path().string());
  }
  if (error)
    return Error{Reason::file_unreadable, "The folder '" + printable(path) + "' cannot be read: " + error.message() + "."};
  if (items.size() == before)
    return Error{Reason::file_unreadable,
                 "'" + printable(path) +
                     "' is a folder without pictures (.jpg, .png, .webp, .tif, .bmp, .pnm) and tensors (.npy, .npz, .pb)."};
  std::sort(items.begin() + static_cast<long>(before), items.end());
  return ok();
}

Status add_pattern(const std::string& pattern, std::vector<std::string>& items) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) items.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status != 0) return Error{Reason::file_unreadable, "No file fits '" + printable(pattern) + "'."};
  return ok();
}

}  // namespace

bool names_several(const std::string& path) {
  std::error_code none;
  return fs::is_directory(path, none) || is_pattern(path);
}

Result<std::vector<std::string>> items_of(const std::vector<std::string>& paths) {
  std::vector<std::string> items;
  for (const std::string& path : paths) {
    std::error_code none;
    if (fs::is_directory(path, none)) SPARKLE_CHECK(add_folder(path, items));
    else if (is_pattern(path)) SPARKLE_CHECK(add_pattern(path, items));
    else items.push_back(path);
  }
  return items;
}

}  // namespace sparkle::cli
