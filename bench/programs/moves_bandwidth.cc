// How near the kernels that move data come to the copy bandwidth of this machine: each case is timed in turns with memcpy of
// 32 MB on one thread, in CPU time of that thread so that other programs disturb less. Bytes are those of x and y, each once.
//   moves_bandwidth [--unit avx512|avx2|neon] [--only TEXT] [--rounds N] [--cache BYTES] [--no-verify]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>

#include "backends/cpu/cpu_kernel.h"
#include "families/copy/copy.h"
#include "families/family.h"
#include "families/gather/gather.h"
#include "families/pad/pad.h"
#include "families/resize/resize.h"

namespace {

using namespace sparkle;

struct Options {
  std::string unit = "avx512", only;
  int rounds = 21;
  int64_t cache = 32 << 20;
  bool verify = true;
};

struct Case {
  std::string name;
  Stage stage;
  std::string variant;
  Result<cpu::CpuKernelPtr> (*make)(const Stage&, const Schedule&, const Device&, uint32_t);
  const FamilyInfo* family;
};

TensorDesc desc(const Dims& shape, bool last) { return {DType::f32, shape, last ? channels_last(shape) : row_major(shape)}; }

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

Case copy_case(std::string name, TensorDesc x, TensorDesc y) {
  return {std::move(name), {CopyParams{}, {std::move(x)}, {std::move(y)}}, "tiles", cpu::make_copy, &copy_info()};
}
Case transposed(std::string name, const Dims& shape, bool to_last) {
  return copy_case(std::move(name), desc(shape, !to_last), desc(shape, to_last));
}
Case pad(std::string name, const Dims& shape, bool last, PadMode mode) {
  Dims y = shape;
  PadParams params{mode, Dims::filled(4, 0), Dims::filled(4, 0), 0};
  for (int i : {2, 3}) params.begin[i] = params.end[i] = 1, y[i] += 2;
  return {std::move(name), {params, {desc(shape, last)}, {desc(y, last)}}, "rows", cpu::make_pad, &pad_info()};
}
Case resize(std::string name, const Dims& shape, const Dims& resized, bool last, ResizeMode mode) {
  ResizeParams params;
  params.mode = mode;
  params.coordinates = mode == ResizeMode::nearest ? ResizeCoordinates::asymmetric : ResizeCoordinates::half_pixel;
  params.nearest = ResizeNearest::floor;
  for (int i = 0; i < 4; ++i) params.scales.push_back(static_cast<double>(resized[i]) / static_cast<double>(shape[i]));
  return {std::move(name), {params, {desc(shape, last)}, {desc(resized, last)}}, "lines", cpu::make_resize, &resize_info()};
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const Dims c32{4, 32, 256, 256}, c64{8, 64, 128, 128}, c256{8, 256, 64, 64};
  list.push_back(copy_case("copy dense", desc(c64, false), desc(c64, false)));
  const std::pair<const char*, Dims> sizes[] = {
      {"c3", {10, 3, 512, 512}},         {"c4", {8, 4, 512, 512}},      {"c32", c32}, {"c64", c64}, {"c256", c256},
      {"c256 56x56", {10, 256, 56, 56}}, {"c512 7x7", {320, 512, 7, 7}}};
  for (const auto& [name, shape] : sizes) {
    list.push_back(transposed(std::string("nchw>nhwc ") + name, shape, true));
    list.push_back(transposed(std::string("nhwc>nchw ") + name, shape, false));
  }
  const Dims heads{16, 12, 512, 64};  // batch, heads, tokens, size: stored as tokens, heads on one side
  list.push_back(copy_case("split heads", {DType::f32, heads, dense(heads, {0, 2, 1, 3})}, desc(heads, false)));
  const Dims matrix{2048, 4096};
  list.push_back(copy_case("transpose 2048x4096", {DType::f32, matrix, dense(matrix, {1, 0})}, desc(matrix, false)));
  TensorDesc bias{DType::f32, c64, {{0, 1, 2, 3}, {0, 1, 0, 0}}};
  list.push_back(copy_case("expand bias", bias, desc(c64, false)));
  // Depth to space by 2: [n][c][h][2][w][2] of y from [n][2][2][c][h][w].
  const Dims shuffle{8, 16, 128, 2, 128, 2};
  list.push_back(copy_case("depth to space nchw", {DType::f32, shuffle, dense(shuffle, {0, 3, 5, 1, 2, 4})},
                           {DType::f32, shuffle, row_major(shuffle)}));
  list.push_back(pad("pad 1 nhwc", {8, 64, 126, 126}, true, PadMode::constant));
  list.push_back(pad("pad 1 nchw", {8, 64, 126, 126}, false, PadMode::constant));
  list.push_back(pad("reflect 1 nhwc", {8, 64, 126, 126}, true, PadMode::reflect));
  list.push_back(pad("reflect 1 nchw", {8, 64, 126, 126}, false, PadMode::reflect));
  const std::pair<const char*, ResizeMode> modes[] = {
      {"nearest", ResizeMode::nearest}, {"linear", ResizeMode::linear}, {"cubic", ResizeMode::cubic}};
  for (const auto& [name, mode] : modes)
    for (bool last : {true, false})
      list.push_back(
          resize(std::string(name) + " x2 " + (last ? "nhwc" : "nchw"), {8, 64, 64, 64}, {8, 64, 128, 128}, last, mode));
  list.push_back(resize("linear c3 480>640 nhwc", {8, 3, 480, 480}, {8, 3, 640, 640}, true, ResizeMode::linear));
  list.push_back(resize("linear c3 480>640 nchw", {8, 3, 480, 480}, {8, 3, 640, 640}, false, ResizeMode::linear));
  const TensorDesc rows = dense_desc(DType::f32, {32768, 256});
  const Stage gather{GatherParams{}, {rows, dense_desc(DType::i64, {32768})}, {rows}};
  list.push_back({"gather rows of 256", gather, "slices", cpu::make_gather, &gather_info()});
  return list;
}

HostTensor random_tensor(const TensorDesc& d, std::mt19937& random) {
  HostTensor t = HostTensor::zeros(d.dtype, {std::max<int64_t>(1, extent(d.shape, d.layout))});
  if (d.dtype == DType::i64) {
    for (int64_t i = 0; i < t.elements(); ++i) t.data<int64_t>()[i] = static_cast<int64_t>(random() % 32768);
  } else {
    for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = static_cast<float>(random()) * 0x1p-31f - 1;
  }
  return t;
}

// False with a message on stdout if the case cannot run or is wrong.
bool measure(const Case& c, const Options& options, HostTensor& from, HostTensor& to) {
  Device device;
  device.units.push_back({options.unit});
  device.memory = {{"L3", options.cache}, {"DRAM"}};
  auto kernel = c.make(c.stage, LoopSchedule{c.variant, options.unit, 0}, device, 0);
  if (!kernel) {
    std::printf("%-24s %s\n", c.name.c_str(), kernel.error().message.c_str());
    return false;
  }
  std::mt19937 random(1);
  std::vector<HostTensor> inputs;
  std::vector<std::byte*> starts;
  std::vector<TensorView> views;
  double bytes = static_cast<double>(c.stage.outputs[0].bytes());
  for (const TensorDesc& input : c.stage.inputs) {
    inputs.push_back(random_tensor(input, random));
    starts.push_back(inputs.back().bytes.get());
    views.push_back({starts.back(), input});
    bytes += static_cast<double>(inputs.back().size_bytes());
  }
  HostTensor y = HostTensor::zeros(DType::f32, {c.stage.outputs[0].elements()});
  std::byte* start = y.bytes.get();
  InlineExecutor executor;
  const cpu::CpuLaunch launch{starts, {&start, 1}, nullptr, &executor};
  std::vector<double> kernel_times, copy_times;
  for (int round = 0; round < options.rounds + 2; ++round) {
    const double t0 = thread_seconds();
    std::memcpy(to.bytes.get(), from.bytes.get(), static_cast<size_t>(to.size_bytes()));
    const double t1 = thread_seconds();
    (*kernel)->run(launch);
    const double t2 = thread_seconds();
    if (round < 2) continue;
    copy_times.push_back(t1 - t0);
    kernel_times.push_back(t2 - t1);
  }
  const double copied = 2 * static_cast<double>(to.size_bytes()) / median(copy_times) * 1e-9;
  const double moved = bytes / median(kernel_times) * 1e-9;
  std::printf("%-24s %8.1f MB %8.2f ms %7.2f GB/s  memcpy %6.2f GB/s  %5.0f %%", c.name.c_str(), bytes * 1e-6,
              median(kernel_times) * 1e3, moved, copied, 100 * moved / copied);
  bool right = true;
  if (options.verify) {
    HostTensor expected = HostTensor::zeros(DType::f32, {y.elements()});
    const TensorView view{expected.bytes.get(), c.stage.outputs[0]};
    c.family->reference(c.stage.params, views, {&view, 1});
    double worst = 0;
    for (int64_t i = 0; i < y.elements(); ++i)
      worst = std::max(worst, static_cast<double>(std::abs(expected.data<float>()[i] - y.data<float>()[i])));
    right = worst < 1e-5;
    std::printf("  max error %.1e%s", worst, right ? "" : "  WRONG");
  }
  std::printf("\n");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--no-verify") {
      options.verify = false;
      continue;
    }
    if (name == "--unit") options.unit = value;
    else if (name == "--only") options.only = value;
    else if (name == "--rounds") options.rounds = std::max(1, std::atoi(value));
    else if (name == "--cache") options.cache = std::atoll(value);
    else return std::printf("moves_bandwidth [--unit U] [--only TEXT] [--rounds N] [--cache BYTES] [--no-verify]\n"), 2;
    ++i;
  }
  std::mt19937 random(2);
  HostTensor from = random_tensor(dense_desc(DType::f32, {8 << 20}), random), to = from;
  to = HostTensor::zeros(DType::f32, {8 << 20});
  bool right = true;
  for (const Case& c : cases())
    if (c.name.find(options.only) != std::string::npos) right = measure(c, options, from, to) && right;
  return right ? 0 : 1;
}
