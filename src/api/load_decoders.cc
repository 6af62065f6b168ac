// The decoders of pictures for libsparkle.so: libsparkle_pictures.so, which lies beside it and links the libraries of the
// formats. Who reads no pictures needs none of these.
#include <dlfcn.h>

#include <string>

#include "vision/decoders/decoders.h"

namespace sparkle {
namespace {

Result<const Decoders*> load() {
  const std::string name = "libsparkle_pictures.so." SPARKLE_SOVERSION;
  Dl_info here{};
  std::string path;
  static const char inside = 0;  // an address of this library's
  if (::dladdr(&inside, &here) != 0 && here.dli_fname) path = here.dli_fname;
  path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  void* library = path.empty() ? nullptr : ::dlopen((path + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* why = library ? nullptr : ::dlerror();
  void* door = library ? ::dlsym(library, "sparkle_picture_decoders") : nullptr;
  if (!door)
    return Error{Reason::file_unreadable,
                 "Pictures of this format cannot be read or written: " + name + " does not load (" +
                     std::string(why ? why : "it is of another version") +
                     "); install it beside libsparkle.so with the libraries that it names, or give pixels as an array."};
  return reinterpret_cast<const Decoders* (*)()>(door)();
}

}  // namespace

Result<const Decoders*> decoders() {
  static const Result<const Decoders*> loaded = load();
  return loaded;
}

}  // namespace sparkle
