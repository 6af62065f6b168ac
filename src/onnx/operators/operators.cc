#include "onnx/operators/operators.h"

#include <string>
#include <unordered_map>

namespace sparkle {
namespace {

constexpr OperatorVersions kOperators[] = {
#define OPERATOR(type, withdrawn, ...) {type, withdrawn, {{__VA_ARGS__}}},
#include "onnx/operators/operators.inc"
#undef OPERATOR
};

}  // namespace

const OperatorForm& OperatorVersions::in(int64_t opset) const {
  size_t at = 0;
  while (at + 1 < forms.size() && forms[at + 1].opset != 0 && forms[at + 1].opset <= opset) ++at;
  return forms[at];
}

std::span<const OperatorVersions> all_operators() { return kOperators; }

const OperatorVersions* versions_of(std::string_view type) {
  static const auto* const table = [] {
    auto* rows = new std::unordered_map<std::string_view, const OperatorVersions*>;
    for (const OperatorVersions& row : kOperators) rows->emplace(row.type, &row);
    return rows;
  }();
  const auto at = table->find(type);
  return at == table->end() ? nullptr : at->second;
}

}  // namespace sparkle
