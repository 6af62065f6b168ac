#include "base/new_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/folder_testing.h"

namespace sparkle {
namespace {

class NewFileTest : public testing::FolderTest {
 protected:
  std::string text_of(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  Status write(const std::string& name, const std::string& text) const {
    return write_file(path(name), std::as_bytes(std::span(text)));
  }
  using Names = std::vector<std::string>;
};

TEST_F(NewFileTest, NothingIsThereBeforeTheEnd) {
  {
    auto file = NewFile::create(path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(std::as_bytes(std::span("12345", 5))).ok());
    EXPECT_FALSE(std::filesystem::exists(path("a")));
    ASSERT_TRUE(file->write_at(1, std::as_bytes(std::span("xy", 2))).ok());
    ASSERT_TRUE(file->finish(Durable::yes).ok());
  }
  EXPECT_EQ(text_of("a"), "1xy45");
  {
    auto given_up = NewFile::create(path("a"));
    ASSERT_TRUE(given_up->write(std::as_bytes(std::span("9", 1))).ok());
  }
  EXPECT_EQ(text_of("a"), "1xy45");
  EXPECT_TRUE(check_writable(path("b")).ok());
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(NewFileTest, ReplacesWhatTheNameLeadsTo) {
  ASSERT_TRUE(write("a", "old").ok());
  std::filesystem::permissions(path("a"), std::filesystem::perms::owner_all);
  std::filesystem::create_symlink("a", path("link"));
  ASSERT_TRUE(write("link", "new").ok());
  EXPECT_EQ(text_of("a"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(std::filesystem::status(path("a")).permissions(), std::filesystem::perms::owner_all);
  const std::string longest(255, 'n');
  ASSERT_TRUE(write(longest, "x").ok());
  EXPECT_EQ(text_of(longest), "x");
}

// Files of the process's own are written where they are, behind what is there: another file in their place would lose it.
TEST_F(NewFileTest, DescriptorsAreWrittenThrough) {
  std::FILE* file = std::fopen(path("out").c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("said ", file);
  std::fflush(file);
  const std::string name = "/dev/fd/" + std::to_string(::fileno(file));
  EXPECT_TRUE(write_file(name, std::as_bytes(std::span("written", 7))).ok());
  std::fclose(file);
  EXPECT_EQ(text_of("out"), "said written");
  EXPECT_FALSE(write_file("/dev/fd/12345", std::as_bytes(std::span("x", 1))).ok());
}

TEST_F(NewFileTest, RefusesWhatCannotBeWritten) {
  EXPECT_NE(write("", "x").error().message.find("it is a folder"), std::string::npos);
  EXPECT_EQ(write("none/a", "x").error().reason, Reason::file_unwritable);
  EXPECT_FALSE(write(std::string("a\0b", 3), "x").ok());
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(write("pipe", "x").ok());  // nobody reads; not waited for
  if (!std::filesystem::exists("/dev/full")) return;
  EXPECT_NE(write_file("/dev/full", std::as_bytes(std::span("x", 1))).error().message.find("No space left"), std::string::npos);
}

// `ulimit -f`: neither the signal's death nor a part of the file, and the caller's signals are as they were.
TEST_F(NewFileTest, LimitsOnFilesAreErrors) {
  ASSERT_TRUE(write("a", "old").ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const bool refused = !write("a", std::string(10000, 'x')).ok() && !write("b", std::string(10000, 'x')).ok();
    sigset_t blocked, pending;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    ::sigpending(&pending);
    ::_exit(refused && !sigismember(&blocked, SIGXFSZ) && !sigismember(&pending, SIGXFSZ) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(text_of("a"), "old");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(NewFileTest, OneAtATimeHoldsAFoldersLock) {
  std::atomic<int> shared{0};  // a lock of files orders nothing for the compiler
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const FolderLock lock(path("a"));
        EXPECT_TRUE(lock.held());
        const int before = shared;
        std::this_thread::yield();
        shared = before + 1;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(shared, 200);
  EXPECT_FALSE(FolderLock(path("none/a")).held());
}

}  // namespace
}  // namespace sparkle
