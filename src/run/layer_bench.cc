#include "run/layer_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "base/out_of_memory.h"
#include "families/common.h"
#include "run/constant_store.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A problem's operands in memory of the backend, its kernels compiled and recorded as one program.
struct Prepared {
  std::vector<HostTensor> inputs;  // in the memory order of their layouts
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::unique_ptr<Program> program;
  std::vector<Buffer*> slots;
  int output_slot = 0;
  int64_t workspace_bytes = 0;
};

Result<HostTensor> random_tensor(const TensorDesc& desc, std::mt19937_64& random, double scale) {
  SPARKLE_TRY(t, allocate_tensor(desc.dtype, desc.shape, "An operand"));
  std::normal_distribution<float> normal(0, static_cast<float>(scale));
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = normal(random);
  return t;
}

// Weights and per-channel vectors never change; everything shaped like a map does.
bool is_constant(const AnchorCall& call, size_t input) {
  return input == 1 || (input > 1 && call.inputs[input].shape.size() == 1);
}

Result<std::shared_ptr<Buffer>> upload(Backend& backend, const std::byte* bytes, int64_t size) {
  SPARKLE_TRY(buffer, backend.allocate(size, MemoryKind::device));
  SPARKLE_TRY(staging, backend.allocate(size, MemoryKind::staging));
  std::memcpy(staging->host(), bytes, static_cast<size_t>(size));
  const CopyRegion region{staging.get(), 0, buffer.get(), 0, size};
  SPARKLE_TRY(token, backend.copy({&region, 1}, {}));
  SPARKLE_CHECK(backend.wait(token));
  return buffer;
}

// Which operands of a stage never change, one bit each.
uint32_t constant_operands(const AnchorCall& call, const StageUse& use) {
  uint32_t mask = 0;
  for (size_t i = 0; i < use.inputs.size(); ++i) {
    const auto operand = static_cast<size_t>(use.inputs[i]);
    if (operand < call.inputs.size() && is_constant(call, operand)) mask |= 1u << i;
  }
  return mask;
}

// What a measurement holds: operands on both sides, packed weights, the output three times (result, its copy, the reference's).
Status check_budget(const AnchorCall& call, const Choice& choice, const Prepared& p, int64_t budget) {
  if (budget <= 0) return ok();
  int64_t need = 3 * call.output.bytes() + p.workspace_bytes;
  for (size_t i = 0; i < call.inputs.size(); ++i) need += call.inputs[i].bytes() * (is_constant(call, i) ? 1 : 2);
  for (const TensorDesc& temporary : choice.plan.temporaries) need += temporary.bytes();
  for (size_t s = 0; s < p.kernels.size(); ++s) {
    const uint32_t mask = constant_operands(call, choice.plan.stages[s]);
    for (size_t i = 0; i < choice.plan.stages[s].inputs.size(); ++i)
      if (mask >> i & 1) need += p.kernels[s]->packed_bytes(static_cast<int>(i));
  }
  if (need <= budget) return ok();
  return Error{Reason::over_memory_budget, "Measuring " + short_name(call.problem) + " needs " + std::to_string(need) +
                                               " bytes, the memory budget is " + std::to_string(budget) +
                                               "; give a smaller layer or a larger --memory-budget."};
}

