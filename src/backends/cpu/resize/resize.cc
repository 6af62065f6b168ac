// Resize. Nearest repeats elements (copy/magnify.h) or moves them by tables (copy/indexed.h). Linear and cubic are separable:
// the taps of all outer axes mix pieces of lines of x in L1, and the innermost resized axis stretches them. Where outer axes
// grow, lines of x are stretched first and kept for the lines of y that share them; else they are mixed first. Axes that are
// not resized and lie innermost (channels in NHWC) form runs of contiguous elements.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "backends/cpu/copy/indexed.h"
#include "backends/cpu/copy/magnify.h"
#include "backends/cpu/resize/filter.h"
#include "backends/cpu/resize/lines.h"
#include "families/resize/resize_taps.h"

namespace sparkle::cpu {
namespace {

constexpr int kMostTaps = 64;      // of all outer axes together: three cubic ones
constexpr int64_t kBuffer = 4096;  // floats of the line buffer: 16 KB, half of a small L1
constexpr int64_t kKept = 4096;    // floats of all stretched pieces that are kept
constexpr int64_t kShortRun = 16;  // runs below a vector of AVX-512 are stretched element by element

struct ResizedAxis {
  MoveAxis move;  // size of y; strides in elements here
  int64_t in = 1;
  ResizeTaps taps;
};

// Outputs [begin, end) of a line and the inputs [first, last] that they need.
struct Piece {
  int64_t begin, end, first, last;
  int64_t groups = 0;  // first entry in the table of vector groups
};

class ResizeKernel final : public CpuKernel {
 public:
  ResizeKernel(const Stage& stage, const LoopSchedule& schedule, const Device& device, std::vector<ResizedAxis> axes,
               int64_t run)
      : schedule_(schedule),
        functions_(line_functions(schedule.unit)),
        rows_(*row_moves(schedule.unit)),
        bytes_(stage.outputs[0].bytes()),
        run_(run),
        stream_(beyond_caches(device, stage.inputs[0].bytes() + bytes_)),
        extrapolation_(static_cast<float>(get<ResizeParams>(stage.params).extrapolation)) {
    line_ = std::move(axes.back());
    axes.pop_back();
    for (ResizedAxis& axis : axes) {
      // Axes that keep their size are only walked; neighbours among them are walked as one.
      walk_.push_back({axis.move.size, axis.taps.identity ? axis.move.x : 0, axis.move.y});
      kept_.push_back(axis.taps.identity);
      const size_t n = walk_.size();
      if (n > 1 && kept_[n - 2] && kept_[n - 1] && walk_[n - 2].x == walk_[n - 1].x * walk_[n - 1].size &&
          walk_[n - 2].y == walk_[n - 1].y * walk_[n - 1].size) {
        walk_[n - 2] = {walk_[n - 2].size * walk_[n - 1].size, walk_[n - 1].x, walk_[n - 1].y};
        walk_.pop_back();
        kept_.pop_back();
      } else if (!axis.taps.identity) {
        outer_.push_back(std::move(axis));
        place_.push_back(n - 1);
      }
    }
    int64_t before = 1, after = 1;
    for (const ResizedAxis& axis : outer_) {
      taps_ *= axis.taps.count;
      before *= axis.in;
      after *= axis.move.size;
    }
    // Stretching single elements is dear, so it is done once per line of x; stretching long runs is as cheap as mixing them,
    // and kept lines would only crowd L1 (linear x2 of 64 channels: 4.0 ms instead of 3.3 on a Zen 4 core).
    keep_ = taps_ > 1 && after >= before && line_.move.y == run_ && run_ < kShortRun;
    plan_pieces();
    plan_tables();
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const auto* x = reinterpret_cast<const float*>(launch.inputs[0]);
    auto* y = reinterpret_cast<float*>(launch.outputs[0]);
    const int64_t lines = count_of(walk_);
    const int tasks = tasks_for(schedule_, *launch.executor, lines, bytes_, 4);
    for_each_range(*launch.executor, lines, tasks, [&](int64_t begin, int64_t end) {
      if (keep_) {
        for (const Piece& piece : pieces_) run_kept(x, y, piece, begin, end);
      } else {
        Walk walk(walk_, begin);
        for (int64_t i = begin; i < end; ++i, walk.next()) run_line(x + walk.x, y + walk.y, walk);
      }
      if (stream_) rows_.finish();
    });
  }

