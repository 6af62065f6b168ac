#include "run/opening/open_backend.h"

#include <mutex>

#include "backends/reference/reference_backend.h"
#include "run/opening/open_cuda.h"
#include "run/opening/openers.h"

namespace sparkle {

// One opener a row: open_NAME.
#define BACKEND(name, told, numbered) Result<OpenBackend> open_##name(const BackendOptions&);
#include "run/opening/backends.inc"
#undef BACKEND

Status try_vulkan_kernels(const BackendOptions&, const std::string& lines);
Status try_listed_kernels(const BackendOptions& options, const std::string& lines) {
  return options.name.starts_with("cuda") ? try_cuda_kernels(options, lines) : try_vulkan_kernels(options, lines);
}

Result<OpenBackend> open_reference(const BackendOptions&) {
  OpenBackend open;
  open.backend = make_reference_backend();
  return open;
}

namespace {

struct Rows {
  std::mutex mutex;
  std::vector<BackendRow> list{
#define BACKEND(name, told, numbered) {#name, told, numbered, open_##name},
#include "run/opening/backends.inc"
#undef BACKEND
  };
};
Rows& rows() {
  static Rows all;
  return all;
}

}  // namespace

void add_backend(const BackendRow& row) {
  const std::lock_guard lock(rows().mutex);
  rows().list.push_back(row);
}

std::vector<BackendRow> backends() {
  const std::lock_guard lock(rows().mutex);
  return rows().list;
}

Result<OpenBackend> open_backend(const BackendOptions& o) {
  const std::string wanted = o.name == "auto" ? "cpu" : o.name;
  std::string told;
  for (const BackendRow& row : backends()) {
    told += std::string(row.told) + ", ";
    if (wanted != row.name && !(row.numbered && wanted.starts_with(std::string(row.name) + ':'))) continue;
    if (!o.unit.empty() && row.name != "cpu")
      return Error{Reason::bad_usage, "--unit picks among the vector units of a CPU; '" + o.name + "' has none."};
    // Whatever this build has: a name that is none is an error everywhere.
    if (auto number = number_in(wanted); !number.ok()) return number.take_error();
    return row.open(o);
  }
  return Error{Reason::bad_usage,
               "There is no device '" + o.name + "'; use auto, " + told + "or FILE.json with 'sparkle explain'."};
}

Result<std::shared_ptr<Backend>> open_host(const std::shared_ptr<Backend>& device) {
  BackendOptions options;
  options.name = "cpu";
  options.executor = std::shared_ptr<Executor>(device, &device->executor());
  SPARKLE_TRY(opened, open_backend(options));
  return std::move(opened.backend);
}

Result<OpenBackend> open_backend_or_cpu(const BackendOptions& o) {
  auto opened = open_backend(o);
  if (opened.ok() || opened.error().reason != Reason::device_unusable || o.name == "cpu" || o.name == "auto") return opened;
  BackendOptions cpu = o;
  cpu.name = "cpu";
  SPARKLE_TRY(instead, open_backend(cpu));
  const Error why = opened.take_error();
  instead.events.push_back({"device", o.name, instead.backend->device().name, why.reason, 0, "",
                            why.message + " The CPU runs the model in its place."});
  return instead;
}

}  // namespace sparkle
