// Measuring: each rate is the upper quartile of some eight slots - the median would follow a neighbour's noise, the maximum
// the glitches of the clock.
#include "backends/cpu/roofs/roofs.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "backends/cpu/roofs/roof_kernels.h"
#include "base/median.h"

namespace sparkle::cpu {

namespace {

double now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double wall_seconds() { return now(CLOCK_MONOTONIC); }
double cpu_seconds() { return now(CLOCK_THREAD_CPUTIME_ID); }

double upper_quartile(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() * 3 / 4];
}

// Amount per second of `step`, which does some 20 us of work and returns its amount.
template <class Step>
double rate(double seconds, Step&& step) {
  step();
  std::vector<double> rates;
  const double end = wall_seconds() + seconds;
  do {
    double amount = 0, elapsed = 0;
    const double begin = cpu_seconds();
    do {
      amount += step();
      elapsed = cpu_seconds() - begin;
    } while (elapsed < seconds / 8 && wall_seconds() < end);
    if (elapsed > 0) rates.push_back(amount / elapsed);
  } while (wall_seconds() < end);
  return upper_quartile(rates);
}

// measure(worker index) on all workers at once; the sum of what they return.
template <class Measure>
double together(Executor& executor, Measure&& measure) {
  const int width = executor.width();
  std::vector<double> results(static_cast<size_t>(width), 0.0);
  // What cores do one after the other is no rate of all together: where they share something (two threads of a core, power) the
  // sum would be too much. So again where a worker came late, but not for ever: a foreign executor may run tasks in turn.
  bool together = false;
  for (int attempt = 0; attempt < 4 && !together; ++attempt) {
    std::atomic<int> arrived{0}, alone{0};
    parallel_for(executor, width, [&](int task, int) {
      arrived.fetch_add(1);
      for (const double end = wall_seconds() + 5e-3; arrived.load() < width && wall_seconds() < end;) {
      }
      if (arrived.load() < width) alone.fetch_add(1);
      results[static_cast<size_t>(task)] = measure(task);
    });
    together = alone.load() == 0;
  }
  double sum = 0;
  for (double r : results) sum += r;
  return sum;
}

double product_rate(const RoofKernels& kernels, double seconds) {
  float sink = 0;
  return rate(seconds, [&] { return kernels.products(2e6, &sink); });
}

// Cycles of a chain of dependent additions, one cycle each on every core known, give the clock.
double clock_rate(double seconds) {
#if defined(__x86_64__) || defined(__aarch64__)
  uint64_t value = 1;
  const uint64_t step = 3;
  return rate(seconds, [&] {
    constexpr int kRounds = 1000;
    for (int i = 0; i < kRounds; ++i) {
#if defined(__x86_64__)
      asm volatile(".rept 64\n add %1, %0\n .endr" : "+r"(value) : "r"(step) : "cc");
#else
      asm volatile(".rept 64\n add %0, %0, %1\n .endr" : "+r"(value) : "r"(step));
#endif
    }
    return 64.0 * kRounds;
  });
#else
  (void)seconds;
  return 0;
#endif
}

}  // namespace

// Pages of memory of our own, large ones where the system gives them.
class Pages {
 public:
  explicit Pages(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    data_ = static_cast<float*>(memory);
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes_, MADV_HUGEPAGE);
#endif
  }
  ~Pages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
  size_t bytes_;
};

