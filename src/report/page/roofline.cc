// The roofline of a device with each layer as a dot: arithmetic per byte across, flops per second upwards, both in decades. A
// dot's area is its share of the time; a thin line leads to where it would be once fixed.
#include <algorithm>
#include <cmath>

#include "report/page/page.h"
#include "base/text/format.h"

namespace sparkle {
namespace {

constexpr double kWidth = 1080, kHeight = 460, kLeft = 64, kRight = 205, kTop = 18, kBottom = 44;
constexpr size_t kLongest = 22;  // label of a roof

// "10 T", "100 G": flops per second at a decade.
std::string decade(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  int unit = 0;
  while (value >= 1000 && unit < 5) value /= 1000, ++unit;
  return format("%g%s", value, kUnits[unit]);
}

// "989 T": of a roof.
std::string rate(double value) {
  double unit = 1;
  while (value / unit >= 1000) unit *= 1000;
  return decade(std::round(value / unit *
                           (value / unit < 10    ? 100
                            : value / unit < 100 ? 10
                                                 : 1)) /
                (value / unit < 10    ? 100
                 : value / unit < 100 ? 10
                                      : 1) *
                unit);
}

struct Axes {
  double x_low = -1, x_high = 4, y_low = 9, y_high = 15;  // powers of ten
  double x(double intensity) const {
    const double at = (std::log10(intensity) - x_low) / (x_high - x_low);
    return kLeft + std::clamp(at, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double y(double rate) const {
    const double at = (std::log10(rate) - y_low) / (y_high - y_low);
    return kHeight - kBottom - std::clamp(at, 0.0, 1.0) * (kHeight - kTop - kBottom);
  }
};

bool is_dot(const PageRow& row) { return row.flops > 0 && row.bytes > 0 && row.seconds > 0; }

Axes axes_of(const PageTarget& t) {
  Axes a;
  double low = 1e300, high = 0, left = 1e300, right = 0;
  for (const PageRoof& roof : t.roofs) high = std::max(high, roof.flops_per_second);
  for (const PageRow& row : t.rows) {
    if (!is_dot(row)) continue;
    low = std::min(low, row.flops / row.seconds), high = std::max(high, row.flops / row.seconds);
    left = std::min(left, row.flops / row.bytes), right = std::max(right, row.flops / row.bytes);
  }
  if (t.bytes_per_second > 0 && high > 0) right = std::max(right, 4 * high / t.bytes_per_second);
  if (right <= 0 || high <= 0) return a;
  a.x_low = std::log10(std::max(0.01, std::min(left, 1.0)) / 1.6), a.x_high = std::log10(1.6 * right);
  a.y_high = std::log10(1.6 * high);
  a.y_low = std::max(std::log10(std::min(low, high) / 2), a.y_high - 6);
  if (a.x_high <= a.x_low) a.x_high = a.x_low + 1;
  if (a.y_high <= a.y_low) a.y_high = a.y_low + 1;
  return a;
}

std::string grid(const Axes& a) {
  std::string svg = "<g class=grid>";
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  for (double p = std::ceil(a.x_low); p <= a.x_high; ++p) {
    const double x = a.x(std::pow(10, p));
    svg += format("<line x1=%.1f y1=%.1f x2=%.1f y2=%.1f /><text x=%.1f y=%.1f class=mid>%g</text>", x, kTop, x, bottom, x,
                  bottom + 18, std::pow(10, p));
  }
  for (double p = std::ceil(a.y_low); p <= a.y_high; ++p) {
    const double y = a.y(std::pow(10, p));
    svg += format("<line x1=%.1f y1=%.1f x2=%.1f y2=%.1f /><text x=%.1f y=%.1f class=end>%s</text>", kLeft, y, right, y,
                  kLeft - 8, y + 4, decade(std::pow(10, p)).c_str());
  }
  svg += format("<text x=%.1f y=%.1f class=mid>flops for each byte of operands</text>", (kLeft + right) / 2, kHeight - 6);
  svg += format("<text x=14 y=%.1f class=mid transform='rotate(-90 14 %.1f)'>flops per second</text>", (kTop + bottom) / 2,
                (kTop + bottom) / 2);
  return svg + "</g>";
}

std::string roofs(const PageTarget& t, const Axes& a) {
  std::string svg;
  const double right = kWidth - kRight, far = std::pow(10, a.x_high);
  std::vector<PageRoof> sorted = t.roofs;
  std::sort(sorted.begin(), sorted.end(),
            [](const PageRoof& x, const PageRoof& y) { return x.flops_per_second > y.flops_per_second; });
  // Units of one rate are one roof.
  for (size_t i = 1; i < sorted.size();)
    if (sorted[i].flops_per_second > 0.99 * sorted[i - 1].flops_per_second && sorted[i].matrix == sorted[i - 1].matrix) {
      sorted[i - 1].name += sorted[i - 1].name.size() + sorted[i].name.size() < kLongest ? ", " + sorted[i].name : ", ...";
      if (const size_t more = sorted[i - 1].name.find(", ..., ..."); more != std::string::npos)
        sorted[i - 1].name.resize(more + 5);
      sorted.erase(sorted.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  double label = -100;
  for (const PageRoof& roof : sorted) {
    if (roof.flops_per_second < std::pow(10, a.y_low)) continue;
    const double ridge = t.bytes_per_second > 0 ? roof.flops_per_second / t.bytes_per_second : std::pow(10, a.x_low);
    const double y = a.y(roof.flops_per_second);
    svg += format("<line class='roof%s' x1=%.1f y1=%.1f x2=%.1f y2=%.1f />", roof.matrix ? " matrix" : "", a.x(ridge), y, right,
                  y);
    const double at = std::max(y + 4, label + 14);  // labels of roofs side by side do not overlap
    label = at;
    svg += format("<text class='rooflabel%s' x=%.1f y=%.1f>%s</text>", roof.matrix ? " matrix" : "", right + 8, at,
                  (escaped(roof.name) + " " + rate(roof.flops_per_second)).c_str());
  }
  for (const auto& [name, rate] : t.inner_levels) {
    if (rate <= 0 || sorted.empty()) continue;
    const double low = std::max(std::pow(10, a.x_low), std::pow(10, a.y_low) / rate);
    const double high = std::min(far, sorted.front().flops_per_second / rate);
    if (high <= low) continue;
    svg += format("<line class='roof inner' x1=%.1f y1=%.1f x2=%.1f y2=%.1f />", a.x(low), a.y(low * rate), a.x(high),
                  a.y(high * rate));
    svg += format("<text class='rooflabel mid' x=%.1f y=%.1f>%s</text>", a.x(low) + 18, a.y(low * rate) - 6,
                  escaped(name).c_str());
  }
  if (t.bytes_per_second > 0 && !sorted.empty()) {
    const double low = std::max(std::pow(10, a.x_low), std::pow(10, a.y_low) / t.bytes_per_second);
    const double high = std::min(far, sorted.front().flops_per_second / t.bytes_per_second);
    const double x1 = a.x(low), y1 = a.y(low * t.bytes_per_second), x2 = a.x(high), y2 = a.y(high * t.bytes_per_second);
    svg += format("<line class='roof memory' x1=%.1f y1=%.1f x2=%.1f y2=%.1f />", x1, y1, x2, y2);
    const double angle = std::atan2(y2 - y1, x2 - x1) * 180 / 3.14159265358979;
    const double mx = x1 + 0.42 * (x2 - x1), my = y1 + 0.42 * (y2 - y1) - 8;
    svg += format("<text class='rooflabel mid' x=%.1f y=%.1f transform='rotate(%.1f %.1f %.1f)'>%s %sB/s</text>", mx, my, angle,
                  mx, my, escaped(t.memory_name).c_str(), rate(t.bytes_per_second).c_str());
  }
  return svg;
}

std::string dots(const PageTarget& t, const Axes& a) {
  double total = 0;
  for (const PageRow& row : t.rows) total += row.seconds;
  std::vector<size_t> order;
  for (size_t i = 0; i < t.rows.size(); ++i)
    if (is_dot(t.rows[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return t.rows[x].seconds > t.rows[y].seconds; });
  std::string svg, lines;
  for (const size_t i : order) {
    const PageRow& row = t.rows[i];
    const double x = a.x(row.flops / row.bytes), y = a.y(row.flops / row.seconds);
    const double radius = std::clamp(60 * std::sqrt(row.seconds / total), 3.0, 22.0);
    const char* on = row.on == PageUnit::matrix ? "matrix" : row.on == PageUnit::vector ? "vector" : "none";
    if (row.other_seconds > 0 && row.other_seconds < 0.97 * row.seconds && t.other_is_goal)
      lines += format("<line class=gain x1=%.1f y1=%.1f x2=%.1f y2=%.1f /><circle class=gain cx=%.1f cy=%.1f r=2.5 />", x, y, x,
                      a.y(row.flops / row.other_seconds), x, a.y(row.flops / row.other_seconds));
    svg += format("<circle class='dot %s%s' data-row=%zu cx=%.1f cy=%.1f r=%.1f><title>", on, row.tags.empty() ? "" : " found",
                  i, x, y, radius);
    svg += escaped(row.name + "\n" + row.what + "\n" + row.unit) +
           format("\n%.4g ms, %sflop/s, %.3g flops a byte, bound by ", row.seconds * 1e3,
                  (decade(std::round(row.flops / row.seconds * 1e-6) * 1e6)).c_str(), row.flops / row.bytes) +
           escaped(row.bound) + "</title></circle>";
  }
  return lines + svg;
}

}  // namespace

std::string roofline_svg(const PageTarget& t) {
  const Axes a = axes_of(t);
  return format("<svg class=roofline viewBox='0 0 %g %g' role=img aria-label='roofline of the layers'>", kWidth, kHeight) +
         grid(a) + roofs(t, a) + dots(t, a) + "</svg>";
}

}  // namespace sparkle
