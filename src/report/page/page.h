// A page for browsers over layers on devices: summary, findings, a roofline with each layer as a dot, times, a table of
// variants and one of all layers that sorts. One file without links: it needs no network, follows light and dark, and prints.
// It knows no `check`: whoever has rows fills it.
#pragma once

#include <string>
#include <vector>

namespace sparkle {

enum class PageUnit : unsigned char { matrix, vector, none };  // what a layer computes on; none: it only moves bytes

// What a column of the caller's own says of a row.
struct PageCell {
  std::string text;
  double order = 0;  // what it is sorted by, in columns of numbers
};

struct PageRow {
  std::string name, what, type, unit, kernel, bound;
  PageUnit on = PageUnit::none;
  double seconds = 0;
  double other_seconds = 0;  // beside it: once fixed, or measured; 0: there is none
  double flops = 0, bytes = 0;
  std::vector<std::string> tags;  // codes of findings
  std::vector<PageCell> cells;    // one for each of PageTarget::columns
};

struct PageFinding {
  std::string code, sentence, where, rule, fix, saved;
  bool mends = true;  // the fix is one of the model; else advice, or nothing to mend
  double share = 0;   // of the time, that it would save
};

struct PageTile {
  std::string label, value, note;
  double share = -1, other_share = -1;  // drawn as bars below it; negative: none
};

struct PageRoof {
  std::string name;
  double flops_per_second = 0;
  bool matrix = false;
};

struct PageColumn {
  std::string head;
  bool numbers = false;
};

// Bytes in use from one time to the next.
struct PageMemory {
  double begin = 0, end = 0;  // seconds
  double bytes = 0;
  std::string name;  // of the step
};

struct PageTable {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;
  std::vector<double> bars;  // one per row, 0 to 1, behind the second column; may be empty
  std::string note;
};

// What is said of one device.
struct PageTarget {
  std::string called, device, basis;
  bool sure = false;  // the basis is a measurement
  std::string headline, headline_note;
  std::vector<PageTile> tiles;
  std::string findings_title = "What matters most", clean = "Nothing found that keeps it off the fast path.";
  std::vector<PageFinding> findings;
  std::vector<PageRoof> roofs;
  std::vector<std::pair<std::string, double>> inner_levels;  // caches and the like: bytes per second
  std::string memory_name;
  double bytes_per_second = 0;
  PageTable variants;
  std::string variants_title;
  std::vector<PageColumn> columns;  // behind those that every page has; without any there is one of the tags
  std::vector<PageRow> rows;
  std::vector<PageMemory> memory;                // in the order of time
  double memory_bytes = 0;                       // what there is for it
  std::string seconds_name = "now", other_name;  // what the two times of a row are
  bool other_is_goal = true;                     // where changes would lead: the roofline shows it
};

struct Page {
  std::string title, kind;  // "mobilenetv2", "sparkle check"
  std::vector<PageTarget> targets;
};

std::string page_html(const Page& page);

// Of a PageTarget: the plot as SVG.
std::string roofline_svg(const PageTarget& target);

// Of a PageTarget with memory: bytes in use over time as SVG.
std::string memory_svg(const PageTarget& target);

// Text from outside as HTML.
std::string escaped(const std::string& text);

}  // namespace sparkle
