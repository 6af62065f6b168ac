// Which math unit of a device multiplies a precision, and of what sizes it wants channels: answered from the description, never
// from a vendor or a name of a device.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/device.h"

namespace sparkle {

// What products are computed in; sums are wider. TF32 reads fp32 and rounds it to 10 bits of mantissa.
enum class Precision : uint8_t { fp32, tf32, fp16, bf16, int8 };
inline constexpr int kPrecisions = 5;

std::string_view name_of(Precision precision);
bool parse_name(std::string_view text, Precision& precision);
// Of tensors that are multiplied in it: TF32 is stored as f32, int8 as i8.
DType stored_type(Precision precision);

// Whether the unit multiplies in this precision: vector and dot-product units too.
bool multiplies(const MathUnit& unit, Precision precision);
// The one with the highest rate, or nullptr; with `kind`: of units of this kind alone.
const MathUnit* fastest_unit(const Device& device, Precision precision);
const MathUnit* fastest_unit(const Device& device, Precision precision, UnitKind kind);

// The precision that fp32 layers should be in on the device: the faster of fp16 and bf16 that its matrix units multiply;
// nothing where they multiply neither.
std::optional<Precision> narrow_precision(const Device& device);

// Channels - and columns and depths of products, and attention heads - should be a multiple of this, or the unit is fed slower
// or not at all. Matrix units take runs of 16 bytes: 8 elements of 16 bits, 4 of TF32, 16 bytes; fewer where one instruction
// sums over fewer. Dot products take the elements that they sum; vectors take any number. Whole instructions and tiles are no
// matter of it: kernels fill them up with zeros by themselves.
int64_t channel_multiple(const MathUnit& unit);

// Of the device's fastest unit for the precision; 1 where it has none.
int64_t channel_multiple(const Device& device, Precision precision);

}  // namespace sparkle
