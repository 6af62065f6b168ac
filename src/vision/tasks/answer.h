// Answers: what a task makes of a network's outputs - boxes, masks, pictures - as data, JSON, lines of text, and drawn.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vision/tasks/detect.h"
#include "vision/tasks/task.h"

namespace sparkle {

struct ClassScore {
  int64_t index = 0;
  double probability = 0;
  float value = 0;  // as the network gives it
};

// A class for each pixel of the picture, rows top down.
struct Mask {
  int width = 0, height = 0;
  std::vector<uint16_t> classes;
};
// The part of the pixels that each class has, of those that there are.
std::map<uint16_t, double> shares_of(const Mask& mask);

struct Answer {
  Task task = Task::classify;
  std::vector<ClassScore> classes;  // classify: the best ones
  std::vector<FoundBox> boxes;      // detect
  std::string form;                 // detect: what the outputs were taken for; "" of boxes that were given
  Mask mask;                        // segment
  Image picture;                    // upscale: the enlarged picture; depth: the network's value for each pixel, as one channel
  float least = 0, most = 0;        // depth: of these
  std::vector<float> embedding;     // embed
};

struct AnswerOptions {
  DetectOptions detect;
  int top = 5;
};

// `outputs`: the model's, in order, on one picture; floats of any type, `names` theirs. `preprocess` and `picture`: how its
// input was made, and of what; of most tasks its size alone is looked at. Errors: bad_input where the outputs do not fit.
Result<Answer> make_answer(Task task, const std::vector<std::string>& names, const std::vector<HostTensor>& outputs,
                           const Preprocess& preprocess, const Rows& picture, const AnswerOptions& options);
// What a network that enlarges pictures gives, 1xCxHxW of f32, as a picture 0..255: preprocessing undone.
Image undone(const HostTensor& output, const Preprocess& preprocess);

// Classes named by `labels`, where there are so many.
nlohmann::json to_json(const Answer& answer, const std::vector<std::string>& labels);
std::vector<std::string> to_lines(const Answer& answer, const std::vector<std::string>& labels);

// The picture with boxes and legend, or with the mask's colours over it and a legend; upscale: the enlarged picture, depth: the
// least black and the most white. Of classify and embed the picture itself.
Image draw_answer(const Image& picture, const Answer& answer, const std::vector<std::string>& labels);
// The mask as a grey picture whose values are the classes (255 for those above).
Image picture_of_mask(const Mask& mask);

}  // namespace sparkle
