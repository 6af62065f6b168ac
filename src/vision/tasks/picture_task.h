// A model that answers from pictures: a session with all that lies around it - how pictures become its input, what is asked of
// its outputs, how classes are called. The same for the library's callers as the command does one by one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "run/session.h"
#include "vision/pictures/picture.h"
#include "vision/pictures/tiled.h"
#include "vision/tasks/answer.h"
#include "vision/tasks/choose_preprocess.h"

namespace sparkle {

struct PictureTaskOptions {
  std::string task;  // by its name; empty: guessed from the outputs
  PreprocessWords words;
  AnswerOptions answer;
  TileOptions tiles;                            // of networks that enlarge pictures and leave their size open
  std::vector<std::string> labels;              // empty: those of the metadata
  std::map<std::string, std::string> metadata;  // the model's
};

struct TaskAnswer {
  TaskGuess task;
  Answer answer;
};

// The outputs of a plan, or where there is none those that the session declares.
std::vector<OutputForm> output_forms(const Session& session, const Plan* plan);
// Those that tell how a picture is prepared: as declared, or where the model's file leaves sizes of them out as they are
// planned for the sizes of its only input.
std::vector<OutputForm> known_output_forms(Session& session);

// May be used by any number of threads at once.
class PictureTask {
 public:
  // Where the model has one size of input the task is known from here on, and the plan is made. Errors: bad_usage for options
  // that are not understood or do not fit, and where nothing can be guessed; bad_input where the model takes no picture; what
  // planning says.
  static Result<std::unique_ptr<PictureTask>> open(std::shared_ptr<Session> session, PictureTaskOptions options);

  const Preprocess& preprocess() const { return preprocess_; }
  std::string note() const { return preprocess_note(preprocess_, options_.metadata, options_.words); }
  const std::vector<std::string>& labels() const { return options_.labels; }
  // Nothing before the first picture of a model that leaves sizes open.
  std::optional<TaskGuess> task() const;

  // The model's input, in its type. Errors: out_of_memory.
  Result<HostTensor> tensor_of(const Picture& picture) const;
  // Errors: what running says; bad_input where outputs do not fit the task; size_overflow for pictures that would be too large.
  Result<TaskAnswer> answer(const Picture& picture);
  // From outputs that a run on tensor_of(picture) gave, in the model's order.
  Result<TaskAnswer> answer_from(const Picture& picture, const std::vector<HostTensor>& outputs);

 private:
  PictureTask(std::shared_ptr<Session> session, PictureTaskOptions options);
  // `width`, `height`: of the input tensor.
  Result<TaskGuess> decide(const std::vector<OutputForm>& outputs, int64_t width, int64_t height);
  Status check_names(const TaskGuess& guess, const std::vector<OutputForm>& outputs) const;
  bool may_be_tiled() const;
  Result<std::optional<TaskAnswer>> enlarged(const Picture& picture);

  const std::shared_ptr<Session> session_;
  PictureTaskOptions options_;
  bool labels_given_ = false;
  Preprocess preprocess_;
  mutable std::mutex mutex_;  // of what follows
  std::optional<TaskGuess> task_;
  bool enlarges_ = true;  // until a plan has shown that it does not
};

}  // namespace sparkle
