// The variant "bytes" of the pool family: maxima of 8-bit integers, vectors of channels, every element of the window visited. A
// maximum does not change when it is taken twice: the last vector of a pixel overlaps the one before it, so that no tail of
// channels is left; only pixels of fewer than 16 channels go one byte after the other.
#include <algorithm>
#include <limits>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "families/pool/pool.h"
#include "families/windows/taps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/variant_bytes.cc"
#include "backends/cpu/simd/simd.h"
#include "families/loops/grain.h"

#ifndef SPARKLE_POOL_BYTES_ONCE
#define SPARKLE_POOL_BYTES_ONCE
namespace sparkle::cpu {
// What all rows share, and the window of one pixel: `x` at its first tap inside.
struct BytePool {
  FeatureMap mx, my;
  Window window;
  Axis axes[3];
  std::vector<TapRange> columns;  // of axes[2]
};
template <class T>
struct BytePixel {
  const T* x;
  T* y;
  int64_t counts[3], strides[3];
};
}  // namespace sparkle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class D>
HWY_INLINE void byte_vectors(D d, const BytePixel<T>& p, int64_t channels) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t done = 0; done < channels; done += lanes) {
    const int64_t c = std::min(done, channels - lanes);
    auto largest = hn::Set(d, std::numeric_limits<T>::lowest());
    for (int64_t t = 0; t < p.counts[0]; ++t)
      for (int64_t r = 0; r < p.counts[1]; ++r) {
        const T* x = p.x + t * p.strides[0] + r * p.strides[1] + c;
        for (int64_t s = 0; s < p.counts[2]; ++s, x += p.strides[2]) largest = hn::Max(largest, hn::LoadU(d, x));
      }
    hn::StoreU(largest, d, p.y + c);
  }
}

template <class T>
void byte_rows(const BytePool& pool, const T* x, T* y, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> whole;
  const hn::CappedTag<T, 16> part;
  const Window& w = pool.window;
  const FeatureMap &mx = pool.mx, &my = pool.my;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = u % my.h, z = u / my.h % my.d, n = u / (my.h * my.d);
    const Taps t = taps_at(pool.axes[0], z), r = taps_at(pool.axes[1], row);
    BytePixel<T> p{};
    p.counts[0] = t.size(), p.counts[1] = r.size();
    p.strides[0] = w.dilation[0] * mx.plane_stride, p.strides[1] = w.dilation[1] * mx.row_stride;
    p.strides[2] = w.dilation[2] * mx.pixel_stride;
    const int64_t first = n * mx.image_stride + (z * w.stride[0] - w.pad_begin[0] + t.begin * w.dilation[0]) * mx.plane_stride +
                          (row * w.stride[1] - w.pad_begin[1] + r.begin * w.dilation[1]) * mx.row_stride;
    for (const TapRange& range : pool.columns) {
      // A window without elements reads nothing, so that nothing need lie where it would begin.
      p.counts[2] = p.counts[0] * p.counts[1] > 0 ? range.taps.size() : 0;
      for (int64_t q = range.begin; q < range.end; ++q) {
        const int64_t column = q * w.stride[2] - w.pad_begin[2] + range.taps.begin * w.dilation[2];
        p.x = p.counts[2] > 0 ? x + first + column * mx.pixel_stride : x;
        p.y = y + n * my.image_stride + z * my.plane_stride + row * my.row_stride + q * my.pixel_stride;
        if (my.c >= static_cast<int64_t>(hn::Lanes(whole))) {
          byte_vectors(whole, p, my.c);
        } else if (my.c >= static_cast<int64_t>(hn::Lanes(part))) {
          byte_vectors(part, p, my.c);
        } else {
          for (int64_t c = 0; c < my.c; ++c) {
            T largest = std::numeric_limits<T>::lowest();
            for (int64_t i = 0; i < p.counts[0]; ++i)
              for (int64_t j = 0; j < p.counts[1]; ++j)
                for (int64_t s = 0; s < p.counts[2]; ++s)
                  largest = std::max(largest, p.x[i * p.strides[0] + j * p.strides[1] + s * p.strides[2] + c]);
            p.y[c] = largest;
          }
        }
      }
    }
  }
}

