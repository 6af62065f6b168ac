// Problems from text: convolutions of the command line, layer lists, and what is said about malformed ones.
#include <gtest/gtest.h>

#include <random>

#include "algorithms/algorithm.h"
#include "algorithms/problem_file.h"

namespace sparkle {
namespace {

std::string error_of(std::string_view conv) {
  const auto p = parse_conv(conv);
  return p.ok() ? "" : p.error().message;
}
std::string layers_error(std::string_view text) {
  const auto layers = parse_layers(text, "list.csv");
  return layers.ok() ? "" : layers.error().message;
}

TEST(ParseConv, ReadsWhatPeopleWrite) {
  const auto p = parse_conv("g2mb3_ic64ih56iw28oc32oh28ow14kh3kw5sh2ph1pw2dh0n\"layer 1\"");
  ASSERT_TRUE(p.ok()) << p.error().message;
  EXPECT_EQ(p->groups, 2);
  EXPECT_EQ(p->n, 3);
  EXPECT_EQ(p->c, 64);
  EXPECT_EQ(p->k, 32);
  EXPECT_EQ(p->in, (Triple{1, 56, 28}));
  EXPECT_EQ(p->out, (Triple{1, 28, 14}));
  EXPECT_EQ(p->window.filter, (Triple{1, 3, 5}));
  EXPECT_EQ(p->window.stride, (Triple{1, 2, 2}));
  EXPECT_EQ(p->window.dilation, (Triple{1, 1, 1}));
  EXPECT_EQ(p->window.pad_begin, (Triple{0, 1, 2}));
  EXPECT_EQ(p->window.pad_end, (Triple{0, 0, 1}));  // what the output asks for
}

TEST(ParseConv, DefaultsFollowTheHeight) {
  const auto p = parse_conv("ic8ih10oc4kh3ph1");
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->in, (Triple{1, 10, 10}));
  EXPECT_EQ(p->out, (Triple{1, 10, 10}));
  EXPECT_EQ(p->window.pad_end, (Triple{0, 1, 1}));
  EXPECT_EQ(p->rank, 2);
  const auto dilated = parse_conv("ic8ih10oc4kh3dh1");  // dh counts inserted zeros
  ASSERT_TRUE(dilated.ok());
  EXPECT_EQ(dilated->window.dilation, (Triple{1, 2, 2}));
  EXPECT_EQ(dilated->out, (Triple{1, 6, 6}));
  const auto volume = parse_conv("ic8id4ih10oc4kd2kh3");
  ASSERT_TRUE(volume.ok());
  EXPECT_EQ(volume->rank, 3);
  EXPECT_EQ(volume->out, (Triple{3, 8, 8}));
}

TEST(ParseConv, ErrorsNameTheToken) {
  EXPECT_NE(error_of("ic8zz5ih3oc4kh3").find("'zz5ih3oc4kh3'"), std::string::npos);
  EXPECT_NE(error_of("ic8ihoc4kh3").find("'ihoc4kh3'"), std::string::npos);
  EXPECT_NE(error_of("ic99999999999999999999ih3oc4kh3").find("'ic9999999999'"), std::string::npos);
  EXPECT_NE(error_of("ic8oc4kh3").find("at least ic, ih, oc and kh"), std::string::npos);
  EXPECT_NE(error_of("").find("at least"), std::string::npos);
  EXPECT_NE(error_of("g3ic8ih8oc4kh1").find("groups (3)"), std::string::npos);
  EXPECT_NE(error_of("g0ic8ih8oc4kh1").find("at least 1"), std::string::npos);
  EXPECT_NE(error_of("ic8ih2oc4kh3").find("no output"), std::string::npos);
  EXPECT_NE(error_of("ic8ih8oc4kh0").find("at least 1"), std::string::npos);
  EXPECT_NE(error_of("mb99999999ic99999999ih99999999oc4kh1").find("1e12"), std::string::npos);
  EXPECT_NE(error_of("ic1ih99999oc99999999kh1").find("The output"), std::string::npos);
  EXPECT_NE(error_of("ic99999999ih1oc99999999kh1").find("The filter"), std::string::npos);
}

TEST(ParseConv, ProblemTextRoundTrips) {
  for (std::string_view text : {"ic8ih10oc4kh3ph1", "g8mb2ic8ih9oc16oh5kh3sh2ph1", "ic3id4ih5iw6oc7kd1kh2kw3dd1"}) {
    const auto p = parse_conv(text);
    ASSERT_TRUE(p.ok()) << text;
    const auto back = from_text<Problem>(to_text(*p));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_TRUE(*back == *p) << text;
  }
}

TEST(ParseLayers, ReadsColumnsInAnyOrder) {
  const auto layers = parse_layers(
      "# a "
      "comment\r\nk,c,name,h,w,r,s,stride_h,pad_h,pad_h_end,dtype,groups\r\n64,3,stem,224,200,7,5,2,3,2,f32,1\n\n8,8,dw,10,10,"
      "3,3,1,"
      "1,1,f32,8\n",
      "list.csv");
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  ASSERT_EQ(layers->size(), 2u);
  const Problem& p = (*layers)[0].problem;
  EXPECT_EQ((*layers)[0].name, "stem");
  EXPECT_EQ(p.in, (Triple{1, 224, 200}));
  EXPECT_EQ(p.window.stride, (Triple{1, 2, 2}));  // width follows height
  EXPECT_EQ(p.window.pad_end, (Triple{0, 2, 3}));
  EXPECT_EQ((*layers)[1].problem.groups, 8);
}

TEST(ParseLayers, ReadsProductsAndOldFigures) {
  const auto layers = parse_layers(
      "name,c,h,w,k,r,s,kind,old_ms,old_what\na,147,112,112,64,1,1,gemm,1.2,eight cores\nb,3,8,8,4,3,3,,,\n", "list.csv");
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  EXPECT_EQ((*layers)[0].problem, parse_gemm("64x12544x147").value());
  EXPECT_EQ((*layers)[0].old_ms, 1.2);
  EXPECT_EQ((*layers)[0].old_what, "eight cores");
  EXPECT_EQ((*layers)[1].problem.kind, ProblemKind::conv);
  EXPECT_EQ((*layers)[1].old_ms, 0);
  const std::string header = "name,c,h,w,k,r,s,kind,old_ms\n";
  EXPECT_EQ(layers_error(header + "a,1,1,1,1,1,1,pool,\n"), "list.csv:2: 'pool' is not a kind of layer; write conv or gemm.");
  EXPECT_NE(layers_error(header + "a,1,1,1,1,1,1,,-3\n").find("'old_ms' holds '-3'"), std::string::npos);
  EXPECT_NE(layers_error(header + "a,0,1,1,1,1,1,gemm,\n").find("list.csv:2: A product needs"), std::string::npos);
}

TEST(ParseGemm, ReadsThreeSizes) {
  const auto p = parse_gemm("6x15x7");
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->rows * 10000 + p->columns * 100 + p->depth, 61507);
  EXPECT_EQ(p->nominal_flops(), 2 * 6 * 15 * 7);
  for (const char* text : {"", "6", "6x15", "6x15x", "6x15x7x1", "0x1x1", "axbxc", "-1x2x3", "99999999999x1x1"})
    EXPECT_FALSE(parse_gemm(text).ok()) << text;
}

