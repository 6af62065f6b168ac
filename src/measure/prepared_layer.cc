#include "measure/prepared_layer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "base/half_floats.h"
#include "base/system/out_of_memory.h"
#include "families/common.h"
#include "families/values/element.h"
#include "families/types.h"
#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "graph/evaluate/values.h"
#include "plan/memory/budget.h"
#include "prepare/constant_store.h"
#include "measure/choice_errors.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;

// Of a sample of several runs in one program: long beside what the host takes to hand it over, and beside a tick of the clock.
constexpr double kSampleSeconds = 200e-6;
constexpr int kMostRepeats = 64;
// Longer samples need no work before them: the host's part is below a hundredth.
constexpr double kHostIsNothingSeconds = 2e-3;

Result<HostTensor> random_tensor(const TensorDesc& desc, uint64_t seed, double scale) {
  // What the layout reaches: operands may be parts of larger tensors.
  SPARKLE_TRY(t, allocate_tensor(desc.dtype, {extent(desc.shape, desc.layout)}, "An operand"));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(scale));
  for (int64_t i = 0; i < t.elements(); ++i) store_element(desc.dtype, normal(random), t.bytes.get() + i * size_of(desc.dtype));
  return t;
}

std::vector<float> as_floats(const TensorDesc& desc, const std::byte* bytes) {
  std::vector<float> values(static_cast<size_t>(extent(desc.shape, desc.layout)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(load_element(desc.dtype, bytes + i * static_cast<size_t>(size_of(desc.dtype))));
  return values;
}

// Rounds weights to the types of 16 bits that those of the call fit exactly.
void make_fit(HostTensor& weights, const WeightFit& fit) {
  if (weights.dtype != DType::f32) return;
  for (int64_t i = 0; i < weights.elements(); ++i) {
    float& w = weights.data<float>()[i];
    if (fit.bf16 == Fit::exact) w = bfloat16_to_float(float_to_bfloat16(w));
    if (fit.f16 == Fit::exact) w = half_to_float(float_to_half(w));
  }
}

// The type of 16 bits that the layer's tensors are stored in on this device; f32: none.
DType stored_type(const Problem& problem, const Device& device) {
  for (const DType type : {DType::f16, DType::bf16})
    if (problem.dtype == name_of(type) && keeps(Family::gemm, device, type)) return type;
  return DType::f32;
}

// The type of 8-bit floats that the layer's factors are stored in on this device; f32: none.
DType float8_type(const Problem& problem, const Device& device) {
  for (const auto& [type, unit] : {std::pair(DType::f8e4m3fn, "wgmma-e4m3"), std::pair(DType::f8e5m2, "wgmma-e5m2")})
    if (problem.dtype == name_of(type) && device.unit(unit)) return type;
  return DType::f32;
}

// Of a buffer that holds what the layout reaches.
int64_t bytes_of(const TensorDesc& desc) { return extent(desc.shape, desc.layout) * size_of(desc.dtype); }

// Weights and per-channel vectors never change; everything shaped like a map does.
bool is_constant(const AnchorCall& call, size_t input, const LayerBenchOptions& options) {
  return (input == 1 && options.constant_weights) || (input > 1 && call.inputs[input].shape.size() == 1);
}

Status upload(Backend& backend, const HostTensor& values, Buffer& buffer) {
  SPARKLE_TRY(staging, backend.allocate(values.size_bytes(), MemoryKind::staging));
  std::memcpy(staging->host(), values.bytes.get(), static_cast<size_t>(values.size_bytes()));
  const CopyRegion region{staging.get(), 0, &buffer, 0, values.size_bytes()};
  SPARKLE_TRY(token, backend.copy({&region, 1}, {}));
  return backend.wait(token);
}

// Which operands of a stage never change, one bit each.
uint32_t constant_operands(const AnchorCall& call, const StageUse& use, const LayerBenchOptions& options) {
  uint32_t mask = 0;
  for (size_t i = 0; i < use.inputs.size(); ++i) {
    const auto operand = static_cast<size_t>(use.inputs[i]);
    if (operand < call.inputs.size() && is_constant(call, operand, options)) mask |= 1u << i;
  }
  return mask;
}

}  // namespace

AnchorCall call_of(const Problem& problem) {
  const ProblemOperands operands = operands_of(problem);
  return {problem, operands.inputs, operands.output, WeightFit{Fit::rounded, Fit::rounded}};
}

AnchorCall call_of(const Problem& problem, const Device& device, bool planes) {
  AnchorCall call = call_of(problem);
  if (planes && problem.kind != ProblemKind::matmul) {
    for (TensorDesc& operand : call.inputs) operand.layout = row_major(operand.shape);
    call.output.layout = row_major(call.output.shape);
  }
  if (const DType type = float8_type(problem, device); type != DType::f32) {
    // Factors in 8 bits, what is added per channel in f32, what has the result's shape in f16.
    const size_t channels = 2 + static_cast<size_t>(problem.epilogue.scale) + static_cast<size_t>(problem.epilogue.bias);
    for (size_t i = 0; i < call.inputs.size(); ++i)
      call.inputs[i].dtype = i < 2 ? type : i < channels ? DType::f32 : DType::f16;
    call.output.dtype = DType::f16;
    return call;
  }
  const DType type = stored_type(problem, device);
  for (TensorDesc& operand : call.inputs) operand.dtype = type;
  call.output.dtype = type;
  return call;
}

Status check_type(const Problem& problem, const Device& device) {
  if (problem.dtype == name_of(DType::f32) || stored_type(problem, device) != DType::f32 ||
      float8_type(problem, device) != DType::f32)
    return ok();
  return Error{Reason::type_not_served,
               "Layers of " + problem.dtype + " are not measured on " + device.name + ", which computes them in f32; use f32."};
}

Result<std::unique_ptr<PreparedLayer>> PreparedLayer::make(Backend& backend, const AnchorCall& call, const Choice& choice,
                                                           const LayerBenchOptions& options) {
  std::unique_ptr<PreparedLayer> layer(new PreparedLayer(backend, call));
  SPARKLE_CHECK(layer->prepare(choice, options));
  return layer;
}

Status PreparedLayer::prepare(const Choice& choice, const LayerBenchOptions& options) {
  std::vector<uint32_t> constant;
  for (size_t s = 0; s < choice.plan.stages.size(); ++s)
    constant.push_back(constant_operands(call_, choice.plan.stages[s], options));
  SPARKLE_TRY(kernels, make_kernels(backend_, choice, constant));
  kernels_ = std::move(kernels);
  for (const auto& kernel : kernels_) workspace_bytes_ = std::max(workspace_bytes_, kernel->workspace_bytes());
  // What a measurement holds: operands on both sides and once more to check with, packed weights, the output three times
  // (result, its copy, what it must be).
  if (const int64_t budget = options.plan.memory_budget; budget > 0) {
    int64_t need = 3 * call_.output.bytes() + workspace_bytes_;
    for (size_t i = 0; i < call_.inputs.size(); ++i) need += call_.inputs[i].bytes() * (is_constant(call_, i, options) ? 2 : 3);
    for (const TensorDesc& temporary : choice.plan.temporaries) need += temporary.bytes();
    for (size_t s = 0; s < kernels_.size(); ++s)
      for (size_t i = 0; i < choice.plan.stages[s].inputs.size(); ++i)
        if (constant[s] >> i & 1) need += kernels_[s]->packed_bytes(static_cast<int>(i));
    SPARKLE_CHECK(check_budget("Measuring " + short_name(call_.problem), need, budget, "a smaller layer"));
  }
  // Slots: workspace, one per operand that changes, output, temporaries, then constants in order of use.
  slot_of_.assign(call_.inputs.size() + 1 + choice.plan.temporaries.size(), -1);
  slots_.push_back(nullptr);
  const auto add_slot = [&](std::shared_ptr<Buffer> buffer) {
    slots_.push_back(buffer.get());
    buffers_.push_back(std::move(buffer));
    return static_cast<int>(slots_.size()) - 1;
  };
  for (size_t i = 0; i < call_.inputs.size(); ++i) {
    if (is_constant(call_, i, options)) continue;
    SPARKLE_TRY(buffer, backend_.allocate(bytes_of(call_.inputs[i]), MemoryKind::device));
    slot_of_[i] = add_slot(std::move(buffer));
  }
  input_slot_ = slot_of_[0];
  SPARKLE_TRY(output, backend_.allocate(bytes_of(call_.output), MemoryKind::device));
  written_.push_back(output);
  output_slot_ = slot_of_[call_.inputs.size()] = add_slot(std::move(output));
  for (size_t i = 0; i < choice.plan.temporaries.size(); ++i) {
    SPARKLE_TRY(buffer, backend_.allocate(bytes_of(choice.plan.temporaries[i]), MemoryKind::device));
    written_.push_back(buffer);
    slot_of_[call_.inputs.size() + 1 + i] = add_slot(std::move(buffer));
  }
  std::vector<Launch> launches;
  for (size_t s = 0; s < choice.plan.stages.size(); ++s) {
    const StageUse& use = choice.plan.stages[s];
    const Kernel& kernel = *kernels_[s];
    Launch launch;
    launch.kernel = &kernel;
    for (size_t i = 0; i < use.inputs.size(); ++i) {
      const auto operand = static_cast<size_t>(use.inputs[i]);
      if (constant[s] >> i & 1) {
        constants_.push_back({operand, &kernel, static_cast<int>(i), slots_.size()});
        launch.inputs.push_back({static_cast<int>(slots_.size()), 0});
        slots_.push_back(nullptr);
      } else {
        launch.inputs.push_back({slot_of_[operand], 0});
      }
    }
    for (int o : use.outputs) launch.outputs.push_back({slot_of_[static_cast<size_t>(o)], 0});
    launches.push_back(std::move(launch));
  }
  SPARKLE_TRY(workspace, backend_.allocate(std::max<int64_t>(workspace_bytes_, 64), MemoryKind::device));
  slots_[0] = workspace.get();
  written_.push_back(std::move(workspace));
  SPARKLE_TRY(program, backend_.record(launches));
  program_ = std::move(program);
  launches_ = std::move(launches);
  return ok();
}

Status PreparedLayer::take(std::vector<HostTensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (slot_of_[i] >= 0) SPARKLE_CHECK(upload(backend_, inputs[i], *slots_[static_cast<size_t>(slot_of_[i])]));
  std::vector<std::shared_ptr<Buffer>> packed;
  ConstantStore store(backend_);
  for (const Constant& c : constants_) {
    SPARKLE_TRY(buffer, store.get({"w", inputs[c.operand]}, *c.kernel, c.input));
    slots_[c.slot] = buffer.get();
    packed.push_back(std::move(buffer));
  }
  packed_ = std::move(packed);
  inputs_ = std::move(inputs);  // constants may be used where they lie
  return ok();
}

Status PreparedLayer::wipe() {
  for (const auto& buffer : written_) SPARKLE_CHECK(sparkle::wipe(backend_, *buffer));
  return ok();
}

Result<double> PreparedLayer::run() {
  const bool timed = backend_.keeps_time();
  const auto begin = Clock::now();
  SPARKLE_TRY(token, backend_.submit(*program_, slots_, {{}, timed, nullptr}));
  SPARKLE_CHECK(backend_.wait(token));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!timed) return seconds;
  SPARKLE_TRY(times, backend_.timestamps(token));
  const double own = times.empty() ? 0 : times.back().end - times.front().begin;
  if (own > 0 && sampled_ == 0) sampled_ = own;
  return own > 0 ? own : seconds;  // shorter than a tick of the device's clock
}