Result<Prepared> prepare(Backend& backend, ConstantStore& constants, const AnchorCall& call, const Choice& choice,
                         const LayerBenchOptions& options) {
  Prepared p;
  for (size_t s = 0; s < choice.plan.stages.size(); ++s) {
    const uint32_t mask = constant_operands(call, choice.plan.stages[s]);
    SPARKLE_TRY(kernel, backend.compile(choice.plan.stages[s].stage, choice.schedules[s], mask));
    p.workspace_bytes = std::max(p.workspace_bytes, kernel->workspace_bytes());
    p.kernels.push_back(std::move(kernel));
  }
  SPARKLE_CHECK(check_budget(call, choice, p, options.plan.memory_budget));
  std::mt19937_64 random(options.seed);
  const double depth = call.problem.kind == ProblemKind::matmul
                           ? static_cast<double>(call.problem.depth)
                           : static_cast<double>(call.problem.c / call.problem.groups * call.problem.window.taps());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    SPARKLE_TRY(operand, random_tensor(call.inputs[i], random, i == 1 ? 1 / std::sqrt(depth) : 1));
    p.inputs.push_back(std::move(operand));
  }
  // Slots: workspace, one per operand that changes, output, temporaries, then constants in order of use.
  std::vector<int> slot_of(call.inputs.size() + 1 + choice.plan.temporaries.size(), -1);
  p.slots.push_back(nullptr);
  const auto add_slot = [&](std::shared_ptr<Buffer> buffer) {
    p.slots.push_back(buffer.get());
    p.buffers.push_back(std::move(buffer));
    return static_cast<int>(p.slots.size()) - 1;
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (is_constant(call, i)) continue;
    SPARKLE_TRY(buffer, upload(backend, p.inputs[i].bytes.get(), p.inputs[i].size_bytes()));
    slot_of[i] = add_slot(std::move(buffer));
  }
  SPARKLE_TRY(output, backend.allocate(call.output.bytes(), MemoryKind::device));
  p.output_slot = slot_of[call.inputs.size()] = add_slot(std::move(output));
  for (size_t i = 0; i < choice.plan.temporaries.size(); ++i) {
    SPARKLE_TRY(buffer, backend.allocate(choice.plan.temporaries[i].bytes(), MemoryKind::device));
    slot_of[call.inputs.size() + 1 + i] = add_slot(std::move(buffer));
  }
  std::vector<Launch> launches;
  for (size_t s = 0; s < choice.plan.stages.size(); ++s) {
    const StageUse& use = choice.plan.stages[s];
    const uint32_t mask = constant_operands(call, use);
    const Kernel& kernel = *p.kernels[s];
    Launch launch;
    launch.kernel = &kernel;
    for (size_t i = 0; i < use.inputs.size(); ++i) {
      const auto operand = static_cast<size_t>(use.inputs[i]);
      if (mask >> i & 1) {
        SPARKLE_TRY(buffer, constants.get({"w", p.inputs[operand]}, kernel, static_cast<int>(i)));
        launch.inputs.push_back({add_slot(std::move(buffer)), 0});
      } else {
        launch.inputs.push_back({slot_of[operand], 0});
      }
    }
    for (int o : use.outputs) launch.outputs.push_back({slot_of[static_cast<size_t>(o)], 0});
    launches.push_back(std::move(launch));
  }
  SPARKLE_TRY(workspace, backend.allocate(std::max<int64_t>(p.workspace_bytes, 64), MemoryKind::device));
  p.slots[0] = workspace.get();
  p.buffers.push_back(std::move(workspace));
  SPARKLE_TRY(program, backend.record(launches));
  p.program = std::move(program);
  return p;
}

// Compares a slice of output rows (as many as a few million products allow) with the gemm family's reference.
Status verify(Backend& backend, const AnchorCall& call, const Prepared& p, LayerMeasurement& m,
              const LayerBenchOptions& options) {
  const Problem& problem = call.problem;
  SPARKLE_TRY(staging, backend.allocate(call.output.bytes(), MemoryKind::staging));
  const CopyRegion region{p.slots[static_cast<size_t>(p.output_slot)], 0, staging.get(), 0, call.output.bytes()};
  SPARKLE_TRY(token, backend.copy({&region, 1}, {}));
  SPARKLE_CHECK(backend.wait(token));
  Stage slice{GemmParams{problem.kind == ProblemKind::matmul ? Loader::dense : Loader::window, problem.groups, problem.window,
                         problem.epilogue},
              call.inputs,
              {call.output}};
  if (problem.kind == ProblemKind::conv_transpose)
    return ok();  // checked by the unit tests; its stages are ordinary convolutions
  TensorDesc& out = slice.outputs[0];
  const int axis = problem.kind == ProblemKind::matmul ? out.shape.size() - 2 : 2;
  const int64_t rows = out.shape[axis];
  const double per_row = problem.nominal_flops() / 2 / static_cast<double>(rows);
  const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(2e7 / per_row), 1, rows);
  const int64_t begin = static_cast<int64_t>(options.seed * 7919 % static_cast<uint64_t>(rows - count + 1));
  const auto narrow = [&](TensorDesc& desc) {
    desc.layout.offset += begin * desc.layout.pitch[axis];
    desc.shape[axis] = count;
  };
  narrow(out);
  for (size_t i = 2; i < slice.inputs.size(); ++i)
    if (slice.inputs[i].shape.size() == out.shape.size()) narrow(slice.inputs[i]);
  if (problem.kind == ProblemKind::matmul) {
    narrow(slice.inputs[0]);
  } else {
    const auto d = static_cast<size_t>(3 - problem.rank);
    auto& params = std::get<GemmParams>(slice.params);
    params.window.pad_begin[d] -= begin * problem.window.stride[d];
  }
  std::vector<std::byte> expected(static_cast<size_t>(call.output.bytes()));
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < slice.inputs.size(); ++i) inputs.push_back({p.inputs[i].bytes.get(), slice.inputs[i]});
  const TensorView output{expected.data(), out};
  info(Family::gemm).reference(slice.params, inputs, {&output, 1});
  const auto* want = reinterpret_cast<const float*>(expected.data());
  const auto* have = reinterpret_cast<const float*>(staging->host());
  double largest = 0, error = 0;
  Dims at = Dims::filled(out.shape.size(), 0);
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t where = out.layout.offset;
    for (int a = 0; a < at.size(); ++a) where += at[a] * out.layout.pitch[a];
    largest = std::max(largest, std::abs(static_cast<double>(want[where])));
    const double difference = std::abs(static_cast<double>(have[where]) - static_cast<double>(want[where]));
    error = difference <= error ? error : difference;  // a NaN stays
    for (int a = at.size() - 1; a >= 0 && ++at[a] == out.shape[a]; --a) at[a] = 0;
  }
  m.largest_error = largest > 0 ? error / largest : error;
  m.verified = true;
  // A plain sum has errors too, whatever accuracy was asked of the algorithms.
  const double allowed = std::max(options.plan.accuracy, PlanOptions{}.accuracy);
  if (m.largest_error <= allowed) return ok();
  return Error{Reason::internal, "The kernel " + to_text(m.choice.schedules[0]) + " computes " + short_name(problem) +
                                     " wrongly: error " + std::to_string(m.largest_error) +
                                     " of the largest output, more than the " + std::to_string(allowed) + " allowed."};
}