TEST(ParseLayers, ErrorsNameLineAndColumn) {
  const std::string header = "name,n,c,h,w,k,r,s\n";
  EXPECT_EQ(layers_error(header + "a,1,8,5,5,8,3,3\nb,1,x8,5,5,8,3,3\n"),
            "list.csv:3: column 'c' holds 'x8', which is not a size.");
  EXPECT_NE(layers_error(header + "a,1,-8,5,5,8,3,3\n").find("list.csv:2: column 'c'"), std::string::npos);
  EXPECT_NE(layers_error(header + "a,1,8,5,5,8,3,3,4\n").find("list.csv:2: more cells"), std::string::npos);
  EXPECT_NE(layers_error("name,n,c,h,w,k,r\n").find("list.csv:1: the header lacks the column 's'"), std::string::npos);
  EXPECT_NE(layers_error("").find("list.csv:1: the list is empty"), std::string::npos);
  EXPECT_NE(layers_error(header + "a,1,8,2,2,8,3,3\n").find("list.csv:2: The filter reaches"), std::string::npos);
  EXPECT_NE(layers_error("name,c,h,w,k,r,s,dtype\na,8,5,5,8,1,1,f99\n").find("list.csv:2: 'f99'"), std::string::npos);
  EXPECT_NE(layers_error(header + "a,1,8\n").find("list.csv:2:"), std::string::npos);
}

TEST(ParseLayers, TheProjectsListReads) {
  const auto layers = read_layers(SPARKLE_SOURCE_DIR "/shapes/layers.csv");
  if (!layers.ok() && layers.error().reason == Reason::file_unreadable) GTEST_SKIP() << layers.error().message;
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  EXPECT_FALSE(layers->empty());
  EXPECT_EQ(read_layers("/nowhere/list.csv").error().reason, Reason::file_unreadable);
}

