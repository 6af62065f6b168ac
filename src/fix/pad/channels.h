// Runs of channels, the unknowns of padding. A channel axis is a list of runs: what a convolution makes is one, a concatenation
// lists those of its parts, a residual makes two lists one by cutting runs until they match. Each run may grow behind its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparkle::fix {

// A run in a list, each of its channels `inner` neighbouring elements (what Flatten makes of a map).
struct Run {
  int id = 0;
  int64_t inner = 1;
  friend bool operator==(const Run&, const Run&) = default;
};
using Runs = std::vector<Run>;

// Where the elements of an axis go: parts of the old axis at places of the new one, in order; what lies between is padding.
struct AxisMap {
  struct Part {
    int64_t from = 0, to = 0, size = 0;
  };
  int64_t old_size = 0, new_size = 0;
  std::vector<Part> parts;
  bool identity() const { return old_size == new_size; }
};

class Channels {
 public:
  Runs add(int64_t size, const std::string& name, bool pinned);

  // The list in runs that are not cut further.
  Runs expand(const Runs& list) const;
  int64_t size(const Runs& list) const;
  // The same channels in both: from here on they grow alike. False, and nothing grows, where inner sizes do not fit.
  bool unify(const Runs& a, const Runs& b);
  // The part from `begin` to `end` of the list; cuts runs. Empty where the cut lies inside a channel.
  Runs part(const Runs& list, int64_t begin, int64_t end);
  // `count` equal parts that grow alike: the first of them. Empty where they cannot.
  Runs repeated(const Runs& list, int64_t count);
  // These runs never grow.
  void pin(const Runs& list);

  // -- once all is known
  std::vector<int> roots() const;  // runs that stand for themselves and are not cut
  int64_t run_size(int id) const { return runs_[static_cast<size_t>(id)].size; }
  int64_t grown(int id) const { return runs_[static_cast<size_t>(id)].grown; }
  void grow(int id, int64_t to) { runs_[static_cast<size_t>(id)].grown = to; }
  bool pinned(int id) const { return runs_[static_cast<size_t>(id)].pinned; }
  const std::string& run_name(int id) const { return runs_[static_cast<size_t>(id)].name; }
  int64_t grown(const Runs& list) const;
  AxisMap map(const Runs& list) const;

 private:
  struct Node {
    int64_t size = 0, grown = 0;
    int same_as = -1;
    std::vector<int> parts;
    bool pinned = false;
    std::string name;
  };
  int root(int id) const;
  void cut(int id, int64_t at);
  void join(int a, int b);
  std::vector<Node> runs_;
};

}  // namespace sparkle::fix
