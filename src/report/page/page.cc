#include "report/page/page.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text/format.h"
#include "base/printable.h"

namespace sparkle {
namespace {

constexpr const char kStyle[] =
#include "page_style.inc"  // page.css, by cmake/page.cmake
    ;
constexpr const char kScript[] =
#include "page_script.inc"  // page.js
    ;

std::string time(double seconds) {
  const double us = seconds * 1e6;
  if (us >= 1e5) return format("%.0f ms", us * 1e-3);
  if (us >= 1e3) return format("%.2f ms", us * 1e-3);
  return format(us >= 100 ? "%.0f &micro;s" : "%.1f &micro;s", us);
}

std::string tile(const PageTile& t) {
  std::string html =
      "<div class=tile><div class=label>" + escaped(t.label) + "</div><div class=value>" + escaped(t.value) + "</div>";
  if (!t.note.empty()) html += "<div class=note>" + escaped(t.note) + "</div>";
  if (t.share >= 0) {
    html += "<div class=meter>";
    if (t.other_share >= 0) html += format("<i class=other style='width:%.1f%%'></i>", 100 * t.other_share);
    html += format("<i style='width:%.1f%%'></i></div>", 100 * t.share);
  }
  return html + "</div>";
}

std::string findings(const PageTarget& t) {
  if (t.findings.empty()) return "<p class=clean>" + escaped(t.clean) + "</p>";
  std::string html = "<ol class=findings>";
  for (const PageFinding& f : t.findings) {
    html += "<li><div class=head><code>" + escaped(f.code) + "</code><span class=where>" + escaped(f.where) + "</span>";
    if (!f.saved.empty())
      html += std::string("<span class='saved") + (f.mends ? "'>" : " advice'>") + escaped(f.saved) + "</span>";
    html += "</div><p class=sentence>" + escaped(f.sentence) + "</p>";
    if (f.share > 0)
      html += std::string(f.mends ? "<div class=meter>" : "<div class='meter advice'>") +
              format("<i style='width:%.1f%%'></i></div>", 100 * std::min(1.0, f.share));
    html += "<p class=rule>" + escaped(f.rule) + "</p>";
    if (!f.fix.empty())
      html +=
          std::string("<p class=fix>") + (f.mends ? "<b>Fix</b> " : "<b class=advice>Advice</b> ") + escaped(f.fix) + "</p>";
    html += "</li>";
  }
  return html + "</ol>";
}

std::string variants(const PageTarget& t) {
  const PageTable& table = t.variants;
  std::string html = "<div class=scroll><table class=variants><thead><tr>";
  for (size_t i = 0; i < table.heads.size(); ++i)
    html += (i > 0 && i + 1 < table.heads.size() ? "<th class=num>" : "<th>") + escaped(table.heads[i]) + "</th>";
  html += "</tr></thead><tbody>";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    html += "<tr>";
    for (size_t i = 0; i < table.rows[r].size(); ++i) {
      const bool number = i > 0 && i + 1 < table.heads.size();
      html += number ? "<td class=num>" : "<td>";
      if (i == 1 && r < table.bars.size())
        html += format("<span class=bar><i style='width:%.1f%%'></i></span>", 100 * table.bars[r]);
      html += escaped(table.rows[r][i]) + "</td>";
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>" + (table.note.empty() ? "" : "<p class=note>" + escaped(table.note) + "</p>");
}

// The longest layers in the order in which they run.
std::string times(const PageTarget& t) {
  constexpr size_t kMost = 40;
  std::vector<size_t> order(t.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return t.rows[a].seconds > t.rows[b].seconds; });
  const size_t shown = std::min(kMost, order.size());
  double longest = 1e-12, rest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const PageRow& row = t.rows[order[i]];
    if (i < shown) longest = std::max({longest, row.seconds, row.other_seconds});
    else rest += row.seconds;
  }
  order.resize(shown);
  std::sort(order.begin(), order.end());
  std::string html = "<div class=legend><span class=now>" + escaped(t.seconds_name) + "</span>";
  if (!t.other_name.empty()) html += "<span class=then>" + escaped(t.other_name) + "</span>";
  html += "</div><div class=times>";
  for (const size_t i : order) {
    const PageRow& row = t.rows[i];
    html += "<div class=name title='" + escaped(row.what) + "'>" + escaped(row.name) + "</div><div class=bars>";
    html += format("<i class=now style='width:%.2f%%'></i>", 100 * row.seconds / longest);
    if (!t.other_name.empty()) html += format("<i class=then style='width:%.2f%%'></i>", 100 * row.other_seconds / longest);
    html += "</div><div class=figure>" + time(row.seconds);
    if (!t.other_name.empty() && std::abs(row.other_seconds - row.seconds) > 0.005 * row.seconds)
      html += " <b>" + time(row.other_seconds) + "</b>";
    html += "</div>";
  }
  html += "</div>";
  if (t.rows.size() > shown)
    html += format("<p class=note>%zu shorter layers take %s together.</p>", t.rows.size() - shown, time(rest).c_str());
  return html;
}

std::string cell(double order, const std::string& text) { return format("<td class=num data-v=%.9g>", order) + text + "</td>"; }

std::string layers(const PageTarget& t) {
  std::string html =
      "<div class=tools><input type=search placeholder='filter layers, codes, units' aria-label='filter layers'></div>"
      "<div class=scroll><table class=layers><thead><tr><th data-s=n>#</th><th data-s=t>layer</th><th data-s=t>what</th>"
      "<th data-s=t>type</th><th data-s=t>unit</th><th data-s=n class=num>" +
      escaped(t.seconds_name) + "</th>";
  if (!t.other_name.empty()) html += "<th data-s=n class=num>" + escaped(t.other_name) + "</th>";
  html += "<th data-s=n class=num>Gflop</th><th data-s=n class=num>MB</th><th data-s=t>bound by</th>";
  for (const PageColumn& column : t.columns)
    html += (column.numbers ? "<th data-s=n class=num>" : "<th data-s=t>") + escaped(column.head) + "</th>";
  if (t.columns.empty()) html += "<th data-s=t>findings</th>";
  html += "</tr></thead><tbody>";
  for (size_t i = 0; i < t.rows.size(); ++i) {
    const PageRow& row = t.rows[i];
    html += format("<tr data-row=%zu>", i) + cell(static_cast<double>(i), std::to_string(i)) + "<td class=name>" +
            escaped(row.name) + "</td><td>" + escaped(row.what) + "</td><td>" + escaped(row.type) + "</td><td class='" +
            (row.on == PageUnit::matrix   ? "on-matrix"
             : row.on == PageUnit::vector ? "on-vector"
                                          : "on-none") +
            "'>" + escaped(row.unit) + "</td>" + cell(row.seconds, time(row.seconds));
    if (!t.other_name.empty()) html += cell(row.other_seconds, time(row.other_seconds));
    html += cell(row.flops, format("%.3g", row.flops * 1e-9)) + cell(row.bytes, format("%.3g", row.bytes * 1e-6)) + "<td>" +
            escaped(row.bound) + "</td>";
    for (size_t c = 0; c < t.columns.size() && c < row.cells.size(); ++c)
      html += t.columns[c].numbers ? cell(row.cells[c].order, escaped(row.cells[c].text))
                                   : "<td class=words>" + escaped(row.cells[c].text) + "</td>";
    if (t.columns.empty()) {
      html += "<td class=tags>";
      for (const std::string& tag : row.tags) html += "<code>" + escaped(tag) + "</code> ";
      html += "</td>";
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

std::string section(const std::string& title, const std::string& about, const std::string& body) {
  return "<section><h2>" + escaped(title) + "</h2>" + (about.empty() ? "" : "<p class=about>" + about + "</p>") + body +
         "</section>";
}

std::string target(const PageTarget& t, size_t i) {
  std::string html = format("<article id=t%zu>", i) + "<div class=hero><div><h1>" + escaped(t.headline) +
                     "</h1><p class=lead>" + escaped(t.headline_note) + "</p></div><div class=device><strong>" +
                     escaped(t.device) + "</strong><span class='basis" + (t.sure ? " sure" : "") + "'>" + escaped(t.basis) +
                     "</span></div></div><div class=tiles>";
  for (const PageTile& one : t.tiles) html += tile(one);
  html += "</div>" + section(t.findings_title, "", findings(t));
  html += section(
      "Roofline",
      "Each dot is a layer, its area the share of the time. "
      "<span class='key matrix'>on a matrix unit</span> <span class='key vector'>on vectors</span> "
      "<span class='key none'>moves bytes</span>" +
          std::string(t.other_name.empty() || !t.other_is_goal ? "" : "; thin lines lead to where fixed ones would be."),
      roofline_svg(t));
  if (!t.variants.rows.empty()) html += section(t.variants_title, "", variants(t));
  html += section("Time per layer", "", times(t));
  if (!t.memory.empty())
    html += section("Memory over time",
                    "Tensors between layers and scratch memory while each layer runs; weights are not in it.", memory_svg(t));
  html += section("All layers", "Click a heading to sort.", layers(t));
  return html + "</article>";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : printable_lines(text)) switch (c) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      default: html += c;
    }
  return html;
}

std::string page_html(const Page& page) {
  std::string html =
      "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>"
      "<meta name=color-scheme content='light dark'><title>" +
      escaped(page.title) + " - " + escaped(page.kind) + "</title><style>" + kStyle +
      "</style></head><body><header><span class=mark>" + escaped(page.kind) + "</span><span class=model>" +
      escaped(page.title) + "</span>";
  if (page.targets.size() > 1) {
    html += "<nav>";
    for (size_t i = 0; i < page.targets.size(); ++i)
      html += format("<a href='#t%zu'>", i) + escaped(page.targets[i].called) + "</a>";
    html += "</nav>";
  }
  html += "<button type=button class=theme aria-label='light or dark'>&#9680;</button></header><main>";
  for (size_t i = 0; i < page.targets.size(); ++i) html += target(page.targets[i], i);
  return html + "</main><script>" + kScript + "</script></body></html>\n";
}

}  // namespace sparkle
