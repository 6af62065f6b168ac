// The implicit GEMM with one pattern off at a time.
#include "families/gemm/cuda/cuda_tiles.h"
#include "measure/prepared_layer.h"
#include "measure/steps/step_choices.h"

namespace sparkle {
namespace {

// Bias and activation apart, where the layer has just these.
Result<OptimisationStep> without_fusion(const Problem& problem, const AnchorCall& call, const Choice& gemm,
                                        const Device& device, const PlanOptions& options) {
  OptimisationStep fuse{"fuse", "bias and activation in a pass of their own over the sums", false, {}, ""};
  const Epilogue& e = problem.epilogue;
  if (e.bias && e.operands() == 1 && !e.has_post_op() && e.activation == Activation::relu) {
    SPARKLE_TRY(apart, unfused(call, gemm, device, options));
    fuse.choice = std::move(apart);
  } else {
    fuse.absent = "this problem has nothing to fuse";
  }
  return fuse;
}

Error no_tiles(const Problem& problem, const Device& device) {
  return Error{Reason::no_kernel, "There is no implicit GEMM by tiles for " + short_name(problem) + " on " + device.name +
                                      ", so no pattern can be switched off; --ladder shows what there is."};
}

std::string times(int a, int b) { return std::to_string(a) + " x " + std::to_string(b); }

Result<std::vector<OptimisationStep>> cpu_ablation(const Problem& problem, const AnchorCall& call, const Device& device,
                                                   const PlanOptions& options) {
  SPARKLE_TRY(gemm, gemm_of(call, device, options));
  const GemmSchedule* s = tiles_of(gemm);
  if (!s || variant_of(gemm.schedules[0]) == "plain") return no_tiles(problem, device);
  std::vector<OptimisationStep> steps;
  steps.push_back({"all on", "the planner's implicit GEMM", false, gemm, ""});
  steps.push_back(
      {"tile",
       "one sum instead of a tile of " + std::to_string(s->mr) + " rows by " + std::to_string(s->nr) + " vectors in registers",
       false, changed(gemm, device, one_by_one), ""});
  OptimisationStep block{"block", "loops not cut to the caches: for each tile of rows all weights pass", false, {}, ""};
  if (s->order == GemmOrder::rows && s->kc == 0 && s->mc == 0)
    block.absent = "all weights stay in half of the L2: nothing is cut";
  else block.choice = changed(gemm, device, [](GemmSchedule& g) { g.order = GemmOrder::rows, g.kc = g.mc = 0, g.split = 0; });
  steps.push_back(std::move(block));
  steps.push_back(
      {"vectorise", "one number in the place of each vector", false, changed(gemm, device, scalar<GemmSchedule>), ""});
  OptimisationStep pipeline{
      "pipeline", "nothing fetched ahead by the program; the core's own prefetching stays", false, {}, ""};
  if (s->prefetch == 0) pipeline.absent = "this schedule fetches nothing ahead";
  else pipeline.choice = changed(gemm, device, [](GemmSchedule& g) { g.prefetch = 0; });
  steps.push_back(std::move(pipeline));
  SPARKLE_TRY(fuse, without_fusion(problem, call, gemm, device, options));
  steps.push_back(std::move(fuse));
  return steps;
}

// Products by tiles that are compiled ahead (families/gemm/cuda/cuda_tiles.h): another variant stands for each pattern that is
// off.
Result<std::vector<OptimisationStep>> cuda_ablation(const Problem& problem, const AnchorCall& call, const Choice& base,
                                                    const Device& device, const PlanOptions& options) {
  const TileSchedule s = *schedule_of<TileSchedule>(base);
  const std::string_view variant = s.variant;
  const bool engine = variant.starts_with("wgmma"), cuda_cores = variant.starts_with("fma");
  std::vector<OptimisationStep> steps;
  steps.push_back({"all on", "the planner's implicit GEMM: " + s.variant + " by " + s.unit + " in tiles of " + times(s.m, s.n),
                   false, base, ""});
  const auto add = [&](std::string name, std::string what, std::string_view other, std::string absent) {
    OptimisationStep step{std::move(name), std::move(what), false, {}, std::move(absent)};
    if (step.absent.empty()) {
      auto choice = choice_of(other, call, device, options);
      if (choice.ok()) step.choice = std::move(*choice);
      else step.absent = "the variant '" + std::string(other) + "' that would stand for it does not support this layer";
    }
    steps.push_back(std::move(step));
  };
  add("tile", "one output a thread on CUDA cores, operands from caches", "one_output", "");
  const DType stored = call.inputs[0].dtype;
  const bool narrow = stored == DType::f16 || stored == DType::bf16;
  const std::string widened = "tiles on CUDA cores: operands of 16 bits become fp32 behind shared memory";
  add("matrix units", narrow ? widened : "tiles in strict fp32 on CUDA cores", narrow ? kCudaWidened : "fma",
      cuda_cores             ? "this product is on CUDA cores"
      : size_of(stored) == 1 ? "no kernel multiplies " + std::string(name_of(stored)) + " by tiles on CUDA cores"
      : narrow && !in_chunks(base.plan.stages[0].stage)
          ? "its pixels come element by element, for which no tiles on CUDA cores widen operands"
          : "");
  add("copying engine", "copies by threads (cp.async) and products by a warp (mma.sync)", "mma",
      engine ? "" : "this product uses none");
  add("window reuse", "each tap's pixels copied for themselves", "wgmma",
      variant == "wgmma_halo" ? "" : "only windows of few filters are kept for all taps");
  add("cluster", "each block copies its own filters", "wgmma",
      variant == "wgmma_pairs" ? "" : "blocks of this product share nothing");
  const std::string prefix = cuda_cores ? "fma" : "mma", elements = prefix + "_elements";
  OptimisationStep vectorise{"vectorise", "pixels element by element through registers instead of by 16 bytes", false, {}, ""};
  if (variant == prefix) {
    const CudaTile* tile = cuda_tile(elements, s.m, s.n);
    if (!tile) tile = cuda_tile(elements, 128, 64);
    vectorise.choice = changed<TileSchedule>(base, device, [&](TileSchedule& t) {
      t.variant = elements, t.m = tile->m, t.n = tile->n, t.k = tile->k_bytes / (s.k > 0 ? cuda_tile(s)->k_bytes / s.k : 4);
      t.thread_m = tile->part_m, t.thread_n = tile->part_n, t.depth = tile->stages, t.split = 1;
    });
  } else {
    vectorise.absent = engine ? "the engine copies lines of 128 bytes or nothing" : "its pixels come element by element";
  }
  steps.push_back(std::move(vectorise));
  add("pipeline", "tiles are copied, then multiplied, in turns", prefix + "_in_turn",
      engine ? "its barriers cannot be taken out; the step before takes the engine away" : "");
  SPARKLE_TRY(fuse, without_fusion(problem, call, base, device, options));
  steps.push_back(std::move(fuse));
  OptimisationStep window{
      "implicit window", "the window unrolled in memory, a product, its result permuted: three kernels", false, {}, ""};
  set_im2col(window, call, device, options, true);
  steps.push_back(std::move(window));
  return steps;
}

// A GPU's base is the variant with tiles of both operands in shared memory. Its lanes cannot be switched off, so "vectorise" is
// what a lane moves at once.
Result<std::vector<OptimisationStep>> gpu_ablation(const Problem& problem, const AnchorCall& call, const Device& device,
                                                   const PlanOptions& options) {
  if (auto planned = choose(call, device, options); planned.ok() && planned->schedules.size() == 1)
    if (const auto* tiles = schedule_of<TileSchedule>(*planned); tiles && is_cuda_product(tiles->variant))
      return cuda_ablation(problem, call, *planned, device, options);
  for (const char* variant : {"fma", "fma_elements", "mma", "mma_elements"})
    if (auto tiles = choice_of(variant, call, device, options); tiles.ok())
      return cuda_ablation(problem, call, *tiles, device, options);
  PlanOptions forced = options;
  forced.algorithm = "gemm", forced.variant = "implicit";
  SPARKLE_TRY(gemm, choose(call, device, forced));
  const auto* s = schedule_of<TileSchedule>(gemm);
  if (!s || s->variant != "implicit" || gemm.without_kernel) return no_tiles(problem, device);
  std::vector<OptimisationStep> steps;
  steps.push_back({"all on", "the planner's implicit GEMM by tiles", false, gemm, ""});
  OptimisationStep tile{"tile",
                        "one output a thread, operands from caches, instead of tiles of " + times(s->m, s->n) +
                            " in shared memory and " + times(s->thread_m, s->thread_n) + " in a thread's registers",
                        false,
                        {},
                        ""};
  for (const char* variant : {"fours", "groups"}) {
    forced.variant = variant;
    auto apart = choose(call, device, forced);
    if (!apart.ok() || apart->without_kernel || variant_of(apart->schedules[0]) != variant) continue;
    tile.choice = std::move(*apart);
    break;
  }
  if (tile.choice.schedules.empty()) tile.absent = "no kernel without tiles supports it";
  steps.push_back(std::move(tile));
  steps.push_back({"vectorise", "single numbers instead of four at a time between memory and a thread", false,
                   changed<TileSchedule>(gemm, device, scalar<TileSchedule>), ""});
  steps.push_back({"pipeline", "the next tiles are loaded when these are done; other workgroups of a core go on meanwhile",
                   false, changed<TileSchedule>(gemm, device, [](TileSchedule& t) { t.depth = 1; }), ""});
  OptimisationStep unroll{"unroll", "a step of k at a time, none written out", false, {}, ""};
  if (s->unroll <= 1) unroll.absent = "this schedule writes no steps out";
  else unroll.choice = changed<TileSchedule>(gemm, device, [](TileSchedule& t) { t.unroll = 1; });
  steps.push_back(std::move(unroll));
  OptimisationStep banks{
      "bank padding", "columns of tiles in shared memory without a gap: threads meet at the same banks", false, {}, ""};
  if (s->pad == 0) banks.absent = "this schedule pads nothing";
  else banks.choice = changed<TileSchedule>(gemm, device, [](TileSchedule& t) { t.pad = 0; });
  steps.push_back(std::move(banks));
  OptimisationStep planes = in_other_layout(problem, device, options, false, s);
  planes.name = "NHWC";
  steps.push_back(std::move(planes));
  SPARKLE_TRY(fuse, without_fusion(problem, call, gemm, device, options));
  steps.push_back(std::move(fuse));
  return steps;
}

}  // namespace

Result<std::vector<OptimisationStep>> ablation_of(const Problem& problem, const Device& device, const PlanOptions& options) {
  SPARKLE_CHECK(check_type(problem, device));
  const AnchorCall call = call_of(problem, device);
  return device.has_workgroups() ? gpu_ablation(problem, call, device, options) : cpu_ablation(problem, call, device, options);
}

}  // namespace sparkle
