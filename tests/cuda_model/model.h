// A functional model of NVIDIA's GPUs: kernels compiled for the host run in it, a thread of theirs a fiber. It models what PTX
// documents and nothing of timing: what threads may see of each other's work is as late as the rules allow, and what they
// may not rely on is poison (bytes of 0xff) or a fault, which ends the launch with a sentence. Clusters run one after another,
// so races between them by way of device memory are not seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cuda_model {

struct Size3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct Kernel {
  const char* name = "";
  size_t record_bytes = 0, record_alignment = 1;
  int threads = 0;  // of a block, at most
  void (*run)(const void* record) = nullptr;
};
struct Registered {
  explicit Registered(const Kernel& kernel);
};
const Kernel* find_kernel(std::string_view name);
std::vector<const Kernel*> all_kernels();

struct Launch {
  Size3 grid, block, cluster;
  uint32_t shared_bytes = 0;
  uint64_t seed = 1;   // of the order in which threads run and copies land
  bool early = false;  // what it follows may still run: until a thread has waited for that, device memory is closed to it
};
// Runs the kernel to its end. Errors: the sentence of the first fault, else empty. One launch at a time in a process.
std::string launch(const Kernel& kernel, const Launch& launch, const void* record);

// Blocks of the launch before that were over without having let what follows begin.
uint64_t blocks_without_leave();

// Device memory: where any is named, accesses outside of all that is named are faults.
void allow_memory(const void* begin, size_t bytes);
void forget_memory(const void* begin);

// A tensor map: 128 bytes that only the model reads, as a driver's are only a GPU's to read.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
// The bit of words[1] that drivers up to CUDA 13.1 set wrongly for tensors below 128 KB; the model stumbles over it.
inline constexpr uint64_t kWrongBit = uint64_t{1} << 21, kSmallTensor = 131072;
enum class MapType : uint32_t { u8, u16, u32, f16, bf16, f32, tf32 };
struct MapShape {
  MapType type = MapType::u8;
  uint32_t rank = 0;
  const void* address = nullptr;
  uint64_t size[5] = {};     // innermost first
  uint64_t strides[5] = {};  // bytes; [0] is the element's
  uint32_t element_strides[5] = {1, 1, 1, 1, 1};
  uint32_t box[5] = {};  // tiled
  bool im2col = false;
  int32_t lower[3] = {}, upper[3] = {};  // im2col: corners along the spatial axes, innermost first
  uint32_t channels = 0, pixels = 0;     // im2col: of a column
  uint32_t swizzle = 0;                  // bytes: 0, 32, 64 or 128
  bool zeros = true;                     // outside: zeros, else NaN
};
// Errors: what cuTensorMapEncodeTiled and -Im2col refuse, in a sentence; else empty.
std::string encode(const MapShape& shape, TensorMap& map);

// ---- What the wrappers of src/backends/cuda/ptx call, from inside a launch.
using SharedAddress = uint32_t;  // rank of the block in its cluster << 24 | offset
struct Launched {
  Size3 grid, block, cluster;
};
const Launched& launched();
uint32_t thread_id();
Size3 block_id();
uint32_t cluster_rank();
[[noreturn]] void fault(const std::string& sentence);

void sync_threads(uint32_t number, uint32_t threads);
void arrive_threads(uint32_t number, uint32_t threads);
void sync_warp();
uint32_t shuffle(uint32_t value, uint32_t lane,
                 uint32_t exclusive_or);  // from `lane`, or where that is 0 from this ^ the other
uint32_t ballot(bool vote);
void sync_cluster();
void wait_for_prerequisites();  // griddepcontrol.wait
void launch_dependents();
uint32_t atomic_add(uint32_t* at, uint32_t value);
void wait_for_word(const uint32_t* at, uint32_t value);  // until it has this value
uint32_t atomic_min(uint32_t* at, uint32_t value);

SharedAddress shared_base();
SharedAddress map_shared(SharedAddress own, uint32_t rank);  // the same place in another block of the cluster
void load_shared(void* to, SharedAddress from, uint32_t bytes);
void store_shared(SharedAddress to, const void* from, uint32_t bytes);
void load_global(void* to, const void* from, uint32_t bytes);
void store_global(void* to, const void* from, uint32_t bytes);

// Matrices: registers as PTX numbers them.
void load_matrix(uint32_t* registers, int count, SharedAddress row, bool transposed);
void store_matrix(SharedAddress row, const uint32_t* registers, int count, bool transposed);
enum class Product : uint32_t { f16, bf16, tf32, s8, u8, e4m3, e5m2 };
void mma(Product type, void* sums, const uint32_t* a, const uint32_t* b);  // m16n8 by 32 bytes of k; 4 sums a lane
// wmma m16n16k16 of f16 with sums in f32: eight registers a lane each, rows of A and columns of B `stride` elements apart.
// Where elements lie in registers is not said by PTX, and the model has a way of its own.
void wmma_load(uint32_t* registers, SharedAddress from, uint32_t stride);
void wmma(float* sums, const uint32_t* a, const uint32_t* b);
void wmma_store(SharedAddress to, const float* sums, uint32_t stride);  // rows

// cp.async.
void copy_async(SharedAddress to, const void* from, uint32_t bytes, uint32_t given);  // the rest of `bytes` is zero
void commit_copies();
void wait_copies(uint32_t groups);  // all but the last groups

// mbarrier.
void barrier_init(SharedAddress barrier, uint32_t count);
void barrier_arrive(SharedAddress barrier, uint32_t expect_bytes);  // own or, mapped, another block's
void barrier_expect(SharedAddress barrier, uint32_t bytes);
void barrier_wait(SharedAddress barrier, uint32_t parity);

// TMA. `blocks`: multicast mask, 0: none.
void tma_load(SharedAddress to, const void* map, const int32_t* at, int rank, SharedAddress barrier, const uint16_t* offsets,
              uint16_t blocks);
void tma_store(const void* map, const int32_t* at, int rank, SharedAddress from);
void commit_stores();
void wait_stores(uint32_t groups, bool read_only);

// Fences and wgmma.
void fence_async_proxy();
void wgmma_fence();
// D (m64 x n, `count` floats or integers a lane) = (scale_d ? D : 0) + A * B by descriptors.
void wgmma(Product a_type, Product b_type, int n, void* sums, uint64_t a, uint64_t b, bool keep);
void wgmma_commit();
void wgmma_wait(uint32_t groups);

}  // namespace cuda_model
