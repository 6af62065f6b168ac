// How much each layer alone, in the narrower type, moves the model's outputs: what decides which layers stay wide.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fix/precision/narrow.h"
#include "fix/proof/proof.h"
#include "fix/quantize/quantize.h"

namespace sparkle::fix {

// A product and the operators behind it up to the next products; the first group is what lies before any.
struct LayerGroup {
  std::string name;                  // the product's label
  std::vector<std::string> tensors;  // first results of its nodes, the product's first
  double macs = 0;
  double error = 0;  // relative, of the worst output of the worst sample, with this group alone in the narrower type
};

std::vector<LayerGroup> layer_groups(const Document& doc, const std::map<std::string, TensorInfo>& tensors);

// Fills in the errors. `convert`: the document with these layers wide. Errors: what converting and running say.
Status measure_sensitivity(const Document& doc, std::vector<LayerGroup>& groups, const std::vector<Sample>& samples,
                           const std::function<Result<Document>(const Layers& wide)>& convert,
                           const std::shared_ptr<Backend>& backend);

// The groups to keep wide so that the others have at most this share of all squared errors, the most harmful for their
// multiplications first.
std::vector<const LayerGroup*> worst_groups(const std::vector<LayerGroup>& groups, double share);

}  // namespace sparkle::fix
