#include "backends/vulkan/kernels/elements/pointwise_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "backends/vulkan/shaders/glsl_library.h"
#include "families/values/convert.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/gpu_doubles.h"
#include "families/type_set.h"

namespace sparkle::vulkan {
namespace {

// How elements of a type lie in memory.
enum class Cell : uint8_t { bytes, shorts, words, pairs };
Cell cell_of(DType type) {
  switch (size_of(type)) {
    case 1: return Cell::bytes;
    case 2: return Cell::shorts;
    case 4: return Cell::words;
    default: return Cell::pairs;
  }
}
constexpr const char* kCells[] = {"Bytes", "Shorts", "Words", "Pairs"};
// "bytes": in names of the functions that read and write them.
std::string cells_of(DType type) {
  constexpr const char* kNames[] = {"bytes", "shorts", "words", "pairs"};
  return kNames[static_cast<size_t>(cell_of(type))];
}

bool is_signed(DType type) { return kSignedIntegers.has(type) || type == DType::i4 || type == DType::i2; }

// The type in which values are computed, as GLSL's: float, double, int, uint, or two words.
struct Arithmetic {
  DType type;
  bool exact_f16 = false;  // the device converts fp16 values as they must be
  bool real() const { return type == DType::f32 || twice(); }
  bool twice() const { return type == DType::f64; }
  bool wide() const { return size_of(type) == 8; }
  std::string name() const {
    if (real()) return twice() ? "double" : "float";
    return wide() ? (is_signed(type) ? "ivec2" : "uvec2") : is_signed(type) ? "int" : "uint";
  }
  // `x` as a value of the type again: narrow integers wrap around.
  std::string wrapped(const std::string& x) const {
    switch (type) {
      case DType::i8: return "bitfieldExtract(" + x + ", 0, 8)";
      case DType::i16: return "bitfieldExtract(" + x + ", 0, 16)";
      case DType::u8: return "((" + x + ") & 255u)";
      case DType::u16: return "((" + x + ") & 65535u)";
      default: return x;
    }
  }
  std::string truth(const std::string& condition) const {
    if (real()) return "((" + condition + ") ? 1.0 : 0.0)";
    if (wide()) return name() + "((" + condition + ") ? 1 : 0, 0)";
    return name() + "(" + condition + ")";
  }
  std::string zero() const { return name() + "(0)"; }
};

// Arguments of float_of_narrow and narrow_of_float behind the first.
std::string format_text(DType type) {
  const narrow::Format f = narrow::format_of(type);
  std::string text;
  for (const int number : {f.exponent_bits, f.mantissa_bits, f.bias}) text += ", " + std::to_string(number);
  for (const uint8_t code : {f.largest, f.beyond, f.nan}) text += ", " + std::to_string(code) + "u";
  return text + (f.unsigned_zero ? ", true" : ", false");
}

// The bits of a narrow integer as an int or uint.
std::string narrow_integer(DType type, const std::string& bits) {
  const std::string width = std::to_string(stored_bits(type));
  const bool is_plain = type == DType::u4 || type == DType::u2;
  return "bitfieldExtract(" + std::string(is_plain ? "" : "int(") + bits + (is_plain ? "" : ")") + ", 0, " + width + ")";
}

// Bits in memory as a value.
std::string decoded(DType from, const Arithmetic& to, const std::string& bits) {
  if (to.twice()) {
    switch (from) {
      case DType::f64: return "packDouble2x32(" + bits + ")";
      case DType::i32: return "double(int(" + bits + "))";
      case DType::u32: return "double(" + bits + ")";
      case DType::i64: return "double_of_i64_f64(" + bits + ")";
      case DType::u64: return "double_of_u64_f64(" + bits + ")";
      default: return "double(" + decoded(from, {DType::f32, to.exact_f16}, bits) + ")";
    }
  }
  if (to.real()) {
    if (from == DType::f8e8m0) return "float_of_power(" + bits + ")";
    if (is_narrow_float(from)) return "float_of_narrow(" + bits + format_text(from) + ")";
    if (is_narrow_integer(from)) return "float(" + narrow_integer(from, bits) + ")";
    switch (from) {
      case DType::f32: return "uintBitsToFloat(" + bits + ")";
      case DType::f16: return (to.exact_f16 ? "float_of_half(" : "float_of_f16(") + bits + ")";
      case DType::bf16: return "float_of_bf16(" + bits + ")";
      case DType::boolean: return "(" + bits + " != 0u ? 1.0 : 0.0)";
      case DType::i8: return "float(bitfieldExtract(int(" + bits + "), 0, 8))";
      case DType::i16: return "float(bitfieldExtract(int(" + bits + "), 0, 16))";
      case DType::i32: return "float(int(" + bits + "))";
      case DType::i64: return "float_of_i64(" + bits + ")";
      case DType::u64: return "float_of_u64(" + bits + ")";
      default: return "float(" + bits + ")";
    }
  }
  std::string low = bits, high = "0u";
  switch (from) {
    case DType::boolean: low = "uint(" + bits + " != 0u)"; break;
    case DType::i8: low = "uint(bitfieldExtract(int(" + bits + "), 0, 8))"; break;
    case DType::i16: low = "uint(bitfieldExtract(int(" + bits + "), 0, 16))"; break;
    case DType::i64:
    case DType::u64: low = bits + ".x", high = bits + ".y"; break;
    default:
      if (is_narrow_integer(from)) low = "uint(" + narrow_integer(from, bits) + ")";
      break;
  }
  if (!to.wide()) return to.wrapped(to.name() + "(" + low + ")");
  if (size_of(from) < 8 && is_signed(from)) high = "uint(int(" + low + ") >> 31)";
  return to.name() + "(" + low + ", " + high + ")";
}

// A value as bits in memory.
std::string encoded_as(DType to, const Arithmetic& from, const std::string& x) {
  const std::string false_bits = from.real() ? x + " != 0.0" : "!is_zero(" + x + ")";
  if (to == DType::boolean) return "uint(" + false_bits + ")";
  if (is_narrow_integer(to)) {
    const std::string low = from.twice()  ? "i64_of_f64(" + x + ").x"
                            : from.real() ? "i64_of_float(" + x + ").x"
                            : from.wide() ? "uint(" + x + ".x)"
                                          : "uint(" + x + ")";
    return "(" + low + " & " + std::to_string((1 << stored_bits(to)) - 1) + "u)";
  }
  if (from.twice()) {
    switch (to) {
      case DType::f64: return "unpackDouble2x32(" + x + ")";
      case DType::f32: return "bits_of_f64(" + x + ", false)";
      case DType::bf16: return "bf16_of_float(float_of_f64(" + x + "))";
      case DType::i8: return "low_bits_of_f64(" + x + ", -128, 127)";
      case DType::u8: return "low_bits_of_f64(" + x + ", 0, 255)";
      case DType::i16: return "low_bits_of_f64(" + x + ", -32768, 32767)";
      case DType::u16: return "low_bits_of_f64(" + x + ", 0, 65535)";
      case DType::i32: return "i32_of_f64(" + x + ")";
      case DType::u32: return "u32_of_f64(" + x + ")";
      case DType::i64: return "i64_of_f64(" + x + ")";
      case DType::u64: return "u64_of_f64(" + x + ")";
      default: return encoded_as(to, {DType::f32, from.exact_f16}, "odd_float_of_f64(" + x + ")");
    }
  }
  if (from.real()) {
    if (to == DType::f8e8m0) return "power_of_float(" + x + ", 0, true)";
    if (is_narrow_float(to)) return "narrow_of_float(" + x + format_text(to) + ")";
    switch (to) {
      case DType::f32: return "floatBitsToUint(" + x + ")";
      case DType::f16: return (from.exact_f16 ? "half_of_float(" : "f16_of_float(") + x + ")";
      case DType::bf16: return "bf16_of_float(" + x + ")";
      case DType::i8: return "low_bits_of_float(" + x + ", -128, 127)";
      case DType::u8: return "low_bits_of_float(" + x + ", 0, 255)";
      case DType::i16: return "low_bits_of_float(" + x + ", -32768, 32767)";
      case DType::u16: return "low_bits_of_float(" + x + ", 0, 65535)";
      case DType::i32: return "i32_of_float(" + x + ")";
      case DType::u32: return "u32_of_float(" + x + ")";
      case DType::i64: return "i64_of_float(" + x + ")";
      default: return "u64_of_float(" + x + ")";
    }
  }
  if (size_of(to) < 8) return from.wide() ? "uint(" + x + ".x)" : "uint(" + x + ")";
  if (from.wide()) return "uvec2(" + x + ")";
  return "uvec2(uint(" + x + "), " + (is_signed(from.type) ? "uint(" + x + " >> 31)" : "0u") + ")";
}

// Instructions on floats: x, y, z are values, a and b parameters; functions in double precision have names of their own. Empty:
// not supported.
std::string float_formula(PointwiseOp op, bool twice, const std::string& x, const std::string& y, const std::string& z,
                          const std::string& a, const std::string& b) {
  const std::string end = twice ? "_f64(" : "(";
  const auto call = [&](const char* name) { return name + end + x + ")"; };
  const auto native = [&](const char* name) { return std::string(name) + "(" + x + ")"; };
  const auto truth = [](const std::string& condition) { return "((" + condition + ") ? 1.0 : 0.0)"; };
  if (twice && !has_double_on_gpus(op)) return {};
  switch (op) {
    case PointwiseOp::identity: return x;
    case PointwiseOp::constant: return a;
    case PointwiseOp::add: return x + " + " + y;
    case PointwiseOp::sub: return x + " - " + y;
    case PointwiseOp::mul: return x + " * " + y;
    case PointwiseOp::div: return x + " / " + y;
    case PointwiseOp::pow: return "pow_of" + end + x + ", " + y + ")";
    case PointwiseOp::min: return x + " < " + y + " || is_nan_of" + end + x + ") ? " + x + " : " + y;
    case PointwiseOp::max: return x + " > " + y + " || is_nan_of" + end + x + ") ? " + x + " : " + y;
    case PointwiseOp::mod: return "mod_of" + end + x + ", " + y + ")";
    case PointwiseOp::floor_mod: return "floor_mod_of" + end + x + ", " + y + ")";
    case PointwiseOp::fma: return "fma(" + x + ", " + y + ", " + z + ")";
    case PointwiseOp::select: return x + " != 0.0 ? " + y + " : " + z;
    case PointwiseOp::less: return truth(x + " < " + y);
    case PointwiseOp::less_equal: return truth(x + " <= " + y);
    case PointwiseOp::greater: return truth(x + " > " + y);
    case PointwiseOp::greater_equal: return truth(x + " >= " + y);
    case PointwiseOp::equal: return truth(x + " == " + y);
    case PointwiseOp::logical_and: return truth(x + " != 0.0 && " + y + " != 0.0");
    case PointwiseOp::logical_or: return truth(x + " != 0.0 || " + y + " != 0.0");
    case PointwiseOp::logical_xor: return truth("(" + x + " != 0.0) != (" + y + " != 0.0)");
    case PointwiseOp::logical_not: return truth(x + " == 0.0");
    case PointwiseOp::affine: return "fma(" + a + ", " + x + ", " + b + ")";
    case PointwiseOp::neg: return "-" + x;
    case PointwiseOp::abs: return native("abs");
    case PointwiseOp::sign:
      return "is_nan_of" + end + x + ") ? " + x + " : " + x + " > 0.0 ? 1.0 : " + x + " < 0.0 ? -1.0 : 0.0";
    case PointwiseOp::reciprocal: return "1.0 / " + x;
    case PointwiseOp::sqrt: return call("sqrt_of");
    case PointwiseOp::exp: return call("exp_of");
    case PointwiseOp::log: return call("log_of");
    case PointwiseOp::sin: return call("sin_of");
    case PointwiseOp::cos: return call("cos_of");
    case PointwiseOp::tan: return call("tan_of");
    case PointwiseOp::asin: return call("asin_of");
    case PointwiseOp::acos: return call("acos_of");
    case PointwiseOp::atan: return call("atan_of");
    case PointwiseOp::sinh: return call("sinh_of");
    case PointwiseOp::cosh: return call("cosh_of");
    case PointwiseOp::asinh: return call("asinh_of");
    case PointwiseOp::acosh: return call("acosh_of");
    case PointwiseOp::atanh: return call("atanh_of");
    case PointwiseOp::erf: return call("erf_of");
    case PointwiseOp::floor: return twice ? call("floor_of") : native("floor");
    case PointwiseOp::ceil: return twice ? call("ceil_of") : native("ceil");
    case PointwiseOp::round: return twice ? call("round_of") : native("roundEven");
    case PointwiseOp::is_nan: return truth("is_nan_of" + end + x + ")");
    case PointwiseOp::power_of_two:
      return twice ? "double(to_power_of_two(odd_float_of_f64(" + x + "), float(" + a + "), float(" + b + ")))"
                   : "to_power_of_two(" + x + ", " + a + ", " + b + ")";
    case PointwiseOp::relu: return x + " < 0.0 ? 0.0 : " + x;
    case PointwiseOp::clip: return "within" + end + x + ", " + a + ", " + b + ")";
    case PointwiseOp::leaky_relu: return x + " < 0.0 ? " + a + " * " + x + " : " + x;
    case PointwiseOp::prelu: return x + " < 0.0 ? " + x + " * " + y + " : " + x;
    case PointwiseOp::elu: return x + " < 0.0 ? " + a + " * expm1_of" + end + x + ") : " + x;
    case PointwiseOp::selu: return b + " * (" + x + " < 0.0 ? " + a + " * expm1_of" + end + x + ") : " + x + ")";
    // A negative a makes x / a positive.
    case PointwiseOp::celu:
      return x + " < 0.0 ? " + a + " * expm1_of" + end + "min(" + x + " / " + a + (twice ? ", 709.0)) : " : ", 89.0)) : ") + x;
    case PointwiseOp::thresholded_relu: return x + " > " + a + " ? " + x + " : 0.0";
    case PointwiseOp::sigmoid: return call("sigmoid_of");
    case PointwiseOp::hard_sigmoid: return "within" + end + "fma(" + a + ", " + x + ", " + b + "), 0.0, 1.0)";
    case PointwiseOp::tanh: return call("tanh_of");
    case PointwiseOp::silu: return x + " * sigmoid_of" + end + x + ")";
    case PointwiseOp::hard_swish: return x + " * within" + end + x + " / 6.0 + 0.5, 0.0, 1.0)";
    case PointwiseOp::gelu: return call("gelu_of");
    case PointwiseOp::gelu_tanh: return call("gelu_tanh_of");
    case PointwiseOp::softplus: return call("softplus_of");
    case PointwiseOp::softsign: return x + " / (1.0 + abs(" + x + "))";
    case PointwiseOp::mish: return x + " * tanh_of" + end + "softplus_of" + end + x + "))";
  }
  return {};
}

std::string integer_formula(PointwiseOp op, const Arithmetic& t, const std::string& x, const std::string& y,
                            const std::string& z, const std::string& a, const std::string& b) {
  const auto call = [](const char* name, const std::string& p, const std::string& q) {
    return std::string(name) + "(" + p + ", " + q + ")";
  };
  const auto less = [&](const std::string& p, const std::string& q) { return call("less_of", p, q); };
  const std::string zero = t.zero(), negative = call("sub_of", zero, x), below = less(x, zero);
  switch (op) {
    case PointwiseOp::identity:
    case PointwiseOp::floor:
    case PointwiseOp::ceil:
    case PointwiseOp::round: return x;
    case PointwiseOp::add: return call("add_of", x, y);
    case PointwiseOp::sub: return call("sub_of", x, y);
    case PointwiseOp::mul: return call("mul_of", x, y);
    case PointwiseOp::fma: return call("add_of", call("mul_of", x, y), z);
    case PointwiseOp::div: return call("quotient", x, y);
    case PointwiseOp::mod: return call("remainder", x, y);
    case PointwiseOp::floor_mod: return call("floor_remainder", x, y);
    case PointwiseOp::pow: return call("power", x, y);
    case PointwiseOp::min: return less(x, y) + " ? " + x + " : " + y;
    case PointwiseOp::max: return less(y, x) + " ? " + x + " : " + y;
    case PointwiseOp::select: return "is_zero(" + x + ") ? " + z + " : " + y;
    case PointwiseOp::less: return t.truth(less(x, y));
    case PointwiseOp::less_equal: return t.truth("!" + less(y, x));
    case PointwiseOp::greater: return t.truth(less(y, x));
    case PointwiseOp::greater_equal: return t.truth("!" + less(x, y));
    case PointwiseOp::equal: return t.truth(x + " == " + y);
    case PointwiseOp::logical_and: return t.truth("!is_zero(" + x + ") && !is_zero(" + y + ")");
    case PointwiseOp::logical_or: return t.truth("!is_zero(" + x + ") || !is_zero(" + y + ")");
    case PointwiseOp::logical_xor: return t.truth("is_zero(" + x + ") != is_zero(" + y + ")");
    case PointwiseOp::logical_not: return t.truth("is_zero(" + x + ")");
    case PointwiseOp::neg: return negative;
    case PointwiseOp::abs: return is_signed(t.type) ? below + " ? " + negative + " : " + x : x;
    case PointwiseOp::sign:
      return is_signed(t.type) ? below + " ? " + t.name() + "(-1) : " + t.truth(less(zero, x)) : t.truth(less(zero, x));
    case PointwiseOp::relu: return is_signed(t.type) ? below + " ? " + zero + " : " + x : x;
    case PointwiseOp::clip: {
      const std::string raised = "(" + less(x, a) + " ? " + a + " : " + x + ")";
      return less(b, raised) + " ? " + b + " : " + raised;
    }
    case PointwiseOp::prelu: return below + " ? " + call("mul_of", x, y) + " : " + x;
    default: return {};
  }
}

// The bound of a clip among integers of type T, as two words. A bound that is no number bounds nothing.
void append_bound(std::vector<uint32_t>& words, DType type, double bound, bool low) {
  int64_t value = 0;
  with_type(type, [&]<class T>(T*) {
    if constexpr (std::is_integral_v<T>) {
      const T none = low ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      value = static_cast<int64_t>(bound != bound ? none : converted<T>(low ? std::ceil(bound) : std::floor(bound)));
    }
  });
  words.push_back(static_cast<uint32_t>(value));
  words.push_back(static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32));
}

Result<std::vector<uint32_t>> parameters_of(const PointwiseParams& program, const Arithmetic& type) {
  std::vector<uint32_t> words;
  for (const PointwiseInstruction& step : program.program) {
    if (type.twice()) {
      for (const double parameter : {step.a, step.b}) {
        const auto bits = std::bit_cast<uint64_t>(parameter);
        words.insert(words.end(), {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
      }
    } else if (type.real()) {
      words.insert(words.end(), {std::bit_cast<uint32_t>(static_cast<float>(step.a)),
                                 std::bit_cast<uint32_t>(static_cast<float>(step.b)), 0, 0});
    } else {
      append_bound(words, type.type, step.a, true);
      append_bound(words, type.type, step.b, false);
    }
  }
  return words;
}

std::string number(int i) { return std::to_string(i); }

// The program as a function of one element of each operand; parameter(i, which) is the text of instruction i's a or b.
template <class Parameter>
Result<std::string> function_of(const PointwiseParams& program, const Arithmetic& type, const std::string& name,
                                Parameter&& parameter) {
  std::string body = type.name() + " " + name + "(";
  for (int i = 0; i < program.inputs; ++i) body += (i ? ", " : "") + type.name() + " v" + number(i);
  body += ") {\n";
  const auto value = [](int v) { return "v" + number(v); };
  int next = program.inputs;
  for (const PointwiseInstruction& step : program.program) {
    const std::string a = parameter(next - program.inputs, 0), b = parameter(next - program.inputs, 1);
    const std::string formula = type.real()
                                    ? float_formula(step.op, type.twice(), value(step.x), value(step.y), value(step.z), a, b)
                                    : integer_formula(step.op, type, value(step.x), value(step.y), value(step.z), a, b);
    if (formula.empty())
      return Error{Reason::type_not_served, "the Vulkan pointwise kernels have no '" + std::string(name_of(step.op)) + "' on " +
                                                std::string(name_of(type.type))};
    body += "  " + std::string(type.real() ? "precise " : "const ") + type.name() + " " + value(next) + " = " +
            (type.real() ? formula : type.wrapped("(" + formula + ")")) + ";\n";
    ++next;
  }
  return body + "  return " + value(next - 1) + ";\n}\n";
}

constexpr std::string_view kHead = R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
)";
constexpr std::string_view kMemory = R"(layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(constant_id = 3) const bool kVectors = false;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Pairs { uvec2 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Quads { uvec4 v[]; };
)";

}  // namespace