int PreparedLayer::before() const { return sampled_ * repeats() < kHostIsNothingSeconds ? 1 : 0; }

int PreparedLayer::runs_of_sample() const { return repeats_ > 0 ? repeats_ * (1 + before()) : 1; }

Result<double> PreparedLayer::burst(BurstClock& clock) {
  SPARKLE_TRY(seconds, clock.seconds_of_run(repeated_ ? *repeated_ : *program_, slots_, {1, before()}));
  return sampled_ = seconds / repeats();
}

// Each look is at a longer sample than the one before, whose host's part is less.
Status PreparedLayer::find_repeats(BurstClock& clock) {
  repeats_ = 1;
  if (sampled_ >= kHostIsNothingSeconds) return ok();
  for (int look = 0; look < 3; ++look) {
    SPARKLE_TRY(seconds, burst(clock));
    const double enough = std::ceil(kSampleSeconds / std::max(seconds, 1e-9));
    const int repeats = static_cast<int>(std::clamp(enough, 1.0, double{kMostRepeats}));
    if (repeats <= repeats_ + repeats_ / 4) break;
    std::vector<Launch> launches;
    for (int i = 0; i < repeats; ++i) launches.insert(launches.end(), launches_.begin(), launches_.end());
    SPARKLE_TRY(program, backend_.record(launches));
    repeated_ = std::move(program);
    repeats_ = repeats;
  }
  return ok();
}

