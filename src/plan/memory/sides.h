// Sides: which steps of a plan the host does, where it has to do some and could do others. A step goes over where the transfers
// that this spares cost more than it takes longer there. Steps and what passes between them are a graph whose least cut is the
// cheapest plan of all (Ford and Fulkerson; the edges for bytes with several readers as for hypergraphs, Lawler 1973).
#pragma once

#include <vector>

namespace sparkle {

// Seconds of a step on either side; infinite where that side cannot do it, which is true of one of them at most.
struct SideCost {
  double device = 0, host = 0;
};

// Bytes that one step, or the caller, writes and others read; they go over the link once at most, if somebody reads them on the
// side that did not write them.
struct SharedBytes {
  int writer = -1;              // a step; -1: the caller, on the device
  std::vector<int> readers;     // steps
  bool read_by_caller = false;  // on the device
  double seconds = 0;           // over the link
};

struct SideGraph {
  std::vector<SideCost> steps;
  std::vector<SharedBytes> shared;
};

// What steps and transfers take together; `on_host`: one entry per step.
double seconds_of(const SideGraph& graph, const std::vector<bool>& on_host);

// The steps that the host does in the cheapest plan; of equally cheap ones that with the fewest of them, but for rounding.
std::vector<bool> cheapest_sides(const SideGraph& graph);

// Steps that lie between two steps which only the host can do: they read what came from one, and another reads what comes of
// them.
std::vector<bool> between_host_steps(const SideGraph& graph);

}  // namespace sparkle
