// The attention family on the CPU: the variant "stream". Keys and values are packed once; then each task takes a block of
// queries over blocks of keys: scores by the micro-kernel of the gemm family, their exponentials against the largest score so
// far, and the weighted sum of values, scaled down whenever a larger score appears (the online softmax of Milakov and
// Gimelshein, 2018). Only a block of scores exists at a time: 48 queries by 256 keys, 48 KB beside the sums in L2.
#include <cmath>
#include <limits>

#include "backends/cpu/attention/attention_pack.h"
#include "backends/cpu/attention/attention_rows.h"
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "base/round_up.h"
#include "families/attention/attention.h"
#include "families/family.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kMostRows = 48, kKeys = 256;
constexpr int64_t kSumFloats = 12288;  // sums of a task: rows by columns of values
constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Offsets of an operand along the batch axes.
struct BatchWalk {
  Dims size, strides;
  int64_t offset(int64_t batch) const {
    int64_t at = 0;
    for (int i = size.size() - 1; i >= 0; --i) at += batch % size[i] * strides[i], batch /= size[i];
    return at;
  }
};

// Rows and columns of an operand behind its batch axes.
struct Operand {
  BatchWalk batch;
  int64_t rows = 1, columns = 1, row_stride = 0, column_stride = 0;
  Operand() = default;
  explicit Operand(const TensorDesc& desc) {
    const int axes = desc.shape.size() - 2;
    for (int i = 0; i < axes; ++i) batch.size.push_back(desc.shape[i]), batch.strides.push_back(desc.layout.strides[i]);
    rows = desc.shape[axes], columns = desc.shape[axes + 1];
    row_stride = desc.layout.strides[axes], column_stride = desc.layout.strides[axes + 1];
  }
};

class AttentionKernel final : public CpuKernel {
 public:
  AttentionKernel(const Stage& stage, int64_t grain, const TileKernels& tiles, AttentionFunctions functions)
      : params_(get<AttentionParams>(stage.params)), grain_(grain), tiles_(tiles), functions_(functions) {
    q_ = Operand(stage.inputs[0]), k_ = Operand(stage.inputs[1]), v_ = Operand(stage.inputs[2]);
    y_ = Operand(stage.outputs[0]);
    if (params_.mask) {
      const TensorDesc& mask = stage.inputs[static_cast<size_t>(mask_operand(params_))];
      mask_ = Operand(mask);
      boolean_mask_ = mask.dtype == DType::boolean;
    }
    if (params_.lengths) {
      const TensorDesc& lengths = stage.inputs[static_cast<size_t>(lengths_operand(params_))];
      lengths_ = {lengths.shape, lengths.layout.strides};
    }
    if (params_.scores != ScoreOutput::none) scores_ = Operand(stage.outputs[1]);
    batches_ = q_.batch.size.product();
    const int64_t width = tiles_.max_vectors * tiles_.lanes;
    keys_ = {{k_.rows, tiles_.lanes, width}, q_.columns, k_.column_stride, k_.row_stride};
    values_ = {{v_.columns, tiles_.lanes, width}, v_.rows, v_.row_stride, v_.column_stride};
    // Heads of queries that share keys share their packed form.
    packed_walk_.size = packed_walk_.strides = q_.batch.size;
    int64_t stride = 1;
    for (int i = packed_walk_.size.size() - 1; i >= 0; --i) {
      const bool own = packed_walk_.size[i] > 1 && (k_.batch.strides[i] != 0 || v_.batch.strides[i] != 0);
      packed_walk_.strides[i] = own ? stride : 0;
      if (own) stride *= packed_walk_.size[i];
      packed_size_.insert(0, own ? packed_walk_.size[i] : 1);
    }
    packed_batches_ = stride;
    // Columns of values per task: all of them unless a single tile of rows would not fit its place.
    columns_ = std::min(values_.panels.padded(), std::max(width, kSumFloats / kMaxTileRows / width * width));
    column_blocks_ = columns_ > 0 ? (values_.panels.padded() + columns_ - 1) / columns_ : 0;
    most_rows_ = columns_ > 0
                     ? std::clamp<int64_t>(kSumFloats / columns_ / kMaxTileRows * kMaxTileRows, kMaxTileRows, kMostRows)
                     : kMostRows;
  }

  int64_t workspace_bytes() const override { return 4 * packed_batches_ * (keys_.floats() + values_.floats()) + 64; }

