#include "command.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "backends/reference/reference_backend.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/record.h"
#include "choose_device.h"
#include "device/device_json.h"
#include "device/known/known_devices.h"
#include "plan/choose/forced.h"
#include "run/choice/open_together.h"
#include "run/opening/force_unit.h"

namespace sparkle::cli {

CLI::Validator finite_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool number = record_detail::parse_number(std::string_view(text), value) && std::isfinite(value);
        return number ? std::string() : "'" + text + "' is not a number";
      },
      "NUMBER");
}

CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool number = record_detail::parse_number(std::string_view(text), value) && std::isfinite(value) && value > 0;
        return number ? std::string() : "'" + text + "' is not a number above 0";
      },
      "NUMBER > 0");
}

void add_machine(CLI::App& command, CommonOptions& o, Machines machines) {
  std::string devices =
      "auto (run, bench, report, serve: what is fastest for the model, else the CPU), cpu, cuda, cuda:N, vulkan, vulkan:N as "
      "'sparkle "
      "devices' numbers them, reference";
  if (machines == Machines::described)
    devices += ", or a machine that need not be here: its name (h200, rtx3090 ...: sparkle check --help), or FILE.json";
  command.add_option("--device", o.device, devices);
  command.add_option("--threads", o.threads, "CPU threads; 0: what affinity and cgroup quota allow")
      ->check(CLI::Range(0, 1024));
  command.add_option("--unit", o.unit,
                     "a CPU as if it had this math unit alone: avx2, avx-vnni, avx512, avx512-vnni, amx-int8, amx-bf16, neon, "
                     "neon-dot or sve, where it has it");
  command.add_flag("--json", o.json, "one JSON object instead of text");
}

std::string stored_type(CommonOptions& options) {
  const std::string type = options.precision == "fp16"     ? "f16"
                           : options.precision == "bf16"   ? "bf16"
                           : options.precision == "fp8"    ? "f8e4m3fn"
                           : options.precision == "fp8-e5" ? "f8e5m2"
                                                           : "";
  if (!type.empty()) options.precision = "fp32";
  return type;
}

void add_common(CLI::App& command, CommonOptions& o, Machines machines) {
  add_machine(command, o, machines);
  command.add_option("--precision", o.precision,
                     "fp32; run: also fp16, bf16 and int8, as 'sparkle fix' makes them; bench of layers on a GPU: also fp16 "
                     "and, by CUDA, bf16, their tensors stored in it, and on Hopper fp8 (e4m3) and fp8-e5 (e5m2), "
                     "their factors stored in it and results in fp16");
  command.add_option("--algorithm", o.plan.algorithm,
                     "force one where it can serve: gemm, gemm_f16, gemm_bf16, depthwise, direct, grouped, winograd2, "
                     "winograd4, winograd6, fft, matrix_f16, matrix_bf16, matrix_tf32, sums_f16");
  command.add_option("--variant", o.plan.variant, "force a kernel variant by name where its family has it");
  command.add_option("--fusion", o.plan.fusion, "of several layers into one step: inverted wherever it can serve, or none")
      ->check(CLI::IsMember({"inverted", "none"}));
  command
      .add_option("--accuracy", o.plan.accuracy,
                  "most that max |error| / max |output| of a layer may be predicted to reach, against double precision")
      ->check(positive_number())
      ->capture_default_str();
  command
      .add_option("--nonfinite", o.nonfinite,
                  "data that may hold infinities, NaN or values near the end of the range: exact takes only algorithms whose "
                  "outputs depend on their own windows alone; fast may spread them to neighbours")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->capture_default_str();
  command
      .add_option(
          "--fallback", o.fallback,
          "what the device has no fast kernel for, and where 'auto' chose it or with allow, a device that fails: forbid "
          "(status 3, naming the layer), warn or allow")
      ->check(CLI::IsMember({"forbid", "warn", "allow"}));
  command
      .add_option(
          "--require", o.require,
          "status 3, naming the layer, unless each product is computed by matrix units (matrix), or each step runs on a "
          "device (device=vulkan)")
      ->check([](const std::string& text) {
        return text == "matrix" || (text.starts_with("device=") && text.size() > 7)
                   ? std::string()
                   : "'" + text + "' is neither matrix nor device=NAME";
      });
  command.add_option("--memory-budget", o.memory_budget, "most bytes of tensors and weights: 300M, 2G");
  command.add_option("--tuning", o.tuning, "file of measured choices, or kept: what 'sparkle tune' keeps for this machine");
}

