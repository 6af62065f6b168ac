#include "vision/tasks/picture_task.h"

#include <algorithm>

#include "base/log.h"
#include "base/printable.h"
#include "base/system/out_of_memory.h"
#include "prepare/shape_advice.h"
#include "report/float_type.h"
#include "vision/tasks/labels.h"

namespace sparkle {

std::vector<OutputForm> output_forms(const Session& session, const Plan* plan) {
  std::vector<OutputForm> forms;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const SessionInput& declared = session.outputs()[i];
    forms.push_back({declared.name, declared.dtype, declared.shape});
    if (!plan) continue;
    const TensorDesc& desc = plan->tensors[static_cast<size_t>(plan->outputs[i])].desc;
    forms.back().dtype = desc.dtype, forms.back().shape = desc.shape;
  }
  return forms;
}

std::vector<OutputForm> known_output_forms(Session& session) {
  const auto is_open = [](const Dims& shape) {
    return shape.empty() || std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; });
  };
  std::vector<OutputForm> forms = output_forms(session, nullptr);
  const bool told = std::none_of(forms.begin(), forms.end(), [&](const OutputForm& o) { return is_open(o.shape); });
  if (told || session.in_parts() || session.inputs().size() != 1) return forms;
  Dims shape = session.inputs()[0].shape;
  if (shape.size() == 4 && shape[0] < 0) shape[0] = 1;
  if (is_open(shape)) return forms;
  const auto plan = session.prepare({HostTensor{session.inputs()[0].dtype, shape, nullptr}});
  return plan.ok() ? output_forms(session, plan->get()) : forms;  // what is wrong is said where it is run
}

PictureTask::PictureTask(std::shared_ptr<Session> session, PictureTaskOptions options)
    : session_(std::move(session)), options_(std::move(options)), labels_given_(!options_.labels.empty()) {
  if (!labels_given_) options_.labels = labels_of(options_.metadata);
  options_.answer.detect.names = static_cast<int>(options_.labels.size());
}

Result<std::unique_ptr<PictureTask>> PictureTask::open(std::shared_ptr<Session> session, PictureTaskOptions options) {
  const auto& inputs = session->inputs();
  if (inputs.size() != 1)
    return Error{Reason::bad_input, "A model that answers from pictures has one input; this one has " + listed_inputs(inputs) +
                                        ", so run its session on tensors."};
  std::unique_ptr<PictureTask> task(new PictureTask(std::move(session), std::move(options)));
  SPARKLE_TRY(preprocess, choose_preprocess(task->session_->inputs()[0], known_output_forms(*task->session_),
                                            task->options_.metadata, task->options_.words));
  task->preprocess_ = std::move(preprocess);
  if (!task->options_.task.empty()) {
    SPARKLE_TRY(asked, task_named(task->options_.task));
    task->task_ = TaskGuess{asked, "as asked for"};
  }
  if (task->may_be_tiled()) return task;
  task->enlarges_ = false;
  const Preprocess& p = task->preprocess_;
  if (p.width == 0 || p.fit == PictureFit::none) return task;
  std::shared_ptr<const Plan> plan;
  if (!task->session_->in_parts()) {
    SPARKLE_TRY(made, task->session_->prepare({HostTensor{task->session_->inputs()[0].dtype, tensor_shape(1, 1, p), nullptr}}));
    plan = std::move(made);
  }
  const std::vector<OutputForm> forms = output_forms(*task->session_, plan.get());
  SPARKLE_TRY(guess, task->decide(forms, p.width, p.height));
  SPARKLE_CHECK(task->check_names(guess, forms));
  return task;
}

std::optional<TaskGuess> PictureTask::task() const {
  const std::lock_guard lock(mutex_);
  return task_;
}

// A network of one input and one output that leaves height and width open may be one that enlarges pictures of any size.
bool PictureTask::may_be_tiled() const {
  const std::lock_guard lock(mutex_);
  const Dims& shape = session_->inputs()[0].shape;
  return enlarges_ && (!task_ || task_->task == Task::upscale) && session_->outputs().size() == 1 && !session_->in_parts() &&
         shape.size() == 4 && shape[2] <= 0 && shape[3] <= 0;
}

