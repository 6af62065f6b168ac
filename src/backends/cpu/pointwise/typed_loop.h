// A pointwise program computed in f64 or in an integer type, over tensors of any layout and type: rows along the innermost axis
// of the output, shared among threads.
#pragma once

#include "backends/cpu/loop_nest.h"
#include "backends/cpu/pointwise/typed_row.h"
#include "base/system/executor.h"
#include "base/result.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {

class TypedLoop {
 public:
  // `grain`: elements per task (families/loops/grain.h).
  static Result<TypedLoop> make(const PointwiseParams& params, std::span<const TensorDesc> inputs, const TensorDesc& output,
                                int64_t grain);
  // Pointers to the elements (0, ..., 0). The output may be an operand of the same layout.
  void run(std::span<std::byte* const> inputs, std::byte* output, Executor& executor) const;

 private:
  PointwiseParams params_;
  void (*row_)(const TypedRow&) = nullptr;
  bool double_ = false;       // computed in f64
  LoopNest nest_;             // operands, then the output
  std::vector<DType> types_;  // likewise
  int64_t parts_ = 1, rows_ = 0;
  int64_t elements_ = 0, grain_ = 0;
};

}  // namespace sparkle::cpu
