#include "base/files/appended_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/folder_testing.h"

namespace sparkle {
namespace {

class AppendedFileTest : public testing::FolderTest {
 protected:
  Result<std::unique_ptr<AppendedFile>> open(std::vector<std::string>& lines) const {
    return AppendedFile::open(path("lines"), "answers", [&lines](const std::string& line) {
      lines.push_back(line);
      return ok();
    });
  }
  std::string text() const {
    std::ifstream in(path("lines"), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(AppendedFileTest, GoesOnBehindTheLastWholeLine) {
  for (const std::string& there : {std::string(), std::string("one\n"), std::string("one\ntw"), std::string("on")}) {
    std::ofstream(path("lines")) << there;
    std::vector<std::string> lines;
    {
      auto file = open(lines);
      ASSERT_TRUE(file.ok()) << file.error().message;
      for (const char* line : {"one", "two", "three"})
        EXPECT_TRUE((!lines.empty() && lines[0] == line) || (*file)->append(line).ok());
      EXPECT_TRUE((*file)->close().ok());
    }
    EXPECT_EQ(text(), "one\ntwo\nthree\n");
  }
}

// The file system takes so many bytes and no more: the file ends with a whole line, whichever byte was the first to find no
// room, and who goes on with it has the same file in the end.
TEST_F(AppendedFileTest, WholeLinesAloneWhereThereIsNoRoom) {
  const std::vector<std::string> wanted{"the first", "", "a third line", "4"};
  std::string whole;
  for (const std::string& line : wanted) whole += line + "\n";
  for (size_t room = 0; room < whole.size(); ++room) {
    SCOPED_TRACE(room);
    std::filesystem::remove(path("lines"));
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{room, room};
      std::vector<std::string> lines;
      auto file = open(lines);
      if (!file.ok() || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
      for (const std::string& line : wanted)
        if (const Status written = (*file)->append(line); !written.ok())
          ::_exit(written.error().reason == Reason::file_unwritable &&
                          written.error().message.find("cannot be written: File too large.") != std::string::npos
                      ? 0
                      : 2);
      ::_exit(3);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    const std::string there = text();
    EXPECT_EQ(there, whole.substr(0, there.size()));
    EXPECT_TRUE(there.empty() || there.back() == '\n') << there;
    EXPECT_LT(whole.substr(there.size()).find('\n') + there.size(), whole.size());
    std::vector<std::string> lines;
    auto file = open(lines);
    ASSERT_TRUE(file.ok());
    for (size_t i = lines.size(); i < wanted.size(); ++i) EXPECT_TRUE((*file)->append(wanted[i]).ok());
    EXPECT_EQ(text(), whole);
  }
}

}  // namespace
}  // namespace sparkle
