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
constexpr int kFewest = 16, kMost = 20000;  // items of a round

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

double SharedMeasurement::best_alone() const {
  double best = 0;
  for (const Row& row : devices) best = best <= 0 ? row.alone : std::min(best, row.alone);
  return best;
}

Result<SharedMeasurement> measure_shared(const std::vector<SharedBenchDevice>& devices, const std::vector<HostTensor>& inputs,
                                         std::vector<ModelCheck>& checks, const PipelineBenchOptions& options,
                                         const std::shared_ptr<PipelineTrace>& trace) {
  SPARKLE_TRY(items, bench_items(inputs, options.seed));
  SharedMeasurement m;
  std::vector<ItemList> wanted;
  const auto items_for = [&](double seconds) {
    return options.items > 0 ? options.items : std::clamp(static_cast<int>(kRoundSeconds / seconds), kFewest, kMost);
  };
  for (const SharedBenchDevice& device : devices) {
    ItemList own;
    for (size_t i = 0; i < items.size(); ++i) {
      SPARKLE_TRY(outputs, device.session->run_wiped(items[i], kWipedToNan));
      ModelCheck& check = checks[wanted.size()];
      if (i == 0 && check.possible()) SPARKLE_CHECK(check.accept(outputs, "before " + device.name + " was timed"));
      own.push_back(std::move(outputs));
    }
    wanted.push_back(std::move(own));
    double seconds = kRoundSeconds;
    for (int i = 0; i < 3; ++i) {
      const auto begin = Clock::now();
      SPARKLE_TRY(outputs, device.session->run(inputs));
      seconds = std::clamp(seconds_since(begin), 1e-6, seconds);
    }
    m.devices.push_back({device.name, items_for(seconds), 0, 0});
    m.items = std::max(m.items, m.devices.back().alone_items);
  }
  m.rounds = options.rounds, m.depth = options.depth;
  std::vector<std::shared_ptr<Session>> sessions;
  SharedPipelineOptions shared;
  shared.depth = options.depth, shared.items = m.items;
  for (const SharedBenchDevice& device : devices) sessions.push_back(device.session), shared.names.push_back(device.name);
  std::vector<std::vector<double>> alone(devices.size());
  std::vector<double> together, stream;
  for (int round = 0; round < m.rounds; ++round) {
    for (size_t d = 0; d < devices.size(); ++d) {
      PipelineOptions pipe;
      pipe.depth = options.depth;
      Pipeline pipeline(devices[d].session, pipe);
      SPARKLE_TRY(seconds, seconds_an_item(pipeline, items, {wanted[d]}, m.devices[d].alone_items, "by " + devices[d].name));
      alone[d].push_back(seconds);
    }
    {
      shared.split = Split::automatic, shared.trace = nullptr;
      SharedPipeline pipeline(sessions, shared);
      SPARKLE_TRY(seconds, seconds_an_item(pipeline, items, wanted, m.items, "by a stream"));
      stream.push_back(seconds);
      m.why = pipeline.why();
    }
    shared.split = Split::always, shared.trace = round == 0 ? trace : nullptr;
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
  m.together = median(together), m.stream = median(stream);
  int64_t all = 2 * m.items;
  for (const SharedMeasurement::Row& row : m.devices) all += row.alone_items;
  m.checked = std::to_string(all * m.rounds) + " items, each to the bit as by itself on wiped memory of a device";
  for (size_t d = 0; d < devices.size(); ++d)
    if (checks[d].possible()) m.checked += "; the first by " + devices[d].name + " " + checks[d].text();
  return m;
}

}  // namespace sparkle
