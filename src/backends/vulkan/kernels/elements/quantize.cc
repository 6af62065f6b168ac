// The quantize family on Vulkan: element-wise kinds by one shader over the axes that remain when neighbours are merged, the
// mean of channels and the range of a tensor by one each.
#include <algorithm>
#include <limits>

#include "backends/vulkan/kernels/byte_types.h"
#include "backends/vulkan/kernels/real_types.h"
#include "families/integers/integers.h"
#include "families/values/narrow.h"
#include "families/quantize/quantize.h"

namespace sparkle::vulkan {
namespace {

constexpr int kAxes = 6, kOperands = 9;  // as in glsl/quantize.glsl
constexpr int64_t kThreads = 64, kRangeGroups = 64, kRangeThreads = 256;
constexpr int64_t kAverageChannels = 32, kAverageSlices = 8;

struct ElementRecord {
  int32_t count = 0, axes = 0;
  int32_t size[kAxes] = {};
  int32_t strides[kOperands][kAxes] = {};
};

// Places in the push constants and the record.
enum Place { kX, kY, kScale, kZero, kB, kBScale, kBZero, kYScale, kYZero };

// An operand: its place, number in the stage, description.
struct Used {
  Place place;
  int operand;
  const TensorDesc* desc;
};

struct Axis {
  int64_t size = 1;
  int64_t strides[kOperands] = {};
};

Error too_large() {
  return {Reason::layout_not_served,
          "The Vulkan kernels count elements in 31 bits, and an operand spans more; split the batch."};
}
Error unsupported(DType type) {
  return {Reason::type_not_served,
          "The quantize kernels for Vulkan do not support " + std::string(name_of(type)) + " here; use --device cpu."};
}

class Builder {
 public:
  Builder(const Stage& stage, const Workshop& shop)
      : stage_(stage), shop_(shop), p_(get<QuantizeParams>(stage.params)), kernel_(std::make_unique<VulkanKernel>(stage)) {}

  Result<VulkanKernelPtr> make() {
    SPARKLE_CHECK(check_bytes(shop_));
    use(kX, 0);
    used_.push_back({kY, static_cast<int>(stage_.inputs.size()), &stage_.outputs[0]});
    for (const auto* list : {&stage_.inputs, &stage_.outputs})
      for (const TensorDesc& d : *list)
        if (extent(d.shape, d.layout) > std::numeric_limits<int32_t>::max()) return too_large();
    switch (p_.kind) {
      case QuantizeKind::dynamic: SPARKLE_CHECK(dynamic()); break;
      case QuantizeKind::average: SPARKLE_CHECK(average()); break;
      default: SPARKLE_CHECK(elements());
    }
    return std::move(kernel_);
  }

 private:
  void use(Place place, int input) { used_.push_back({place, input, &stage_.inputs[static_cast<size_t>(input)]}); }
  DType type(int input) const { return stage_.inputs[static_cast<size_t>(input)].dtype; }
  Result<uint32_t> integer(DType type) const {
    const auto code = byte_type(type);
    if (!code || type == DType::f32) return unsupported(type);
    return *code;
  }
  Status expect(DType real, std::initializer_list<int> inputs) const {
    for (int i : inputs)
      if (type(i) != real) return unsupported(type(i));
    return ok();
  }
  // The type of real operands, which element-wise kinds may have in 16 bits.
  Result<DType> real_type(int input) const {
    const DType real = type(input);
    if (real != DType::f32 && (real != DType::f16 || !shop_.context->features().f16)) return unsupported(real);
    return real;
  }

  // Addresses of the places in their order (x where one is not used), the record and the range of y.
  Status dispatch(const Pipeline* pipeline, std::array<uint32_t, 3> groups, const ElementRecord& record, const TensorDesc& y,
                  const std::vector<Address>& addresses) {
    SPARKLE_TRY(buffer, shop_.upload(&record, sizeof record));
    Dispatch d;
    d.pipeline = pipeline;
    d.groups = groups;
    d.addresses = addresses;
    d.push(buffer->address());
    const IntegerRange range = output_range(y.dtype, p_);
    d.push(static_cast<int32_t>(range.low));
    d.push(static_cast<int32_t>(range.high));
    kernel_->dispatches.push_back(std::move(d));
    kernel_->records.push_back(std::move(buffer));
    return ok();
  }
  std::vector<Address> addresses() const {
    std::vector<Address> list(kOperands, Address{0});
    for (const Used& u : used_) list[u.place] = {u.operand};
    return list;
  }

