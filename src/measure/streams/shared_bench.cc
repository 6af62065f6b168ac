#include "measure/streams/shared_bench.h"

#include <algorithm>
#include <chrono>

#include "base/median.h"
#include "measure/streams/bench_items.h"
#include "run/host_tensors.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kRoundSeconds = 0.35;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

using ItemList = std::vector<std::vector<HostTensor>>;

// Through a pipeline of any kind; `wanted[d]`: what device d answers. An item's outputs are those of one of the devices.
template <class P>
Result<double> seconds_an_item(P& pipeline, const ItemList& items, const std::vector<ItemList>& wanted, int count,
                               const std::string& how) {
  Status status = ok();
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    const size_t which = static_cast<size_t>(i) % items.size();
    SPARKLE_CHECK(pipeline.submit(items[which], [&, which](Pipeline::Outputs outputs) {
      if (!status.ok()) return;
      if (!outputs.ok()) status = outputs.error();
      else if (std::none_of(wanted.begin(), wanted.end(), [&](const ItemList& of) { return same_bytes(*outputs, of[which]); }))
        status = wrong_item(how, which);
    }));
  }
  pipeline.close();
  const double seconds = seconds_since(begin) / count;
  SPARKLE_CHECK(std::move(status));
  return seconds;
}

}  // namespace

double SharedMeasurement::efficiency() const {
  std::vector<double> alone;
  for (const Row& row : devices) alone.push_back(row.alone);
  return sparkle::efficiency(alone, 1, together);
}

double SharedMeasurement::gain() const {
  double best = 0;
  for (const Row& row : devices) best = best <= 0 ? row.alone : std::min(best, row.alone);
  return together > 0 ? best / together : 0;
}

Result<SharedMeasurement> measure_shared(const std::vector<SharedBenchDevice>& devices, const std::vector<HostTensor>& inputs,
                                         std::vector<ModelCheck>& checks, const PipelineBenchOptions& options,
                                         const std::shared_ptr<PipelineTrace>& trace) {
  SPARKLE_TRY(items, bench_items(inputs, options.seed));
  SharedMeasurement m;
  std::vector<ItemList> wanted;
  double once = 0;
  for (const SharedBenchDevice& device : devices) {
    ItemList own;
    for (size_t i = 0; i < items.size(); ++i) {
      SPARKLE_TRY(outputs, device.session->run_wiped(items[i], kWipedToNan));
      ModelCheck& check = checks[wanted.size()];
      if (i == 0 && check.possible()) SPARKLE_CHECK(check.accept(outputs, "before " + device.name + " was timed"));
      own.push_back(std::move(outputs));
    }
    wanted.push_back(std::move(own));
    const auto warm = Clock::now();
    SPARKLE_TRY(first, device.session->run(inputs));
    const double seconds = std::max(1e-6, seconds_since(warm));
    once = once <= 0 ? seconds : std::min(once, seconds);
    m.devices.push_back({device.name, 0, 0});
  }
  m.items = options.items > 0 ? options.items : std::clamp(static_cast<int>(kRoundSeconds / once), 16, 20000);
  m.rounds = options.rounds, m.depth = options.depth;
  std::vector<std::shared_ptr<Session>> sessions;
  SharedPipelineOptions shared;
  shared.depth = options.depth, shared.items = m.items;
  for (const SharedBenchDevice& device : devices) sessions.push_back(device.session), shared.names.push_back(device.name);
  {  // what a stream would do
    SharedPipeline pipeline(sessions, shared);
    const auto settled = seconds_an_item(pipeline, items, wanted, 1, "by a stream");
    if (!settled.ok()) return settled.error();
    m.why = pipeline.why();
  }
  shared.split = Split::always;
  std::vector<std::vector<double>> alone(devices.size());
  std::vector<double> together;
  for (int round = 0; round < m.rounds; ++round) {
    for (size_t d = 0; d < devices.size(); ++d) {
      PipelineOptions pipe;
      pipe.depth = options.depth;
      Pipeline pipeline(devices[d].session, pipe);
      SPARKLE_TRY(seconds, seconds_an_item(pipeline, items, {wanted[d]}, m.items, "by " + devices[d].name));
      alone[d].push_back(seconds);
    }
    shared.trace = round == 0 ? trace : nullptr;
    SharedPipeline pipeline(sessions, shared);
    SPARKLE_TRY(seconds, seconds_an_item(pipeline, items, wanted, m.items, "by several devices"));
    if (round > 0 || !trace || m.rounds == 1) together.push_back(seconds);
    const std::vector<DeviceShare> shares = pipeline.shares();
    for (size_t d = 0; d < devices.size(); ++d) {
      if (shares[d].lost)
        return Error{Reason::device_lost, "The device " + shares[d].name +
                                              " was lost while items were timed; its figures would "
                                              "be those of the others."};
      m.devices[d].items += shares[d].items;
    }
  }
  for (size_t d = 0; d < devices.size(); ++d) m.devices[d].alone = median(alone[d]);
  m.together = median(together);
  const int queues = static_cast<int>(devices.size()) + 1;
  m.checked =
      std::to_string(int64_t{m.items} * m.rounds * queues) + " items, each to the bit as by itself on wiped memory of a device";
  for (size_t d = 0; d < devices.size(); ++d)
    if (checks[d].possible()) m.checked += "; the first by " + devices[d].name + " " + checks[d].text();
  return m;
}

}  // namespace sparkle
