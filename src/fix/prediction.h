// What a target takes for the layers that `fix` changed, before and after, by the cost model of `check`.
#pragma once

#include <string>
#include <vector>

#include "fix/pad/plan.h"

namespace sparkle::fix {

struct Prediction {
  std::string device, basis;              // "bound, not calibrated", or "predicted by rates measured on it"
  Precision precision = Precision::fp32;  // that the products are in afterwards
  struct Layer {
    std::string name, change;
    double before_seconds = 0, after_seconds = 0;
  };
  std::vector<Layer> layers;                     // that changed
  double before_seconds = 0, after_seconds = 0;  // of these and of the copies that came with them, or of the whole model
};

// Of the layers that a plan pads, both in the type that the target has for them.
Prediction predict_padding(const PadPlan& plan, const PadTarget& target);

// Of the products of two models of the same nodes, both as they are, planned for the target. Layers that one step computes in
// either stand for one another together. Errors: those of planning.
Result<Prediction> predict_layers(const Document& before, const Document& after, const std::vector<InputBinding>& inputs,
                                  const PadTarget& target);

std::vector<std::string> to_lines(const Prediction& prediction);

}  // namespace sparkle::fix
