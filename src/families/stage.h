// Stage: one call of a kernel family on operands whose shapes and layouts are known. Device-free.
// Schedule: how a Stage runs on a device. Footprint: what it will do there. FamilyInfo: what a family offers.
#pragma once

#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "device/device.h"
#include "families/attention/attention.h"
#include "families/copy/copy.h"
#include "families/deform/deform.h"
#include "families/depthwise/depthwise.h"
#include "families/direct/direct.h"
#include "families/fft/fft.h"
#include "families/gather/gather.h"
#include "families/gemm/gemm.h"
#include "families/grouped/grouped.h"
#include "families/inverted/inverted.h"
#include "families/non_max/non_max.h"
#include "families/normalize/normalize.h"
#include "families/pad/pad.h"
#include "families/pointwise/pointwise.h"
#include "families/pool/pool.h"
#include "families/quantize/quantize.h"
#include "families/reduce/reduce.h"
#include "families/resize/resize.h"
#include "families/rotary/rotary.h"
#include "families/sample/sample.h"
#include "families/scan/scan.h"
#include "families/scatter/scatter.h"
#include "families/softmax/softmax.h"
#include "families/tile_schedule.h"
#include "families/top_k/top_k.h"
#include "families/triangle/triangle.h"
#include "families/winograd/winograd.h"

namespace sparkle {

// One alternative per family, in the order of Family below.
using StageParams =
    std::variant<GemmParams, DepthwiseParams, PoolParams, PointwiseParams, ReduceParams, SoftmaxParams, NormalizeParams,
                 CopyParams, PadParams, ResizeParams, GatherParams, ScatterParams, TopKParams, ScanParams, TriangleParams,
                 NonMaxParams, AttentionParams, RotaryParams, SampleParams, DeformParams, QuantizeParams, WinogradParams,
                 GroupedParams, DirectParams, InvertedParams, FftParams>;
enum class Family : uint8_t {
  gemm,
  depthwise,
  pool,
  pointwise,
  reduce,
  softmax,
  normalize,
  copy,
  pad,
  resize,
  gather,
  scatter,
  top_k,
  scan,
  triangle,
  non_max,
  attention,
  rotary,
  sample,
  deform,
  quantize,
  winograd,
  grouped,
  direct,
  inverted,
  fft
};
inline constexpr int kFamilies = std::variant_size_v<StageParams>;
std::string_view name_of(Family family);
bool parse_name(std::string_view text, Family& family);

struct Stage {
  StageParams params;
  std::vector<TensorDesc> inputs, outputs;

  Family family() const { return static_cast<Family>(params.index()); }
};

// The schedule of every family without searched tiles: which variant and unit, and how much work a task takes.
struct LoopSchedule {
  std::string variant = "plain";
  std::string unit;
  int64_t grain = 0;  // elements of output per task; 0: the kernel's own choice

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("grain", grain);
  }
  friend bool operator==(const LoopSchedule&, const LoopSchedule&) = default;
};

struct DepthwiseSchedule {
  std::string variant = "plain";
  std::string unit;
  int rows = 1;     // output rows of the register tile
  int columns = 1;  // output columns of the register tile
  int vectors = 1;  // channel vectors of the register tile
  int64_t grain = 0;

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("rows", rows), v("columns", columns), v("vectors", vectors);
    v("grain", grain);
  }
  friend bool operator==(const DepthwiseSchedule&, const DepthwiseSchedule&) = default;
};

using Schedule = std::variant<LoopSchedule, GemmSchedule, DepthwiseSchedule, WinogradSchedule, GroupedSchedule, DirectSchedule,
                              InvertedSchedule, FftSchedule, TileSchedule, FftTileSchedule>;
const std::string& variant_of(const Schedule& schedule);
const std::string& unit_of(const Schedule& schedule);
std::string to_text(const Schedule& schedule);
Result<Schedule> schedule_from_text(Family family, std::string_view text);
std::string to_text(const StageParams& params);
Result<StageParams> params_from_text(Family family, std::string_view text);

// What a Stage will do under a Schedule, in terms that mean the same on every device.
struct Footprint {
  double nominal_flops = 0;      // 2 * products of the direct method, padding taps counted
  double executed_flops = 0;     // what is really executed: padding taps left out, idle lanes counted
  std::vector<double> bytes;     // moved per memory level of the device, innermost first (between it and the next inner one)
  std::vector<double> exposed;   // the part of `bytes` that no arithmetic hides: moved in phases of their own; empty: none
  double port_bytes = 0;         // of the innermost level where single floats count as much as the vectors whose loads they
                                 // take; 0: as `bytes` counts them
  std::vector<double> resident;  // bytes that want to stay per memory level
  double parallel_units = 1;     // independent tasks
  double calls = 0;              // of micro-kernels: each takes some time beside its arithmetic
  double launches = 1;           // that wait for one another: each costs the device's launch_seconds
  int depth = 1;                 // loads in flight per task
  int64_t workspace_bytes = 0;   // scratch memory at run time
};

// One row of a family's variants table.
struct Variant {
  std::string_view name;  // "tile6x4"; unique in the family
  DeviceKind device;      // whose backend implements it
  UnitKind unit;          // the kind of math unit that it needs
  int rows, vectors;      // register tile, or 0
  int registers;          // vector registers needed
  std::string_view note;  // why it exists, one line
};

// What a family offers to the planner, the backends and the tests.
struct FamilyInfo {
  std::string_view name;
  std::span<const Variant> variants;
  // Plain loops in double precision over any layout: the oracle. Operands as the family's header lists them.
  void (*reference)(const StageParams&, std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  // Prediction for one schedule on one device.
  Footprint (*footprint)(const Stage&, const Schedule&, const Device&);
  // Schedules worth ranking on this device for this variant; empty with a reason if the variant cannot serve the stage.
  std::vector<Schedule> (*schedules)(const Stage&, const Variant&, const Device&, Reason& why_not);
  // What the data must keep to beyond shapes and types (indices within their axis), looked at before each run where there is
  // such a rule: bad_input with the part of a sentence that follows the node's name. nullptr: nothing to check.
  Status (*check)(const StageParams&, std::span<const TensorView> inputs) = nullptr;
};
const FamilyInfo& info(Family family);
// The family's check as a whole sentence that names the node.
Status check_data(const Stage& stage, std::span<const TensorView> inputs, const std::string& node);

// One definition per family, in the family's folder; info() lists them.
const FamilyInfo& gemm_info();
const FamilyInfo& depthwise_info();
const FamilyInfo& pool_info();
const FamilyInfo& pointwise_info();
const FamilyInfo& reduce_info();
const FamilyInfo& softmax_info();
const FamilyInfo& normalize_info();
const FamilyInfo& copy_info();
const FamilyInfo& pad_info();
const FamilyInfo& resize_info();
const FamilyInfo& gather_info();
const FamilyInfo& scatter_info();
const FamilyInfo& top_k_info();
const FamilyInfo& scan_info();
const FamilyInfo& triangle_info();
const FamilyInfo& non_max_info();
const FamilyInfo& attention_info();
const FamilyInfo& rotary_info();
const FamilyInfo& sample_info();
const FamilyInfo& deform_info();
const FamilyInfo& quantize_info();
const FamilyInfo& winograd_info();
const FamilyInfo& grouped_info();
const FamilyInfo& direct_info();
const FamilyInfo& inverted_info();
const FamilyInfo& fft_info();

}  // namespace sparkle
