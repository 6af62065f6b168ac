// Problem: the canonical form of an anchor operator (a sum of products) with its epilogue. Its text is the key of tuning stores
// and tests, its parser reads what people write on a command line and in layer lists.
#pragma once

#include "base/record.h"
#include "families/values/epilogue.h"
#include "families/stage.h"
#include "families/windows/window.h"

namespace sparkle {

enum class ProblemKind : uint8_t { conv, conv_transpose, matmul };
std::string_view name_of(ProblemKind kind);
bool parse_name(std::string_view text, ProblemKind& kind);

struct Problem {
  ProblemKind kind = ProblemKind::conv;
  std::string dtype = "f32";
  int rank = 2;                             // spatial dimensions of the model, 1 to 3 (sizes below always hold three)
  int64_t n = 1, c = 1, k = 1, groups = 1;  // images, input channels, filters; unused by matmul
  Triple in{1, 1, 1}, out{1, 1, 1};         // D,H,W and Z,P,Q
  Window window;
  int64_t batch = 1, rows = 1, columns = 1, depth = 1;  // matmul: m, n and k per batch element
  Epilogue epilogue;

  // 2 * products of the direct method, padding taps counted.
  double nominal_flops() const;

  template <class V>
  void visit(V& v) {
    v("kind", kind), v("dtype", dtype), v("rank", rank), v("n", n), v("c", c), v("k", k), v("groups", groups);
    v("in", in), v("out", out), v("window", window);
    v("batch", batch), v("rows", rows), v("columns", columns), v("depth", depth), v("epilogue", epilogue);
  }
  friend bool operator==(const Problem&, const Problem&) = default;
};

// A convolution written in oneDNN's benchmark style: "g1mb1ic64ih56oc64oh56kh3sh1ph1dh0n"name"". Widths default to heights,
// output sizes and end padding to each other; dh counts inserted zeros (0 is dense). Errors: bad_usage naming the token.
Result<Problem> parse_conv(std::string_view text);

// A matrix product "64x12544x147": m x n x k of a GEMM. Both operands change from call to call. Errors: bad_usage.
Result<Problem> parse_gemm(std::string_view text);

// A named layer of a list. CSV columns: name,n,c,h,w,k,r,s,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups and optionally
// pad_h_end,pad_w_end,dtype,kind,old_ms,old_what; the header line names them in any order. The kind "gemm" is the product of
// [k,c] and [c,h*w], both changing; otherwise it is "conv". Errors: bad_format naming line and column.
struct NamedProblem {
  std::string name;
  Problem problem;
  double old_ms = 0;     // what somebody once published for it; 0: nothing
  std::string old_what;  // on what machine
};
Result<std::vector<NamedProblem>> read_layers(const std::string& path);
Result<std::vector<NamedProblem>> parse_layers(std::string_view text, std::string_view where);

// "conv 64x56x56 -> 64 3x3 s1 p1": for tables.
std::string short_name(const Problem& problem);

// Operands of the problem in the layouts that the engine uses (channels last), constants row-major: x, w, epilogue operands;
// and the output. What `bench` runs.
struct ProblemOperands {
  std::vector<TensorDesc> inputs;
  TensorDesc output;
};
ProblemOperands operands_of(const Problem& problem);

}  // namespace sparkle
