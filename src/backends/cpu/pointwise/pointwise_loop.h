// A pointwise program over tensors of any layout, compiled for one unit: walks the output in the order of memory, strip by
// strip. The pointwise family is this; others use it for their last pass.
#pragma once

#include <memory>

#include "backends/cpu/conversions.h"
#include "backends/cpu/loop_nest.h"
#include "backends/cpu/pointwise/program.h"
#include "base/system/executor.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {

class PointwiseLoop {
 public:
  // Operands and output of any types as long as they are computed in f32 (families/types.h); `grain`: elements per
  // task (families/loops/grain.h).
  static Result<PointwiseLoop> make(const PointwiseParams& params, std::span<const TensorDesc> inputs, const TensorDesc& output,
                                    std::string_view unit, int64_t grain);
  // Pointers to the elements (0, ..., 0). The output may be an operand of the same layout.
  void run(std::span<std::byte* const> inputs, std::byte* output, Executor& executor) const;

 private:
  // How an operand or the output becomes a strip.
  enum class Access : uint8_t {
    direct,  // floats that lie as a strip already
    splat,   // one value for the whole strip
    moved,   // copied element by element to or from a strip of its own
  };
  struct Operand {
    Access access = Access::direct;
    DType dtype = DType::f32;
    int buffer = 0;  // number of its splat or strip buffer
  };
  struct Worker;

  void run_strips(std::span<std::byte* const> inputs, std::byte* output, int64_t begin, int64_t end) const;
  bool set_accesses(std::span<const TensorDesc> inputs, const TensorDesc& output);

  StripProgram program_;
  LoopNest nest_;                     // operands, then the output
  std::vector<Operand> operands_;     // likewise
  std::vector<Conversions> convert_;  // likewise
  int outer_axes_ = 0;                // axes outside of a strip
  int64_t rows_ = 1, columns_ = 1;    // the innermost two axes (rows 1 where strips take one axis)
  int64_t rows_per_strip_ = 1, columns_per_strip_ = 1;
  int64_t strips_per_outer_ = 1, strips_ = 0;
  int64_t elements_ = 0, grain_ = 0;
  int strip_buffers_ = 0, splat_buffers_ = 0;
};

}  // namespace sparkle::cpu
