// Several devices opened for one stream of items: which "all" are, and how many threads the CPU has beside the others.
#pragma once

#include "run/opening/open_backend.h"
#include "run/session.h"

namespace sparkle {

// Whether a text names several devices: "cpu,vulkan:0", or "all".
bool names_several_devices(const std::string& text);

struct TogetherRequest {
  std::string devices;     // in a list, one may be named more than once; "all": the CPU and each GPU here that is no software
  BackendOptions backend;  // but for the name. Without a number of threads the CPU leaves some for feeding (threads_beside)
  std::function<Result<std::unique_ptr<Session>>(const std::string& name, const OpenBackend&)> open;
  bool without_missing =
      false;  // a named device that cannot be used here is left out; where none is left the CPU takes its place
};
struct Together {
  std::vector<std::string> names;
  std::vector<OpenBackend> backends;
  std::vector<std::shared_ptr<Session>> sessions;
  std::string note;  // of all of them
};

// Errors: bad_usage for a name that is empty or "auto"; those of opening a device that is named, or its session. Of "all" what
// cannot be opened is left out, and the note says so; of a list what may be missing, which the events of the first backend say.
Result<Together> open_together(const TogetherRequest& request);

}  // namespace sparkle
