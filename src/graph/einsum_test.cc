// What Einsum becomes: shapes of the results, and sentences where an equation and its inputs do not belong together.
#include "graph/einsum.h"

#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

std::string shape_of(const std::string& equation, const std::vector<Dims>& shapes) {
  GraphBuilder b;
  std::vector<TensorId> inputs;
  for (const Dims& shape : shapes) inputs.push_back(b.input(shape));
  return b.shape(b.op("Einsum", EinsumOp{equation}, inputs));
}

TEST(Einsum, Shapes) {
  EXPECT_EQ(shape_of("ij->ji", {{2, 3}}), "3x2");
  EXPECT_EQ(shape_of("ij->", {{2, 3}}), "scalar");
  EXPECT_EQ(shape_of("ij,jk", {{2, 3}, {3, 4}}), "2x4");
  EXPECT_EQ(shape_of(" b i j , b j k -> b i k ", {{5, 2, 3}, {5, 3, 4}}), "5x2x4");
  EXPECT_EQ(shape_of("...ii->...i", {{2, 3, 3}}), "2x3");
  EXPECT_EQ(shape_of("iii->i", {{3, 3, 3}}), "3");
  EXPECT_EQ(shape_of("ii", {{3, 3}}), "scalar");
  EXPECT_EQ(shape_of("...ij,...jk->...ik", {{7, 1, 2, 3}, {5, 3, 4}}), "7x5x2x4");
  EXPECT_EQ(shape_of("a,b,c->cab", {{2}, {3}, {4}}), "4x2x3");
  EXPECT_EQ(shape_of("...->...", {{2, 3}}), "2x3");
  EXPECT_EQ(shape_of(",ij->ij", {{}, {2, 3}}), "2x3");
}

TEST(Einsum, Errors) {
  const auto mentions = [](const std::string& sentence, const char* what) {
    EXPECT_NE(sentence.find("Node 'n0' (Einsum)"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(what), std::string::npos) << sentence;
  };
  mentions(shape_of("ij,jk->ik", {{2, 3}, {4, 5}}), "sizes 3 and 4");
  mentions(shape_of("ij->ij", {{2, 3}, {4, 5}}), "1 terms for 2 inputs");
  mentions(shape_of("ijk->i", {{2, 3}}), "does not fit its input");
  mentions(shape_of("ij->ik", {{2, 3}}), "letters of its inputs");
  mentions(shape_of("ij->ii", {{2, 3}}), "letters of its inputs");
  mentions(shape_of("i1->i", {{2, 3}}), "not made of letters");
  mentions(shape_of("......->", {{2, 3}}), "not made of letters");
  mentions(shape_of("ii->i", {{2, 3}}), "sizes 2 and 3");
}

}  // namespace
}  // namespace sparkle::testing
