// The quantize family on CUDA: element-wise kinds by one kernel over the axes that remain when neighbours are merged, means of
// channels and the range of a tensor by one each.
#include "families/quantize/quantize.h"

#include <algorithm>

#include "backends/cuda/kernels/integers/quantize_record.h"
#include "backends/cuda/stages/moves/moves.h"

namespace sparkle::cuda {
namespace {

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

struct Axis {
  int64_t size = 1;
  int64_t strides[kQuantizeOperands] = {};
};

// An operand of the stage at its place in the record, with strides of its own or as a single value.
struct Used {
  int operand;
  size_t at;                                  // in the record
  QuantizeOperand place = kQuantizeOperands;  // kQuantizeOperands: a single value
};

Error too_many_axes() {
  return {Reason::layout_not_served,
          "The CUDA quantize kernels support up to six axes that cannot be merged; make the operands dense."};
}

class Builder {
 public:
  Builder(const Stage& stage, const Workshop& shop)
      : stage_(stage), shop_(shop), p_(get<QuantizeParams>(stage.params)), kernel_(std::make_unique<CudaKernel>(stage)) {}

  Result<CudaKernelPtr> make() {
    for (const auto* list : {&stage_.inputs, &stage_.outputs})
      for (const TensorDesc& d : *list)
        if (extent(d.shape, d.layout) > INT32_MAX || d.elements() > INT32_MAX) return too_far("quantize");
    if (p_.kind == QuantizeKind::dynamic) SPARKLE_CHECK(dynamic());
    else if (p_.kind == QuantizeKind::average) SPARKLE_CHECK(average());
    else SPARKLE_CHECK(elements());
    return std::move(kernel_);
  }

 private:
  const TensorDesc& desc(int operand) const {
    const auto inputs = static_cast<int>(stage_.inputs.size());
    return operand < inputs ? stage_.inputs[static_cast<size_t>(operand)]
                            : stage_.outputs[static_cast<size_t>(operand - inputs)];
  }
  int output(int number) const { return static_cast<int>(stage_.inputs.size()) + number; }
  IntegerRange range() const { return output_range(stage_.outputs[0].dtype, p_); }

  // The axes of x, or `count` elements of the axis with blocks, merged; y's outermost first.
  std::vector<Axis> axes(const std::vector<Used>& used, int64_t count) const {
    std::vector<Axis> list;
    const Dims& shape = stage_.inputs[0].shape;
    for (int i = 0; i < shape.size(); ++i) {
      Axis axis;
      axis.size = shape[i];
      for (const Used& u : used)
        if (u.place != kQuantizeOperands && i < desc(u.operand).shape.size() && desc(u.operand).shape[i] > 1)
          axis.strides[u.place] = desc(u.operand).layout.strides[i];
      if (p_.block > 0 && i == p_.axis) {
        const int64_t inside = std::min(count, p_.block);
        Axis blocks = axis;
        blocks.size = count / inside;
        for (const QuantizeOperand place : {kQuantizeX, kQuantizeY}) blocks.strides[place] *= inside;
        axis.size = inside;
        axis.strides[kQuantizeScale] = axis.strides[kQuantizeZero] = 0;
        list.push_back(blocks);
      }
      list.push_back(axis);
    }
    std::erase_if(list, [](const Axis& a) { return a.size == 1; });
    std::stable_sort(list.begin(), list.end(),
                     [](const Axis& a, const Axis& b) { return a.strides[kQuantizeY] > b.strides[kQuantizeY]; });
    std::vector<Axis> merged;
    for (const Axis& axis : list) {
      const bool joins = !merged.empty() && std::equal(axis.strides, axis.strides + kQuantizeOperands, merged.back().strides,
                                                       [&](int64_t in, int64_t out) { return out == in * axis.size; });
      const int64_t size = joins ? merged.back().size * axis.size : axis.size;
      if (joins) merged.back() = axis;
      else merged.push_back(axis);
      merged.back().size = size;
    }
    if (merged.empty()) merged.emplace_back();
    return merged;
  }

  // Whether four elements of x, y and b are neighbours in an aligned word or vector everywhere; `begin`: along the axis of
  // blocks.
  bool in_vec4s(const std::vector<Used>& used, const std::vector<Axis>& list, int64_t begin) const {
    if (p_.kind == QuantizeKind::factor || list.back().size % 4 != 0) return false;
    for (const Used& u : used) {
      if (u.place != kQuantizeX && u.place != kQuantizeY && u.place != kQuantizeB) continue;
      const TensorDesc& d = desc(u.operand);
      if (!is_byte(d.dtype) && d.dtype != DType::f32 && d.dtype != DType::f16) return false;
      if (list.back().strides[u.place] != 1 || d.layout.offset % 4 != 0) return false;
      if (begin > 0 && begin * d.layout.strides[p_.axis] % 4 != 0) return false;
      for (size_t i = 0; i + 1 < list.size(); ++i)
        if (list[i].strides[u.place] % 4 != 0) return false;
    }
    return true;
  }

