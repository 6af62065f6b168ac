#include "backends/vulkan/kernels/tail.h"

#include <bit>

#include "backends/vulkan/kernels/gemm_record.h"
#include "backends/vulkan/shaders/glsl_library.h"
#include "backends/vulkan/kernels/pointwise_text.h"
#include "families/tails.h"
#include "families/epilogue.h"

namespace sparkle::vulkan {
namespace {

std::string number(size_t i) { return std::to_string(i); }

// "Elements t0; Elements t1;"
std::string each(size_t count, std::string_view before, std::string_view behind) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += std::string(before) + number(i) + std::string(behind);
  return text;
}

}  // namespace

Result<std::string> tail_text(const PointwiseParams& tail, bool batches, bool keeps_nan) {
  const auto operands = static_cast<size_t>(tail.inputs - 1);
  SPARKLE_TRY(program, float_program(tail, "tail_program", "tail_parameter"));
  std::string text = keeps_nan ? std::string(kKeepsNan) : std::string();
  // Activations have functions of these names too.
  const std::string_view twice[] = {"tanh_of", "erf_of"};
  for (const std::string_view name : twice) text += "#define " + std::string(name) + " tail_" + std::string(name) + "\n";
  text += library_parts(program) + "float tail_parameter(int i);\n" + program;
  for (const std::string_view name : twice) text += "#undef " + std::string(name) + "\n";

  const std::string count = "[" + number(operands) + "];";
  text += "#define TAIL_OPERANDS " + each(operands, "Elements t", "; ") + "\n#define TAIL_RECORD ";
  if (operands > 0) text += "ivec4 tail_strides" + count + " ivec4 tail_instance" + count + " int tail_channel" + count;
  text += " float tail_parameters[" + number(2 * tail.program.size()) + "];\n";
  text +=
      "#define TAIL_FUNCTION float tail_parameter(int i) { return push.record.tail_parameters[i]; } "
      "float tailed(float y, ivec4 pixel, int channel, int instance) { ";
  if (batches)
    text +=
        "ivec4 at; int rest = instance; [[unroll]] for (int i = 3; i >= 0; --i) { at[i] = rest % G.instances[i]; "
        "rest /= G.instances[i]; } ";
  text += "return tail_program(y";
  for (size_t i = 0; i < operands; ++i) {
    const std::string here = "[" + number(i) + "]";
    text += ", float(push.t" + number(i) + ".v[dot4(pixel, push.record.tail_strides" + here +
            ") + channel * push.record.tail_channel" + here +
            (batches ? " + dot4(at, push.record.tail_instance" + here + ")" : "") + "])";
  }
  return text + "); }\n#define TAILED(y, pixel, channel, instance) tailed(y, pixel, channel, instance)\n";
}

Result<Tail> tail_of(const Stage& stage, const Context& context) {
  const Epilogue* e = epilogue_of(stage.params);
  Tail tail;
  if (!e || !e->has_tail()) return tail;
  if (!can_be_tail(e->tail))
    return Error{Reason::tail_not_served, "The Vulkan kernels take programs of up to 4 operands behind a sum."};
  const size_t operands = static_cast<size_t>(e->tail_operands()), first = stage.inputs.size() - operands;
  std::vector<Places> places;
  bool batches = false;
  for (size_t i = first; i < stage.inputs.size(); ++i) {
    places.push_back(places_of(stage, stage.inputs[i]));
    for (const int32_t stride : places.back().instance) batches |= stride != 0;
    tail.operands.push_back({static_cast<int>(i)});
  }
  const auto add = [&](int32_t word) { tail.record.push_back(static_cast<uint32_t>(word)); };
  for (const Places& p : places)
    for (const int32_t stride : p.row) add(stride);
  for (const Places& p : places)
    for (const int32_t stride : p.instance) add(stride);
  for (const Places& p : places) add(p.channel);
  for (const PointwiseInstruction& step : e->tail.program)
    for (const double parameter : {step.a, step.b})
      tail.record.push_back(std::bit_cast<uint32_t>(static_cast<float>(parameter)));
  SPARKLE_TRY(text, tail_text(e->tail, batches, context.features().keeps_nan));
  tail.text.glsl = std::move(text);
  tail.text.name = expression(e->tail) + " " + std::to_string(std::hash<std::string>{}(tail.text.glsl));
  return tail;
}

Result<std::shared_ptr<DeviceBuffer>> upload_with(const Workshop& shop, const void* record, size_t size, const Tail& tail) {
  std::vector<std::byte> bytes(size + tail.record.size() * 4);
  std::memcpy(bytes.data(), record, size);
  if (tail.there()) std::memcpy(bytes.data() + size, tail.record.data(), tail.record.size() * 4);
  return shop.upload(bytes.data(), static_cast<int64_t>(bytes.size()));
}

}  // namespace sparkle::vulkan
