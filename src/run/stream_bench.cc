#include "run/stream_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/out_of_memory.h"
#include "run/layer_bench.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kAhead = 2;  // uploads that go before the work they are for

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// A batch: where its operands are on the device, and where they come from and go to.
struct Batch {
  HostTensor x;
  std::shared_ptr<Buffer> input, output, from, to;
};

class Stream {
 public:
  Stream(Backend& backend, const AnchorCall& call, const LayerBenchOptions& options)
      : backend_(backend), call_(call), options_(options) {}

  Status prepare(const Choice& choice, int batches) {
    SPARKLE_TRY(layer, PreparedLayer::make(backend_, call_, choice, options_));
    layer_ = std::move(layer);
    const HostTensor& x = layer_->inputs()[0];
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
      std::memcpy(from->host(), batch.x.bytes.get(), static_cast<size_t>(batch.x.size_bytes()));
      batch.input = std::move(input), batch.output = std::move(output), batch.from = std::move(from), batch.to = std::move(to);
      batches_.push_back(std::move(batch));
    }
    return ok();
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
    return backend_.wait(last);
  }

  // The largest error of what was fetched.
  double largest_error() {
    if (checks_.empty())
      for (size_t b = 0; b < batches_.size(); ++b) {
        std::vector<HostTensor> values = layer_->inputs();
        values[0] = batches_[b].x;
        checks_.push_back(std::make_unique<LayerCheck>(call_, values, options_.seed + b));
      }
    double largest = 0;
    for (size_t b = 0; b < batches_.size(); ++b) {
      const double error = checks_[b]->error_of(reinterpret_cast<const float*>(batches_[b].to->host()));
      largest = error <= largest ? largest : error;  // a NaN stays
    }
    return largest;
  }

 private:
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
  std::vector<std::unique_ptr<LayerCheck>> checks_;
};

Result<StreamMeasurement> measure(Backend& backend, const Problem& problem, const LayerBenchOptions& options, int batches) {
  StreamMeasurement m;
  m.problem = problem, m.batches = batches;
  const AnchorCall call = call_of(problem);
  if (problem.dtype != "f32")
    return Error{Reason::type_not_served, "Batches are measured in f32; '" + problem.dtype + "' is not served there."};
  if (problem.kind == ProblemKind::conv_transpose)
    return Error{Reason::operator_not_served, "Batches of transposed convolutions are not measured: they cannot be verified."};
  SPARKLE_TRY(choice, choose_layer(backend, problem, options));
  m.choice = std::move(choice);
  Stream stream(backend, call, options);
  SPARKLE_CHECK(stream.prepare(m.choice, batches));
  m.bytes_up = stream.bytes_up(), m.bytes_down = stream.bytes_down();
  const auto verified = [&]() -> Status {
    const double error = stream.largest_error();
    m.largest_error = error <= m.largest_error ? m.largest_error : error;
    return accept_error(error, problem, "The kernel " + to_text(m.choice.schedules[0]), options, m.choice.error);
  };
  // With transfers first: they bring the inputs.
  SPARKLE_CHECK(stream.wipe());
  SPARKLE_TRY(first, stream.moved());
  (void)first;
  SPARKLE_CHECK(verified());
  SPARKLE_CHECK(stream.wipe());
  SPARKLE_TRY(warm, stream.resident());
  (void)warm;
  SPARKLE_TRY(fetched, stream.copies(false, true));
  (void)fetched;
  SPARKLE_CHECK(verified());
  std::vector<double> resident, moved, link, up, down;
  for (int round = 0; round < options.rounds; ++round) {
    SPARKLE_TRY(r, stream.resident());
    SPARKLE_TRY(t, stream.moved());
    SPARKLE_TRY(l, stream.copies(true, true));
    SPARKLE_TRY(u, stream.copies(true, false));
    SPARKLE_TRY(d, stream.copies(false, true));
    resident.push_back(r), moved.push_back(t), link.push_back(l), up.push_back(u), down.push_back(d);
  }
  m.resident_seconds = median(resident), m.moved_seconds = median(moved), m.link_seconds = median(link);
  m.up_seconds = median(up), m.down_seconds = median(down);
  return m;
}

}  // namespace

Result<StreamMeasurement> measure_stream(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                                         int batches) {
  return guard_memory("Measuring these batches", [&] { return measure(backend, problem, options, batches); });
}

}  // namespace sparkle
