// The parts that gemm_info() is made of.
#pragma once

#include <span>

#include "families/family.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_shape.h"
#include "families/stage.h"
#include "families/loops/tile_schedule.h"

namespace sparkle {

// Dense products of integers; a bias and residuals, no activation.
void gemm_integers(const GemmParams& p, std::span<const TensorView> inputs, const TensorView& y);
void gemm_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs);
// The convolution that another family computes in a way of its own.
template <class Params>
GemmParams as_convolution(const Params& p) {
  GemmParams gemm;
  if constexpr (requires { p.groups; }) gemm.groups = p.groups;
  gemm.window = p.window;
  gemm.epilogue = p.epilogue;
  return gemm;
}
template <class Params>
void convolution_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  gemm_reference(as_convolution(get<Params>(params)), inputs, outputs);
}
Footprint gemm_footprint(const Stage& stage, const Schedule& schedule, const Device& device);
std::vector<Schedule> gemm_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not);

Blocking gemm_blocking(const Stage& stage, const Schedule& schedule, const Device& device);

// The same for GPUs: products in tiles of workgroups.
Footprint gemm_tile_footprint(const Stage& stage, const TileSchedule& schedule, const Device& device);
// What tiles of products keep in registers, shared memory and the cache of all cores, here and in families that are products in
// between: the stage's own operands are not named.
void add_tile_blocking(Blocking& blocking, const TileSchedule& schedule, const GemmSizes& sizes, const Stage& stage,
                       const Device& device);
// Tiles for products of another family's; `variant` is that family's.
std::vector<TileSchedule> product_tiles(const GemmSizes& sizes, std::string_view variant, const Device& device);
std::vector<Schedule> gemm_tile_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not);

// Of doubles, and integers of 32 and 64 bits.
std::vector<Schedule> gemm_native_type_schedules(const Stage& stage, const Device& device, Reason& why_not);
// A footprint counted in multiply-adds and words of 32 bits to one of the stage's own.
void weigh_native_type(Footprint& footprint, const Stage& stage, const Device& device);

// And of 8-bit integers.
bool is_integer_tile(std::string_view variant);
int64_t integer_tile_shared_bytes(const TileSchedule& schedule);
Footprint gemm_integer_tile_footprint(const Stage& stage, const TileSchedule& schedule, const Device& device);
std::vector<Schedule> gemm_integer_tile_schedules(const Stage& stage, const Variant& variant, const Device& device,
                                                  Reason& why_not);

}  // namespace sparkle
