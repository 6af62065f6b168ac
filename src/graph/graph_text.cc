#include "graph/graph_text.h"

#include "base/system/out_of_memory.h"
#include "graph/infer/infer.h"
#include "graph/op_fields.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

constexpr std::string_view kFirstLine = "sparkle-graph 2";
constexpr std::string_view kPads[] = {"notset", "valid", "same_upper", "same_lower"};
constexpr std::string_view kForms[] = {"reshape", "flatten", "squeeze", "unsqueeze"};
constexpr std::string_view kKeeps[] = {"stretch", "not_larger", "not_smaller"};

template <class E, size_t N>
bool parse_one_of(const std::string_view (&names)[N], std::string_view text, E& value) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text) return value = static_cast<E>(i), true;
  return false;
}

// One word per alternative of OpParams, in its order.
constexpr std::string_view kOps[] = {"unknown",
                                     "conv",
                                     "pool",
                                     "matmul",
                                     "pointwise",
                                     "cast",
                                     "batch_normalization",
                                     "instance_normalization",
                                     "layer_normalization",
                                     "group_normalization",
                                     "mean_variance_normalization",
                                     "lp_normalization",
                                     "local_response",
                                     "reduce",
                                     "softmax",
                                     "attention",
                                     "rotary_embedding",
                                     "concat",
                                     "split",
                                     "slice",
                                     "reshape",
                                     "transpose",
                                     "expand",
                                     "tile",
                                     "pad",
                                     "resize",
                                     "grid_sample",
                                     "deform_conv",
                                     "depth_to_space",
                                     "space_to_depth",
                                     "gather",
                                     "shape",
                                     "size",
                                     "constant_of_shape",
                                     "range",
                                     "arg",
                                     "top_k",
                                     "cum_sum",
                                     "trilu",
                                     "gather_elements",
                                     "gather_nd",
                                     "scatter_elements",
                                     "scatter_nd",
                                     "one_hot",
                                     "center_crop_pad",
                                     "einsum",
                                     "non_max_suppression",
                                     "quantize",
                                     "dequantize",
                                     "dynamic_quantize",
                                     "quantized_conv",
                                     "quantized_matmul",
                                     "quantized_add",
                                     "quantized_average",
                                     "host",
                                     "composed"};
static_assert(std::size(kOps) == std::variant_size_v<OpParams>);

template <class Op>
concept Listed = requires(record_detail::Printer& v, Op& op) { fields(v, op); };

// Names as words: what is not a plain letter stands as %xx.
std::string word(std::string_view name) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const char c : name) {
    const auto code = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' ||
                       c == '.' || c == ':';
    if (plain) {
      text += c;
    } else {
      text += '%';
      text += kHex[code >> 4];
      text += kHex[code & 15];
    }
  }
  return text;
}

bool unword(std::string_view text, std::string& name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  name.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      name += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) return false;
    name += static_cast<char>(digit(text[i + 1]) << 4 | digit(text[i + 2]));
    i += 2;
  }
  return true;
}