Result<PointwiseText> pointwise_text(const PointwiseParams& program, std::span<const DType> inputs, DType output,
                                     const FloatPromises& promises) {
  const Arithmetic type{pointwise_arithmetic(inputs, output), promises.exact_f16};
  const int n = static_cast<int>(inputs.size()), operands = n + 1;
  std::set<Cell> cells;
  const auto check = [&](DType t) {
    cells.insert(cell_of(t));
    return t != DType::f64 || type.twice();
  };
  for (const DType t : inputs)
    if (!check(t))
      return Error{Reason::type_not_served, "the Vulkan pointwise kernels do not support " + std::string(name_of(t))};
  if (!check(output) || type.type == DType::boolean || (type.twice() && !promises.doubles))
    return Error{Reason::type_not_served, "the Vulkan pointwise kernels do not compute in " + std::string(name_of(type.type)) +
                                              " or store " + std::string(name_of(output))};

  const auto parameter = [&](int step, int which) {
    if (type.real() && !type.twice()) return "uintBitsToFloat(R.p[" + number(4 * step + which) + "])";
    const std::string low = "R.p[" + number(4 * step + 2 * which) + "]", high = "R.p[" + number(4 * step + 2 * which + 1) + "]";
    if (type.twice()) return "packDouble2x32(uvec2(" + low + ", " + high + "))";
    return type.name() + "(" + low + (type.wide() ? ", " + high : "") + ")";
  };
  SPARKLE_TRY(body, function_of(program, type, "program", parameter));

  // Four neighbours along the innermost axis per thread, or one.
  std::string main = R"(
uint divided(uint x, uint by) {
  uint high, low;
  umulExtended(x, R.divide[3 * by + 1], high, low);
  return (x + high) >> R.divide[3 * by + 2];
}

void main() {
  const uint index = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  if (index >= R.threads) return;
  uint rest = divided(index, 0);
  const int first = int(index - rest * R.divide[0]) * (kVectors ? 4 : 1);
)";
  const auto each = [&](auto&& f) {
    for (int i = 0; i < operands; ++i) main += f(i);
  };
  each([](int i) { return "  int at" + number(i) + " = first * R.inner[" + number(i) + "];\n"; });
  main +=
      "  for (uint axis = 1; axis <= R.axes; ++axis) {\n    const uint outer = divided(rest, axis);\n"
      "    const int place = int(rest - outer * R.divide[3 * axis]);\n    rest = outer;\n";
  each([&](int i) {
    return "    at" + number(i) + " += place * R.strides[axis * " + number(operands) + " + " + number(i) + "];\n";
  });
  main += "  }\n  if (kVectors && first + 4 <= R.count) {\n";
  const auto bits = [](DType t) { return std::string(size_of(t) == 8 ? "uvec2" : "uint"); };
  for (int i = 0; i < n; ++i) {
    const std::string x = number(i), m = "push.x" + x, w = bits(inputs[static_cast<size_t>(i)]);
    main += "    " + w + " w" + x + "[4];\n    if (R.inner[" + x + "] == 1) four_" + cells_of(inputs[static_cast<size_t>(i)]) +
            "(" + m + ", at" + x + ", w" + x + ");\n    else w" + x + "[0] = w" + x + "[1] = w" + x + "[2] = w" + x +
            "[3] = " + cells_of(inputs[static_cast<size_t>(i)]) + "_at(" + m + ", at" + x + ");\n";
  }
  const auto call = [&](const std::string& suffix) {
    std::string text = "program(";
    for (int i = 0; i < n; ++i)
      text += (i ? ", " : "") + decoded(inputs[static_cast<size_t>(i)], type, "w" + number(i) + suffix);
    return text + ")";
  };
  main += "    " + bits(output) + " w[4];\n    [[unroll]] for (int i = 0; i < 4; ++i) {\n      const " + type.name() +
          " y = " + call("[i]") + ";\n      w[i] = " + encoded_as(output, type, "y") + ";\n    }\n    store_vec4_" +
          cells_of(output) + "(push.y, at" + number(n) + ", w);\n    return;\n  }\n";
  main += "  for (int i = first; i < min(first + (kVectors ? 4 : 1), R.count); ++i) {\n";
  for (int i = 0; i < n; ++i) {
    const std::string x = number(i);
    main += "    const " + bits(inputs[static_cast<size_t>(i)]) + " w" + x + " = " + cells_of(inputs[static_cast<size_t>(i)]) +
            "_at(push.x" + x + ", at" + x + ");\n";
  }
  main += "    const " + type.name() + " y = " + call("") + ";\n    store_" + cells_of(output) + "(push.y, at" + number(n) +
          ", " + encoded_as(output, type, "y") + ");\n";
  each([](int i) { return "    at" + number(i) + " += R.inner[" + number(i) + "];\n"; });
  main += "  }\n}\n";

  PointwiseText text;
  SPARKLE_TRY(parameters, parameters_of(program, type));
  text.parameters = std::move(parameters);
  text.glsl = kHead;
  if (cells.contains(Cell::bytes)) text.glsl += "#extension GL_EXT_shader_8bit_storage : require\n";
  if (cells.contains(Cell::shorts)) text.glsl += "#extension GL_EXT_shader_16bit_storage : require\n";
  const bool fp16 =
      promises.exact_f16 && (output == DType::f16 || std::find(inputs.begin(), inputs.end(), DType::f16) != inputs.end());
  const auto demand = [&](int capability, int mode, int bits) {
    text.glsl += "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [" + number(capability) +
                 "], " + number(mode) + ", " + number(bits) + ");\n";
  };
  if (promises.keeps_nan || fp16) text.glsl += "#extension GL_EXT_spirv_intrinsics : require\n";
  if (fp16) text.glsl += "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n";
  if (promises.keeps_nan) text.glsl += kKeepsNan;
  if (fp16) {
    demand(4466, 4461, 16);  // SignedZeroInfNanPreserve
    demand(4464, 4459, 16);  // DenormPreserve
    demand(4467, 4462, 16);  // RoundingModeRTE
  }
  text.glsl += kMemory;
  if (cells.contains(Cell::bytes))
    text.glsl += "layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };\n";
  if (cells.contains(Cell::shorts))
    text.glsl += "layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Shorts { uint16_t v[]; };\n";
  text.glsl +=
      "layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Record {\n  uint threads, axes;\n"
      "  int count;\n  uint divide[" +
      number(3 * (kPointwiseAxes + 1)) + "];\n  int inner[" + number(operands) + "];\n  int strides[" +
      number((kPointwiseAxes + 1) * operands) + "];\n  uint p[];\n};\n";
  text.glsl += "layout(push_constant, scalar) uniform Push {\n";
  for (int i = 0; i < n; ++i)
    text.glsl +=
        "  " + std::string(kCells[static_cast<size_t>(cell_of(inputs[static_cast<size_t>(i)]))]) + " x" + number(i) + ";\n";
  text.glsl += "  " + std::string(kCells[static_cast<size_t>(cell_of(output))]) +
               " y;\n  Record record;\n} push;\n#define R push.record\n\n";
  text.glsl += library_parts(body + main) + body + main;
  return text;
}

Result<std::string> float_program(const PointwiseParams& program, const std::string& name, const std::string& parameter) {
  for (const PointwiseInstruction& step : program.program)
    if (step.op == PointwiseOp::power_of_two)
      return Error{Reason::type_not_served, "the Vulkan kernels compute 'power_of_two' in steps of its own alone"};
  return function_of(program, Arithmetic{DType::f32}, name,
                     [&](int step, int which) { return parameter + "(" + number(2 * step + which) + ")"; });
}

}  // namespace sparkle::vulkan
