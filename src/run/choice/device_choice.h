// Which of the devices here runs a model: by prediction where that is clear, by measuring where it is not, and as before where
// nothing speaks against it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sparkle {

// A device that may run the model. Times are seconds of a run from the host's memory to the host's memory.
struct DeviceOffer {
  std::string name;                         // "cpu", "vulkan:0"
  bool software = false;                    // a GPU's interface on the host's own cores: never preferred to these
  std::string unusable;                     // why it cannot run the model; empty: it can
  double predicted = 0;                     // transfers included
  double transfers = 0;                     // of that
  std::function<Result<double>()> measure;  // the median of some runs, outputs on the host
};

struct DeviceRow {
  std::string name, why;  // why it was passed over, or chosen
  double predicted = 0, transfers = 0;
  std::optional<double> measured;
};
struct DeviceDecision {
  std::string device;
  std::vector<DeviceRow> rows;  // in the order of the offers
  bool measured = false, remembered = false;
  // "cpu: predicted 1.2 ms, vulkan:0 4.1 ms".
  std::string why;
};

struct ChoicePolicy {
  double unclear = 2;        // predictions within this factor of the least are measured
  double hysteresis = 0.10;  // what another device must take less for the one of before to be left
};

// `before`: the device that was chosen for the same model last, or empty. Errors: device_unusable where no offer is usable,
// naming the reasons.
Result<DeviceDecision> choose_device(const std::vector<DeviceOffer>& offers, const std::string& before,
                                     const ChoicePolicy& policy = {});

// {"device", "why", "rows": [{"device", "why", "predicted_ms", "transfers_ms", "measured_ms"}]}, times where they are known.
std::string to_json(const DeviceDecision& decision);
// The table of --why.
std::string to_table(const DeviceDecision& decision);

}  // namespace sparkle
