// A plan as text. One line each for header fields, constants and tensors, a few lines per step; names come last on
// their line so that they may hold anything but a line break.
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "plan/plan.h"

namespace sparkle {
namespace {

struct TensorLine {
  PlaceKind kind = PlaceKind::arena;
  int index = 0;
  int64_t at = 0;
  std::string dtype;
  Dims shape, order, stride;
  int64_t offset = 0;
  template <class V>
  void visit(V& v) {
    v("in", kind), v("index", index), v("at", at), v("dtype", dtype), v("shape", shape), v("order", order), v("pitch", stride);
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
  line.order = d.layout.order, line.stride = d.layout.strides, line.offset = d.layout.offset;
  return line;
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

// Six digits: no machine's rounding shows.
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
  if (!plan.host.empty())
    text += "host " + one_line(plan.host) + "\nhost_arena " + std::to_string(plan.host_arena_bytes) + "\n";
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
    if (s.runs_on != RunsOn::device) text += "  on " + std::string(name_of(s.runs_on));
    if (s.host_reason == Reason::cheaper_on_host) text += " " + std::string(code_of(s.host_reason));
    if (s.runs_on != RunsOn::device) text += "\n";
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

Result<std::vector<uint64_t>> constant_hashes(std::string_view plan_text) {
  constexpr std::string_view kKey = "constant ";
  std::vector<uint64_t> hashes;
  for (int number = 1; !plan_text.empty(); ++number) {
    const std::string_view line = plan_text.substr(0, plan_text.find('\n'));
    plan_text.remove_prefix(std::min(plan_text.size(), line.size() + 1));
    if (!line.starts_with(kKey)) continue;
    const std::string_view hex = line.substr(kKey.size(), line.find(' ', kKey.size()) - kKey.size());
    uint64_t hash = 0;
    const char* end = hex.data() + hex.size();
    const auto [read_to, wrong] = std::from_chars(hex.data(), end, hash, 16);
    if (read_to != end || wrong != std::errc())
      return Error{Reason::bad_format,
                   "Plan text, line " + std::to_string(number) + ": '" + std::string(hex) + "' is not the hash of a constant."};
    hashes.push_back(hash);
  }
  return hashes;
}

}  // namespace sparkle
