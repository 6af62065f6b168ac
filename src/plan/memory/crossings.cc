#include "plan/memory/crossings.h"

#include <algorithm>
#include <utility>

#include "families/copy/copy.h"
#include "families/family.h"

namespace sparkle {
namespace {

// Which of the two memories hold all that was written into a buffer so far. Nothing was where neither does.
struct Held {
  bool by_device = false, by_host = false;
  bool& by(RunsOn side) { return side == RunsOn::host ? by_host : by_device; }
  bool written() const { return by_device || by_host; }
};

class Crossings {
 public:
  Crossings(Plan& plan, PlanBuffers& buffers, const Device& device)
      : plan_(plan), buffers_(buffers), device_(device), held_(buffers.lives.size()), copies_(buffers.lives.size(), -1) {
    for (int t : plan.inputs) held(t).by_device = true;
  }

  void run() {
    std::vector<PlanStep> steps = std::exchange(plan_.steps, {});
    std::vector<size_t> written(held_.size(), 0);  // by the last step that writes each buffer
    for (size_t i = 0; i < steps.size(); ++i)
      for (int t : steps[i].outputs) written[buffer_of(t)] = i;
    for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      const RunsOn side = steps[begin].runs_on;
      while (end < steps.size() && steps[end].runs_on == side) ++end;
      // Outputs that the host has made go with what the device's steps need.
      for (int t : plan_.outputs)
        if (side == RunsOn::device && held(t).by_host && written[buffer_of(t)] < begin) bring(t, side);
      std::vector<PlanStep> own;
      for (size_t i = begin; i < end; ++i) own.push_back(taken(std::move(steps[i])));
      std::move(own.begin(), own.end(), std::back_inserter(plan_.steps));
    }
    for (int t : plan_.outputs)
      if (held(t).by_host) bring(t, RunsOn::device);
  }

 private:
  bool is_constant(int tensor) const { return plan_.tensors[static_cast<size_t>(tensor)].kind == PlaceKind::constant; }
  size_t buffer_of(int tensor) const { return static_cast<size_t>(buffers_.of_tensor[static_cast<size_t>(tensor)]); }
  Held& held(int tensor) { return held_[buffer_of(tensor)]; }

  // The step with its operands on its side. Transfers that it needs go in front of those of its side that stand before it: what
  // these wrote its side holds, so that nothing is brought which is not there yet.
  PlanStep taken(PlanStep step) {
    const RunsOn side = step.runs_on;
    for (int t : step.inputs)
      if (!is_constant(t)) bring(t, side);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      // Who writes a part of a buffer adds to what is there.
      if (held(step.outputs[i]).written() && !covers(step.stage.outputs[i], buffer_of(step.outputs[i])))
        bring(step.outputs[i], side);
    }
    for (int t : step.outputs) held(t) = {side == RunsOn::device, side == RunsOn::host};
    if (side == RunsOn::host)
      for (auto* operands : {&step.inputs, &step.outputs})
        for (int& t : *operands)
          if (!is_constant(t)) t = on_host(t);
    return step;
  }

  bool covers(const TensorDesc& desc, size_t buffer) const {
    return desc.layout.offset == 0 && desc.bytes() == buffers_.lives[buffer].bytes &&
           extent(desc.shape, desc.layout) == desc.elements();
  }

  // The same view of the host's copy of its buffer.
  int on_host(int tensor) {
    const size_t buffer = buffer_of(tensor);
    if (copies_[buffer] < 0) {
      copies_[buffer] = static_cast<int>(buffers_.lives.size());
      buffers_.lives.push_back(buffers_.lives[buffer]);
      buffers_.kinds.push_back(PlaceKind::host);
    }
    PlanTensor there = plan_.tensors[static_cast<size_t>(tensor)];
    there.kind = PlaceKind::host, there.index = 0;
    plan_.tensors.push_back(std::move(there));
    buffers_.of_tensor.push_back(copies_[buffer]);
    return static_cast<int>(plan_.tensors.size()) - 1;
  }

  void bring(int tensor, RunsOn side) {
    Held& now = held(tensor);
    if (!now.written() || now.by(side)) return;
    now.by(side) = true;
    const size_t buffer = buffer_of(tensor);
    const bool down = side == RunsOn::host;
    const PlanTensor& moved = plan_.tensors[static_cast<size_t>(tensor)];
    const int64_t bytes = buffers_.lives[buffer].bytes;
    const TensorDesc whole = dense_desc(moved.desc.dtype, {bytes / size_of(moved.desc.dtype)});
    PlanStep step;
    step.runs_on = RunsOn::link;
    step.algorithm = down ? "download" : "upload";
    step.name = moved.name + "/" + step.algorithm;
    step.stage = {StageParams(CopyParams{step.algorithm}), {whole}, {whole}};
    LoopSchedule schedule;
    schedule.variant = "transfer";
    step.schedule = schedule;
    step.cost = {transfer_seconds(device_, static_cast<double>(bytes)), "link"};
    const int there = on_host(tensor);
    step.inputs = {down ? tensor : there}, step.outputs = {down ? there : tensor};
    plan_.steps.push_back(std::move(step));
  }

  Plan& plan_;
  PlanBuffers& buffers_;
  const Device& device_;
  std::vector<Held> held_;   // by buffer of the device's steps
  std::vector<int> copies_;  // the host's buffer of each of these; -1: none
};

}  // namespace

void add_crossings(Plan& plan, PlanBuffers& buffers, const Device& device) {
  const auto on_host = [](const PlanStep& step) { return step.runs_on == RunsOn::host; };
  if (std::any_of(plan.steps.begin(), plan.steps.end(), on_host)) Crossings(plan, buffers, device).run();
}

}  // namespace sparkle
