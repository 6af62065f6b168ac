// A peer's shared library, loaded at run time: the build needs none of them, and a program without them starts all the same.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace sparkle::cli {

class Library {
 public:
  // Errors: device_unusable with the loader's own words.
  static Result<std::shared_ptr<Library>> open(const std::string& peer, const std::string& file) {
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return Error{Reason::device_unusable, "The library of " + peer + " cannot be loaded: " + std::string(::dlerror()) + "."};
    return std::shared_ptr<Library>(new Library(peer, file, handle));
  }
  // Never unloaded: its threads may still be at work.
  template <class F>
  Status find(F& function, const char* name) const {
    function = reinterpret_cast<F>(::dlsym(handle_, name));
    if (function) return ok();
    return Error{Reason::device_unusable,
                 "The library '" + file_ + "' has no function '" + name + "', so it is not a usable " + peer_ + "."};
  }
  bool has(const char* name) const { return ::dlsym(handle_, name) != nullptr; }

 private:
  Library(std::string peer, std::string file, void* handle) : peer_(std::move(peer)), file_(std::move(file)), handle_(handle) {}
  std::string peer_, file_;
  void* handle_;
};

}  // namespace sparkle::cli
