// A backend by name: probes the machine, takes its known rates, makes the thread pool.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/cpu_backend.h"
#include "prepare/fallback/fallback.h"

namespace sparkle {

// Where the rates of this machine come from. Planning and running on CPUs take kept ones or estimates, so that the first answer
// does not wait; who shows roofs measures them where none are kept (some 0.3 s), `measured_again` in any case. A GPU whose
// rates are not kept is measured when it is first opened (up to some seconds): nobody can estimate them.
enum class Roofs { kept_or_estimated, measured, measured_again };

struct BackendOptions {
  std::string name = "auto";  // "auto" and "cpu": this machine's CPU; "vulkan" or "vulkan:I"; "reference"
  int threads = 0;            // 0: what affinity and cgroup quota allow
  std::string unit;           // a CPU as if it had this math unit alone (run/opening/force_unit.h); empty: all that it has
  Roofs roofs = Roofs::kept_or_estimated;
  std::shared_ptr<Executor> executor;  // threads of the caller's; nullptr: a pool of our own
  cpu::HostAllocator allocator;
  // Kernels that a GPU's driver has never run are tried first: where this is given, by it (device and a line per kernel, for
  // try_listed_kernels in another process), else in this process.
  std::function<void(const std::string& device, const std::string& lines)> try_elsewhere;
};
struct OpenBackend {
  std::shared_ptr<Backend> backend;
  std::string note;                   // "auto: cpu, 2 threads (affinity 2, cgroup quota none)"
  std::vector<std::string> tried;     // what self-tests of kernels on this driver found: "banned pool/shader: wrong ..."
  std::string roofs_file;             // that keeps the measured roofs; empty where none is kept
  std::time_t roofs_measured_at = 0;  // 0: not measured, or unknown
  std::vector<FallbackEvent> events;  // of open_backend_or_cpu()
};
// Tries kernels by the lines that BackendOptions::try_elsewhere was handed; the verdicts lie in the user's cache folder.
// Errors: device_unusable, bad_format.
Status try_listed_kernels(const BackendOptions& options, const std::string& lines);

// The Vulkan devices here, a line each: "vulkan:0  NAME, DRIVER", with the reason where one cannot be used; one line that says
// why where there are none.
std::vector<std::string> vulkan_devices();

// A backend that open_backend() finds by its name.
struct BackendRow {
  std::string_view name, told;  // told: in the list of devices that there are
  bool numbered;                // whether "NAME:whatever its opener reads" is its own too
  Result<OpenBackend> (*open)(const BackendOptions&);
};
// Those of run/opening/backends.inc, then those that this program has added.
std::vector<BackendRow> backends();
// A backend that is no part of the library. The texts live as long as the program.
void add_backend(const BackendRow& row);

// Errors: bad_usage for what is no name of a device, device_unusable for a device that is not here or has no backend.
Result<OpenBackend> open_backend(const BackendOptions& options);
// The same, and the CPU in the place of a device that cannot be used here: OpenBackend::events says so. Errors: bad_usage.
Result<OpenBackend> open_backend_or_cpu(const BackendOptions& options);
// The CPU beside a device, on that one's host threads: what computes the steps that the device has no kernel for. Keeps the
// device alive. Errors: those of opening the CPU.
Result<std::shared_ptr<Backend>> open_host(const std::shared_ptr<Backend>& device);

}  // namespace sparkle
