// Answers of vision.h.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "api/vision_handles.h"
#include "base/system/out_of_memory.h"

using sparkle::Error;
using sparkle::HostTensor;
using sparkle::Reason;
using sparkle::Status;
using sparkle::Task;
using sparkle::api::guarded;

namespace sparkle::api {

std::unique_ptr<sparkle_answer> new_answer(TaskAnswer found, std::vector<std::string> labels) {
  auto answer = std::make_unique<sparkle_answer>(sparkle_answer{std::move(found), std::move(labels), {}});
  if (answer->found.answer.task == Task::segment)
    for (const auto& [c, share] : shares_of(answer->found.answer.mask)) answer->shares.emplace_back(c, share);
  return answer;
}

namespace {

constexpr int kMostClasses = 65536;

const char* label_of(const sparkle_answer& answer, int64_t index) {
  return index >= 0 && index < static_cast<int64_t>(answer.labels.size()) ? answer.labels[static_cast<size_t>(index)].c_str()
                                                                          : "";
}

Error no_number(size_t number, size_t count, const char* what) {
  return {Reason::bad_usage,
          "The answer has " + std::to_string(count) + " " + what + "; there is no number " + std::to_string(number) + "."};
}

Result<HostTensor> tensor_of_mask(const Mask& mask) {
  const bool wide = std::any_of(mask.classes.begin(), mask.classes.end(), [](uint16_t c) { return c > 255; });
  SPARKLE_TRY(tensor, allocate_tensor(wide ? DType::u16 : DType::u8, {mask.height, mask.width}, "The mask"));
  if (wide) std::copy(mask.classes.begin(), mask.classes.end(), tensor.data<uint16_t>());
  else std::copy(mask.classes.begin(), mask.classes.end(), tensor.data<uint8_t>());
  return tensor;
}

Result<HostTensor> tensor_of_floats(const std::vector<float>& values, const Dims& shape) {
  SPARKLE_TRY(tensor, allocate_tensor(DType::f32, shape, "The answer"));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

Result<HostTensor> tensor_of(const Answer& a) {
  switch (a.task) {
    case Task::segment: return tensor_of_mask(a.mask);
    case Task::depth: return tensor_of_floats(a.picture.pixels, {a.picture.height, a.picture.width});
    case Task::embed: return tensor_of_floats(a.embedding, {static_cast<int64_t>(a.embedding.size())});
    case Task::upscale: {
      SPARKLE_TRY(tensor, allocate_tensor(DType::u8, {a.picture.height, a.picture.width, a.picture.channels}, "The picture"));
      to_bytes(a.picture.pixels, tensor.data<uint8_t>());
      return tensor;
    }
    default:
      return Error{Reason::bad_usage,
                   std::string("Answers of the task ") + name_of(a.task) + " are no tensor; ask for their classes or boxes."};
  }
}

Result<Mask> mask_of(const HostTensor& t) {
  if (t.shape.size() != 2 || (t.dtype != DType::u8 && t.dtype != DType::u16))
    return Error{Reason::bad_usage, "A mask is height x width of u8 or u16."};
  Mask mask{static_cast<int>(t.shape[1]), static_cast<int>(t.shape[0]), {}};
  const auto count = static_cast<size_t>(t.elements());
  if (t.dtype == DType::u8) mask.classes.assign(t.data<uint8_t>(), t.data<uint8_t>() + count);
  else mask.classes.assign(t.data<uint16_t>(), t.data<uint16_t>() + count);
  return mask;
}

Result<Answer> answer_of(Task task, const HostTensor& t) {
  Answer answer;
  answer.task = task;
  if (task == Task::segment) {
    SPARKLE_TRY(mask, mask_of(t));
    answer.mask = std::move(mask);
  } else if (task == Task::upscale) {
    SPARKLE_TRY(picture, picture_from_pixels(t));
    answer.picture = picture.image();
  } else if (task == Task::depth && t.shape.size() == 2 && t.dtype == DType::f32 && t.elements() > 0) {
    answer.picture = Image{static_cast<int>(t.shape[1]), static_cast<int>(t.shape[0]), 1,
                           std::vector<float>(t.data<float>(), t.data<float>() + t.elements())};
    const auto [least, most] = std::minmax_element(answer.picture.pixels.begin(), answer.picture.pixels.end());
    answer.least = *least, answer.most = *most;
  } else {
    return Error{Reason::bad_usage, "Tensors are answers of segment and upscale, and of depth as height x width of f32."};
  }
  return answer;
}

}  // namespace
}  // namespace sparkle::api

const char* sparkle_answer_task(const sparkle_answer* answer) {
  return answer ? sparkle::name_of(answer->found.answer.task) : "";
}
const char* sparkle_answer_why(const sparkle_answer* answer) { return answer ? answer->found.task.why.c_str() : ""; }
void sparkle_answer_release(sparkle_answer* answer) { delete answer; }

size_t sparkle_answer_class_count(const sparkle_answer* answer) {
  if (!answer) return 0;
  return answer->found.answer.task == Task::segment ? answer->shares.size() : answer->found.answer.classes.size();
}
size_t sparkle_answer_box_count(const sparkle_answer* answer) { return answer ? answer->found.answer.boxes.size() : 0; }

sparkle_status sparkle_answer_class(const sparkle_answer* answer, size_t number, sparkle_class* found) {
  return guarded([&]() -> Status {
    if (!answer || !found) return Error{Reason::bad_usage, "sparkle_answer_class needs an answer and a place for the class."};
    const size_t count = sparkle_answer_class_count(answer);
    if (number >= count) return sparkle::api::no_number(number, count, "classes");
    if (answer->found.answer.task == Task::segment) {
      const auto& [index, share] = answer->shares[number];
      *found = {index, sparkle::api::label_of(*answer, index), share, 0};
    } else {
      const sparkle::ClassScore& c = answer->found.answer.classes[number];
      *found = {c.index, sparkle::api::label_of(*answer, c.index), c.probability, c.value};
    }
    return sparkle::ok();
  });
}

sparkle_status sparkle_answer_box(const sparkle_answer* answer, size_t number, sparkle_box* found) {
  return guarded([&]() -> Status {
    if (!answer || !found) return Error{Reason::bad_usage, "sparkle_answer_box needs an answer and a place for the box."};
    const auto& boxes = answer->found.answer.boxes;
    if (number >= boxes.size()) return sparkle::api::no_number(number, boxes.size(), "boxes");
    const sparkle::FoundBox& b = boxes[number];
    *found = {b.x0, b.y0, b.x1, b.y1, b.score, b.label, sparkle::api::label_of(*answer, b.label)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_answer_tensor(const sparkle_answer* answer, sparkle_value** tensor) {
  return guarded([&]() -> Status {
    if (!answer || !tensor)
      return Error{Reason::bad_usage, "sparkle_answer_tensor needs an answer and a place for the tensor."};
    SPARKLE_TRY(made, sparkle::api::tensor_of(answer->found.answer));
    *tensor = new sparkle_value{std::move(made)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_answer_json(const sparkle_answer* answer, char** json) {
  return guarded([&]() -> Status {
    if (!answer || !json) return Error{Reason::bad_usage, "sparkle_answer_json needs an answer and a place for the text."};
    nlohmann::json said = sparkle::to_json(answer->found.answer, answer->labels);
    said["task_why"] = answer->found.task.why;
    *json = sparkle::api::new_text(said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return sparkle::ok();
  });
}

sparkle_status sparkle_answer_draw(const sparkle_answer* answer, const sparkle_picture* picture, sparkle_picture** drawn) {
  return guarded([&]() -> Status {
    if (!answer || !picture || !drawn)
      return Error{Reason::bad_usage, "sparkle_answer_draw needs an answer, a picture and a place for what is drawn."};
    const sparkle::Answer& a = answer->found.answer;
    const sparkle::Picture& p = picture->picture;
    if (a.task == Task::segment && (a.mask.width != p.width || a.mask.height != p.height))
      return Error{Reason::bad_usage, "The mask is " + std::to_string(a.mask.width) + "x" + std::to_string(a.mask.height) +
                                          " and the picture " + p.size_text() + "; give the one that was answered from."};
    *drawn = new sparkle_picture{sparkle::picture_from_image(sparkle::draw_answer(p.image(), a, answer->labels))};
    return sparkle::ok();
  });
}

sparkle_status sparkle_answer_of_boxes(const sparkle_box* boxes, size_t count, sparkle_answer** answer) {
  return guarded([&]() -> Status {
    if ((!boxes && count > 0) || !answer)
      return Error{Reason::bad_usage, "sparkle_answer_of_boxes needs boxes and a place for the answer."};
    sparkle::TaskAnswer found{{Task::detect, "as given"}, {}};
    found.answer.task = Task::detect;
    std::vector<std::string> labels;
    for (size_t i = 0; i < count; ++i) {
      const sparkle_box& b = boxes[i];
      constexpr float kFar = 1e9f;
      const bool inside = std::max({std::abs(b.x0), std::abs(b.y0), std::abs(b.x1), std::abs(b.y1)}) < kFar;
      if (b.index < 0 || b.index >= sparkle::api::kMostClasses || !inside)
        return Error{Reason::bad_usage, "Box " + std::to_string(i) + " has the class " + std::to_string(b.index) +
                                            " or corners that are no pixels; classes are numbered 0 to 65535."};
      found.answer.boxes.push_back({b.x0, b.y0, b.x1, b.y1, b.score, b.index});
      if (!b.label || !*b.label) continue;
      while (static_cast<int>(labels.size()) <= b.index) labels.push_back("class " + std::to_string(labels.size()));
      labels[static_cast<size_t>(b.index)] = b.label;
    }
    *answer = sparkle::api::new_answer(std::move(found), std::move(labels)).release();
    return sparkle::ok();
  });
}

sparkle_status sparkle_answer_of_tensor(const char* task, const sparkle_tensor* tensor, const char* const* names,
                                        size_t name_count, sparkle_answer** answer) {
  return guarded([&]() -> Status {
    if (!task || !tensor || !answer || (!names && name_count > 0))
      return Error{Reason::bad_usage, "sparkle_answer_of_tensor needs a task, a tensor, names and a place for the answer."};
    SPARKLE_TRY(borrowed, sparkle::api::borrow(tensor, 1, "tensor"));
    if (!borrowed[0].bytes.get()) return Error{Reason::bad_usage, "The data of the tensor is NULL."};
    SPARKLE_TRY(asked, sparkle::task_named(task));
    SPARKLE_TRY(made, sparkle::api::answer_of(asked, borrowed[0]));
    std::vector<std::string> labels;
    for (size_t i = 0; i < name_count; ++i) labels.emplace_back(names[i] ? names[i] : "");
    *answer = sparkle::api::new_answer({{asked, "as given"}, std::move(made)}, std::move(labels)).release();
    return sparkle::ok();
  });
}