Result<double> PreparedLayer::sample() {
  auto* const clock = dynamic_cast<BurstClock*>(&backend_);
  if (!clock) return run();
  if (repeats_ == 0) SPARKLE_CHECK(find_repeats(*clock));
  SPARKLE_TRY(seconds, burst(*clock));
  return seconds > 0 ? seconds : run();  // shorter than a tick of the device's clock
}

Result<Token> PreparedLayer::submit(Buffer& x, Buffer& y, Token after) {
  std::vector<Buffer*> slots = slots_;
  slots[static_cast<size_t>(input_slot_)] = &x, slots[static_cast<size_t>(output_slot_)] = &y;
  return backend_.submit(*program_, slots, {after, false, nullptr});
}

Result<const float*> PreparedLayer::output() {
  if (!staging_) {
    SPARKLE_TRY(staging, backend_.allocate(bytes_of(call_.output), MemoryKind::staging));
    staging_ = std::move(staging);
  }
  const CopyRegion region{slots_[static_cast<size_t>(output_slot_)], 0, staging_.get(), 0, bytes_of(call_.output)};
  SPARKLE_TRY(token, backend_.copy({&region, 1}, {}));
  SPARKLE_CHECK(backend_.wait(token));
  if (call_.output.dtype == DType::f32) return reinterpret_cast<const float*>(staging_->host());
  widened_ = as_floats(call_.output, staging_->host());
  return widened_.data();
}

