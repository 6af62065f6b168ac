// `sparkle run --task`: what is answered from a picture, printed, drawn and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run/session.h"
#include "run_command/run_options.h"
#include "vision/tasks/answer.h"

namespace sparkle::cli {

// The task asked for, or guessed from the outputs' shapes; nothing where that is no more than a row of classes, which the
// outputs show themselves, or where nothing fits. Without a plan from the shapes that the model declares. `width`, `height`: of
// the input tensor. Errors: bad_usage.
Result<std::optional<TaskGuess>> choose_task(const Session& session, const Plan* plan, int64_t width, int64_t height,
                                             const RunOptions& options);

// How boxes and classes are chosen, of what the command was told; `names`: how many classes have one.
AnswerOptions answer_options(const RunOptions& options, size_t names);

// Makes the folder of --output. Errors: file_unwritable.
Status make_output_folder(const std::string& folder);
// Whether the task's answers are drawn: boxes, masks, larger pictures, depths.
bool is_drawn(Task task);
// FOLDER/NAME_TASK.png, of masks also FOLDER/NAME_mask.png; adds the paths to `written`. `picture`: what boxes and masks are
// drawn over. Errors: file_unwritable, out_of_memory.
Status write_drawn(const std::string& folder, const std::string& name, const Image& picture, const Answer& answer,
                   const std::vector<std::string>& labels, std::vector<std::string>& written);

// Prints the answer unless `quiet`, and gives it as JSON. With --output it is written too: STEM_TASK.png, of masks
// STEM_mask.png, of all STEM_TASK.json; the paths are added to `written`. Errors: bad_input, file_unwritable.
Result<nlohmann::json> show_answer(const Session& session, const std::vector<HostTensor>& outputs, const TaskGuess& task,
                                   const Preprocess& preprocess, const Image& picture, const std::vector<std::string>& labels,
                                   const RunOptions& options, bool quiet, std::vector<std::string>& written);

}  // namespace sparkle::cli
