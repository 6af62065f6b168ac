// Runs the program `sparkle` of this build, as a person at a shell would, and keeps what it says.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/folder_testing.h"
#include "networks/writer.h"

namespace sparkle::testing {

struct Said {
  int status = -1;  // -1: it died
  std::string out, err;
};

class Command : public FolderTest {
 protected:
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string save(const Graph& graph, const std::string& name) const {
    const Status saved = write_onnx(graph, path(name));
    EXPECT_TRUE(saved.ok()) << saved.error().message;
    return path(name);
  }

  // `before` is shell text in front of the program: "ulimit -v 2000000;".
  Said sparkle(const std::string& arguments, const std::string& before = "") const {
    return run(SPARKLE_COMMAND, arguments, before);
  }
  Said run(const std::string& program, const std::string& arguments, const std::string& before) const {
    const std::string line = "cd '" + folder_.string() + "'; " + before + " '" + program + "' " + arguments + " >'" +
                             path(".out") + "' 2>'" + path(".err") + "' </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) && WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : -1, text_of(".out"), text_of(".err")};
  }
  // What it says on stderr where it ends with status 2; one sentence.
  std::string refusal(const std::string& arguments, const std::string& before = "") const {
    const Said said = sparkle(arguments, before);
    EXPECT_EQ(said.status, 2) << arguments << "\n" << said.out << said.err;
    EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
    return said.err;
  }
};

inline const std::filesystem::path kSource = SPARKLE_SOURCE_DIR;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
// EXPECT_TRUE with the text shown.
#define EXPECT_SAYS(text, part) EXPECT_PRED2(::sparkle::testing::contains, text, part)

}  // namespace sparkle::testing