  // The axes of x from element `begin` of axis `p.axis` on, `count` of them, in blocks where parameters have them.
  std::vector<Axis> axes(int64_t count) const {
    std::vector<Axis> list;
    const Dims& shape = stage_.inputs[0].shape;
    const auto stride_of = [&](const Used& u, int axis) {
      const bool shaped = u.place == kX || u.place == kY || u.place == kB || !whole_tensor();
      return shaped && axis < u.desc->shape.size() && u.desc->shape[axis] > 1 ? u.desc->layout.strides[axis] : int64_t{0};
    };
    for (int i = 0; i < shape.size(); ++i) {
      Axis axis;
      axis.size = shape[i];
      for (const Used& u : used_) axis.strides[u.place] = stride_of(u, i);
      if (p_.block > 0 && i == p_.axis) {
        const int64_t inside = std::min(count, p_.block);
        Axis blocks = axis;
        blocks.size = count / inside;
        for (Place place : {kX, kY}) blocks.strides[place] *= inside;
        axis.size = inside;
        axis.strides[kScale] = axis.strides[kZero] = 0;
        list.push_back(blocks);
      }
      list.push_back(axis);
    }
    std::erase_if(list, [](const Axis& a) { return a.size == 1; });
    const auto outside = [](const Axis& a, const Axis& b) { return a.strides[kY] > b.strides[kY]; };
    std::stable_sort(list.begin(), list.end(), outside);
    std::vector<Axis> merged;
    for (const Axis& axis : list) {
      const bool joins = !merged.empty() && std::equal(axis.strides, axis.strides + kOperands, merged.back().strides,
                                                       [&](int64_t in, int64_t out) { return out == in * axis.size; });
      if (!joins) {
        merged.push_back(axis);
        continue;
      }
      const int64_t size = merged.back().size * axis.size;
      merged.back() = axis;
      merged.back().size = size;
    }
    if (merged.empty()) merged.emplace_back();
    return merged;
  }
  // One scale and zero point for all, whatever their shape.
  bool whole_tensor() const { return p_.kind == QuantizeKind::add; }

  static ElementRecord record_of(const std::vector<Axis>& axes) {
    ElementRecord record;
    record.axes = static_cast<int32_t>(axes.size());
    int64_t count = 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      count *= axes[i].size;
      record.size[i] = static_cast<int32_t>(axes[i].size);
      for (int o = 0; o < kOperands; ++o) record.strides[o][i] = static_cast<int32_t>(axes[i].strides[o]);
    }
    record.count = static_cast<int32_t>(count);
    return record;
  }

  // Whether four elements of x, y and b are neighbours in an aligned word or vector everywhere.
  bool is_vec4(const std::vector<Axis>& axes) const {
    if (p_.kind == QuantizeKind::factor || axes.back().size % 4 != 0) return false;
    for (const Used& u : used_) {
      if (u.place != kX && u.place != kY && u.place != kB) continue;
      if ((!is_byte(u.desc->dtype) && u.desc->dtype != DType::f32 && u.desc->dtype != DType::f16) ||
          axes.back().strides[u.place] != 1)
        return false;
      if (u.desc->layout.offset % 4 != 0) return false;
      for (size_t i = 0; i + 1 < axes.size(); ++i)
        if (axes[i].strides[u.place] % 4 != 0) return false;
    }
    return true;
  }

