#include "run_command/stream/answer_pictures.h"

#include <filesystem>
#include <set>

#include "base/system/out_of_memory.h"
#include "run_command/show_answer.h"
#include "vision/pictures/picture.h"

namespace sparkle::cli {

Result<AnswerPictures> AnswerPictures::open(const std::string& folder, std::vector<std::string> items) {
  AnswerPictures made;
  std::set<std::string> taken;
  for (const std::string& item : items) taken.insert(std::filesystem::path(item).stem().string());
  std::set<std::string> used;
  for (const std::string& item : items) {
    if (item == "-")
      return Error{Reason::bad_usage, "Standard input is read once, and pictures in a folder need it twice; give a file."};
    const std::string stem = std::filesystem::path(item).stem().string();
    std::string name = stem;
    for (int n = 2; used.count(name) || (name != stem && taken.count(name)); ++n) name = stem + "_" + std::to_string(n);
    used.insert(name);
    made.names_.push_back(std::move(name));
  }
  SPARKLE_CHECK(make_output_folder(folder));
  made.folder_ = folder, made.items_ = std::move(items);
  return made;
}

std::string AnswerPictures::lines() const { return (std::filesystem::path(folder_) / "answers.jsonl").string(); }

Result<std::vector<std::string>> AnswerPictures::write(int64_t item, const Answer& answer,
                                                       const std::vector<std::string>& labels) const {
  const auto at = static_cast<size_t>(item);
  std::vector<std::string> written;
  Image under;
  if (answer.task == Task::detect || answer.task == Task::segment) {
    SPARKLE_TRY(picture, read_picture(items_[at]));
    SPARKLE_TRY(image, guard_memory("The picture", [&]() -> Result<Image> { return picture.image(); }));
    under = std::move(image);
  }
  SPARKLE_CHECK(write_drawn(folder_, names_[at], under, answer, labels, written));
  return written;
}

}  // namespace sparkle::cli
