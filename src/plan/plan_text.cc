// A plan as text and back. One line each for header fields, constants and tensors, a few lines per step; names come last on
// their line so that they may hold anything but a line break.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/out_of_memory.h"
#include "families/registry.h"
#include "plan/plan.h"

namespace sparkle {
namespace {

struct TensorLine {
  PlaceKind kind = PlaceKind::arena;
  int index = 0;
  int64_t at = 0;
  std::string dtype;
  Dims shape, order, pitch;
  int64_t offset = 0;
  template <class V>
  void visit(V& v) {
    v("in", kind), v("index", index), v("at", at), v("dtype", dtype), v("shape", shape), v("order", order), v("pitch", pitch);
    v("offset", offset);
  }
};

struct StepLine {
  std::string algorithm;
  Family family = Family::gemm;
  Dims inputs, outputs;  // kMaxRank operands at most: anchors have 2 + 4, programs up to 8
  int64_t workspace_at = 0, workspace = 0;
  double predicted_us = 0;
  std::string bound;
  template <class V>
  void visit(V& v) {
    v("algorithm", algorithm), v("family", family), v("in", inputs), v("out", outputs);
    v("workspace_at", workspace_at), v("workspace", workspace), v("predicted_us", predicted_us), v("bound", bound);
  }
};

// What the memory budget changed; left out where it changed nothing.
struct BudgetLine {
  int steps = 0;
  double lost_us = 0;
  template <class V>
  void visit(V& v) {
    v("steps", steps), v("lost_us", lost_us);
  }
};

TensorLine line_of(const TensorDesc& d) {
  TensorLine line;
  line.dtype = name_of(d.dtype), line.shape = d.shape;
  line.order = d.layout.order, line.pitch = d.layout.pitch, line.offset = d.layout.offset;
  return line;
}

TensorDesc desc_of(const TensorLine& line) {
  TensorDesc d;
  d.dtype = dtype_from(line.dtype).value_or(DType::f32);
  d.shape = line.shape;
  d.layout = {line.order, line.pitch, line.offset};
  return d;
}

std::string one_line(std::string name) {
  for (char& c : name)
    if (c == '\n' || c == '\r') c = ' ';
  return name;
}

// Words inside a record: device files may name a memory level anything.
std::string one_word(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == '{' || c == '}' || c == '[' || c == ']' || c == ',') c = '_';
  return name;
}

// Six digits: text that is read and printed again stays the same, and no machine's rounding shows.
double six_digits(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  double rounded = 0;
  return record_detail::parse_number(std::string_view(text), rounded) ? rounded : value;
}

Dims dims_of(const std::vector<int>& list) {
  Dims dims;
  for (int v : list) dims.push_back(v);
  return dims;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text = "sparkle-plan 1\n";
  text += "model " + one_line(plan.model) + "\ndevice " + one_line(plan.device) + "\n";
  text += "calibrated " + std::string(plan.calibrated ? "1" : "0") + "\narena " + std::to_string(plan.arena_bytes) + "\n";
  const auto ids = [&](const char* key, const std::vector<int>& list) {
    text += key;
    for (int t : list) text += " " + std::to_string(t);
    text += "\n";
  };
  ids("inputs", plan.inputs);
  ids("outputs", plan.outputs);
  if (!plan.open.empty()) ids("open", plan.open);
  if (plan.budget_steps > 0)
    text += "budget " + to_text(BudgetLine{plan.budget_steps, six_digits(plan.budget_seconds * 1e6)}) + "\n";
  for (const PlanConstant& c : plan.constants) {
    const auto* bytes = reinterpret_cast<const char*>(c.value.bytes.get());
    const uint64_t hash = bytes ? hash_text({bytes, static_cast<size_t>(c.value.size_bytes())}) : c.hash;
    TensorLine line = line_of(dense_desc(c.value.dtype, c.value.shape));
    char hex[24];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
    text += "constant " + std::string(hex) + " dtype=" + line.dtype + " shape=[";
    for (int i = 0; i < c.value.shape.size(); ++i) text += (i ? "," : "") + std::to_string(c.value.shape[i]);
    text += "] name=" + one_line(c.name) + "\n";
  }
  for (const PlanTensor& t : plan.tensors) {
    TensorLine line = line_of(t.desc);
    line.kind = t.kind, line.index = t.index, line.at = t.offset;
    text += "tensor " + to_text(line) + " name=" + one_line(t.name) + "\n";
  }
  for (const PlanStep& s : plan.steps) {
    StepLine line{s.algorithm,
                  s.stage.family(),
                  dims_of(s.inputs),
                  dims_of(s.outputs),
                  s.workspace_offset,
                  s.workspace_bytes,
                  six_digits(s.cost.seconds * 1e6),
                  one_word(s.cost.bound)};
    text += "step " + to_text(line) + " name=" + one_line(s.name) + "\n";
    text += "  params " + to_text(s.stage.params) + "\n";
    text += "  schedule " + to_text(s.schedule) + "\n";
    if (!s.problem.empty()) text += "  problem " + s.problem + "\n";
    for (const std::string& node : s.nodes) text += "  node " + one_line(node) + "\n";
    // Algorithms may work on parts of the plan's tensors: descs that differ are written out.
    const auto parts = [&](const char* key, const std::vector<TensorDesc>& descs, const std::vector<int>& tensors) {
      for (size_t i = 0; i < descs.size(); ++i) {
        const TensorDesc& whole = plan.tensors[static_cast<size_t>(tensors[i])].desc;
        if (descs[i].shape == whole.shape && descs[i].layout == whole.layout) continue;
        text += "  " + std::string(key) + " " + std::to_string(i) + " " + to_text(line_of(descs[i])) + "\n";
      }
    };
    parts("input_part", s.stage.inputs, s.inputs);
    parts("output_part", s.stage.outputs, s.outputs);
  }
  return text;
}

namespace {

class PlanParser {
 public:
  Result<Plan> parse(std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::string line;
    for (number_ = 1; std::getline(lines, line); ++number_) {
      if (number_ == 1) {
        if (line != "sparkle-plan 1") return bad("the first line must be 'sparkle-plan 1'");
        continue;
      }
      if (auto status = parse_line(line); !status.ok()) return status.take_error();
    }
    if (number_ == 1) return bad("the text is empty");
    if (auto status = finish(); !status.ok()) return status.take_error();
    return std::move(plan_);
  }

