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
};

// Errors: what running says.
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
