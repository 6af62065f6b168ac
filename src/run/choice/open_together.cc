#include "run/choice/open_together.h"

#include <algorithm>

#include "run/choice/predicted.h"
#include "run/choice/together.h"
#include "run/opening/open_cuda.h"

namespace sparkle {
namespace {

Result<std::vector<std::string>> split(const std::string& list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    if (name.empty() || name == "auto" || name == "all")
      return Error{Reason::bad_usage, "'" + list + "' is no list of devices; write names alone, as in cpu,vulkan:0, or all."};
    names.push_back(name);
    begin = end + 1;
  }
  return names;
}

// Those that the lists of GPUs have with a number.
std::vector<std::string> gpus_here() {
  std::vector<std::string> names;
  for (const auto& list : {cuda_devices(), vulkan_devices()})
    for (const std::string& line : list)
      if (const std::string name = line.substr(0, line.find(' ')); name.find(':') != std::string::npos) names.push_back(name);
  return names;
}

class Opener {
 public:
  explicit Opener(const TogetherRequest& request) : request_(request) {}

  Result<Together> open() {
    if (request_.devices == "all") SPARKLE_CHECK(open_all());
    else SPARKLE_CHECK(open_named());
    if (request_.backend.threads == 0) SPARKLE_CHECK(leave_threads());
    for (const OpenBackend& opened : together_.backends) say(opened.note);
    together_.note += left_out_;
    return std::move(together_);
  }

 private:
  Result<OpenBackend> backend(const std::string& name, int threads) const {
    BackendOptions options = request_.backend;
    options.name = name;
    if (threads > 0) options.threads = threads;
    if (name != "cpu") options.unit.clear();
    return open_backend(options);
  }
  Status add(const std::string& name, OpenBackend opened) {
    SPARKLE_TRY(session, request_.open(name, opened));
    together_.names.push_back(name);
    together_.backends.push_back(std::move(opened));
    together_.sessions.push_back(std::move(session));
    return ok();
  }
  void say(const std::string& text) { together_.note += (together_.note.empty() ? "" : "; ") + text; }

  Status open_named() {
    SPARKLE_TRY(names, split(request_.devices));
    std::vector<OpenBackend> opened;
    std::vector<std::pair<std::string, Error>> missing;
    for (auto name = names.begin(); name != names.end();) {
      auto one = backend(*name, 0);
      const bool may_miss = request_.without_missing && *name != "cpu";
      if (!one.ok() && !(may_miss && one.error().reason == Reason::device_unusable)) return one.take_error();
      if (one.ok()) {
        opened.push_back(std::move(*one)), ++name;
        continue;
      }
      missing.emplace_back(*name, one.take_error());
      name = names.erase(name);
    }
    if (names.empty()) {
      SPARKLE_TRY(cpu, backend("cpu", 0));
      names.push_back("cpu"), opened.push_back(std::move(cpu));
    }
    for (const auto& [name, why] : missing)
      opened[0].events.push_back(event_without(name, opened[0].backend->device().name, why, names));
    for (size_t i = 0; i < names.size(); ++i) SPARKLE_CHECK(add(names[i], std::move(opened[i])));
    return ok();
  }
  static FallbackEvent event_without(const std::string& name, const std::string& to, const Error& why,
                                     const std::vector<std::string>& left) {
    std::string others;
    for (const std::string& other : left) others += (others.empty() ? "" : ", ") + other;
    return {"device", name, to, why.reason, 0, "", why.message + " The items go to " + others + " without it."};
  }

  Status open_all() {
    SPARKLE_TRY(cpu, backend("cpu", 0));
    SPARKLE_CHECK(add("cpu", std::move(cpu)));
    bool cuda = false;
    for (const std::string& name : gpus_here()) {
      auto opened = backend(name, 0);
      if (opened.ok()) {
        const Device& device = opened->backend->device();
        if (device.is_software()) continue;
        // The same card by two drivers is one device.
        if (cuda && name.starts_with("vulkan") && device.vendor == "NVIDIA") continue;
        cuda = cuda || name.starts_with("cuda");
      }
      const Status added = opened.ok() ? add(name, std::move(*opened)) : Status(opened.error());
      if (!added.ok()) left_out_ += "; without " + name + ": " + added.error().message;
    }
    return ok();
  }

  // Seconds of a run of the shapes that the model fixes; 0: it leaves some open.
  static double predicted(Session& session) {
    std::vector<HostTensor> inputs;
    for (const SessionInput& in : session.inputs()) {
      for (const int64_t size : in.shape)
        if (size < 0) return 0;
      inputs.push_back({in.dtype, in.shape, nullptr});
    }
    const auto plan = session.prepare(inputs);
    return plan.ok() ? (*plan)->predicted_seconds() + predicted_transfers(**plan, session.backend()->device(), inputs) : 0;
  }

  // Opens the CPU anew with fewer threads where the GPUs want some.
  Status leave_threads() {
    const auto cpu = std::find(together_.names.begin(), together_.names.end(), "cpu");
    if (cpu == together_.names.end()) return ok();
    const auto at = static_cast<size_t>(cpu - together_.names.begin());
    std::vector<double> gpus;
    for (size_t i = 0; i < together_.names.size(); ++i) {
      const Device& device = together_.backends[i].backend->device();
      if (device.has_workgroups() && !device.is_software()) gpus.push_back(predicted(*together_.sessions[i]));
    }
    const int threads = together_.backends[at].backend->executor().width();
    const int left = gpus.empty() ? threads : threads_beside(threads, predicted(*together_.sessions[at]), gpus);
    if (left == threads) return ok();
    SPARKLE_TRY(opened, backend("cpu", left));
    opened.note += ", " + std::to_string(threads - left) + " left for feeding the others";
    opened.events = together_.backends[at].events;
    SPARKLE_TRY(session, request_.open("cpu", opened));
    together_.sessions[at] = std::move(session);
    together_.backends[at] = std::move(opened);
    return ok();
  }

  const TogetherRequest& request_;
  Together together_;
  std::string left_out_;
};

}  // namespace

bool names_several_devices(const std::string& text) { return text == "all" || text.find(',') != std::string::npos; }

Result<Together> open_together(const TogetherRequest& request) { return Opener(request).open(); }

}  // namespace sparkle
