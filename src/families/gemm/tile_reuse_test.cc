// What the planner says that tiles read past a cache, against a replay of every read of the convolutions of shapes/ through a
// cache that replaces what was used longest ago.
#include "families/gemm/tile_reuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/round_up.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle {
namespace {

struct Conv {
  std::string name;
  int64_t n, c, h, w, k, r, s, stride_h, stride_w, pad_h, pad_w;
  int64_t p() const { return (h + 2 * pad_h - r) / stride_h + 1; }
  int64_t q() const { return (w + 2 * pad_w - s) / stride_w + 1; }
  int64_t m() const { return n * p() * q(); }
};

std::vector<Conv> shapes_of(const std::string& file) {
  std::ifstream in(SPARKLE_SOURCE_DIR "/shapes/" + file);
  std::vector<Conv> convs;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::stringstream cells(line);
    std::string cell, name;
    std::getline(cells, name, ',');
    std::vector<int64_t> v;
    while (v.size() < 14 && std::getline(cells, cell, ',')) v.push_back(std::stoll(cell));
    if (v.size() == 14 && v[11] == 1 && v[12] == 1 && v[13] == 1)
      convs.push_back({name, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]});
  }
  return convs;
}

// Lines by number, the one used longest ago last in a ring of two-way links.
class Cache {
 public:
  Cache(int64_t lines, int64_t numbers) : room_(lines), next_(static_cast<size_t>(numbers + 1), -1), last_(next_) {
    head_ = static_cast<int32_t>(numbers);
    next_[at(head_)] = last_[at(head_)] = head_;
  }
  void read(int64_t number) {
    const auto line = static_cast<int32_t>(number);
    if (next_[at(line)] >= 0) {
      unlink(line);
    } else {
      ++misses_;
      if (held_ == room_) unlink(last_[at(head_)]);
      else ++held_;
    }
    const int32_t first = next_[at(head_)];
    next_[at(line)] = first, last_[at(line)] = head_;
    next_[at(head_)] = last_[at(first)] = line;
  }
  int64_t misses() const { return misses_; }

 private:
  static size_t at(int32_t line) { return static_cast<size_t>(line); }
  void unlink(int32_t line) {
    next_[at(last_[at(line)])] = next_[at(line)], last_[at(next_[at(line)])] = last_[at(line)];
    next_[at(line)] = -1;
  }
  int64_t room_, held_ = 0, misses_ = 0;
  int32_t head_ = 0;
  std::vector<int32_t> next_, last_;
};

constexpr int64_t kStep = 32;  // of k: a line of 128 bytes

struct Tiles {
  int64_t m, n, at_once;
};

// Bytes that the cache asks for.
double replayed(const Conv& conv, const Tiles& t, double cache_bytes) {
  const int64_t tiles_n = (conv.k + t.n - 1) / t.n, tiles = (conv.m() + t.m - 1) / t.m * tiles_n;
  const int64_t chunks = (conv.c + kStep - 1) / kStep, pixels = conv.n * conv.h * conv.w;
  const int64_t weights = conv.r * conv.s * chunks * kStep, columns = (conv.k + 31) / 32;
  Cache cache(static_cast<int64_t>(cache_bytes) / 128, pixels * chunks + weights * columns);
  for (int64_t first = 0; first < tiles; first += t.at_once)
    for (int64_t tap = 0; tap < conv.r * conv.s; ++tap)
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        for (int64_t tile = first; tile < std::min(tiles, first + t.at_once); ++tile) {
          const int64_t row = tile / tiles_n * t.m, column = tile % tiles_n * t.n;
          for (int64_t i = row; i < std::min(row + t.m, conv.m()); ++i) {
            const int64_t image = i / (conv.p() * conv.q()), p = i / conv.q() % conv.p(), q = i % conv.q();
            const int64_t y = p * conv.stride_h + tap / conv.s - conv.pad_h, x = q * conv.stride_w + tap % conv.s - conv.pad_w;
            if (y < 0 || y >= conv.h || x < 0 || x >= conv.w) continue;
            cache.read(((image * conv.h + y) * conv.w + x) * chunks + chunk);
          }
          for (int64_t k = 0; k < kStep; ++k)
            for (int64_t line = column / 32; line < std::min(columns, (column + t.n + 31) / 32); ++line)
              cache.read(pixels * chunks + ((tap * chunks + chunk) * kStep + k) * columns + line);
        }
  return 128.0 * static_cast<double>(cache.misses());
}

// Of channels and filters in whole lines, as the replay reads them.
double predicted(const Conv& conv, const Tiles& t, double cache_bytes) {
  const int64_t c = rounded_up(conv.c, kStep), k = rounded_up(conv.k, kStep);
  GemmParams p;
  p.window.filter = {1, conv.r, conv.s}, p.window.stride = {1, conv.stride_h, conv.stride_w};
  p.window.pad_begin = p.window.pad_end = {0, conv.pad_h, conv.pad_w};
  const Dims x{conv.n, c, conv.h, conv.w}, y{conv.n, k, conv.p(), conv.q()};
  const Stage stage{p,
                    {{DType::f32, x, channels_last(x)}, dense_desc(DType::f32, {k, c, conv.r, conv.s})},
                    {{DType::f32, y, channels_last(y)}}};
  TileSchedule s;
  s.variant = "implicit", s.m = static_cast<int>(t.m), s.n = static_cast<int>(t.n);
  TileWaves waves = tile_waves_of(stage, s, {});
  waves.at_once = static_cast<double>(t.at_once);
  return bytes_past_cache(waves, cache_bytes);
}

TEST(TileReuse, AgreesWithAReplayOfTheShapes) {
  int compared = 0;
  std::map<std::string, bool> seen;
  for (const char* file : {"resnet50.csv", "gpu.csv", "layers.csv"})
    for (const Conv& conv : shapes_of(file)) {
      std::ostringstream key;
      key << conv.n << ' ' << conv.c << ' ' << conv.h << ' ' << conv.w << ' ' << conv.k << ' ' << conv.r << ' '
          << conv.stride_h;
      if (std::exchange(seen[key.str()], true)) continue;
      for (const Tiles t : {Tiles{128, 64, 264}, Tiles{64, 64, 192}, Tiles{64, 128, 82}})
        for (const double cache : {4e6, 48e6}) {
          // Long replays show nothing that short ones do not.
          const double reads = predicted(conv, t, 0) / 128 / std::min<double>(16, static_cast<double>(t.at_once));
          if (reads > 4e5) continue;
          const double have = predicted(conv, t, cache), want = replayed(conv, t, cache);
          ++compared;
          EXPECT_NEAR(have / want, 1, 0.2) << conv.name << " tiles " << t.m << "x" << t.n << ", " << t.at_once << " at once, "
                                           << cache << " bytes: " << have << " predicted, " << want << " replayed";
        }
    }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace sparkle
