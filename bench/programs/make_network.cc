// make_network NAME OUT.onnx [--seed N] [--batch N] [--batchnorm] [--size N] [--type f32|f16|bf16]: writes a well-known network
// with seeded weights. make_network video_unet OUT.onnx [--base N] as well: its weights in OUT.onnx.data.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "networks/video_unet.h"
#include "networks/writer.h"
#include "networks/zoo.h"

namespace {
using namespace sparkle;

struct Arguments {
  std::string_view name;
  std::string path;
  ZooOptions zoo;
  VideoUnetOptions video;
};

// Errors: bad_usage.
Result<Arguments> parse(int argc, char** argv) {
  if (argc < 3) return Error{Reason::bad_usage, "It wants the network's NAME and the file to write."};
  Arguments a;
  a.name = argv[1];
  a.path = argv[2];
  const bool video = a.name == "video_unet";
  for (int i = 3; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--batchnorm") {
      a.zoo.batchnorm = a.video.batchnorm = true;
      continue;
    }
    if (i + 1 == argc) return Error{Reason::bad_usage, "'" + std::string(option) + "' is not understood, or lacks its value."};
    const char* value = argv[++i];
    if (option == "--seed") {
      a.zoo.seed = a.video.seed = std::strtoull(value, nullptr, 10);
    } else if (option == "--batch") {
      a.zoo.batch = a.video.batch = std::strtoll(value, nullptr, 10);
    } else if (video && option == "--base") {
      a.video.base = std::strtoll(value, nullptr, 10);
    } else if (option == "--size") {
      a.zoo.size = a.video.size = std::strtoll(value, nullptr, 10);
    } else if (option == "--type" && dtype_from(value)) {
      a.zoo.type = a.video.type = *dtype_from(value);
    } else {
      return Error{Reason::bad_usage, "'" + std::string(option) + " " + value + "' is not understood of '" + argv[1] + "'."};
    }
  }
  return a;
}

Status make(const Arguments& a) {
  const bool video = a.name == "video_unet";
  SPARKLE_TRY(graph, video ? video_unet(a.video) : zoo_network(a.name, a.zoo));
  return write_onnx(graph, a.path, video ? Weights::beside : Weights::inside);
}
}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  const Status done = arguments.ok() ? make(*arguments) : Status(arguments.error());
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  if (arguments.ok()) return 2;
  std::fprintf(stderr,
               "usage: make_network NAME OUT.onnx [--seed N] [--batch N] [--batchnorm] [--size N] [--type f32|f16|bf16]\n"
               "networks:");
  for (const auto name : zoo_names()) std::fprintf(stderr, " %.*s", static_cast<int>(name.size()), name.data());
  std::fprintf(stderr, ", video_unet (with [--base N])\n");
  return 2;
}
