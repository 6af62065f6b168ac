#include "run_command/show_answer.h"

#include <cstdio>
#include <filesystem>

#include "base/files/new_file.h"
#include "base/printable.h"
#include "vision/tasks/picture_task.h"

namespace sparkle::cli {

Result<std::optional<TaskGuess>> choose_task(const Session& session, const Plan* plan, int64_t width, int64_t height,
                                             const RunOptions& o) {
  if (!o.task.empty()) {
    SPARKLE_TRY(task, task_named(o.task));
    return std::optional(TaskGuess{task, "as asked for"});
  }
  auto guess = guess_task(output_forms(session, plan), width, height);
  if (guess && guess->task == Task::classify) return std::optional<TaskGuess>();
  return guess;
}

AnswerOptions answer_options(const RunOptions& o, size_t names) {
  AnswerOptions options;
  options.top = o.top, options.detect.threshold = o.threshold, options.detect.overlap = o.iou;
  options.detect.names = static_cast<int>(names);
  return options;
}

Result<nlohmann::json> show_answer(const Session& session, const std::vector<HostTensor>& outputs, const TaskGuess& task,
                                   const Preprocess& preprocess, const Image& picture, const std::vector<std::string>& labels,
                                   const RunOptions& o, bool quiet, std::vector<std::string>& written) {
  std::vector<std::string> names;
  for (const SessionInput& output : session.outputs()) names.push_back(output.name);
  SPARKLE_TRY(answer, make_answer(task.task, names, outputs, preprocess, rows_of(picture), answer_options(o, labels.size())));
  nlohmann::json json = to_json(answer, labels);
  json["task_why"] = task.why;
  if (!quiet) {
    std::printf("task     %s, %s%s\n", name_of(task.task), printable(task.why).c_str(),
                o.task.empty() ? "; --task says otherwise" : "");
    if (!answer.form.empty()) std::printf("form     %s\n", answer.form.c_str());
    for (const std::string& line : to_lines(answer, labels)) std::printf("  %s\n", printable(line).c_str());
  }
  if (o.output.empty()) return json;
  const std::string name = o.inputs[0] == "-" ? "stdin" : std::filesystem::path(o.inputs[0]).stem().string();
  const std::string base = (std::filesystem::path(o.output) / (name + "_" + name_of(task.task))).string();
  if (task.task != Task::classify && task.task != Task::embed) {
    SPARKLE_CHECK(write_png(base + ".png", draw_answer(picture, answer, labels)));
    written.push_back(base + ".png");
  }
  if (task.task == Task::segment) {
    const std::string mask = (std::filesystem::path(o.output) / (name + "_mask.png")).string();
    SPARKLE_CHECK(write_png(mask, picture_of_mask(answer.mask)));
    written.push_back(mask);
  }
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  SPARKLE_CHECK(write_file(base + ".json", std::as_bytes(std::span(text))));
  written.push_back(base + ".json");
  return json;
}

}  // namespace sparkle::cli
