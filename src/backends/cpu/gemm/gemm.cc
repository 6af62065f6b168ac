// make_gemm: a gemm stage compiled for the CPU. Workspace: packed weights (if they are not constant), the copied left
// operand (if its k is not contiguous), scale and bias padded to whole vectors.
#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/gemm_nest.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/gemm/integers/integer_gemm.h"
#include "backends/cpu/gemm/matrix/matrix_gemm.h"
#include "backends/cpu/packing_kernel.h"
#include "families/common.h"
#include "families/gemm/gemm.h"
#include "families/gemm/stored_weights.h"
#include "families/gemm/scalar_unit.h"
#include "families/integers/integers.h"

namespace sparkle::cpu {
namespace {

class GemmKernel final : public PackingKernel {
 public:
  GemmKernel(const Stage& stage, GemmSchedule schedule, GemmGeometry geometry, const TileKernels& tiles, bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<GemmParams>(stage_.params)),
        schedule_(std::move(schedule)),
        geometry_(std::move(geometry)),
        tiles_(tiles) {
    workspace_ = gemm_workspace(params_, geometry_);
    size_workspace(workspace_.bytes, aligned(panel_bytes(geometry_, tiles_)));
  }

  void run(const CpuLaunch& launch) const override {
    if (geometry_.n == 0 || geometry_.tiles == 0 || geometry_.instances.empty()) return;
    run_gemm(geometry_, schedule_, params_.epilogue, tiles_,
             gemm_operands(stage_, geometry_, workspace_, launch, packed_weights(launch)), *launch.executor);
  }

 private:
  // Panel widths and where each element comes from.
  std::string weights_key() const override {
    const DType stored = stored_weights(schedule_.variant);
    return "gemm lanes=" + std::to_string(tiles_.lanes) + " nr=" + std::to_string(schedule_.nr) +
           " groups=" + std::to_string(params_.groups) + " loader=" + std::string(name_of(params_.loader)) + " " +
           weights_place(stage_.inputs[1]) + (stored != DType::f32 ? " kept=" + std::string(name_of(stored)) : "") +
           (tiles_.columns_apart ? " columns apart" : "");
  }
  void write_weights(const std::byte* from, std::byte* to, Executor& executor) const override {
    pack_weights(geometry_, tiles_, reinterpret_cast<const float*>(from), to, executor);
  }

  GemmParams params_;
  GemmSchedule schedule_;
  GemmGeometry geometry_;
  TileKernels tiles_;
  GemmWorkspace workspace_;
};

Error lacks(std::string what) { return {Reason::backend_lacks_variant, "The CPU's gemm kernels " + std::move(what) + "."}; }

Status check_stage(const Stage& stage) {
  const auto* params = get_if<GemmParams>(&stage.params);
  if (!params || stage.outputs.size() != 1 || stage.inputs.size() != static_cast<size_t>(2 + params->epilogue.operands()))
    return Error{Reason::internal, "A gemm stage has two operands, those of its epilogue and one output."};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list)
      if (desc.dtype != DType::f32)
        return Error{Reason::type_not_served, "The CPU's gemm kernels compute in f32, not " + std::string(name_of(desc.dtype)) +
                                                  "; convert the operand."};
  return ok();
}

}  // namespace

Result<CpuKernelPtr> make_gemm(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  const auto* s = get_if<GemmSchedule>(&schedule);
  if (!s) return lacks("run register tiles, not the schedule '" + to_text(schedule) + "'");
  const MathUnit* widest = s->unit == kScalarUnit ? best_vector_unit(device) : nullptr;
  if (!widest && !device.unit(s->unit)) return lacks("cannot use the unit '" + s->unit + "', which this device does not have");
  if (is_integer(stage.inputs)) return make_integer_gemm(stage, *s, (constants >> 1 & 1) != 0);
  const DType stored = stored_weights(s->variant);
  const bool constant_weights = (constants >> 1 & 1) != 0;
  if (s->variant == kMatrixBf16) {
    const MatrixKernels* matrix = matrix_kernels_of(s->unit);
    const MathUnit* vectors = best_vector_unit(device);
    if (!matrix || !vectors) return lacks("have no tiles of bf16 for the unit '" + s->unit + "'");
    SPARKLE_CHECK(check_stage(stage));
    return make_matrix_gemm(stage, *s, *matrix, vectors->name, constant_weights);
  }
  if (stored != DType::f32 && (widest || !constant_weights))
    return lacks("keep weights in 16 bits only where these are constant and the unit is one of vectors");
  const TileKernels* wide = widest                   ? scalar_kernels_of(widest->name)
                            : s->variant == kRowDots ? row_dot_kernels_of(s->unit)
                                                     : tile_kernels_of(s->unit);
  const TileKernels tiles = stored != DType::f32 ? tile_kernels_16(s->unit, stored) : wide ? *wide : TileKernels{};
  if (tiles.lanes == 0) return lacks("have no tile for the unit '" + s->unit + "'");
  if (s->mr < 1 || s->mr > kMaxTileRows || s->nr < 1 || s->nr > tiles.max_vectors)
    return lacks("have no tile of " + std::to_string(s->mr) + " rows by " + std::to_string(s->nr) + " vectors for the unit '" +
                 s->unit + "'");
  SPARKLE_CHECK(check_stage(stage));
  SPARKLE_TRY(geometry, gemm_geometry(stage, *s, tiles.lanes));
  return CpuKernelPtr(std::make_unique<GemmKernel>(stage, *s, std::move(geometry), tiles, constant_weights));
}

}  // namespace sparkle::cpu