struct HeadLine {
  std::string name;
  int64_t opset = 0;
  std::vector<int> inputs, outputs;
  template <class V>
  void visit(V& v) {
    v("name", name), v("opset", opset), v("inputs", inputs), v("outputs", outputs);
  }
};
struct TensorLine {
  std::string name;
  DType dtype = DType::f32;
  Dims shape;
  bool constant = false;
  Fit f16 = Fit::never, bf16 = Fit::never;
  template <class V>
  void visit(V& v) {
    v("name", name), v("dtype", dtype), v("shape", shape), v("constant", constant);
    v("f16", f16), v("bf16", bf16);
  }
};
struct OpLine {
  std::string name, type, op;
  std::vector<int> inputs, outputs;
  template <class V>
  void visit(V& v) {
    v("name", name), v("type", type), v("op", op), v("in", inputs), v("out", outputs);
  }
};
class Parser {
 public:
  Result<Graph> parse(std::string_view text) {
    for (number_ = 1; !text.empty(); ++number_) {
      const size_t end = text.find('\n');
      if (end == std::string_view::npos) return bad("the text is cut short");
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end + 1);
      SPARKLE_CHECK(number_ == 1 ? first(line) : number_ == 2 ? head(line) : entry(line));
    }
    if (number_ < 3) return bad("the text is empty");
    SPARKLE_CHECK(sound());
    return std::move(graph_);
  }

 private:
  Error bad(const std::string& what) const {
    return {Reason::bad_format, "Graph text, line " + std::to_string(number_) + ": " + what + "."};
  }
  Status first(std::string_view line) {
    return line == kFirstLine ? ok() : Status(bad("the first line must be '" + std::string(kFirstLine) + "'"));
  }
  Status named(const std::string& text, std::string& name) {
    return unword(text, name) ? ok() : Status(bad("'" + text + "' is not a name"));
  }
  Status head(std::string_view line) {
    auto read = from_text<HeadLine>(line);
    if (!read.ok()) return bad(read.error().message);
    graph_.opset = read->opset;
    graph_.inputs = std::move(read->inputs), graph_.outputs = std::move(read->outputs);
    return named(read->name, graph_.name);
  }
  Status entry(std::string_view line) {
    const size_t space = line.find(' ');
    const std::string_view kind = line.substr(0, space);
    const std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (kind == "tensor") return tensor(rest);
    if (kind == "op") return op(rest);
    return bad("'" + std::string(kind) + "' is neither a tensor nor an operator");
  }
  Status tensor(std::string_view line) {
    auto read = from_text<TensorLine>(line);
    if (!read.ok()) return bad(read.error().message);
    if (!checked_bytes(read->dtype, read->shape)) return bad("the shape is none that can be addressed");
    GraphTensor t;
    SPARKLE_CHECK(named(read->name, t.name));
    t.dtype = read->dtype, t.shape = read->shape, t.known = t.rank_known = true;
    if (read->constant) t.constant = HostTensor{t.dtype, t.shape, nullptr}, t.fit = {read->f16, read->bf16};
    graph_.tensors.push_back(std::move(t));
    return ok();
  }
  Status op(std::string_view line) {
    auto read = from_text<OpLine>(line);
    if (!read.ok()) return bad(read.error().message);
    Op op;
    SPARKLE_CHECK(named(read->name, op.name));
    SPARKLE_CHECK(named(read->type, op.type));
    op.inputs = std::move(read->inputs), op.outputs = std::move(read->outputs);
    const auto params = record_detail::find_field(line, "fields");
    if (!params || params->size() < 2 || params->front() != '{' || params->back() != '}')
      return bad("the fields of the operator are missing");
    SPARKLE_CHECK(alternative<0>(read->op, params->substr(1, params->size() - 2), op));
    graph_.ops.push_back(std::move(op));
    return ok();
  }
  template <size_t I>
  Status alternative(const std::string& name, std::string_view params, Op& op) {
    if constexpr (I < std::variant_size_v<OpParams>) {
      using Alternative = std::variant_alternative_t<I, OpParams>;
      if (kOps[I] != name) return alternative<I + 1>(name, params, op);
      if constexpr (Listed<Alternative>) {
        Alternative read;
        record_detail::Parser parser{params, {}};
        fields(parser, read);
        if (!parser.problem.empty()) return bad(parser.problem);
        op.params = std::move(read);
        return ok();
      }
    }
    return bad("there is no operator '" + name + "'");
  }

  bool in_range(int id) const { return id >= 0 && static_cast<size_t>(id) < graph_.tensors.size(); }
  // Each tensor comes from one place at most; every number is that of a tensor.
  Status sound() {
    std::vector<bool> made(graph_.tensors.size(), false);
    const auto make = [&](int id) {
      if (!in_range(id) || made[static_cast<size_t>(id)]) return false;
      made[static_cast<size_t>(id)] = true;
      return true;
    };
    for (size_t i = 0; i < graph_.tensors.size(); ++i) made[i] = graph_.tensors[i].constant.has_value();
    for (int id : graph_.inputs)
      if (!make(id)) return bad("an input is no tensor, or one that comes from elsewhere too");
    for (const Op& op : graph_.ops) {
      if (op.outputs.empty() || op.outputs[0] == kAbsent) return bad("the operator '" + op.name + "' gives nothing");
      for (int id : op.inputs)
        if (id != kAbsent && !in_range(id)) return bad("the operator '" + op.name + "' reads what is no tensor");
      for (int id : op.outputs)
        if (id != kAbsent && !make(id))
          return bad("the operator '" + op.name + "' gives what is no tensor, or one that comes from elsewhere too");
    }
    for (int id : graph_.outputs)
      if (!in_range(id)) return bad("an output is no tensor");
    return graph_.outputs.empty() ? Status(bad("there are no outputs")) : ok();
  }

  Graph graph_;
  int number_ = 1;
};

}  // namespace

std::string_view name_of(AutoPad pad) { return kPads[static_cast<size_t>(pad)]; }
bool parse_name(std::string_view text, AutoPad& pad) { return parse_one_of(kPads, text, pad); }
std::string_view name_of(ReshapeOp::Form form) { return kForms[static_cast<size_t>(form)]; }
bool parse_name(std::string_view text, ReshapeOp::Form& form) { return parse_one_of(kForms, text, form); }
std::string_view name_of(ResizeOp::Keep keep) { return kKeeps[static_cast<size_t>(keep)]; }
bool parse_name(std::string_view text, ResizeOp::Keep& keep) { return parse_one_of(kKeeps, text, keep); }
bool parse_name(std::string_view text, DType& type) {
  const auto found = dtype_from(text);
  if (found) type = *found;
  return found.has_value();
}

Result<std::string> bound_graph_text(const Graph& graph) {
  std::string text(kFirstLine);
  text += "\n" + to_text(HeadLine{word(graph.name), graph.opset, graph.inputs, graph.outputs}) + "\n";
  for (const GraphTensor& t : graph.tensors) {
    const WeightFit fit = t.fit ? *t.fit : t.constant ? fit_of(*t.constant) : WeightFit{};
    text += "tensor " + to_text(TensorLine{word(t.name), t.dtype, t.shape, t.constant.has_value(), fit.f16, fit.bf16}) + "\n";
  }
  for (const Op& op : graph.ops) {
    OpLine line{word(op.name), word(op.type), std::string(kOps[op.params.index()]), op.inputs, op.outputs};
    std::string params;
    const bool listed = std::visit(
        [&]<class Alternative>(const Alternative& given) {
          if constexpr (Listed<Alternative>) {
            Alternative copy = given;
            record_detail::Printer printer;
            fields(printer, copy);
            params = printer.text;
            return true;
          }
          return false;
        },
        op.params);
    if (!listed)
      return Error{Reason::operator_not_served,
                   "Node '" + op.name + "' (" + op.type + "): it cannot be folded for these inputs, so no kernel supports it."};
    text += "op " + to_text(line) + " fields={" + params + "}\n";
  }
  return text;
}

Result<Graph> graph_from_text(std::string_view text) {
  return guard_memory("Reading the graph of a compiled model", [&] { return Parser().parse(text); });
}

}  // namespace sparkle
