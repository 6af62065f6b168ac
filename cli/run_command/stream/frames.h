// Frames: raw pictures one behind the other from a pipe or a file, as `ffmpeg -f rawvideo -pix_fmt rgb24` writes them.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/files/byte_stream.h"
#include "vision/pictures/picture.h"

namespace sparkle::cli {

class Frames {
 public:
  // `path`: a file, or "-" for standard input; `size`: "1280x720". Errors: bad_usage, file_unreadable.
  static Result<std::unique_ptr<Frames>> open(const std::string& path, const std::string& size);
  // Frame `number`, counted from 0, for whichever of several threads; each number is asked for once. Nothing: the stream has
  // ended before it. Errors: bad_format where it ends within the frame.
  std::optional<Result<Picture>> next(int64_t number);

 private:
  Frames() = default;
  int width_ = 0, height_ = 0;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::unique_ptr<ByteStream> stream_;
  int64_t at_ = 0;
  bool ended_ = false;
};

}  // namespace sparkle::cli
