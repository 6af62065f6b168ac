#include "device/units/unit_sizes.h"

#include <algorithm>
#include <array>

namespace sparkle {
namespace {

constexpr std::array<std::string_view, kPrecisions> kNames = {"fp32", "tf32", "fp16", "bf16", "int8"};

constexpr int64_t kRunBytes = 16;  // one load of a thread, and the least that copies to shared memory move at once

double rate_of(const MathUnit& unit) {
  return unit.total_flops_per_second > 0 ? unit.total_flops_per_second : unit.flops_per_second;
}

template <class Accepts>
const MathUnit* fastest(const Device& device, const Accepts& accepts) {
  const MathUnit* best = nullptr;
  for (const MathUnit& unit : device.units)
    if (accepts(unit) && (!best || rate_of(unit) > rate_of(*best))) best = &unit;
  return best;
}

}  // namespace

std::string_view name_of(Precision precision) { return kNames[static_cast<size_t>(precision)]; }

bool parse_name(std::string_view text, Precision& precision) {
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at != kNames.end()) precision = static_cast<Precision>(at - kNames.begin());
  return at != kNames.end();
}

DType stored_type(Precision precision) {
  switch (precision) {
    case Precision::fp16: return DType::f16;
    case Precision::bf16: return DType::bf16;
    case Precision::int8: return DType::i8;
    case Precision::fp32:
    case Precision::tf32: break;
  }
  return DType::f32;
}

bool multiplies(const MathUnit& unit, Precision precision) {
  // A unit for TF32 says so in its name: what it reads is fp32 all the same.
  const bool tf32 = unit.input == DType::f32 && unit.name.find("tf32") != std::string::npos;
  switch (precision) {
    case Precision::fp32: return unit.input == DType::f32 && !tf32;
    case Precision::tf32: return tf32;
    case Precision::fp16: return unit.input == DType::f16;
    case Precision::bf16: return unit.input == DType::bf16;
    case Precision::int8:
      // Sums of bytes need 32 bits; units that end at 8 only add and compare.
      return (unit.input == DType::i8 || unit.input == DType::u8) && unit.accumulator == DType::i32;
  }
  return false;
}

const MathUnit* fastest_unit(const Device& device, Precision precision) {
  return fastest(device, [&](const MathUnit& unit) { return multiplies(unit, precision); });
}

const MathUnit* fastest_unit(const Device& device, Precision precision, UnitKind kind) {
  return fastest(device, [&](const MathUnit& unit) { return unit.kind == kind && multiplies(unit, precision); });
}

std::optional<Precision> narrow_precision(const Device& device) {
  std::optional<Precision> best;
  double rate = 0;
  for (const Precision precision : {Precision::fp16, Precision::bf16})
    if (const MathUnit* unit = fastest_unit(device, precision, UnitKind::matrix); unit && unit->total_flops_per_second > rate)
      best = precision, rate = unit->total_flops_per_second;
  return best;
}

int64_t channel_multiple(const MathUnit& unit) {
  if (unit.kind == UnitKind::matrix) return std::max<int64_t>(1, std::min<int64_t>(kRunBytes / size_of(unit.input), unit.k));
  return std::max(1, unit.k);
}

int64_t channel_multiple(const Device& device, Precision precision) {
  const MathUnit* unit = fastest_unit(device, precision);
  return unit ? channel_multiple(*unit) : 1;
}

}  // namespace sparkle
