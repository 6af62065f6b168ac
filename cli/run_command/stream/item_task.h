// What is answered from each item of a stream beside the figures of its outputs: boxes, masks and other answers of --task.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run/session.h"
#include "run_command/run_options.h"
#include "run_command/stream/answer_pictures.h"
#include "vision/pictures/picture.h"
#include "vision/tasks/answer.h"

namespace sparkle::cli {

class ItemTask {
 public:
  // The task asked for, or guessed from what the outputs of `rows` items will be; of one row of classes, and where nothing
  // fits, there is none, as the outputs' figures tell it. Errors: bad_usage.
  static Result<ItemTask> of_stream(const RunOptions& options, Session& session, const Preprocess& preprocess, int64_t rows);

  const std::optional<TaskGuess>& task() const { return task_; }
  // Whether its answer says more than rows of classes do.
  bool beyond_classes() const { return task_ && task_->task != Task::classify; }
  // The picture as far as the answer needs it: most tasks look at its size alone.
  Picture needed(Picture picture) const;
  // Of one item's outputs, in the model's order; null where nothing is answered. `pictures`: also drawn there, or nullptr.
  // Errors: bad_input, those of writing.
  Result<nlohmann::json> answer(const std::vector<HostTensor>& outputs, const Picture& picture,
                                const std::vector<std::string>& labels, const AnswerPictures* pictures, int64_t item) const;

 private:
  std::optional<TaskGuess> task_;
  bool asked_ = false;
  Preprocess preprocess_;
  AnswerOptions options_;
  std::vector<std::string> names_;
};

}  // namespace sparkle::cli
