// JPEG by libjpeg-turbo: baseline and progressive, grey, colour and CMYK, turned upright as EXIF says.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>
// These two want stdio.h before them.
#include <jpeglib.h>

#include <jerror.h>

#include "vision/decoders/decoders.h"
#include "vision/decoders/upright.h"
#include "vision/pictures/picture_size.h"

namespace sparkle {
namespace {

constexpr int kMostScans = 200;  // of a progressive file; encoders write a dozen, and each goes over the whole picture

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg knows no more of it
  std::jmp_buf back;
  char sentence[JMSG_LENGTH_MAX];
  bool damaged;
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  if (errors->sentence[0] == '\0') info->err->format_message(info, errors->sentence);
  std::longjmp(errors->back, 1);
}

// What the decoder would make up for is damage.
void take_warning(j_common_ptr info, int level) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  const int code = info->err->msg_code;
  if (level >= 0 || errors->damaged) return;
  if (code != JWRN_HIT_MARKER && code != JWRN_JPEG_EOF && code != JWRN_HUFF_BAD_CODE) return;
  errors->damaged = true;
  info->err->format_message(info, errors->sentence);
}

void check_scans(j_common_ptr info) {
  if (!info->is_decompressor || reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  std::snprintf(reinterpret_cast<JpegErrors*>(info->err)->sentence, JMSG_LENGTH_MAX, "more than %d scans", kMostScans);
  leave(info);
}

// Adobe writes inks inverted: 255 is none.
void cmyk_to_rgb(const unsigned char* from, unsigned char* to, int width, bool inverted) {
  for (int x = 0; x < width; ++x, from += 4, to += 3)
    for (int c = 0; c < 3; ++c) {
      const int ink = inverted ? from[c] : 255 - from[c], black = inverted ? from[3] : 255 - from[3];
      to[c] = static_cast<unsigned char>((ink * black + 127) / 255);
    }
}

int orientation_of(const jpeg_decompress_struct& info) {
  for (const jpeg_marker_struct* m = info.marker_list; m; m = m->next)
    if (m->marker == JPEG_APP0 + 1 && m->data_length > 6 && std::memcmp(m->data, "Exif\0", 6) == 0)
      return exif_orientation(std::as_bytes(std::span(m->data + 6, m->data_length - 6)));
  return 1;
}

// All that a decoding makes lies here, where a jump out of libjpeg leaves it alone.
struct JpegDecoding {
  jpeg_decompress_struct info;
  JpegErrors errors;
  jpeg_progress_mgr progress;
  Picture picture;
  std::shared_ptr<uint8_t[]> samples;
  std::vector<unsigned char> line;
  Status size = ok();
  int orientation = 1;
};

// False: libjpeg or the size refused.
bool decode(JpegDecoding& d, const PictureFile& file) {
  jpeg_decompress_struct& info = d.info;
  if (setjmp(d.errors.back) != 0) return false;
  jpeg_create_decompress(&info);
  info.progress = &d.progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.bytes.data()), file.bytes.size());
  jpeg_save_markers(&info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&info, TRUE);
  d.size = check_picture_size(info.image_width, info.image_height, file.name, file.max_pixels);
  if (!d.size.ok()) return false;
  const bool cmyk = info.num_components == 4;
  info.out_color_space = cmyk ? JCS_CMYK : info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  d.picture.width = static_cast<int>(info.image_width), d.picture.height = static_cast<int>(info.image_height);
  d.picture.stored = info.num_components == 1 ? 1 : 3;
  const size_t row = static_cast<size_t>(d.picture.width) * static_cast<size_t>(d.picture.stored);
  d.samples.reset(new uint8_t[row * static_cast<size_t>(d.picture.height)]());
  if (cmyk) d.line.resize(static_cast<size_t>(d.picture.width) * 4);
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    unsigned char* to = d.samples.get() + row * info.output_scanline;
    unsigned char* raw = cmyk ? d.line.data() : to;
    if (jpeg_read_scanlines(&info, &raw, 1) != 1) break;
    if (cmyk) cmyk_to_rgb(d.line.data(), to, d.picture.width, info.saw_Adobe_marker != FALSE);
  }
  d.orientation = orientation_of(info);
  jpeg_finish_decompress(&info);
  return !d.errors.damaged;
}

}  // namespace

Result<Picture> decode_jpeg(const PictureFile& file) {
  JpegDecoding d{};
  d.info.err = jpeg_std_error(&d.errors.manager);
  d.errors.manager.error_exit = leave;
  d.errors.manager.emit_message = take_warning;
  d.errors.manager.output_message = [](j_common_ptr) {};
  d.progress.progress_monitor = check_scans;
  const bool decoded = decode(d, file);
  jpeg_destroy_decompress(&d.info);
  if (!d.size.ok()) return d.size.take_error();
  if (!decoded)
    return Error{Reason::bad_format, "'" + file.name + "' is a damaged JPEG file, or of a kind that is not read (" +
                                         std::string(d.errors.sentence) + "); save it again."};
  d.picture.samples = {d.samples, d.samples.get()};
  return turned_upright(std::move(d.picture), d.orientation);
}

}  // namespace sparkle