  // An element-wise dispatch over all of x, or over `count` elements of the axis with blocks, `shift` bytes in by place.
  Status over(int64_t count, const std::vector<Address>& where, std::array<uint32_t, 4> types) {
    const std::vector<Axis> list = axes(count);
    if (list.size() > kAxes)
      return Error{Reason::layout_not_served,
                   "The quantize kernels for Vulkan support up to six axes that cannot be merged; make the operands dense."};
    const ElementRecord record = record_of(list);
    if (record.count == 0) return ok();
    bool wide = is_vec4(list);
    for (const Used& u : used_) {
      const int64_t bytes = where[u.place].offset;
      if ((u.place == kX || u.place == kY) && bytes % (4 * size_of(u.desc->dtype)) != 0) wide = false;
    }
    PipelineRequest request;
    request.shader = fp16_ ? "quantize_elements_half" : "quantize_elements";
    request.constants = {kThreads, 1, 1, static_cast<uint32_t>(p_.kind), wide ? 4u : 1u};
    // A range found at run time: what follows is a plain quantisation.
    if (p_.kind == QuantizeKind::dynamic) request.constants[3] = static_cast<uint32_t>(QuantizeKind::quantize);
    request.constants.insert(request.constants.end(), types.begin(), types.end());
    request.constants.push_back(wide_factor_);
    if (narrow_) {
      const narrow::Format f = narrow::format_of(*narrow_);
      for (const int constant : {f.exponent_bits, f.mantissa_bits, f.bias, int{f.largest}, int{f.beyond}, int{f.nan}})
        request.constants.push_back(static_cast<uint32_t>(constant));
      request.constants.push_back(f.unsigned_zero);
    }
    SPARKLE_TRY(pipeline, shop_.pipelines->get(request));
    return dispatch(pipeline, groups_of_threads(record.count / (wide ? 4 : 1), kThreads), record, stage_.outputs[0], where);
  }

  Status elements() {
    const DType y = stage_.outputs[0].dtype;
    const bool real_y = p_.kind == QuantizeKind::dequantize || p_.kind == QuantizeKind::factor;
    SPARKLE_TRY(real, p_.kind == QuantizeKind::add ? Result<DType>(DType::f32) : real_type(1));
    fp16_ = real == DType::f16;
    wide_factor_ = p_.kind == QuantizeKind::factor && fp16_ && y == DType::f32;
    if (real_y && y != real && !wide_factor_) return unsupported(y);
    std::array<uint32_t, 4> types{};  // of x, zero, b, y
    if (!real_y) {
      SPARKLE_TRY(code, integer(y));
      types[3] = code;
      if (y == DType::i32) return unsupported(y);
    }
    if (p_.kind == QuantizeKind::factor) {
      SPARKLE_CHECK(expect(real, {0, 1, 2}));
      use(kScale, 1), use(kB, 2);
    } else {
      SPARKLE_CHECK(expect(real, {1}));
      use(kScale, 1), use(kZero, 2);
      SPARKLE_TRY(zero, integer(type(2)));
      types[1] = zero;
      const DType stored = p_.kind == QuantizeKind::dequantize ? type(0) : y;
      if ((is_narrow_float(stored) || is_narrow_float(type(2))) && (stored != type(2) || p_.kind == QuantizeKind::add))
        return unsupported(stored);
      if (is_narrow_float(stored)) narrow_ = stored;
      if (p_.kind == QuantizeKind::quantize) {
        SPARKLE_CHECK(expect(real, {0}));
      } else {
        SPARKLE_TRY(x, integer(type(0)));
        types[0] = x;
      }
    }
    if (p_.kind == QuantizeKind::add) {
      SPARKLE_CHECK(expect(real, {4, 6}));
      SPARKLE_TRY(b, integer(type(3)));
      types[2] = b;
      if (type(5) != type(3) || type(7) != y || type(0) == DType::i32 || type(3) == DType::i32) return unsupported(type(5));
      use(kB, 3), use(kBScale, 4), use(kBZero, 5), use(kYScale, 6), use(kYZero, 7);
    }
    if (p_.block <= 0) return over(0, addresses(), types);
    // Whole blocks, then what remains.
    const int axis = p_.axis;
    const int64_t length = stage_.inputs[0].shape[axis], whole = length / p_.block * p_.block;
    if (whole > 0) SPARKLE_CHECK(over(whole, addresses(), types));
    if (whole == length) return ok();
    std::vector<Address> rest = addresses();
    for (const Used& u : used_) {
      const int64_t steps = u.place == kX || u.place == kY ? whole : whole / p_.block;
      rest[u.place].offset = steps * u.desc->layout.strides[axis] * size_of(u.desc->dtype);
    }
    SPARKLE_CHECK(over(length - whole, rest, types));
    kernel_->dispatches.back().after_previous = false;
    return ok();
  }

