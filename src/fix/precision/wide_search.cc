#include "fix/precision/wide_search.h"

#include <algorithm>

namespace sparkle::fix {
namespace {

constexpr double kLeft = 0.7, kLeastShare = 1e-6;

// The kept groups without `count` of them from `from` on.
std::vector<const LayerGroup*> without(const std::vector<const LayerGroup*>& kept, size_t from, size_t count) {
  std::vector<const LayerGroup*> fewer = kept;
  const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(from);
  fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  return fewer;
}

// From the least harmful on, which stand last: as many at once as went well before, so that many take few tries.
Status give_back(WideChoice& choice, const WideSearch& search) {
  size_t end = choice.groups.size(), count = std::max<size_t>(1, end / 2);
  for (int tries = 0; tries < search.most_tries && end > 0; ++tries) {
    count = std::min(count, end);
    auto fewer = without(choice.groups, end - count, count);
    SPARKLE_TRY(proof, search.attempt(layers_of(fewer)));
    if (search.good(proof)) {
      choice.groups = std::move(fewer), choice.proof = std::move(proof);
      end -= count, count *= 2;
    } else if (count > 1) {
      count = (count + 1) / 2;
    } else {
      --end;  // this one stays
    }
  }
  return ok();
}

}  // namespace

Layers layers_of(const std::vector<const LayerGroup*>& groups) {
  Layers layers;
  for (const LayerGroup* g : groups) layers.insert(g->tensors.begin(), g->tensors.end());
  return layers;
}

Result<WideChoice> choose_wide(const std::vector<LayerGroup>& groups, const WideSearch& search) {
  WideChoice choice;
  const auto order = worst_groups(groups, -1);  // all of them
  double share = 1;
  for (int tries = 0; tries < search.most_tries && !choice.good; ++tries) {
    auto more = choice.groups;
    if (2 * tries < search.most_tries)
      while (more.size() == choice.groups.size() && share > kLeastShare) share *= kLeft, more = worst_groups(groups, share);
    // Errors alone do not say enough; one layer at least becomes narrow.
    if (more.size() == choice.groups.size())
      more.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>((more.size() + order.size()) / 2));
    if (more.size() == choice.groups.size()) break;
    choice.groups = std::move(more);
    SPARKLE_TRY(proof, search.attempt(layers_of(choice.groups)));
    choice.good = search.good(proof);
    choice.proof = std::move(proof);
  }
  if (choice.good) SPARKLE_CHECK(give_back(choice, search));
  return choice;
}

}  // namespace sparkle::fix
