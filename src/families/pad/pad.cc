#include "families/pad/pad.h"

#include <algorithm>
#include <array>

namespace sparkle {
namespace {
constexpr std::array<std::string_view, 4> kModes = {"constant", "reflect", "edge", "wrap"};
}

std::string_view name_of(PadMode mode) { return kModes[static_cast<size_t>(mode)]; }
bool parse_name(std::string_view text, PadMode& mode) {
  const auto at = std::find(kModes.begin(), kModes.end(), text);
  if (at == kModes.end()) return false;
  mode = static_cast<PadMode>(at - kModes.begin());
  return true;
}

int64_t pad_source(PadMode mode, int64_t out, int64_t begin, int64_t end, int64_t size) {
  const int64_t first = std::max<int64_t>(0, -begin);
  const int64_t left = size - first - std::max<int64_t>(0, -end);  // elements that negative pads leave
  if (left <= 0) return -1;
  int64_t at = out - std::max<int64_t>(0, begin);
  if (at < 0 || at >= left) {
    switch (mode) {
      case PadMode::constant: return -1;
      case PadMode::edge: at = std::clamp<int64_t>(at, 0, left - 1); break;
      case PadMode::wrap: at = (at % left + left) % left; break;
      case PadMode::reflect: {
        const int64_t period = std::max<int64_t>(1, 2 * (left - 1));
        at = (at % period + period) % period;
        if (at >= left) at = period - at;
        break;
      }
    }
  }
  return first + at;
}

}  // namespace sparkle
