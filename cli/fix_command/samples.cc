#include "fix_command/samples.h"

#include <algorithm>
#include <filesystem>

#include "onnx/tensor_file.h"
#include "report/float_type.h"
#include "vision/pictures/picture.h"
#include "run_command/model_inputs.h"

namespace sparkle::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMost = 1000;  // samples of one folder

Result<HostTensor> read_one(const SessionInput& input, const std::string& path, const RunOptions& o) {
  if (is_tensor_file(path)) return read_tensor_file(path);
  SPARKLE_TRY(preprocess, preprocess_for(input, o));
  SPARKLE_TRY(picture, read_picture(path));
  SPARKLE_TRY(tensor, to_tensor(picture.rows(), preprocess));
  return in_float_type(tensor, input.dtype);
}

Result<fix::Sample> read_set(const std::vector<SessionInput>& inputs, const fs::path& folder) {
  fix::Sample sample;
  for (size_t i = 0; i < inputs.size(); ++i) {
    SPARKLE_TRY(tensor, read_tensor_pb((folder / ("input_" + std::to_string(i) + ".pb")).string()));
    sample.push_back(std::move(tensor.value));
  }
  return sample;
}

std::vector<fs::path> listed(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) paths.push_back(at->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_sample_file(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* known : {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".pnm", ".npy", ".pb"})
    if (ending == known) return true;
  return false;
}

}  // namespace

Result<std::vector<fix::Sample>> read_samples(const std::vector<SessionInput>& inputs, const RunOptions& o) {
  std::vector<fix::Sample> samples;
  std::vector<std::string> files;
  for (const std::string& path : o.inputs) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<fs::path> sets;
    if (fs::exists(fs::path(path) / "input_0.pb", error)) sets.push_back(path);
    for (const fs::path& inner : listed(path))
      if (inner.filename().string().starts_with("test_data_set_")) sets.push_back(inner);
    for (const fs::path& set : sets) {
      SPARKLE_TRY(sample, read_set(inputs, set));
      samples.push_back(std::move(sample));
    }
    if (!sets.empty()) continue;
    for (const fs::path& file : listed(path))
      if (is_sample_file(file) && files.size() < kMost) files.push_back(file.string());
  }
  if (!inputs.empty() && files.size() % inputs.size() != 0)
    return Error{Reason::bad_usage, "The model has " + std::to_string(inputs.size()) + " inputs, and " +
                                        std::to_string(files.size()) +
                                        " files are given; give one for each input of each sample."};
  for (size_t i = 0; i + inputs.size() <= files.size() && !inputs.empty(); i += inputs.size()) {
    fix::Sample sample;
    for (size_t k = 0; k < inputs.size(); ++k) {
      SPARKLE_TRY(tensor, read_one(inputs[k], files[i + k], o));
      sample.push_back(std::move(tensor));
    }
    samples.push_back(std::move(sample));
  }
  if (!o.inputs.empty() && samples.empty())
    return Error{Reason::bad_usage, "There is no picture and no tensor in '" + o.inputs[0] + "'."};
  return samples;
}

}  // namespace sparkle::cli
