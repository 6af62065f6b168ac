#include "base/system/range_names.h"

#include <cstdlib>
#include <initializer_list>

#if defined(__unix__)
#include <dlfcn.h>
#endif

namespace sparkle {
namespace {

RangeNames look_up() {
  RangeNames names;
#if defined(__unix__)
  const char* tool = std::getenv("NVTX_INJECTION64_PATH");
  if (!tool || !*tool) return names;
  // CUDA 13 has the first, versions up to 12.8 the second; both hand what they are told to the tool.
  for (const char* file : {"libnvtx3interop.so.1", "libnvtx3interop.so", "libnvToolsExt.so.1"}) {
    void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    names.push = reinterpret_cast<int (*)(const char*)>(::dlsym(library, "nvtxRangePushA"));
    names.pop = reinterpret_cast<int (*)()>(::dlsym(library, "nvtxRangePop"));
    if (names.push && names.pop) return names;  // never unloaded: the tool has threads of its own
    ::dlclose(library);
    names = {};
  }
#endif
  return names;
}

}  // namespace

const RangeNames* range_names() {
  static const RangeNames names = look_up();
  return names.push ? &names : nullptr;
}

}  // namespace sparkle
