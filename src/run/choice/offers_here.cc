#include "run/choice/offers_here.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/cache_folder.h"
#include "base/files/read_file.h"
#include "base/median.h"
#include "base/record.h"
#include "run/choice/predicted.h"
#include "run/opening/open_cuda.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kMeasureSeconds = 0.3;
constexpr int kMostRuns = 15;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Named {
  std::string name, line;  // "vulkan:0", and what the list of devices says of it
};
// CPU first; of the lists of GPUs the lines that have a number.
std::vector<Named> devices_here() {
  std::vector<Named> found{{"cpu", "cpu"}};
  for (const auto& list : {cuda_devices(), vulkan_devices()})
    for (const std::string& line : list) {
      const std::string name = line.substr(0, line.find(' '));
      if (name.find(':') != std::string::npos) found.push_back({name, line});
    }
  return found;
}

struct Candidate {
  std::shared_ptr<Session> session;
  std::vector<HostTensor> inputs;
};

Result<double> median_run(const Candidate& candidate) {
  std::vector<double> seconds;
  const auto begin = Clock::now();
  for (int i = -1; i < kMostRuns && (seconds.size() < 3 || seconds_since(begin) < kMeasureSeconds); ++i) {
    const auto start = Clock::now();
    SPARKLE_TRY(outputs, candidate.session->run(candidate.inputs));
    if (i >= 0) seconds.push_back(seconds_since(start));  // the first tries, packs and fills
  }
  return median(seconds);
}

Result<std::shared_ptr<Session>> opened(const ChoiceRequest& request, const std::string& name, const Graph& graph,
                                        Device& device) {
  BackendOptions options = request.backend;
  options.name = name;
  SPARKLE_TRY(open, open_backend(options));
  device = open.backend->device();
  SPARKLE_TRY(settings, request.options(device));
  settings.open_host = open_host;
  SPARKLE_TRY(session, Session::open(graph, open.backend, settings));
  return std::shared_ptr<Session>(std::move(session));
}

// Errors: those of the inputs, which are the same for all devices.
Result<DeviceOffer> offer_of(const ChoiceRequest& request, const Named& device, const Graph& graph) {
  DeviceOffer offer;
  offer.name = device.name;
  Device description;
  auto session = opened(request, device.name, graph, description);
  if (!session.ok()) return offer.unusable = session.error().message, offer;
  SPARKLE_TRY(inputs, request.inputs((*session)->inputs()));
  const Candidate candidate{std::move(*session), std::move(inputs)};
  auto plan = candidate.session->prepare(candidate.inputs);
  if (!plan.ok()) return offer.unusable = plan.error().message, offer;
  offer.software = description.is_software();
  offer.transfers = predicted_transfers(**plan, description, candidate.inputs);
  offer.predicted = (*plan)->predicted_seconds() + offer.transfers;
  offer.measure = [candidate] { return median_run(candidate); };
  return offer;
}

// Where a decision is remembered, and under which words.
std::string key_of(const ChoiceRequest& request, const std::vector<Named>& devices) {
  std::error_code none;
  std::string key = "version " SPARKLE_VERSION "\nmodel " + fs::absolute(request.model, none).string() + " " +
                    std::to_string(fs::file_size(request.model, none)) + " " +
                    std::to_string(fs::last_write_time(request.model, none).time_since_epoch().count()) + "\nshapes " +
                    request.shapes + "\nthreads " + std::to_string(request.backend.threads) + "\n";
  for (const Named& d : devices) key += "device " + d.line + "\n";
  return key;
}
std::string file_of(const std::string& key) {
  const std::string folder = cache_folder();
  if (folder.empty()) return {};
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.json", static_cast<unsigned long long>(hash_text(key)));
  return folder + "/choices/" + name;
}

std::string remembered(const std::string& file, const std::string& key, const std::vector<Named>& devices) {
  if (file.empty()) return {};
  const auto text = read_file(file, {"remembered choice", int64_t{1} << 20, true});
  if (!text.ok()) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value("key", "") != key || !json.contains("device") || !json["device"].is_string()) return {};
  const std::string name = json["device"];
  const bool here = std::any_of(devices.begin(), devices.end(), [&](const Named& d) { return d.name == name; });
  return here ? name : std::string();
}

// The device that a file was compiled for.
Result<DeviceDecision> device_of(const CompiledModel& model, const ChoiceRequest& request, const std::vector<Named>& devices) {
  DeviceDecision decision;
  for (const Named& named : devices) {
    if ((named.name == "cpu") == model.device().has_workgroups()) continue;
    BackendOptions options = request.backend;
    options.name = named.name;
    const auto open = open_backend(options);
    if (!open.ok() || !model.check_device((*open).backend->device()).ok()) continue;
    decision.device = named.name, decision.why = named.name + ": the model is compiled for it";
    return decision;
  }
  return Error{Reason::bad_usage, "'" + request.model + "' is compiled for '" + model.device().name +
                                      "', which is none of the devices here as they are now."};
}

}  // namespace

bool may_have_gpu() {
  std::error_code none;
  if (std::getenv("SPARKLE_CUDA_DRIVER") || fs::exists("/dev/nvidiactl", none)) return true;
  for (fs::directory_iterator at("/dev/dri", none), end; !none && at != end; at.increment(none))
    if (at->path().filename().string().starts_with("renderD")) return true;
  return false;
}

Result<DeviceDecision> choose_device_here(const ChoiceRequest& request) {
  if (!request.again && !may_have_gpu()) {
    DeviceDecision alone;
    alone.device = "cpu", alone.why = "cpu: no GPU is here";
    return alone;
  }
  const std::vector<Named> devices = devices_here();
  const std::string key = key_of(request, devices), file = file_of(key), before = remembered(file, key, devices);
  if (!request.again && !before.empty()) {
    DeviceDecision as_before;
    as_before.device = before, as_before.remembered = true;
    as_before.why = before + ": chosen for this model before, on these devices and drivers";
    return as_before;
  }
  SPARKLE_TRY(model, read_model(request.model));
  if (model.compiled) return device_of(*model.compiled, request, devices);
  std::vector<DeviceOffer> offers;
  for (const Named& device : devices) {
    SPARKLE_TRY(offer, offer_of(request, device, model.graph));
    offers.push_back(std::move(offer));
  }
  SPARKLE_TRY(decision, choose_device(offers, before));
  if (!file.empty()) {
    std::error_code none;
    fs::create_directories(fs::path(file).parent_path(), none);
    replace_file(file, nlohmann::json{{"key", key}, {"device", decision.device}, {"why", decision.why}}.dump() + "\n");
  }
  return decision;
}

}  // namespace sparkle
