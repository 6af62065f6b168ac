// libFuzzer: any text as a convolution, as a layer list and a problem file; what is accepted has a plan. Built with
// SPARKLE_SANITIZE=ON.
#include <cstdlib>

#include "algorithms/problem_file.h"
#include "plan/choose/choose.h"

namespace {

void plan(const sparkle::Problem& problem) {
  if (!(problem.nominal_flops() >= 0)) std::abort();
  const auto back = sparkle::from_text<sparkle::Problem>(sparkle::to_text(problem));
  if (!back.ok() || !(*back == problem)) std::abort();
  static const sparkle::Device device = [] {
    sparkle::Device d;
    d.units.push_back({"avx2", sparkle::UnitKind::vector_fma, 1, 8, 1});
    return d;
  }();
  const auto operands = sparkle::operands_of(problem);
  (void)sparkle::choose(sparkle::AnchorCall{problem, operands.inputs, operands.output}, device, {}).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto problem = sparkle::parse_conv(text); problem.ok()) plan(*problem);
  if (const auto layers = sparkle::parse_layers(text, "list"); layers.ok())
    for (const auto& layer : *layers) plan(layer.problem);
  // A problem file that names itself, too.
  const sparkle::ReadText again = [&](const std::string&) { return sparkle::Result<std::string>(std::string(text)); };
  if (size < 4096)
    if (const auto file = sparkle::parse_problem_file(text, "file", {}, again); file.ok())
      for (size_t i = 0; i < file->problems.size() && i < 32; ++i) plan(file->problems[i].problem);
  return 0;
}
