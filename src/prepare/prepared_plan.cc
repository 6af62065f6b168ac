#include "prepare/prepared_plan.h"

namespace sparkle {
namespace {
// Of the kernel, launch and text of a step: an estimate.
constexpr int64_t kBytesPerStep = 4096;

int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }
}  // namespace

void fit_workspaces(Plan& plan, const Kernels& kernels) {
  const int64_t arena = round_up(plan.arena_bytes), host_arena = round_up(plan.host_arena_bytes);
  plan.arena_bytes = arena_with_workspaces(plan, kernels, RunsOn::device);
  plan.host_arena_bytes = arena_with_workspaces(plan, kernels, RunsOn::host);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    PlanStep& step = plan.steps[i];
    if (!kernels[i] || kernels[i]->workspace_bytes() <= step.workspace_bytes) continue;
    step.workspace_offset = step.runs_on == RunsOn::host ? host_arena : arena;
    step.workspace_bytes = kernels[i]->workspace_bytes();
  }
}

int64_t arena_with_workspaces(const Plan& plan, const Kernels& kernels, RunsOn side) {
  const int64_t planned = side == RunsOn::host ? plan.host_arena_bytes : plan.arena_bytes;
  int64_t bytes = planned;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!kernels[i] || plan.steps[i].runs_on != side) continue;
    if (const int64_t own = kernels[i]->workspace_bytes(); own > plan.steps[i].workspace_bytes)
      bytes = std::max(bytes, round_up(planned) + round_up(own));
  }
  return bytes;
}

Result<std::vector<Segment>> record(const Plan& plan, const Kernels& kernels, Backend& backend, Backend* host,
                                    size_t most_steps) {
  const int inputs = 1, outputs = inputs + static_cast<int>(plan.inputs.size());
  int next_constant = outputs + static_cast<int>(plan.outputs.size()), next_of_host = 1;
  const auto bind_operand = [&](int tensor, RunsOn side) {
    const PlanTensor& t = plan.tensors[static_cast<size_t>(tensor)];
    switch (t.kind) {
      case PlaceKind::arena:
      case PlaceKind::host: return Binding{0, t.offset};
      case PlaceKind::input: return Binding{inputs + t.index, 0};
      case PlaceKind::output: return Binding{outputs + t.index, 0};
      case PlaceKind::constant: break;
    }
    return Binding{side == RunsOn::host ? next_of_host++ : next_constant++, 0};
  };
  std::vector<Segment> segments;
  for (size_t begin = 0, end = 0; begin < plan.steps.size() || segments.empty(); begin = end) {
    const RunsOn side = plan.steps.empty() ? RunsOn::device : plan.steps[begin].runs_on;
    std::vector<Launch> launches;
    for (; end < plan.steps.size() && plan.steps[end].runs_on == side && end - begin < most_steps; ++end) {
      if (side == RunsOn::link) continue;
      const PlanStep& step = plan.steps[end];
      Launch launch;
      launch.kernel = kernels[end].get();
      launch.name = step.name;
      for (int tensor : step.inputs) launch.inputs.push_back(bind_operand(tensor, side));
      for (int tensor : step.outputs) launch.outputs.push_back(bind_operand(tensor, side));
      launch.workspace = {0, step.workspace_offset};
      launches.push_back(std::move(launch));
    }
    segments.push_back({side, begin, end - begin, nullptr});
    if (side == RunsOn::link) continue;
    SPARKLE_TRY(program, (side == RunsOn::host ? *host : backend).record(launches));
    segments.back().program = std::move(program);
  }
  return segments;
}

int64_t PreparedPlan::fixed_bytes() const { return own_constant_bytes + static_cast<int64_t>(kernels.size()) * kBytesPerStep; }

void PreparedPlan::enter(std::shared_ptr<CacheBytes> cache) {
  const std::lock_guard lock(mutex_);
  cache_ = std::move(cache);
  counted_ = 1;
  cache_->add(fixed_bytes() + arena_bytes());
}

void PreparedPlan::leave() {
  const std::lock_guard lock(mutex_);
  cache_->add(-(fixed_bytes() + static_cast<int64_t>(counted_) * arena_bytes()));
  cache_.reset();
  arenas_.clear();
}

Result<RunArenas> PreparedPlan::take_arenas(Backend& backend) {
  {
    const std::lock_guard lock(mutex_);
    if (!arenas_.empty()) {
      RunArenas arenas = std::move(arenas_.back());
      arenas_.pop_back();
      return arenas;
    }
  }
  RunArenas arenas;
  SPARKLE_TRY(device, backend.allocate(std::max<int64_t>(plan->arena_bytes, 64), MemoryKind::device));
  arenas.device = std::move(device);
  if (!host) return arenas;
  SPARKLE_TRY(of_host, backend.allocate(std::max<int64_t>(plan->host_arena_bytes, 64), MemoryKind::staging));
  arenas.host = std::move(of_host);
  return arenas;
}

void PreparedPlan::give_back(RunArenas arenas) {
  const std::lock_guard lock(mutex_);
  if (!cache_) return;
  if (arenas_.size() >= counted_) {
    if (!cache_->try_add(arena_bytes())) return;
    ++counted_;
  }
  arenas_.push_back(std::move(arenas));
}

}  // namespace sparkle
