// Crossings: where a plan has steps on the host of its device, buffers that both sides touch live in both memories, and steps
// of transfer bring the bytes over. Consecutive steps of one side have their transfers in front of them all.
#pragma once

#include <vector>

#include "device/device.h"
#include "plan/memory/memory.h"
#include "plan/plan.h"

namespace sparkle {

// What the tensors of a plan lie in, while it is put together.
struct PlanBuffers {
  std::vector<int> of_tensor;  // the buffer of each plan tensor
  std::vector<BufferLife> lives;
  std::vector<PlaceKind> kinds;  // arena or host: to be given a place
};

// Gives the host's steps tensors of the host's arena and puts the transfers in. Inputs and outputs of the plan lie on the
// device; constants are where their readers are. Leaves a plan without such steps as it is.
void add_crossings(Plan& plan, PlanBuffers& buffers, const Device& device);

}  // namespace sparkle
