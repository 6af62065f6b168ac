// Markers of processes that are gone are found, once; those of living ones never, whatever their numbers.
#include "base/files/marker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/folder_testing.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;

class Markers : public testing::FolderTest {
 protected:
  std::string folder() const { return folder_.string(); }
  std::vector<std::string> orphans() const { return orphaned_markers(folder(), "doing"); }
  ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }
};

TEST_F(Markers, OfLivingProcessesAreTheirs) {
  {
    const Marker one(folder(), "doing", "this"), other(folder(), "doing", "that");
    EXPECT_EQ(files(), 2);
    EXPECT_TRUE(orphans().empty());
    EXPECT_EQ(files(), 2);
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(Markers, OfEndedProcessesAreHandedOutOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Marker here(folder(), "doing", "this");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const Marker mine(folder(), "doing", "that");
  EXPECT_EQ(orphans(), std::vector<std::string>{"this"});
  EXPECT_TRUE(orphans().empty());
  EXPECT_EQ(files(), 1);
}

// A container's programs have the same number at each start.
TEST_F(Markers, OfProcessesWithOurNumberAreFound) {
  std::ofstream(folder() + "/doing_1_" + std::to_string(::getpid())) << "this\n";
  const Marker mine(folder(), "doing", "that");
  EXPECT_EQ(orphans(), std::vector<std::string>{"this"});
  EXPECT_EQ(files(), 1);
}

TEST_F(Markers, HalfWrittenOnesSayNothing) {
  std::ofstream(folder() + "/doing_7_1") << "thi";
  std::ofstream(folder() + "/other_7_1") << "this\n";
  EXPECT_TRUE(orphans().empty());
  EXPECT_EQ(files(), 1);
}

TEST_F(Markers, WithoutAFolderThereAreNone) {
  const Marker nowhere("", "doing", "this");
  std::ofstream(folder() + "/file") << 1;
  const Marker never(folder() + "/file/below", "doing", "this");
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace sparkle
