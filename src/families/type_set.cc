#include "families/type_set.h"

namespace sparkle {

std::string to_text(TypeSet types) {
  std::string text;
  for (int i = 0; i < kDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    if (!types.has(type)) continue;
    if (!text.empty()) text += ", ";
    text += name_of(type);
  }
  return text;
}

}  // namespace sparkle
