// The part of sparkle._core that sparkle/vision.py is made of: pictures, tasks and answers, the interpreter lock released while
// Sparkle works.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <sparkle/vision.hpp>

#include "core.h"

namespace core {
namespace {

namespace vision = sparkle::vision;

using Text = std::string;
using Row = std::tuple<float, float, float, float, float, int, Text>;  // x0, y0, x1, y1, score, index, label

nb::list classes_of(const vision::Answer& answer) {
  nb::list list;
  for (const vision::Class& c : answer.classes()) list.append(nb::make_tuple(c.index, c.label, c.probability, c.value));
  return list;
}

nb::list boxes_of(const vision::Answer& answer) {
  nb::list list;
  for (const vision::Box& b : answer.boxes()) list.append(nb::make_tuple(b.x0, b.y0, b.x1, b.y1, b.score, b.index, b.label));
  return list;
}

vision::Answer answer_of_boxes(const std::vector<Row>& rows) {
  std::vector<vision::Box> boxes;
  for (const auto& [x0, y0, x1, y1, score, index, label] : rows) boxes.push_back({x0, y0, x1, y1, score, index, label});
  return vision::Answer(boxes);
}

void bind_answers(nb::module_& m) {
  nb::class_<vision::Answer>(m, "Answer")
      .def_static("of_boxes", &answer_of_boxes, nb::arg("rows"))
      .def_static(
          "of_array",
          [](const Text& task, const nb::object& array, const std::vector<Text>& names) {
            const Borrowed from = borrow(array, std::nullopt, "The array");
            return unlocked([&] { return vision::Answer(task, from.tensor, names); });
          },
          nb::arg("task"), nb::arg("array"), nb::arg("names"))
      .def("task", &vision::Answer::task)
      .def("why", &vision::Answer::why)
      .def("classes", &classes_of)
      .def("boxes", &boxes_of)
      .def("array", [](const vision::Answer& a) { return array_of(unlocked([&] { return a.tensor(); })); })
      .def("json", &vision::Answer::json)
      .def(
          "draw",
          [](const vision::Answer& a, const vision::Picture& picture) { return unlocked([&] { return a.draw(picture); }); },
          nb::arg("picture"));
}

}  // namespace

void bind_vision(nb::module_& m) {
  nb::class_<vision::Picture>(m, "Picture")
      .def_static(
          "read", [](const Text& path) { return unlocked([&] { return vision::Picture(path); }); }, nb::arg("path"))
      .def_static(
          "decode", [](const nb::bytes& file) { return unlocked([&] { return vision::Picture(file.data(), file.size()); }); },
          nb::arg("file"))
      .def_static(
          "of_pixels",
          [](const nb::object& array) {
            const Borrowed from = borrow(array, std::nullopt, "The picture");
            return unlocked([&] { return vision::Picture(from.tensor); });
          },
          nb::arg("array"))
      .def("pixels", [](const vision::Picture& p) { return array_of(unlocked([&] { return p.pixels(); })); })
      .def("write", [](const vision::Picture& p, const Text& path) { unlocked([&] { p.write(path); }); }, nb::arg("path"));

  bind_answers(m);

  {  // All there are: one more does not compile before Python has it below.
    [[maybe_unused]] const auto& [task, preset, fit, color, resize, crop, scale, mean, std, pad_value, labels, names, top,
                                  threshold, overlap, tile, tile_overlap] = vision::TaskOptions();
  }
  nb::class_<vision::TaskOptions>(m, "TaskOptions")
      .def(nb::init<>())
      .def_rw("task", &vision::TaskOptions::task)
      .def_rw("preset", &vision::TaskOptions::preset)
      .def_rw("fit", &vision::TaskOptions::fit)
      .def_rw("color", &vision::TaskOptions::color)
      .def_rw("resize", &vision::TaskOptions::resize)
      .def_rw("crop", &vision::TaskOptions::crop)
      .def_rw("scale", &vision::TaskOptions::scale)
      .def_rw("mean", &vision::TaskOptions::mean)
      .def_rw("std", &vision::TaskOptions::std)
      .def_rw("pad_value", &vision::TaskOptions::pad_value)
      .def_rw("labels", &vision::TaskOptions::labels)
      .def_rw("names", &vision::TaskOptions::names)
      .def_rw("top", &vision::TaskOptions::top)
      .def_rw("threshold", &vision::TaskOptions::threshold)
      .def_rw("overlap", &vision::TaskOptions::overlap)
      .def_rw("tile", &vision::TaskOptions::tile)
      .def_rw("tile_overlap", &vision::TaskOptions::tile_overlap);

  nb::class_<vision::Task>(m, "PictureTask")
      .def(
          "__init__",
          [](vision::Task* self, const sparkle::Session& session, const vision::TaskOptions& options) {
            new (self) vision::Task(unlocked([&] { return vision::Task(session, options); }));
          },
          nb::arg("session"), nb::arg("options"))
      .def("describe", &vision::Task::describe)
      .def(
          "preprocess",
          [](const vision::Task& task, const vision::Picture& picture) {
            return array_of(unlocked([&] { return task.preprocess(picture); }));
          },
          nb::arg("picture"))
      .def(
          "answer",
          [](const vision::Task& task, const vision::Picture& picture) { return unlocked([&] { return task(picture); }); },
          nb::arg("picture"))
      .def(
          "answer_outputs",
          [](const vision::Task& task, const vision::Picture& picture, const std::vector<nb::object>& outputs,
             const std::vector<Text>& dtypes) {
            std::vector<Borrowed> borrowed;
            std::vector<sparkle::Tensor> tensors;
            for (size_t i = 0; i < outputs.size(); ++i) {
              const auto type = i < dtypes.size() ? std::optional(type_named(dtypes[i])) : std::nullopt;
              borrowed.push_back(borrow(outputs[i], type, "The output " + std::to_string(i)));
              tensors.push_back(borrowed.back().tensor);
            }
            return unlocked([&] { return task.answer(picture, tensors); });
          },
          nb::arg("picture"), nb::arg("outputs"), nb::arg("dtypes"));
}

}  // namespace core
