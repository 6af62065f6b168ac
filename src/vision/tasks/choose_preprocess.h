// How a picture becomes a model's input: what a caller says in words, and of the rest what the model's file says of itself or
// its shapes let guess. The command, C, C++ and Python say it by the same words.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "prepare/model_inputs.h"
#include "vision/tasks/task.h"

namespace sparkle {

// Empty: from the preset, the preset from the model.
struct PreprocessWords {
  std::string preset;     // "imagenet", "yolox" ...
  std::string fit;        // "crop", "stretch", "letterbox", "none"
  std::string color;      // "rgb", "bgr", "grey", "y"
  std::string size;       // "320x240", or "256": the shorter side before cropping
  std::string crop;       // "224" or "320x240"
  std::string scale;      // "1/255"
  std::string mean, std;  // "0.5", or three with commas
  std::string pad_value;  // "114"
  std::string dashes;     // what stands before these names where a user writes them: "--"
};

// Errors: bad_input where the input takes no picture, bad_usage for words that are not understood or do not fit it.
Result<Preprocess> choose_preprocess(const SessionInput& input, const std::vector<OutputForm>& outputs,
                                     const std::map<std::string, std::string>& metadata, const PreprocessWords& words);
// "imagenet, RGB, ...", with the words that it is a guess where it is one.
std::string preprocess_note(const Preprocess& preprocess, const std::map<std::string, std::string>& metadata,
                            const PreprocessWords& words);

}  // namespace sparkle
