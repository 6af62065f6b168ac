// What `sparkle fix` would pad in a model for a device, as plain data: src/fix/pad plans it, and `check` asks for that plan, so
// that both say the same.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "device/units/unit_sizes.h"

namespace sparkle {

// A sum of products: its channels, depth and columns now and padded. 0: not of this layer, or not the plan's to change.
struct PaddedLayer {
  int64_t in = 0, in_to = 0, out = 0, out_to = 0;
  std::string refused;  // why some of what units want is left out; a clause
  bool grows() const { return in != in_to || out != out_to; }
};

struct Paddings {
  std::map<std::string, PaddedLayer> layers;  // by the names of nodes, and by those of what nodes make
  double border_seconds = 0;                  // of copies that come with it
};
using AskPaddings = std::function<Paddings(const Device&, Precision)>;

}  // namespace sparkle
