#include "run/choice/predicted.h"

namespace sparkle {

double predicted_transfers(const Plan& plan, const Device& device, const std::vector<HostTensor>& inputs) {
  if (!device.has_workgroups()) return 0;
  double bytes = 0;
  for (const HostTensor& t : inputs) bytes += static_cast<double>(t.size_bytes());
  for (const int t : plan.outputs) bytes += static_cast<double>(plan.tensors[static_cast<size_t>(t)].desc.bytes());
  return transfer_seconds(device, bytes);
}

}  // namespace sparkle