Result<TaskGuess> PictureTask::decide(const std::vector<OutputForm>& outputs, int64_t width, int64_t height) {
  const std::lock_guard lock(mutex_);
  if (task_) return *task_;
  const auto guess = guess_task(outputs, width, height);
  if (!guess) {
    std::string named;
    for (const OutputForm& o : outputs) named += (named.empty() ? "'" : ", '") + printable(o.name) + "'";
    return Error{Reason::bad_usage, "Nothing tells what the outputs " + named +
                                        " answer; give the task: classify, detect, segment, upscale, depth or embed."};
  }
  log(LogLevel::info, std::string("task ") + name_of(guess->task) + ", " + guess->why + "; input " + note());
  task_ = *guess;
  return *guess;
}

Status PictureTask::check_names(const TaskGuess& guess, const std::vector<OutputForm>& outputs) const {
  return labels_given_ && guess.task == Task::classify ? check_labels(outputs, options_.labels) : ok();
}

Result<HostTensor> PictureTask::tensor_of(const Picture& picture) const {
  SPARKLE_TRY(tensor, to_tensor(picture.rows(), preprocess_));
  return in_float_type(tensor, session_->inputs()[0].dtype);
}

// In tiles, where the network enlarges.
Result<std::optional<TaskAnswer>> PictureTask::enlarged(const Picture& picture) {
  const Dims shape = tensor_shape(picture.width, picture.height, preprocess_);
  SPARKLE_TRY(plan, plan_tiles(*session_, shape, options_.tiles));
  if (plan.factor == 0) {
    const std::lock_guard lock(mutex_);
    enlarges_ = false;
    return std::optional<TaskAnswer>();
  }
  if (shape[2] * shape[3] * plan.factor * plan.factor > 4 * kMaxPixels)
    return Error{Reason::size_overflow, "The picture of " + picture.size_text() + " is too large to enlarge; cut it first."};
  SPARKLE_TRY(input, to_tensor(picture.rows(), preprocess_));
  SPARKLE_TRY(run, run_tiles(*session_, input, plan, options_.tiles));
  {
    const std::lock_guard lock(mutex_);
    if (!task_) {
      task_ = TaskGuess{Task::upscale, "guessed from output '" + session_->outputs()[0].name + "', " +
                                           std::to_string(plan.factor) + " times as large as the input"};
      log(LogLevel::info, "task upscale, " + task_->why + "; input " + note());
    }
  }
  SPARKLE_TRY(answered, answer_from(picture, {run.output}));
  return std::optional(std::move(answered));
}

Result<TaskAnswer> PictureTask::answer(const Picture& picture) {
  if (may_be_tiled()) {
    SPARKLE_TRY(answered, enlarged(picture));
    if (answered) return *std::move(answered);
  }
  SPARKLE_TRY(tensor, tensor_of(picture));
  SPARKLE_TRY(outputs, session_->run({tensor}));
  return answer_from(picture, outputs);
}

Result<TaskAnswer> PictureTask::answer_from(const Picture& picture, const std::vector<HostTensor>& outputs) {
  std::vector<OutputForm> forms;
  std::vector<std::string> names;
  if (outputs.size() != session_->outputs().size())
    return Error{Reason::bad_usage, "The model has " + std::to_string(session_->outputs().size()) + " outputs, " +
                                        std::to_string(outputs.size()) + " are given; give all, in the model's order."};
  for (size_t i = 0; i < outputs.size(); ++i) {
    names.push_back(session_->outputs()[i].name);
    forms.push_back({names.back(), outputs[i].dtype, outputs[i].shape});
  }
  const Dims input = tensor_shape(picture.width, picture.height, preprocess_);
  const int height = height_axis(preprocess_);
  SPARKLE_TRY(guess, decide(forms, input[height], input[height + 1]));
  SPARKLE_CHECK(check_names(guess, forms));
  SPARKLE_TRY(answer, make_answer(guess.task, names, outputs, preprocess_, picture.rows(), options_.answer));
  return TaskAnswer{guess, std::move(answer)};
}

}  // namespace sparkle
