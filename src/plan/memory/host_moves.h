// Host moves: steps between two of the host's that the device could do as well, and that are cheaper there, since what they
// read and write would have to go over the link. Decided by predicted times alone, for the steps of a draft as they were
// chosen.
#pragma once

#include <functional>
#include <optional>

#include "plan/choose/choose.h"
#include "plan/memory/sides.h"

namespace sparkle {

// The host's choice for step `step`; nothing where it has no kernel for it.
using ChooseOnHost = std::function<std::optional<Choice>(size_t step)>;

// What the steps cost and what passes between them, all but those of the host on the device: buffers as crossings bring them
// over (crossings.h).
SideGraph side_graph(const Draft& draft, const std::vector<const DraftStep*>& steps, const std::vector<Choice>& choices,
                     const Device& device);

// Puts the host's choice in the place of the device's wherever that is cheaper for the whole; `moves`: of these steps instead,
// whatever it costs. True where any changed. Nothing does in a plan without steps that only the host can do.
bool move_to_host(const Draft& draft, const std::vector<const DraftStep*>& steps, const Device& device,
                  const ChooseOnHost& choose_on_host, const std::vector<size_t>* moves, std::vector<Choice>& choices);

}  // namespace sparkle
