// The backend "cuda": which device, or why a build or a machine has none.
#include "run/opening/open_cuda.h"

#ifdef SPARKLE_WITH_CUDA

#include "backends/cuda/cuda_backend.h"
#include "device/probe_cpu.h"
#include "run/opening/openers.h"

namespace sparkle {
namespace {

struct OpenCuda {
  std::shared_ptr<cuda::CudaBackend> backend;
  std::string name;  // "cuda:0"
};

// "cuda": the first device that can be used; "cuda:I": the I-th. `sandbox`: this process may end by what a kernel does.
Result<OpenCuda> cuda_backend(const BackendOptions& o, bool sandbox = false) {
  SPARKLE_TRY(number, number_in(o.name));
  SPARKLE_TRY(driver, cuda::Driver::open(cuda::least_driver()));
  const auto& devices = driver->devices();
  size_t index = devices.size();
  if (!number) {
    for (size_t i = 0; i < devices.size() && index == devices.size(); ++i)
      if (devices[i].unusable.empty()) index = i;
    if (index == devices.size())
      return Error{Reason::device_unusable, "No CUDA device here can be used: '" + devices[0].name +
                                                "': " + devices[0].unusable + "; use --device cpu."};
  } else {
    index = *number;
    if (index >= devices.size())
      return Error{Reason::device_unusable,
                   "There is no CUDA device '" + o.name + "'; 'sparkle devices' lists " + std::to_string(devices.size()) + "."};
  }
  const int threads = probe_cpu({.threads = o.executor ? o.executor->width() : o.threads}).cores;
  OpenCuda open;
  open.name = "cuda:" + std::to_string(index);
  cuda::CudaOptions options;
  options.sandbox = sandbox;
  if (o.try_elsewhere)
    options.try_elsewhere = [elsewhere = o.try_elsewhere, name = open.name](const std::string& lines) {
      elsewhere(name, lines);
    };
  SPARKLE_TRY(backend, cuda::make_cuda_backend(driver, index, options, executor_of(o, threads)));
  open.backend = std::move(backend);
  return open;
}

}  // namespace

Result<OpenBackend> open_cuda(const BackendOptions& o) {
  if (o.roofs == Roofs::measured_again)
    return Error{Reason::bad_usage,
                 "The rates of CUDA devices are not measured yet; without --calibrate those of data sheets are shown."};
  SPARKLE_TRY(opened, cuda_backend(o));
  const Device device = opened.backend->device();
  OpenBackend open;
  open.note = opened.name + ", " + device.name + ", " + device.driver;
  const cuda::Context& context = opened.backend->context();
  if (const std::string why = context.full_edges(); !why.empty() && context.device().capability >= 90)
    open.note += "; no kernel begins before those that it follows are over, since " + why;
  for (const std::string& speed : opened.backend->speeds()) open.tried.push_back(speed);
  for (const std::string& finding : opened.backend->findings()) open.tried.push_back("banned " + finding);
  for (const std::string& line : open.tried) open.note += "; " + line;
  open.backend = opened.backend;
  return open;
}

Status try_cuda_kernels(const BackendOptions& options, const std::string& lines) {
  SPARKLE_TRY(opened, cuda_backend(options, true));
  return opened.backend->try_lines(lines);
}

std::vector<std::string> cuda_devices() {
  const auto driver = cuda::Driver::open(cuda::least_driver());
  if (!driver.ok()) return {"cuda      none: " + driver.error().message};
  std::vector<std::string> lines;
  for (size_t i = 0; i < (*driver)->devices().size(); ++i) {
    const cuda::DeviceInfo& d = (*driver)->devices()[i];
    lines.push_back(
        "cuda:" + std::to_string(i) + "    " + d.name + ", " + d.driver +
        (d.unusable.empty() ? "" : "; cannot be used: " + d.unusable) +
        (d.description.compiles ? ", programs compiled by " + (*driver)->compiler().nvrtc->name() : "") +
        ((*driver)->compiler().why_not.empty() ? "" : "; programs are interpreted: " + (*driver)->compiler().why_not));
  }
  return lines;
}

}  // namespace sparkle

#else

namespace sparkle {

Result<OpenBackend> open_cuda(const BackendOptions&) {
  return Error{Reason::device_unusable,
               "This build of Sparkle has no CUDA backend; build it with SPARKLE_CUDA=AUTO, or use --device vulkan or cpu."};
}
Status try_cuda_kernels(const BackendOptions&, const std::string&) {
  return Error{Reason::device_unusable, "This build of Sparkle has no CUDA backend."};
}
std::vector<std::string> cuda_devices() { return {"cuda      none: this build of Sparkle has no CUDA backend"}; }

}  // namespace sparkle

#endif
