// Sums run in fp32 over blocks short enough that the error grows like that of pairwise sums, blocks are added in double. The
// partition depends on sizes alone, so the result is the same for any number of threads.
#include "backends/cpu/reduce/reduce_loop.h"
#include "families/loops/grain.h"

#include <algorithm>
#include <array>
#include <string>

namespace sparkle::cpu {
namespace {

constexpr int64_t kRowBlock = 4096;     // floats summed in fp32: at most 64 + log2 additions per chain on 16 lanes
constexpr int64_t kColumnBlock = 1024;  // columns folded together: 4 KB of fp32 and 8 KB of double totals in L1
constexpr int64_t kRowsInFloat = 64;    // rows folded in fp32
// Rows up to kNarrow floats (four vectors of AVX-512) are read in order while 64 of them are folded in registers; wider ones
// are taken eight at a time, so that memory is still read nearly in order and totals are stored once per eight loads.
constexpr int64_t kNarrow = 64;
constexpr int64_t kWideRows = 8;
constexpr int64_t kChunk = 65536;  // elements that are worth a task of their own
constexpr int64_t kMostItems = 64;

int64_t parts_of(int64_t size, int64_t part) { return std::max<int64_t>(1, (size + part - 1) / part); }

}  // namespace

int64_t ReduceLoop::Axes::offset(int64_t linear) const {
  int64_t at = 0;
  for (int i = size.size() - 1; i > 0; --i) {
    at += linear % size[i] * strides[i];
    linear /= size[i];
  }
  return size.empty() ? at : at + linear * strides[0];
}

Result<ReduceLoop> ReduceLoop::make(const TensorDesc& x, const Dims& axes, std::string_view unit, int64_t grain) {
  if (x.dtype != DType::f32) {
    return Error{Reason::type_not_served,
                 "Vector reductions take f32, not " + std::string(name_of(x.dtype)) + "; choose the variant 'plain'."};
  }
  if (!fold_functions(unit, Fold::sum).row) {
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no reductions for the unit '" + std::string(unit) + "'; choose the variant 'plain'."};
  }
  ReduceLoop loop;
  loop.unit_ = unit, loop.grain_ = grain;
  // Group numbers follow the memory of x.
  const int rank = x.shape.size();
  std::vector<int> kept;
  std::array<bool, kMaxRank> is_reduced{};
  for (int64_t axis : axes) is_reduced[static_cast<size_t>(axis)] = true;
  for (int i = 0; i < rank; ++i) {
    if (is_reduced[static_cast<size_t>(i)]) {
      loop.count_ *= x.shape[i];
    } else {
      kept.push_back(i);
    }
  }
  std::sort(kept.begin(), kept.end(), [&](int a, int b) {
    // As in make_nest(): repeated axes are outermost.
    const auto reach = [&](int axis) { return x.layout.strides[axis] == 0 ? INT64_MAX : std::abs(x.layout.strides[axis]); };
    const int64_t pa = reach(a), pb = reach(b);
    return pa != pb ? pa < pb : a > b;
  });
  loop.group_strides_ = Dims::filled(rank, 0);
  for (int axis : kept) {
    loop.group_strides_[axis] = loop.groups_;
    loop.groups_ *= x.shape[axis];
  }
  if (loop.groups_ == 0 || loop.count_ == 0) return loop;

  const Dims strides[] = {x.layout.strides, loop.group_strides_};
  const LoopNest nest = make_nest(x.shape, strides, 0);
  const int inner = nest.rank() - 1;
  loop.columns_kept_ = nest.strides[1][inner] != 0 && loop.count_ > 1;
  loop.columns_ = nest.size[inner];
  loop.column_stride_ = nest.strides[0][inner];
  for (int i = 0; i < inner; ++i) {
    Axes& part = nest.strides[1][i] != 0 ? loop.kept_ : loop.reduced_;
    part.size.push_back(nest.size[i]);
    part.strides.push_back(nest.strides[0][i]);
    if (nest.strides[1][i] != 0) loop.kept_groups_.strides.push_back(nest.strides[1][i]);
  }
  // Nothing to reduce: every element is a group of one.
  if (loop.count_ == 1 && nest.strides[1][inner] != 0) {
    loop.kept_.size.push_back(loop.columns_), loop.kept_.strides.push_back(loop.column_stride_);
    loop.kept_groups_.strides.push_back(nest.strides[1][inner]);
    loop.columns_ = loop.column_stride_ = 1;
  }
  loop.kept_groups_.size = loop.kept_.size;
  const int last = loop.reduced_.size.size() - 1;
  if (loop.columns_kept_ && loop.columns_ <= kNarrow / 2 && nest.strides[1][inner - 1] == 0 && loop.column_stride_ == 1 &&
      loop.reduced_.strides[last] == loop.columns_) {
    const int64_t rows = loop.reduced_.size[last];
    loop.repeat_ = std::min(rows, kNarrow / loop.columns_);
    loop.reduced_.size[last] = parts_of(rows, loop.repeat_);
    loop.reduced_.strides[last] *= loop.repeat_;
    loop.last_repeat_ = rows - (loop.reduced_.size[last] - 1) * loop.repeat_;
  }
  loop.outer_groups_ = loop.kept_.size.product();
  loop.reduced_rows_ = loop.reduced_.size.product();
  loop.blocks_ = loop.columns_kept_ ? parts_of(loop.columns_, kColumnBlock) : 1;
  const int64_t items = loop.outer_groups_ * loop.blocks_;
  const int64_t splittable = !loop.columns_kept_ && loop.reduced_rows_ == 1 ? loop.columns_ / kRowBlock : loop.reduced_rows_;
  loop.chunks_ = std::clamp<int64_t>(std::min({loop.groups_ * loop.count_ / items / kChunk, kMostItems / items, splittable}), 1,
                                     kMostItems);
  return loop;
}

void ReduceLoop::run(Fold fold, const float* x, const float* shift, double* totals, double* partials,
                     Executor& executor) const {
  if (groups_ == 0) return;
  if (count_ == 0) return std::fill(totals, totals + groups_, identity_of(fold));
  const FoldFunctions functions = fold_functions(unit_, fold);
  double* const results = chunks_ > 1 ? partials : totals;
  const int64_t items = outer_groups_ * blocks_ * chunks_;
  const int64_t tasks = tasks_of(grain_, groups_ * count_, items, executor.width());
  for_each_range(executor, items, tasks, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      if (columns_kept_) {
        fold_block(functions, fold, x, shift, item, results);
      } else {
        fold_rows(functions, fold, x, shift, item, results);
      }
    }
  });
  if (chunks_ == 1) return;
  for (int64_t group = 0; group < groups_; ++group) {
    totals[group] = partials[group];
    for (int64_t chunk = 1; chunk < chunks_; ++chunk)
      totals[group] = combine(fold, totals[group], partials[chunk * groups_ + group]);
  }
}

