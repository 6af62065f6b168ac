#include "fix/pad/channels.h"

namespace sparkle::fix {

Runs Channels::add(int64_t size, const std::string& name, bool pinned) {
  Node node;
  node.size = node.grown = size;
  node.pinned = pinned;
  node.name = name;
  runs_.push_back(std::move(node));
  return {{static_cast<int>(runs_.size()) - 1, 1}};
}

int Channels::root(int id) const {
  while (runs_[static_cast<size_t>(id)].same_as >= 0) id = runs_[static_cast<size_t>(id)].same_as;
  return id;
}

Runs Channels::expand(const Runs& list) const {
  Runs found;
  for (const Run& run : list) {
    const int id = root(run.id);
    const Node& node = runs_[static_cast<size_t>(id)];
    if (node.parts.empty()) {
      found.push_back({id, run.inner});
      continue;
    }
    Runs parts;
    for (int part : node.parts) parts.push_back({part, run.inner});
    for (const Run& part : expand(parts)) found.push_back(part);
  }
  return found;
}

int64_t Channels::size(const Runs& list) const {
  int64_t sum = 0;
  for (const Run& run : list) sum += run_size(root(run.id)) * run.inner;
  return sum;
}

int64_t Channels::grown(const Runs& list) const {
  int64_t sum = 0;
  for (const Run& run : expand(list)) sum += grown(run.id) * run.inner;
  return sum;
}

void Channels::cut(int id, int64_t at) {
  const Node node = runs_[static_cast<size_t>(id)];
  std::vector<int> parts;
  for (const int64_t size : {at, node.size - at}) {
    const Runs part = add(size, node.name, node.pinned);
    parts.push_back(part[0].id);
  }
  runs_[static_cast<size_t>(id)].parts = parts;
}

void Channels::join(int a, int b) {
  if (a == b) return;
  Node &to = runs_[static_cast<size_t>(a)], &from = runs_[static_cast<size_t>(b)];
  to.pinned = to.pinned || from.pinned;
  from.same_as = a;
}

// Each round makes the first runs that differ one, or cuts the longer of them: sizes only shrink.
bool Channels::unify(const Runs& a, const Runs& b) {
  for (;;) {
    const Runs x = expand(a), y = expand(b);
    size_t i = 0;
    while (i < x.size() && i < y.size() && x[i] == y[i]) ++i;
    if (i == x.size() && i == y.size()) return true;
    if (i == x.size() || i == y.size() || x[i].inner != y[i].inner) return pin(a), pin(b), false;
    const int64_t sx = run_size(x[i].id), sy = run_size(y[i].id);
    if (sx == sy) join(x[i].id, y[i].id);
    else if (sx > sy) cut(x[i].id, sy);
    else cut(y[i].id, sx);
  }
}

Runs Channels::part(const Runs& list, int64_t begin, int64_t end) {
  for (const int64_t at : {begin, end}) {
    int64_t position = 0;
    for (const Run& run : expand(list)) {
      const int64_t size = run_size(run.id) * run.inner;
      if (at > position && at < position + size) {
        if ((at - position) % run.inner != 0) return {};
        cut(run.id, (at - position) / run.inner);
        break;
      }
      position += size;
    }
  }
  // A cut inside a run that stands twice in the list cuts it at both places: positions are found anew.
  Runs found;
  int64_t position = 0;
  for (const Run& run : expand(list)) {
    if (position >= begin && position < end) found.push_back(run);
    position += run_size(run.id) * run.inner;
  }
  return found;
}

Runs Channels::repeated(const Runs& list, int64_t count) {
  const int64_t whole = size(list);
  if (count < 1 || whole % count != 0) return {};
  const int64_t step = whole / count;
  Runs first;
  for (int64_t i = 0; i < count; ++i) {
    const Runs next = part(list, i * step, (i + 1) * step);
    if (next.empty()) return {};
    if (i == 0) first = next;
    else if (!unify(first, next)) return {};
  }
  return expand(first);
}

void Channels::pin(const Runs& list) {
  for (const Run& run : expand(list)) runs_[static_cast<size_t>(run.id)].pinned = true;
}

std::vector<int> Channels::roots() const {
  std::vector<int> found;
  for (size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].same_as < 0 && runs_[i].parts.empty()) found.push_back(static_cast<int>(i));
  return found;
}

AxisMap Channels::map(const Runs& list) const {
  AxisMap map;
  for (const Run& run : expand(list)) {
    const int64_t size = run_size(run.id) * run.inner;
    const bool follows = !map.parts.empty() && map.parts.back().from + map.parts.back().size == map.old_size &&
                         map.parts.back().to + map.parts.back().size == map.new_size;
    if (follows) map.parts.back().size += size;
    else map.parts.push_back({map.old_size, map.new_size, size});
    map.old_size += size;
    map.new_size += grown(run.id) * run.inner;
  }
  return map;
}

}  // namespace sparkle::fix
