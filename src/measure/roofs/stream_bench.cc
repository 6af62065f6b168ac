#include "measure/roofs/stream_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/median.h"
#include "base/system/out_of_memory.h"
#include "measure/layer_bench.h"
#include "measure/choice_errors.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kAhead = 2;  // uploads that go before the work they are for

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A batch: where its operands are on the device, and where they come from and go to.
struct Batch {
  HostTensor x;  // that is timed
  std::shared_ptr<Buffer> input, output, from, to;
};

class Stream {
 public:
  Stream(Backend& backend, const AnchorCall& call, const LayerBenchOptions& options)
      : backend_(backend), call_(call), options_(options) {}

  Status prepare(const Choice& choice, int batches) {
    SPARKLE_TRY(layer, PreparedLayer::make(backend_, call_, choice, options_));
    layer_ = std::move(layer);
    SPARKLE_TRY(operands, random_operands(call_, next_seed(options_.seed, call_.problem)));
    operands_ = std::move(operands);
    const HostTensor& x = operands_[0];
    const int64_t out_bytes = extent(call_.output.shape, call_.output.layout) * size_of(call_.output.dtype);
    for (int b = 0; b < batches; ++b) {
      Batch batch;
      SPARKLE_TRY(values, allocate_tensor(x.dtype, x.shape, "A batch's input"));
      // The layer's own random values, beginning elsewhere in each batch.
      const int64_t shift = static_cast<int64_t>(b) * 7919 % x.elements();
      std::rotate_copy(x.data<float>(), x.data<float>() + shift, x.data<float>() + x.elements(), values.data<float>());
      batch.x = std::move(values);
      SPARKLE_TRY(input, backend_.allocate(batch.x.size_bytes(), MemoryKind::device));
      SPARKLE_TRY(output, backend_.allocate(out_bytes, MemoryKind::device));
      SPARKLE_TRY(from, backend_.allocate(batch.x.size_bytes(), MemoryKind::staging));
      SPARKLE_TRY(to, backend_.allocate(out_bytes, MemoryKind::staging));
      batch.input = std::move(input), batch.output = std::move(output), batch.from = std::move(from), batch.to = std::move(to);
      batches_.push_back(std::move(batch));
    }
    return ok();
  }

  // The operands that are timed.
  Status take_timed() {
    for (const Batch& b : batches_) give(b, b.x);
    return layer_->take(operands_);
  }

  // Every output, resident and with transfers, each batch on whole numbers of its own.
  Status check(const Choice& choice, Checked& checked) {
    const uint64_t weights = next_seed(options_.seed, call_.problem);
    std::vector<std::unique_ptr<LayerCheck>> checks;
    for (const Batch& b : batches_) {
      SPARKLE_TRY(made, LayerCheck::make(call_, next_seed(options_.seed, call_.problem), weights, backend_.executor()));
      give(b, made->inputs()[0]);
      checks.push_back(std::move(made));
    }
    SPARKLE_CHECK(layer_->take(checks[0]->inputs()));
    const double accuracy = std::max(options_.plan.accuracy, PlanOptions{}.accuracy);
    const auto outputs = [&](std::string_view how) -> Status {
      for (size_t b = 0; b < batches_.size(); ++b) {
        const std::string who = "The kernel " + to_text(choice.schedules[0]) + " in batch " + std::to_string(b + 1) + " of " +
                                std::to_string(batches_.size()) + std::string(how);
        Checked one;
        SPARKLE_CHECK(checks[b]->accept(reinterpret_cast<const float*>(batches_[b].to->host()),
                                        checks[b]->bound_of(bound_on_whole_numbers(choice), accuracy), who, one));
        const int times = checked.times;
        checked.add(one);
        if (b > 0) checked.times = times;  // of each batch
      }
      return ok();
    };
    // With transfers first: they bring the inputs.
    SPARKLE_CHECK(wipe());
    SPARKLE_TRY(there, moved());
    SPARKLE_CHECK(outputs(", with transfers,"));
    SPARKLE_CHECK(wipe());
    SPARKLE_TRY(here, resident());
    SPARKLE_TRY(fetched, copies(false, true));
    (void)there, (void)here, (void)fetched;
    return outputs("");
  }

  double bytes_up() const { return static_cast<double>(batches_[0].from->bytes()) * static_cast<double>(batches_.size()); }
  double bytes_down() const { return static_cast<double>(batches_[0].to->bytes()) * static_cast<double>(batches_.size()); }

  Result<double> resident() {
    const auto begin = Clock::now();
    Token last;
    for (const Batch& b : batches_) {
      SPARKLE_TRY(token, layer_->submit(*b.input, *b.output, {}));
      last = token;
    }
    SPARKLE_CHECK(backend_.wait(last));
    return seconds_since(begin);
  }

  Result<double> moved() {
    const auto begin = Clock::now();
    std::vector<Token> there;
    Token last;
    for (size_t b = 0; b < batches_.size(); ++b) {
      while (there.size() < batches_.size() && there.size() <= b + kAhead) {
        SPARKLE_TRY(token, up(batches_[there.size()]));
        there.push_back(token);
      }
      SPARKLE_TRY(done, layer_->submit(*batches_[b].input, *batches_[b].output, there[b]));
      SPARKLE_TRY(fetched, down(batches_[b], done));
      last = fetched;
    }
    SPARKLE_CHECK(backend_.wait(last));
    return seconds_since(begin);
  }