 private:
  void plan_pieces() {
    const int64_t span = std::max<int64_t>(1, kBuffer / run_);
    for (int64_t o = 0; o < line_.move.size; ++o) {
      const auto taps = line_.taps.index.begin() + o * line_.taps.count;
      const auto [low, high] = std::minmax_element(taps, taps + line_.taps.count);
      if (!pieces_.empty()) {
        Piece& piece = pieces_.back();
        const int64_t first = std::min(piece.first, *low), last = std::max(piece.last, *high);
        const bool fits = !keep_ || (o + 1 - piece.begin) * run_ * taps_ <= kKept;
        if (last - first < span && fits) {
          piece = {piece.begin, o + 1, first, last, 0};
          continue;
        }
      }
      pieces_.push_back({o, o + 1, *low, *high, 0});
    }
  }

  // Index and weight tables in the form that the loop wants: per output, or per element and tap plane for short runs.
  void plan_tables() {
    const int64_t n = line_.move.size, taps = line_.taps.count;
    by_element_ = run_ < kShortRun && (line_.move.y == run_ || n == 1);
    index_.resize(static_cast<size_t>(n * taps * (by_element_ ? run_ : 1)));
    weight_.resize(index_.size());
    for (Piece& piece : pieces_) {
      for (int64_t o = piece.begin; o < piece.end; ++o)
        for (int64_t k = 0; k < taps; ++k) {
          const auto from = static_cast<size_t>(o * taps + k);
          const int64_t index = line_.taps.index[from] - piece.first;
          for (int64_t r = 0; r < (by_element_ ? run_ : 1); ++r) {
            const auto to = static_cast<size_t>(by_element_ ? k * n * run_ + o * run_ + r : o * taps + k);
            index_[to] = static_cast<int32_t>(by_element_ ? index * run_ + r : index);
            weight_[to] = static_cast<float>(line_.taps.weight[from]);
          }
        }
      if (by_element_) plan_groups(piece);
    }
  }

  // For each vector of outputs: can its elements be picked from one or two vectors of the piece's inputs?
  void plan_groups(Piece& piece) {
    const int64_t lanes = functions_.lanes(), planes = line_.move.size * run_;
    const auto inputs = static_cast<int32_t>((piece.last - piece.first + 1) * run_);
    piece.groups = static_cast<int64_t>(start_.size());
    for (int64_t o = piece.begin * run_; o + lanes <= piece.end * run_; o += lanes) {
      int32_t low = inputs, high = 0;
      const auto each = [&](auto&& f) {
        for (int64_t k = 0; k < line_.taps.count; ++k)
          for (int64_t i = 0; i < lanes; ++i) f(index_[static_cast<size_t>(k * planes + o + i)]);
      };
      each([&](int32_t index) { low = std::min(low, index), high = std::max(high, index); });
      start_.push_back(-1);
      for (int vectors : {1, 2}) {
        const auto width = static_cast<int32_t>(vectors * lanes), start = std::min(low, inputs - width);
        if (start < 0 || high - start >= width) continue;
        each([&](int32_t& index) { index -= start; });
        start_.back() = vectors == 1 ? start : -2 - start;
        break;
      }
    }
  }

  // Starts of the lines of x that make a line of y and their weights; their number, 0 where y is extrapolated.
  int gather_taps(const Walk& walk, std::array<int64_t, kMostTaps>& offset, std::array<float, kMostTaps>& weight) const {
    int count = 1;
    offset[0] = 0, weight[0] = 1;
    for (size_t i = 0; i < outer_.size(); ++i) {
      const ResizeTaps& taps = outer_[i].taps;
      const int64_t o = walk.index(place_[i]);
      if (!taps.outside.empty() && taps.outside[static_cast<size_t>(o)]) return 0;
      // The first tap changes the list in place, so it comes last.
      for (int64_t k = taps.count - 1; k >= 0; --k) {
        const auto at = static_cast<size_t>(o * taps.count + k);
        for (int64_t j = 0; j < count; ++j) {
          const auto to = static_cast<size_t>(k * count + j), from = static_cast<size_t>(j);
          offset[to] = offset[from] + taps.index[at] * outer_[i].move.x;
          weight[to] = weight[from] * static_cast<float>(taps.weight[at]);
        }
      }
      count *= static_cast<int>(taps.count);
    }
    return count;
  }

  void run_line(const float* x, float* y, const Walk& walk) const {
    std::array<int64_t, kMostTaps> offset;
    std::array<float, kMostTaps> weight;
    const int taps = gather_taps(walk, offset, weight);
    for (const Piece& piece : pieces_) {
      float* to = y + piece.begin * line_.move.y;
      if (taps > 0) {
        if ((piece.last - piece.first + 1) * run_ > kBuffer) {
          run_direct(x, y, piece, taps, offset, weight);
        } else {
          alignas(64) float buffer[kBuffer];
          stretch(mix(x, piece, taps, offset.data(), weight.data(), buffer), to, piece, line_.move.y, stream_);
        }
      }
      extrapolate(y, piece, taps == 0);
    }
  }

