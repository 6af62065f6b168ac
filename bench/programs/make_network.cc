// make_network NAME OUT.onnx [--seed N] [--batch N] [--batchnorm]: writes a well-known network with seeded weights.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "networks/writer.h"
#include "networks/zoo.h"

int main(int argc, char** argv) {
  sparkle::ZooOptions options;
  bool good = argc >= 3;
  for (int i = 3; i < argc && good; ++i) {
    if (std::strcmp(argv[i], "--batchnorm") == 0) {
      options.batchnorm = true;
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--batch") == 0 && i + 1 < argc) {
      options.batch = std::strtoll(argv[++i], nullptr, 10);
    } else {
      good = false;
    }
  }
  if (!good) {
    std::fprintf(stderr, "usage: make_network NAME OUT.onnx [--seed N] [--batch N] [--batchnorm]\nnetworks:");
    for (const auto name : sparkle::zoo_names()) std::fprintf(stderr, " %.*s", static_cast<int>(name.size()), name.data());
    std::fprintf(stderr, "\n");
    return 2;
  }
  const auto graph = sparkle::zoo_network(argv[1], options);
  if (!graph.ok()) {
    std::fprintf(stderr, "%s\n", graph.error().message.c_str());
    return 2;
  }
  const auto written = sparkle::write_onnx(*graph, argv[2]);
  if (!written.ok()) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 2;
  }
  return 0;
}
