// CudaKernel: a Stage compiled for a CUDA device, as launches one after the other. One file per family (stages/NAME.cc) makes
// them.
#pragma once

#include <array>
#include <cstring>
#include <functional>

#include "backends/backend.h"
#include "backends/bounds_reports.h"
#include "backends/cuda/driver/functions.h"
#include "backends/cuda/driver/memory.h"
#include "backends/cuda/driver/programs.h"
#include "base/round_up.h"

namespace sparkle::cuda {

// What kernel factories work with.
struct Workshop {
  std::shared_ptr<Context> context;
  std::shared_ptr<Memory> memory;  // nullptr: of a device that is only described, as `context` and `functions` are
  std::shared_ptr<Functions> functions;
  std::shared_ptr<Programs> programs = nullptr;  // nullptr: of a device that is only described, or where nothing compiles
  // A buffer of the device's with these bytes in it.
  Result<std::shared_ptr<DeviceBuffer>> upload(const void* bytes, int64_t size) const;
};

// Operands of a launch by number: inputs, then outputs; or the workspace; or the step's BoundsReports.
inline constexpr int kWorkspace = -1, kReport = -2;

// A launch of a kernel with one record, whose addresses are filled in when the operands' are known.
struct KernelLaunch {
  CuFunction function = nullptr;
  std::string kernel;  // its name
  std::string text;    // of a kernel that is compiled at run time; empty: it is one of this build's
  std::array<unsigned, 3> grid{1, 1, 1};
  unsigned threads = 1;
  std::array<unsigned, 3> cluster{1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<std::byte> record;
  struct Address {
    size_t at = 0;  // of the record
    int operand = 0;
    int64_t offset = 0;  // bytes from element (0,...,0) of the operand, or from the workspace's start
  };
  std::vector<Address> addresses;
  // What else depends on addresses, as tensor maps do: from the record with its addresses in it. May be empty.
  std::function<Status(std::byte* record)> finish;
  std::string maps;            // what it makes of them, in words
  bool after_previous = true;  // reads what the launch before it in this kernel wrote

  template <class R>
  void set(const R& r) {
    static_assert(sizeof(R) <= 4096, "what every launch takes");
    record.resize(sizeof(R));
    std::memcpy(record.data(), &r, sizeof(R));
  }
};

class CudaKernel final : public Kernel {
 public:
  explicit CudaKernel(const Stage& s) : stage(s) {}
  int64_t workspace_bytes() const override { return workspace; }
  int64_t packed_bytes(int input) const override { return packing(input) ? packing(input)->bytes : 0; }
  std::string packed_key(int input) const override { return packing(input) ? packing(input)->key : std::string(); }
  void pack(int input, const std::byte* from, std::byte* to, Executor& executor) const override {
    if (const Packing* p = packing(input)) p->pack(from, to, executor);
  }

  // A constant operand in a form of the kernel's own, made on the host.
  struct Packing {
    int input = 0;
    int64_t bytes = 0;
    std::string key;
    std::function<void(const std::byte*, std::byte*, Executor&)> pack;
  };
  const Packing* packing(int input) const {
    for (const Packing& p : packings)
      if (p.input == input) return &p;
    return nullptr;
  }

  Stage stage;
  std::vector<KernelLaunch> launches;
  std::vector<Packing> packings;
  int64_t workspace = 0;
  std::vector<std::shared_ptr<DeviceBuffer>> tables;  // that launches read beside their operands
  BoundsError bounds_error;                           // where launches take the address of BoundsReports
};
using CudaKernelPtr = std::unique_ptr<CudaKernel>;

// A launch of the kernel `name` with this record, so many threads a block. Errors: backend_lacks_variant where this build has
// none of that name, and what the driver says.
template <class R>
Result<KernelLaunch> launch_of(const Workshop& shop, const std::string& name, const R& record, std::array<unsigned, 3> grid,
                               unsigned threads, int64_t shared_bytes = 0) {
  SPARKLE_TRY(function, shop.functions->get(name, shared_bytes));
  KernelLaunch launch;
  launch.function = function, launch.kernel = name;
  launch.grid = grid, launch.threads = threads, launch.shared_bytes = static_cast<unsigned>(shared_bytes);
  launch.set(record);
  return launch;
}

// The same of a kernel that `text` holds. Errors: backend_lacks_variant where nothing compiles it, and those of Programs::get.
template <class R>
Result<KernelLaunch> launch_of_text(const Workshop& shop, const std::string& name, std::string text, const R& record,
                                    std::array<unsigned, 3> grid, unsigned threads) {
  KernelLaunch launch;
  if (shop.memory) {
    if (!shop.programs)
      return Error{Reason::backend_lacks_variant,
                   "nothing here compiles CUDA programs (NVRTC); take the variant 'interpreted'"};
    SPARKLE_TRY(function, shop.programs->get(name, text));
    launch.function = function;
  }
  launch.kernel = name, launch.text = std::move(text);
  launch.grid = grid, launch.threads = threads;
  launch.set(record);
  return launch;
}

// Kernel factories: the file NAME.cc below stages/ has make_NAME of the family that it is called by, and needs no entry in a
// list. Constants as in Backend::compile. Errors: backend_lacks_variant, layout_not_served, type_not_served, and what the
// driver says.
using KernelFactory = Result<CudaKernelPtr> (*)(const Stage&, const Schedule&, const Workshop&, uint32_t constants);
#define FAMILY(name, params) \
  Result<CudaKernelPtr> make_##name(const Stage&, const Schedule&, const Workshop&, uint32_t constants);
#include "families/families.inc"
#undef FAMILY
// nullptr: the family has none.
KernelFactory factory_of(Family family);
// What it makes of a stage whose family has one.
Result<CudaKernelPtr> make_kernel(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants);

// Blocks of `threads` for `count` things, one each; a grid takes 2^31 along x.
inline std::array<unsigned, 3> blocks_for(int64_t count, int64_t threads) {
  return {static_cast<unsigned>(std::max<int64_t>(1, divided(count, threads))), 1, 1};
}

}  // namespace sparkle::cuda
