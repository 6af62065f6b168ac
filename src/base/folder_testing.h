// For tests: a folder of a test's own, which goes with it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace sparkle::testing {

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // mkdtemp puts a name of its own in the place of the six letters.
    std::string name = (std::filesystem::temp_directory_path() / "sparkle_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

}  // namespace sparkle::testing
