// Highway's debug assertions (active under the sanitizers) end in hwy::Abort, which lives in its shared library. Only its
// headers are used here, so this is the definition: a failed assertion is a bug of a kernel and ends the test that found it.
#include <hwy/base.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {

HWY_NORETURN void Abort(const char* file, int line, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  std::abort();
}

}  // namespace hwy
