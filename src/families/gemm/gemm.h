// The gemm family: every sum of products. A convolution is a GEMM whose left operand is gathered through a window (no
// im2col buffer exists); a matrix product is the same with a dense load.
//   m = output pixels, n = filters K, k = C/groups * T*R*S.
// Operands, loader window: x [N,C,spatial], w [K,C/groups,filter], epilogue operands -> y [N,K,spatial].
// Operands, loader dense:  a [batch...,m,k], b [batch...,k,n], epilogue operands -> y [batch...,m,n]; batch axes broadcast
// by stride 0, transposition is a layout. Channels of an epilogue operand are the n axis.
#pragma once

#include "families/stage.h"
#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

// The variant of CPUs for a handful of columns.
inline constexpr std::string_view kRowDots = "row_dots";
// Those of CPUs' tile registers, on 8-bit integers and on factors rounded to bf16.
inline constexpr std::string_view kMatrixI8 = "matrix_i8", kMatrixBf16 = "matrix_bf16";
// Bytes that these may read beyond the last panel of weights: the rows of a tile behind its first one.
inline constexpr int64_t kMatrixOverread = 2048;

enum class Loader : uint8_t { dense, window };
std::string_view name_of(Loader loader);
bool parse_name(std::string_view text, Loader& loader);

// What both factors of each product are rounded to, to nearest even, before they are multiplied; sums stay in f32. `own`: they
// are multiplied as they come. tf32 has f32's exponent and f16's 10 bits of mantissa.
enum class OperandType : uint8_t { own, f16, bf16, tf32 };
std::string_view name_of(OperandType type);
bool parse_name(std::string_view text, OperandType& type);
double rounded_to(OperandType type, double value);

// Whether a stage's factors are 8-bit floats, both of f8e4m3fn or both of f8e5m2: its other operands and its result are f32, or
// residuals and result f16 or bf16. `operands` is own.
bool multiplies_float8(const Stage& stage);
// What their sums may be off by, as a share of the largest result: Tensor Cores keep some 13 bits of 32 products and what they
// are added to, four times in a row; results are a few times smaller than the sums of their products' magnitudes.
inline constexpr double kFloat8SumsError = 0x1p-9;

struct GemmParams {
  Loader loader = Loader::window;
  int64_t groups = 1;
  Window window;
  Epilogue epilogue;
  OperandType operands = OperandType::own;

  template <class V>
  void visit(V& v) {
    v("loader", loader), v("groups", groups), v("window", window), v("epilogue", epilogue), v("operands", operands);
  }
  friend bool operator==(const GemmParams&, const GemmParams&) = default;
};

// Loop order around the micro-kernel: which of the two outer loops runs outside. Rows: pixels outside, weights (which then
// must fit L2) swept per block of pixels. Columns: panels of filters outside, each reused over all pixels.
enum class GemmOrder : uint8_t { rows, columns };
std::string_view name_of(GemmOrder order);
bool parse_name(std::string_view text, GemmOrder& order);

struct GemmSchedule {
  std::string variant = "tile6x4";  // a row of variants.inc
  std::string unit;                 // the math unit: "avx512", "avx2", ...
  int mr = 6;                       // rows (pixels) of the register tile
  int nr = 4;                       // columns of the register tile, in vectors
  int64_t kc = 0;                   // k elements per pass over a panel; 0: all
  int64_t mc = 0;                   // rows per block of work; 0: all
  GemmOrder order = GemmOrder::rows;
  int prefetch = 0;   // what comes next is fetched on the way into L1 (1) or L2 (2), and lines of y; 0: neither
  int split = 0;      // work is cut into tasks along: 0 rows, 1 columns, 2 both
  int64_t grain = 0;  // outputs per task (families/loops/grain.h)

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("mr", mr), v("nr", nr), v("kc", kc), v("mc", mc);
    v("order", order), v("prefetch", prefetch), v("split", split), v("grain", grain);
  }
  friend bool operator==(const GemmSchedule&, const GemmSchedule&) = default;
};

}  // namespace sparkle
