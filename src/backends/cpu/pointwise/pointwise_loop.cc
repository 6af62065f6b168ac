// Strips are rows x columns of the two innermost axes: many short rows, or a part of one long row. What is not contiguous there
// is copied to a strip in L1 first; a row that repeats (a value per channel) is copied once and kept.
#include "backends/cpu/pointwise/pointwise_loop.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "families/loops/grain.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {
namespace {

// All strips of a worker together: half of a small L1, the rest is for what streams through.
constexpr int64_t kScratchFloats = 6144;
constexpr int64_t kLongestStrip = 1024;  // elements; 1 us of memory traffic against about 30 ns of overhead
constexpr int64_t kShortestStrip = 64;
constexpr int64_t kShortRow = 512;  // rows up to this are taken several at a time
constexpr int kMostSplats = 48;

void fill(float* to, float value) { std::fill(to, to + kSplatFloats, value); }

// rows x columns floats to neighbouring floats.
void gather(const float* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns, float* to) {
  // Where rows are the neighbours in memory, whole cache lines are read and the jumps happen in L1.
  if (row_stride == 1 && rows > 1 && column_stride != 0) {
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t r = 0; r < rows; ++r) to[r * columns + c] = from[r + c * column_stride];
    return;
  }
  for (int64_t r = 0; r < rows; ++r, to += columns) {
    const float* row = from + r * row_stride;
    if (column_stride == 1) {
      std::copy(row, row + columns, to);
    } else if (column_stride == 0) {
      std::fill(to, to + columns, *row);
    } else {
      for (int64_t c = 0; c < columns; ++c) to[c] = row[c * column_stride];
    }
  }
}

// The same for elements of another type; rows that follow each other without a gap are one.
void gather(const Conversions& convert, DType type, const std::byte* from, int64_t row_stride, int64_t column_stride,
            int64_t rows, int64_t columns, float* to) {
  if (row_stride == columns * column_stride) columns *= rows, rows = 1;
  for (int64_t r = 0; r < rows; ++r, to += columns) {
    const std::byte* row = from + r * row_stride * size_of(type);
    if (column_stride == 0) {
      convert.load(row, 1, to);
      std::fill(to + 1, to + columns, *to);
    } else {
      load_floats(convert, type, row, column_stride, columns, to);
    }
  }
}

void scatter(const Conversions& convert, DType type, const float* from, std::byte* to, int64_t row_stride,
             int64_t column_stride, int64_t rows, int64_t columns) {
  if (row_stride == columns * column_stride) columns *= rows, rows = 1;
  for (int64_t r = 0; r < rows; ++r, from += columns)
    store_floats(convert, type, from, columns, to + r * row_stride * size_of(type), column_stride);
}

}  // namespace

Result<PointwiseLoop> PointwiseLoop::make(const PointwiseParams& params, std::span<const TensorDesc> inputs,
                                          const TensorDesc& output, std::string_view unit, int64_t grain) {
  PointwiseLoop loop;
  std::vector<Dims> strides;
  if (const DType type = pointwise_arithmetic(inputs, output); type != DType::f32) {
    return Error{Reason::type_not_served,
                 "Pointwise strips compute in f32, not in " + std::string(name_of(type)) + "; choose the variant 'typed'."};
  }
  for (const TensorDesc& desc : inputs) strides.push_back(desc.layout.strides);
  strides.push_back(output.layout.strides);
  SPARKLE_TRY(program, compile_strips(params, unit));
  loop.program_ = std::move(program);
  loop.nest_ = make_nest(output.shape, strides, strides.size() - 1);
  for (const TensorDesc& desc : inputs) loop.convert_.push_back(conversions(unit, desc.dtype));
  loop.convert_.push_back(conversions(unit, output.dtype));
  if (!loop.set_accesses(inputs, output)) {
    return Error{Reason::backend_lacks_variant,
                 "The pointwise program " + expression(params) +
                     " needs more strips than fit in L1; split it or choose the variant 'plain'."};
  }
  loop.elements_ = output.shape.product(), loop.grain_ = grain;
  return loop;
}

