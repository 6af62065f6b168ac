// From the time that reading takes, over working sets of growing size, to levels of memory: each plateau is a level.
#pragma once

#include <span>
#include <vector>

#include "device/device.h"

namespace sparkle {

struct CurvePoint {
  double bytes = 0;  // working set
  double seconds_per_byte = 0;
};
struct CurveLevel {
  double bytes = 0;  // the largest working set that it holds; 0 of the outermost level
  double bytes_per_second = 0;
};

// Working sets from `least` to `most` bytes, two to an octave: 1, 1.5, 2, 3, 4 ... times a power of two.
std::vector<double> working_sets(double least, double most);

// Levels, innermost first; memory beyond all caches is the last. A plateau takes four points of the curve, which single
// outliers and noise of some 10 % do not disturb; points that are no positive numbers are passed over.
std::vector<CurveLevel> levels_of(std::span<const CurvePoint> curve);

// Puts all levels but the last as caches that all cores share ("L2", "L3") in front of the device's last level, in the place of
// those that may stand there. `rates_of_one_core`: by level, innermost first; 0 or missing: an equal share.
void put_caches(Device& device, std::span<const CurveLevel> levels, std::span<const double> rates_of_one_core = {});

// Leaves out what put_caches put in: what a driver tells of.
void remove_caches(Device& device);

}  // namespace sparkle