Result<std::vector<HostTensor>> random_operands(const AnchorCall& call, uint64_t seed) {
  const Problem& problem = call.problem;
  const double depth = depth_of(problem);
  std::vector<HostTensor> operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    SPARKLE_TRY(operand, random_tensor(call.inputs[i], seed_of(seed, i), i == 1 ? 1 / std::sqrt(depth) : 1));
    if (i == 1 && call.fit) make_fit(operand, *call.fit);
    operands.push_back(std::move(operand));
  }
  return operands;
}

Status check_once(PreparedLayer& layer, const LayerCheck& check, const Choice& choice, const LayerBenchOptions& options,
                  Checked& checked) {
  SPARKLE_CHECK(layer.take(check.inputs()));
  SPARKLE_CHECK(layer.wipe());
  SPARKLE_TRY(seconds, layer.run());
  (void)seconds;
  SPARKLE_TRY(output, layer.output());
  const double accuracy = std::max(options.plan.accuracy, PlanOptions{}.accuracy);
  return check.accept(output, check.bound_of(bound_on_whole_numbers(choice), accuracy),
                      "The kernel " + to_text(choice.schedules[0]), checked);
}

SliceCheck::SliceCheck(const AnchorCall& call, const std::vector<HostTensor>& values, uint64_t seed) {
  const Problem& problem = call.problem;
  if (problem.kind == ProblemKind::conv_transpose) return;
  possible_ = true;
  Stage slice{GemmParams{problem.kind == ProblemKind::matmul ? Loader::dense : Loader::window, problem.groups, problem.window,
                         problem.epilogue},
              call.inputs,
              {call.output}};
  TensorDesc& out = slice.outputs[0];
  const int axis = problem.kind == ProblemKind::matmul ? out.shape.size() - 2 : 2;
  const int64_t rows = out.shape[axis];
  const double per_row = problem.nominal_flops() / 2 / static_cast<double>(rows);
  const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(2e7 / per_row), 1, rows);
  const int64_t begin = static_cast<int64_t>(seed * 7919 % static_cast<uint64_t>(rows - count + 1));
  const auto narrow = [&](TensorDesc& desc) {
    desc.layout.offset += begin * desc.layout.strides[axis];
    desc.shape[axis] = count;
  };
  narrow(out);
  for (size_t i = 2; i < slice.inputs.size(); ++i)
    if (slice.inputs[i].shape.size() == out.shape.size()) narrow(slice.inputs[i]);
  if (problem.kind == ProblemKind::matmul) {
    narrow(slice.inputs[0]);
  } else {
    const auto d = static_cast<size_t>(3 - problem.rank);
    auto& params = get<GemmParams>(slice.params);
    params.window.pad_begin[d] -= begin * problem.window.stride[d];
  }
  std::vector<std::byte> expected(static_cast<size_t>(bytes_of(call.output)));
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < slice.inputs.size(); ++i) inputs.push_back({values[i].bytes.get(), slice.inputs[i]});
  const TensorView output{expected.data(), out};
  info(Family::gemm).reference(slice.params, inputs, {&output, 1});
  expected_ = as_floats(call.output, expected.data());
  slice_ = out;
}

double SliceCheck::error_of(const float* y) const {
  const float* want = expected_.data();
  // Sums of random operands have deviation 1: where there are few outputs all may be small by chance, their errors are not.
  double largest = 1, error = 0;
  Dims at = Dims::filled(slice_.shape.size(), 0);
  for (int64_t i = 0; i < slice_.elements(); ++i) {
    int64_t where = slice_.layout.offset;
    for (int a = 0; a < at.size(); ++a) where += at[a] * slice_.layout.strides[a];
    largest = std::max(largest, std::abs(static_cast<double>(want[where])));
    const double difference = std::abs(static_cast<double>(y[where]) - static_cast<double>(want[where]));
    error = difference <= error ? error : difference;  // a NaN stays
    for (int a = at.size() - 1; a >= 0 && ++at[a] == slice_.shape[a]; --a) at[a] = 0;
  }
  return error / largest;
}

}  // namespace sparkle
