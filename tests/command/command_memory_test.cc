// The program where memory is short: one sentence and status 2, before anything large is made.
#include "base/system/sanitized.h"
#include "command/command.h"
#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

class CommandMemory : public Command {};

const std::string kUpscale = (kSource / "models/upscale2x.onnx").string();
// Room for the program and not for what the tests ask it to hold; each thread of a large machine would take a stack and an
// arena of it.
const std::string kLimit = "ulimit -v 6000000;", kOne = " --threads 1";

TEST_F(CommandMemory, MoreThanThereIs) {
  if (kSanitized) GTEST_SKIP() << "the address sanitizer ends the program where memory runs out";
  EXPECT_SAYS(refusal("run " + kUpscale + " --shape image=1x3x100000x100000" + kOne, kLimit),
              "Input 'image' of shape 1x3x100000x100000 needs 120000000000 bytes");
  EXPECT_SAYS(refusal("bench --model " + kUpscale + " --shape image=1x3x100000x100000" + kOne, kLimit),
              "more than there is memory");
  EXPECT_SAYS(refusal("run --device reference " + kUpscale + " --shape image=1x3x50000x50000" + kOne, kLimit),
              "give smaller inputs");
  EXPECT_SAYS(refusal("bench --conv ic64ih20000oc64oh20000kh3ph1" + kOne, kLimit), "give smaller inputs");
}

TEST_F(CommandMemory, SizesThatOverflow) {
  for (const char* command : {"run ", "bench --model ", "explain "})
    EXPECT_SAYS(refusal(command + kUpscale + " --shape image=1x3x1099511627776x1099511627776"),
                "1x3x1099511627776x1099511627776");
  GraphBuilder b;  // a shape that comes by value: the product of its sizes must not wrap
  const TensorId x = b.input({-1, -1}, DType::f32);
  const std::string model = save(b.done(b.pointwise(PointwiseOp::exp, {x})), "exp.onnx");
  EXPECT_SAYS(refusal("run " + model + " --shape 1099511627776x1099511627776"), "more than can be addressed");
}

TEST_F(CommandMemory, ALayerThatDoesNotFitDoesNotEndAList) {
  write("list.csv", "name,c,h,w,k,r,s\nsmall,8,10,10,8,3,3\nlarge,64,100,100,64,3,3\nlast,8,12,12,8,3,3\n");
  const testing::Said said = sparkle("bench --layers list.csv --rounds 1 --memory-budget 1M --output rows.json");
  EXPECT_EQ(said.status, 1);
  EXPECT_NE(said.err.find("the memory budget is 1048576"), std::string::npos) << said.err;
  const std::string rows = text_of("rows.json");
  for (const char* name : {"small", "large", "last"}) EXPECT_NE(rows.find(name), std::string::npos) << rows;
}

TEST_F(CommandMemory, TheBudgetComesFirst) {
  // Within a second: nothing of the 10 GB is filled.
  const std::string limit = kSanitized ? "" : kLimit;
  EXPECT_SAYS(refusal("run " + kUpscale + " --shape image=1x3x30000x30000 --memory-budget 1G" + kOne, limit),
              "memory budget is 1073741824");
  EXPECT_SAYS(refusal("bench --model " + kUpscale + " --shape image=1x3x30000x30000 --memory-budget 1G" + kOne, limit),
              "memory budget is 1073741824");
  EXPECT_SAYS(refusal("bench --conv ic64ih56oc64oh56kh3ph1 --memory-budget 1K"), "the memory budget is 1024");
  EXPECT_SAYS(refusal("bench --conv ic64ih56oc64oh56kh3ph1 --ladder --memory-budget 1K"), "the memory budget is 1024");
  write("layers.csv", "name,n,c,h,w,k,r,s\na,1,8,5,5,8,3,3\n");
  EXPECT_SAYS(refusal("bench --layers layers.csv --memory-budget 1K"), "the memory budget is 1024");
}

}  // namespace
}  // namespace sparkle::testing
