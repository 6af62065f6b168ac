// `sparkle eval`: operands from files and numbers, results in files and as JSON, errors that point at the character.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "onnx/npy.h"

namespace sparkle::testing {
namespace {

class CommandEval : public Command {
 protected:
  std::string npy(const std::string& name, const HostTensor& tensor) {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(write_npy(path, tensor).ok());
    return path;
  }
};

TEST_F(CommandEval, ComputesFromFilesAndNumbers) {
  const std::string x = npy("x.npy", HostTensor::of<float>(DType::f32, {2, 2}, {-1, 0, 1, 2}));
  const std::string a = npy("a.npy", HostTensor::of<float>(DType::f32, {2}, {10, 100}));
  const std::string out = (folder_ / "y.npy").string();
  const Said said = sparkle("eval 'relu(x) * a + b' --x " + x + " --a=" + a + " --b 0.5 -o " + out);
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "f32 2x2: 0.5 0.5 10.5 200.5");
  const auto y = read_npy(out);
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(y->data<float>()[3], 200.5f);
  const Said json = sparkle("eval 'x > 0' --json --x " + x);
  ASSERT_EQ(json.status, 0) << json.err;
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["dtype"], "bool");
  EXPECT_EQ(parsed["shape"], (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(parsed["mean"], 0.5);
}

TEST_F(CommandEval, TakesExpressionsThatBeginWithASign) {
  const auto value = [&](const std::string& words) {
    const Said said = sparkle("eval " + words);
    EXPECT_EQ(said.status, 0) << words << ": " << said.err;
    return said.out;
  };
  const std::string out = (folder_ / "y.npy").string();
  for (const std::string& words :
       {std::string("'-x**2' --x 3"), std::string("-- '-x**2' --x 3"), std::string("'-x**2' --x=3 --device cpu"),
        std::string("--device cpu --threads=1 '-x**2' --x 3"), "-o " + out + " '-x**2' --x 3", "-o" + out + " '-x**2' --x 3",
        std::string("--threads 1 -- '-x**2' --x 3"), std::string("'- -(-x**2)' --x 3"), std::string("'---x**2' --x 3")})
    EXPECT_SAYS(value(words), ": -9\n");
  EXPECT_SAYS(value("-x --x 3"), ": -3\n");
  EXPECT_SAYS(value("-3"), ": -3\n");
  EXPECT_SAYS(value("-- --x --x 3"), ": 3\n");
  EXPECT_SAYS(value("'-offset + x' --x 3 --offset 1"), ": 2\n");
  EXPECT_SAYS(value("'-h*x' --x 3 --h -2"), ": 6\n");
  EXPECT_EQ(sparkle("eval '-slu(x)' --x 3").err,
            "sparkle: column 2: there is no function 'slu'; did you mean 'silu'?\n  -slu(x)\n   ^\n");
}

TEST_F(CommandEval, RefusesWithASentence) {
  const std::string x = npy("x.npy", HostTensor::of<float>(DType::f32, {2}, {1, 2}));
  Said said = sparkle("eval 'x + slu(x)' --x " + x);
  EXPECT_EQ(said.status, 2);
  EXPECT_EQ(said.err, "sparkle: column 5: there is no function 'slu'; did you mean 'silu'?\n  x + slu(x)\n      ^\n");
  said = sparkle("eval 'x + y' --x " + x);
  EXPECT_EQ(said.err, "sparkle: column 5: 'y' is not given; there are x\n  x + y\n      ^\n");
  EXPECT_SAYS(refusal("eval 'x' --x " + x + " --y 1"), "'y' is given, but the expression does not use it.");
  EXPECT_SAYS(refusal("eval 'x' --x 1 --scael 3"), "'scael' is given, but the expression does not use it.");
  EXPECT_SAYS(refusal("eval '-x' --x 1 --scael 3"), "'scael' is given, but the expression does not use it.");
  EXPECT_SAYS(refusal("eval --x 3 'x'"), "--x 'x' is neither a .npy or .pb file nor a number.");
  EXPECT_SAYS(refusal("eval --"), "EXPRESSION");
  EXPECT_SAYS(refusal("eval 'x' --x"), "'--x' is not understood; give operands as --NAME FILE.npy or --NAME NUMBER.");
  EXPECT_SAYS(refusal("eval 'x' --x what"), "--x 'what' is neither a .npy or .pb file nor a number.");
  EXPECT_SAYS(refusal("eval 'x' --x no_such.npy"), "no_such.npy");
}

}  // namespace
}  // namespace sparkle::testing
