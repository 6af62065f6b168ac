#include "backends/self_tests/sample_run.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "families/values/element.h"
#include "families/values/epilogue.h"
#include "families/pointwise/pointwise.h"
#include "families/registry.h"
#include "families/windows/samples.h"
#include "families/values/post_ops.h"
#include "families/loops/walk.h"

namespace sparkle {
namespace {

// What lies in outputs and workspace before each run: NaN and -1, then numbers. What a run leaves unwritten it cannot have got
// right both times, and what is right on its first run alone, or gives the last answer again, is found by the second.
constexpr std::byte kWiped[] = {std::byte{0xff}, std::byte{0x5a}};

// A tensor in host memory: the byte `wiped` wherever nothing was stored, between the elements too.
struct Operand {
  TensorDesc desc;
  std::byte wiped;
  std::vector<std::byte> bytes;
  explicit Operand(const TensorDesc& d, std::byte with = kWiped[0])
      : desc(d),
        wiped(with),
        bytes(static_cast<size_t>(std::max<int64_t>(1, extent(d.shape, d.layout)) * size_of(d.dtype)), with) {}
  TensorView view() { return {bytes.data(), desc}; }
};

Status failed(const std::string& what) { return Error{Reason::failed_probe, what}; }

// What each element behind a post-op may be off by where the sum is off by as much as sums may be.
Operand slack_of(const Stage& stage, const std::vector<TensorView>& in, double tolerance) {
  Stage bare = stage;
  Epilogue& e = *epilogue_of(bare.params);
  const PointwiseParams post_op = std::exchange(e.post_op, {});
  const size_t first = in.size() - static_cast<size_t>(post_op.inputs - 1);
  TensorDesc wide = stage.outputs[0];
  wide.dtype = DType::f64;
  Operand sums(wide), slack(wide);
  const TensorView out = sums.view();
  info(bare.family()).reference(bare.params, std::span(in).first(first), {&out, 1});
  double largest = 1e-30;
  const auto at_place = [](Operand& o, const Dims& at) { return load_element(DType::f64, element_at(o.view(), at)); };
  for_each_index(wide.shape, [&](const Dims& at) {
    if (const double v = std::abs(at_place(sums, at)); std::isfinite(v)) largest = std::max(largest, v);
  });
  for_each_index(wide.shape, [&](const Dims& at) {
    std::vector<double> values{at_place(sums, at)};
    for (size_t i = first; i < in.size(); ++i) values.push_back(load_element(in[i].desc.dtype, element_at(in[i], at)));
    store_element(DType::f64, post_op_slack(post_op, values, tolerance * largest), element_at(slack.view(), at));
  });
  return slack;
}

// What an element may be off by: a share of the largest value, of its own, or so much.
struct Allowance {
  double of_largest = 0, of_value = 0, steps = 0;
};

// By the type of the results: integers are the same, but for one step where a program has rounded what became one.
Allowance allowance_of(const SampleRules& rules, DType result, double sums) {
  const bool off_by_one = rules.rounds_to_integers && !rules.exact && result != DType::boolean;
  if (!is_float(result)) return {0, 0, off_by_one ? 1.0 : 0.0};
  if (result == DType::f64 && !rules.exact) return {1e-8 * sums, 0, 0};  // what doubles are sums of: f32 would not pass
  // A device may convert large integers to floats either way.
  if (rules.exact) return {0, result == DType::f32 ? 0x1.01p-23 : 0, 0};
  // A result of 16 bits is rounded, either way; the least numbers of f16 lie 2^-24 apart.
  const bool f16 = result == DType::f16;
  return {sums + (f16 ? 0x1.01p-10 : result == DType::bf16 ? 0x1.01p-7 : 0), 0, f16 ? 0x1p-24 : 0};
}

// `slack`: what an element may be off by beside the tolerance; may be nullptr.
Status compare(Operand& got, Operand& wanted, const Allowance& tolerance, Operand* slack) {
  const DType type = got.desc.dtype;
  double largest = 1e-30;
  for_each_index(wanted.desc.shape, [&](const Dims& at) {
    const double v = std::abs(load_element(wanted.desc.dtype, element_at(wanted.view(), at)));
    if (std::isfinite(v)) largest = std::max(largest, v);
  });
  std::string wrong;
  Operand gaps(got.desc, got.wiped);
  for_each_index(got.desc.shape, [&](const Dims& at) {
    const std::byte* place = element_at(got.view(), at);
    const double a = load_element(type, place), b = load_element(wanted.desc.dtype, element_at(wanted.view(), at));
    const double more = (slack ? load_element(DType::f64, element_at(slack->view(), at)) : 0) + tolerance.steps;
    bool same = std::isnan(b)
                    ? std::isnan(a)
                    : a == b || std::abs(a - b) <= tolerance.of_largest * largest + tolerance.of_value * std::abs(b) + more;
    // Doubles do not tell long integers apart.
    if (!is_float(type) && tolerance.steps == 0)
      same = std::memcmp(place, element_at(wanted.view(), at), static_cast<size_t>(size_of(type))) == 0;
    if (!same && wrong.empty())
      wrong = "wrong: it gave " + std::to_string(a) + " instead of " + std::to_string(b) + " at " + at.to_string();
    std::memcpy(element_at(gaps.view(), at), place, static_cast<size_t>(size_of(type)));
  });
  if (!wrong.empty()) return failed(wrong);
  if (gaps.bytes != got.bytes) return failed("wrong: it wrote outside of its output");
  return ok();
}

// What one run reads, what it must give, and memory for what it gives.
struct Question {
  std::vector<Operand> inputs, outputs, wanted;
  std::optional<Operand> slack;
};

Question question(const Stage& stage, const SampleRules& rules, size_t run, uint32_t constants, double tolerance) {
  Question q;
  std::seed_seq seed{size_t{7}, run, size_t{constants}};
  std::mt19937 random(seed);
  const auto draw = info(stage.family()).sample_value;
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const TensorDesc& d = stage.inputs[i];
    Operand& operand = q.inputs.emplace_back(d);
    for_each_index(d.shape, [&](const Dims& at) {
      const double value = draw ? draw(stage, i, random) : any_value(stage.inputs[i].dtype, random);
      store_element(d.dtype, value, element_at(operand.view(), at));
    });
  }
  // One NaN among the values of the first operand must come out where it goes in, and nowhere else; but transforms of tiles
  // spread it. The other run has numbers alone.
  Dims last = stage.inputs[0].shape;
  for (int i = 0; i < last.size(); ++i) last[i] -= 1;
  const DType type = stage.inputs[0].dtype;
  if (run == 0 && is_float(type) && !rules.spreads_nan)
    store_element(type, std::numeric_limits<double>::quiet_NaN(), element_at(q.inputs[0].view(), last));
  const bool in_16_bits = type == DType::f16 || type == DType::bf16;
  const bool fp16 = in_16_bits && stage.outputs[0].dtype == type && !rules.in_16_bits;
  for (const TensorDesc& d : stage.outputs) {
    q.outputs.emplace_back(d, kWiped[run]);
    TensorDesc wide = d;
    if (is_float(d.dtype) && !rules.exact && (fp16 || (d.dtype == DType::f32 && !rules.in_native_type)))
      wide.dtype = DType::f64;
    q.wanted.emplace_back(wide);
  }
  // References read operands as they write results.
  std::vector<Operand> copies;
  if (fp16)
    for (Operand& o : q.inputs) {
      if (o.desc.dtype != type) {
        copies.push_back(o);
        continue;
      }
      Operand& copy = copies.emplace_back(TensorDesc{DType::f64, o.desc.shape, o.desc.layout});
      for_each_index(o.desc.shape, [&](const Dims& at) {
        store_element(DType::f64, load_element(type, element_at(o.view(), at)), element_at(copy.view(), at));
      });
    }
  std::vector<TensorView> in, out;
  for (Operand& o : fp16 ? copies : q.inputs) in.push_back(o.view());
  for (Operand& o : q.wanted) out.push_back(o.view());
  info(stage.family()).reference(stage.params, in, out);
  const Epilogue* e = epilogue_of(stage.params);
  if (e && e->has_post_op()) q.slack = slack_of(stage, in, tolerance + (fp16 ? 0x1.01p-10 : 0));
  return q;
}

// A kernel with memory of its own: the same for all runs.
class Tried {
 public:
  Tried(Backend& backend, std::unique_ptr<Kernel> kernel, uint32_t constants, const SampleRun& how)
      : backend_(backend), kernel_(std::move(kernel)), constants_(constants), how_(how) {}

