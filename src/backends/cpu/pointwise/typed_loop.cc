#include "backends/cpu/pointwise/typed_loop.h"

#include <algorithm>
#include <cstdlib>

#include "base/system/denormals.h"
#include "families/values/convert.h"
#include "families/loops/grain.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {
namespace {
constexpr size_t kMostValues = 64;
}  // namespace

Result<TypedLoop> TypedLoop::make(const PointwiseParams& params, std::span<const TensorDesc> inputs, const TensorDesc& output,
                                  int64_t grain) {
  TypedLoop loop;
  loop.params_ = params;
  const DType type = pointwise_arithmetic(inputs, output);
  loop.double_ = type == DType::f64;
  with_type(type, [&]<class T>(T*) {
    if constexpr (!std::is_same_v<T, float>) loop.row_ = typed_row<T>;
  });
  if (!loop.row_)
    return Error{Reason::type_not_served, "Typed pointwise rows compute in f64 and integers, not in " +
                                              std::string(name_of(type)) + "; choose 'strips'."};
  if (inputs.size() + params.program.size() > kMostValues || params.program.empty() ||
      params.inputs != static_cast<int>(inputs.size()))
    return Error{Reason::backend_lacks_variant, "The pointwise program " + expression(params) +
                                                    " has more values than typed rows hold; split it or choose 'plain'."};
  int values = params.inputs;
  for (const PointwiseInstruction& step : params.program) {
    for (const int value : {step.x, step.y, step.z})
      if (value < 0 || value >= std::max(values, 1))
        return Error{Reason::bad_shape, "A pointwise program reads value " + std::to_string(value) +
                                            " before it exists: " + expression(params) + "."};
    ++values;
  }
  std::vector<Dims> strides;
  for (const TensorDesc& desc : inputs) strides.push_back(desc.layout.strides), loop.types_.push_back(desc.dtype);
  strides.push_back(output.layout.strides), loop.types_.push_back(output.dtype);
  loop.nest_ = make_nest(output.shape, strides, strides.size() - 1);
  if (output.shape.product() == 0) return loop;
  const int64_t columns = loop.nest_.size[loop.nest_.rank() - 1];
  loop.parts_ = (columns + kTypedRow - 1) / kTypedRow;
  loop.rows_ = output.shape.product() / columns * loop.parts_;
  loop.elements_ = output.shape.product(), loop.grain_ = grain;
  return loop;
}

void TypedLoop::run(std::span<std::byte* const> inputs, std::byte* output, Executor& executor) const {
  if (rows_ == 0) return;
  const int64_t tasks = tasks_of(grain_, elements_, rows_, executor.width());
  const int inner = nest_.rank() - 1;
  const int64_t columns = nest_.size[inner];
  for_each_range(executor, rows_, tasks, [&](int64_t begin, int64_t end) {
    const ScopedKeepDenormals keep(double_);
    std::vector<double> scratch(static_cast<size_t>(typed_scratch(params_) / 8));
    std::vector<TypedOperand> operands(inputs.size());
    TypedRow row;
    row.params = &params_;
    row.scratch = reinterpret_cast<std::byte*>(scratch.data());
    row.inputs = operands;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t column = r % parts_ * kTypedRow;
      row.count = std::min(kTypedRow, columns - column);
      const auto operand = [&](size_t i, std::byte* origin) -> TypedOperand {
        const int64_t stride = nest_.strides[i][inner];
        return {types_[i], origin + (nest_.offset(i, r / parts_, inner) + column * stride) * size_of(types_[i]), stride};
      };
      for (size_t i = 0; i < inputs.size(); ++i) operands[i] = operand(i, inputs[i]);
      row.output = operand(inputs.size(), output);
      row_(row);
    }
  });
}

}  // namespace sparkle::cpu
