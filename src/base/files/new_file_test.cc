#include "base/files/new_file.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
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
  // In a process of its own; whether `what` is true there.
  template <class F>
  static bool elsewhere(const F& what) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(what() ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  // As somebody whom permissions hold back.
  template <class F>
  static bool as_anybody(const F& what) {
    return elsewhere([&] {
      return (::getuid() != 0 || (::setgroups(0, nullptr) == 0 && ::setgid(kAnybody) == 0 && ::setuid(kAnybody) == 0)) &&
             what();
    });
  }
  static constexpr uid_t kAnybody = 65534;
  // A file of `mode` that the somebody of as_anybody() owns.
  void owned(const std::string& name, const std::string& text, mode_t mode) const {
    std::ofstream(path(name)) << text;
    if (::getuid() == 0) {
      ASSERT_EQ(::chown(path(name).c_str(), kAnybody, kAnybody), 0);
    }
    ASSERT_EQ(::chmod(path(name).c_str(), mode), 0);
  }
  struct stat status_of(const std::string& name) const {
    struct stat status{};
    EXPECT_EQ(::stat(path(name).c_str(), &status), 0);
    return status;
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

TEST_F(NewFileTest, OutputsApartFromInputs) {
  ASSERT_TRUE(write("a", "old").ok());
  ASSERT_TRUE(write("b", "old").ok());
  std::filesystem::create_symlink("a", path("link"));
  std::filesystem::create_hard_link(path("a"), path("same"));
  for (const char* name : {"a", "./a", "link", "same"})
    EXPECT_EQ(check_apart(path(name), path("a")).error().reason, Reason::bad_usage) << name;
  for (const char* name : {"b", "new"}) EXPECT_TRUE(check_apart(path(name), path("a")).ok()) << name;
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

// As open() makes the target: at whatever distance, in whatever folder.
TEST_F(NewFileTest, MakesWhatALinkLeadsTo) {
  std::filesystem::create_directory(path("folder"));
  std::filesystem::create_symlink("folder/second", path("first"));
  std::filesystem::create_symlink("../made", path("folder/second"));
  EXPECT_TRUE(check_writable(path("first")).ok());
  ASSERT_TRUE(write("first", "new").ok());
  EXPECT_EQ(text_of("made"), "new");
  EXPECT_EQ(names(), (Names{"first", "folder", "made"}));
  EXPECT_TRUE(std::filesystem::is_symlink(path("first")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("folder/second")));
  std::filesystem::create_symlink(path("whole"), path("absolute"));
  ASSERT_TRUE(write("absolute", "new").ok());
  EXPECT_EQ(text_of("whole"), "new");
  std::filesystem::create_symlink("none/a", path("nowhere"));
  EXPECT_EQ(write("nowhere", "x").error().reason, Reason::file_unwritable);
  std::filesystem::create_symlink("circle", path("circle"));
  EXPECT_NE(write("circle", "x").error().message.find("symbolic links"), std::string::npos);
  EXPECT_FALSE(write("made/x", "x").ok());
  EXPECT_FALSE(write_file("", std::as_bytes(std::span("x", 1))).ok());
  // Both names of a file lock the same folder, before it is there too.
  std::filesystem::create_symlink("folder/later", path("early"));
  const FolderLock by_link(path("early"));
  EXPECT_TRUE(FolderLock(path("other")).held());
}

TEST_F(NewFileTest, PermissionsAreThoseOfTheOldFileOrOfAnyNewOne) {
  const mode_t before = ::umask(027);
  EXPECT_TRUE(write("new", "x").ok());
  EXPECT_EQ(status_of("new").st_mode & 07777, 0640u);
  for (const mode_t mode : {0600u, 0666u, 0755u, 0204u}) {
    owned("old", "old", mode);
    if (::access(path("old").c_str(), W_OK) != 0) continue;
    {
      auto file = NewFile::create(path("old"));  // nobody else reads what is not there yet
      ASSERT_TRUE(file.ok());
      for (const std::string& name : names())
        if (name.starts_with("old.")) {
          EXPECT_EQ(status_of(name).st_mode & 0077, 0u) << name;
        }
      ASSERT_TRUE(file->finish().ok());
    }
    EXPECT_EQ(status_of("old").st_mode & 07777, mode);
    EXPECT_EQ(status_of("old").st_uid, ::getuid() == 0 ? kAnybody : ::getuid());
  }
  ::umask(before);
}

// Somebody may write another's file and not give it away: what group and owner alone could read does not become the writer's.
TEST_F(NewFileTest, OwnersThatCannotBeKeptTakeTheirRightsAlong) {
  if (::getuid() != 0) GTEST_SKIP() << "takes files of two owners, which only root can make";
  ASSERT_TRUE(write("a", "old").ok());
  ASSERT_EQ(::chmod(path("a").c_str(), 04676), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_TRUE(as_anybody([&] { return write("a", "new").ok(); }));
  EXPECT_EQ(text_of("a"), "new");
  EXPECT_EQ(status_of("a").st_uid, kAnybody);
  EXPECT_EQ(status_of("a").st_mode & 07777, 0666u);
}

// The file may be written and its name not be given to another: the file remains, and holds all of the new or all of the old.
TEST_F(NewFileTest, AFileThatKeepsItsNameIsWrittenOver) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  std::filesystem::create_directory(path("closed"));
  owned("closed/a", "old", 0644);
  const ino_t file = status_of("closed/a").st_ino;
  ASSERT_EQ(::chmod(path("closed").c_str(), 0555), 0);
  EXPECT_TRUE(as_anybody([&] {
    return check_writable(path("closed/a")).ok() && text_of("closed/a") == "old" && write("closed/a", "longer").ok() &&
           text_of("closed/a") == "longer" && write("closed/a", "x").ok() && !write("closed/b", "x").ok() && [&] {
             auto given_up = NewFile::create(path("closed/a"));
             return given_up->write(std::as_bytes(std::span("9", 1))).ok();
           }();
  }));
  EXPECT_EQ(text_of("closed/a"), "x");
  EXPECT_EQ(status_of("closed/a").st_ino, file);
  EXPECT_TRUE(as_anybody([&] {  // a limit ends it before the first byte of the old file goes
    const rlimit limit{4096, 4096};
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && !write("closed/a", std::string(10000, 'x')).ok();
  }));
  EXPECT_EQ(text_of("closed/a"), "x");
  ASSERT_EQ(::chmod(path("closed").c_str(), 0755), 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("closed")), {}), 1);
}

// /tmp is such a folder: only its owner renames over a file.
TEST_F(NewFileTest, AFileOfAnotherInASharedFolderIsWrittenOver) {
  if (::getuid() != 0) GTEST_SKIP() << "takes files of two owners, which only root can make";
  ASSERT_TRUE(write("a", "old").ok());
  ASSERT_EQ(::chmod(path("a").c_str(), 0606), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 01777), 0);
  EXPECT_TRUE(as_anybody([&] { return write("a", "new").ok(); }));
  EXPECT_EQ(text_of("a"), "new");
  EXPECT_EQ(status_of("a").st_uid, 0u);
  EXPECT_EQ(names(), Names{"a"});
}