  // A launch over all of x, or over `count` elements from `begin` on of the axis with blocks.
  Status over(const std::vector<Used>& used, int64_t begin, int64_t count) {
    std::vector<Axis> list = axes(used, count);
    if (list.size() > static_cast<size_t>(kQuantizeAxes)) return too_many_axes();
    const bool wide = in_vec4s(used, list, begin);
    QuantizeRecord r;
    if (wide) {
      r.beside[0] = static_cast<int32_t>(list.back().strides[kQuantizeScale]);
      r.beside[1] = static_cast<int32_t>(list.back().strides[kQuantizeZero]);
      list.back().size /= 4;
      for (int64_t& stride : list.back().strides) stride *= 4;
    }
    int64_t threads = 1;
    r.rank = static_cast<int32_t>(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      threads *= list[i].size;
      r.size[i] = divisor_of(list[i].size);
      for (int o = 0; o < kQuantizeOperands; ++o) r.strides[o][i] = static_cast<int32_t>(list[i].strides[o]);
    }
    if (threads == 0) return ok();
    r.count = static_cast<uint32_t>(threads);
    // A range that is found at run time: what follows is a plain quantisation.
    const bool dynamic = p_.kind == QuantizeKind::dynamic;
    r.kind = static_cast<uint8_t>(dynamic ? QuantizeKind::quantize : p_.kind);
    r.real = static_cast<uint8_t>(dynamic || p_.kind == QuantizeKind::add ? DType::f32 : desc(1).dtype);
    r.x_type = static_cast<uint8_t>(desc(0).dtype), r.y_type = static_cast<uint8_t>(stage_.outputs[0].dtype);
    r.low = static_cast<int32_t>(range().low), r.high = static_cast<int32_t>(range().high);
    for (const Used& u : used) {
      if (u.at == offsetof(QuantizeRecord, zero)) r.zero_type = static_cast<uint8_t>(desc(u.operand).dtype);
      if (u.place == kQuantizeB) r.b_type = static_cast<uint8_t>(desc(u.operand).dtype);
    }
    SPARKLE_TRY(launch, launch_of(shop_, wide ? "sparkle_quantize_4" : "sparkle_quantize_1", r,
                                  blocks_for(threads, kQuantizeThreads), kQuantizeThreads));
    for (const Used& u : used) {
      const int64_t steps = begin == 0                                              ? 0
                            : u.place == kQuantizeX || u.place == kQuantizeY        ? begin
                            : u.place == kQuantizeScale || u.place == kQuantizeZero ? begin / p_.block
                                                                                    : 0;
      const int64_t offset = steps == 0 ? 0 : steps * desc(u.operand).layout.strides[p_.axis] * size_of(desc(u.operand).dtype);
      launch.addresses.push_back({u.at, u.operand, offset});
    }
    launch.after_previous = begin == 0;
    kernel_->launches.push_back(std::move(launch));
    return ok();
  }

  Status elements() {
    using R = QuantizeRecord;
    std::vector<Used> used{{0, offsetof(R, x), kQuantizeX}, {output(0), offsetof(R, y), kQuantizeY}};
    if (p_.kind == QuantizeKind::factor) {
      used.insert(used.end(), {{1, offsetof(R, scale), kQuantizeScale}, {2, offsetof(R, b), kQuantizeB}});
    } else if (p_.kind == QuantizeKind::add) {
      used.insert(used.end(), {{1, offsetof(R, scale)},
                               {2, offsetof(R, zero)},
                               {3, offsetof(R, b), kQuantizeB},
                               {4, offsetof(R, b_scale)},
                               {5, offsetof(R, b_zero)},
                               {6, offsetof(R, y_scale)},
                               {7, offsetof(R, y_zero)}});
    } else {
      used.insert(used.end(), {{1, offsetof(R, scale), kQuantizeScale}, {2, offsetof(R, zero), kQuantizeZero}});
    }
    if (p_.block <= 0) return over(used, 0, 0);
    // Whole blocks, then what remains.
    const int64_t length = stage_.inputs[0].shape[p_.axis], whole = length / p_.block * p_.block;
    if (whole > 0) SPARKLE_CHECK(over(used, 0, whole));
    return whole == length ? ok() : over(used, whole, length - whole);
  }