namespace {

constexpr int64_t kChunk = 1 << 18;  // floats of one step through a large buffer: 1 MiB

// Bytes per second of reading `count` floats over and over.
double read_rate(const RoofKernels& kernels, const float* data, int64_t count, double seconds, int64_t& at) {
  volatile uint32_t sink = 0;
  if (count <= kChunk) {
    const int64_t times = kChunk / count;
    return rate(seconds, [&] {
      sink = sink ^ kernels.read(data, count, times);
      return 4.0 * static_cast<double>(count * times);
    });
  }
  return rate(seconds, [&] {
    sink = sink ^ kernels.read(data + at, kChunk, 1);
    at = at + 2 * kChunk <= count ? at + kChunk : 0;
    return 4.0 * static_cast<double>(kChunk);
  });
}

double read_rate(const RoofKernels& kernels, const float* data, int64_t count, double seconds) {
  int64_t at = 0;
  return read_rate(kernels, data, count, seconds, at);
}

// Bytes read plus bytes written per second of copying the first half to the second.
double copy_rate(const RoofKernels& kernels, float* data, int64_t count, double seconds, int64_t& at) {
  const int64_t half = count / 2 / kRoofStep * kRoofStep;
  const int64_t chunk = std::min(half, kChunk);
  const int64_t times = half <= kChunk ? std::max<int64_t>(1, kChunk / half / 2) : 1;
  at = std::min(at, half - chunk);
  return rate(seconds, [&] {
    kernels.copy(data + at, data + half + at, chunk, times);
    at = at + 2 * chunk <= half ? at + chunk : 0;
    return 8.0 * static_cast<double>(chunk * times);
  });
}

double copy_rate(const RoofKernels& kernels, float* data, int64_t count, double seconds) {
  int64_t at = 0;
  return copy_rate(kernels, data, count, seconds, at);
}

// Floats that each core goes through to measure level `index`, or 0 when the level cannot be told from the one inside it.
int64_t working_set(const Device& device, size_t index, int width) {
  const MemoryLevel& level = device.memory[index];
  const int64_t inner = index > 0 ? device.memory[index - 1].bytes : 0;
  int64_t bytes = 0;
  if (index + 1 == device.memory.size()) {  // DRAM: three times the last cache in all
    bytes = std::clamp(3 * inner, int64_t{64} << 20, int64_t{512} << 20);
    if (level.bytes > 0) bytes = std::min(bytes, level.bytes / 8);
    bytes /= width;
  } else {
    bytes = level.bytes / 2 / std::min(width, level.shared_by);
    if (inner > 0) bytes = std::min(bytes, 8 * inner);
    if (bytes <= inner) return 0;
  }
  return bytes / 4 / kRoofStep * kRoofStep;
}

double launch_cost(Executor& executor) {
  std::vector<double> times;
  for (int i = 0; i < 300; ++i) {
    const double begin = wall_seconds();
    parallel_for(executor, std::max(2, executor.width()), [](int, int) {});
    times.push_back(wall_seconds() - begin);
  }
  return median(times);
}

}  // namespace

UnitPeak probe_peak(std::string_view unit, double seconds) {
  const RoofKernels kernels = roof_kernels(unit);
  if (kernels.products == nullptr) return {};
  const double peak = product_rate(kernels, seconds);
  return {peak, peak};
}

UnitPeak probe_peak(std::string_view unit, Executor& executor, double seconds) {
  const RoofKernels kernels = roof_kernels(unit);
  if (kernels.products == nullptr) return {};
  const double peak = together(executor, [&](int) { return product_rate(kernels, seconds); });
  return {peak, peak / executor.width()};
}

// A worker's place in a level that is larger than what one probe goes through: the next one goes on there, or it would find in
// a cache what the last one brought.
struct BandwidthProbe::Level {
  explicit Level(int64_t each, int width) : count(each), pages(4 * each * width), at(static_cast<size_t>(width)) {}
  int64_t count;
  Pages pages;
  struct alignas(64) Place {
    int64_t reading = 0, copying = 0;
  };
  std::vector<Place> at;
};

BandwidthProbe::BandwidthProbe() = default;
BandwidthProbe::~BandwidthProbe() = default;

void BandwidthProbe::forget() { levels_.clear(); }

