// What a workgroup of a GPU's product needs of its core: derived from the schedule alone, so that plans keep within a device's
// limits before any driver sees a shader.
#pragma once

#include "base/dtype.h"
#include "device/device.h"
#include "families/gemm/tile_reuse.h"
#include "families/loops/tile_schedule.h"
#include "families/stage.h"
#include "families/windows/window.h"

namespace sparkle {

struct TileNeeds {
  int threads = 0;  // of a workgroup
  int64_t shared_bytes = 0;
  int registers = 0;  // of a thread, in 32-bit words: an upper bound
};
TileNeeds tile_needs(const TileSchedule& schedule);

// So many workgroups, in cores' worth of them: a core has its whole rate only with enough subgroups for each of its schedulers,
// and the last of its workgroups may be alone.
double cores_worth(double groups, const TileSchedule& schedule, const Device& device);
// That run at once, by threads and shared memory.
double groups_at_once(const TileSchedule& schedule, const Device& device);
// What the tiles of one instance of a gemm stage read, as waves of workgroups.
TileWaves tile_waves_of(const Stage& stage, const TileSchedule& schedule, const Device& device);

// A square of pixels and what its outputs see, for the variant "halo".
inline constexpr int kHaloSide = 8, kHaloFilters = 4, kHaloChannels = 4;
int64_t halo_bytes(const Window& window);  // of shared memory

// Products in the operands' native type, f64 or whole numbers.
inline constexpr const char* kNativeType = "own_type";
int64_t native_type_shared_bytes(const TileSchedule& schedule, DType type);

// The matrix units that fragments run on: "coopmat-f16" multiplies 16x16x16, others have their rows, columns and depth behind
// the name ("coopmat-f16-8x16x16"). A stand-in for tests, the same shader over shared memory, is for devices without one:
// "coopmat-f16-emulated", "coopmat-f16-8x16x16-emulated". On "coopmat-f16-group" the threads of a whole workgroup multiply
// matrices as large as its tile, whose sizes are multiples of the unit's.
inline constexpr const char* kFragmentUnit = "coopmat-f16";
inline constexpr const char* kGroupUnit = "coopmat-f16-group";
inline constexpr int kGroupThreads = 256;  // of a workgroup on it
inline constexpr int kMostGroupSide = 128;
inline constexpr int64_t kGroupReserved = 4096;  // of the shared memory, which its tiles leave to the driver
inline constexpr int kShortRun = 8;              // products that the variant "half_sums" adds in f16
inline constexpr double kShortSumsError = 2e-3;  // of its largest output: what the algorithm sums_f16 says
inline constexpr int kFragmentPad = 8;           // fp16 values between the rows of a tile: 16 bytes, another bank for each
struct Fragment {
  int m = 16, n = 16, k = 16;
};
// What a schedule's variant multiplies at once.
Fragment fragment_of(const TileSchedule& schedule);
// "coopmat-f16-8x16x16".
std::string fragment_unit_name(const Fragment& fragment);
// Whether kernels are made for such fragments.
bool is_supported(const Fragment& fragment);
bool is_emulated(std::string_view unit);
// Variants on matrix units, and of them those of whole workgroups.
bool on_fragments(const TileSchedule& schedule);
bool of_groups(const TileSchedule& schedule);

}  // namespace sparkle
