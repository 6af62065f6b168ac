// What keeps a model off the fast path of a device that need not be here: for each layer the unit that it runs on, the rules
// that it breaks with their numbers, what it takes now and once it is fixed. Pure: the planner and its cost model say all
// times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "check/paddings.h"
#include "device/units/unit_sizes.h"
#include "graph/graph.h"
#include "plan/plan.h"

namespace sparkle {

// A rule that a layer breaks.
struct Finding {
  Reason code = Reason::none;
  int row = -1;             // of Verdict::rows; -1: the model as a whole
  std::string rule;         // a sentence with the layer's numbers
  std::string fix;          // what to do; empty: nothing that keeps the answers
  bool in_model = false;    // mended by other nodes, sizes or types in the model; else by how it is run
  bool by_fix = false;      // `sparkle fix` does it: this alone counts as mended
  double now_seconds = 0;   // of that layer
  double then_seconds = 0;  // with this mended and nothing else
  double saved() const { return now_seconds > then_seconds ? now_seconds - then_seconds : 0; }
};

// One layer: the steps of the plan that do the same nodes.
struct CheckRow {
  std::string name, what, types;        // the node; "64x56x56 -> 64 3x3"; "f16"
  std::vector<std::string> nodes;       // of the model
  std::vector<int> steps;               // of the plan
  std::string kind;                     // "conv", "matmul", "attention", "copy" ... : the family where it is no sum of products
  std::string unit, algorithm, kernel;  // kernel "no_kernel": the roofs alone say the time
  UnitKind unit_kind = UnitKind::vector_fma;
  double flops = 0;         // nominal
  double bytes = 0;         // operands, each once
  double seconds = 0;       // predicted, or what the roofs allow
  double then_seconds = 0;  // with all mended that `sparkle fix` mends
  std::string bound;
  std::vector<int> findings;
  double measured_seconds = 0;  // `check --measure`; 0: not measured
  bool has_kernel() const;
  // Of kernels; what the roofs say counts one.
  double launches() const { return has_kernel() ? static_cast<double>(steps.size()) : 1; }
};

// Findings of one code over all layers.
struct FindingGroup {
  Reason code = Reason::none;
  std::vector<int> findings;  // those that save most first
  double saved_seconds = 0;
};

// A line of the table of precisions.
struct PrecisionRow {
  std::string name;  // "fp16, as it is"
  Precision precision = Precision::fp32;
  double seconds = 0;    // of a pass; 0: the device has no unit for it
  double bytes = 0;      // weights and tensors at the peak
  double error = 0;      // expected, relative, root mean square
  double on_matrix = 0;  // share of the arithmetic on matrix units
  std::string note;
};

struct Verdict {
  std::string model;
  Device device;
  bool kernels = false;     // for each step of the plan
  bool calibrated = false;  // the device's rates were measured
  std::vector<CheckRow> rows;
  std::vector<Finding> findings;
  std::vector<FindingGroup> groups;  // those that save most first
  std::vector<PrecisionRow> precisions;
  double seconds = 0, then_seconds = 0;
  double flops = 0;                           // of sums of products
  double on_matrix = 0, then_matrix = 0;      // shares of them
  double weight_bytes = 0, packed_bytes = 0;  // of the model's constants; as kernels keep them in memory
  double arena_bytes = 0;
  double measured_seconds = 0;  // the whole by `check --measure`, run once; 0: not measured
  double speedup() const { return then_seconds > 0 ? seconds / then_seconds : 1; }
};

// A size that the model leaves open, as "'x' [N,3,224,224]".
struct OpenInput {
  std::string name, shape;
};
// The inputs of a graph, as it was read, with such sizes.
std::vector<OpenInput> open_inputs(const Graph& graph);

struct CheckOptions {
  PlanSettings plan;
  std::vector<OpenInput> open;  // of the graph before it was bound
  AskPaddings paddings;         // what `fix` would do; none: findings on sizes are named, and nothing is said to mend them
};

// `bound`: simplified, all shapes known. Errors: those of make_plan.
Result<Verdict> check_model(const Graph& bound, const Device& device, const CheckOptions& options = {});
// With the plan that there is.
Verdict check_plan(const Graph& bound, const Plan& plan, const Device& device, const CheckOptions& options = {});

// Rows alone, without findings.
Result<std::vector<CheckRow>> predicted_rows(const Graph& bound, const Device& device, const PlanSettings& settings = {});
// Sums of products; blocks of convolutions in one step among them.
bool is_product(const CheckRow& row);

// Puts measured seconds of the plan's steps, and of the whole, beside what the verdict of that plan predicts.
void add_measured(Verdict& verdict, const std::vector<double>& step_seconds, double whole_seconds);

// The fit of large constants in types of 16 bits need not be looked up where their values are not wanted: they count as
// rounded, as trained weights are.
void assume_rounded_weights(Graph& graph);

}  // namespace sparkle