// As a container is given a single file of the machine around it.
TEST_F(NewFileTest, AMountOfOneFileIsWrittenOver) {
  ASSERT_TRUE(write("a", "old").ok());
  ASSERT_TRUE(write("mounted", "").ok());
  const uid_t user = ::getuid();
  const auto mount = [&] {
    if (::unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
    if (user != 0) std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    return ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount(path("a").c_str(), path("mounted").c_str(), nullptr, MS_BIND, nullptr) == 0;
  };
  if (!elsewhere(mount)) GTEST_SKIP() << "this process may not mount";
  EXPECT_TRUE(elsewhere([&] { return mount() && write("mounted", "new").ok() && text_of("mounted") == "new"; }));
  EXPECT_EQ(text_of("a"), "new");
  EXPECT_EQ(text_of("mounted"), "");
  EXPECT_EQ(names(), (Names{"a", "mounted"}));
}

// Files of the process's own are written where they are, behind what is there: another file in their place would lose it.
TEST_F(NewFileTest, DescriptorsAreWrittenThrough) {
  std::FILE* file = std::fopen(path("out").c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("said ", file);
  std::fflush(file);
  const std::string name = "/dev/fd/" + std::to_string(::fileno(file));
  EXPECT_TRUE(write_file(name, std::as_bytes(std::span("written", 7))).ok());
  std::filesystem::create_symlink(name, path("link"));
  EXPECT_TRUE(write("link", " twice").ok());
  EXPECT_EQ(text_of("out"), "said written twice");
  // Of another process, where it has no name any more: it is written over.
  const std::string others = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(::fileno(file));
  std::filesystem::remove(path("out"));
  EXPECT_TRUE(elsewhere([&] { return write_file(others, std::as_bytes(std::span("unnamed", 7))).ok(); }));
  struct stat unnamed{};
  EXPECT_EQ(::fstat(::fileno(file), &unnamed), 0);
  EXPECT_EQ(unnamed.st_size, 7);
  std::fclose(file);
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
  EXPECT_TRUE(elsewhere([&] {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const bool refused = !write("a", std::string(10000, 'x')).ok() && !write("b", std::string(10000, 'x')).ok();
    sigset_t blocked, pending;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    ::sigpending(&pending);
    return refused && !sigismember(&blocked, SIGXFSZ) && !sigismember(&pending, SIGXFSZ);
  }));
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
