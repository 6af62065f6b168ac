#include "run/choice/together.h"

#include <algorithm>
#include <cstdio>

#include "base/text/format.h"

namespace sparkle {
namespace {

std::string in_ms(double seconds) { return format("%.3g ms", seconds * 1e3); }

class Chooser {
 public:
  Chooser(const std::vector<DeviceAlone>& devices, const TogetherPolicy& policy)
      : devices_(devices), policy_(policy), out_(devices.size()) {
    for (size_t i = 0; i < devices.size(); ++i)
      if (!devices[i].unusable.empty()) out_[i] = devices[i].unusable;
  }

  TogetherChoice decide() {
    share_cores();
    leave_small();
    TogetherChoice choice;
    double rate = 0;
    bool known = true;
    std::string names, alone;
    int used = 0;
    for (size_t i = 0; i < devices_.size(); ++i) {
      const DeviceAlone& d = devices_[i];
      choice.used.push_back(in(i));
      if (!in(i)) continue;
      ++used;
      names += (names.empty() ? "" : " and ") + d.name;
      if (d.seconds > 0) rate += 1 / d.seconds, alone += (alone.empty() ? "" : ", ") + d.name + " alone " + in_ms(d.seconds);
      else known = false;
    }
    if (known && rate > 0) choice.seconds = 1 / rate;
    choice.why = names + (used > 1 ? " together" : " alone");
    if (choice.seconds > 0)
      choice.why += ": predicted " + in_ms(choice.seconds) + " an item" + (used > 1 ? " (" + alone + ")" : std::string());
    for (size_t i = 0; i < devices_.size(); ++i)
      if (!in(i)) choice.why += "; without " + devices_[i].name + ", " + out_[i];
    return choice;
  }

 private:
  bool in(size_t i) const { return out_[i].empty(); }

  // Of several devices on the same cores only the fastest helps.
  void share_cores() {
    size_t best = devices_.size();
    for (size_t i = 0; i < devices_.size(); ++i)
      if (in(i) && devices_[i].on_host_cores &&
          (best == devices_.size() || (devices_[i].seconds > 0 && devices_[i].seconds < devices_[best].seconds)))
        best = i;
    for (size_t i = 0; i < devices_.size(); ++i)
      if (in(i) && devices_[i].on_host_cores && i != best) out_[i] = "whose cores are those of " + devices_[best].name;
  }

  // One by one, the slowest first: each share is of what those left do.
  void leave_small() {
    for (;;) {
      double rate = 0;
      size_t slowest = devices_.size();
      for (size_t i = 0; i < devices_.size(); ++i) {
        if (!in(i) || devices_[i].seconds <= 0) continue;
        rate += 1 / devices_[i].seconds;
        if (slowest == devices_.size() || devices_[i].seconds > devices_[slowest].seconds) slowest = i;
      }
      if (slowest == devices_.size()) return;
      const double share = 1 / devices_[slowest].seconds / rate;
      if (share >= policy_.least_share) return;
      char text[96];
      std::snprintf(text, sizeof text, "which would take %.1f %% of the items at %s each", 100 * share,
                    in_ms(devices_[slowest].seconds).c_str());
      out_[slowest] = text;
    }
  }

  const std::vector<DeviceAlone>& devices_;
  const TogetherPolicy policy_;
  std::vector<std::string> out_;  // why a device is left out; empty: it is not
};

}  // namespace

TogetherChoice choose_together(const std::vector<DeviceAlone>& devices, const TogetherPolicy& policy) {
  return Chooser(devices, policy).decide();
}

int threads_beside(int threads, double cpu_seconds, const std::vector<double>& gpu_seconds) {
  int left = threads;
  for (const double seconds : gpu_seconds) {
    // A thread does an item in cpu_seconds * threads.
    const bool more = cpu_seconds <= 0 || seconds <= 0 || seconds < cpu_seconds * threads;
    if (more && left - 1 >= (threads + 1) / 2) --left;
  }
  return left;
}

}  // namespace sparkle