void add_tolerances(CLI::App& command, std::optional<double>& atol, std::optional<double>& rtol) {
  const auto tolerance = [&](const char* option, std::optional<double>& value, const char* text) {
    command.add_option_function<double>(
               option, [&value](double given) { value = given; }, text)
        ->check(finite_number())
        ->check(CLI::NonNegativeNumber);
  };
  tolerance("--atol", atol, "in |a-b| <= atol + rtol |b|, instead of the share of the largest |b| that fits the type");
  tolerance("--rtol", rtol, "the same, instead of what fits the type; what was gone by is printed");
}

Result<int64_t> parse_bytes(const std::string& text) {
  if (text.empty()) return int64_t{0};
  std::string_view digits = text;
  double factor = 1;
  switch (digits.back()) {
    case 'k':
    case 'K': factor = 1024; break;
    case 'm':
    case 'M': factor = 1024.0 * 1024; break;
    case 'g':
    case 'G': factor = 1024.0 * 1024 * 1024; break;
    default: break;
  }
  if (factor > 1) digits.remove_suffix(1);
  double value = 0;
  if (!record_detail::parse_number(digits, value) || !(value > 0) || value * factor > 9e18)
    return Error{Reason::bad_usage, "'" + text + "' is not a size; write bytes or a number with K, M or G, as in 300M."};
  return static_cast<int64_t>(value * factor);
}