// One chunk of one group whose elements lie in rows.
void ReduceLoop::fold_rows(const FoldFunctions& f, Fold fold, const float* x, const float* shift, int64_t item,
                           double* results) const {
  const int64_t group_index = item / chunks_, chunk = item % chunks_;
  const int64_t group = kept_groups_.offset(group_index);
  x += kept_.offset(group_index);
  const float shift_value = shift ? shift[group] : 0.0f;
  const bool split_columns = reduced_rows_ == 1;
  const int64_t rows = split_columns ? 1 : reduced_rows_;
  const int64_t row_begin = split_columns ? 0 : rows * chunk / chunks_;
  const int64_t row_end = split_columns ? 1 : rows * (chunk + 1) / chunks_;
  const int64_t begin = split_columns ? columns_ * chunk / chunks_ : 0;
  const int64_t end = split_columns ? columns_ * (chunk + 1) / chunks_ : columns_;
  double total = identity_of(fold);
  // The common case: a row of neighbours.
  if (rows == 1 && column_stride_ == 1 && end - begin <= kRowBlock) {
    const float* from = x + begin + (split_columns ? 0 : reduced_.offset(row_begin));
    results[chunk * groups_ + group] = static_cast<double>(f.row(from, static_cast<size_t>(end - begin), shift_value));
    return;
  }
  alignas(64) float gathered[kRowBlock];
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* line = x + reduced_.offset(row);
    for (int64_t c = begin; c < end; c += kRowBlock) {
      const int64_t count = std::min(kRowBlock, end - c);
      const float* from = line + c * column_stride_;
      if (column_stride_ != 1) {
        for (int64_t i = 0; i < count; ++i) gathered[i] = from[i * column_stride_];
        from = gathered;
      }
      total = combine(fold, total, static_cast<double>(f.row(from, static_cast<size_t>(count), shift_value)));
    }
  }
  results[chunk * groups_ + group] = total;
}

