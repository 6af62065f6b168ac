// A Chrome trace ("Trace Event Format", JSON) as it grows: what Perfetto and chrome://tracing open. Times come in seconds and
// are written in microseconds.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace sparkle {

class ChromeTrace {
 public:
  void process(const std::string& text, int process = 1) {
    events_.push_back({{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", text}}}});
  }
  // Tracks are sorted by their numbers.
  void name(int track, const std::string& text, int process = 1) {
    events_.push_back({{"ph", "M"}, {"pid", process}, {"tid", track}, {"name", "thread_name"}, {"args", {{"name", text}}}});
    events_.push_back(
        {{"ph", "M"}, {"pid", process}, {"tid", track}, {"name", "thread_sort_index"}, {"args", {{"sort_index", track}}}});
  }
  void span(int track, const std::string& name, const char* kind, double begin, double end,
            nlohmann::json args = nlohmann::json::object(), int process = 1) {
    events_.push_back({{"ph", "X"},
                       {"pid", process},
                       {"tid", track},
                       {"name", name},
                       {"cat", kind},
                       {"ts", begin * 1e6},
                       {"dur", std::max(0.0, end - begin) * 1e6},
                       {"args", std::move(args)}});
  }
  void memory(double at, int64_t bytes) {
    events_.push_back({{"ph", "C"}, {"pid", 1}, {"name", "tensors in use"}, {"ts", at * 1e6}, {"args", {{"bytes", bytes}}}});
  }
  // A sentence across all tracks.
  void note(double at, const std::string& text) {
    events_.push_back({{"ph", "i"}, {"s", "g"}, {"pid", 1}, {"tid", 0}, {"name", text}, {"ts", at * 1e6}});
  }
  // `counted`: what is not drawn, as it is called.
  std::string text(const std::string& counted, int64_t left_out) const {
    const nlohmann::json all{{"displayTimeUnit", "ms"}, {"traceEvents", events_}, {"otherData", {{counted, left_out}}}};
    return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

 private:
  nlohmann::json events_ = nlohmann::json::array();
};

}  // namespace sparkle