  // One piece of lines [begin, end): each line of x is stretched once and kept while lines of y still need it.
  void run_kept(const float* x, float* y, const Piece& piece, int64_t begin, int64_t end) const {
    alignas(64) float kept[kKept];
    alignas(64) float buffer[kBuffer];
    std::array<int64_t, kMostTaps> offset;
    std::array<float, kMostTaps> weight;
    std::array<const float*, kMostTaps> key{}, from;
    const float one = 1;
    const int64_t n = (piece.end - piece.begin) * run_;
    const auto keys_end = key.begin() + taps_;
    Walk walk(walk_, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) {
      const float* lines = x + walk.x;
      const int taps = gather_taps(walk, offset, weight);
      const auto needed = [&](const float* line) {
        for (int k = 0; k < taps; ++k)
          if (lines + offset[static_cast<size_t>(k)] == line) return true;
        return false;
      };
      for (int k = 0; k < taps; ++k) {
        const auto tap = static_cast<size_t>(k);
        const float* source = lines + offset[tap];
        auto place = std::find(key.begin(), keys_end, source);
        const bool known = place != keys_end;
        // There are as many places as taps: one of them holds a line that no tap needs.
        if (!known) place = std::find_if(key.begin(), keys_end, [&](const float* line) { return !needed(line); });
        float* line = kept + (place - key.begin()) * n;
        if (!known) {
          *place = source;
          stretch(mix(lines, piece, 1, &offset[tap], &one, buffer), line, piece, run_, false);
        }
        from[tap] = line;
      }
      if (taps > 0) functions_.mix({from.data(), weight.data(), taps, y + walk.y + piece.begin * run_, n, stream_});
      extrapolate(y + walk.y, piece, taps == 0);
    }
  }

  // Outputs that tf_crop puts outside of x.
  void extrapolate(float* y, const Piece& piece, bool all) const {
    if (!all && line_.taps.outside.empty()) return;
    for (int64_t o = piece.begin; o < piece.end; ++o)
      if (all || line_.taps.outside[static_cast<size_t>(o)]) std::fill_n(y + o * line_.move.y, run_, extrapolation_);
  }

  // Inputs [first, last] of the mixed line, dense: in the buffer, or x itself where there is nothing to mix.
  const float* mix(const float* x, const Piece& piece, int taps, const int64_t* offset, const float* weight,
                   float* buffer) const {
    const bool dense = line_.move.x == run_ || line_.in == 1;
    const float* from[kMostTaps];
    for (int k = 0; k < taps; ++k) from[k] = x + offset[k] + piece.first * line_.move.x;
    const int64_t n = piece.last - piece.first + 1;
    if (dense && taps == 1) return from[0];
    if (dense) {
      functions_.mix({from, weight, taps, buffer, n * run_, false});
    } else if (run_ >= kShortRun) {
      for (int64_t i = 0; i < n; ++i) {
        functions_.mix({from, weight, taps, buffer + i * run_, run_, false});
        for (int k = 0; k < taps; ++k) from[k] += line_.move.x;
      }
    } else {
      for (int64_t i = 0; i < n; ++i)
        for (int64_t r = 0; r < run_; ++r) {
          float sum = 0;
          for (int k = 0; k < taps; ++k) sum += weight[k] * from[k][i * line_.move.x + r];
          buffer[i * run_ + r] = sum;
        }
    }
    return buffer;
  }

  // A piece of a line, from dense inputs to y, whose runs are `stride` apart (dense where elements are single).
  void stretch(const float* from, float* y, const Piece& piece, int64_t stride, bool stream) const {
    const int64_t n = line_.move.size, outputs = piece.end - piece.begin;
    const auto taps = static_cast<int>(line_.taps.count);  // four at most: no filter is widened here
    if (by_element_) {
      const auto at = static_cast<size_t>(piece.begin * run_);
      functions_.elements({from, y, index_.data() + at, weight_.data() + at, start_.data() + piece.groups, taps, outputs * run_,
                           n * run_, stream});
    } else {
      const auto at = static_cast<size_t>(piece.begin * taps);
      functions_.runs({from, y, index_.data() + at, weight_.data() + at, taps, outputs, run_, stride, stream});
    }
  }

