// The variant "positions" of the pool family: maxima and the places where they lie, vectors of channels. The last vector of a
// pixel overlaps the one before it, which finds the same again; pixels with fewer channels than a vector go channel by channel.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "families/loops/grain.h"
#include "families/pool/pool.h"
#include "families/windows/taps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/variant_positions.cc"
#include "backends/cpu/simd/simd.h"

#ifndef SPARKLE_POOL_POSITIONS_ONCE
#define SPARKLE_POOL_POSITIONS_ONCE
namespace sparkle::cpu {
struct PositionPool {
  FeatureMap mx, my, mi;
  Window window;
  Axis axes[3];
};
}  // namespace sparkle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// A NaN takes the place of any number, and keeps it; of equal ones the first stays.
template <class D>
HWY_INLINE void largest_of(D d, const PositionPool& pool, const float* x, const Taps (&taps)[3], const int64_t (&origin)[3],
                           float* y, int32_t* places) {
  const hn::RebindToSigned<D> di;
  const FeatureMap& m = pool.mx;
  const Window& w = pool.window;
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto place = hn::Zero(di);
  bool first = true;
  for (int64_t t = taps[0].begin; t < taps[0].end; ++t)
    for (int64_t r = taps[1].begin; r < taps[1].end; ++r)
      for (int64_t s = taps[2].begin; s < taps[2].end; ++s) {
        const int64_t z = origin[0] + t * w.dilation[0], row = origin[1] + r * w.dilation[1],
                      column = origin[2] + s * w.dilation[2];
        const auto value = hn::LoadU(d, x + z * m.plane_stride + row * m.row_stride + column * m.pixel_stride);
        const auto here = hn::Set(di, static_cast<int32_t>((z * m.h + row) * m.w + column));
        if (first) {
          best = value, place = here, first = false;
          continue;
        }
        const auto larger = hn::AndNot(hn::IsNaN(best), hn::Or(hn::Gt(value, best), hn::IsNaN(value)));
        best = hn::IfThenElse(larger, value, best);
        place = hn::IfThenElse(hn::RebindMask(di, larger), here, place);
      }
  hn::StoreU(best, d, y);
  hn::StoreU(place, di, places);
}

void position_rows(const PositionPool& pool, const float* x, float* y, int64_t* positions, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> one;
  const FeatureMap &mx = pool.mx, &my = pool.my, &mi = pool.mi;
  const Window& w = pool.window;
  const auto lanes = static_cast<int64_t>(hn::Lanes(whole));
  std::vector<int32_t> places(static_cast<size_t>(my.c));
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = u % my.h, z = u / my.h % my.d, n = u / (my.h * my.d);
    Taps taps[3] = {taps_at(pool.axes[0], z), taps_at(pool.axes[1], row), {}};
    int64_t origin[3] = {z * w.stride[0] - w.pad_begin[0], row * w.stride[1] - w.pad_begin[1], 0};
    for (int64_t q = 0; q < my.w; ++q) {
      taps[2] = taps_at(pool.axes[2], q), origin[2] = q * w.stride[2] - w.pad_begin[2];
      const float* from = x + n * mx.image_stride;
      float* to = y + n * my.image_stride + z * my.plane_stride + row * my.row_stride + q * my.pixel_stride;
      if (my.c >= lanes) {
        for (int64_t done = 0; done < my.c; done += lanes) {
          const int64_t c = std::min(done, my.c - lanes);
          largest_of(whole, pool, from + c, taps, origin, to + c, places.data() + c);
        }
      } else {
        for (int64_t c = 0; c < my.c; ++c) largest_of(one, pool, from + c, taps, origin, to + c, places.data() + c);
      }
      int64_t* at = positions + n * mi.image_stride + z * mi.plane_stride + row * mi.row_stride + q * mi.pixel_stride;
      for (int64_t c = 0; c < my.c; ++c)
        at[c * mi.channel_stride] = (n * mx.c + c) * mx.pixels() + places[static_cast<size_t>(c)];
    }
  }
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
namespace {

using PositionLoop = void (*)(const PositionPool&, const float*, float*, int64_t*, int64_t, int64_t);

class PositionKernel final : public CpuKernel {
 public:
  PositionKernel(const Stage& stage, const LoopSchedule& schedule, PositionLoop loop) : loop_(loop), grain_(schedule.grain) {
    const Window& w = get<PoolParams>(stage.params).window;
    pool_.mx = feature_map(stage.inputs[0]), pool_.my = feature_map(stage.outputs[0]);
    pool_.mi = feature_map(stage.outputs[1]), pool_.window = w;
    const int64_t in[3] = {pool_.mx.d, pool_.mx.h, pool_.mx.w}, out[3] = {pool_.my.d, pool_.my.h, pool_.my.w};
    for (size_t i = 0; i < 3; ++i) pool_.axes[i] = {in[i], out[i], w.filter[i], w.stride[i], w.dilation[i], w.pad_begin[i]};
  }

  void run(const CpuLaunch& launch) const override {
    const FeatureMap& y = pool_.my;
    if (y.n * y.c * y.pixels() == 0) return;
    const int64_t rows = y.n * y.d * y.h;
    const int64_t tasks = tasks_of(grain_, rows * y.w * y.c, rows, launch.executor->width());
    const auto* x = reinterpret_cast<const float*>(launch.inputs[0]);
    auto* to = reinterpret_cast<float*>(launch.outputs[0]);
    auto* positions = reinterpret_cast<int64_t*>(launch.outputs[1]);
    for_each_range(*launch.executor, rows, tasks,
                   [&](int64_t begin, int64_t end) { loop_(pool_, x, to, positions, begin, end); });
  }

 private:
  PositionPool pool_;
  PositionLoop loop_;
  int64_t grain_;
};

}  // namespace

Result<CpuKernelPtr> make_pool_positions(const Stage& stage, const Schedule& schedule, const Device&, uint32_t) {
  const auto* s = get_if<LoopSchedule>(&schedule);
  if (!s) return Error{Reason::internal, "The pool kernel got a schedule of another family: " + to_text(schedule) + "."};
  const auto lacks = [&](Reason reason, const std::string& why) {
    return Error{reason, "Pool variant '" + s->variant + "' on unit '" + s->unit + "' " + why + "."};
  };
  const auto& p = get<PoolParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (x.dtype != DType::f32 || y.dtype != DType::f32) return lacks(Reason::type_not_served, "supports f32 only");
  if (p.kind != PoolKind::max || stage.outputs.size() != 2)
    return lacks(Reason::operator_not_served, "supports maxima with their positions only");
  for (const TensorDesc* desc : {&x, &y})
    if (const FeatureMap m = feature_map(*desc); m.c > 1 && m.channel_stride != 1)
      return lacks(Reason::layout_not_served, "needs the channels of input and output side by side (NHWC)");
  if (feature_map(x).pixels() > std::numeric_limits<int32_t>::max())
    return lacks(Reason::layout_not_served, "counts places in 31 bits");
  const PositionLoop loop = SPARKLE_PICK(position_rows, s->unit);
  if (!loop) return lacks(Reason::backend_lacks_variant, "has no kernel in this build");
  return CpuKernelPtr(std::make_unique<PositionKernel>(stage, *s, loop));
}

}  // namespace sparkle::cpu
#endif