double BandwidthProbe::bytes_per_second(const Device& device, size_t index, Executor& executor, double seconds) {
  RoofKernels kernels;
  for (const MathUnit& unit : device.units)
    if (const RoofKernels own = roof_kernels(unit.name); own.read != nullptr && kernels.read == nullptr) kernels = own;
  const int width = executor.width();
  const int64_t count = index < device.memory.size() ? working_set(device, index, width) : 0;
  if (kernels.read == nullptr || count <= 0) return 0;
  levels_.resize(std::max(levels_.size(), index + 1));
  if (!levels_[index]) {
    levels_[index] = std::make_unique<Level>(count, width);
    if (levels_[index]->pages.data() != nullptr)
      together(executor, [&](int w) {
        std::fill_n(levels_[index]->pages.data() + count * w, count, 1.0f);
        return 0.0;
      });
  }
  Level& level = *levels_[index];
  if (level.pages.data() == nullptr) return 0;
  const double read = together(executor, [&](int w) {
    return read_rate(kernels, level.pages.data() + count * w, count, seconds / 2, level.at[static_cast<size_t>(w)].reading);
  });
  const double copied = together(executor, [&](int w) {
    return copy_rate(kernels, level.pages.data() + count * w, count, seconds / 2, level.at[static_cast<size_t>(w)].copying);
  });
  return std::max(read, copied);
}

Status measure_roofs(Device& device, Executor& executor, double seconds) {
  const int width = executor.width();
  RoofKernels kernels;  // of the fastest unit, for the memory
  int measured_units = 0;
  for (const MathUnit& unit : device.units) {
    const RoofKernels own = roof_kernels(unit.name);
    measured_units += own.products != nullptr;
    if (own.read != nullptr && kernels.read == nullptr) kernels = own;
  }
  if (kernels.read == nullptr || device.kind != DeviceKind::cpu)
    return Error{Reason::device_unusable,
                 "'" + device.name + "' has no vector unit that Sparkle has kernels for on this machine."};
  // Each unit twice, each level three times, the clock; touching the pages takes the rest.
  const double slot = 0.7 * seconds / static_cast<double>(2 * measured_units + 3 * static_cast<int>(device.memory.size()) + 1);

  device.clock_hz = clock_rate(slot);
  for (MathUnit& unit : device.units) {
    const RoofKernels own = roof_kernels(unit.name);
    if (own.products == nullptr) continue;
    unit.flops_per_second = product_rate(own, slot);
    unit.total_flops_per_second = together(executor, [&](int) { return product_rate(own, slot); });
  }
  // Neighbours on the cores can halve a probe. No unit is slower than a narrower one: what looks so is measured again, the best
  // counts.
  for (MathUnit& unit : device.units) {
    const RoofKernels own = roof_kernels(unit.name);
    if (own.products == nullptr) continue;
    for (const MathUnit& narrower : device.units) {
      if (narrower.kind != unit.kind || narrower.input != unit.input || narrower.n >= unit.n) continue;
      for (int again = 0; again < 20 && unit.flops_per_second < 0.95 * narrower.flops_per_second; ++again)
        unit.flops_per_second = std::max(unit.flops_per_second, product_rate(own, slot));
      unit.total_flops_per_second = std::max(unit.total_flops_per_second, unit.flops_per_second);
    }
  }

  int64_t largest = 0;
  for (size_t i = 0; i < device.memory.size(); ++i) largest = std::max(largest, working_set(device, i, width));
  const Pages pages(4 * largest * width);
  if (pages.data() == nullptr)
    return Error{Reason::out_of_memory, "Measuring the memory needs " + std::to_string(4 * largest * width >> 20) +
                                            " MiB that the system does not give."};
  const auto part = [&](int worker) { return pages.data() + largest * worker; };
  together(executor, [&](int worker) {
    std::fill_n(part(worker), largest, 1.0f);  // each core touches its own part first
    return 0.0;
  });
  for (size_t i = 0; i < device.memory.size(); ++i) {
    MemoryLevel& level = device.memory[i];
    const int64_t count = working_set(device, i, width);
    if (count <= 0) continue;
    const bool dram = i + 1 == device.memory.size();
    level.bytes_per_second = read_rate(kernels, pages.data(), dram ? count * width : count, slot);
    level.total_bytes_per_second = together(executor, [&](int w) { return read_rate(kernels, part(w), count, slot); });
    level.copy_bytes_per_second = together(executor, [&](int w) { return copy_rate(kernels, part(w), count, slot); });
  }
  device.launch_seconds = launch_cost(executor);
  device.calibrated = true;
  return ok();
}

}  // namespace sparkle::cpu
