// Golden texts: what the code says now beside what a file of the repository holds. scripts/update_golden_plans writes the
// files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace sparkle::testing {

// The first line in which two texts differ, both forms.
inline std::string first_difference(const std::string& want, const std::string& have) {
  std::istringstream a(want), b(have);
  std::string x, y;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(a, x)), more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return "no difference";
    if (more_a && more_b && x == y) continue;
    return "line " + std::to_string(line) + "\n  stored: " + (more_a ? x : "(end)") + "\n  now:    " + (more_b ? y : "(end)");
  }
}

// Fails where they differ; writes the file instead where SPARKLE_UPDATE_GOLDEN_PLANS is set.
inline void expect_stored(const std::string& file, const std::string& now) {
  SCOPED_TRACE(file);
  EXPECT_LT(now.size(), 60000u);
  if (std::getenv("SPARKLE_UPDATE_GOLDEN_PLANS")) {
    std::ofstream(file) << now;
    return;
  }
  std::ifstream stored(file);
  ASSERT_TRUE(stored) << "is missing; scripts/update_golden_plans writes it";
  std::ostringstream text;
  text << stored.rdbuf();
  EXPECT_TRUE(text.str() == now) << first_difference(text.str(), now)
                                 << "\nIf the change is meant: scripts/update_golden_plans, and look at the diff.";
}

}  // namespace sparkle::testing
