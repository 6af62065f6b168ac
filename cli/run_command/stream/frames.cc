#include "run_command/stream/frames.h"

#include "base/record.h"
#include "base/system/out_of_memory.h"

namespace sparkle::cli {

Result<std::unique_ptr<Frames>> Frames::open(const std::string& path, const std::string& size) {
  const size_t x = size.find('x');
  int64_t width = 0, height = 0;
  const bool good = x != std::string::npos && record_detail::parse_number(std::string_view(size).substr(0, x), width) &&
                    record_detail::parse_number(std::string_view(size).substr(x + 1), height);
  if (!good || width < 1 || height < 1 || width > 65536 || height > 65536 || width * height > kMaxPixels)
    return Error{Reason::bad_usage, "--frames '" + size + "' is no size of frames; write 1280x720."};
  std::unique_ptr<Frames> frames(new Frames);
  frames->width_ = static_cast<int>(width), frames->height_ = static_cast<int>(height);
  SPARKLE_TRY(stream, ByteStream::open(path, "frames"));
  frames->stream_ = std::move(stream);
  return frames;
}

std::optional<Result<Picture>> Frames::next(int64_t number) {
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [&] { return at_ == number; });
  auto picture = guard_memory("Reading a frame", [&]() -> Result<Picture> {
    Picture p;
    p.width = width_, p.height = height_;
    const size_t bytes = static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3;
    const std::shared_ptr<uint8_t[]> samples(new uint8_t[bytes]);
    const size_t got = ended_ ? 0 : stream_->read(samples.get(), bytes);
    ended_ = got < bytes;
    if (got > 0 && got < bytes)
      return Error{Reason::bad_format, "Frame " + std::to_string(number) + " ends after " + std::to_string(got) + " of its " +
                                           std::to_string(bytes) + " bytes; frames are raw rgb24 of " + p.size_text() + "."};
    if (got > 0) p.samples = samples;
    return p;
  });
  ++at_;
  lock.unlock();
  turn_.notify_all();
  if (picture.ok() && !picture->samples) return {};
  return picture;
}

}  // namespace sparkle::cli
