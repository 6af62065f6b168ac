// What the tests of planning share: devices of the repository, graphs bound and simplified.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "device/device_json.h"
#include "graph/test_graphs.h"
#include "plan/plan.h"

namespace sparkle::testing {

inline Device device_named(const std::string& name) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/" + name + ".json");
  EXPECT_TRUE(device.ok()) << (device.ok() ? "" : device.error().message);
  return device.ok() ? std::move(*device) : Device{};
}

// The graph as a session plans it; open sizes become `open`.
inline Result<Graph> ready(Graph graph, int64_t open = 1) {
  SPARKLE_CHECK(simplify(graph));
  std::vector<InputBinding> bindings;
  for (TensorId id : graph.inputs) {
    Dims shape = graph.tensor(id).shape;
    for (int64_t& size : shape) size = size < 0 ? open : size;
    bindings.push_back({shape, std::nullopt});
  }
  SPARKLE_TRY(bound, sparkle::bind(graph, bindings));
  SPARKLE_CHECK(simplify(bound));
  return bound;
}

inline ConvOp conv_op(int64_t pad, int64_t groups = 1) {
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {pad, pad};
  conv.groups = groups;
  return conv;
}

}  // namespace sparkle::testing
