#include "base/printable.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

TEST(Printable, LeavesOrdinaryNamesAlone) {
  for (const char* name : {"conv1/weights:0", "", "größe", "卷积", "a b", "it's", "\\x1b"}) EXPECT_EQ(printable(name), name);
}

TEST(Printable, NothingSteersATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable(std::string("\0\n\r\t\x7f", 5)), "\\x00\\x0a\\x0d\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u{9b}");  // CSI in one character
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gnp.exe"),
            "\\u{202e}gnp.exe");                                                       // right to left
  EXPECT_EQ(printable("\xff\xc0\x80\xed\xa0\x80"), "\\xff\\xc0\\x80\\xed\\xa0\\x80");  // no UTF-8
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                                      // cut short
}

TEST(Printable, LongNamesLoseTheirMiddle) {
  const std::string name(1 << 20, 'x');
  EXPECT_LT(printable(name).size(), 300u);
  EXPECT_NE(printable(name).find("1048576 bytes"), std::string::npos);
  std::string accents;
  for (int i = 0; i < 150; ++i) accents += "é";
  EXPECT_EQ(printable(printable(accents, 50), 1000), printable(accents, 50));  // no character cut
  const std::string sentence = printable_sentence("The node '" + name + "' and '" + std::string(300, 'y') + "' it's wrong.");
  EXPECT_LT(sentence.size(), 1200u);
  EXPECT_NE(sentence.find(std::string(300, 'y') + "' it's wrong."), std::string::npos) << sentence;
  EXPECT_EQ(printable_sentence("a\nb"), "a\\x0ab");
  EXPECT_EQ(printable_sentence("no 'y'\n  x + y\n      ^"), "no 'y'\n  x + y\n      ^");
  EXPECT_EQ(printable_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
}

}  // namespace
}  // namespace sparkle
