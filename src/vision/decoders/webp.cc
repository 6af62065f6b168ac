// WebP by libwebp: lossy and lossless, with and without alpha; of moving pictures the first.
#include <webp/decode.h>
#include <webp/demux.h>

#include "vision/decoders/decoders.h"
#include "vision/decoders/upright.h"
#include "vision/pictures/picture_size.h"

namespace sparkle {
namespace {

struct Demuxed {
  explicit Demuxed(std::span<const std::byte> bytes)
      : data{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, demuxer(WebPDemux(&data)) {}
  ~Demuxed() { WebPDemuxDelete(demuxer); }
  Demuxed(const Demuxed&) = delete;
  Demuxed& operator=(const Demuxed&) = delete;
  WebPData data;
  WebPDemuxer* demuxer;
};

}  // namespace

Result<Picture> decode_webp(const PictureFile& file) {
  const auto damaged = [&] { return Error{Reason::bad_format, "'" + file.name + "' is a damaged WebP file; save it again."}; };
  const Demuxed demuxed(file.bytes);
  if (!demuxed.demuxer) return damaged();
  int orientation = 1;
  WebPChunkIterator exif{};
  if (WebPDemuxGetChunk(demuxed.demuxer, "EXIF", 1, &exif))
    orientation = exif_orientation(std::as_bytes(std::span(exif.chunk.bytes, exif.chunk.size)));
  WebPDemuxReleaseChunkIterator(&exif);
  WebPIterator frame{};
  const bool found = WebPDemuxGetFrame(demuxed.demuxer, 1, &frame) != 0;
  const WebPData data = frame.fragment;
  WebPDemuxReleaseIterator(&frame);  // the bytes are the file's
  WebPBitstreamFeatures features{};
  if (!found || WebPGetFeatures(data.bytes, data.size, &features) != VP8_STATUS_OK) return damaged();
  SPARKLE_CHECK(check_picture_size(features.width, features.height, file.name, file.max_pixels));
  Picture picture;
  picture.width = features.width, picture.height = features.height;
  picture.stored = features.has_alpha ? 4 : 3;
  const size_t row = static_cast<size_t>(picture.width) * static_cast<size_t>(picture.stored);
  const size_t bytes = row * static_cast<size_t>(picture.height);
  const std::shared_ptr<uint8_t[]> samples(new uint8_t[bytes]());
  const auto decode = features.has_alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (!decode(data.bytes, data.size, samples.get(), bytes, static_cast<int>(row))) return damaged();
  picture.samples = {samples, samples.get()};
  return turned_upright(std::move(picture), orientation);
}

}  // namespace sparkle
