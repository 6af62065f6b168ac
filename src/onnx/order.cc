#include "onnx/order.h"

#include <functional>
#include <queue>

namespace sparkle {

std::vector<int> topological_order(const std::vector<std::vector<int>>& needs) {
  const size_t count = needs.size();
  std::vector<std::vector<int>> readers(count);
  std::vector<size_t> missing(count, 0);
  for (size_t i = 0; i < count; ++i) {
    missing[i] = needs[i].size();
    for (int producer : needs[i]) readers[static_cast<size_t>(producer)].push_back(static_cast<int>(i));
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i)
    if (missing[i] == 0) ready.push(static_cast<int>(i));
  std::vector<int> order;
  order.reserve(count);
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int reader : readers[static_cast<size_t>(node)])
      if (--missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
  }
  return order;
}

}  // namespace sparkle