// One chunk of the rows of one block of columns, each column a group.
void ReduceLoop::fold_block(const FoldFunctions& f, Fold fold, const float* x, const float* shift, int64_t item,
                            double* results) const {
  const int64_t chunk = item % chunks_, block = item / chunks_ % blocks_, outer = item / chunks_ / blocks_;
  const int64_t first = columns_ * block / blocks_, columns = columns_ * (block + 1) / blocks_ - first;
  const int64_t group = kept_groups_.offset(outer) + first;
  x += kept_.offset(outer) + first * column_stride_;
  const int64_t wide = columns * repeat_;  // at most kColumnBlock

  alignas(64) float sums[kColumnBlock], shifts[kColumnBlock], gathered[kColumnBlock];
  double totals[kColumnBlock];
  std::fill(totals, totals + wide, identity_of(fold));
  if (shift)
    for (int64_t i = 0; i < repeat_; ++i) std::copy(shift + group, shift + group + columns, shifts + i * columns);

  const int64_t begin = reduced_rows_ * chunk / chunks_, end = reduced_rows_ * (chunk + 1) / chunks_;
  const int64_t inner_size = reduced_.size.empty() ? 1 : reduced_.size.back();
  ColumnCall call;
  call.total = sums;
  call.stride = reduced_.size.empty() ? 0 : reduced_.strides.back();
  call.shift = shift ? shifts : nullptr;
  for (int64_t row = begin; row < end;) {
    const int64_t stop = std::min(end, row + kRowsInFloat);
    std::fill(sums, sums + wide, static_cast<float>(identity_of(fold)));
    while (row < stop) {
      // Rows of one stride: within the innermost reduced axis, the short last one by itself.
      const int64_t to_end = inner_size - row % inner_size;
      const bool shorter = repeat_ != last_repeat_;
      call.rows = std::min(stop - row, wide <= kNarrow ? kRowsInFloat : kWideRows);
      call.rows = std::min(call.rows, shorter && to_end > 1 ? to_end - 1 : to_end);
      call.columns = static_cast<size_t>(shorter && to_end == 1 ? columns * last_repeat_ : wide);
      call.x = x + reduced_.offset(row);
      if (column_stride_ != 1) {
        call.rows = 1;
        for (int64_t i = 0; i < columns; ++i) gathered[i] = call.x[i * column_stride_];
        call.x = gathered;
      }
      f.columns(call);
      row += call.rows;
    }
    for (int64_t i = 0; i < wide; ++i) totals[i] = combine(fold, totals[i], static_cast<double>(sums[i]));
  }
  for (int64_t i = columns; i < wide; ++i) totals[i % columns] = combine(fold, totals[i % columns], totals[i]);
  std::copy(totals, totals + columns, results + chunk * groups_ + group);
}

}  // namespace sparkle::cpu
