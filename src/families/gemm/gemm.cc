// Names of the gemm family's enums.
#include "families/gemm/gemm.h"

#include <iterator>

namespace sparkle {

std::string_view name_of(Loader loader) { return loader == Loader::dense ? "dense" : "window"; }
bool parse_name(std::string_view text, Loader& loader) {
  if (text != "dense" && text != "window") return false;
  loader = text == "dense" ? Loader::dense : Loader::window;
  return true;
}

constexpr std::string_view kOperandTypes[] = {"own", "f16", "bf16", "tf32"};
std::string_view name_of(OperandType type) { return kOperandTypes[static_cast<size_t>(type)]; }
bool parse_name(std::string_view text, OperandType& type) {
  for (size_t i = 0; i < std::size(kOperandTypes); ++i)
    if (text == kOperandTypes[i]) return type = static_cast<OperandType>(i), true;
  return false;
}

bool multiplies_float8(const Stage& stage) {
  const auto& p = get<GemmParams>(stage.params);
  const auto type_of = [&](size_t i) { return stage.inputs[i].dtype; };
  const DType type = type_of(0), result = stage.outputs[0].dtype;
  if ((type != DType::f8e4m3fn && type != DType::f8e5m2) || type_of(1) != type || p.operands != OperandType::own) return false;
  if (result != DType::f32 && result != DType::f16 && result != DType::bf16) return false;
  const size_t channels = 2 + static_cast<size_t>(p.epilogue.scale) + static_cast<size_t>(p.epilogue.bias);
  for (size_t i = 2; i < stage.inputs.size(); ++i)
    if (type_of(i) != (i < channels ? DType::f32 : result)) return false;
  return true;
}

std::string_view name_of(GemmOrder order) { return order == GemmOrder::rows ? "rows" : "columns"; }
bool parse_name(std::string_view text, GemmOrder& order) {
  if (text != "rows" && text != "columns") return false;
  order = text == "rows" ? GemmOrder::rows : GemmOrder::columns;
  return true;
}

}  // namespace sparkle