 private:
  Error bad(const std::string& what) const {
    return {Reason::bad_format, "Plan text, line " + std::to_string(number_) + ": " + what + "."};
  }

  Status parse_line(std::string_view line) {
    const bool inner = line.starts_with("  ");
    if (inner) line.remove_prefix(2);
    const size_t space = line.find(' ');
    const std::string_view key = line.substr(0, space);
    const std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (inner) return plan_.steps.empty() ? Status(bad("no step is open")) : parse_detail(key, rest);
    if (key == "model") return plan_.model = rest, ok();
    if (key == "device") return plan_.device = rest, ok();
    if (key == "calibrated") return plan_.calibrated = rest == "1", ok();
    if (key == "arena") return number(rest, plan_.arena_bytes);
    if (key == "inputs") return list(rest, plan_.inputs);
    if (key == "outputs") return list(rest, plan_.outputs);
    if (key == "open") return list(rest, plan_.open);
    if (key == "budget") return parse_budget(rest);
    if (key == "constant") return parse_constant(rest);
    if (key == "tensor") return parse_tensor(rest);
    if (key == "step") return parse_step(rest);
    return bad("'" + std::string(key) + "' is not part of a plan");
  }

  Status number(std::string_view text, int64_t& value) {
    return record_detail::parse_number(text, value) ? ok() : Status(bad("'" + std::string(text) + "' is not a number"));
  }
  Status list(std::string_view text, std::vector<int>& values) {
    std::istringstream stream{std::string(text)};
    for (int v; stream >> v;) values.push_back(v);
    return stream.eof() ? ok() : Status(bad("'" + std::string(text) + "' is not a list of tensors"));
  }
  Status parse_budget(std::string_view text) {
    auto line = from_text<BudgetLine>(text);
    if (!line.ok()) return bad(line.error().message);
    plan_.budget_steps = line->steps, plan_.budget_seconds = line->lost_us * 1e-6;
    return ok();
  }
  static std::string name_at_end(std::string_view text, std::string_view& fields) {
    const size_t at = text.find(" name=");
    fields = text.substr(0, at);
    return at == std::string_view::npos ? std::string() : std::string(text.substr(at + 6));
  }
  Status parse_constant(std::string_view text) {
    std::string_view fields;
    PlanConstant c;
    c.name = name_at_end(text, fields);
    const auto dtype = record_detail::find_field(fields, "dtype");
    const auto type = dtype_from(dtype.value_or(""));
    const auto shape = record_detail::find_field(fields, "shape");
    record_detail::Parser parser{fields, {}};
    if (!type || !shape || !parser.parse(*shape, c.value.shape)) return bad("a constant needs dtype and shape");
    c.value.dtype = *type;
    if (const std::string_view hex = fields.substr(0, fields.find(' '));
        std::from_chars(hex.data(), hex.data() + hex.size(), c.hash, 16).ptr != hex.data() + hex.size())
      return bad("'" + std::string(hex) + "' is not the hash of a constant");
    Dims filled = c.value.shape;  // sizes of 0 hide how large the others are
    for (int64_t& size : filled) {
      if (size < 0) return bad("the shape of a constant has negative sizes");
      size = std::max<int64_t>(size, 1);
    }
    const auto bytes = tensor_bytes(c.value.dtype, filled);
    if (!bytes || *bytes > kMostConstantBytes - constant_bytes_) return bad("the constants are more than can be addressed");
    constant_bytes_ += *bytes;
    plan_.constants.push_back(std::move(c));
    return ok();
  }
  Status parse_tensor(std::string_view text) {
    std::string_view fields;
    PlanTensor t;
    t.name = name_at_end(text, fields);
    auto line = from_text<TensorLine>(fields);
    if (!line.ok()) return bad(line.error().message);
    if (!consistent(*line)) return bad("shape, order and pitch must have one entry per axis");
    t.desc = desc_of(*line);
    t.kind = line->kind, t.index = line->index, t.offset = line->at;
    plan_.tensors.push_back(std::move(t));
    return ok();
  }
  static bool consistent(const TensorLine& line) {
    if (line.order.size() != line.shape.size() || line.pitch.size() != line.shape.size() || !dtype_from(line.dtype))
      return false;
    for (int64_t axis : line.order)
      if (axis < 0 || axis >= line.shape.size()) return false;
    for (int64_t size : line.shape)
      if (size < 0) return false;
    return true;
  }
  // The step before is whole: it has said what it does and how.
  Status close_step() {
    return has_params_ && has_schedule_ ? ok() : Status(bad("the step before lacks its params or schedule"));
  }
  Status parse_step(std::string_view text) {
    SPARKLE_CHECK(close_step());
    has_params_ = has_schedule_ = false;
    std::string_view fields;
    PlanStep s;
    s.name = name_at_end(text, fields);
    auto line = from_text<StepLine>(fields);
    if (!line.ok()) return bad(line.error().message);
    s.algorithm = line->algorithm;
    family_ = line->family;
    s.workspace_offset = line->workspace_at, s.workspace_bytes = line->workspace;
    s.cost = {line->predicted_us * 1e-6, line->bound};
    const auto copy = [&](const Dims& ids, std::vector<int>& tensors, std::vector<TensorDesc>& descs) {
      for (int64_t id : ids) {
        if (id < 0 || id >= static_cast<int64_t>(plan_.tensors.size())) return false;
        tensors.push_back(static_cast<int>(id));
        descs.push_back(plan_.tensors[static_cast<size_t>(id)].desc);
      }
      return true;
    };
    if (!copy(line->inputs, s.inputs, s.stage.inputs) || !copy(line->outputs, s.outputs, s.stage.outputs))
      return bad("the step names a tensor that was not described before");
    plan_.steps.push_back(std::move(s));
    return ok();
  }
  Status parse_detail(std::string_view key, std::string_view rest) {
    PlanStep& s = plan_.steps.back();
    if (key == "params") {
      auto params = params_from_text(family_, rest);
      if (!params.ok()) return bad(params.error().message);
      s.stage.params = std::move(*params);
      has_params_ = true;
    } else if (key == "schedule") {
      auto schedule = schedule_from_text(family_, rest);
      if (!schedule.ok()) return bad(schedule.error().message);
      s.schedule = std::move(*schedule);
      has_schedule_ = true;
    } else if (key == "problem") {
      s.problem = rest;
    } else if (key == "node") {
      s.nodes.emplace_back(rest);
    } else if (key == "input_part" || key == "output_part") {
      auto& descs = key == "input_part" ? s.stage.inputs : s.stage.outputs;
      const size_t space = rest.find(' ');
      int64_t index = 0;
      if (space == std::string_view::npos || !record_detail::parse_number(rest.substr(0, space), index) || index < 0 ||
          index >= static_cast<int64_t>(descs.size()))
        return bad("a part needs the number of its operand");
      auto line = from_text<TensorLine>(rest.substr(space + 1));
      if (!line.ok()) return bad(line.error().message);
      if (!consistent(*line)) return bad("shape, order and pitch must have one entry per axis");
      descs[static_cast<size_t>(index)] = desc_of(*line);
    } else {
      return bad("'" + std::string(key) + "' is not part of a step");
    }
    return ok();
  }
  Status finish() {
    SPARKLE_CHECK(close_step());
    for (const auto* ids : {&plan_.inputs, &plan_.outputs})
      for (int t : *ids)
        if (t < 0 || t >= static_cast<int>(plan_.tensors.size())) return bad("an input or output is not a tensor of the plan");
    for (int position : plan_.open)
      if (position < 0 || position >= static_cast<int>(plan_.outputs.size())) return bad("an open output is not an output");
    for (const PlanTensor& t : plan_.tensors)
      if (t.kind == PlaceKind::constant && (t.index < 0 || t.index >= static_cast<int>(plan_.constants.size())))
        return bad("tensor '" + t.name + "' names a constant that is not described");
    return ok();
  }

  static constexpr int64_t kMostConstantBytes = int64_t{1} << 60;
  Plan plan_;
  int number_ = 1;
  int64_t constant_bytes_ = 0;
  bool has_params_ = true, has_schedule_ = true;  // of the open step
  Family family_ = Family::gemm;
};

}  // namespace

Result<Plan> plan_from_text(std::string_view text) { return PlanParser().parse(text); }

}  // namespace sparkle
