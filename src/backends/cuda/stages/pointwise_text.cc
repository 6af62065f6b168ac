#include "backends/cuda/stages/pointwise_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <bit>

#include "backends/cuda/kernels/elements/compiled_record.h"
#include "backends/cuda/stages/pointwise_axes.h"
#include "base/record.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/pointwise.h"
#include "families/type_set.h"

namespace sparkle::cuda {
namespace {

constexpr int64_t kPiece = 16;      // bytes of a load
constexpr int64_t kMostEach = 8;    // elements of a thread
constexpr int64_t kFewEach = 4;     // where they take many registers: of 64 bits, or of many operands
constexpr size_t kFewOperands = 4;  // up to so many leave registers for kMostEach

std::string number(int64_t i) { return std::to_string(i); }
std::string bracketed(int64_t i) { return i < 0 ? "(" + number(i) + ")" : number(i); }

// "CellF16": the type of kernels/elements/cells.cuh.
std::string cell_of(DType type) {
  std::string name(name_of(type));
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return "Cell" + name;
}

// A double as C++ reads it back, to the bit.
std::string literal(double value) {
  char text[64];
  if (!std::isfinite(value)) {
    std::snprintf(text, sizeof text, "__builtin_bit_cast(double, 0x%016llxull)",
                  static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
    return text;
  }
  std::snprintf(text, sizeof text, "%.17g", value);
  const std::string digits = text;
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

// The program as a function of one element of each operand.
Result<std::string> program_text(const PointwiseParams& params, DType type) {
  const bool real = is_float(type);
  std::string text = "SPARKLE_DEVICE T program(";
  for (int i = 0; i < params.inputs; ++i) text += (i ? ", " : "") + ("[[maybe_unused]] T v" + number(i));
  text += ") {\n";
  int next = params.inputs;
  for (const PointwiseInstruction& step : params.program) {
    if (step.op == PointwiseOp::power_of_two || (!real && !serves_integers(step.op)))
      return Error{Reason::type_not_served, "the CUDA pointwise kernels have no '" + std::string(name_of(step.op)) + "' on " +
                                                std::string(name_of(type))};
    const int from[] = {step.x, step.y, step.z}, arity = arity_of(step.op);
    std::string call = "evaluate<Op::" + std::string(name_of(step.op)) + (real ? ">(" : ", T>(");
    for (int k = 0; k < 3; ++k) call += k < arity ? "v" + number(from[k]) + ", " : "0, ";
    const auto parameter = [&](double value) { return real ? "T(" + literal(value) + ")" : literal(value); };
    call += parameter(step.a) + ", " + parameter(step.b) + ")";
    // What is left of it in a narrower type.
    const bool narrow = !real && size_of(type) < 8;
    text += "  const T v" + number(next++) + " = " +
            (real     ? "Real<T>::" + call
             : narrow ? cell_of(type) + "::number<T>(" + cell_of(type) + "::bits<T>(integers::" + call + "))"
                      : "integers::" + call) +
            ";\n";
  }
  return text + "  return v" + number(next - 1) + ";\n}\n";
}

// How an operand is reached: its type, its strides along the axes (the innermost last), and what its loads may be.
struct Reach {
  DType type = DType::f32;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  int64_t inner() const { return strides.back(); }
  // Whether so many neighbours are whole pieces wherever they begin.
  bool in_pieces(int64_t count) const {
    const int64_t size = size_of(type), piece = std::min(kPiece, count * size);
    const auto whole = [&](int64_t elements) { return elements * size % piece == 0; };
    return inner() == 1 && whole(offset) && std::all_of(strides.begin(), strides.end() - 1, whole);
  }
};

// Elements of a thread: as many as fill a piece of the narrowest operand, where the output can be stored in pieces.
int64_t elements_each(const std::vector<Reach>& operands, int64_t inner_size, DType arithmetic) {
  int64_t narrowest = 8;
  for (const Reach& r : operands)
    if (r.inner() == 1) narrowest = std::min(narrowest, size_of(r.type));
  const bool few = size_of(arithmetic) == 8 || !is_float(arithmetic) || operands.size() > kFewOperands;
  for (int64_t each = std::min(few ? kFewEach : kMostEach, kPiece / narrowest); each > 1; each /= 2)
    if (each <= inner_size && operands.back().in_pieces(each)) return each;
  return 1;
}

}  // namespace

Result<PrintedProgram> pointwise_text(const Stage& stage) {
  const auto& params = get<PointwiseParams>(stage.params);
  const auto refused = [](const std::string& why) {
    return Error{Reason::layout_not_served, "the CUDA pointwise kernels " + why};
  };
  if (stage.inputs.size() > static_cast<size_t>(kCompiledInputs))
    return refused("read up to " + number(kCompiledInputs) + " operands");
  std::vector<PointwiseAxis> axes = merged_axes(stage);
  if (axes.empty()) axes.push_back({1, std::vector<int64_t>(stage.inputs.size() + 1, 0)});
  std::vector<Reach> operands;
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list) {
      if (extent(d.shape, d.layout) > INT32_MAX || d.elements() > INT32_MAX)
        return refused("count elements in 31 bits, and an operand spans more; split the batch");
      if (is_narrow(d.dtype))
        return Error{Reason::type_not_served, "the CUDA pointwise kernels do not support " + std::string(name_of(d.dtype))};
      Reach r{d.dtype, {}, d.layout.offset};
      for (const PointwiseAxis& axis : axes) r.strides.push_back(axis.strides[operands.size()]);
      operands.push_back(std::move(r));
    }
  const DType type = pointwise_arithmetic(stage.inputs, stage.outputs[0]);
  const size_t inputs = stage.inputs.size();
  const int64_t inner_size = axes.back().size, each = elements_each(operands, inner_size, type);
  const int64_t chunks = divided(inner_size, each);
  PrintedProgram printed;
  printed.threads = chunks;
  for (size_t i = 0; i + 1 < axes.size(); ++i) printed.threads *= axes[i].size;

  SPARKLE_TRY(program, program_text(params, type));
  const auto place = [](size_t k, size_t count) {
    return k < count ? "x" + number(static_cast<int64_t>(k)) : std::string("y");
  };
  std::string body;
  const auto line = [&](const std::string& text) { body += "  " + text + "\n"; };
  line("const uint32_t chunk = block_x() * " + number(kCompiledThreads) + "u + thread_id();");
  line("if (chunk >= " + number(printed.threads) + "u) return;");
  // Places along the axes, the innermost first.
  line("const auto first = static_cast<int32_t>(chunk % " + number(chunks) + "u * " + number(each) + "u);");
  line("[[maybe_unused]] uint32_t rest = chunk / " + number(chunks) + "u;");
  for (size_t i = axes.size() - 1; i-- > 0;) {
    const std::string size = number(axes[i].size) + "u", p = "p" + number(static_cast<int64_t>(i));
    line("const auto " + p + " = static_cast<int32_t>(" + (i > 0 ? "rest % " + size : "rest") + ");");
    if (i > 0) line("rest /= " + size + ";");
  }
  for (size_t k = 0; k <= inputs; ++k) {
    const Reach& r = operands[k];
    std::string at;
    for (size_t i = 0; i < axes.size(); ++i)
      if (r.strides[i] != 0)
        at += (at.empty() ? "" : " + ") + (i + 1 == axes.size() ? "first" : "p" + number(static_cast<int64_t>(i))) +
              (r.strides[i] == 1 ? "" : " * " + bracketed(r.strides[i]));
    line("auto* const " + place(k, inputs) + " = static_cast<" + (k < inputs ? "const " : "") + cell_of(r.type) + "::Bits*>(" +
         (k < inputs ? "record.x[" + number(static_cast<int64_t>(k)) + "]" : "record.y") + ")" +
         (at.empty() ? "" : " + (" + at + ")") + ";");
  }
  // One element by itself, `i` behind the first.
  const auto single = [&](const std::string& i) {
    const auto step = [&](const Reach& r) {
      if (i == "0" || r.inner() == 0) return std::string();
      return " + " + i + (r.inner() == 1 ? "" : " * " + bracketed(r.inner()));
    };
    std::string call;
    for (size_t k = 0; k < inputs; ++k)
      call += (k ? ", " : "") + cell_of(operands[k].type) + "::number<T>(load_global(" + place(k, inputs) + step(operands[k]) +
              "))";
    return "store_global(y" + step(operands.back()) + ", " + cell_of(operands.back().type) + "::bits<T>(program(" + call +
           ")));";
  };
  if (each == 1) {
    line(single("0"));
  } else {
    if (inner_size % each != 0) {
      line("if (first + " + number(each) + " > " + number(inner_size) + ") {  // what is left of the axis");
      line("  for (int32_t i = 0; i < " + number(inner_size) + " - first; ++i) " + single("i"));
      line("  return;");
      line("}");
    }
    for (size_t k = 0; k < inputs; ++k) {
      const Reach& r = operands[k];
      const std::string x = place(k, inputs), bits = cell_of(r.type) + "::Bits ", cells = "c" + number(static_cast<int64_t>(k));
      if (r.inner() == 0) {
        line("const " + bits + cells + " = load_global(" + x + ");");
      } else if (r.in_pieces(each)) {
        line(bits + cells + "[" + number(each) + "];");
        line("load_cells(" + cells + ", " + x + ");");
      } else {
        line(bits + cells + "[" + number(each) + "];");
        line("SPARKLE_UNROLL");
        line("for (int32_t i = 0; i < " + number(each) + "; ++i) " + cells + "[i] = load_global(" + x + " + i" +
             (r.inner() == 1 ? "" : " * " + bracketed(r.inner())) + ");");
      }
    }
    std::string call;
    for (size_t k = 0; k < inputs; ++k)
      call += (k ? ", " : "") + cell_of(operands[k].type) + "::number<T>(c" + number(static_cast<int64_t>(k)) +
              (operands[k].inner() == 0 ? "" : "[i]") + ")";
    const std::string cell = cell_of(operands.back().type);
    line(cell + "::Bits cells[" + number(each) + "];");
    line("SPARKLE_UNROLL");
    line("for (int32_t i = 0; i < " + number(each) + "; ++i) cells[i] = " + cell + "::bits<T>(program(" + call + "));");
    line("store_cells(y, cells);");
  }

  std::string head = "// " + expression(params) + ":";
  for (const TensorDesc& d : stage.inputs) head += " " + std::string(name_of(d.dtype));
  head += " to " + std::string(name_of(stage.outputs[0].dtype)) + ", " + stage.outputs[0].shape.to_string() + "\n";
  for (const char* header : {"kernels/elements/cell_chunks.cuh", "kernels/elements/compiled_record.h",
                             "kernels/elements/operations.cuh", "ptx/threads.cuh"})
    head += "#include \"backends/cuda/" + std::string(header) + "\"\n";
  head += "\nusing namespace sparkle::cuda;\nusing namespace sparkle::cuda::pointwise;\n\nnamespace {\nusing T = " +
          std::string(type == DType::f32   ? "float"
                      : type == DType::f64 ? "double"
                      : type == DType::u64 ? "uint64_t"
                                           : "int64_t") +
          ";\n" + program + "}  // namespace\n\n";
  char hash[20];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_text(head + body)));
  printed.name = "sparkle_program_" + std::string(hash);
  printed.text =
      head + "SPARKLE_KERNEL(" + printed.name + ", CompiledRecord, " + number(kCompiledThreads) + ", 1) {\n" + body + "}\n";
  return printed;
}

Result<KernelLaunch> launch_of_program(const Stage& stage, const Workshop& shop, PrintedProgram program) {
  SPARKLE_TRY(launch, launch_of_text(shop, program.name, std::move(program.text), CompiledRecord{},
                                     blocks_for(program.threads, kCompiledThreads), kCompiledThreads));
  const size_t inputs = stage.inputs.size();
  for (size_t k = 0; k < inputs; ++k)
    launch.addresses.push_back({offsetof(CompiledRecord, x) + k * sizeof(void*), static_cast<int>(k), 0});
  launch.addresses.push_back({offsetof(CompiledRecord, y), static_cast<int>(inputs), 0});
  return launch;
}

}  // namespace sparkle::cuda