  Result<double> copies(bool upwards, bool downwards) {
    const auto begin = Clock::now();
    Token last;
    for (const Batch& b : batches_) {
      if (upwards) {
        SPARKLE_TRY(token, up(b));
        last = token;
      }
      if (downwards) {
        SPARKLE_TRY(token, down(b, {}));
        last = token;
      }
    }
    SPARKLE_CHECK(backend_.wait(last));
    return seconds_since(begin);
  }

  // Wipes all outputs, on both sides: what is found there later was computed later.
  Status wipe() {
    Token last;
    for (const Batch& b : batches_) {
      std::memset(b.to->host(), 0xff, static_cast<size_t>(b.to->bytes()));
      const CopyRegion region{b.to.get(), 0, b.output.get(), 0, b.to->bytes()};
      SPARKLE_TRY(token, backend_.copy({&region, 1}, {}));
      last = token;
    }
    SPARKLE_CHECK(backend_.wait(last));
    return layer_->wipe();
  }

  // The largest error of what was fetched last, a slice of each output.
  Result<double> largest_error(const std::string& who) {
    double largest = 0;
    for (const Batch& b : batches_) {
      const auto* y = reinterpret_cast<const float*>(b.to->host());
      SPARKLE_CHECK(all_written(call_, y, who));
      std::vector<HostTensor> values = operands_;
      values[0] = b.x;
      const SliceCheck slice(call_, values, next_seed(options_.seed, call_.problem));
      const double error = slice.possible() ? slice.error_of(y) : 0;
      largest = error <= largest ? largest : error;  // a NaN stays
    }
    return largest;
  }

 private:
  static void give(const Batch& b, const HostTensor& x) {
    std::memcpy(b.from->host(), x.bytes.get(), static_cast<size_t>(x.size_bytes()));
  }
  Result<Token> up(const Batch& b) {
    const CopyRegion region{b.from.get(), 0, b.input.get(), 0, b.from->bytes()};
    return backend_.copy({&region, 1}, {});
  }
  Result<Token> down(const Batch& b, Token after) {
    const CopyRegion region{b.output.get(), 0, b.to.get(), 0, b.to->bytes()};
    return backend_.copy({&region, 1}, after);
  }

  Backend& backend_;
  const AnchorCall& call_;
  const LayerBenchOptions& options_;
  std::unique_ptr<PreparedLayer> layer_;
  std::vector<Batch> batches_;
  std::vector<HostTensor> operands_;
};

Result<StreamMeasurement> measure(Backend& backend, const Problem& problem, const LayerBenchOptions& options, int batches) {
  StreamMeasurement m;
  m.problem = problem, m.batches = batches;
  const AnchorCall call = call_of(problem);
  if (problem.dtype != "f32")
    return Error{Reason::type_not_served, "Batches are measured in f32; '" + problem.dtype + "' is not supported there."};
  SPARKLE_TRY(choice, choose_layer(backend, problem, options));
  m.choice = std::move(choice);
  Stream stream(backend, call, options);
  SPARKLE_CHECK(stream.prepare(m.choice, batches));
  m.bytes_up = stream.bytes_up(), m.bytes_down = stream.bytes_down();
  SPARKLE_CHECK(stream.check(m.choice, m.checked));
  SPARKLE_CHECK(stream.take_timed());
  SPARKLE_CHECK(stream.wipe());
  SPARKLE_TRY(uploaded, stream.copies(true, false));
  (void)uploaded;
  std::vector<double> resident, moved, link, up, down;
  const double once = static_cast<double>(call.inputs[1].bytes()),
               all = batches * (compulsory_bytes(call, m.choice) - once) + once;
  RoofProbes probes(backend, peak_unit(m.choice, backend.device()), all);
  for (int round = 0; round < options.rounds; ++round) {
    probes.take();
    SPARKLE_TRY(r, stream.resident());
    probes.take();
    SPARKLE_TRY(t, stream.moved());
    SPARKLE_TRY(l, stream.copies(true, true));
    SPARKLE_TRY(u, stream.copies(true, false));
    SPARKLE_TRY(d, stream.copies(false, true));
    resident.push_back(r), moved.push_back(t), link.push_back(l), up.push_back(u), down.push_back(d);
  }
  const std::string who = "The kernel " + to_text(m.choice.schedules[0]);
  SPARKLE_TRY(error, stream.largest_error(who));
  m.largest_error = error;
  SPARKLE_CHECK(accept_error(error, problem, who, options, bound_on_random(m.choice, problem)));
  SPARKLE_CHECK(stream.check(m.choice, m.checked));
  m.resident_seconds = median(resident), m.moved_seconds = median(moved), m.link_seconds = median(link);
  m.up_seconds = median(up), m.down_seconds = median(down);
  double counted = 0;
  for (const Footprint& f : m.choice.footprints) counted += f.executed_flops;
  m.verdict = probes.judge({m.resident_seconds, batches * std::min(executed_flops(problem), counted), all, 0, false});
  return m;
}

}  // namespace

Result<StreamMeasurement> measure_stream(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                                         int batches) {
  return guard_memory("Measuring these batches", [&] { return measure(backend, problem, options, batches); });
}

}  // namespace sparkle
