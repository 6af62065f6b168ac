// Which channel axes grow to what, so that products find the channels that a device's units want: a pure plan over the model.
// Exact: what grows is zeros in weights and biases, so padded channels hold 0 - and after functions with f(0) != 0 a constant
// that is finite - and weights of those who read them are zero there. 0 * x is a NaN only where x is infinite or a NaN: no
// operator that could make such a value of padding (Log, Reciprocal, a division by it) lets it pass, so it can come from a real
// value alone, on data where the model itself is not finite.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/problem.h"
#include "device/units/unit_sizes.h"
#include "fix/document/document.h"
#include "fix/pad/channels.h"

namespace sparkle::fix {

// Where padding has to pay: the machine, and the type that its products will have.
struct PadTarget {
  Device device;
  Precision precision = Precision::fp32;
};

inline constexpr double kMostExtra = 0.25;

struct PadOptions {
  int64_t multiple = 8;           // of channels, what the device's units want of the type
  double max_extra = kMostExtra;  // the most extra arithmetic of a chain, as a share of what it has
  std::optional<PadTarget>
      target{};         // channels grow only where that takes less time there; none: wherever they are no multiple
  bool anyway = false;  // also where it takes longer, which is said
};

// With the limit and the multiple that `sparkle fix` takes if nobody says otherwise.
PadOptions default_padding(const Device& device, Precision precision);

struct PadPlan {
  Channels channels;
  struct Axis {
    int axis = 0;
    Runs runs;
    bool zero = true;  // padding holds zeros, else finite constants
  };
  std::map<std::string, Axis> axes;  // per tensor that may grow

  // -- what changes
  struct ConstantEdit {
    int node = 0, input = 0, axis = 0;
    Runs runs;
    double fill = 0;
  };
  std::vector<ConstantEdit> constants;
  struct GroupEdit {  // attribute "group": one a channel
    int node = 0;
    Runs runs;
  };
  std::vector<GroupEdit> groups;
  struct SplitEdit {
    int node = 0;
    std::vector<Runs> parts;
  };
  std::vector<SplitEdit> splits;
  struct SliceEdit {
    int node = 0, entry = 0;  // of starts and ends
    Runs before, inside;
  };
  std::vector<SliceEdit> slices;
  struct PadEdit {
    int node = 0, axis = 0, rank = 0;
    Runs begin, end;
  };
  std::vector<PadEdit> pads;
  struct SizeEdit {  // an element of a shape: Reshape's target, Resize's sizes
    int node = 0, input = 0, axis = 0;
    Runs runs;
  };
  std::vector<SizeEdit> sizes;
  struct Border {  // where padding begins (a Pad is put before these readers) or ends (a Slice)
    std::string tensor;
    int axis = 0;
    Runs runs;
    std::vector<Use> uses;
    bool output = false;  // of the model, besides
    double others = 1;    // elements of the tensor per channel
  };
  std::vector<Border> entries, exits;

  // -- what it costs
  struct Product {
    int node = 0;
    std::string name;
    double macs = 0;
    Runs in, out;      // empty: not padded
    bool one = false;  // in and out are the same channels (depthwise)
    int64_t groups = 1;
    Problem problem{};                             // as it is
    double before_seconds = 0, after_seconds = 0;  // predicted on the target, where there is one
  };
  std::vector<Product> products;
  std::vector<Runs> wanted;  // what products sum over or make: wants to be a multiple
  struct Chain {
    std::vector<std::string> layers;
    double before = 0, after = 0;                  // multiplications
    double before_seconds = 0, after_seconds = 0;  // predicted, those of copies at the borders with them
    double border_seconds = 0;                     // of these
    double extra() const { return before > 0 ? after / before - 1 : 0; }
  };
  std::vector<Chain> chains;
  struct Refused {
    std::string name, why;
    int64_t from = 0, to = 0;
    int run = -1;
  };
  std::vector<Refused> refused;
  struct Heads {
    std::string name;
    int64_t count = 0, size = 0;
    Runs runs;
  };
  std::vector<Heads> heads;

  bool empty() const;
  bool grows(const Product& p) const {
    return channels.grown(p.in) != channels.size(p.in) || channels.grown(p.out) != channels.size(p.out);
  }
  double macs_of(const Product& p) const;
  // The product with its channels as far as they have grown.
  Problem padded(const Product& p) const;
};

// `tensors`: types and shapes of the document's tensors (infer_tensors).
PadPlan plan_padding(const Document& doc, const std::map<std::string, TensorInfo>& tensors, const PadOptions& options);

// "conv1: 3 -> 8 channels in, 67 -> 72 out": a line per product that changes.
std::vector<std::string> to_lines(const PadPlan& plan);

// Changes the document as planned. Errors: bad_model where a constant has not the shape that inference found.
Status apply_padding(Document& doc, const PadPlan& plan, const std::map<std::string, TensorInfo>& tensors);

}  // namespace sparkle::fix
