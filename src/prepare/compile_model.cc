#include "prepare/compile_model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/files/new_file.h"
#include "base/system/out_of_memory.h"
#include "device/device_json.h"
#include "graph/graph_text.h"
#include "plan/memory/budget.h"
#include "prepare/compiled_model.h"
#include "prepare/model_planner.h"

namespace sparkle {
namespace {

Status fill_to(NewFile& file, int64_t at) {
  constexpr std::array<std::byte, 4096> kZeros{};
  while (file.size() < at)
    SPARKLE_CHECK(file.write(std::span(kZeros).first(static_cast<size_t>(std::min<int64_t>(at - file.size(), kZeros.size())))));
  return ok();
}

std::span<const std::byte> bytes_of(const HostTensor& value) {
  return {value.bytes.get(), static_cast<size_t>(value.size_bytes())};
}

// Which values the planner looks at cannot be told from a graph. Tried: none but short lists, those of up to 64 KB, all.
Result<std::vector<int>> values_to_keep(const Graph& bound, const std::string& graph_text, const Device& device,
                                        const PlanOptions& options, const std::string& plan_text) {
  SPARKLE_TRY(hashes, constant_hashes(plan_text));
  for (const int64_t limit : {int64_t{64}, int64_t{1} << 16, std::numeric_limits<int64_t>::max()}) {
    std::vector<int> kept;
    std::vector<std::span<const std::byte>> values(bound.tensors.size());
    for (size_t i = 0; i < bound.tensors.size(); ++i) {
      const auto& constant = bound.tensors[i].constant;
      if (!constant || constant->size_bytes() == 0 || constant->size_bytes() > limit) continue;
      kept.push_back(static_cast<int>(i));
      values[i] = bytes_of(*constant);
    }
    SPARKLE_TRY(graph, planning_graph(graph_text, values));
    auto plan = make_plan(graph, device, options);
    if (plan.ok() && plan_text_with(*plan, hashes) == plan_text) return kept;
  }
  return Error{Reason::internal,
               "The plan of the model '" + bound.name + "' is not made again from its graph; please report it."};
}

Result<std::vector<HostTensor>> inputs_of(const ModelPlanner& planner, const std::vector<Dims>& shapes) {
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < planner.inputs().size() && i < shapes.size(); ++i) {
    const SessionInput& input = planner.inputs()[i];
    if (input.by_value)
      return Error{Reason::operator_not_served,
                   "The input '" + input.name + "' decides shapes by its value; a compiled file has fixed shapes."};
    inputs.push_back({input.dtype, shapes[i], nullptr});
  }
  SPARKLE_CHECK(check_inputs(planner.inputs(), inputs, false));
  return inputs;
}

Result<CompileSummary> compiled(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                const std::vector<Dims>& shapes, const std::string& path,
                                const std::function<Status(const Plan&)>& accept) {
  SPARKLE_TRY(planner, ModelPlanner::make(std::move(graph), backend, options));
  SPARKLE_TRY(inputs, inputs_of(*planner, shapes));
  SPARKLE_TRY(planned, planner->plan(inputs, WeightsIn::file));
  planner.reset();
  if (accept) SPARKLE_CHECK(accept(planned.plan));
  const Graph& bound = planned.bound;
  Plan& plan = planned.plan;
  const Device& device = backend->device();
  const Device* host = planned.host ? &planned.host->device() : nullptr;
  const PlanOptions plan_options{planned.settings, options.tuning.get(), host};
  const std::string plan_text = to_text(plan);
  SPARKLE_TRY(graph_text, bound_graph_text(bound));
  SPARKLE_TRY(kept, values_to_keep(bound, graph_text, device, plan_options, plan_text));

  SPARKLE_TRY(file, NewFile::create(path));
  SPARKLE_CHECK(fill_to(file, kCompiledWeightsAt));
  std::string constants_text;
  const auto put = [&](std::span<const std::byte> bytes) -> Result<int64_t> {
    const int64_t at = file.size() - kCompiledWeightsAt;
    SPARKLE_CHECK(file.write(bytes));
    SPARKLE_CHECK(fill_to(file, kCompiledWeightsAt + at + compiled_extent(static_cast<int64_t>(bytes.size()))));
    return at;
  };
  for (int tensor : kept) {
    const auto bytes = bytes_of(*bound.tensor(tensor).constant);
    SPARKLE_TRY(at, put(bytes));
    constants_text += to_line(KeptValue{tensor, at, static_cast<int64_t>(bytes.size()), hash_bytes(bytes)});
  }
  std::map<std::tuple<const std::byte*, std::string, bool>, PackedConstant> written;
  for (const ConstantUse& use : planned.uses) {
    const PlanConstant& constant = plan.constants[use.constant];
    const int64_t packed = use.kernel->packed_bytes(use.input);
    PackedConstant one;
    if (packed > 0) one.key = use.kernel->packed_key(use.input);
    // One key may mean two forms on two backends; bytes as they are serve both.
    const bool of_host = use.side == RunsOn::host;
    PackedConstant& known = written[{constant.value.bytes.get(), one.key, packed > 0 && of_host}];
    if (known.bytes == 0) {
      HostTensor image = constant.value;
      if (packed > 0) {
        SPARKLE_TRY(memory, allocate_tensor(DType::u8, {packed}, "The constant '" + constant.name + "'"));
        std::memset(memory.bytes.get(), 0, static_cast<size_t>(packed));  // no kernel need write the bytes between its lines
        use.kernel->pack(use.input, constant.value.bytes.get(), memory.bytes.get(),
                         (of_host ? *planned.host : *backend).executor());
        image = std::move(memory);
      }
      one.bytes = image.size_bytes();
      one.hash = hash_bytes(bytes_of(image));
      SPARKLE_TRY(at, put(bytes_of(image)));
      one.at = at;
      known = one;
    }
    constants_text += to_line(known);
  }
  const int64_t weight_bytes = file.size() - kCompiledWeightsAt;  // foreseen by the planner, known now
  const int64_t need = peak_bytes(planned, {weight_bytes, weight_bytes});
  SPARKLE_CHECK(check_budget("Compiled the model '" + plan.model + "'", need, options.memory_budget));
  CompiledHeader header;
  header.version = sparkle_version_text();
  header[CompiledSection::weights] = {kCompiledWeightsAt, static_cast<uint64_t>(weight_bytes), 0};
  const std::pair<CompiledSection, std::string> texts[] = {
      {CompiledSection::options, to_text(planned.settings)},
      {CompiledSection::device, device_to_json(device)},
      {CompiledSection::host, host ? device_to_json(*host) : std::string()},
      {CompiledSection::tuning, options.tuning ? options.tuning->to_text() : std::string()},
      {CompiledSection::graph, graph_text},
      {CompiledSection::constants, constants_text},
      {CompiledSection::plan, plan_text}};
  for (const auto& [section, text] : texts) {
    const auto bytes = std::as_bytes(std::span(text));
    header[section] = {static_cast<uint64_t>(file.size()), bytes.size(), hash_bytes(bytes)};
    SPARKLE_CHECK(file.write(bytes));
  }
  header.file_bytes = static_cast<uint64_t>(file.size());
  SPARKLE_CHECK(file.write_at(0, compiled_header(header)));
  SPARKLE_CHECK(file.finish(Durable::yes));
  CompileSummary summary;
  summary.file_bytes = static_cast<int64_t>(header.file_bytes);
  summary.weight_bytes = static_cast<int64_t>(header[CompiledSection::weights].bytes);
  for (PlanConstant& c : plan.constants) c.value.bytes.reset();
  summary.plan = std::make_shared<Plan>(std::move(plan));
  return summary;
}

}  // namespace

Result<CompileSummary> compile_model(Graph graph, std::shared_ptr<Backend> backend, const SessionOptions& options,
                                     const std::vector<Dims>& shapes, const std::string& path,
                                     const std::function<Status(const Plan&)>& accept) {
  return guard_memory("Compiling the model",
                      [&] { return compiled(std::move(graph), std::move(backend), options, shapes, path, accept); });
}

}  // namespace sparkle
