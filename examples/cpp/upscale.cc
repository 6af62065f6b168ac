// upscale MODEL IN.ppm OUT.ppm: doubles a picture with a network of the form [1,3,H,W] in [0,1] -> [1,3,2H,2W].
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sparkle/sparkle.hpp>

namespace {

struct Picture {
  int64_t width = 0, height = 0;
  std::vector<unsigned char> rgb;
};

Picture read_ppm(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  int64_t most = 0;
  Picture p;
  file >> magic >> p.width >> p.height >> most;
  file.get();
  if (magic != "P6" || most != 255 || p.width < 1 || p.height < 1 || p.width * p.height > 100000000)
    throw std::runtime_error("'" + path + "' is not a binary PPM picture of 8 bits.");
  p.rgb.resize(static_cast<size_t>(3 * p.width * p.height));
  if (!file.read(reinterpret_cast<char*>(p.rgb.data()), static_cast<std::streamsize>(p.rgb.size())))
    throw std::runtime_error("'" + path + "' ends early.");
  return p;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: upscale MODEL IN.ppm OUT.ppm\n";
    return 2;
  }
  const Picture in = read_ppm(argv[2]);
  const sparkle::Device device;
  sparkle::Session session(device, argv[1]);

  sparkle::Tensor x(sparkle::Type::f32, {1, 3, in.height, in.width});
  const int64_t plane = in.height * in.width;
  for (int64_t i = 0; i < plane; ++i)
    for (int64_t c = 0; c < 3; ++c)
      x.data<float>()[c * plane + i] = static_cast<float>(in.rgb[static_cast<size_t>(3 * i + c)]) / 255;
  std::cout << "needs " << session.peak_bytes({x}) / 1024 << " KiB\n";
  const sparkle::Tensor y = session.run({x}).at(0);

  std::ofstream out(argv[3], std::ios::binary);
  const int64_t height = y.shape().at(2), width = y.shape().at(3), large = height * width;
  out << "P6\n" << width << ' ' << height << "\n255\n";
  for (int64_t i = 0; i < large; ++i)
    for (int64_t c = 0; c < 3; ++c)
      out.put(
          static_cast<char>(static_cast<unsigned char>(std::clamp(y.data<float>()[c * large + i], 0.0f, 1.0f) * 255 + 0.5f)));
  return out.flush() ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 2;
}
