#include "backends/vulkan/sources.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "backends/vulkan/kernels/elements/pointwise_text.h"
#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::vulkan {
namespace {

// What the kernels ask of a driver, by the units that the description has.
Features features_of(const Device& device) {
  Features f;
  f.f16 = device.unit("fma-f16") != nullptr;
  f.i8 = f.i16 = device.unit("alu-i8") != nullptr;
  f.f64 = device.unit("alu-f64") != nullptr;
  f.dot = device.unit("dot-i8") != nullptr;
  f.cooperative = device.unit("coopmat-f16") != nullptr;
  f.keeps_nan = true;
  const MathUnit* lanes = device.unit("fma-f32");
  f.most_subgroup = static_cast<uint32_t>(std::max(0, device.limits.subgroup_size));
  f.least_subgroup = lanes ? static_cast<uint32_t>(lanes->n) : f.most_subgroup;
  f.subgroup_size = f.least_subgroup < f.most_subgroup;
  return f;
}

// The names of specialization constants by their numbers: OpName and OpDecorate SpecId of a SPIR-V module.
std::map<uint32_t, std::string> constant_names(std::span<const uint32_t> words) {
  constexpr uint32_t kOpName = 5, kOpDecorate = 71, kSpecId = 1, kHeader = 5;
  std::map<uint32_t, std::string> by_id, by_number;
  for (size_t at = kHeader; at < words.size();) {
    const uint32_t length = words[at] >> 16, op = words[at] & 0xffff;
    if (length == 0 || at + length > words.size()) break;
    if (op == kOpName && length > 2) {
      const auto* text = reinterpret_cast<const char*>(&words[at + 2]);
      by_id[words[at + 1]] = std::string(text, strnlen(text, (length - 2) * 4));
    }
    if (op == kOpDecorate && length == 4 && words[at + 2] == kSpecId) by_number[words[at + 3]] = by_id[words[at + 1]];
    at += length;
  }
  return by_number;
}

// Keeps what it is asked for and compiles nothing.
class AskedFor final : public Pipelines {
 public:
  Result<const Pipeline*> get(const std::string& name, std::span<const uint32_t> words,
                              std::span<const SpecializationConstant> constants, uint32_t subgroup) override {
    KernelSource source;
    source.shader = name;
    source.subgroup = subgroup;
    const auto names = constant_names(words);
    for (const auto& [number, value] : constants) {
      if (number < 3) {
        source.group[number] = value;
        continue;
      }
      const auto at = names.find(number);
      if (at != names.end()) source.constants.push_back({at->second, value});
    }
    sources.push_back(std::move(source));
    return &nothing_;
  }
  std::vector<KernelSource> sources;

 private:
  Pipeline nothing_;
};

}  // namespace

Result<std::vector<KernelSource>> sources_of(const Stage& stage, const Schedule& schedule, const Device& device,
                                             uint32_t constants) {
  const KernelFactory make = factory_of(stage.family());
  if (!make || variant_of(schedule) == "no_kernel")
    return Error{Reason::no_kernel, "there is no Vulkan kernel for the " + std::string(name_of(stage.family())) + " family"};
  PhysicalDevice described;
  described.name = device.name;
  described.features = features_of(device);
  described.description = device;
  auto asked = std::make_shared<AskedFor>();
  SPARKLE_TRY(kernel, make(stage, schedule, {Context::described(std::move(described)), nullptr, asked}, constants));
  if (const auto* params = get_if<PointwiseParams>(&stage.params); params && !asked->sources.empty()) {
    std::vector<DType> types;
    for (const TensorDesc& d : stage.inputs) types.push_back(d.dtype);
    SPARKLE_TRY(text, pointwise_text(*params, types, stage.outputs[0].dtype, {true, false}));
    KernelSource& source = asked->sources.back();
    source.shader = "pointwise " + expression(*params);
    const size_t at = text.glsl.find(" program("), line = text.glsl.rfind('\n', at);
    source.program = text.glsl.substr(line + 1);
  }
  return std::move(asked->sources);
}

}  // namespace sparkle::vulkan
