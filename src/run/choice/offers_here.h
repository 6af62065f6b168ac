// The devices of this machine as they would run a model, and the choice among them, remembered.
#pragma once

#include "run/choice/device_choice.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_model.h"

namespace sparkle {

struct ChoiceRequest {
  std::string model;                                                                        // path
  std::function<Result<std::vector<HostTensor>>(const std::vector<SessionInput>&)> inputs;  // of a run
  std::string shapes;      // what of these decides the choice, as text
  BackendOptions backend;  // but for the name
  std::function<Result<SessionOptions>(const Device&)> options;
  bool again = false;  // asks all devices anew, whatever is remembered; and those that are software
};

// Whether a GPU may be here: without one nothing need be asked.
bool may_have_gpu();

// A model that is compiled goes to the device that it was compiled for. Remembered by the model's file, the request's shapes
// and options, the devices and their drivers, and the version of the program. Errors: those of choose_device, of reading the
// model and of the request's inputs.
Result<DeviceDecision> choose_device_here(const ChoiceRequest& request);

}  // namespace sparkle
