// The devices of this machine by the names that sparkle_device_open takes; none is opened.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "api/handles.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_cuda.h"

using sparkle::Status;
using sparkle::api::guarded;

namespace {

// "vulkan:0  NAME, DRIVER; cannot be used: WHY", or "vulkan    none: WHY", as the openers say it.
void add_line(nlohmann::json& list, const std::string& line) {
  const size_t end = std::min(line.find(' '), line.size()), text = std::min(line.find_first_not_of(' ', end), line.size());
  const std::string name = line.substr(0, end);
  if (name.find(':') == std::string::npos) return;
  const std::string but = "; cannot be used: ";
  const size_t why = std::min(line.find(but, text), line.size());
  list.push_back({{"name", name},
                  {"device", line.substr(text, why - text)},
                  {"unusable", why < line.size() ? line.substr(why + but.size()) : ""}});
}

}  // namespace

sparkle_status sparkle_device_list(char** json) {
  return guarded([&]() -> Status {
    if (!json) return sparkle::Error{sparkle::Reason::bad_usage, "sparkle_device_list needs a place for the text."};
    nlohmann::json list = nlohmann::json::array();
    list.push_back({{"name", "cpu"}, {"device", ""}, {"unusable", ""}});
    for (const std::string& line : sparkle::cuda_devices()) add_line(list, line);
    for (const std::string& line : sparkle::vulkan_devices()) add_line(list, line);
    *json = sparkle::api::new_text(list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return sparkle::ok();
  });
}
