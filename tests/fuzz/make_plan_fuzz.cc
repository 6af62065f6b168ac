// libFuzzer: any bytes as a model, all the way to its plan: read, simplify, bind, simplify, plan, print. Built with
// SPARKLE_SANITIZE=ON.
#include <cstdlib>

#include "mutate_model.h"
#include "onnx/reader.h"
#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto graph = sparkle::read_onnx_bytes(std::as_bytes(std::span(data, size)), "", "fuzz");
  if (!graph.ok() || !sparkle::simplify(*graph).ok()) return 0;
  std::vector<sparkle::InputBinding> bindings;
  for (sparkle::TensorId id : graph->inputs) {
    sparkle::Dims shape = graph->tensor(id).shape;
    for (int64_t& axis : shape) axis = axis < 0 ? 2 : axis;
    bindings.push_back({shape, std::nullopt});
  }
  auto bound = sparkle::bind(*graph, bindings);
  if (!bound.ok() || !sparkle::simplify(*bound).ok()) return 0;
  static const sparkle::Device device = [] {
    sparkle::Device d;
    d.units.push_back({"avx2", sparkle::UnitKind::vector_fma, 1, 8, 1});
    return d;
  }();
  const auto plan = sparkle::make_plan(*bound, device);
  if (!plan.ok()) {
    if (plan.error().message.empty()) std::abort();
    return 0;
  }
  const auto hashes = sparkle::constant_hashes(sparkle::to_text(*plan));
  if (!hashes.ok() || hashes->size() != plan->constants.size()) std::abort();
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return sparkle::fuzz::mutate_model(data, size, most, seed, LLVMFuzzerMutate);
}
