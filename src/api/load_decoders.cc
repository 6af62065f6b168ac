// The decoders of pictures for libsparkle.so: libsparkle_pictures.so, which lies beside it and links the libraries of the
// formats. Who reads no pictures needs none of these.
#include <string>

#include "base/libraries/library_beside.h"
#include "vision/decoders/decoders.h"

namespace sparkle {
namespace {

Result<const Decoders*> load() {
  const auto door = entry_of_library("libsparkle_pictures.so." SPARKLE_SOVERSION, {""}, "sparkle_picture_decoders");
  if (!door.ok())
    return Error{door.error().reason,
                 "Pictures of this format cannot be read or written: " + door.error().message +
                     "; install it beside libsparkle.so with the libraries that it names, or give pixels as an array."};
  return reinterpret_cast<const Decoders* (*)()>(*door)();
}

}  // namespace

Result<const Decoders*> decoders() {
  static const Result<const Decoders*> loaded = load();
  return loaded;
}

}  // namespace sparkle