  Status dynamic() {
    using R = QuantizeRecord;
    const std::vector<Used> used{{0, offsetof(R, x), kQuantizeX},
                                 {output(0), offsetof(R, y), kQuantizeY},
                                 {output(1), offsetof(R, scale)},
                                 {output(2), offsetof(R, zero)}};
    const std::vector<Axis> list = axes(used, 0);
    if (list.size() > static_cast<size_t>(kQuantizeAxes)) return too_many_axes();
    RangeRecord r;
    int64_t count = 1;
    r.rank = static_cast<int32_t>(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      count *= list[i].size;
      r.size[i] = divisor_of(list[i].size), r.strides[i] = static_cast<int32_t>(list[i].strides[kQuantizeX]);
    }
    r.count = static_cast<uint32_t>(count);
    r.blocks = static_cast<int32_t>(std::clamp<int64_t>(divided(count, 4 * kRangeThreads), 1, kRangeBlocks));
    kernel_->workspace = 8 * int64_t{r.blocks};
    for (const bool last : {false, true}) {
      SPARKLE_TRY(launch, launch_of(shop_, last ? "sparkle_quantize_range_end" : "sparkle_quantize_range", r,
                                    {last ? 1u : static_cast<unsigned>(r.blocks), 1, 1}, kRangeThreads, 8 * kRangeThreads));
      launch.addresses = {{offsetof(RangeRecord, pairs), kWorkspace, 0}};
      if (last) {
        launch.addresses.push_back({offsetof(RangeRecord, scale), output(1), 0});
        launch.addresses.push_back({offsetof(RangeRecord, zero), output(2), 0});
      } else {
        launch.addresses.push_back({offsetof(RangeRecord, x), 0, 0});
      }
      kernel_->launches.push_back(std::move(launch));
    }
    SPARKLE_CHECK(over(used, 0, 0));
    // `over` begins a chain of its own elsewhere; here it reads what the range gave.
    if (count > 0) kernel_->launches.back().after_previous = true;
    return ok();
  }

  Status average() {
    const FeatureMap from = feature_map(desc(0)), to = feature_map(stage_.outputs[0]);
    if (from.n * from.c == 0) return ok();
    if (from.n > 65535) return too_far("quantize");
    AverageRecord r;
    r.channels = static_cast<int32_t>(from.c), r.pixels = static_cast<int32_t>(from.pixels());
    r.h = divisor_of(from.h), r.w = divisor_of(from.w);
    const int64_t strides[] = {from.image_stride, from.plane_stride, from.row_stride, from.pixel_stride};
    for (size_t i = 0; i < 4; ++i) r.x_strides[i] = static_cast<int32_t>(strides[i]);
    r.x_channel = static_cast<int32_t>(from.channel_stride);
    r.y_image = static_cast<int32_t>(to.image_stride), r.y_channel = static_cast<int32_t>(to.channel_stride);
    r.low = static_cast<int32_t>(range().low), r.high = static_cast<int32_t>(range().high);
    r.x_type = static_cast<uint8_t>(desc(0).dtype), r.y_type = static_cast<uint8_t>(stage_.outputs[0].dtype);
    const std::array<unsigned, 3> grid{static_cast<unsigned>(divided(from.c, kAverageChannels)), static_cast<unsigned>(from.n),
                                       1};
    constexpr unsigned kThreads = kAverageChannels * kAverageSlices;
    SPARKLE_TRY(launch, launch_of(shop_, "sparkle_quantize_average", r, grid, kThreads, 4 * kThreads));
    launch.addresses = {{offsetof(AverageRecord, x), 0, 0},      {offsetof(AverageRecord, scale), 1, 0},
                        {offsetof(AverageRecord, zero), 2, 0},   {offsetof(AverageRecord, y_scale), 3, 0},
                        {offsetof(AverageRecord, y_zero), 4, 0}, {offsetof(AverageRecord, y), output(0), 0}};
    kernel_->launches.push_back(std::move(launch));
    return ok();
  }

  const Stage& stage_;
  const Workshop& shop_;
  const QuantizeParams& p_;
  CudaKernelPtr kernel_;
};

}  // namespace

Result<CudaKernelPtr> make_quantize(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "elements")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no quantize variant '" + variant_of(schedule) + "'"};
  return Builder(stage, shop).make();
}

}  // namespace sparkle::cuda
