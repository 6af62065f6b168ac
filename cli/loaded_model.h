// A model opened on a device with its inputs: what `bench --model` and `report` measure.
#pragma once

#include "command.h"

namespace sparkle::cli {

struct ModelArguments {
  std::string model;
  std::vector<std::string> inputs;  // TensorProto or .npy files, one per input; none: seeded random values
  std::vector<std::string> shapes;  // of those
};

struct LoadedModel {
  OpenDevice device;
  std::unique_ptr<Session> session;
  SessionOptions options;
  std::vector<HostTensor> inputs;
};

// Errors: those of opening the device and the model, and of reading inputs.
Result<LoadedModel> load_model(const CommonOptions& common, const ModelArguments& arguments, Roofs roofs);

}  // namespace sparkle::cli
