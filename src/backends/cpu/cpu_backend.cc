#include "backends/cpu/cpu_backend.h"

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/roofs/roofs.h"
#include "backends/cpu/weight_slabs.h"
#include "backends/memory_probe.h"
#include "backends/task_trace.h"
#include "base/system/denormals.h"
#include "base/system/huge_pages.h"
#include "base/system/range_names.h"
#include "families/values/epilogue.h"
#include "families/registry.h"
#include "families/values/post_ops.h"

namespace sparkle::cpu {

#define CPU_VARIANT(family, variant) \
  Result<CpuKernelPtr> make_##family##_##variant(const Stage&, const Schedule&, const Device&, uint32_t constants);
#include "cpu_variants.inc"
#undef CPU_VARIANT

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAlignment = 64;

class HostBuffer final : public Buffer {
 public:
  // `capacity`: bytes that were allocated; 0: the memory is somebody else's.
  HostBuffer(std::byte* memory, int64_t bytes, size_t capacity, const HostAllocator& allocator)
      : memory_(memory), bytes_(bytes), capacity_(capacity), allocator_(allocator) {}
  ~HostBuffer() override {
    if (capacity_ == 0) return;
    if (allocator_.release) {
      allocator_.release(allocator_.user, memory_, capacity_, kAlignment);
    } else {
      ::operator delete(memory_, std::align_val_t{kAlignment});
    }
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  int64_t bytes() const override { return bytes_; }
  std::byte* host() override { return memory_; }

 private:
  std::byte* memory_;
  int64_t bytes_;
  size_t capacity_;
  HostAllocator allocator_;
};

// Variants with a file of their own, which the build lists (CMakeLists.txt).
struct VariantRow {
  Family family;
  std::string_view variant;
  KernelFactory make;
};
constexpr VariantRow kVariants[] = {
#define CPU_VARIANT(family, variant) {Family::family, #variant, make_##family##_##variant},
#include "cpu_variants.inc"
#undef CPU_VARIANT
};

// Offsets are resolved once at recording: a run only adds the slots' addresses.
struct Operand {
  int slot = 0;
  int64_t offset = 0;  // bytes
};
struct RecordedLaunch {
  const CpuKernel* kernel = nullptr;
  std::vector<Operand> operands;  // inputs, then outputs
  size_t inputs = 0;
  Operand workspace;
  const Stage* checked = nullptr;  // the stage where its family has rules for the data
  std::string name;                // for errors
};

// The data of a launch against its family's rules.
Status check_operands(const RecordedLaunch& launch, std::span<std::byte* const> inputs) {
  std::vector<TensorView> views;
  // Launch addresses are those of element (0,...,0): the layout's offset is already in them.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorDesc& desc = launch.checked->inputs[i];
    views.push_back({inputs[i] - desc.layout.offset * size_of(desc.dtype), desc});
  }
  return check_data(*launch.checked, views, launch.name);
}

class CpuProgram final : public Program {
 public:
  std::vector<RecordedLaunch> launches;
  size_t most_operands = 0;
};

// Remembers the stage's layouts: a constant that is packed or re-used as it is has no layout offset added twice.
class CompiledKernel final : public Kernel {
 public:
  CompiledKernel(CpuKernelPtr kernel, const Stage& stage, uint32_t constants) : kernel_(std::move(kernel)) {
    for (size_t i = 0; i < stage.inputs.size(); ++i) {
      const bool packed = i < 32 && (constants >> i & 1) && kernel_->packed_bytes(static_cast<int>(i)) > 0;
      const TensorDesc& d = stage.inputs[i];
      offsets.push_back(packed ? 0 : d.layout.offset * size_of(d.dtype));
    }
    for (const TensorDesc& d : stage.outputs) offsets.push_back(d.layout.offset * size_of(d.dtype));
    if (info(stage.family()).check) checked = std::make_unique<Stage>(stage);
  }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  int64_t packed_bytes(int input) const override { return kernel_->packed_bytes(input); }
  std::string packed_key(int input) const override { return kernel_->packed_key(input); }
  void pack(int input, const std::byte* from, std::byte* to, Executor& executor) const override {
    kernel_->pack(input, from, to, executor);
  }
  const CpuKernel* kernel() const { return kernel_.get(); }
  std::vector<int64_t> offsets;
  std::unique_ptr<Stage> checked;  // where the family has rules for the data