  Status dynamic() {
    SPARKLE_CHECK(expect(DType::f32, {0}));
    if (stage_.outputs[0].dtype != DType::u8) return unsupported(stage_.outputs[0].dtype);
    const std::vector<Axis> list = axes(0);
    if (list.size() > kAxes)
      return Error{Reason::layout_not_served,
                   "The quantize kernels for Vulkan support up to six axes that cannot be merged; make the operands dense."};
    ElementRecord record = record_of(list);
    const auto groups = static_cast<uint32_t>(
        std::clamp<int64_t>((int64_t{record.count} + 4 * kRangeThreads - 1) / (4 * kRangeThreads), 1, kRangeGroups));
    kernel_->workspace = groups * 8;
    PipelineRequest request;
    request.shader = "quantize_range";
    request.constants = {kRangeThreads, 1, 1, 0};
    SPARKLE_TRY(first, shop_.pipelines->get(request));
    request.constants[3] = 1;
    SPARKLE_TRY(last, shop_.pipelines->get(request));
    std::vector<Address> where(kOperands, Address{0});
    where[kY] = {kWorkspace};
    SPARKLE_CHECK(dispatch(first, {groups, 1, 1}, record, stage_.outputs[0], where));
    record.count = static_cast<int32_t>(groups);
    where[kX] = {kWorkspace}, where[kScale] = {2}, where[kZero] = {3};
    SPARKLE_CHECK(dispatch(last, {1, 1, 1}, record, stage_.outputs[0], where));
    std::vector<Address> all = addresses();
    all[kScale] = {2}, all[kZero] = {3};
    return over(0, all, {0, 1, 0, 1});
  }

  Status average() {
    const TensorDesc &x = stage_.inputs[0], &y = stage_.outputs[0];
    SPARKLE_CHECK(expect(DType::f32, {1, 3}));
    if (!is_byte(x.dtype)) return unsupported(x.dtype);
    if (!is_byte(y.dtype)) return unsupported(y.dtype);
    if (type(2) != x.dtype || type(4) != y.dtype) return unsupported(type(2));
    use(kScale, 1), use(kZero, 2), use(kYScale, 3), use(kYZero, 4);
    const FeatureMap from = feature_map(x), to = feature_map(y);
    const int64_t sizes[] = {from.n, from.c, from.d, from.h, from.w};
    const int64_t x_strides[] = {from.image_stride, from.channel_stride, from.plane_stride, from.row_stride, from.pixel_stride};
    ElementRecord record;
    for (int i = 0; i < 5; ++i) {
      record.size[i] = static_cast<int32_t>(sizes[i]);
      record.strides[kX][i] = static_cast<int32_t>(x_strides[i]);
    }
    record.strides[kY][0] = static_cast<int32_t>(to.image_stride);
    record.strides[kY][1] = static_cast<int32_t>(to.channel_stride);
    if (from.n * from.c == 0) return ok();
    if (from.n > 65535) return too_large();
    PipelineRequest request;
    request.shader = "quantize_average";
    request.constants = {kAverageChannels, kAverageSlices, 1, *byte_type(x.dtype), *byte_type(y.dtype)};
    SPARKLE_TRY(pipeline, shop_.pipelines->get(request));
    return dispatch(pipeline, {groups_for(from.c, kAverageChannels), static_cast<uint32_t>(from.n), 1}, record, y, addresses());
  }

  const Stage& stage_;
  const Workshop& shop_;
  const QuantizeParams& p_;
  VulkanKernelPtr kernel_;
  bool fp16_ = false;            // real operands are of 16 bits
  bool wide_factor_ = false;     // but the factor made of them is f32
  std::optional<DType> narrow_;  // a float of 8 or 4 bits among the operands
  std::vector<Used> used_;
};

}  // namespace

Result<VulkanKernelPtr> make_quantize(const Stage& stage, const Schedule&, const Workshop& shop, uint32_t) {
  return Builder(stage, shop).make();
}

}  // namespace sparkle::vulkan
