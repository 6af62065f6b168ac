// The CUDA backend: programs are graphs, launched as a whole; uploads and downloads have streams of their own, so that copies
// of both directions run beside kernels. Events tell what is complete.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// Memory of the caller's on the device.
struct LentMemory {
  uint64_t address = 0;
  int64_t bytes = 0;
};

struct CudaOptions {
  std::string cache_folder;  // of what is known of kernels, and of compiled programs; empty: the user's cache folder
  bool cache = true;
  // Kernels are tried before their first use on a driver, as on Vulkan (backends/vulkan/driver/context.h).
  bool try_first = true;
  bool sandbox = false;
  std::chrono::nanoseconds try_timeout = std::chrono::seconds(20);
  std::chrono::nanoseconds give_up_after = std::chrono::seconds(20);
  std::function<void(const std::string& lines)> try_elsewhere;
};

class CudaBackend : public Backend {
 public:
  // What was done so far, for tests and reports.
  struct Counters {
    uint64_t submissions = 0;  // of programs
    uint64_t graphs = 0;       // made
    uint64_t copies = 0;       // regions moved between buffers
    uint64_t compiled = 0;     // programs, by NVRTC
    uint64_t read = 0;         // programs that were found compiled on disk
  };
  virtual Counters counters() const = 0;
  // The caller's memory as a Buffer, not copied and not freed. Errors: bad_usage for memory of another device, bytes that are
  // not there, and addresses that are no multiple of kLentAlignment.
  virtual Result<std::shared_ptr<Buffer>> wrap(const LentMemory& lent) = 0;
  // Work that is submitted from now on begins when what the caller's stream holds now is done; 0: the default stream. Errors:
  // bad_usage for a stream of another device.
  virtual Status wait_for_stream(uint64_t stream) = 0;
  // What the caller puts into the stream from now on begins when the work is complete.
  virtual Status let_stream_wait(uint64_t stream, Token token) = 0;
  virtual const Context& context() const = 0;
  // Tries kernels by the lines that CudaOptions::try_elsewhere was handed. Errors: bad_format.
  virtual Status try_lines(const std::string& lines) = 0;
  // What was wrong with variants that this driver is not trusted with.
  virtual std::vector<std::string> findings() const = 0;
  virtual std::vector<std::string> speeds() const = 0;
};

inline constexpr int64_t kLentAlignment = 16;  // the widest load of a kernel

using MakeKernel = std::function<Result<CudaKernelPtr>(const Stage&, const Schedule&, const Workshop&, uint32_t constants)>;

// `make` makes the kernels. Errors: device_unusable saying why.
Result<std::shared_ptr<CudaBackend>> make_cuda_backend(std::shared_ptr<Driver> driver, size_t index, const CudaOptions& options,
                                                       std::shared_ptr<Executor> executor, MakeKernel make = make_kernel);

// The least version of the driver that the kernels of this build run on.
int least_driver();

}  // namespace sparkle::cuda
