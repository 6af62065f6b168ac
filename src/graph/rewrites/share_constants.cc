// Small constants with equal bytes become one; large ones are compared by their place in memory only.
#include <cstring>
#include <map>
#include <string>

#include "graph/rewrites/rewrites.h"

namespace sparkle {
namespace {
constexpr int64_t kSmall = 1024;  // bytes
}

bool share_constants(Editor& e) {
  std::map<std::string, TensorId> seen;
  std::vector<TensorId> first(e.graph().tensors.size(), kAbsent);
  bool changed = false;
  for (int i = 0; i < e.count(); ++i) {
    for (size_t slot = 0; slot < e.op(i).inputs.size(); ++slot) {
      const TensorId id = e.op(i).inputs[slot];
      const HostTensor* value = e.constant(id);
      if (!value) continue;
      TensorId& same = first[static_cast<size_t>(id)];
      if (same == kAbsent) {
        std::string key = std::string(name_of(value->dtype)) + value->shape.to_string() + ':';
        if (value->size_bytes() <= kSmall) {
          key.append(reinterpret_cast<const char*>(value->bytes.get()), static_cast<size_t>(value->size_bytes()));
        } else {
          const std::byte* place = value->bytes.get();
          key.append(reinterpret_cast<const char*>(&place), sizeof place);
          key += '*';
        }
        same = seen.emplace(std::move(key), id).first->second;
      }
      if (same == id) continue;
      e.set_input(i, slot, same);
      changed = true;
    }
  }
  return changed;
}

}  // namespace sparkle
