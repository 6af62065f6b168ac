// What a network answers, and how its tensors lie over the picture that was given.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "vision/pictures/preprocess.h"

namespace sparkle {

enum class Task : uint8_t { classify, detect, segment, upscale, depth, embed };

const char* name_of(Task task);
// Errors: bad_usage naming the tasks.
Result<Task> task_named(const std::string& name);

// An output without its values: what guesses are made from.
struct OutputForm {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;  // -1 where it is open
};
// Whether the name has one of the words in it, however they are spelt.
bool name_has(const std::string& name, std::initializer_list<const char*> words);

struct TaskGuess {
  Task task = Task::classify;
  std::string why;  // "guessed from output 'boxes' 1x4420x4"
};
// From the outputs' shapes and names; `width` and `height` of the input tensor, 0 where they are open. Nothing where none of
// the tasks fits.
std::optional<TaskGuess> guess_task(const std::vector<OutputForm>& outputs, int64_t width, int64_t height);

// The preset that networks with such outputs were trained with, where that is known; "" else.
std::string guess_preset(const std::vector<OutputForm>& outputs, int64_t width, int64_t height);

// From the tensor's pixels to the picture's: picture = tensor * scale + offset.
struct Placement {
  double scale_x = 1, scale_y = 1, offset_x = 0, offset_y = 0;
  int width = 0, height = 0;  // of the picture
};
Placement placement_of(const Preprocess& p, int width, int height);

}  // namespace sparkle
