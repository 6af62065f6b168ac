// What the subcommands share: common options, opening a device, ending with the right status.
#pragma once

#include <CLI/CLI.hpp>
#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "run/opening/open_backend.h"
#include "run/session.h"

namespace sparkle::cli {

enum Exit : int { kDone = 0, kCheckFailed = 1, kBadInput = 2, kRequirement = 3 };

struct CommonOptions {
  std::string device = "auto";
  int threads = 0;
  std::string unit;
  std::string precision = "fp32";
  PlanSettings plan;  // all that decides a plan; these two are read into it:
  std::string nonfinite = "fast", memory_budget;
  std::string tuning;
  std::string fallback = "warn";
  std::vector<std::string> require;  // "matrix", "device=NAME"
  bool chosen = false;               // `device` is what "auto" came to
  bool json = false;
};

// Machines that a command takes as --device: those that are here, or also a FILE.json that describes one.
enum class Machines { here, described };
// Adds --device, --threads, --unit, --json: what commands without a model need.
void add_machine(CLI::App& command, CommonOptions& options, Machines machines);
// Those, and --precision, --algorithm, --variant, --fusion, --accuracy, --nonfinite, --fallback, --require,
// --memory-budget, --tuning.
void add_common(CLI::App& command, CommonOptions& options, Machines machines = Machines::here);

// A device that runs things, with its backend. Errors: bad_usage, device_unusable with what to do.
using OpenDevice = OpenBackend;
Result<OpenDevice> open_device(const CommonOptions& options, Roofs roofs = Roofs::kept_or_estimated);

// True for FILE.json: a machine that need not be here.
bool names_description(const std::string& device);

// The description alone: of this machine, or from FILE.json for machines that are not here.
Result<Device> describe_device(const CommonOptions& options);

// With what --fallback says: a device that "auto" came to, or any under `allow`, gives way to the CPU where it fails.
Result<SessionOptions> session_options(const CommonOptions& options, const Device& device);
// Those of a session on a device that was opened by open_device(), with the events of that.
Result<SessionOptions> session_options(const CommonOptions& options, const OpenDevice& device);
// [{"what", "from", "to", "reason", "cost_ms", "layer", "message"}, ...]
nlohmann::json json_of(const std::vector<FallbackEvent>& events);
// --atol and --rtol of what compares tensors; they live as long as `atol` and `rtol`.
void add_tolerances(CLI::App& command, std::optional<double>& atol, std::optional<double>& rtol);
// "512M", "2G", "123456" -> bytes. Errors: bad_usage.
Result<int64_t> parse_bytes(const std::string& text);
std::string format_bytes(int64_t bytes);

// Numbers that a float option takes: neither NaN nor infinity.
CLI::Validator finite_number();
CLI::Validator positive_number();

// "sparkle: SENTENCE" on stderr, names from outside made printable.
void print_note(const std::string& sentence);
// The same, once for each sentence: several plans of one command may have the same to say.
void print_note_once(const std::string& sentence);
// What the library warns of becomes such notes.
void print_warnings();
// What takes longer than a moment (shaders that a driver compiles for the first time) is a line on a terminal's stderr, wiped
// when it is over.
void show_waiting();

// --algorithm and --variant: layers of the plan that they cannot serve are named on stderr with the reason. --fallback: steps
// that run on plain reference loops are named on stderr (warn) or refused (forbid), no_kernel. --require: unit_missing or
// device_unusable, naming the first layer that does not meet it.
Status check_fallback(const Plan& plan, const CommonOptions& options);

// Whether nobody reads standard output any more, as behind `| head`. What fails by it ends the program without a word.
bool reader_is_gone();

// Prints "sparkle: SENTENCE" on stderr and gives the status that fits the reason. After print_errors_as_json() also
// {"error": {"reason": CODE, "message": SENTENCE, "details": [LINE, ...]}} on stdout, details where there are some.
int fail(const Error& error);
// The same for what planning, running and check_fallback() say: status 3 where a step has no kernel on the device and
// --fallback forbids that, and where --require is not met.
int fail(const Error& error, const CommonOptions& options);
int status_of(const Error& error, const CommonOptions& options);
void print_errors_as_json();
// The end of a measurement: 0, or 1 and the sentence of what stands above its roof.
int end_of_bench(const std::string& above);

// Whether the command line names the option; and bad_usage "OPTION WHY." for the first one named.
bool given(const CLI::App& command, const std::string& option);
Status refuse_options(const CLI::App& command, std::initializer_list<const char*> options, const std::string& why);

// --precision fp16 or bf16 of a layer without a model is the type that its tensors are stored in, "f16" or "bf16": how devices
// compute stays theirs to choose, and `options` are in fp32 then. Empty: f32.
std::string stored_type(CommonOptions& options);

// The whole command: reads the command line, runs what it names, gives the exit status.
int command_line(int argc, char** argv);

// Each adds one subcommand; its work is stored in `chosen` when the command line names it.
using Chosen = std::function<int()>;
void add_devices(CLI::App& app, Chosen& chosen);
void add_run(CLI::App& app, Chosen& chosen);
void add_bench(CLI::App& app, Chosen& chosen);
void add_explain(CLI::App& app, Chosen& chosen);
void add_check(CLI::App& app, Chosen& chosen);
void add_report(CLI::App& app, Chosen& chosen);
void add_compile(CLI::App& app, Chosen& chosen);
void add_verify(CLI::App& app, Chosen& chosen);
void add_compare(CLI::App& app, Chosen& chosen);
void add_drift(CLI::App& app, Chosen& chosen);
void add_tune(CLI::App& app, Chosen& chosen);
void add_eval(CLI::App& app, Chosen& chosen);
void add_fix(CLI::App& app, Chosen& chosen);
void add_serve(CLI::App& app, Chosen& chosen);
void add_completion(CLI::App& app, Chosen& chosen);
void add_manual(CLI::App& app, Chosen& chosen);
// The words behind `eval`: an expression that begins with a sign is kept from being read as options, "--" before it is dropped.
void guard_expression(const CLI::App& command, std::vector<std::string>& words);
void add_try_kernels(CLI::App& app, Chosen& chosen);
void add_certificate(CLI::App& app, Chosen& chosen);
// sparkle verify --kernels; `names`: families and kernels, none: all.
int verify_kernels(const CommonOptions& common, const std::vector<std::string>& names);
// BackendOptions::try_elsewhere for commands: a child that may crash in a driver.
void try_kernels_elsewhere(const std::string& device, const std::string& lines);

}  // namespace sparkle::cli
