// Pictures and tasks of vision.h.
#include "api/vision_handles.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/system/out_of_memory.h"
#include "onnx/metadata.h"
#include "vision/tasks/labels.h"

using sparkle::Error;
using sparkle::HostTensor;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

namespace {

Status takes(bool all, const char* sentence) { return all ? sparkle::ok() : Status(Error{Reason::bad_usage, sentence}); }

Status give_picture(sparkle::Result<sparkle::Picture> made, sparkle_picture** picture) {
  if (!made.ok()) return made.take_error();
  *picture = new sparkle_picture{std::move(*made)};
  return sparkle::ok();
}

Status take_words(const sparkle_vision_options& given, sparkle::PictureTaskOptions& options) {
  // All there are: one more does not compile before it is looked at here.
  const auto& [size, task, preset, fit, color, resize, crop, scale, mean, std, pad_value, labels, names, name_count, top,
               threshold, overlap, tile, tile_overlap] = given;
  (void)size;
  const auto text = [](const char* from, std::string& to) {
    if (from) to = from;
  };
  text(task, options.task), text(preset, options.words.preset), text(fit, options.words.fit);
  text(color, options.words.color), text(resize, options.words.size), text(crop, options.words.crop);
  text(scale, options.words.scale), text(mean, options.words.mean), text(std, options.words.std);
  text(pad_value, options.words.pad_value);
  SPARKLE_CHECK(takes(!labels || name_count == 0, "Names of classes come from a file or from a list; give one of both."));
  SPARKLE_CHECK(takes(name_count == 0 || names, "The list of the names of classes is NULL."));
  for (size_t i = 0; i < name_count; ++i) {
    SPARKLE_CHECK(takes(names[i], "A name of a class is NULL."));
    options.labels.emplace_back(names[i]);
  }
  if (labels) {
    SPARKLE_TRY(read, sparkle::read_labels(labels));
    options.labels = std::move(read);
  }
  SPARKLE_CHECK(takes(top >= 0, "top is how many classes an answer has, 1 or more, 0 for 5."));
  SPARKLE_CHECK(takes(threshold <= 1, "threshold is a score, 0 to 1."));
  SPARKLE_CHECK(takes(overlap <= 1, "overlap is a share of the union of two boxes, 0 to 1."));
  SPARKLE_CHECK(takes(tile <= 65536 && tile_overlap <= 4096, "tile is at most 65536 pixels, tile_overlap at most 4096."));
  if (top > 0) options.answer.top = top;
  if (threshold != 0) options.answer.detect.threshold = std::max(threshold, 0.f);
  if (overlap != 0) options.answer.detect.overlap = std::max(overlap, 0.f);
  if (tile != 0) options.tiles.tile = std::max(tile, 0);
  if (tile_overlap != 0) options.tiles.overlap = std::max(tile_overlap, 0);
  return sparkle::ok();
}

}  // namespace

sparkle_status sparkle_picture_read(const char* path, sparkle_picture** picture) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(path && picture, "sparkle_picture_read needs a path and a place for the picture."));
    return give_picture(sparkle::read_picture(path), picture);
  });
}

sparkle_status sparkle_picture_decode(const void* file, size_t bytes, const char* name, sparkle_picture** picture) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(
        takes((file || bytes == 0) && picture, "sparkle_picture_decode needs a file's bytes and a place for the picture."));
    return give_picture(
        sparkle::read_picture_bytes({static_cast<const std::byte*>(file), bytes}, name ? name : "the bytes given"), picture);
  });
}

sparkle_status sparkle_picture_from_pixels(const sparkle_tensor* pixels, sparkle_picture** picture) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(pixels && picture, "sparkle_picture_from_pixels needs pixels and a place for the picture."));
    SPARKLE_TRY(borrowed, sparkle::api::borrow(pixels, 1, "tensor of pixels"));
    SPARKLE_CHECK(takes(borrowed[0].bytes.get() || borrowed[0].elements() == 0, "The data of the pixels is NULL."));
    SPARKLE_TRY(made, sparkle::picture_from_pixels(borrowed[0]));
    SPARKLE_TRY(own, sparkle::allocate_tensor(borrowed[0].dtype, borrowed[0].shape, "The picture"));
    std::memcpy(own.bytes.get(), borrowed[0].bytes.get(), static_cast<size_t>(own.size_bytes()));
    made.samples = std::shared_ptr<const void>(own.bytes, own.bytes.get());
    return give_picture(std::move(made), picture);
  });
}

