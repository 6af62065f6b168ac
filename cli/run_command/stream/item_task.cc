#include "run_command/stream/item_task.h"

#include "run_command/show_answer.h"
#include "vision/tasks/picture_task.h"

namespace sparkle::cli {

Result<ItemTask> ItemTask::of_stream(const RunOptions& o, Session& session, const Preprocess& preprocess, int64_t rows) {
  ItemTask made;
  made.preprocess_ = preprocess, made.options_ = answer_options(o, 0), made.asked_ = !o.task.empty();
  for (const SessionInput& output : session.outputs()) made.names_.push_back(output.name);
  if (made.asked_) {
    SPARKLE_TRY(task, task_named(o.task));
    made.task_ = TaskGuess{task, "as asked for"};
    return made;
  }
  if (session.in_parts() || preprocess.width == 0 || preprocess.fit == PictureFit::none) {
    // Detectors that choose their boxes themselves are known by the shapes that they declare.
    auto guess = guess_task(output_forms(session, nullptr), 0, 0);
    if (guess && guess->task == Task::detect) made.task_ = std::move(guess);
    return made;
  }
  Dims shape = tensor_shape(preprocess.width, preprocess.height, preprocess);
  if (preprocess.batched) shape[0] = rows;
  const auto plan = session.prepare({HostTensor{session.inputs()[0].dtype, shape, nullptr}});
  if (!plan.ok()) return made;  // which each item says
  std::vector<OutputForm> forms = output_forms(session, plan->get());
  for (OutputForm& form : forms)
    if (!form.shape.empty() && form.shape[0] == rows) form.shape[0] = 1;
  auto guess = guess_task(forms, preprocess.width, preprocess.height);
  if (guess && guess->task != Task::classify) made.task_ = std::move(guess);
  return made;
}

Picture ItemTask::needed(Picture picture) const {
  if (!task_ || task_->task != Task::upscale) picture.samples = nullptr;
  return picture;
}

Result<nlohmann::json> ItemTask::answer(const std::vector<HostTensor>& outputs, const Picture& picture,
                                        const std::vector<std::string>& labels, const AnswerPictures* pictures,
                                        int64_t item) const {
  if (!task_ || (picture.width == 0 && !asked_)) return nlohmann::json();
  if (picture.width == 0)
    return Error{Reason::bad_input, std::string("The item is a tensor, and --task ") + name_of(task_->task) +
                                        " is about a picture; give pictures."};
  AnswerOptions options = options_;
  options.detect.names = static_cast<int>(labels.size());
  SPARKLE_TRY(answer, make_answer(task_->task, names_, outputs, preprocess_, picture.rows(), options));
  nlohmann::json json = to_json(answer, labels);
  json["task_why"] = task_->why;
  if (pictures) {
    SPARKLE_TRY(written, pictures->write(item, answer, labels));
    json["written"] = written;
  }
  return json;
}

}  // namespace sparkle::cli
