// Sparkle in C++: answers from pictures. See vision.h, whose functions these classes own and call.
//
//   sparkle::vision::Task task(session);
//   const sparkle::vision::Picture picture("cat.jpg");
//   for (const sparkle::vision::Box& box : task(picture).boxes()) std::cout << box.label << ' ' << box.score << '\n';
#ifndef SPARKLE_VISION_HPP
#define SPARKLE_VISION_HPP

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sparkle/sparkle.hpp"
#include "sparkle/vision.h"

namespace sparkle {
inline namespace api1 {
namespace vision {

// Pixels, decoded; copies share them.
class Picture {
 public:
  // A file, turned upright as its EXIF says; see sparkle_picture_read.
  explicit Picture(const std::string& path) {
    take([&](sparkle_picture** p) { return sparkle_picture_read(detail::whole(path), p); });
  }
  // The same by a literal.
  explicit Picture(const char* path) : Picture(std::string(path ? path : "")) {}
  // A file in memory. `name`: what errors call it.
  Picture(const void* file, size_t bytes, const std::string& name = "the bytes given") {
    take([&](sparkle_picture** p) { return sparkle_picture_decode(file, bytes, detail::whole(name), p); });
  }
  // Pixels, copied: height x width, or height x width x 1 to 4 channels, of Type::u8 or Type::u16.
  explicit Picture(const Tensor& pixels) {
    const sparkle_tensor t = pixels.c();
    take([&](sparkle_picture** p) { return sparkle_picture_from_pixels(&t, p); });
  }
  // Takes over a picture of the C interface.
  explicit Picture(sparkle_picture* picture) : handle_(picture, sparkle_picture_release) {}

  int width() const { return sparkle_picture_width(c()); }    // in pixels
  int height() const { return sparkle_picture_height(c()); }  // in pixels
  // Height x width x channels of Type::u8, 1 grey or 3 RGB.
  Tensor pixels() const {
    sparkle_value* value = nullptr;
    detail::check(sparkle_picture_pixels(c(), &value));
    return Tensor(value);
  }
  // As a PNG file.
  void write(const std::string& path) const { detail::check(sparkle_picture_write(c(), detail::whole(path))); }
  const sparkle_picture* c() const { return handle_.get(); }  // for the C interface

 private:
  template <class Make>
  void take(Make&& make) {
    sparkle_picture* picture = nullptr;
    detail::check(make(&picture));
    handle_ = std::shared_ptr<sparkle_picture>(picture, sparkle_picture_release);
  }
  std::shared_ptr<sparkle_picture> handle_;
};

// A class: its probability, or of a mask its share of the pixels.
struct Class {
  int64_t index = 0;       // its number
  std::string label;       // empty where nobody has named it
  double probability = 0;  // 0 to 1
  float value = 0;         // classify: as the network gives it
};

// Corners in pixels of the picture.
struct Box {
  float x0 = 0;       // left
  float y0 = 0;       // top
  float x1 = 0;       // right
  float y1 = 0;       // bottom
  float score = 0;    // 0 to 1
  int index = 0;      // of the class
  std::string label;  // its name; empty where nobody has named it
};

// What was found in a picture; copies share it.
class Answer {
 public:
  // Boxes to be drawn: those that are left of an answer's, or of the caller's own.
  explicit Answer(const std::vector<Box>& boxes) {
    std::vector<sparkle_box> list;
    for (const Box& b : boxes) list.push_back({b.x0, b.y0, b.x1, b.y1, b.score, b.index, detail::whole(b.label)});
    sparkle_answer* answer = nullptr;
    detail::check(sparkle_answer_of_boxes(list.data(), list.size(), &answer));
    handle_ = std::shared_ptr<sparkle_answer>(answer, sparkle_answer_release);
  }
  // The same of "segment", "upscale" or "depth"; see sparkle_answer_of_tensor.
  Answer(const std::string& task, const Tensor& tensor, const std::vector<std::string>& names = {}) {
    std::vector<const char*> list;
    for (const std::string& name : names) list.push_back(detail::whole(name));
    const sparkle_tensor t = tensor.c();
    sparkle_answer* answer = nullptr;
    detail::check(sparkle_answer_of_tensor(detail::whole(task), &t, list.data(), list.size(), &answer));
    handle_ = std::shared_ptr<sparkle_answer>(answer, sparkle_answer_release);
  }
  // Takes over an answer of the C interface.
  explicit Answer(sparkle_answer* answer) : handle_(answer, sparkle_answer_release) {}

  std::string task() const { return sparkle_answer_task(c()); }  // "detect"
  std::string why() const { return sparkle_answer_why(c()); }    // "guessed from output ...", "as asked for"
  // classify: the best; segment: those in the mask, with their share.
  std::vector<Class> classes() const {
    std::vector<Class> list;
    for (size_t i = 0, count = sparkle_answer_class_count(c()); i < count; ++i) {
      sparkle_class found{};
      detail::check(sparkle_answer_class(c(), i, &found));
      list.push_back({found.index, found.label, found.probability, found.value});
    }
    return list;
  }
  // detect: best first.
  std::vector<Box> boxes() const {
    std::vector<Box> list;
    for (size_t i = 0, count = sparkle_answer_box_count(c()); i < count; ++i) {
      sparkle_box b{};
      detail::check(sparkle_answer_box(c(), i, &b));
      list.push_back({b.x0, b.y0, b.x1, b.y1, b.score, b.index, b.label});
    }
    return list;
  }
  // The mask, the larger picture, the depths or the embedding; see sparkle_answer_tensor.
  Tensor tensor() const {
    sparkle_value* value = nullptr;
    detail::check(sparkle_answer_tensor(c(), &value));
    return Tensor(value);
  }
  // What `sparkle run --task` writes.
  std::string json() const {
    char* text = nullptr;
    detail::check(sparkle_answer_json(c(), &text));
    return detail::take_text(text);
  }
  // The picture that was answered from, with boxes or a mask's colours and a legend; see sparkle_answer_draw.
  Picture draw(const Picture& picture) const {
    sparkle_picture* drawn = nullptr;
    detail::check(sparkle_answer_draw(c(), picture.c(), &drawn));
    return Picture(drawn);
  }
  const sparkle_answer* c() const { return handle_.get(); }  // for the C interface

 private:
  std::shared_ptr<sparkle_answer> handle_;
};

// See sparkle_vision_options; empty: from the preset, the preset from the model.
struct TaskOptions {
  std::string task;                // "classify", "detect", "segment", "upscale", "depth", "embed"; empty: guessed
  std::string preset;              // "imagenet", "yolox" ...
  std::string fit;                 // "crop", "stretch", "letterbox", "none"
  std::string color;               // "rgb", "bgr", "grey"
  std::string resize;              // "320x240", or "256": the shorter side before cropping
  std::string crop;                // "224" or "320x240"
  std::string scale;               // "1/255"
  std::string mean;                // "0.5", or three with commas
  std::string std;                 // the same
  std::string pad_value;           // of letterboxes: "114"
  std::string labels;              // a file with the names of classes, one a line
  std::vector<std::string> names;  // or these
  int top = 5;                     // classes of an answer
  float threshold = 0.5f;          // boxes with a smaller score are left out
  float overlap = 0.45f;           // of two boxes of a class that share more of their union the better one stays
  int tile = 512;                  // pixels of a tile's side; 0: never cut
  int tile_overlap = 8;            // pixels that neighbouring tiles share
};

// A model and what lies around it; may be used by any number of threads at once. Copies share it.
class Task {
 public:
  // Keeps the session; see sparkle_vision_open. Throws where the model takes no picture and for options that do not fit.
  explicit Task(const Session& session, const TaskOptions& options = {}) {
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : detail::whole(s); };
    std::vector<const char*> list;
    for (const std::string& name : options.names) list.push_back(detail::whole(name));
    sparkle_vision_options given{};
    // All there are: one more does not compile before it is filled here.
    auto& [size, task, preset, fit, color, resize, crop, scale, mean, std, pad_value, labels, names, name_count, top, threshold,
           overlap, tile, tile_overlap] = given;
    size = sizeof given;
    task = text(options.task), preset = text(options.preset), fit = text(options.fit), color = text(options.color);
    resize = text(options.resize), crop = text(options.crop), scale = text(options.scale), mean = text(options.mean);
    std = text(options.std), pad_value = text(options.pad_value), labels = text(options.labels);
    names = list.data(), name_count = list.size(), top = options.top;
    threshold = options.threshold > 0 ? options.threshold : -1.f;
    overlap = options.overlap > 0 ? options.overlap : -1.f;
    tile = options.tile > 0 ? options.tile : -1, tile_overlap = options.tile_overlap > 0 ? options.tile_overlap : -1;
    sparkle_vision* vision = nullptr;
    detail::check(sparkle_vision_open(session.c(), &given, &vision));
    handle_ = std::shared_ptr<sparkle_vision>(vision, sparkle_vision_release);
  }

  // The task, why it is that one, how pictures become tensors and the names of classes, as JSON; see sparkle_vision_describe.
  std::string describe() const {
    char* text = nullptr;
    detail::check(sparkle_vision_describe(c(), &text));
    return detail::take_text(text);
  }
  // The model's input alone.
  Tensor preprocess(const Picture& picture) const {
    sparkle_value* value = nullptr;
    detail::check(sparkle_vision_preprocess(c(), picture.c(), &value));
    return Tensor(value);
  }
  // The answer from a picture.
  Answer operator()(const Picture& picture) const {
    sparkle_answer* answer = nullptr;
    detail::check(sparkle_vision_answer(c(), picture.c(), &answer));
    return Answer(answer);
  }
  // From the outputs of a run of the caller's on preprocess(picture).
  Answer answer(const Picture& picture, const std::vector<Tensor>& outputs) const {
    std::vector<sparkle_tensor> list;
    for (const Tensor& t : outputs) list.push_back(t.c());
    sparkle_answer* answer = nullptr;
    detail::check(sparkle_vision_answer_outputs(c(), picture.c(), list.data(), list.size(), &answer));
    return Answer(answer);
  }
  sparkle_vision* c() const { return handle_.get(); }  // for the C interface

 private:
  std::shared_ptr<sparkle_vision> handle_;
};

}  // namespace vision
}  // namespace api1
}  // namespace sparkle
#endif  // SPARKLE_VISION_HPP
