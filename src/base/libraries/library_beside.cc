#include "base/libraries/library_beside.h"

#include <dlfcn.h>

namespace sparkle {

Result<void*> entry_of_library(const std::string& name, const std::vector<std::string>& folders, const char* entry) {
  static const char inside = 0;  // an address of the file that this code lies in
  Dl_info here{};
  std::string own;
  if (::dladdr(&inside, &here) != 0 && here.dli_fname) own = here.dli_fname;
  own.resize(own.rfind('/') == std::string::npos ? 0 : own.rfind('/') + 1);
  std::vector<std::string> paths;
  if (!own.empty())
    for (const std::string& folder : folders) paths.push_back(own + folder + (folder.empty() ? "" : "/") + name);
  paths.push_back(name);
  void* library = nullptr;
  std::string why;
  for (const std::string& path : paths) {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* error = ::dlerror();
    // That a file is not there at all says less than what is wrong with one that is.
    if (why.empty() || why.find("No such file") != std::string::npos) why = error ? error : "";
  }
  void* const address = library ? ::dlsym(library, entry) : nullptr;
  if (!address)
    return Error{Reason::file_unreadable, name + " does not load (" + (library ? "it is of another version" : why) + ")"};
  return address;
}

}  // namespace sparkle
