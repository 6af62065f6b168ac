// Names of the gemm family's enums.
#include "families/gemm/gemm.h"

namespace sparkle {

std::string_view name_of(Loader loader) { return loader == Loader::dense ? "dense" : "window"; }
bool parse_name(std::string_view text, Loader& loader) {
  if (text != "dense" && text != "window") return false;
  loader = text == "dense" ? Loader::dense : Loader::window;
  return true;
}

std::string_view name_of(GemmOrder order) { return order == GemmOrder::rows ? "rows" : "columns"; }
bool parse_name(std::string_view text, GemmOrder& order) {
  if (text != "rows" && text != "columns") return false;
  order = text == "rows" ? GemmOrder::rows : GemmOrder::columns;
  return true;
}

}  // namespace sparkle
