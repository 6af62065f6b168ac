#include "measure/pipeline_bench.h"

#include <algorithm>
#include <chrono>

#include "base/median.h"
#include "measure/streams/bench_items.h"
#include "run/host_tensors.h"
#include "measure/roofs/plan_roofs.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kRoundSeconds = 0.35, kTolerance = 0.03;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Items {
  std::vector<std::vector<HostTensor>> inputs, wanted;
};

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
                                             ModelCheck& check, const PipelineBenchOptions& options,
                                             const std::shared_ptr<PipelineTrace>& trace) {
  Items items;
  SPARKLE_TRY(given, bench_items(inputs, options.seed));
  items.inputs = std::move(given);
  for (size_t i = 0; i < kBenchItems; ++i) {
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
      const size_t which = static_cast<size_t>(i) % kBenchItems;
      const auto start = Clock::now();
      SPARKLE_TRY(outputs, session->run(items.inputs[which]));
      latencies.push_back(seconds_since(start));
      if (!same_bytes(outputs, items.wanted[which])) return wrong_item("alone", which);
    }
    synchronous.push_back(seconds_since(begin) / m.items);
    // The comparison of outputs is part of both: here by a thread of the pipeline's.
    Status status = ok();
    PipelineOptions pipe;
    pipe.depth = options.depth;
    if (round == 0) pipe.trace = trace;
    Pipeline pipeline(session, pipe);
    const auto piped = Clock::now();
    for (int i = 0; i < m.items; ++i) {
      const size_t which = static_cast<size_t>(i) % kBenchItems;
      SPARKLE_CHECK(pipeline.submit(items.inputs[which], [&, which](Pipeline::Outputs outputs) {
        if (!status.ok()) return;
        if (!outputs.ok()) status = outputs.error();
        else if (!same_bytes(*outputs, items.wanted[which])) status = wrong_item("in a pipeline", which);
      }));
    }
    pipeline.close();
    // Noting takes time: a round that is traced counts only where there is no other.
    if (round > 0 || !trace || m.rounds == 1) pipelined.push_back(seconds_since(piped) / m.items);
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
