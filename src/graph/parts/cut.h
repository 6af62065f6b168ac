// A model whose shapes or paths the data decides, cut between the operators that wait for data: each part is an ordinary graph,
// planned by itself, and the host runs what lies between.
#pragma once

#include <variant>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

// Tensors are numbered as in the whole graph.
struct PlannedPart {
  Graph graph;
  std::vector<TensorId> inputs, outputs;
};
struct CutGraph;
struct HostPart {
  Op op;
  std::vector<CutGraph> bodies;
};
struct CutGraph {
  std::vector<std::variant<PlannedPart, HostPart>> steps;  // in an order in which they can run
  std::vector<TensorId> inputs, outputs;
  std::vector<std::pair<TensorId, HostTensor>> constants;  // that host parts read, or that are outputs
  std::vector<GraphTensor> declared;                       // the outputs, as the file declares them
  std::vector<std::vector<TensorId>> last;                 // per step: what nothing reads after it
  size_t tensors = 0;
};

// Part n holds all operators that can run before those which wait for part n's results on the host. An operator waits where a
// value that decides its shape comes from the data of the same part, where it reads rows that the data counts, or where it is a
// HostOp. Takes the graph apart.
CutGraph cut(Graph graph);

}  // namespace sparkle
