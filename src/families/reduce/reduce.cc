// The reduce family: names, plain loops in double precision, and what it tells the planner.
#include "families/reduce/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "families/common.h"
#include "families/values/convert.h"
#include "families/loops/grain.h"
#include "families/reduce/gpu_types.h"
#include "families/windows/samples.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 10> kNames = {"sum", "mean", "max",        "min",     "product",
                                                     "l1",  "l2",   "sum_square", "log_sum", "log_sum_exp"};

constexpr Variant kVariants[] = {
#include "families/reduce/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "ReduceSum and its like, GlobalAveragePool, GlobalMaxPool, GlobalLpPool", kNumbers,
     "f16 and bf16 converted to f32 before it, f64 and integers by the variant plain",
     "f64, integers (but roots and logarithms)"},
    {"max, min", "ReduceMax, ReduceMin", kComputed,
     "f16 and bf16 converted to f32 before it, f64, integers and bool by the variant plain", "all"},
};

size_t type_form(const StageParams& params) {
  const ReduceKind kind = get<ReduceParams>(params).kind;
  return kind == ReduceKind::max || kind == ReduceKind::min;
}

// Calls f(place in x) for every element that is reduced into the output element at `at`.
template <class F>
void for_each_place(const TensorView& x, const Dims& axes, const Dims& at, F&& f) {
  Dims sizes = Dims::filled(at.size(), 1);
  for (int64_t axis : axes) sizes[static_cast<int>(axis)] = x.desc.shape[static_cast<int>(axis)];
  for_each_index(sizes, [&](const Dims& inner) {
    Dims place = at;
    for (int i = 0; i < place.size(); ++i) place[i] += inner[i];
    f(element_at(x, place));
  });
}

template <class F>
void for_each_reduced(const TensorView& x, const Dims& axes, const Dims& at, F&& f) {
  for_each_place(x, axes, at, [&](const std::byte* from) { f(load_element(x.desc.dtype, from)); });
}

// Integers: sums and products exactly, wrapping around; a mean is truncated, and so are roots and logarithms. Nothing to reduce
// gives the value that changes nothing, for the extrema the type's own lowest and highest.
template <class T>
void reduce_integers(const ReduceParams& p, const TensorView& x, const TensorView& y) {
  for_each_index(y.desc.shape, [&](const Dims& at) {
    uint64_t sum = 0, absolute = 0, square = 0, product = 1, count = 0;
    T largest = std::numeric_limits<T>::min(), smallest = std::numeric_limits<T>::max();
    for_each_place(x, p.axes, at, [&](const std::byte* from) {
      T v;
      std::memcpy(&v, from, sizeof v);
      const auto u = static_cast<uint64_t>(v);  // sign-extended: arithmetic modulo 2^64 agrees with that modulo T's size
      sum += u, absolute += v < 0 ? 0 - u : u, square += u * u, product *= u, ++count;
      largest = std::max(largest, v), smallest = std::min(smallest, v);
    });
    T result = 0;
    switch (p.kind) {
      case ReduceKind::sum: result = static_cast<T>(sum); break;
      case ReduceKind::mean:
        if (count > 0)
          result = std::is_signed_v<T> ? static_cast<T>(static_cast<int64_t>(sum) / static_cast<int64_t>(count))
                                       : static_cast<T>(sum / count);
        break;
      case ReduceKind::max: result = largest; break;
      case ReduceKind::min: result = smallest; break;
      case ReduceKind::product: result = static_cast<T>(product); break;
      case ReduceKind::l1: result = static_cast<T>(absolute); break;
      case ReduceKind::l2: result = converted<T>(std::sqrt(static_cast<double>(square))); break;
      case ReduceKind::sum_square: result = static_cast<T>(square); break;
      case ReduceKind::log_sum: result = converted<T>(std::log(static_cast<double>(static_cast<T>(sum)))); break;
      case ReduceKind::log_sum_exp: {
        double total = 0;
        const auto shift = static_cast<double>(largest);
        for_each_place(x, p.axes, at, [&](const std::byte* from) {
          T v;
          std::memcpy(&v, from, sizeof v);
          total += std::exp(static_cast<double>(v) - shift);
        });
        result = converted<T>(std::log(total) + shift);
        break;
      }
    }
    std::memcpy(element_at(y, at), &result, sizeof result);
  });
}

