// The page as text: what names from outside may do to it, and dots where the roofline says.
#include "report/page/page.h"

#include <gtest/gtest.h>

#include <regex>

namespace sparkle {
namespace {

PageTarget target() {
  PageTarget t;
  t.called = "here", t.device = "a device", t.basis = "by hand", t.headline = "2 times as fast";
  t.roofs = {{"wide", 1e12, true}, {"narrow", 1e11, false}};
  t.memory_name = "DRAM", t.bytes_per_second = 1e10;
  t.other_name = "once fixed";
  for (const double intensity : {1.0, 10.0, 100.0}) {
    PageRow row;
    row.name = "layer", row.on = PageUnit::vector;
    row.flops = 1e9, row.bytes = 1e9 / intensity, row.seconds = 1e9 / (intensity * 1e9), row.other_seconds = row.seconds;
    t.rows.push_back(row);
  }
  return t;
}

TEST(Page, NamesFromOutsideAreText) {
  Page page{"</title><script>alert(1)</script>", "check", {target()}};
  PageTarget& t = page.targets[0];
  t.rows[0].name = "<img src=x onerror=alert(1)>", t.rows[0].what = "'><b>", t.rows[0].tags = {"<i>"};
  t.findings.push_back({"code", "sentence", "'\"><script>", "\x1b[31m", "a\n<b>", "", true, 0});
  t.device = "&lt;";
  const std::string html = page_html(page);
  for (const char* bad : {"<img", "<script>alert", "'><b>", "<i></", "\x1b"})
    EXPECT_EQ(html.find(bad), std::string::npos) << bad;
  EXPECT_NE(html.find("&lt;img src=x"), std::string::npos);
  EXPECT_NE(html.find("&amp;lt;"), std::string::npos);
}

// Ten times the rate at ten times the intensity: the same step across and upwards each time.
TEST(Page, DotsLieInDecades) {
  const std::string svg = roofline_svg(target());
  const std::regex dot("class='dot [^>]*cx=([0-9.]+) cy=([0-9.]+)");
  std::vector<std::pair<double, double>> at;
  for (std::sregex_iterator i(svg.begin(), svg.end(), dot), end; i != end; ++i)
    at.push_back({std::stod((*i)[1]), std::stod((*i)[2])});
  ASSERT_EQ(at.size(), 3u);
  std::sort(at.begin(), at.end());
  EXPECT_NEAR(at[1].first - at[0].first, at[2].first - at[1].first, 0.2);
  EXPECT_NEAR(at[0].second - at[1].second, at[1].second - at[2].second, 0.2);
  EXPECT_GT(at[0].second, at[1].second);
}

TEST(Page, SurvivesWhatIsUnknown) {
  PageTarget nothing;
  EXPECT_NE(page_html({"empty", "check", {nothing}}).find("Nothing found"), std::string::npos);
  PageTarget t = target();
  t.roofs.clear(), t.bytes_per_second = 0;
  for (PageRow& row : t.rows) row.seconds = 0, row.bytes = 0;
  EXPECT_EQ(page_html({"zeros", "check", {t}}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace sparkle