void find_roof(const AnchorCall& call, const Device& device, LayerMeasurement& m) {
  double counted = 0;
  for (const Footprint& f : m.choice.footprints) counted += f.executed_flops;
  m.executed_flops = std::min(executed_flops(m.problem), counted);
  const double peak = m.peak_flops_per_second;
  m.roof_seconds = peak > 0 ? m.executed_flops / peak : 0;
  m.roof_bound = "compute";
  double bytes = static_cast<double>(call.output.bytes());
  for (const TensorDesc& d : call.inputs) bytes += static_cast<double>(d.bytes());
  const std::vector<double> traffic = bytes_per_level(device, bytes, bytes);
  for (size_t i = 0; i < traffic.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    const double rate = level.total_bytes_per_second > 0 ? level.total_bytes_per_second : level.bytes_per_second * device.cores;
    if (rate > 0 && traffic[i] / rate > m.roof_seconds) m.roof_seconds = traffic[i] / rate, m.roof_bound = level.name;
  }
}

Result<LayerMeasurement> measure(Backend& backend, const Problem& problem, const LayerBenchOptions& options) {
  if (problem.dtype != "f32")
    return Error{Reason::type_not_served, "The element type '" + problem.dtype + "' is not served yet; use f32."};
  SPARKLE_CHECK(check_forced(options.plan));
  LayerMeasurement m;
  m.problem = problem;
  const ProblemOperands operands = operands_of(problem);
  const AnchorCall call{problem, operands.inputs, operands.output};
  SPARKLE_TRY(choice, choose(call, backend.device(), options.plan));
  m.choice = std::move(choice);
  ConstantStore constants(backend);
  SPARKLE_TRY(prepared, prepare(backend, constants, call, m.choice, options));
  m.workspace_bytes = prepared.workspace_bytes;
  const auto run_once = [&]() -> Result<double> {
    const auto begin = Clock::now();
    SPARKLE_TRY(token, backend.submit(*prepared.program, prepared.slots, {}));
    SPARKLE_CHECK(backend.wait(token));
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  SPARKLE_TRY(first, run_once());
  if (options.verify) SPARKLE_CHECK(verify(backend, call, prepared, m, options));
  const std::string unit = unit_of(m.choice.schedules[0]);
  std::vector<double> samples, shares, peaks;
  const int repeats = std::clamp(static_cast<int>(options.seconds_per_round / std::max(first, 1e-7)), 1, 10000);
  for (int round = 0; round < options.rounds; ++round) {
    const double before = backend.probe_peak(unit);
    std::vector<double> visit;
    for (int i = 0; i < repeats; ++i) {
      SPARKLE_TRY(seconds, run_once());
      visit.push_back(seconds);
    }
    const double peak = (before + backend.probe_peak(unit)) / 2;
    samples.insert(samples.end(), visit.begin(), visit.end());
    peaks.push_back(peak);
    if (peak > 0) shares.push_back(problem.nominal_flops() / median(visit) / peak);
  }
  std::sort(samples.begin(), samples.end());
  m.median_seconds = samples[samples.size() / 2];
  m.min_seconds = samples.front();
  m.p95_seconds = samples[samples.size() * 95 / 100];
  m.share_of_peak = median(shares);
  m.peak_flops_per_second = median(peaks);
  find_roof(call, backend.device(), m);
  return m;
}

}  // namespace

double executed_flops(const Problem& p) {
  if (p.kind != ProblemKind::conv) return p.nominal_flops();
  double pairs = 1;  // (output, tap) pairs inside the image, per dimension
  for (size_t d = 0; d < 3; ++d) {
    double inside = 0;
    for (int64_t o = 0; o < p.out[d]; ++o)
      for (int64_t t = 0; t < p.window.filter[d]; ++t) {
        const int64_t i = o * p.window.stride[d] - p.window.pad_begin[d] + t * p.window.dilation[d];
        inside += i >= 0 && i < p.in[d];
      }
    pairs *= inside;
  }
  return 2 * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.c) / static_cast<double>(p.groups) *
         pairs;
}

Result<LayerMeasurement> measure_layer(Backend& backend, const Problem& problem, const LayerBenchOptions& options) {
  return guard_memory("Measuring this layer", [&] { return measure(backend, problem, options); });
}

}  // namespace sparkle
