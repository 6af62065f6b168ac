#include "reference_backend/loops_backend.h"

#include <cstring>
#include <mutex>

#include "backends/backend.h"
#include "device/device_json.h"
#include "families/registry.h"

namespace sparkle::testing {
namespace {

// Memory of the device's own: the host sees what it is to fill or read, nothing else.
class LoopsBuffer final : public Buffer {
 public:
  LoopsBuffer(int64_t bytes, bool visible) : memory_(static_cast<size_t>(bytes)), visible_(visible) {}
  int64_t bytes() const override { return static_cast<int64_t>(memory_.size()); }
  std::byte* host() override { return visible_ ? memory_.data() : nullptr; }
  uint64_t address() const override { return reinterpret_cast<uintptr_t>(memory_.data()); }
  std::byte* memory() { return memory_.data(); }

 private:
  std::vector<std::byte> memory_;
  bool visible_;
};

class LoopsKernel : public Kernel {
 public:
  virtual Status run(const std::string& node, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs) const = 0;
  Stage stage;
};

// Kernels by family and variant.
using KernelFactory = Result<std::unique_ptr<LoopsKernel>> (*)(const Stage&);
struct KernelRow {
  Family family;
  std::string_view variant;
  KernelFactory make;
};

class ReferenceKernel final : public LoopsKernel {
 public:
  Status run(const std::string& node, std::span<const TensorView> inputs, std::span<const TensorView> outputs) const override {
    SPARKLE_CHECK(check_data(stage, inputs, node));
    info(stage.family()).reference(stage.params, inputs, outputs);
    return ok();
  }
};

Result<std::unique_ptr<LoopsKernel>> make_reference(const Stage& stage) {
  auto kernel = std::make_unique<ReferenceKernel>();
  kernel->stage = stage;
  return std::unique_ptr<LoopsKernel>(std::move(kernel));
}

constexpr KernelRow kKernels[] = {
#define FAMILY(name, params) {Family::name, "plain", make_reference},
#include "families/families.inc"
#undef FAMILY
};

class LoopsProgram final : public Program {
 public:
  std::vector<Launch> launches;
};

// Work is done when it has been handed over.
class LoopsBackend final : public Backend {
 public:
  explicit LoopsBackend(const Device& device) : device_(device) {}
  const Device& device() const override { return device_; }
  Executor& executor() override { return executor_; }

  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    return std::shared_ptr<Buffer>(std::make_shared<LoopsBuffer>(bytes, kind == MemoryKind::staging));
  }
  Result<std::shared_ptr<Buffer>> import(void*, int64_t) override { return std::shared_ptr<Buffer>(); }

  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t) override {
    for (const KernelRow& row : kKernels)
      if (row.family == stage.family() && row.variant == variant_of(schedule)) {
        SPARKLE_TRY(kernel, row.make(stage));
        return std::unique_ptr<Kernel>(std::move(kernel));
      }
    return Error{Reason::backend_lacks_variant, "the loops have no variant '" + variant_of(schedule) + "'"};
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    auto program = std::make_unique<LoopsProgram>();
    program->launches.assign(launches.begin(), launches.end());
    return std::unique_ptr<Program>(std::move(program));
  }

  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    std::vector<StepTime> times;
    for (const Launch& launch : static_cast<const LoopsProgram&>(program).launches) {
      const auto& kernel = static_cast<const LoopsKernel&>(*launch.kernel);
      const auto views = [&](const std::vector<Binding>& bindings, const std::vector<TensorDesc>& descs) {
        std::vector<TensorView> list;
        for (size_t i = 0; i < bindings.size(); ++i) list.push_back({at(slots, bindings[i]), descs[i]});
        return list;
      };
      SPARKLE_CHECK(
          kernel.run(launch.name, views(launch.inputs, kernel.stage.inputs), views(launch.outputs, kernel.stage.outputs)));
      times.push_back({});
    }
    const std::lock_guard lock(mutex_);
    if (options.timestamps) times_ = std::move(times);
    return Token{++submitted_};
  }
  Result<Token> copy(std::span<const CopyRegion> regions, Token) override {
    for (const CopyRegion& r : regions) {
      std::memcpy(static_cast<LoopsBuffer*>(r.to)->memory() + r.to_offset,
                  static_cast<LoopsBuffer*>(r.from)->memory() + r.from_offset, static_cast<size_t>(r.bytes));
      count_copy();
    }
    const std::lock_guard lock(mutex_);
    return Token{++submitted_};
  }
  bool done(Token) override { return true; }
  Status wait(Token, std::chrono::nanoseconds) override { return ok(); }
  Result<std::vector<StepTime>> timestamps(Token) override {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  static std::byte* at(std::span<Buffer* const> slots, const Binding& b) {
    return static_cast<LoopsBuffer*>(slots[static_cast<size_t>(b.slot)])->memory() + b.offset_bytes;
  }

  Device device_;
  InlineExecutor executor_;
  std::mutex mutex_;
  uint64_t submitted_ = 0;
  std::vector<StepTime> times_;
};

}  // namespace

Result<OpenBackend> open_loops(const BackendOptions&) {
  SPARKLE_TRY(device, load_device(SPARKLE_SOURCE_DIR "/tests/reference_backend/device.json"));
  OpenBackend open;
  open.backend = std::make_shared<LoopsBackend>(device);
  open.note = "loops, " + device.name;
  return open;
}

}  // namespace sparkle::testing
