// What a model's requests came to, counted by any thread, and the page of it that Prometheus reads.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "serve/failure.h"

namespace sparkle::serve {

// Seconds from the request's last byte to its answer, in buckets.
class LatencyHistogram {
 public:
  static constexpr std::array<double, 14> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                     0.1,    0.25,  0.5,    1,     2.5,  5,     10};
  struct Counts {
    std::array<uint64_t, kBounds.size() + 1> in{};  // of each bucket alone; the last one has no bound
    uint64_t count = 0;
    double seconds = 0;
    // The bound below which this share of all lies; infinity beyond the last, 0 without any.
    double quantile(double share) const;
  };
  void add(double seconds);
  Counts counts() const;

 private:
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> in_{};
  std::atomic<uint64_t> nanoseconds_{0};
};

struct ModelMetrics {
  std::atomic<uint64_t> answered{0};
  std::array<std::atomic<uint64_t>, kFailures> failed{};
  std::atomic<uint64_t> batches{0}, batched_requests{0};  // runs of the model, and the requests that were in them
  LatencyHistogram latency;                               // of answered ones

  void failure(Failure why) { ++failed[static_cast<size_t>(why)]; }
  uint64_t failures() const;
};

// A model at the moment of the page.
struct MetricsRow {
  std::string name, version;
  const ModelMetrics* metrics = nullptr;
  int waiting = 0;  // requests in its queue
};

// "queue_full"
const char* name_of(Failure why);
std::string print_metrics(const std::vector<MetricsRow>& rows);

}  // namespace sparkle::serve
