// Fallback by contract: what a session does where a device has no fast kernel, or goes away, and the events that tell of it.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace sparkle {

// forbid: an error that names the layer or the device. warn: it is done and told as a warning. allow: told as a note.
enum class Fallback : uint8_t { forbid, warn, allow };
std::string_view name_of(Fallback fallback);
bool parse_name(std::string_view text, Fallback& fallback);

// Something that was done in another way than a caller may expect.
struct FallbackEvent {
  std::string what;      // "operator", "device" or "precision"
  std::string from, to;  // of an operator or a device: where it was to run and where it runs; of a precision: element types
  Reason reason = Reason::none;
  double cost = 0;      // predicted seconds that it takes in each run; 0 where nobody can tell, as for devices
  std::string layer;    // the step; empty for devices
  std::string message;  // one sentence
};

// Of a plan: steps on plain loops, steps on the host of a device that has no kernel for them, and steps that widen floats of 16
// bits because a kernel does not take them.
std::vector<FallbackEvent> fallbacks_of(const Plan& plan, const PlanSettings& settings);

// Errors: no_kernel naming the first layer that falls back, where that is forbidden. Conversions of types are exact, and so are
// never forbidden.
Status check_fallback(const std::vector<FallbackEvent>& events, Fallback fallback);

// Whether another device may do what this one did not: it is lost, has no memory left, or its driver refuses what it should do.
bool is_of_the_device(const Error& error);

// The events of a session, in their order, each layer's once; any thread may add and read. Events stay where they are, so that
// their texts may be handed out for as long as the list lives.
class EventList {
 public:
  static constexpr size_t kMost = 256;  // what comes after these is logged alone

  // Keeps and logs it: a warning, or under `allow` a note. A device that changes is always a warning.
  void add(FallbackEvent event, Fallback fallback);
  size_t size() const;
  const FallbackEvent* at(size_t index) const;  // nullptr: there is none
  std::vector<FallbackEvent> all() const;

 private:
  mutable std::mutex mutex_;
  std::deque<FallbackEvent> events_;
};

}  // namespace sparkle