int32_t sparkle_picture_width(const sparkle_picture* picture) { return picture ? picture->picture.width : 0; }
int32_t sparkle_picture_height(const sparkle_picture* picture) { return picture ? picture->picture.height : 0; }
void sparkle_picture_release(sparkle_picture* picture) { delete picture; }

sparkle_status sparkle_picture_pixels(const sparkle_picture* picture, sparkle_value** pixels) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(picture && pixels, "sparkle_picture_pixels needs a picture and a place for the pixels."));
    const sparkle::Picture& p = picture->picture;
    SPARKLE_TRY(made, sparkle::allocate_tensor(sparkle::DType::u8, {p.height, p.width, p.channels()}, "The pixels"));
    std::vector<float> line(static_cast<size_t>(p.width) * static_cast<size_t>(p.channels()));
    for (int y = 0; y < p.height; ++y) {
      p.row(y, line.data());
      sparkle::to_bytes(line, made.data<uint8_t>() + static_cast<size_t>(y) * line.size());
    }
    *pixels = new sparkle_value{std::move(made)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_picture_write(const sparkle_picture* picture, const char* path) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(picture && path, "sparkle_picture_write needs a picture and a path."));
    return sparkle::write_png(path, picture->picture.image());
  });
}

sparkle_status sparkle_vision_open(sparkle_session* session, const sparkle_vision_options* options, sparkle_vision** vision) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(session && vision, "sparkle_vision_open needs a session and a place for what is opened."));
    sparkle::PictureTaskOptions whole;
    whole.metadata = session->onnx.path.empty() ? session->metadata : sparkle::read_metadata(session->onnx.path);
    if (options) {
      SPARKLE_CHECK(sparkle::api::check_size("sparkle_vision_options", options->size, sizeof *options));
      SPARKLE_CHECK(take_words(*options, whole));
    }
    SPARKLE_TRY(opened, sparkle::PictureTask::open(session->session, std::move(whole)));
    *vision = new sparkle_vision{std::move(opened)};
    return sparkle::ok();
  });
}

void sparkle_vision_release(sparkle_vision* vision) { delete vision; }

sparkle_status sparkle_vision_describe(const sparkle_vision* vision, char** json) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(vision && json, "sparkle_vision_describe needs what was opened and a place for the text."));
    const auto task = vision->task->task();
    const nlohmann::json said{{"task", task ? nlohmann::json(sparkle::name_of(task->task)) : nlohmann::json()},
                              {"why", task ? task->why : ""},
                              {"preprocess", vision->task->note()},
                              {"labels", vision->task->labels()}};
    *json = sparkle::api::new_text(said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return sparkle::ok();
  });
}

sparkle_status sparkle_vision_preprocess(const sparkle_vision* vision, const sparkle_picture* picture, sparkle_value** input) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(vision && picture && input, "sparkle_vision_preprocess needs what was opened, a picture and a place."));
    SPARKLE_TRY(tensor, vision->task->tensor_of(picture->picture));
    *input = new sparkle_value{std::move(tensor)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_vision_answer(sparkle_vision* vision, const sparkle_picture* picture, sparkle_answer** answer) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(takes(vision && picture && answer, "sparkle_vision_answer needs what was opened, a picture and a place."));
    SPARKLE_TRY(found, vision->task->answer(picture->picture));
    *answer = sparkle::api::new_answer(std::move(found), vision->task->labels()).release();
    return sparkle::ok();
  });
}

sparkle_status sparkle_vision_answer_outputs(sparkle_vision* vision, const sparkle_picture* picture,
                                             const sparkle_tensor* outputs, size_t output_count, sparkle_answer** answer) {
  return guarded([&]() -> Status {
    SPARKLE_CHECK(
        takes(vision && picture && answer, "sparkle_vision_answer_outputs needs what was opened, a picture and a place."));
    SPARKLE_TRY(tensors, sparkle::api::borrow(outputs, output_count, "output"));
    for (const HostTensor& t : tensors)
      SPARKLE_CHECK(takes(t.bytes.get() || t.elements() == 0, "The data of an output is NULL."));
    SPARKLE_TRY(found, vision->task->answer_from(picture->picture, tensors));
    *answer = sparkle::api::new_answer(std::move(found), vision->task->labels()).release();
    return sparkle::ok();
  });
}
