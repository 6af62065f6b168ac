#include "load_grpc.h"

#include <dlfcn.h>

namespace sparkle::cli {

Result<const serve::GrpcDoor*> load_grpc() {
  if (const std::string why = SPARKLE_NO_GRPC; !why.empty())
    return Error{Reason::bad_usage, "This build does not answer over gRPC: " + why + "; build it where that is otherwise."};
  const std::string name = "libsparkle_grpc.so." SPARKLE_SOVERSION;
  Dl_info here{};
  std::string folder;
  static const char inside = 0;  // an address of the command's
  if (::dladdr(&inside, &here) != 0 && here.dli_fname) folder = here.dli_fname;
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  // Beside the command, where an installed one has its libraries, or where the system looks. Nothing of it is visible to
  // others.
  void* library = nullptr;
  std::string why;
  for (const std::string& path : {folder + name, folder + SPARKLE_LIBRARY_FROM_COMMAND "/" + name, name}) {
    if (library || (folder.empty() && path != name)) continue;
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) continue;
    const char* error = ::dlerror();
    // That a file is not there at all says less than what is wrong with one that is.
    if (why.empty() || why.find("No such file") != std::string::npos) why = error ? error : "";
  }
  void* door = library ? ::dlsym(library, "sparkle_grpc_door") : nullptr;
  if (!door)
    return Error{Reason::file_unreadable, "gRPC is not answered: " + name + " does not load (" +
                                              (library ? "it is of another version" : why) +
                                              "); install it beside the command, with libgrpc++1.51 (Debian 12)."};
  return reinterpret_cast<const serve::GrpcDoor* (*)()>(door)();
}

}  // namespace sparkle::cli
