// Files of the cache: whole at any moment, whoever is killed as he writes, and nothing left lying beside them for ever.
#include "base/files/cache_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/folder_testing.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;

class CacheFiles : public testing::FolderTest {
 protected:
  std::string path() const { return FolderTest::path("file"); }
  std::string text() const {
    std::ifstream in(path(), std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  // Kills a process that does `work` for ever, after so many microseconds.
  template <class F>
  void kill_midway(int microseconds, F&& work) {
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) work();
    ::usleep(static_cast<useconds_t>(microseconds));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
};

TEST_F(CacheFiles, AreReplacedWholeOrNotAtAll) {
  const std::string texts[] = {std::string(3 << 20, 'a'), std::string(2 << 20, 'b')};
  ASSERT_TRUE(replace_file(path(), texts[0]));
  int left = 0;
  for (int i = 0; i < 30 || (left == 0 && i < 300); ++i) {  // slow machines need longer to begin
    int turn = 0;
    kill_midway(500 + 700 * i, [&] { replace_file(path(), texts[++turn % 2]); });
    const std::string now = text();
    EXPECT_TRUE(now == texts[0] || now == texts[1]) << now.size() << " bytes in round " << i;
    left += files() > 1;
    EXPECT_LE(files(), 2);  // each call removes what the one before left
  }
  EXPECT_GT(left, 0) << "no process was ended as it wrote";
  ASSERT_TRUE(replace_file(path(), "c"));
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(text(), "c");
}

TEST_F(CacheFiles, OthersFilesStay) {
  for (const char* name : {"file.txt", "file.12", "file.2024.11", "file.99999999.1", "file.sparkle-part.1x.2",
                           "file.sparkle-part..1", "file.sparkle-part.99999999.1.2", "other.sparkle-part.99999999.1"})
    std::ofstream(folder_ / name) << 1;
  std::ofstream(folder_ / ("file.sparkle-part." + std::to_string(::getppid()) + ".1")) << 1;  // of a process that lives
  std::ofstream(folder_ / "file.sparkle-part.99999999.1") << 1;                               // of none
  ASSERT_TRUE(replace_file(path(), "x"));
  EXPECT_EQ(files(), 10);
  EXPECT_FALSE(replace_file((folder_ / "none" / "file").string(), "x"));
}

TEST_F(CacheFiles, ProcessesEndBeforeTheyAreAskedFor) {
  EXPECT_FALSE(process_ended(::getpid()));
  EXPECT_FALSE(process_ended(::getppid()));
  EXPECT_TRUE(process_ended(99999999));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_FALSE(process_ended(child));
  ::kill(child, SIGKILL);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // its status is left
  EXPECT_TRUE(process_ended(child));
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(process_ended(child));
}

TEST_F(CacheFiles, LinesAreWhole) {
  append_line(path(), "one");
  append_line(path(), "two");
  EXPECT_EQ(text(), "one\ntwo\n");
  std::ofstream(path(), std::ios::app) << "thr";  // where a disk was full
  append_line(path(), "four");
  EXPECT_EQ(text(), "one\ntwo\nfour\n");
  std::ofstream(path()) << "no line at all";
  append_line(path(), "five");
  EXPECT_EQ(text(), "five\n");
  for (int i = 0; i < 20; ++i) kill_midway(200 + 300 * i, [&] { append_line(path(), std::string(200, 'x')); });
  append_line(path(), std::string(200, 'x'));  // the last one that was killed may have written a part of a line
  std::istringstream lines(text());
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    ASSERT_FALSE(lines.eof());
    ASSERT_EQ(line.size(), 200u);
  }
}

}  // namespace
}  // namespace sparkle