bool PointwiseLoop::set_accesses(std::span<const TensorDesc> inputs, const TensorDesc& output) {
  const int rank = nest_.rank();
  columns_ = nest_.size[rank - 1];
  if (output.shape.product() == 0) return true;
  // Short only if a whole row fits a strip even where every operand needs one.
  const int64_t row_limit = std::min(kShortRow, kScratchFloats / static_cast<int64_t>(inputs.size() + 1 + program_.slots) - 64);
  const bool short_rows = rank > 1 && columns_ <= row_limit;
  rows_ = short_rows ? nest_.size[rank - 2] : 1;
  outer_axes_ = rank - (short_rows ? 2 : 1);
  for (size_t i = 0; i <= inputs.size(); ++i) {
    const int64_t column = nest_.strides[i][rank - 1], row = short_rows ? nest_.strides[i][rank - 2] : 0;
    Operand operand;
    operand.dtype = i < inputs.size() ? inputs[i].dtype : output.dtype;
    if (operand.dtype == DType::f32 && (column == 1 || columns_ == 1) && (!short_rows || row == column * columns_)) {
      operand.access = Access::direct;
    } else if (i < inputs.size() && column == 0 && row == 0) {
      operand.access = Access::splat;
      operand.buffer = splat_buffers_++;
    } else {
      operand.access = Access::moved;
      operand.buffer = strip_buffers_++;
    }
    operands_.push_back(operand);
  }
  strip_buffers_ += program_.slots;
  if (splat_buffers_ + static_cast<int>(program_.constants.size()) > kMostSplats) return false;
  const int64_t longest =
      std::min(kLongestStrip, kScratchFloats / std::max(1, strip_buffers_) / kShortestStrip * kShortestStrip);
  if (longest < kShortestStrip) return false;

  const int64_t outer = [&] {
    int64_t n = 1;
    for (int i = 0; i < outer_axes_; ++i) n *= nest_.size[i];
    return n;
  }();
  if (short_rows) {
    rows_per_strip_ = std::clamp<int64_t>(longest / columns_, 1, rows_);
    columns_per_strip_ = columns_;
    strips_per_outer_ = (rows_ + rows_per_strip_ - 1) / rows_per_strip_;
    strips_ = outer * strips_per_outer_;
    return true;
  }
  // Parts of equal length, whole vectors.
  const int64_t parts = (columns_ + longest - 1) / longest;
  columns_per_strip_ = std::min(longest, ((columns_ + parts - 1) / parts + 63) / 64 * 64);
  strips_per_outer_ = (columns_ + columns_per_strip_ - 1) / columns_per_strip_;
  strips_ = outer * strips_per_outer_;
  return true;
}

void PointwiseLoop::run(std::span<std::byte* const> inputs, std::byte* output, Executor& executor) const {
  if (strips_ == 0) return;
  const int64_t tasks = tasks_of(grain_, elements_, strips_, executor.width());
  for_each_range(executor, strips_, tasks, [&](int64_t begin, int64_t end) { run_strips(inputs, output, begin, end); });
}

