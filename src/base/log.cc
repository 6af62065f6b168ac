#include "base/log.h"

#include <mutex>
#include <shared_mutex>

namespace sparkle {
namespace {

struct Sink {
  std::shared_mutex mutex;
  LogSink call = nullptr;
  void* user = nullptr;
};
Sink& sink() {
  static Sink s;
  return s;
}

}  // namespace

void set_log(LogSink call, void* user) {
  const std::unique_lock lock(sink().mutex);  // nobody is inside the old sink any more when this returns
  sink().call = call;
  sink().user = user;
}

bool logging() {
  const std::shared_lock lock(sink().mutex);
  return sink().call != nullptr;
}

void log(LogLevel level, const std::string& message) {
  const std::shared_lock lock(sink().mutex);
  if (sink().call) sink().call(sink().user, level, message.c_str());
}

}  // namespace sparkle
