// Commands on a Vulkan device killed midway, at moments of chance and as they write their caches: the next run gives the right
// numbers, has no word to say of what it finds, and leaves nothing lying about.
#include <fcntl.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <random>
#include <regex>
#include <set>
#include <thread>

#include "command/command.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

const std::string kVectors = (testing::kSource / "tests/vectors").string();
const std::string kVerify = "verify --device vulkan " + kVectors + "/conv_3x3 " + kVectors + "/conv_1x1_stride";
const std::string kTune = "tune --device vulkan --conv ic8ih12oc8oh12kh3ph1 --seconds 1";

class CommandKilled : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    here_ = "XDG_CACHE_HOME=$PWD/cache TMPDIR=$PWD/tmp";
    fs::create_directory(path("tmp"));
    if (sparkle("devices --device vulkan", here_).status != 0) GTEST_SKIP() << "SKIP: no Vulkan device";
  }
  fs::path cache() const { return folder_ / "cache" / "sparkle"; }
  std::set<std::string> files() const {
    std::set<std::string> names;
    std::error_code none;
    for (fs::directory_iterator at(cache(), none), end; !none && at != end; at.increment(none))
      names.insert(at->path().filename().string());
    return names;
  }
  void remove_stores() const {
    for (const std::string& name : files())
      if (name.starts_with("tuning-")) fs::remove(cache() / name);
  }
  bool holds(const std::string& pattern) const {
    const std::regex wanted(pattern);
    for (const std::string& name : files())
      if (std::regex_search(name, wanted)) return true;
    return false;
  }

  // Starts the command and kills it, and what it has started, once `moment` says so. False: it ended before that.
  bool killed(const std::string& arguments, const std::function<bool()>& moment) const {
    const std::string line = "cd '" + folder_.string() + "'; export " + here_ + "; exec '" SPARKLE_COMMAND "' " + arguments;
    const pid_t child = ::fork();
    if (child == 0) {
      ::setsid();
      const int nowhere = ::open("/dev/null", O_RDWR);
      for (int to : {0, 1, 2}) ::dup2(nowhere, to);
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    int status = 0;
    while (!moment())
      if (::waitpid(child, &status, WNOHANG) == child) return false;
    ::kill(-child, SIGKILL);
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  }

  void expect_whole(const std::string& when, int runs = 1) {
    SCOPED_TRACE(when);
    for (int i = 0; i < runs; ++i) {
      const testing::Said said = sparkle(kVerify, here_);
      EXPECT_EQ(said.status, 0) << said.out << said.err;
      EXPECT_SAYS(said.out, "2 passed");
      EXPECT_EQ(said.err, "");
    }
    for (const std::string& name : files())
      EXPECT_FALSE(std::regex_search(name, std::regex("trying|part|\\.[0-9]+\\.[0-9]+$"))) << name;
    EXPECT_TRUE(fs::is_empty(path("tmp")));
  }

  std::string here_;
};

// As soon as a file of a name is there: half written, or just renamed.
TEST_F(CommandKilled, AsItWritesItsCaches) {
  struct Moment {
    const std::string& command;
    const char* file;
    bool lasts = true;  // some are over before a busy machine lets anybody look
  };
  const Moment moments[] = {{kVerify, "^vulkan_trying_"},
                            {kVerify, "^vulkan_tried_"},
                            {kVerify, "^vulkan_pipelines_.*\\.[0-9]+\\.[0-9]+$", false},
                            {kVerify, "^vulkan_pipelines_.*bin$", false},
                            {kTune, "^tuning-.*\\.[0-9]+\\.[0-9]+$", false},
                            {kTune, "^tuning-.*txt$"}};
  for (const Moment& m : moments) {
    bool hit = false;
    for (int attempt = 0; attempt < 3 && !hit; ++attempt) {
      // What the tuner's kernels are worth is tried once: it takes longer than all else here.
      if (&m.command == &kTune) remove_stores();
      else fs::remove_all(path("cache"));
      hit = killed(m.command, [&] { return holds(m.file); });
    }
    EXPECT_TRUE(hit || !m.lasts) << m.file << ": it ended before";
    // What was left aside of a store goes when it is next written.
    if (holds("^tuning-.*\\.[0-9]+\\.[0-9]+$")) {
      EXPECT_EQ(sparkle(kTune, here_).status, 0);
    }
    expect_whole(std::string("killed at ") + m.file);
  }
  const std::string explain = "explain --device vulkan --conv ic8ih12oc8oh12kh3ph1 --tuning kept";
  for (const std::string& command : {explain, kTune, explain}) {
    const testing::Said said = sparkle(command, here_);
    EXPECT_EQ(said.status, 0) << said.out << said.err;
  }
}

// A command whose kernels are tried in processes of which two are ended as they try the first of a family.
class CommandWithKilledSelfTests : public CommandKilled {
 protected:
  int ended_ = 0;
  testing::Said verify_without(const std::string& family) {
    testing::Said said;
    for (int attempt = 0, ended = 0; attempt < 20 && ended < 2; ++attempt) {  // some self-tests are over before anybody looks
      fs::remove_all(path("cache"));
      ended = 0;
      std::atomic<bool> done = false;
      std::thread killer([&] {
        std::string victim, process;
        while (ended < 2 && !done)
          for (const std::string& name : files()) {
            std::smatch found;
            std::string tried;
            if (!std::regex_match(name, found, std::regex("vulkan_trying_.*_([0-9]+)")) || found[1] == process) continue;
            std::getline(std::ifstream(cache() / name), tried);
            if (tried.find(" " + family + "/") == std::string::npos || (ended > 0 && tried != victim)) continue;
            victim = tried, process = found[1];
            ended += ::kill(std::stoi(process), SIGKILL) == 0;
          }
      });
      said = sparkle(kVerify, here_);
      done = true;
      killer.join();
      ended_ = ended;
    }
    EXPECT_EQ(ended_, 2) << "no self-test of " << family << " was ended";
    return said;
  }
};

TEST_F(CommandWithKilledSelfTests, AnotherKernelTakesItsPlace) {
  const testing::Said said = verify_without("gemm");
  EXPECT_EQ(said.status, 0) << said.out << said.err;
  EXPECT_SAYS(said.out, "2 passed");
  const testing::Said devices = sparkle("devices --device vulkan", here_);
  EXPECT_SAYS(devices.out, "banned gemm/");
  EXPECT_SAYS(devices.out, ": two processes that tried it ended");
}

TEST_F(CommandWithKilledSelfTests, WhereThereIsNoOtherItSaysSo) {  // layouts have one kernel
  const testing::Said warned = verify_without("copy");
  EXPECT_EQ(warned.status, 0) << warned.out << warned.err;
  EXPECT_SAYS(warned.err, "(copy) has no kernel on ");
  const testing::Said said = sparkle(kVerify + " --fallback forbid", here_);
  EXPECT_EQ(said.status, 1) << said.out << said.err;
  EXPECT_SAYS(said.out, "banned are copy/units: two processes that tried it ended, or lost the device; use --device cpu");
}

TEST_F(CommandKilled, AtMomentsOfChance) {
  std::mt19937 random(5);
  for (int i = 0; i < 6; ++i) {
    fs::remove_all(path("cache"));
    const auto wait = std::chrono::milliseconds(30 + random() % 700);
    const auto start = Clock::now();
    killed(i % 3 == 2 ? kTune : kVerify, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return Clock::now() - start > wait;
    });
    expect_whole("killed after " + std::to_string(wait.count()) + " ms", i == 0 ? 2 : 1);
  }
}

}  // namespace
}  // namespace sparkle