  Status run(Question& q, std::byte wiped) {
    std::vector<std::vector<std::byte>> images;
    for (size_t i = 0; i < q.inputs.size(); ++i) images.push_back(image_of(q.inputs[i], i));
    for (const Operand& o : q.outputs) images.push_back(o.bytes);
    images.emplace_back(static_cast<size_t>(std::max<int64_t>(64, kernel_->workspace_bytes())), wiped);
    if (!program_) SPARKLE_CHECK(record(images, q.inputs.size()));
    for (size_t i = 0; i < images.size(); ++i) SPARKLE_CHECK(upload(images[i], *buffers_[i]));
    std::vector<Buffer*> slots;
    for (const auto& buffer : buffers_) slots.push_back(buffer.get());
    SPARKLE_TRY(token, backend_.submit(*program_, slots, {}));
    if (Status done = backend_.wait(token, how_.timeout); !done.ok()) {
      if (backend_.done(token)) return done;
      // It may end later: until then nothing that it touches may go.
      std::vector<std::shared_ptr<void>> kept{std::shared_ptr<Program>(std::move(program_)),
                                              std::shared_ptr<Kernel>(std::move(kernel_))};
      kept.insert(kept.end(), buffers_.begin(), buffers_.end());
      backend_.keep_until(token, std::move(kept));
      return failed("slow: no answer within " + std::to_string(how_.timeout.count() / 1000000) + " ms");
    }
    for (size_t i = 0; i < q.outputs.size(); ++i) {
      std::vector<std::byte>& bytes = q.outputs[i].bytes;
      const auto size = static_cast<int64_t>(bytes.size());
      SPARKLE_TRY(staging, backend_.allocate(size, MemoryKind::staging));
      const CopyRegion region{slots[q.inputs.size() + i], 0, staging.get(), 0, size};
      SPARKLE_TRY(copied, backend_.copy({&region, 1}, token));
      SPARKLE_CHECK(backend_.wait(copied, how_.timeout));
      std::memcpy(bytes.data(), staging->host(), bytes.size());
    }
    return ok();
  }

