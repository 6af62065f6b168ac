// TopK, ArgMax, ArgMin. Elements become unsigned keys that rank as they do (families/top_k/rank_key.h). k = 1 with indices
// alone keeps the best key of each column, columns side by side (of floats in vectors: arg_columns.cc); along a contiguous line
// it takes blocks by their largest key and looks closer only where that beats the best so far. Other k: a heap of the best k,
// whose worst is what a new element must beat: in random order few do.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/top_k/arg_columns.h"
#include "families/top_k/rank_key.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kColumns = 64;  // done side by side: their keys and indices stay in L1

// Lines [begin, end) of blocks of columns of [outer][n][inner].
struct Lines {
  int64_t n, inner, k, blocks;  // blocks of columns per outer index
  bool last, nan_first;
  ArgFunctions floats;  // with nullptr: not of the kind that these do
};
using LinesFunction = void (*)(const Lines&, int64_t begin, int64_t end, const std::byte* x, std::byte* values,
                               std::byte* indices);

// One contiguous line.
template <bool largest, class T>
int64_t best_of_line(const T* x, const Lines& l) {
  constexpr int64_t kBlock = 256;
  RankKey<T> best = rank_key<largest>(x[0], l.nan_first);
  int64_t index = 0;
  for (int64_t begin = 0; begin < l.n; begin += kBlock) {
    const int64_t end = std::min(l.n, begin + kBlock);
    RankKey<T> top = 0;
    for (int64_t i = begin; i < end; ++i) top = std::max(top, rank_key<largest>(x[i], l.nan_first));
    if (top < best || (top == best && !l.last)) continue;
    best = top;
    for (int64_t i = begin; i < end; ++i) {
      if (rank_key<largest>(x[i], l.nan_first) != top) continue;
      index = i;
      if (!l.last) break;
    }
  }
  return index;
}

template <bool largest, class T>
void best_of_columns(const Lines& l, const T* x, int64_t columns, int64_t* indices) {
  std::array<RankKey<T>, kColumns> best{};
  std::array<int64_t, kColumns> index{};
  const RankKey<T> better = l.last ? 0 : 1;  // what a key must exceed the best one by
  for (int64_t c = 0; c < columns; ++c) best[static_cast<size_t>(c)] = rank_key<largest>(x[c], l.nan_first);
  for (int64_t i = 1; i < l.n; ++i) {
    const T* row = x + i * l.inner;
    for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
      const RankKey<T> key = rank_key<largest>(row[c], l.nan_first);
      const bool wins = better ? key > best[c] : key >= best[c];
      best[c] = wins ? key : best[c];
      index[c] = wins ? i : index[c];
    }
  }
  std::copy_n(index.begin(), columns, indices);
}

template <bool largest, class T>
void arg_lines(const Lines& l, int64_t begin, int64_t end, const std::byte* from, std::byte*, std::byte* to) {
  const T* x = reinterpret_cast<const T*>(from);
  auto* indices = reinterpret_cast<int64_t*>(to);
  for (int64_t at = begin; at < end; ++at) {
    const int64_t outer = at / l.blocks, column = at % l.blocks * kColumns;
    const T* line = x + outer * l.n * l.inner + column;
    int64_t* y = indices + outer * l.inner + column;
    if constexpr (std::is_same_v<T, float>) {
      const int64_t columns = std::min(kColumns, l.inner - column);
      if (l.floats.columns && columns >= l.floats.least_columns()) {
        l.floats.columns({line, l.n, l.inner, columns, largest, l.last, l.nan_first, y});
        continue;
      }
    }
    if (l.inner == 1) {
      *y = best_of_line<largest>(line, l);
    } else {
      best_of_columns<largest>(l, line, std::min(kColumns, l.inner - column), y);
    }
  }
}

