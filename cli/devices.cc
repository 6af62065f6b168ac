// sparkle devices: what is here, with measured roofs.
#include <cstdio>
#include <ctime>

#include "choose_device.h"
#include "command.h"
#include "device/device_json.h"
#include "families/common.h"
#include "run/opening/open_cuda.h"

namespace sparkle::cli {
namespace {

std::string rate(double per_second, const char* unit) {
  if (per_second <= 0) return "-";
  char text[40];
  std::snprintf(text, sizeof text, "%.1f G%s/s", per_second * 1e-9, unit);
  return text;
}

std::string time_text(std::time_t time) {
  std::tm parts{};
  char text[40];
  if (time == 0 || gmtime_r(&time, &parts) == nullptr) return "at an unknown time";
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

// Where the rates come from: one sentence for the table and the JSON.
std::string source_of(const OpenDevice& open) {
  if (open.roofs_measured_at == 0 && open.roofs_file.empty()) return "none: nothing is measured for this device";
  const std::string when = "measured on this machine " + time_text(open.roofs_measured_at);
  if (open.roofs_file.empty())
    return when + ", kept nowhere: neither XDG_CACHE_HOME nor HOME leads to a folder that can be written";
  return when + ", kept in " + open.roofs_file + " (--calibrate measures again)";
}
std::string source_of(const Device& described, const std::string& file) {
  return described.calibrated ? "measured on the machine that '" + file + "' describes" : "from data sheets, not measured";
}

void print(const Device& d, const std::string& source, const std::string& note) {
  std::printf("%s  %s\n", std::string(name_of(d.kind)).c_str(), d.name.c_str());
  std::printf("  architecture  %s%s%s\n", d.architecture.c_str(), d.vendor.empty() ? "" : ", ", d.vendor.c_str());
  std::printf("  cores         %s\n", d.thread_note.empty() ? std::to_string(d.cores).c_str() : d.thread_note.c_str());
  if (!note.empty()) std::printf("  chosen        %s\n", note.c_str());
  std::printf("  rates         %s\n", source.c_str());
  std::printf("  %-16s %12s %8s %16s %16s\n", "memory", "size", "shared", "one core", "all cores");
  for (const MemoryLevel& l : d.memory)
    std::printf("  %-16s %12s %8d %16s %16s\n", l.name.c_str(), l.bytes > 0 ? format_bytes(l.bytes).c_str() : "-", l.shared_by,
                rate(l.bytes_per_second, "B").c_str(), rate(l.total_bytes_per_second, "B").c_str());
  std::printf("  %-16s %12s %8s %16s %16s\n", "math unit", "m x n x k", "types", "one core", "all cores");
  for (const MathUnit& u : d.units) {
    const std::string shape = std::to_string(u.m) + "x" + std::to_string(u.n) + "x" + std::to_string(u.k);
    const double total = u.total_flops_per_second > 0 ? u.total_flops_per_second : u.flops_per_second * d.cores;
    std::printf("  %-16s %12s %8s %16s %16s%s\n", u.name.c_str(), shape.c_str(), std::string(name_of(u.input)).c_str(),
                rate(u.flops_per_second, "FLOP").c_str(), rate(total, "FLOP").c_str(),
                has_kernels(d, u) ? "" : "  no kernel yet");
  }
  if (!d.paces.empty()) {
    std::string paces;
    for (const KernelPace& p : d.paces) {
      char ratio[16];
      std::snprintf(ratio, sizeof ratio, " %.2f", p.ratio);
      paces += (paces.empty() ? "" : ", ") + p.name + ratio;
    }
    std::printf("  kernels take, of what their arithmetic alone would: %s\n", paces.c_str());
  }
  if (d.launch_seconds > 0) std::printf("  one launch costs %.2f us\n", d.launch_seconds * 1e6);
}

int devices(const CommonOptions& common, bool calibrate, const ModelArguments& why) {
  if (!why.model.empty()) {
    if (calibrate || common.device != "auto")
      return fail({Reason::bad_usage, "--why compares all devices that are here: leave out --device and --calibrate."});
    auto decision = decide_anew(common, why);
    if (!decision.ok()) return fail(decision.error());
    if (!common.json) return std::fputs(to_table(*decision).c_str(), stdout), kDone;
    std::printf("%s\n", to_json(*decision).c_str());
    return kDone;
  }
  Device device;
  std::string source;
  std::vector<std::string> tried;
  const bool description = names_description(common.device);
  if (calibrate && (description || common.device == "reference"))
    return fail(
        {Reason::bad_usage, "--calibrate measures a device of this machine; '" + common.device + "' is something else."});
  if (description) {
    auto described = describe_device(common);
    if (!described.ok()) return fail(described.error());
    device = std::move(*described);
    source = source_of(device, common.device);
  } else {
    auto open = open_device(common, calibrate ? Roofs::measured_again : Roofs::measured);
    if (!open.ok()) return fail(open.error());
    device = open->backend->device();
    source = source_of(*open), tried = std::move(open->tried);
  }
  if (common.json) {
    std::printf("%s\n", device_to_json(device, source, tried).c_str());
    return kDone;
  }
  std::string note = common.device == "auto" ? "auto means cpu" : "";
  if (!common.unit.empty()) note += (note.empty() ? "" : ", ") + common.unit + " alone of its units (--unit)";
  print(device, source, note);
  for (const std::string& line : tried) std::printf("  tried         %s\n", line.c_str());
  if (common.device == "auto") {
    for (const std::string& line : vulkan_devices()) std::printf("%s\n", line.c_str());
    for (const std::string& line : cuda_devices()) std::printf("%s\n", line.c_str());
  }
  return kDone;
}

}  // namespace

void add_devices(CLI::App& app, Chosen& chosen) {
  auto* command =
      app.add_subcommand("devices", "Describe this machine (or FILE.json): caches, math units, measured peak and bandwidth");
  auto options = std::make_shared<CommonOptions>();
  auto calibrate = std::make_shared<bool>(false);
  add_machine(*command, *options, Machines::described);
  command->add_flag("--calibrate", *calibrate, "measure the rates of this machine again; without it kept ones are shown");
  auto why = std::make_shared<ModelArguments>();
  command->add_option("--why", why->model, "ONNX file: what each device here takes for it, and which one --device auto is");
  command->add_option("--shape", why->shapes, "NAME=1x3x224x224 for inputs whose sizes the model leaves open, with --why");
  command->callback([&chosen, options, calibrate, why] {
    chosen = [options, calibrate, why] { return devices(*options, *calibrate, *why); };
  });
}

}  // namespace sparkle::cli
