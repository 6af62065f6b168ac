// Text in columns side by side, each cell broken between words where it is wider than its column.
#pragma once

#include <string>
#include <vector>

namespace sparkle {

class TextColumns {
 public:
  // Characters of the labels at the left, and of each column.
  TextColumns(size_t label, size_t column) : label_(label), column_(column) {}
  void add(const std::string& label, const std::vector<std::string>& cells);
  // A line of dashes, as wide as the last row.
  void line();
  const std::string& text() const { return text_; }

 private:
  size_t label_, column_, columns_ = 0;
  std::string text_;
};

}  // namespace sparkle
