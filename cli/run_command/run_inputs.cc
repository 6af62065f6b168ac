// Inputs of `sparkle run` that are tensors in files.
#include <algorithm>

#include "prepare/shape_advice.h"
#include "onnx/npy.h"
#include "onnx/tensor_file.h"
#include "base/printable.h"
#include "vision/decoders/npz.h"
#include "run_command/run_options.h"

namespace sparkle::cli {
bool is_tensor_file(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".npz") || path.ends_with(".pb");
}

Result<HostTensor> read_tensor_file(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".npz")) {
    SPARKLE_TRY(arrays, read_npz(path));
    if (arrays.size() == 1) return std::move(arrays[0].value);
    std::string names;
    for (const NamedTensor& array : arrays) names += (names.empty() ? "'" : ", '") + printable(array.name) + "'";
    return Error{Reason::bad_input, "'" + path + "' holds " + std::to_string(arrays.size()) + " arrays (" + names +
                                        "), and one is wanted here; save it alone."};
  }
  SPARKLE_TRY(tensor, read_tensor_pb(path));
  return std::move(tensor.value);
}

Result<std::vector<HostTensor>> read_inputs_together(const std::string& path, const std::vector<SessionInput>& inputs) {
  SPARKLE_TRY(arrays, read_npz(path));
  std::vector<HostTensor> tensors;
  for (const SessionInput& input : inputs) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NamedTensor& a) { return a.name == input.name; });
    if (found == arrays.end())
      return Error{Reason::bad_input,
                   "'" + path + "' has no array '" + input.name + "'; the model wants " + listed_inputs(inputs) + "."};
    tensors.push_back(std::move(found->value));
  }
  return tensors;
}

}  // namespace sparkle::cli
