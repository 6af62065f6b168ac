#include "backends/vulkan/kernels/elements/post_op.h"

#include <bit>

#include "backends/vulkan/kernels/products/gemm_record.h"
#include "backends/vulkan/shaders/glsl_library.h"
#include "backends/vulkan/kernels/elements/pointwise_text.h"
#include "families/values/post_ops.h"
#include "families/values/epilogue.h"

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

Result<std::string> post_op_text(const PointwiseParams& post_op, bool batches, bool keeps_nan) {
  const auto operands = static_cast<size_t>(post_op.inputs - 1);
  SPARKLE_TRY(program, float_program(post_op, "post_op_program", "post_op_parameter"));
  std::string text = keeps_nan ? std::string(kKeepsNan) : std::string();
  // Activations have functions of these names too.
  const std::string_view twice[] = {"tanh_of", "erf_of"};
  for (const std::string_view name : twice) text += "#define " + std::string(name) + " tail_" + std::string(name) + "\n";
  text += library_parts(program) + "float post_op_parameter(int i);\n" + program;
  for (const std::string_view name : twice) text += "#undef " + std::string(name) + "\n";

  const std::string count = "[" + number(operands) + "];";
  text += "#define POST_OP_OPERANDS " + each(operands, "Elements t", "; ") + "\n#define POST_OP_RECORD ";
  if (operands > 0)
    text += "ivec4 post_op_strides" + count + " ivec4 post_op_instance" + count + " int post_op_channel" + count;
  text += " float post_op_parameters[" + number(2 * post_op.program.size()) + "];\n";
  text +=
      "#define POST_OP_FUNCTION float post_op_parameter(int i) { return push.record.post_op_parameters[i]; } "
      "float with_post_op(float y, ivec4 pixel, int channel, int instance) { ";
  if (batches)
    text +=
        "ivec4 at; int rest = instance; [[unroll]] for (int i = 3; i >= 0; --i) { at[i] = rest % G.instances[i]; "
        "rest /= G.instances[i]; } ";
  text += "return post_op_program(y";
  for (size_t i = 0; i < operands; ++i) {
    const std::string here = "[" + number(i) + "]";
    text += ", float(push.t" + number(i) + ".v[dot4(pixel, push.record.post_op_strides" + here +
            ") + channel * push.record.post_op_channel" + here +
            (batches ? " + dot4(at, push.record.post_op_instance" + here + ")" : "") + "])";
  }
  return text + "); }\n#define WITH_POST_OP(y, pixel, channel, instance) with_post_op(y, pixel, channel, instance)\n";
}

Result<PostOp> post_op_of(const Stage& stage, const Context& context) {
  const Epilogue* e = epilogue_of(stage.params);
  PostOp post_op;
  if (!e || !e->has_post_op()) return post_op;
  if (!can_be_post_op(e->post_op))
    return Error{Reason::tail_not_served, "The Vulkan kernels take programs of up to 4 operands behind a sum."};
  const size_t operands = static_cast<size_t>(e->post_op_operands()), first = stage.inputs.size() - operands;
  std::vector<OperandStrides> strides;
  bool batches = false;
  for (size_t i = first; i < stage.inputs.size(); ++i) {
    strides.push_back(operand_strides(stage, stage.inputs[i]));
    for (const int32_t stride : strides.back().instance) batches |= stride != 0;
    post_op.operands.push_back({static_cast<int>(i)});
  }
  const auto add = [&](int32_t word) { post_op.record.push_back(static_cast<uint32_t>(word)); };
  for (const OperandStrides& p : strides)
    for (const int32_t stride : p.row) add(stride);
  for (const OperandStrides& p : strides)
    for (const int32_t stride : p.instance) add(stride);
  for (const OperandStrides& p : strides) add(p.channel);
  for (const PointwiseInstruction& step : e->post_op.program)
    for (const double parameter : {step.a, step.b})
      post_op.record.push_back(std::bit_cast<uint32_t>(static_cast<float>(parameter)));
  SPARKLE_TRY(text, post_op_text(e->post_op, batches, context.features().keeps_nan));
  post_op.text.glsl = std::move(text);
  post_op.text.name = expression(e->post_op) + " " + std::to_string(std::hash<std::string>{}(post_op.text.glsl));
  return post_op;
}

Result<std::shared_ptr<DeviceBuffer>> upload_with(const Workshop& shop, const void* record, size_t size,
                                                  const PostOp& post_op) {
  std::vector<std::byte> bytes(size + post_op.record.size() * 4);
  std::memcpy(bytes.data(), record, size);
  if (post_op.there()) std::memcpy(bytes.data() + size, post_op.record.data(), post_op.record.size() * 4);
  return shop.upload(bytes.data(), static_cast<int64_t>(bytes.size()));
}

}  // namespace sparkle::vulkan
