// Memory over time as SVG: a bar for each step, as wide as the step took and as high as the bytes in use meanwhile.
#include <algorithm>
#include <cmath>

#include "base/text/format.h"
#include "report/page/page.h"

namespace sparkle {
namespace {

constexpr double kWidth = 1080, kHeight = 240, kLeft = 64, kRight = 20, kTop = 22, kBottom = 40;

std::string megabytes(double bytes) { return format(bytes < 1e7 ? "%.2f MB" : "%.0f MB", bytes * 1e-6); }

}  // namespace

std::string memory_svg(const PageTarget& t) {
  double most = t.memory_bytes, until = 0;
  for (const PageMemory& m : t.memory) most = std::max(most, m.bytes), until = std::max(until, m.end);
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  const auto x = [&](double seconds) { return kLeft + (until > 0 ? seconds / until : 0) * (right - kLeft); };
  const auto y = [&](double bytes) { return bottom - (most > 0 ? bytes / most : 0) * (bottom - kTop); };
  std::string svg =
      format("<svg class=memory viewBox='0 0 %g %g' role=img aria-label='memory over time'><g class=grid>", kWidth, kHeight);
  for (int i = 0; i <= 4; ++i)
    svg += format("<line x1=%.1f y1=%.1f x2=%.1f y2=%.1f /><text x=%.1f y=%.1f class=end>%s</text>", kLeft, y(most * i / 4),
                  right, y(most * i / 4), kLeft - 8, y(most * i / 4) + 4, megabytes(most * i / 4).c_str());
  for (int i = 0; i <= 4; ++i)
    svg += format("<text x=%.1f y=%.1f class=%s>%.3g ms</text>", x(until * i / 4), bottom + 18, i == 4 ? "end" : "mid",
                  until * i / 4 * 1e3);
  svg += "</g>";
  for (const PageMemory& m : t.memory)
    svg += format("<rect class=use x=%.2f y=%.1f width=%.2f height=%.1f><title>", x(m.begin), y(m.bytes),
                  std::max(0.5, x(m.end) - x(m.begin)), std::max(0.0, bottom - y(m.bytes))) +
           escaped(m.name) + "\n" + megabytes(m.bytes) + "</title></rect>";
  if (t.memory_bytes > 0)
    svg +=
        format("<line class=whole x1=%.1f y1=%.1f x2=%.1f y2=%.1f /><text x=%.1f y=%.1f class=end>all of it: %s</text>", kLeft,
               y(t.memory_bytes), right, y(t.memory_bytes), right, y(t.memory_bytes) - 6, megabytes(t.memory_bytes).c_str());
  return svg + "</svg>";
}

}  // namespace sparkle
