#include "run_command/show_answer.h"

#include <cstdio>
#include <filesystem>

#include "base/files/new_file.h"
#include "base/printable.h"
#include "base/system/out_of_memory.h"
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

Status make_output_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return ok();
  return Error{Reason::file_unwritable, "The folder '" + folder + "' cannot be made: " + error.message() + "."};
}

bool is_drawn(Task task) { return task != Task::classify && task != Task::embed; }

Status write_drawn(const std::string& folder, const std::string& name, const Image& picture, const Answer& answer,
                   const std::vector<std::string>& labels, std::vector<std::string>& written) {
  const auto write = [&](const std::string& ending, const auto& draw) -> Status {
    const std::string path = (std::filesystem::path(folder) / (name + "_" + ending + ".png")).string();
    SPARKLE_TRY(drawn, guard_memory("The picture of the answer", [&]() -> Result<Image> { return draw(); }));
    SPARKLE_CHECK(write_png(path, drawn));
    written.push_back(path);
    return ok();
  };
  SPARKLE_CHECK(write(name_of(answer.task), [&] { return draw_answer(picture, answer, labels); }));
  if (answer.task == Task::segment) SPARKLE_CHECK(write("mask", [&] { return picture_of_mask(answer.mask); }));
  return ok();
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
  if (is_drawn(task.task)) SPARKLE_CHECK(write_drawn(o.output, name, picture, answer, labels, written));
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  SPARKLE_CHECK(write_file(base + ".json", std::as_bytes(std::span(text))));
  written.push_back(base + ".json");
  return json;
}

}  // namespace sparkle::cli