void byte_pool(const BytePool& pool, bool is_signed, const std::byte* x, std::byte* y, int64_t begin, int64_t end) {
  if (is_signed) {
    byte_rows(pool, reinterpret_cast<const int8_t*>(x), reinterpret_cast<int8_t*>(y), begin, end);
  } else {
    byte_rows(pool, reinterpret_cast<const uint8_t*>(x), reinterpret_cast<uint8_t*>(y), begin, end);
  }
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
namespace {

using ByteLoop = void (*)(const BytePool&, bool, const std::byte*, std::byte*, int64_t, int64_t);

class BytePoolKernel final : public CpuKernel {
 public:
  BytePoolKernel(const Stage& stage, const LoopSchedule& schedule, ByteLoop loop)
      : loop_(loop), is_signed_(stage.inputs[0].dtype == DType::i8), grain_(schedule.grain) {
    const Window& w = get<PoolParams>(stage.params).window;
    const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
    const int64_t in[3] = {x.d, x.h, x.w}, out[3] = {y.d, y.h, y.w};
    pool_.mx = x, pool_.my = y, pool_.window = w;
    for (size_t i = 0; i < 3; ++i) pool_.axes[i] = {in[i], out[i], w.filter[i], w.stride[i], w.dilation[i], w.pad_begin[i]};
    pool_.columns = tap_ranges(pool_.axes[2]);
  }

  void run(const CpuLaunch& launch) const override {
    const FeatureMap& y = pool_.my;
    if (y.n * y.c * y.pixels() == 0) return;
    const int64_t rows = y.n * y.d * y.h;
    const int64_t tasks = tasks_of(grain_, rows * y.w * y.c, rows, launch.executor->width());
    const std::byte* from = launch.inputs[0];
    std::byte* to = launch.outputs[0];
    for_each_range(*launch.executor, rows, tasks,
                   [&](int64_t begin, int64_t end) { loop_(pool_, is_signed_, from, to, begin, end); });
  }

 private:
  BytePool pool_;
  ByteLoop loop_;
  bool is_signed_;
  int64_t grain_;
};

}  // namespace

Result<CpuKernelPtr> make_pool_bytes(const Stage& stage, const Schedule& of, const Device&, uint32_t) {
  const auto* loops = get_if<LoopSchedule>(&of);
  if (!loops) return Error{Reason::internal, "The pool kernel got a schedule of another family: " + to_text(of) + "."};
  const LoopSchedule& schedule = *loops;
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  const auto lacks = [&](Reason reason, const std::string& why) {
    return Error{reason, "Pool variant '" + schedule.variant + "' on unit '" + schedule.unit + "' " + why + "."};
  };
  if ((x.dtype != DType::u8 && x.dtype != DType::i8) || y.dtype != x.dtype)
    return lacks(Reason::type_not_served, "supports u8 and i8 only");
  if (get<PoolParams>(stage.params).kind != PoolKind::max || stage.outputs.size() > 1)
    return lacks(Reason::operator_not_served, "supports maxima without their positions only");
  for (const TensorDesc* desc : {&x, &y})
    if (const FeatureMap m = feature_map(*desc); m.c > 1 && m.channel_stride != 1)
      return lacks(Reason::layout_not_served, "needs the channels of input and output side by side (NHWC)");
  const ByteLoop loop = SPARKLE_PICK(byte_pool, schedule.unit);
  if (!loop) return lacks(Reason::backend_lacks_variant, "has no kernel in this build");
  return CpuKernelPtr(std::make_unique<BytePoolKernel>(stage, schedule, loop));
}

}  // namespace sparkle::cpu
#endif
