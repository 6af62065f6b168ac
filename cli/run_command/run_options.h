// What `sparkle run` is told, how its inputs are made and its outputs shown.
#pragma once

#include <nlohmann/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/record.h"
#include "command.h"
#include "vision/pictures/image.h"
#include "vision/pictures/preprocess.h"
#include "vision/tasks/choose_preprocess.h"

namespace sparkle::cli {

struct RunOptions {
  const CLI::App* command = nullptr;  // knows which options were given
  std::string model;
  std::vector<std::string> inputs, shapes;
  std::string labels, output, reference;
  int top = 5, repeat = 1;
  // many items
  int batch = 1;
  std::string frames;  // their size; empty: files
  bool live = false;
  std::string split = "auto";  // of several devices: auto or always
  std::string trace;           // where the stream's is written
  // pictures; empty: from the preset, the preset from the model
  PreprocessWords words;
  int tile = 512, overlap = 8;
  bool shrink_first = false;
  // answers
  std::string task;  // empty: guessed from the outputs
  float threshold = 0.5f, iou = 0.45f;
  // of the model, once it is open
  std::map<std::string, std::string> metadata;
  std::vector<OutputForm> outputs;
};

bool is_tensor_file(const std::string& path);
// .npy, .npz with one array, or .pb
Result<HostTensor> read_tensor_file(const std::string& path);
// All inputs of a model from one .npz file, by their names. Errors: bad_input for one that is missing.
Result<std::vector<HostTensor>> read_inputs_together(const std::string& path, const std::vector<SessionInput>& inputs);

// choose_preprocess() and preprocess_note() of what the command was told.
inline Result<Preprocess> preprocess_for(const SessionInput& input, const RunOptions& o) {
  return choose_preprocess(input, o.outputs, o.metadata, o.words);
}
inline std::string note_of(const Preprocess& preprocess, const RunOptions& o) {
  return preprocess_note(preprocess, o.metadata, o.words);
}

// Where the whole output is one row of classes: how many, else 0.
int64_t class_count(const HostTensor& output);

// Prints one output (`top` classes with the largest values, or figures; 0: figures alone) unless `quiet`, and gives it as JSON.
// Floats come as f32; `stored` is the type that they have in the model.
nlohmann::json show_output(const std::string& name, const HostTensor& output, DType stored,
                           const std::vector<std::string>& labels, int top, bool quiet);
// The output as a picture where it looks like one: 1 or 3 channels, at least 8x8, values in 0..1 or about 0..255.
std::optional<Image> picture_of(const HostTensor& output);
// DIR/NAME.npy, the output's name made fit for a file.
std::string tensor_path(const std::string& directory, const std::string& name);
// DIR/NAME.npy and, for pictures, DIR/NAME.png from `figures`, the output in f32; adds the paths to `written`.
Status save_output(const std::string& directory, const std::string& name, const HostTensor& output, const HostTensor& figures,
                   std::vector<std::string>& written);

// Enlarging networks: the picture in tiles, the result and a comparison beside bicubic into --output.
int run_upscale(const CommonOptions& common, const RunOptions& options, OpenDevice& device, Session& session,
                const Image& image, const Preprocess& preprocess, bool& handled);

}  // namespace sparkle::cli
