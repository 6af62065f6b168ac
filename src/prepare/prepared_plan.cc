#include "prepare/prepared_plan.h"

namespace sparkle {
namespace {
// Of the kernel, launch and text of a step: an estimate.
constexpr int64_t kBytesPerStep = 4096;

int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }
}  // namespace

void fit_workspaces(Plan& plan, const Kernels& kernels) {
  const int64_t arena = round_up(plan.arena_bytes);
  plan.arena_bytes = arena_with_workspaces(plan, kernels);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    PlanStep& step = plan.steps[i];
    if (kernels[i]->workspace_bytes() <= step.workspace_bytes) continue;
    step.workspace_offset = arena;
    step.workspace_bytes = kernels[i]->workspace_bytes();
  }
}

int64_t arena_with_workspaces(const Plan& plan, const Kernels& kernels) {
  int64_t bytes = plan.arena_bytes;
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (const int64_t own = kernels[i]->workspace_bytes(); own > plan.steps[i].workspace_bytes)
      bytes = std::max(bytes, round_up(plan.arena_bytes) + round_up(own));
  return bytes;
}

Result<std::unique_ptr<Program>> record(const Plan& plan, const Kernels& kernels, Backend& backend) {
  const int inputs = 1, outputs = inputs + static_cast<int>(plan.inputs.size());
  int next_constant = outputs + static_cast<int>(plan.outputs.size());
  const auto bind_operand = [&](int tensor) {
    const PlanTensor& t = plan.tensors[static_cast<size_t>(tensor)];
    switch (t.kind) {
      case PlaceKind::arena: return Binding{0, t.offset};
      case PlaceKind::input: return Binding{inputs + t.index, 0};
      case PlaceKind::output: return Binding{outputs + t.index, 0};
      case PlaceKind::constant: break;
    }
    return Binding{next_constant++, 0};
  };
  std::vector<Launch> launches;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    Launch launch;
    launch.kernel = kernels[i].get();
    launch.name = step.name;
    for (int tensor : step.inputs) launch.inputs.push_back(bind_operand(tensor));
    for (int tensor : step.outputs) launch.outputs.push_back(bind_operand(tensor));
    launch.workspace = {0, step.workspace_offset};
    launches.push_back(std::move(launch));
  }
  return backend.record(launches);
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

Result<std::shared_ptr<Buffer>> PreparedPlan::take_arena(Backend& backend) {
  {
    const std::lock_guard lock(mutex_);
    if (!arenas_.empty()) {
      auto arena = std::move(arenas_.back());
      arenas_.pop_back();
      return arena;
    }
  }
  return backend.allocate(arena_bytes(), MemoryKind::device);
}

void PreparedPlan::give_back(std::shared_ptr<Buffer> arena) {
  const std::lock_guard lock(mutex_);
  if (!cache_) return;
  if (arenas_.size() >= counted_) {
    if (!cache_->try_add(arena_bytes())) return;
    ++counted_;
  }
  arenas_.push_back(std::move(arena));
}

}  // namespace sparkle
