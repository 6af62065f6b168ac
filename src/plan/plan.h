// Plan: everything that will happen, decided before anything runs. Immutable plain data that prints as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "families/family.h"
#include "graph/graph.h"

namespace sparkle {

// What a tensor lives in: a part of the arena, one of the caller's inputs or outputs, a constant, or a part of the arena in the
// host's memory.
enum class PlaceKind : uint8_t { arena, input, output, constant, host };
std::string_view name_of(PlaceKind kind);
bool parse_name(std::string_view text, PlaceKind& kind);

struct PlanTensor {
  std::string name;  // the model's, or "layer/part" for what the planner added
  TensorDesc desc;   // layout offsets count from `offset`
  PlaceKind kind = PlaceKind::arena;
  int index = 0;       // which input, output or constant
  int64_t offset = 0;  // bytes into its arena
};

// Who does a step: the plan's device, the host for what this has no kernel for and for what is cheaper there in between, or the
// link between the two, a transfer.
enum class RunsOn : uint8_t { device, host, link };
std::string_view name_of(RunsOn side);

// Predicted seconds and what binds: "compute", the name of a memory level, or "launch".
struct Cost {
  double seconds = 0;
  std::string bound = "launch";
};

// A candidate of a step, for explain: the algorithm, variant and schedule, its cost or the reason why it was passed over.
struct Candidate {
  std::string algorithm;
  std::string schedule;
  std::optional<Cost> cost;      // none where there was no schedule to cost
  Reason reason = Reason::none;  // none: this one was chosen
};

struct PlanStep {
  std::string name;                // the model's node that gives the step its meaning
  std::vector<std::string> nodes;  // all model nodes done by this step
  std::string algorithm;           // "gemm", "depthwise", ... ; the family's name where there is no choice
  std::string problem;             // canonical text for anchors, else empty
  RunsOn runs_on = RunsOn::device;
  Reason host_reason = Reason::none;  // why the host does it: no_kernel, cheaper_on_host; none: it does not
  Stage stage;
  Schedule schedule;
  std::vector<int> inputs, outputs;  // plan tensors
  int64_t workspace_offset = 0;      // in the arena of its side
  int64_t workspace_bytes = 0;
  int64_t live_bytes = 0;  // of both arenas: tensors between their first and last touch, and the workspace
  Footprint footprint;
  Cost cost;
  std::vector<Candidate> candidates;
};

struct PlanConstant {
  std::string name;
  HostTensor value;
  uint64_t hash = 0;  // of the value's bytes, where only that is known: a plan read from text
};

struct Plan {
  std::string model;
  std::string device;
  bool calibrated = false;                // whether the device's rates were measured
  std::vector<std::string> matrix_units;  // of the device, by name
  std::vector<PlanTensor> tensors;
  std::vector<PlanStep> steps;
  std::vector<PlanConstant> constants;
  std::vector<int> inputs, outputs;  // plan tensors, in the model's order
  std::vector<int> open;             // which of the outputs end where their first column turns to -1: the data tells their rows
  int64_t arena_bytes = 0;
  std::string host;              // whose steps RunsOn::host are; empty: there are none
  int64_t host_arena_bytes = 0;  // in memory of the device's that the host sees
  int budget_steps = 0;          // that take less memory than the fastest candidate would, for the memory budget
  double budget_seconds = 0;     // predicted time that this loses

  int64_t constant_bytes() const;
  double predicted_seconds() const;
};

// Whatever decides a plan beside graph, device and tuning store. It travels as a whole: sessions and the command derive their
// options from it, compiled files hold it.
struct PlanSettings {
  std::string algorithm;         // force one by name; empty: by cost
  std::string variant;           // force a kernel variant by name wherever it applies
  std::string fusion;            // of layers into one step; empty: by cost, "inverted": wherever it applies, "none": nowhere
  int64_t memory_budget = 0;     // bytes of arena, packed constants, inputs and outputs; 0: unlimited
  double accuracy = 5e-5;        // most that max |error| / max |output| of a layer may be predicted to reach
  bool fuse = true;              // false: every operator is a step of its own
  bool exact_nonfinite = false;  // no algorithm that needs finite values of moderate size (Algorithm::finite_only)

  template <class V>
  void visit(V& v) {
    auto& [algorithm_, variant_, fusion_, memory_budget_, accuracy_, fuse_, nonfinite_] = *this;  // all there are
    v("algorithm", algorithm_), v("variant", variant_), v("fusion", fusion_), v("memory_budget", memory_budget_);
    v("accuracy", accuracy_), v("fuse", fuse_), v("exact_nonfinite", nonfinite_);
  }
  bool operator==(const PlanSettings&) const = default;
};

struct PlanOptions : PlanSettings {
  const class TuningStore* tuning = nullptr;
  // Takes the steps that the device has no kernel for, and those between them that are cheaper there; nullptr: the former stay
  // without one.
  const Device* host_device = nullptr;
  // Of the steps between the host's these go there, by number, as tests want it; nullptr: those that make the plan cheaper.
  const std::vector<size_t>* host_moves = nullptr;
};

// The plan of a bound, simplified graph on a device. Pure: no driver, no clock. Errors: operator_not_served and type_not_served
// naming the node, over_memory_budget with the bytes needed.
Result<Plan> make_plan(const Graph& graph, const Device& device, const PlanOptions& options = {});

// The plan as text, one line per tensor, constant and step; constants' values are not part of it (only name, type, shape,
// hash).
std::string to_text(const Plan& plan);
// The hashes of constants' values in the text of a plan, in the order of its constants. Errors: bad_format naming the line.
Result<std::vector<uint64_t>> constant_hashes(std::string_view plan_text);

}  // namespace sparkle
