// What the handles of vision.h are.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/handles.h"
#include "sparkle/vision.h"
#include "vision/tasks/picture_task.h"

struct sparkle_picture {
  sparkle::Picture picture;
};
struct sparkle_vision {
  std::unique_ptr<sparkle::PictureTask> task;
};
struct sparkle_answer {
  sparkle::TaskAnswer found;
  std::vector<std::string> labels;
  std::vector<std::pair<uint16_t, double>> shares;  // segment: of each class in the mask
};

namespace sparkle::api {

// The answer with what is asked of it made ready.
std::unique_ptr<sparkle_answer> new_answer(TaskAnswer found, std::vector<std::string> labels);

}  // namespace sparkle::api