void PointwiseLoop::run_strips(std::span<std::byte* const> inputs, std::byte* output, int64_t begin, int64_t end) const {
  alignas(64) float strips[kScratchFloats];
  alignas(64) float splats[kMostSplats * kSplatFloats];
  const size_t count = inputs.size();
  const int64_t capacity = (rows_per_strip_ * columns_per_strip_ + 15) / 16 * 16;
  const auto strip = [&](int buffer) { return strips + buffer * capacity; };
  const int constants_at = splat_buffers_, slots_at = strip_buffers_ - program_.slots;
  for (size_t i = 0; i < program_.constants.size(); ++i)
    fill(splats + (constants_at + static_cast<int>(i)) * static_cast<int>(kSplatFloats), program_.constants[i]);

  const int rank = nest_.rank();
  std::vector<int64_t> outer_offset(count + 1, 0), kept(count, INT64_MIN);  // kept: what the operand's buffer holds
  std::vector<StripOperand> values(count);
  int64_t outer = -1;
  for (int64_t s = begin; s < end; ++s) {
    if (s / strips_per_outer_ != outer) {
      outer = s / strips_per_outer_;
      for (size_t i = 0; i <= count; ++i) outer_offset[i] = nest_.offset(i, outer, outer_axes_);
    }
    const int64_t part = s % strips_per_outer_;
    const int64_t row = rows_ > 1 ? part * rows_per_strip_ : 0, column = rows_ > 1 ? 0 : part * columns_per_strip_;
    const int64_t rows = std::min(rows_per_strip_, rows_ - row), columns = std::min(columns_per_strip_, columns_ - column);
    const auto place = [&](size_t i) {
      const Dims& strides = nest_.strides[i];
      return outer_offset[i] + (rows_ > 1 ? row * strides[rank - 2] : 0) + column * strides[rank - 1];
    };
    for (size_t i = 0; i < count; ++i) {
      const Operand& operand = operands_[i];
      const int64_t at = place(i);
      const float* floats = reinterpret_cast<const float*>(inputs[i]) + at;
      const std::byte* bytes = inputs[i] + at * size_of(operand.dtype);
      if (operand.access == Access::direct) {
        values[i] = {floats, ~size_t{0}};
      } else if (operand.access == Access::splat) {
        float* to = splats + operand.buffer * static_cast<int>(kSplatFloats);
        if (kept[i] != at) {
          float value = 0;
          convert_[i].load(bytes, 1, &value);
          fill(to, value);
        }
        kept[i] = at;
        values[i] = {to, 0};
      } else {
        // Rows that repeat are filled once for the longest strip.
        const int64_t row_stride = rows_ > 1 ? nest_.strides[i][rank - 2] : 0, column_stride = nest_.strides[i][rank - 1];
        const bool repeats = rows_ > 1 && row_stride == 0;
        const int64_t fill_rows = repeats ? rows_per_strip_ : rows;
        float* to = strip(operand.buffer);
        if (!repeats || kept[i] != at) {
          if (operand.dtype == DType::f32) {
            gather(floats, row_stride, column_stride, fill_rows, columns, to);
          } else {
            gather(convert_[i], operand.dtype, bytes, row_stride, column_stride, fill_rows, columns, to);
          }
        }
        kept[i] = at;
        values[i] = {to, ~size_t{0}};
      }
    }
    const Operand& out = operands_[count];
    const int64_t out_at = place(count);
    float* result = out.access == Access::direct ? reinterpret_cast<float*>(output) + out_at : strip(out.buffer);
    const auto value = [&](const StripValue& v) -> StripOperand {
      if (v.kind == StripValue::operand) return values[static_cast<size_t>(v.index)];
      if (v.kind == StripValue::slot) return {strip(slots_at + v.index), ~size_t{0}};
      return {splats + (constants_at + v.index) * static_cast<int>(kSplatFloats), 0};
    };
    // A conversion alone needs no strip between the operand and the conversion.
    const StripStep& first = program_.steps[0];
    const bool converts = program_.steps.size() == 1 && first.op == PointwiseOp::identity && !first.clipped &&
                          first.x.kind == StripValue::operand && out.access == Access::moved &&
                          values[static_cast<size_t>(first.x.index)].mask != 0;
    const float* made = converts ? values[static_cast<size_t>(first.x.index)].data : result;
    for (size_t k = 0; k < (converts ? 0 : program_.steps.size()); ++k) {
      const StripStep& step = program_.steps[k];
      const int arity = arity_of(step.op);
      StripCall call;
      if (arity > 0) call.x = value(step.x);
      if (arity > 1) call.y = value(step.y);
      if (arity > 2) call.z = value(step.z);
      call.out = k + 1 == program_.steps.size() ? result : strip(slots_at + step.slot);
      call.count = static_cast<size_t>(rows * columns);
      call.a = step.a, call.b = step.b, call.low = step.low, call.high = step.high, call.op = step.op;
      step.function(call);
    }
    if (out.access == Access::moved) {
      const int64_t row_stride = rows_ > 1 ? nest_.strides[count][rank - 2] : 0;
      scatter(convert_[count], out.dtype, made, output + out_at * size_of(out.dtype), row_stride,
              nest_.strides[count][rank - 1], rows, columns);
    }
  }
}

}  // namespace sparkle::cpu