 private:
  // Filters that are constants are packed, and packed ones are read by another pipeline; so is what else a kernel packs.
  std::vector<std::byte> image_of(const Operand& operand, size_t i) const {
    const int input = static_cast<int>(i);
    const int64_t bytes = constants_ >> i & 1 ? kernel_->packed_bytes(input) : 0;
    if (bytes == 0) return operand.bytes;
    std::vector<std::byte> packed(static_cast<size_t>(bytes));
    kernel_->pack(input, operand.bytes.data(), packed.data(), backend_.executor());
    return packed;
  }
  Status record(const std::vector<std::vector<std::byte>>& images, size_t inputs) {
    Launch launch;
    launch.kernel = kernel_.get();
    launch.name = "self-test";
    for (size_t i = 0; i < images.size(); ++i) {
      SPARKLE_TRY(buffer, backend_.allocate(static_cast<int64_t>(images[i].size()), MemoryKind::device));
      buffers_.push_back(std::move(buffer));
      const Binding place{static_cast<int>(i), 0};
      if (i + 1 == images.size()) launch.workspace = place;
      else (i < inputs ? launch.inputs : launch.outputs).push_back(place);
    }
    SPARKLE_TRY(program, backend_.record({&launch, 1}));
    program_ = std::move(program);
    return ok();
  }
  Status upload(const std::vector<std::byte>& bytes, Buffer& to) {
    const auto size = static_cast<int64_t>(bytes.size());
    SPARKLE_TRY(staging, backend_.allocate(size, MemoryKind::staging));
    std::memcpy(staging->host(), bytes.data(), bytes.size());
    const CopyRegion region{staging.get(), 0, &to, 0, size};
    SPARKLE_TRY(token, backend_.copy({&region, 1}, {}));
    return backend_.wait(token, how_.timeout);
  }

  Backend& backend_;
  std::unique_ptr<Kernel> kernel_;
  uint32_t constants_;
  const SampleRun& how_;
  std::vector<std::shared_ptr<Buffer>> buffers_;  // inputs, outputs, workspace
  std::unique_ptr<Program> program_;
};

}  // namespace

Status run_sample(Backend& backend, const Stage& stage, const Schedule& schedule, uint32_t constants, const SampleRun& how) {
  auto compiled = backend.compile(stage, schedule, constants);
  if (!compiled.ok()) {
    // A variant for whole vectors or dense planes alone has nothing to do with the others, nor a device with types it lacks.
    const Reason reason = compiled.error().reason;
    if (reason == Reason::layout_not_served || reason == Reason::filter_not_served || reason == Reason::type_not_served)
      return ok();
    return compiled.take_error();
  }
  if (constants != 0 && (*compiled)->packed_bytes(1) == 0) return ok();  // the same kernel
  Tried tried(backend, std::move(*compiled), constants, how);
  const auto row = info(stage.family()).comparison;
  const SampleRules rules = row ? row(stage) : SampleRules{};
  const double tolerance = 1e-6 * (8 + std::sqrt(rules.products)) + how.more;
  for (size_t run = 0; run < std::size(kWiped); ++run) {
    Question q = question(stage, rules, run, constants, tolerance);
    SPARKLE_CHECK(tried.run(q, kWiped[run]));
    for (size_t i = 0; i < q.outputs.size(); ++i)
      SPARKLE_CHECK(compare(q.outputs[i], q.wanted[i], allowance_of(rules, q.outputs[i].desc.dtype, tolerance),
                            q.slack ? &*q.slack : nullptr));
  }
  return ok();
}

}  // namespace sparkle
