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

std::string_view name_of(GemmOrder order) { return order == GemmOrder::rows ? "rows" : "columns"; }
bool parse_name(std::string_view text, GemmOrder& order) {
  if (text != "rows" && text != "columns") return false;
  order = text == "rows" ? GemmOrder::rows : GemmOrder::columns;
  return true;
}

}  // namespace sparkle
