// PipelineTrace: when each item of a pipeline was handed over, uploaded, computed, downloaded and brought back, by the host's
// clock. A stage of a device ends when the host hears of its end; threads that only wait for that see to it.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/backend.h"

namespace sparkle {

// In the order that an item takes them. The first and the last are the host's work, those between the device's; on CPUs, which
// compute what they are handed at once, computing lies within handing over.
enum class PipelineLane : uint8_t { hand_over, upload, compute, download, bring_back };
constexpr size_t kPipelineLanes = 5;
const char* name_of(PipelineLane lane);

// Seconds since the trace began.
struct PipelineSpan {
  int device = 0;  // of PipelineTrace::devices()
  int64_t item = 0;
  PipelineLane lane = PipelineLane::hand_over;
  double begin = 0, end = 0;
};

class PipelineTrace {
 public:
  static constexpr size_t kMost = 200000;  // spans that are kept; the rest is counted

  int add_device(std::string name);
  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(); }
  void add(const PipelineSpan& span);

  std::vector<std::string> devices() const;
  // In the order of their ends. A stage that was handed over before the one ahead of it had ended - the item's own stage, or
  // the lane's item - begins when that ended.
  std::vector<PipelineSpan> spans() const;
  int64_t left_out() const;

 private:
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;  // of all below
  std::vector<std::string> devices_;
  std::vector<PipelineSpan> spans_;
  int64_t left_out_ = 0;
};

// Hears of the ends of a device's stages for a trace.
class PipelineWatch {
 public:
  PipelineWatch(std::shared_ptr<PipelineTrace> trace, std::string device);
  // Returns once all that is watched has ended.
  ~PipelineWatch();
  PipelineWatch(const PipelineWatch&) = delete;
  PipelineWatch& operator=(const PipelineWatch&) = delete;

  double now() const { return trace_->now(); }
  // The host's own work, from `begin` until now.
  void host(PipelineLane lane, int64_t item, double begin);
  // A stage that was handed over from `begin` until now and is complete with the token.
  void device(PipelineLane lane, int64_t item, double begin, const std::shared_ptr<Backend>& backend, Token token);

 private:
  struct Waited {
    PipelineSpan span;
    std::shared_ptr<Backend> backend;
    Token token;
  };
  struct Waiter {
    std::deque<Waited> queue;
    std::thread thread;
  };
  void wait_for(Waiter& waiter);

  const std::shared_ptr<PipelineTrace> trace_;
  const int device_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  bool ended_ = false;
  std::array<Waiter, 3> waiters_;  // of upload, compute and download
};

}  // namespace sparkle
