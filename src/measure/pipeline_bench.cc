#include "measure/pipeline_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "base/median.h"
#include "base/system/out_of_memory.h"
#include "measure/roofs/plan_roofs.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kItems = 4;  // that differ
constexpr double kRoundSeconds = 0.35, kTolerance = 0.03;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Items {
  std::vector<std::vector<HostTensor>> inputs, wanted;
};

// Floats that differ from the first item's; numbers and truth values may be sizes and places, and stay.
Result<std::vector<HostTensor>> another(const std::vector<HostTensor>& first, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<HostTensor> tensors;
  for (const HostTensor& t : first) {
    if (t.dtype != DType::f32) {
      tensors.push_back(t);
      continue;
    }
    SPARKLE_TRY(other, allocate_tensor(t.dtype, t.shape, "An input"));
    for (int64_t i = 0; i < t.elements(); ++i) other.data<float>()[i] = t.data<float>()[i] + 0.1f * normal(random);
    tensors.push_back(std::move(other));
  }
  return tensors;
}

bool same(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i].shape == b[i].shape) ||
        std::memcmp(a[i].bytes.get(), b[i].bytes.get(), static_cast<size_t>(a[i].size_bytes())) != 0)
      return false;
  return a.size() == b.size();
}

Error wrong(const char* how, size_t item) {
  return {Reason::internal, std::string("An item that was run ") + how + " (" + std::to_string(item) +
                                ") has other outputs than the same item by itself on wiped memory."};
}

// The least that the machine needs for an item, whichever way its steps overlap with those of others.
double least_seconds(const Plan& plan, const Device& device) {
  double computing = 0, moving = 0;
  for (const PlanStep& step : plan.steps) {
    const Cost roof = roof_of(step, device);
    (roof.bound == "compute" ? computing : moving) += roof.seconds;
  }
  return std::max(computing, moving);
}

}  // namespace

Result<PipelineMeasurement> measure_pipeline(const std::shared_ptr<Session>& session, const std::vector<HostTensor>& inputs,
                                             ModelCheck& check, const PipelineBenchOptions& options) {
  Items items;
  for (size_t i = 0; i < kItems; ++i) {
    if (i == 0) {
      items.inputs.push_back(inputs);
    } else {
      SPARKLE_TRY(other, another(inputs, options.seed + i));
      items.inputs.push_back(std::move(other));
    }
    SPARKLE_TRY(outputs, session->run_wiped(items.inputs[i], kWipedToNan));
    if (i == 0 && check.possible()) SPARKLE_CHECK(check.accept(outputs, "before it was timed"));
    items.wanted.push_back(std::move(outputs));
  }
  PipelineMeasurement m;
  const auto warm = Clock::now();
  RunReport report;
  SPARKLE_TRY(first, session->run(inputs, &report, true));
  const double once = std::max(1e-6, seconds_since(warm));
  m.items = options.items > 0 ? options.items : std::clamp(static_cast<int>(kRoundSeconds / once), 8, 20000);
  m.rounds = options.rounds, m.depth = options.depth;
  m.clock_of_device = session->backend()->keeps_time();
  PlanRoofs roofs(*session->backend(), *report.plan);
  std::vector<double> latencies, synchronous, pipelined, device;
  for (int round = 0; round < m.rounds; ++round) {
    roofs.take();
    const auto begin = Clock::now();
    for (int i = 0; i < m.items; ++i) {
      const size_t which = static_cast<size_t>(i) % kItems;
      const auto start = Clock::now();
      SPARKLE_TRY(outputs, session->run(items.inputs[which]));
      latencies.push_back(seconds_since(start));
      if (!same(outputs, items.wanted[which])) return wrong("alone", which);
    }
    synchronous.push_back(seconds_since(begin) / m.items);
    // The comparison of outputs is part of both: here by a thread of the pipeline's.
    Status status = ok();
    PipelineOptions pipe;
    pipe.depth = options.depth;
    Pipeline pipeline(session, pipe);
    const auto piped = Clock::now();
    for (int i = 0; i < m.items; ++i) {
      const size_t which = static_cast<size_t>(i) % kItems;
      SPARKLE_CHECK(pipeline.submit(items.inputs[which], [&, which](Pipeline::Outputs outputs) {
        if (!status.ok()) return;
        if (!outputs.ok()) status = outputs.error();
        else if (!same(*outputs, items.wanted[which])) status = wrong("in a pipeline", which);
      }));
    }
    pipeline.close();
    pipelined.push_back(seconds_since(piped) / m.items);
    SPARKLE_CHECK(std::move(status));
    const PipelineTimes times = pipeline.times();
    m.host.items += times.items, m.host.handing += times.handing, m.host.waiting += times.waiting;
    m.host.bringing += times.bringing;
    for (int i = 0; i < 5; ++i) {
      SPARKLE_TRY(timed, session->run(inputs, &report, true));
      double sum = 0;
      for (const StepReport& step : report.steps) sum += step.seconds;
      device.push_back(sum);
    }
  }
  roofs.take();
  m.latency = median(latencies), m.synchronous = median(synchronous), m.pipelined = median(pipelined);
  m.device = median(device);
  m.roof = least_seconds(*report.plan, roofs.device());
  if (m.pipelined < m.roof * (1 - kTolerance)) {
    char text[256];
    std::snprintf(
        text, sizeof text,
        "An item took %.4f ms in the pipeline, less than the %.4f ms that the roofs probed beside allow: the figure is wrong.",
        m.pipelined * 1e3, m.roof * 1e3);
    m.above = text;
  }
  m.checked = std::to_string(2 * m.piped_items()) + " items, each to the bit as by itself on wiped memory";
  if (check.possible()) m.checked += "; the first of them " + check.text();
  return m;
}

}  // namespace sparkle
