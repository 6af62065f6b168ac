#include "run_command/stream/row_items.h"

#include "onnx/npy.h"
#include "run_command/run_options.h"

namespace sparkle::cli {
namespace {

Result<Dims> shape_of(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy_shape(path);
  SPARKLE_TRY(tensor, read_tensor_file(path));
  return tensor.shape;
}

}  // namespace

int64_t RowItems::rows_of(const std::string& path, const Dims& wanted) {
  const auto shape = shape_of(path);
  if (!shape.ok() || shape->size() == 0 || shape->size() != wanted.size()) return 1;
  for (int axis = 1; axis < wanted.size(); ++axis)
    if (wanted[axis] > 0 && (*shape)[axis] != wanted[axis]) return 1;
  return (*shape)[0];
}

RowItems::RowItems(const std::vector<std::string>& paths, const std::optional<Dims>& wanted) {
  for (const std::string& path : paths) {
    const int64_t count = wanted && is_tensor_file(path) ? rows_of(path, *wanted) : 1;
    if (count <= 1) places_.push_back({path, -1}), names_.push_back(path);
    for (int64_t row = 0; count > 1 && row < count; ++row)
      places_.push_back({path, row}), names_.push_back(path + "[" + std::to_string(row) + "]");
  }
}

Result<HostTensor> RowItems::tensor(int64_t item) {
  const Place& place = places_[static_cast<size_t>(item)];
  if (place.row < 0) return read_tensor_file(place.path);
  std::shared_ptr<const HostTensor> file;
  {
    const std::lock_guard lock(mutex_);
    if (last_ != place.path || !read_) {
      SPARKLE_TRY(tensor, read_tensor_file(place.path));
      read_ = std::make_shared<const HostTensor>(std::move(tensor)), last_ = place.path;
    }
    file = read_;
  }
  if (file->shape.size() == 0 || place.row >= file->shape[0])
    return Error{Reason::bad_input, "'" + place.path + "' has become shorter while its rows were read."};
  HostTensor row = *file;
  row.shape[0] = 1;
  row.bytes = std::shared_ptr<std::byte[]>(file->bytes, file->bytes.get() + place.row * row.size_bytes());
  return row;
}

}  // namespace sparkle::cli
