// The rules of `check`, one row each: the code, what it looks at, the function that finds it. rules.cc is the table; what a
// function may look at is a Subject.
#pragma once

#include <functional>
#include <span>

#include "check/check.h"
#include "check/estimate.h"

namespace sparkle {

// What `fix` would pad, asked once for each precision.
class AskedPaddings {
 public:
  AskedPaddings(const CheckOptions& options, const Device& device) : ask_(options.paddings), device_(device) {}
  bool known() const { return static_cast<bool>(ask_); }
  const Paddings& in(Precision precision);

 private:
  const AskPaddings& ask_;
  const Device& device_;
  std::map<Precision, Paddings> asked_;
};

// A layer with all that rules ask of it.
struct Subject {
  const Graph& graph;
  const Device& device;
  const Plan& plan;
  const CheckRow& row;
  const PlanStep& step;                // its first
  std::optional<Problem> problem;      // of a sum of products
  std::optional<Precision> precision;  // that it multiplies in; nothing for doubles and for what is no sum of products
  std::vector<const Op*> ops;          // its nodes
  double model_seconds = 0;            // of the whole

  // The matrix unit that the layer could run on in its own precision, or in the one that the fix for wide types takes.
  std::optional<Precision> matrix_precision;
  const MathUnit* matrix = nullptr;

  AskedPaddings* asked = nullptr;
  // What `fix` says of a node of the layer: nullptr where it pads no such layers, or nobody asks.
  const PaddedLayer* padding(const Op& op, Precision then) const;
  const PaddedLayer* padding(Precision then) const;  // of the first that it knows
  // The problem as `fix` would have it in a precision.
  Problem as_fixed(Precision then) const;

  // Seconds of the row if its problem were this one: the row's own time by the ratio of the two estimates.
  double seconds_if(const Problem& changed, Precision then) const;
};

struct Rule {
  Reason code;
  std::string_view looks_at;
  std::optional<Finding> (*find)(const Subject&);
};

// By layer.
std::span<const Rule> rules();

// Of the graph: who makes a tensor (nullptr: nobody), and whether an operator is a sum of products in floats.
const Op* producer(const Graph& graph, TensorId id);
bool is_product(const Op& op);
// Whether a problem has a filter per channel.
bool is_channelwise(const Problem& problem);

// The functions, by theme. A finding's row and now_seconds are filled in by who asks.
namespace rule {
std::optional<Finding> channels_unaligned(const Subject&);
std::optional<Finding> features_unaligned(const Subject&);
std::optional<Finding> head_unaligned(const Subject&);
std::optional<Finding> wide_type(const Subject&);
std::optional<Finding> double_type(const Subject&);
std::optional<Finding> type_without_unit(const Subject&);
std::optional<Finding> mixed_types(const Subject&);
std::optional<Finding> float_island(const Subject&);
std::optional<Finding> weights_asymmetric(const Subject&);
std::optional<Finding> weights_not_constant(const Subject&);
std::optional<Finding> layout_change(const Subject&);
std::optional<Finding> grouped_channels(const Subject&);
std::optional<Finding> depthwise(const Subject&);
std::optional<Finding> large_kernel(const Subject&);
std::optional<Finding> device_not_filled(const Subject&);
std::optional<Finding> single_row(const Subject&);
std::optional<Finding> memory_bound(const Subject&);
std::optional<Finding> no_device_kernel(const Subject&);
std::optional<Finding> batchnorm_apart(const Subject&);
std::optional<Finding> unfused_pointwise(const Subject&);
std::optional<Finding> attention_unfused(const Subject&);
}  // namespace rule

// Of the model as a whole.
std::vector<Finding> model_findings(const Graph& graph, const Device& device, const Verdict& verdict,
                                    const CheckOptions& options);

// The problem with the sizes that the unit wants: input channels only of ungrouped ones.
Problem aligned(Problem problem, const MathUnit& unit);

// Numbers in sentences: "64", "1.50 MB", "0.123 ms", "3.4".
std::string in_words(int64_t n);
std::string in_bytes(double bytes);
std::string in_time(double seconds);
std::string in_percent(double share);
std::string in_digits(double value, int digits);

}  // namespace sparkle