template <bool largest, class T>
void heap_lines(const Lines& l, int64_t begin, int64_t end, const std::byte* from, std::byte* values, std::byte* to) {
  struct Entry {
    RankKey<T> key;
    int64_t index;
  };
  // With "better" as the order of the heap its front is the worst of the entries.
  const auto better = [last = l.last](const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key > b.key;
    return last ? a.index > b.index : a.index < b.index;
  };
  const T* x = reinterpret_cast<const T*>(from);
  auto* indices = reinterpret_cast<int64_t*>(to);
  auto* best = reinterpret_cast<T*>(values);
  std::vector<Entry> heap;
  heap.reserve(static_cast<size_t>(l.k));
  for (int64_t at = begin; at < end; ++at) {
    const int64_t outer = at / l.blocks, first = at % l.blocks * kColumns;
    for (int64_t column = first; column < std::min(l.inner, first + kColumns); ++column) {
      const T* line = x + outer * l.n * l.inner + column;
      heap.clear();
      for (int64_t i = 0; i < l.k; ++i) heap.push_back({rank_key<largest>(line[i * l.inner], l.nan_first), i});
      std::make_heap(heap.begin(), heap.end(), better);
      for (int64_t i = l.k; i < l.n; ++i) {
        const Entry entry{rank_key<largest>(line[i * l.inner], l.nan_first), i};
        if (!better(entry, heap.front())) continue;
        std::pop_heap(heap.begin(), heap.end(), better);
        heap.back() = entry;
        std::push_heap(heap.begin(), heap.end(), better);
      }
      std::sort_heap(heap.begin(), heap.end(), better);
      const int64_t place = outer * l.k * l.inner + column;
      for (int64_t i = 0; i < l.k; ++i) {
        const int64_t index = heap[static_cast<size_t>(i)].index;
        indices[place + i * l.inner] = index;
        if (best) best[place + i * l.inner] = line[index * l.inner];
      }
    }
  }
}

class TopKKernel final : public CpuKernel {
 public:
  TopKKernel(const Stage& stage, const LoopSchedule& schedule)
      : schedule_(schedule), bytes_(stage.inputs[0].bytes()), element_(size_of(stage.inputs[0].dtype)) {
    const auto& p = get<TopKParams>(stage.params);
    const Dims& x = stage.inputs[0].shape;
    lines_ = {x[p.axis], 1, p.k, 1, p.last_of_equals, p.nan_first, {}};
    if (x[p.axis] <= std::numeric_limits<int32_t>::max()) lines_.floats = arg_functions(schedule.unit);
    for (int i = 0; i < p.axis; ++i) outer_ *= x[i];
    for (int i = p.axis + 1; i < x.size(); ++i) lines_.inner *= x[i];
    lines_.blocks = (lines_.inner + kColumns - 1) / kColumns;
    const bool arg = p.k == 1 && stage.outputs.size() == 1;
    visit_type(stage.inputs[0].dtype, [&]<class T>(T) {
      run_lines_ = arg ? (p.largest ? arg_lines<true, T> : arg_lines<false, T>)
                       : (p.largest ? heap_lines<true, T> : heap_lines<false, T>);
    });
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0 || lines_.k == 0) return;
    std::byte* values = launch.outputs.size() > 1 ? launch.outputs[0] : nullptr;
    const int64_t items = outer_ * lines_.blocks;
    const int tasks = tasks_for(schedule_, *launch.executor, items, bytes_, element_);
    for_each_range(*launch.executor, items, tasks, [&](int64_t begin, int64_t end) {
      run_lines_(lines_, begin, end, launch.inputs[0], values, launch.outputs.back());
    });
  }

 private:
  LoopSchedule schedule_;
  int64_t bytes_, element_, outer_ = 1;
  Lines lines_{};
  LinesFunction run_lines_ = nullptr;
};

}  // namespace

Result<CpuKernelPtr> make_top_k(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  if (!loop || loop->variant != "heap")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no top_k variant '" + variant_of(schedule) + "'."};
  bool rows = is_row_major(stage.inputs[0].shape, stage.inputs[0].layout);
  for (const TensorDesc& y : stage.outputs) rows = rows && is_row_major(y.shape, y.layout);
  if (!rows) return Error{Reason::layout_not_served, "TopK takes row-major operands."};
  return CpuKernelPtr(std::make_unique<TopKKernel>(stage, *loop));
}

}  // namespace sparkle::cpu
