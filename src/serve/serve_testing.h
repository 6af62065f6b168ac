// For tests: small models with an open first axis, whose rows depend on each other or do not, and requests for them.
#pragma once

#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "networks/network_builder.h"
#include "run/session.h"
#include "serve/protocol.h"

namespace sparkle::testing {

// x [N,C] -> y [N,3]: a product, and where `across` a softmax over the first axis behind it.
inline Graph rows_network(bool across = false, int64_t C = 4) {
  NetworkBuilder net(across ? "across" : "apart", 7, false);
  TensorId y = net.dense("fc", net.input("x", {-1, C}), 3, false);
  if (across) y = net.op("softmax", "Softmax", SoftmaxOp{.axis = 0}, {y}, 3);
  net.output(y, "y", {-1, 3});
  return net.finish();
}

inline std::shared_ptr<Session> open_rows(bool across = false, std::shared_ptr<Backend> backend = make_reference_backend()) {
  auto session = Session::open(rows_network(across), std::move(backend), {});
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::shared_ptr<Session>(std::move(*session)) : nullptr;
}

// A model of every type that the protocol names, for what reads and prints: nothing of it runs.
inline serve::ModelDescription described_model() {
  serve::ModelDescription model{"m", "1", {}, {}};
  model.inputs.push_back({"x", DType::f32, {-1, 2}, {}});
  model.outputs.push_back({"y", DType::f32, {-1, 2}, {}});
  return model;
}

}  // namespace sparkle::testing
