// `sparkle fix`: a model brought onto the fast path of a device by rewrites that change nothing and, where asked for, by
// another precision, with a proof of both beside the result. Nothing is written where the proof fails.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/units/unit_sizes.h"
#include "fix/pad/plan.h"
#include "fix/prediction.h"
#include "fix/proof/proof.h"
#include "fix/proof/sensitivity.h"
#include "fix/quantize/quantize.h"

namespace sparkle::fix {

enum class ProofBy : uint8_t { best, reference, planned, none };
std::string_view name_of(ProofBy by);
bool parse_name(std::string_view text, ProofBy& by);

// The rules by name, in the order in which they are applied.
inline constexpr std::string_view kRules[] = {"fold_constants", "fold_batch_normalization", "merge_layouts", "pad_channels"};

struct FixOptions {
  Precision precision = Precision::fp32;  // as it is; fp16, bf16 or int8
  std::vector<std::string> only;          // rules; empty: all
  int64_t multiple = 8;                   // of channels (device/units/unit_sizes.h)
  int64_t head_multiple = 1;              // of the size of attention heads: those that are none are named
  double max_extra = kMostExtra;
  std::optional<PadTarget> target;  // the machine that it is for; none: nothing is predicted, and padding is not asked to pay
  QuantizeOptions quantize;
  std::map<std::string, Dims> shapes;  // of inputs whose sizes are open
  std::vector<Sample> samples;         // to measure ranges and for the proof; empty: `random_samples` seeded ones
  int random_samples = 2;
  std::vector<std::string> wide;  // layers that stay as they are in any case
  ProofBy proof = ProofBy::best;
  double least_cosine = 0;     // 0: 0.999, for int8 0.99
  double least_agreement = 1;  // of first classes
  int most_tries = 14;         // of precision/wide_search.h; 0: nothing but what must stays wide
};

struct FixReport {
  struct Part {
    std::string rule;
    std::vector<std::string> lines;
  };
  std::vector<Part> rewrites;  // what was done, by rule
  std::vector<std::string> notes;
  std::vector<std::string> ranges;
  struct Wide {
    std::string layer, why;
    double share = 0;  // of the multiplications
  };
  std::vector<Wide> wide;
  std::optional<Prediction> predicted;  // of the layers that changed, on the target
  double integer_share = 0;             // int8: of the multiplications
  std::optional<Proof> exact, whole;    // of the rewrites alone; of the result
  std::string exact_by, whole_by;       // "plain loops", "the kernels of cpu"
  std::vector<Entrance> entrances;      // the worst three
  bool random = false;                  // the samples
};

struct Fixed {
  Document model;
  FixReport report;
};

// `backend` runs the proofs that need no plain loops, and measures ranges. Errors: what reading and running say; check_failed
// in words where the result is too far from the original, naming the layer.
Result<Fixed> fix_model(const Document& original, const FixOptions& options, std::shared_ptr<Backend> backend);

// Sets what channels and heads are padded to: channels to `multiple`, or, where that is 0, to what the device's units want of
// the type that the products will have: the precision that is asked for, else the model's own; of an fp32 model as it is, that
// which the device's matrix units would take, as `sparkle check` counts.
void take_sizes(const Device& device, const Document& model, int64_t multiple, FixOptions& options);

// Each name of `only` becomes that of a rule: the rule's own, or what `sparkle check` calls what it mends. Errors: bad_usage
// listing both.
Status check_rules(FixOptions& options);

// The report as lines for people.
std::vector<std::string> to_lines(const FixReport& report);

}  // namespace sparkle::fix