 private:
  CpuKernelPtr kernel_;
};

class CpuBackend final : public Backend, public MemoryProbe, public TaskTrace {
 public:
  CpuBackend(const Device& device, std::shared_ptr<Executor> executor, const HostAllocator& allocator)
      : device_(device), executor_(std::move(executor)), allocator_(allocator) {}

  const Device& device() const override { return device_; }
  Executor& executor() override { return *executor_; }
  double probe_peak(std::string_view unit) override { return cpu::probe_peak(unit, *executor_).flops_per_second; }
  double probe_bandwidth(size_t level, double) override { return bandwidth_.bytes_per_second(device_, level, *executor_); }
  void forget_probes() override { bandwidth_.forget(); }

  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    if (kind == MemoryKind::weights && !allocator_.allocate)
      if (auto buffer = weights_.allocate(bytes)) return buffer;
    const size_t capacity = static_cast<size_t>(bytes) + kAlignment;
    void* memory = allocator_.allocate ? allocator_.allocate(allocator_.user, capacity, kAlignment)
                                       : ::operator new(capacity, std::align_val_t{kAlignment}, std::nothrow);
    if (!memory)
      return Error{Reason::out_of_memory, "The CPU cannot allocate " + std::to_string(bytes) + " bytes; give smaller inputs."};
    if (!allocator_.allocate) prefer_huge_pages(memory, capacity);
    return std::shared_ptr<Buffer>(std::make_shared<HostBuffer>(static_cast<std::byte*>(memory), bytes, capacity, allocator_));
  }
  Result<std::shared_ptr<Buffer>> import(void* memory, int64_t bytes) override {
    return std::shared_ptr<Buffer>(std::make_shared<HostBuffer>(static_cast<std::byte*>(memory), bytes, 0, allocator_));
  }

  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    const bool plain = variant_of(schedule) == "plain";
    if (const Epilogue* e = epilogue_of(stage.params); e && e->has_post_op() && !plain)
      return Error{Reason::tail_not_served, "The CPU's kernels have no place for a program behind their sums."};
    SPARKLE_TRY(kernel, factory_of(stage.family(), variant_of(schedule))(stage, schedule, device_, constants));
    return std::unique_ptr<Kernel>(std::make_unique<CompiledKernel>(std::move(kernel), stage, constants));
  }

  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    auto program = std::make_unique<CpuProgram>();
    for (const Launch& launch : launches) {
      const auto& kernel = static_cast<const CompiledKernel&>(*launch.kernel);
      RecordedLaunch recorded;
      recorded.kernel = kernel.kernel();
      recorded.inputs = launch.inputs.size();
      size_t at = 0;
      for (const auto* list : {&launch.inputs, &launch.outputs})
        for (const Binding& b : *list) recorded.operands.push_back({b.slot, b.offset_bytes + kernel.offsets[at++]});
      recorded.workspace = {launch.workspace.slot, launch.workspace.offset_bytes};
      recorded.checked = kernel.checked.get();
      recorded.name = launch.name;
      program->most_operands = std::max(program->most_operands, recorded.operands.size());
      program->launches.push_back(std::move(recorded));
    }
    return std::unique_ptr<Program>(std::move(program));
  }

  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    return submit_on(*executor_, nullptr, Clock::now(), program, slots, options);
  }
  Result<Token> submit_traced(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options,
                              std::vector<TaskSpan>& tasks, int64_t& left_out) override {
    const auto start = Clock::now();
    TracingExecutor traced(*executor_, start);
    SPARKLE_TRY(token, submit_on(traced, &traced, start, program, slots, options));
    tasks = traced.spans(), left_out = traced.left_out();
    return token;
  }

  Result<Token> copy(std::span<const CopyRegion> regions, Token) override {
    for (const CopyRegion& r : regions) {
      std::memcpy(r.to->host() + r.to_offset, r.from->host() + r.from_offset, static_cast<size_t>(r.bytes));
      count_copy();
    }
    return Token{++submitted_};
  }
  bool done(Token) override { return true; }
  Status wait(Token, std::chrono::nanoseconds) override { return ok(); }

  Result<std::vector<StepTime>> timestamps(Token token) override {
    const std::lock_guard lock(mutex_);
    const auto at = times_.find(token.value);
    if (at == times_.end()) return Error{Reason::bad_usage, "This submission was made without timestamps."};
    auto times = std::move(at->second);
    times_.erase(at);
    return times;
  }

 private:
  Result<Token> submit_on(Executor& executor, TracingExecutor* traced, Clock::time_point start, const Program& program,
                          std::span<Buffer* const> slots, const SubmitOptions& options) {
    // Denormals count as zero inside a run: a multiply-add on them takes up to 54 times as long.
    const ScopedFlushDenormals flush;
    const auto& recorded = static_cast<const CpuProgram&>(program);
    std::vector<std::byte*> operands(recorded.most_operands);
    std::vector<StepTime> times;
    if (options.timestamps) times.reserve(recorded.launches.size());
    double before = 0;
    for (const RecordedLaunch& launch : recorded.launches) {
      for (size_t i = 0; i < launch.operands.size(); ++i)
        operands[i] = slots[static_cast<size_t>(launch.operands[i].slot)]->host() + launch.operands[i].offset;
      CpuLaunch call;
      call.inputs = {operands.data(), launch.inputs};
      call.outputs = {operands.data() + launch.inputs, launch.operands.size() - launch.inputs};
      call.workspace = slots[static_cast<size_t>(launch.workspace.slot)]->host() + launch.workspace.offset;
      call.executor = &executor;
      if (launch.checked) SPARKLE_CHECK(check_operands(launch, call.inputs));
      if (traced) traced->set_step(static_cast<int>(&launch - recorded.launches.data()));
      if (names_) names_->push(launch.name.c_str());
      launch.kernel->run(call);
      if (names_) names_->pop();
      if (options.timestamps) {
        const double now = std::chrono::duration<double>(Clock::now() - start).count();
        times.push_back({before, now});
        before = now;
      }
    }
    const Token token{++submitted_};
    if (options.timestamps) {
      const std::lock_guard lock(mutex_);
      times_[token.value] = std::move(times);
      while (times_.size() > 16) times_.erase(times_.begin());  // those of abandoned submissions
    }
    return token;
  }

  Device device_;
  std::shared_ptr<Executor> executor_;
  HostAllocator allocator_;
  const RangeNames* const names_ = range_names();  // nullptr: no profiler listens
  WeightSlabs weights_;
  BandwidthProbe bandwidth_;
  std::atomic<uint64_t> submitted_{0};
  std::mutex mutex_;
  std::map<uint64_t, std::vector<StepTime>> times_;
};

}  // namespace

KernelFactory factory_of(Family family, std::string_view variant) {
  constexpr std::array<KernelFactory, kFamilies> families = {
#define FAMILY(name, params) make_##name,
#include "families/families.inc"
#undef FAMILY
  };
  if (variant == "plain") return make_plain;
  for (const VariantRow& row : kVariants)
    if (row.family == family && row.variant == variant) return row.make;
  return families[static_cast<size_t>(family)];
}

std::shared_ptr<Backend> make_cpu_backend(const Device& device, std::shared_ptr<Executor> executor,
                                          const HostAllocator& allocator) {
  return std::make_shared<CpuBackend>(device, std::move(executor), allocator);
}

}  // namespace sparkle::cpu
