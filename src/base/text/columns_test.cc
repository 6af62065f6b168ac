#include "base/text/columns.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

TEST(TextColumns, BreaksBetweenWords) {
  TextColumns table(6, 9);
  table.add("", {"left", "right"});
  table.line();
  table.add("words", {"one two three", "four"});
  table.add("long", {"", "abcdefghijkl m"});
  EXPECT_EQ(table.text(),
            "      left       right\n"
            "--------------------------\n"
            "words one two    four\n"
            "      three\n"
            "long             abcdefghi\n"
            "                 jkl m\n");
}

TEST(TextColumns, LabelsWiderThanTheirColumnKeepASpace) {
  TextColumns table(3, 4);
  table.add("label", {"x"});
  EXPECT_EQ(table.text(), "label x\n");
}

}  // namespace
}  // namespace sparkle