// Products counted one by one.
TEST(NominalFlops, CountsProducts) {
  std::mt19937_64 rng(11);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 50; ++round) {
    Problem p;
    p.kind = round % 2 ? ProblemKind::conv : ProblemKind::conv_transpose;
    p.groups = pick(1, 2), p.n = pick(1, 2), p.c = p.groups * pick(1, 3), p.k = p.groups * pick(1, 3);
    for (size_t i = 0; i < 3; ++i) p.in[i] = pick(1, 3), p.out[i] = pick(1, 3), p.window.filter[i] = pick(1, 2);
    double products = 0;
    const Triple& pixels = p.kind == ProblemKind::conv ? p.out : p.in;
    for (int64_t k = 0; k < p.k; ++k)
      for (int64_t c = 0; c < p.c; ++c)
        if (k / (p.k / p.groups) == c / (p.c / p.groups))
          products += static_cast<double>(p.n * pixels[0] * pixels[1] * pixels[2] * p.window.taps());
    EXPECT_EQ(p.nominal_flops(), 2 * products) << to_text(p);
  }
  Problem product;
  product.kind = ProblemKind::matmul;
  product.batch = 2, product.rows = 3, product.columns = 4, product.depth = 5;
  EXPECT_EQ(product.nominal_flops(), 240);
}

TEST(ProblemFile, ReadsBenchdnnsAsTheyAre) {
  const std::string text =
      "# ResNet\n--reset\n--dir=FWD_D,BWD_W --dt=f32,s8:s8:s32\nmb2_ic3oc64_ih224oh112kh7sh2ph3n\"resnet:conv1*2\"\n"
      "--mb=4 --dt=f16:f16:f16 --dir=FWD_B --stag=axb --attr-post-ops='relu' --skip-impl=\n"
      "ic8iw9oc8kw3pw1 ic8ih9oc8kh3n\"last\"  # two\n--batch=more\n";
  const ReadText read = [](const std::string& path) -> Result<std::string> {
    if (path == "dir/more") return std::string("ic4ih4oc4kh1n\"more\"");
    return Error{Reason::file_unreadable, path};
  };
  const auto file = parse_problem_file(text, "dir/file", {"bf16", ""}, read);
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->problems.size(), 4u);
  const Problem& first = file->problems[0].problem;
  EXPECT_EQ(file->problems[0].name, "resnet:conv1*2");
  EXPECT_EQ(first, [] {
    Problem p = *parse_conv("mb2ic3ih224oc64oh112kh7sh2ph3");
    return p;
  }());
  const Problem& row = file->problems[1].problem;
  EXPECT_EQ(row.n, 4);
  EXPECT_EQ(row.dtype, "f16");
  EXPECT_EQ(row.in, (Triple{1, 1, 9}));
  EXPECT_EQ(row.out, (Triple{1, 1, 9}));
  EXPECT_TRUE(row.epilogue.bias);
  EXPECT_EQ(row.epilogue.activation, Activation::relu);
  EXPECT_EQ(file->problems[2].name, "last");
  EXPECT_EQ(file->problems[3].name, "more");
  EXPECT_EQ(file->problems[3].problem.dtype, "bf16");  // each file begins with what the command line says
  EXPECT_EQ(file->notes.size(), 3u);                   // s8, BWD_W, --stag
}

TEST(ProblemFile, SaysWhereItIsMalformed) {
  const ReadText itself = [](const std::string&) { return Result<std::string>(std::string("--batch=again --batch=again")); };
  for (const auto& [text, what] :
       {std::pair("ic8\n", "file:1: A convolution needs"), std::pair("\nic8ih8oc8kh3n\"open", "file:2: a name"),
        std::pair("--mb=x", "file:1: '--mb=x' gives no number"), std::pair("--dt=", "lists none"),
        std::pair("--batch=again", "one file too many"), std::pair("--dir=BWD_D\nic8ih8oc8kh3", "BWD_D are left out"),
        std::pair("", "holds no convolution to measure")}) {
    const auto file = parse_problem_file(text, "file", {}, itself);
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_NE(file.error().message.find(what), std::string::npos) << file.error().message;
  }
}

TEST(Algorithms, ApplyOrSayWhy) {
  Problem p = *parse_conv("g8ic8ih10oc8kh3ph1");
  const ProblemOperands operands = operands_of(p);
  AnchorCall call{p, operands.inputs, operands.output};
  ASSERT_NE(algorithm_named("depthwise"), nullptr);
  EXPECT_EQ(algorithm_named("depthwise")->applies(call), Reason::none);
  EXPECT_EQ(algorithm_named("gemm")->applies(call), Reason::none);
  call.problem.groups = 2;
  EXPECT_EQ(algorithm_named("depthwise")->applies(call), Reason::groups_not_served);
  call.problem.kind = ProblemKind::matmul;
  EXPECT_EQ(algorithm_named("depthwise")->applies(call), Reason::not_this_family);
  EXPECT_EQ(algorithm_named("nothing"), nullptr);
}

}  // namespace
}  // namespace sparkle
