#include "base/text/columns.h"

#include <algorithm>

namespace sparkle {
namespace {

// Words longer than a line are cut.
std::vector<std::string> lines_of(const std::string& cell, size_t width) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < cell.size();) {
    size_t end = std::min(cell.size(), at + width);
    if (end < cell.size())
      if (const size_t space = cell.rfind(' ', end); space != std::string::npos && space > at) end = space;
    lines.push_back(cell.substr(at, end - at));
    at = cell.find_first_not_of(' ', end);
  }
  return lines;
}

}  // namespace

void TextColumns::add(const std::string& label, const std::vector<std::string>& cells) {
  columns_ = cells.size();
  std::vector<std::vector<std::string>> all;
  size_t most = 1;
  for (const std::string& cell : cells) {
    all.push_back(lines_of(cell, column_));
    most = std::max(most, all.back().size());
  }
  for (size_t i = 0; i < most; ++i) {
    std::string row = i == 0 ? label : "";
    size_t at = label_;
    for (const auto& lines : all) {
      row.resize(std::max(row.size() + (i < lines.size() && row.size() >= at ? 1 : 0), at), ' ');
      if (i < lines.size()) row += lines[i];
      at += column_ + 2;
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text_ += row + "\n";
  }
}

void TextColumns::line() { text_ += std::string(label_ + columns_ * (column_ + 2) - (columns_ > 0 ? 2 : 0), '-') + "\n"; }

}  // namespace sparkle