void reduce_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const ReduceParams& p = get<ReduceParams>(params);
  const TensorView &x = inputs[0], &y = outputs[0];
  if (!is_float(x.desc.dtype) && x.desc.dtype == y.desc.dtype) {
    bool whole = false;
    with_type(x.desc.dtype, [&]<class T>(T*) {
      if constexpr (std::is_integral_v<T>) reduce_integers<T>(p, x, y), whole = true;
    });
    if (whole) return;
  }
  for_each_index(y.desc.shape, [&](const Dims& at) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const bool truth = x.desc.dtype == DType::boolean;  // the extrema of nothing are the lowest and highest of the type
    double sum = 0, absolute = 0, square = 0, product = 1, count = 0;
    double largest = truth ? 0 : -kInfinity, smallest = truth ? 1 : kInfinity;
    bool nan = false;
    for_each_reduced(x, p.axes, at, [&](double v) {
      sum += v, absolute += std::abs(v), square += v * v, product *= v, count += 1;
      largest = std::max(largest, v), smallest = std::min(smallest, v);
      nan = nan || std::isnan(v);
    });
    if (nan) largest = smallest = std::numeric_limits<double>::quiet_NaN();
    double result = 0;
    switch (p.kind) {
      case ReduceKind::sum: result = sum; break;
      case ReduceKind::mean: result = sum / count; break;
      case ReduceKind::max: result = largest; break;
      case ReduceKind::min: result = smallest; break;
      case ReduceKind::product: result = product; break;
      case ReduceKind::l1: result = absolute; break;
      case ReduceKind::l2: result = std::sqrt(square); break;
      case ReduceKind::sum_square: result = square; break;
      case ReduceKind::log_sum: result = std::log(sum); break;
      case ReduceKind::log_sum_exp: {
        const double shift = std::isfinite(largest) ? largest : 0;  // keeps the exponentials within range
        double total = 0;
        for_each_reduced(x, p.axes, at, [&](double v) { total += std::exp(v - shift); });
        result = std::log(total) + shift;
        break;
      }
    }
    store_element(y.desc.dtype, result, element_at(y, at));
  });
}

Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  const ReduceKind kind = get<ReduceParams>(stage.params).kind;
  const double each = kind == ReduceKind::log_sum_exp ? 24 : kind == ReduceKind::l2 || kind == ReduceKind::sum_square ? 2 : 1;
  Footprint footprint = streaming_footprint(stage, device, each * static_cast<double>(stage.inputs[0].elements()));
  footprint.parallel_items = std::max(1.0, static_cast<double>(stage.inputs[0].bytes()) / 65536);
  return footprint;
}

bool supported_by_gpu(const Stage& stage, const Variant& variant, const Device& device) {
  const DType type = stage.inputs[0].dtype;
  if (!variant.for_workgroups() || !variant.runs_on(device) || type != stage.outputs[0].dtype) return false;
  // CUDA's cards, which have mma.sync, compute in doubles and on bytes too.
  const bool cuda = device.unit("mma-bf16") != nullptr;
  const char* unit = cuda                  ? "fma-f32"
                     : type == DType::f64  ? "alu-f64"
                     : size_of(type) == 1  ? "alu-i8"
                     : type == DType::bf16 ? "mma-bf16"
                     : size_of(type) == 2  ? "fma-f16"
                                           : "fma-f32";
  return device.unit(unit) && reduces_on_gpus(get<ReduceParams>(stage.params).kind, type);
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.name != "plain" && !stores_reals(variant, device, stage) && !supported_by_gpu(stage, variant, device)) {
    why_not = Reason::type_not_served;
    return {};
  }
  std::vector<Schedule> found = loop_schedules(stage, variant, device, why_not);
  const int64_t read = stage.inputs[0].elements();
  cut_into(found, device, read, planned_tasks(static_cast<double>(read), 4 * kLeastElements, 4, device));
  return found;
}

std::vector<SampleForm> sample_forms() {
  std::vector<SampleForm> list;
  const auto of = [&](ReduceKind kind, DType type) { list.push_back({ReduceParams{kind, {1}}, {type}, {type}}); };
  for (int kind = 0; kind < 10; ++kind) of(static_cast<ReduceKind>(kind), DType::f32);
  for (const DType type : {DType::i8, DType::u16, DType::i32, DType::u64, DType::f64}) of(ReduceKind::sum, type);
  for (const DType type : {DType::boolean, DType::u8, DType::i64}) of(ReduceKind::max, type);
  of(ReduceKind::log_sum_exp, DType::f64);
  return list;
}

// Along the rows and across them.
std::vector<Stage> samples(const SampleRequest& t) {
  const auto kind = get<ReduceParams>(t.params).kind;
  return {with_types(rows_sample(ReduceParams{kind, {2}}, 1, {3, 5, 1}), t),
          with_types(rows_sample(ReduceParams{kind, {0, 1}}, 1, {1, 1, 37}), t)};
}

}  // namespace

std::string_view name_of(ReduceKind kind) { return kNames[static_cast<size_t>(kind)]; }

bool parse_name(std::string_view text, ReduceKind& kind) {
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end()) return false;
  kind = static_cast<ReduceKind>(at - kNames.begin());
  return true;
}

const FamilyInfo& reduce_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<ReduceParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .type_form = type_form,
      .gpu_16_bits = true,
      .reference = reduce_reference,
      .footprint = footprint,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
  };
  return family;
}

}  // namespace sparkle
