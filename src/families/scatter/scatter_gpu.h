// How GPUs take updates: those that may meet at one place one after the other, or by claims.
#pragma once

#include "families/scatter/scatter.h"
#include "families/stage.h"

namespace sparkle {

struct ScatterShares {
  int64_t parallel = 1, serial = 1;  // updates that never meet, times those that may
  int64_t slots = 1;                 // places that updates claim, each for all of its slice
  bool claims = false;               // without a reduction the last of several stays
};

inline ScatterShares scatter_shares(const Stage& stage) {
  const auto& p = get<ScatterParams>(stage.params);
  const Dims &indices = stage.inputs[1].shape, &updates = stage.inputs[2].shape, &y = stage.outputs[0].shape;
  ScatterShares s;
  if (p.form == ScatterForm::elements) {
    s.serial = indices[p.axis];
    for (int i = 0; i < indices.size(); ++i) s.parallel *= i == p.axis ? 1 : indices[i];
    s.slots = y.product();
  } else {
    const int outer = indices.size() - 1;
    for (int i = 0; i < updates.size(); ++i) (i < outer ? s.serial : s.parallel) *= updates[i];
    for (int i = 0; i < indices[outer]; ++i) s.slots *= y[i];
  }
  s.claims = p.reduction == ScatterReduction::none && s.serial > 1;
  return s;
}

}  // namespace sparkle
