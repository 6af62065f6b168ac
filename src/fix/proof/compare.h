// How far the answers of a changed model are from those of the original.
#pragma once

#include <string>
#include <vector>

#include "base/tensor.h"

namespace sparkle::fix {

// Of one output over all samples.
struct Difference {
  std::string name;
  bool same_bits = true;
  double largest = 0;    // max |a - b| / max |b|, of the worst sample
  double cosine = 1;     // of the worst sample
  bool classes = false;  // the output is a row of classes
  int samples = 0, same_top1 = 0;
};

// Adds what one sample shows; `wanted` is the original's output. NaN beside NaN is the same, beside a number all is lost.
void add_sample(Difference& difference, const HostTensor& wanted, const HostTensor& found);
// Adds what other samples of the same output showed.
void add(Difference& difference, const Difference& others);

// sum (a - b)^2 / sum b^2, as a root: what a layer adds to this is where errors enter.
double relative_error(const HostTensor& wanted, const HostTensor& found);

// Whether a tensor of this shape is a row of classes: [N, C], or [N, C, 1, 1].
bool is_classes(const Dims& shape);

}  // namespace sparkle::fix
