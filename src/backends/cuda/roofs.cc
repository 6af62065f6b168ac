#include "backends/cuda/roofs.h"

#include <bit>

#include "backends/cuda/kernels/roofs/roof_record.h"
#include "backends/roof_runs.h"
#include "families/copy/copy.h"

namespace sparkle::cuda {
namespace {

constexpr double kProbeSeconds = 1e-3;
constexpr unsigned kBlocksOfCore = 8;  // two times what a core holds at once, so that no core is idle at the end for long
constexpr uint32_t kNearVectors = 1024;
constexpr int64_t kVectorBytes = 16, kLeastSet = int64_t{1} << 20, kBeyondCaches = int64_t{512} << 20;

constexpr double kFma = 2.0 * kRoofThreads * kRoofFmaChains * kRoofFmaProducts;
constexpr double mma(int k) { return 2.0 * 16 * 8 * k * kRoofMmaChains * kRoofMmaProducts * kRoofWarps; }
constexpr double wgmma(int k) { return 2.0 * 64 * kRoofColumns * k * kRoofGroupProducts * kRoofGroups; }

// Ones of each type side by side.
constexpr uint32_t kHalfs = 0x3c003c00, kBfloats = 0x3f803f80, kFloat = 0x3f800000, kBytes = 0x01010101, kE4m3 = 0x38383838,
                   kE5m2 = 0x3c3c3c3c;

const std::pair<std::string_view, RoofKernel> kUnits[] = {
    {"fma-f32", {"sparkle_roof_fma_f32", 0, 0, kFma}},
    {"mma-f16", {"sparkle_roof_mma_f16", 0, kHalfs, mma(16)}},
    {"mma-bf16", {"sparkle_roof_mma_bf16", 0, kBfloats, mma(16)}},
    {"mma-tf32", {"sparkle_roof_mma_tf32", 0, kFloat, mma(8)}},
    {"mma-i8", {"sparkle_roof_mma_i8", 0, kBytes, mma(32)}},
    {"wgmma-f16", {"sparkle_roof_wgmma_f16", kRoofGroupBytes, kHalfs, wgmma(16)}},
    {"wgmma-bf16", {"sparkle_roof_wgmma_bf16", kRoofGroupBytes, kBfloats, wgmma(16)}},
    {"wgmma-tf32", {"sparkle_roof_wgmma_tf32", kRoofGroupBytes, kFloat, wgmma(8)}},
    {"wgmma-i8", {"sparkle_roof_wgmma_i8", kRoofGroupBytes, kBytes, wgmma(32)}},
    {"wgmma-e4m3", {"sparkle_roof_wgmma_e4m3", kRoofGroupBytes, kE4m3, wgmma(32)}},
    {"wgmma-e5m2", {"sparkle_roof_wgmma_e5m2", kRoofGroupBytes, kE5m2, wgmma(32)}},
};
const RoofKernel kRead{"sparkle_roof_read"}, kCopy{"sparkle_roof_copy"}, kNear{"sparkle_roof_near"},
    kShared{"sparkle_roof_shared", kRoofSharedBytes, kBytes};

unsigned blocks_of(const Device& device, unsigned asked) {
  return asked ? asked : static_cast<unsigned>(std::max(1, device.cores)) * kBlocksOfCore;
}

Status have(Backend& backend, std::shared_ptr<Buffer>& buffer, int64_t bytes) {
  if (buffer && buffer->bytes() >= bytes) return ok();
  buffer.reset();
  SPARKLE_TRY(made, backend.allocate(bytes, MemoryKind::device));
  buffer = std::move(made);
  return ok();
}

// Seconds of a round. `bytes`: that are read.
Result<double> time_of(Backend& backend, const Workshop& shop, RoofBuffers& kept, const RoofKernel& kernel, unsigned blocks,
                       int64_t bytes, int least) {
  SPARKLE_CHECK(have(backend, kept.from, std::max<int64_t>(bytes, kVectorBytes)));
  SPARKLE_CHECK(have(backend, kept.copied, &kernel == &kCopy ? bytes : kVectorBytes));
  SPARKLE_CHECK(have(backend, kept.to, int64_t{4} * kRoofThreads * blocks));
  Buffer* const buffers[] = {kept.from.get(), kept.copied.get(), kept.to.get()};
  return seconds_of_round(backend, buffers, least, kProbeSeconds, [&](int rounds) {
    return roof_launch(shop, kernel, blocks, static_cast<uint32_t>(bytes / kVectorBytes), rounds);
  });
}

}  // namespace

const RoofKernel* roof_kernel_of(std::string_view unit) {
  for (const auto& [name, kernel] : kUnits)
    if (name == unit) return &kernel;
  return nullptr;
}

Result<CudaKernelPtr> roof_launch(const Workshop& shop, const RoofKernel& kernel, unsigned blocks, uint32_t count, int rounds) {
  RoofRecord record;
  record.count = count, record.rounds = static_cast<uint32_t>(rounds), record.ones = kernel.ones, record.one = 1;
  SPARKLE_TRY(launch, launch_of(shop, kernel.name, record, {blocks, 1, 1}, kRoofThreads, kernel.shared_bytes));
  launch.addresses = {{offsetof(RoofRecord, from), 0}, {offsetof(RoofRecord, copied), 1}, {offsetof(RoofRecord, to), 2}};
  Stage stage;
  stage.params = CopyParams{};
  const TensorDesc bytes = dense_desc(DType::f32, {4});
  stage.inputs = {bytes, bytes}, stage.outputs = {bytes};
  auto made = std::make_unique<CudaKernel>(stage);
  made->launches.push_back(std::move(launch));
  return made;
}

Result<double> measure_flops(Backend& backend, const Workshop& shop, RoofBuffers& kept, std::string_view unit, unsigned asked) {
  const RoofKernel* const kernel = roof_kernel_of(unit);
  if (!kernel || !backend.device().unit(unit)) return 0.0;
  const unsigned blocks = blocks_of(backend.device(), asked);
  SPARKLE_TRY(seconds, time_of(backend, shop, kept, *kernel, blocks, 0, asked ? 1 : 16));
  return seconds > 0 ? kernel->flops * blocks / seconds : 0.0;
}

Result<double> measure_bandwidth(Backend& backend, const Workshop& shop, RoofBuffers& kept, size_t level, double bytes,
                                 unsigned asked) {
  const Device& device = backend.device();
  if (level >= device.memory.size()) return 0.0;
  const unsigned blocks = blocks_of(device, asked);
  const std::string& name = device.memory[level].name;
  if (name == "shared" || name == "L1") {  // of each core its own
    const bool shared = name == "shared";
    SPARKLE_TRY(seconds, time_of(backend, shop, kept, shared ? kShared : kNear, blocks,
                                 shared ? 0 : kNearVectors * kVectorBytes, asked ? 1 : 16));
    const int reads = shared ? kRoofSharedReads : kRoofReads;
    return seconds > 0 ? double{kVectorBytes} * reads * kRoofThreads * blocks / seconds : 0.0;
  }
  // What the L2 holds half of at most; beyond it as much as no cache helps with.
  const bool last = level + 1 == device.memory.size();
  const int64_t most = last ? std::min(kBeyondCaches, std::max(device.memory[level].bytes / 8, kLeastSet))
                            : std::max(device.memory[level].bytes / 2, kLeastSet);
  const int64_t set = last ? most : std::clamp(static_cast<int64_t>(bytes), kLeastSet, most) / 32 * 32;
  double best = 0;
  for (const bool copies : {false, true}) {
    const int64_t read = copies ? set / 2 : set;  // of a copy half are writes
    SPARKLE_TRY(seconds, time_of(backend, shop, kept, copies ? kCopy : kRead, blocks, read, 1));
    if (seconds <= 0) return 0.0;
    best = std::max(best, static_cast<double>(set) / seconds);
  }
  return best;
}

}  // namespace sparkle::cuda