  // Runs too long for the buffer: all taps of all axes at once, a part of the run after the other.
  void run_direct(const float* x, float* y, const Piece& piece, int taps, const std::array<int64_t, kMostTaps>& offset,
                  const std::array<float, kMostTaps>& weight) const {
    const float* from[kMostTaps * 4];
    float w[kMostTaps * 4];
    for (int64_t o = piece.begin; o < piece.end; ++o) {
      int count = 0;
      for (int64_t k = 0; k < line_.taps.count; ++k) {
        const auto at = static_cast<size_t>(o * line_.taps.count + k);
        for (int j = 0; j < taps; ++j, ++count) {
          from[count] = x + offset[static_cast<size_t>(j)] + line_.taps.index[at] * line_.move.x;
          w[count] = weight[static_cast<size_t>(j)] * static_cast<float>(line_.taps.weight[at]);
        }
      }
      functions_.mix({from, w, count, y + o * line_.move.y, run_, stream_});
    }
  }

  LoopSchedule schedule_;
  LineFunctions functions_;
  const RowMoves& rows_;
  int64_t bytes_, run_;  // run: contiguous elements per index of the line
  bool stream_;
  float extrapolation_;
  ResizedAxis line_;
  std::vector<MoveAxis> walk_;  // outer axes, strides in elements; x moves along those that keep their size
  std::vector<bool> kept_;
  std::vector<ResizedAxis> outer_;  // outer axes that are resized
  std::vector<size_t> place_;       // and which axes of the walk they are
  std::vector<Piece> pieces_;
  int64_t taps_ = 1;   // of all outer axes together
  bool keep_ = false;  // stretch first, then mix
  bool by_element_ = false;
  std::vector<int32_t> index_;
  std::vector<float> weight_;
  std::vector<int32_t> start_;  // see StretchElements
};

Result<CpuKernelPtr> make_nearest(const Stage& stage, const LoopSchedule& schedule, const Device& device,
                                  std::vector<ResizeTaps> taps) {
  const RowMoves& rows = *row_moves(schedule.unit);
  std::vector<IndexedAxis> axes;
  for (ResizeTaps& tap : taps) {
    for (size_t i = 0; i < tap.outside.size(); ++i)
      if (tap.outside[i]) tap.index[i] = -1;
    axes.push_back({std::move(tap.index), tap.identity});
  }
  if (CpuKernelPtr whole = make_magnify(stage, schedule, device, rows, axes)) return whole;
  return make_indexed(stage, schedule, device, rows, std::move(axes), get<ResizeParams>(stage.params).extrapolation);
}

}  // namespace

Result<CpuKernelPtr> make_resize(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  if (loop && loop->variant == "filter") return make_resize_filter(stage, *loop);
  if (!loop || loop->variant != "lines" || !row_moves(loop->unit))
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no resize variant '" + variant_of(schedule) + "' for unit '" + unit_of(schedule) + "'."};
  const ResizeParams& params = get<ResizeParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (x.shape.product() == 0 && y.shape.product() != 0)
    return Error{Reason::bad_shape, "A resize from " + x.shape.to_string() + " has nothing to sample."};
  std::vector<ResizeTaps> taps;
  for (int i = 0; i < y.shape.size(); ++i) taps.push_back(resize_taps(params, i, x.shape[i], y.shape[i]));
  if (params.mode == ResizeMode::nearest) return make_nearest(stage, *loop, device, std::move(taps));
  if (y.dtype != DType::f32)
    return Error{Reason::type_not_served, "Linear and cubic resize support f32, not " + std::string(name_of(y.dtype)) + "."};
  std::vector<ResizedAxis> axes;
  for (int i = 0; i < y.shape.size(); ++i) {
    ResizeTaps& tap = taps[static_cast<size_t>(i)];
    if (y.shape[i] == 1 && tap.identity) continue;
    axes.push_back({{y.shape[i], x.layout.strides[i], y.layout.strides[i]}, x.shape[i], std::move(tap)});
  }
  std::sort(axes.begin(), axes.end(),
            [](const ResizedAxis& a, const ResizedAxis& b) { return std::abs(a.move.y) > std::abs(b.move.y); });
  int64_t run = 1;
  while (!axes.empty() && axes.back().taps.identity && axes.back().move.x == run && axes.back().move.y == run) {
    run *= axes.back().move.size;
    axes.pop_back();
  }
  if (axes.empty()) axes.push_back({{1, run, run}, 1, {{1, true}, {0}, {1}, {}}});
  int64_t most = 1;
  for (size_t i = 0; i + 1 < axes.size(); ++i) most *= most > kMostTaps ? 1 : axes[i].taps.count;
  if (most > kMostTaps)
    return Error{Reason::operator_not_served,
                 "Resize of " + y.shape.to_string() + " mixes more than 64 lines: resize fewer axes at once."};
  return CpuKernelPtr(std::make_unique<ResizeKernel>(stage, *loop, device, std::move(axes), run));
}

}  // namespace sparkle::cpu