  void run(const CpuLaunch& launch) const override {
    if (batches_ == 0 || q_.rows == 0 || v_.columns == 0) return;
    pack_operands(launch);
    // Smaller blocks where there are too few for a quarter of the tasks.
    const int64_t outputs = batches_ * q_.rows * v_.columns, instances = batches_ * column_blocks_;
    const int64_t wanted = tasks_of(grain_, outputs, outputs, launch.executor->width()),
                  least = std::max<int64_t>(1, wanted / 4);
    int64_t rows = most_rows_;
    if (instances * ((q_.rows + rows - 1) / rows) < least)
      rows = std::clamp(rounded_up(q_.rows * instances / least, kMaxTileRows), int64_t{kMaxTileRows}, most_rows_);
    const int64_t blocks = (q_.rows + rows - 1) / rows, total = instances * blocks;
    const int64_t tasks = std::min(total, wanted);
    for_each_range(*launch.executor, total, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Task t{};
        t.batch = i / (blocks * column_blocks_);
        t.panel = i / blocks % column_blocks_ * (columns_ / values_.panels.width);
        t.row = i % blocks * rows;
        t.rows = std::min(rows, q_.rows - t.row);
        run_task(launch, t);
      }
    });
  }

 private:
  struct Task {
    int64_t batch, row, rows;
    int64_t panel;  // the first panel of values
  };
  struct Scratch {
    alignas(64) float scores[kMostRows * kKeys];
    alignas(64) float sums[kSumFloats];
    alignas(64) float mask[kKeys];
    alignas(64) float scale[kMaxTileVectors * kMaxLanes], bias[kMaxTileVectors * kMaxLanes];
    float largest[kMostRows], total[kMostRows];
    KeyRange seen[kMostRows];
  };

  const float* input(const CpuLaunch& launch, size_t i) const { return reinterpret_cast<const float*>(launch.inputs[i]); }
  const float* packed_keys(const CpuLaunch& launch, int64_t batch) const {
    return reinterpret_cast<const float*>(launch.workspace) + packed_walk_.offset(batch) * keys_.floats();
  }
  const float* packed_values(const CpuLaunch& launch, int64_t batch) const {
    return reinterpret_cast<const float*>(launch.workspace) + packed_batches_ * keys_.floats() +
           packed_walk_.offset(batch) * values_.floats();
  }

  void pack_operands(const CpuLaunch& launch) const {
    const int64_t key_panels = keys_.panels.panels(), panels = key_panels + values_.panels.panels();
    const int64_t total = packed_batches_ * panels, floats = packed_batches_ * (keys_.floats() + values_.floats());
    const int64_t tasks = moving_tasks(4 * floats, total, launch.executor->width());
    const BatchWalk keys{packed_size_, k_.batch.strides}, values{packed_size_, v_.batch.strides};
    float* to = reinterpret_cast<float*>(launch.workspace);
    for_each_range(*launch.executor, total, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t batch = i / panels, panel = i % panels;
        if (panel < key_panels) {
          pack_panel(keys_, input(launch, 1) + keys.offset(batch), panel, to + batch * keys_.floats());
        } else {
          pack_panel(values_, input(launch, 2) + values.offset(batch), panel - key_panels,
                     to + packed_batches_ * keys_.floats() + batch * values_.floats());
        }
      }
    });
  }

  void run_task(const CpuLaunch& launch, const Task& task) const {
    Scratch s;
    const int64_t width = values_.panels.width;
    std::fill_n(s.scale, keys_.panels.width, static_cast<float>(params_.scale));
    std::fill_n(s.bias, keys_.panels.width, 0.0f);
    std::fill_n(s.largest, task.rows, kHidden);
    std::fill_n(s.total, task.rows, 0.0f);
    const int64_t columns = std::min(columns_, values_.panels.padded() - task.panel * width);
    std::fill_n(s.sums, rounded_up(task.rows, kMaxTileRows) * columns, 0.0f);
    int64_t length = k_.rows, first = k_.rows, last = 0;
    if (params_.lengths)
      length = reinterpret_cast<const int64_t*>(
          launch.inputs[static_cast<size_t>(lengths_operand(params_))])[lengths_.offset(task.batch)];
    for (int64_t r = 0; r < task.rows; ++r) {
      s.seen[r] = key_range(params_, task.row + r, q_.rows, k_.rows, length);
      if (s.seen[r].begin == s.seen[r].end) continue;
      first = std::min(first, s.seen[r].begin), last = std::max(last, s.seen[r].end);
    }
    // Keys that no query of the block sees are passed over, unless somebody wants to look at the scores.
    const bool shown = params_.scores != ScoreOutput::none && task.panel == 0;
    if (shown) first = 0, last = k_.rows;
    first = first / keys_.panels.width * keys_.panels.width;
    for (int64_t key = first; key < last; key += kKeys) {
      const int64_t count = std::min(kKeys, last - key);
      multiply_keys(launch, task, key, count, s);
      for (int64_t r = 0; r < task.rows; ++r) soften(launch, task, key, count, r, shown, columns, s);
      multiply_values(launch, task, key, count, columns, s);
    }
    store(launch, task, columns, s);
    if (shown && params_.scores == ScoreOutput::softmax)
      for (int64_t r = 0; r < task.rows; ++r) {
        float* row = score_row(launch, task, r);
        if (s.total[r] == 0) {
          std::fill_n(row, k_.rows, unseen());
        } else {
          functions_.weights(row, k_.rows, s.largest[r], 1 / s.total[r]);
        }
      }
  }

  // Weights, and so the result, of a query that sees no key.
  float unseen() const { return params_.unseen_is_nan ? std::numeric_limits<float>::quiet_NaN() : 0.0f; }

  float* score_row(const CpuLaunch& launch, const Task& task, int64_t r) const {
    return reinterpret_cast<float*>(launch.outputs[1]) + scores_.batch.offset(task.batch) + (task.row + r) * scores_.row_stride;
  }

  // scale * q k^T for a block of keys that begins with a panel.
  void multiply_keys(const CpuLaunch& launch, const Task& task, int64_t key, int64_t count, Scratch& s) const {
    const float* q = input(launch, 0) + q_.batch.offset(task.batch) + task.row * q_.row_stride;
    const float* packed = packed_keys(launch, task.batch);
    const GemmRun run{0, 0, q_.columns};
    TileCall call{};
    call.runs = &run, call.run_count = 1;
    call.begin_at_zero = call.finish = true;
    call.scale = s.scale, call.bias = s.bias;
    const int64_t width = keys_.panels.width;
    for (int64_t panel = key / width; panel * width < key + count; ++panel) {
      call.b = keys_.panel(packed, panel);
      call.prefetch = reinterpret_cast<const char*>(call.b);
      call.column = panel * width - key;
      const int64_t vectors = keys_.panels.width_of(panel) / tiles_.lanes;
      for (int64_t r = 0; r < task.rows; r += kMaxTileRows) {
        const int64_t rows = std::min<int64_t>(kMaxTileRows, task.rows - r);
        for (int64_t i = 0; i < rows; ++i) call.a[i] = q + (r + i) * q_.row_stride, call.y[i] = s.scores + (r + i) * kKeys;
        tiles_.at(false, rows, vectors, keys_.panels.width_of(0) / tiles_.lanes)(call);
      }
    }
  }

  // The mask of one query as floats to add, or nullptr.
  const float* mask_row(const CpuLaunch& launch, const Task& task, int64_t r, int64_t key, int64_t count, Scratch& s) const {
    if (!params_.mask) return nullptr;
    const int64_t at = mask_.batch.offset(task.batch) + (task.row + r) * mask_.row_stride + key * mask_.column_stride;
    const int64_t there = std::clamp<int64_t>(mask_.columns - key, 0, count);
    const std::byte* mask = launch.inputs[static_cast<size_t>(mask_operand(params_))];
    if (boolean_mask_) {
      const auto* seen = reinterpret_cast<const uint8_t*>(mask) + at;
      for (int64_t i = 0; i < there; ++i) s.mask[i] = seen[i * mask_.column_stride] ? 0.0f : kHidden;
    } else {
      const float* added = reinterpret_cast<const float*>(mask) + at;
      if (mask_.column_stride == 1 && there == count) return added;
      for (int64_t i = 0; i < there; ++i) s.mask[i] = added[i * mask_.column_stride];
    }
    std::fill(s.mask + there, s.mask + count, kHidden);
    return s.mask;
  }

  // Scores of one query to weights against the largest so far; what was summed before is scaled to that.
  void soften(const CpuLaunch& launch, const Task& task, int64_t key, int64_t count, int64_t r, bool shown, int64_t columns,
              Scratch& s) const {
    ScoreRow row;
    row.scores = s.scores + r * kKeys;
    row.count = count;
    row.begin = std::clamp<int64_t>(s.seen[r].begin - key, 0, count);
    row.end = std::clamp<int64_t>(s.seen[r].end - key, 0, count);
    row.mask = mask_row(launch, task, r, key, count, s);
    row.softcap = static_cast<float>(params_.softcap);
    if (shown) {
      float* to = score_row(launch, task, r) + key;
      (params_.scores == ScoreOutput::raw ? row.raw : params_.scores == ScoreOutput::capped ? row.capped : row.masked) = to;
    }
    const float block = functions_.mask(row), before = s.largest[r];
    const float largest = before > block || std::isnan(before) ? before : block;
    if (largest == kHidden) {
      std::fill_n(row.scores, rounded_up(count, tiles_.lanes), 0.0f);
      return;
    }
    const float sum = functions_.exponentials(row.scores, count, largest);
    if (largest != before && before != kHidden) {
      const float factor = std::exp(before - largest);
      s.total[r] *= factor;
      for (int64_t panel = 0; panel * values_.panels.width < columns; ++panel) {
        float* sums = sums_of(s, task, r, panel, columns);
        functions_.scale(sums, sums, std::min(values_.panels.width, columns - panel * values_.panels.width), factor);
      }
    }
    s.largest[r] = largest;
    s.total[r] += sum;
  }

  // Sums of a query in a panel of values: tiles of up to six rows, each row as wide as the panel.
  float* sums_of(Scratch& s, const Task& task, int64_t r, int64_t panel, int64_t columns) const {
    const int64_t first = r / kMaxTileRows * kMaxTileRows, rows = std::min<int64_t>(kMaxTileRows, task.rows - first);
    const int64_t width = std::min(values_.panels.width, columns - panel * values_.panels.width);
    return s.sums + first * columns + panel * values_.panels.width * rows + (r - first) * width;
  }

  void multiply_values(const CpuLaunch& launch, const Task& task, int64_t key, int64_t count, int64_t columns,
                       Scratch& s) const {
    const float* packed = packed_values(launch, task.batch);
    const GemmRun run{0, key, count};
    TileCall call{};
    call.runs = &run, call.run_count = 1;
    const int64_t width = values_.panels.width;
    for (int64_t panel = 0; panel * width < columns; ++panel) {
      call.b = values_.panel(packed, task.panel + panel);
      call.prefetch = reinterpret_cast<const char*>(call.b);
      const int64_t vectors = std::min(width, columns - panel * width) / tiles_.lanes;
      for (int64_t r = 0; r < task.rows; r += kMaxTileRows) {
        const int64_t rows = std::min<int64_t>(kMaxTileRows, task.rows - r);
        for (int64_t i = 0; i < rows; ++i) call.a[i] = s.scores + (r + i) * kKeys;
        call.partial = sums_of(s, task, r, panel, columns);
        tiles_.at(false, rows, vectors, values_.panels.width_of(0) / tiles_.lanes)(call);
      }
    }
  }

  void store(const CpuLaunch& launch, const Task& task, int64_t columns, Scratch& s) const {
    float* y = reinterpret_cast<float*>(launch.outputs[0]) + y_.batch.offset(task.batch) + task.row * y_.row_stride;
    const int64_t width = values_.panels.width;
    for (int64_t r = 0; r < task.rows; ++r) {
      const float factor = s.total[r] == 0 ? unseen() : 1 / s.total[r];
      for (int64_t panel = 0; panel * width < columns; ++panel) {
        float* sums = sums_of(s, task, r, panel, columns);
        const int64_t column = (task.panel + panel) * width, count = std::min(width, v_.columns - column);
        float* to = y + r * y_.row_stride + column * y_.column_stride;
        if (y_.column_stride == 1) {
          functions_.scale(sums, to, count, factor);
        } else {
          for (int64_t i = 0; i < count; ++i) to[i * y_.column_stride] = sums[i] * factor;
        }
      }
    }
  }

  AttentionParams params_;
  int64_t grain_;
  const TileKernels& tiles_;
  AttentionFunctions functions_;
  Operand q_, k_, v_, y_, mask_, scores_;
  BatchWalk lengths_, packed_walk_;
  Dims packed_size_;
  bool boolean_mask_ = false;
  int64_t batches_ = 0, packed_batches_ = 1;
  PackedMatrix keys_, values_;
  int64_t columns_ = 0, column_blocks_ = 0, most_rows_ = kMostRows;
};

}  // namespace

Result<CpuKernelPtr> make_attention(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const LoopSchedule* loop = get_if<LoopSchedule>(&schedule);
  const TileKernels* tiles = loop ? tile_kernels_of(loop->unit) : nullptr;
  if (!tiles || loop->variant != "stream")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no attention variant '" + variant_of(schedule) +
                                                    "' for the unit '" + unit_of(schedule) + "'; choose 'stream' or 'plain'."};
  Reason why_not = Reason::none;
  for (const Variant& variant : attention_info().variants) {
    if (variant.name != "stream") continue;
    Device device;
    MathUnit unit;
    unit.name = loop->unit;
    device.units = {unit};
    attention_info().schedules(stage, variant, device, why_not);
  }
  if (why_not == Reason::type_not_served || why_not == Reason::layout_not_served)
    return Error{why_not, "The attention variant 'stream' cannot take these operands: " + std::string(sentence_of(why_not)) +
                              "; choose 'plain'."};
  return CpuKernelPtr(std::make_unique<AttentionKernel>(stage, loop->grain, *tiles, attention_functions(loop->unit)));
}

}  // namespace sparkle::cpu
