// libFuzzer: any bytes as an ONNX model whose channels are padded and constants folded; what comes of it is a model again.
// Built with SPARKLE_SANITIZE=ON and clang.
#include <cstdio>
#include <cstdlib>

#include "device/known/known_devices.h"
#include "fix/pad/plan.h"
#include "fix/rewrites/exact.h"

namespace {

int padded(const uint8_t* data, size_t size) {
  ::onnx::ModelProto model;
  if (!model.ParseFromArray(data, static_cast<int>(size)) || !model.has_graph()) return 0;
  auto doc = sparkle::fix::Document::take(std::move(model), "fuzz");
  if (!doc.ok()) return 0;
  const auto graph = doc->to_graph();
  if (!graph.ok()) return 0;
  const auto bindings = sparkle::fix::bindings_of(*graph, {});
  if (!bindings.ok()) return 0;
  const auto values = sparkle::fix::constants_of(*doc, *bindings);
  if (!values.ok()) return 0;
  (void)sparkle::fix::fold_constants(*doc, *values);
  (void)sparkle::fix::fold_batch_normalization(*doc);
  (void)sparkle::fix::merge_layouts(*doc);
  const auto tensors = sparkle::fix::infer_tensors(*doc, *bindings);
  if (!tensors.ok()) return 0;
  // Once as `check` asks, for a machine whose units want multiples.
  static const auto device = sparkle::known_device("h200");
  (void)sparkle::fix::plan_padding(*doc, *tensors, sparkle::fix::default_padding(*device, sparkle::Precision::fp16));
  const auto plan = sparkle::fix::plan_padding(*doc, *tensors, {8, 1});
  if (!sparkle::fix::apply_padding(*doc, plan, *tensors).ok()) return 0;
  const auto again = sparkle::fix::infer_tensors(*doc, *bindings);
  if (again.ok()) return 0;
  std::fprintf(stderr, "what was a model is none any more: %s\n", again.error().message.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { return padded(data, size); }
