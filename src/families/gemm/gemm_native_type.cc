// Products of doubles and of 32- and 64-bit integers on GPUs: tiles as those of gemm_tiles.cc, of elements as they are. Such
// products are rare, so there are three shapes and no search.
#include <algorithm>

#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_tiles.h"
#include "families/type_set.h"

namespace sparkle {
namespace {

constexpr TypeSet kWholeNumbers{DType::i32, DType::u32, DType::i64, DType::u64};

// Instructions for a product in terms of a fp32 multiply-add: doubles at half the rate, as on GPUs made for them (others take
// up to 32 times as long), 32-bit integers likewise, three products of fp16 values and their sums for 64 bits.
double product_cost(DType type) { return size_of(type) == 8 && type != DType::f64 ? 8 : 2; }

bool is_supported(const Stage& stage, const Device& device) {
  const auto& p = get<GemmParams>(stage.params);
  const DType type = stage.outputs[0].dtype;
  for (const TensorDesc& d : stage.inputs)
    if (d.dtype != type) return false;
  if (p.operands != OperandType::own) return false;
  // Factors of integers are applied in double precision.
  if ((type == DType::f64 || p.epilogue.alpha != 1) && !device.unit("alu-f64")) return false;
  if (type == DType::f64) return p.epilogue.activation != Activation::gelu;  // there is no erf
  return kWholeNumbers.has(type) && p.loader == Loader::dense && !p.epilogue.scale && p.epilogue.activation == Activation::none;
}

}  // namespace

int64_t native_type_shared_bytes(const TileSchedule& s, DType type) {
  return size_of(type) * s.k * (int64_t{s.m} + s.pad + s.n);
}

std::vector<Schedule> gemm_native_type_schedules(const Stage& stage, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  if (!is_supported(stage, device)) return refuse(Reason::type_not_served);
  std::vector<Schedule> found;
  const int64_t shared = device.limits.shared_bytes_per_group, threads = device.limits.max_threads_per_group;
  for (const int side : {4, 2, 1}) {
    TileSchedule s;
    s.variant = kNativeType;
    s.unit = unit->name;
    s.m = s.n = 16 * side, s.k = 16, s.thread_m = s.thread_n = side, s.pad = 1;
    if (shared > 0 && native_type_shared_bytes(s, stage.outputs[0].dtype) > shared) continue;
    if (threads > 0 && tile_needs(s).threads > threads) continue;
    found.push_back(s);
  }
  if (found.empty()) return refuse(Reason::too_few_registers);
  return found;
}

void weigh_native_type(Footprint& f, const Stage& stage, const Device& device) {
  const DType type = stage.outputs[0].dtype;
  f.executed_flops *= product_cost(type);
  for (size_t i = 0; i < f.bytes.size(); ++i)
    if (device.memory[i].filled_by_hand) f.bytes[i] *= static_cast<double>(size_of(type)) / 4;
}

}  // namespace sparkle
