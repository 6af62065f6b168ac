// The changed model beside the original on the same inputs: each output compared, and the layer found where the error enters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fix/precision/ranges.h"
#include "fix/proof/compare.h"

namespace sparkle::fix {

struct Proof {
  std::vector<Difference> outputs;
  bool same_bits() const;
  double cosine() const;  // of the worst output
  double largest() const;
  bool classifies() const;   // each output is a row of classes
  double agreement() const;  // share of samples whose first class is the same, of the worst output
  // Samples by their number, those whose class is lost first, then those with the least cosine; at most so many.
  std::vector<size_t> worst_samples(size_t most) const;

  struct OfSample {
    bool class_lost = false;
    double cosine = 1;  // of the worst output
  };
  std::vector<OfSample> samples;
};

// Many changed models beside one original, which runs once where there is room for its answers.
class Prover {
 public:
  // `samples` outlives it. Errors: what running says.
  static Result<Prover> open(const Document& original, const std::vector<Sample>& samples, std::shared_ptr<Backend> backend);
  Result<Proof> prove(const Document& fixed);

 private:
  Result<std::vector<HostTensor>> wanted(size_t sample);

  const std::vector<Sample>* samples_ = nullptr;
  std::shared_ptr<Backend> backend_;
  std::optional<Runner> original_;
  std::vector<std::vector<HostTensor>> answers_;
  int64_t bytes_ = 0;
};

// One changed model.
Result<Proof> prove(const Document& original, const Document& fixed, const std::vector<Sample>& samples,
                    const std::shared_ptr<Backend>& backend);

struct Entrance {
  std::string layer;             // label of the node
  std::string tensor;            // its first result
  double error = 0, before = 0;  // relative errors of its result and of the worst of its inputs
};

// The nodes that add most to the error of one sample, the worst first: by the errors of all tensors within that both have.
Result<std::vector<Entrance>> where_errors_enter(const Document& original, const Document& fixed, const Sample& sample,
                                                 const std::shared_ptr<Backend>& backend);

}  // namespace sparkle::fix