std::string format_bytes(int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

namespace {

Status check_precision(const CommonOptions& o) {
  if (o.precision == "fp32") return ok();
  return Error{Reason::type_not_served, "The precision '" + o.precision + "' is not supported here; use fp32."};
}

}  // namespace

bool names_description(const std::string& device) { return device.ends_with(".json"); }

Result<Device> describe_device(const CommonOptions& o) {
  SPARKLE_CHECK(check_precision(o));
  if (names_description(o.device)) {
    SPARKLE_TRY(device, load_device(o.device));
    if (!o.unit.empty()) SPARKLE_CHECK(force_unit(device, o.unit));
    return device;
  }
  if (is_known_device(o.device)) {
    SPARKLE_TRY(device, known_device(o.device));
    if (!o.unit.empty()) SPARKLE_CHECK(force_unit(device, o.unit));
    return device;
  }
  if (o.device == "reference" && o.unit.empty()) return reference_device();
  SPARKLE_TRY(open, open_device(o));
  return open.backend->device();
}

Result<OpenDevice> open_device(const CommonOptions& o, Roofs roofs) {
  SPARKLE_CHECK(check_precision(o));
  if (names_description(o.device) || is_known_device(o.device))
    return Error{Reason::device_unusable, "'" + o.device + "' only describes a machine; plan for it with 'sparkle explain'."};
  if (names_several_devices(o.device))
    return Error{Reason::bad_usage, "--device " + o.device +
                                        " names several devices, which share many items: of 'sparkle run' on a folder, several "
                                        "files or --frames, or of 'sparkle bench --pipeline'; name one here."};
  BackendOptions options;
  options.name = o.device;
  options.threads = o.threads;
  options.unit = o.unit;
  options.roofs = roofs;
  options.try_elsewhere = try_kernels_elsewhere;
  if (!may_go_elsewhere(o)) return open_backend(options);
  SPARKLE_TRY(opened, open_backend_or_cpu(options));
  for (const FallbackEvent& event : opened.events) print_note_once(event.message);
  return opened;
}

Result<SessionOptions> session_options(const CommonOptions& o, const Device& device) {
  SessionOptions s;
  static_cast<PlanSettings&>(s) = o.plan;
  s.exact_nonfinite = o.nonfinite == "exact";
  (void)parse_name(o.fallback, s.fallback);
  if (may_go_elsewhere(o) && o.device != "cpu" && o.device != "auto")
    s.next_device = [o](const Error&) -> Result<std::shared_ptr<Backend>> {
      CommonOptions cpu = o;
      cpu.device = "cpu";
      SPARKLE_TRY(opened, open_device(cpu));
      return opened.backend;
    };
  SPARKLE_TRY(budget, parse_bytes(o.memory_budget));
  s.memory_budget = budget;
  if (!o.tuning.empty()) {
    SPARKLE_TRY(store, TuningStore::open(o.tuning, device));
    s.tuning = std::make_shared<TuningStore>(std::move(store));
  }
  return s;
}

Result<SessionOptions> session_options(const CommonOptions& o, const OpenDevice& device) {
  SPARKLE_TRY(options, session_options(o, device.backend->device()));
  options.events = device.events;
  return options;
}

nlohmann::json json_of(const std::vector<FallbackEvent>& events) {
  nlohmann::json list = nlohmann::json::array();
  for (const FallbackEvent& e : events)
    list.push_back({{"what", e.what},
                    {"from", e.from},
                    {"to", e.to},
                    {"reason", code_of(e.reason)},
                    {"cost_ms", e.cost * 1e3},
                    {"layer", e.layer},
                    {"message", e.message}});
  return list;
}

void print_note(const std::string& sentence) { std::fprintf(stderr, "sparkle: %s\n", printable_sentence(sentence).c_str()); }

void print_note_once(const std::string& sentence) {
  static std::mutex mutex;
  static std::set<std::string> printed;
  const std::lock_guard lock(mutex);
  if (printed.insert(sentence).second) print_note(sentence);
}

void print_warnings() {
  set_log(
      [](void*, LogLevel level, const char* sentence) {
        if (level == LogLevel::warning) print_note_once(sentence);
      },
      nullptr);
}

namespace {

bool json_errors = false;

void print_error(const Error& error) {
  print_note(error.message);
  if (!json_errors) return;
  // The first line is the sentence; what follows it, such as a line for each operator that is not supported, is an array.
  const size_t end = std::min(error.message.find("\n  "), error.message.size());
  nlohmann::json json{{"error", {{"reason", code_of(error.reason)}, {"message", error.message.substr(0, end)}}}};
  std::istringstream lines(error.message.substr(end));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) json["error"]["details"].push_back(line.starts_with("  ") ? line.substr(2) : line);
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void tell_forced(const Plan& plan, const CommonOptions& o) {
  PlanSettings forced;
  forced.algorithm = o.plan.algorithm, forced.variant = o.plan.variant;
  for (const std::string& sentence : not_as_forced(plan, forced)) print_note_once(sentence);
}

}  // namespace

namespace {

// What computes a product without a matrix unit; depthwise layers have no sum over channels, which is what such units compute.
bool wants_matrix_unit(const PlanStep& step) { return !step.problem.empty() && step.algorithm != "depthwise"; }

Status check_required(const Plan& plan, const CommonOptions& o) {
  const std::string device = o.device == "auto" ? "cpu" : o.device;
  for (const std::string& required : o.require) {
    const std::string wanted = required == "matrix" ? "" : required.substr(7);
    for (const PlanStep& step : plan.steps) {
      std::string how;
      if (wanted.empty()) {
        const bool matrix =
            std::find(plan.matrix_units.begin(), plan.matrix_units.end(), unit_of(step.schedule)) != plan.matrix_units.end();
        if (!wants_matrix_unit(step) || matrix) continue;
        how = "is computed by " + unit_of(step.schedule) + ", no matrix unit, on " + plan.device;
      } else {
        const bool there = device == wanted || device.starts_with(wanted + ":");
        if (there && step.runs_on != RunsOn::host) continue;
        how = "runs on " + (there ? plan.host + ", since " + plan.device + " has no kernel for it" : device);
      }
      return Error{wanted.empty() ? Reason::unit_missing : Reason::device_unusable,
                   "Step '" + step.name + "' (" + step.algorithm + ") " + how + ", and --require " + required + " is not met."};
    }
  }
  return ok();
}

}  // namespace

Status check_fallback(const Plan& plan, const CommonOptions& o) {
  tell_forced(plan, o);
  Fallback fallback = Fallback::warn;
  (void)parse_name(o.fallback, fallback);
  const std::vector<FallbackEvent> events = o.device == "reference" ? std::vector<FallbackEvent>() : fallbacks_of(plan, o.plan);
  SPARKLE_CHECK(sparkle::check_fallback(events, fallback));
  for (const FallbackEvent& event : events)
    if (event.what == "operator" && fallback == Fallback::warn) print_note_once(event.message);
  return check_required(plan, o);
}

void print_errors_as_json() { json_errors = true; }

int end_of_bench(const std::string& above) {
  if (above.empty()) return kDone;
  print_note(above);
  return kCheckFailed;
}

int status_of(const Error& error, const CommonOptions& options) {
  const bool of_device = error.reason == Reason::unit_missing || error.reason == Reason::device_unusable;
  if (of_device && !options.require.empty()) return kRequirement;
  if (error.reason == Reason::no_kernel && options.fallback == "forbid") return kRequirement;
  return error.reason == Reason::internal ? kCheckFailed : kBadInput;
}

bool reader_is_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

int fail(const Error& error) { return fail(error, {}); }

int fail(const Error& error, const CommonOptions& options) {
  print_error(error);
  return status_of(error, options);
}

bool given(const CLI::App& command, const std::string& option) { return command.get_option(option)->count() > 0; }

Status refuse_options(const CLI::App& command, std::initializer_list<const char*> options, const std::string& why) {
  for (const char* option : options)
    if (given(command, option)) return Error{Reason::bad_usage, std::string(option) + " " + why + "."};
  return ok();
}

}  // namespace sparkle::cli
