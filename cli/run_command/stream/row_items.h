// Items of a stream, of which files of tensors may hold several: each row along the first axis is an item, rows.npy[3] by name.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle::cli {

class RowItems {
 public:
  // `wanted`: the model's input, where rows of files of tensors are items of it; else each file is one. What cannot be read is
  // an item whose reading fails.
  RowItems(const std::vector<std::string>& paths, const std::optional<Dims>& wanted);
  const std::vector<std::string>& names() const { return names_; }
  int64_t count() const { return static_cast<int64_t>(names_.size()); }
  const std::string& path(int64_t item) const { return places_[static_cast<size_t>(item)].path; }
  // Of a file of tensors; by several threads at once. A row is [1, ...] and shares the file's memory. Errors: those of reading.
  Result<HostTensor> tensor(int64_t item);

  // Rows along the first axis of a file of tensors that has as many axes as `wanted` and its sizes along the others; 1 for
  // others, and where it cannot be read.
  static int64_t rows_of(const std::string& path, const Dims& wanted);

 private:
  struct Place {
    std::string path;
    int64_t row = -1;  // the whole file
  };
  std::vector<Place> places_;
  std::vector<std::string> names_;
  std::mutex mutex_;  // of the file that was read last
  std::string last_;
  std::shared_ptr<const HostTensor> read_;
};

}  // namespace sparkle::cli
