#include "plan/levels.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/printable.h"
#include "base/text/columns.h"
#include "base/text/format.h"
#include "families/registry.h"
#include "plan/choose/choose.h"
#include "plan/explain.h"

namespace sparkle {
namespace {

// Bytes as caches are sized, in powers of 1024.
std::string bytes_text(double bytes) {
  if (bytes < 1024) return format("%.0f B", bytes);
  if (bytes < 1024 * 1024) return format("%.1f KiB", bytes / 1024);
  return bytes < 1024.0 * 1024 * 1024 ? format("%.1f MiB", bytes / 1048576) : format("%.0f GiB", bytes / 1073741824);
}

// Bytes that move, in powers of 1000 as bandwidths are.
std::string moved_text(double bytes) {
  return bytes < 1e6   ? format("%.1f kB", bytes * 1e-3)
         : bytes < 1e9 ? format("%.1f MB", bytes * 1e-6)
                       : format("%.2f GB", bytes * 1e-9);
}

// What a step is known by on every device: the model's nodes, or the name of what the planner added.
std::set<std::string> nodes_of(const PlanStep& step) {
  if (step.nodes.empty()) return {step.name};
  return {step.nodes.begin(), step.nodes.end()};
}
bool share(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& n) { return !n.empty() && b.contains(n); });
}

std::string kernel_text(const PlanStep& step) {
  if (!has_kernel(step)) return "none yet: " + std::string(code_of(Reason::no_kernel));
  std::string text = step.algorithm + ", " + std::string(name_of(step.stage.family())) + " " + variant_of(step.schedule);
  return unit_of(step.schedule).empty() ? text : text + " on " + unit_of(step.schedule);
}

std::string reuse_text(const LevelUse& use) {
  if (use.level == kRegisters) return use.reuse > 0 ? format("%.1f operations a byte loaded", use.reuse) : "";
  if (use.bytes <= 0) return "";
  std::string text = moved_text(use.bytes) + " inwards";
  return use.reuse > 0 ? text + format(", each byte from beyond %.1f times", use.reuse) : text;
}

std::string level_text(const LevelUse& use) {
  std::string text;
  for (const BlockingTile& tile : use.tiles) text += (text.empty() ? "" : "; ") + tile.what + ": " + bytes_text(tile.bytes);
  if (use.tiles.empty() && use.bytes > 0) text = "passes through";
  if (use.capacity > 0 && !use.tiles.empty()) text += " of " + bytes_text(static_cast<double>(use.capacity));
  const std::string reuse = reuse_text(use);
  if (!reuse.empty()) text += (text.empty() ? "" : ". ") + reuse;
  return text.empty() ? "nothing" : text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "nothing" : text;
}

// The levels of all devices, inner ones first; those that a device lacks stand where the others have them.
std::vector<std::string> all_levels(std::span<const DevicePlan> plans) {
  std::vector<std::string> names{std::string(kRegisters)};
  for (const DevicePlan& p : plans) {
    size_t at = 1;
    for (const MemoryLevel& level : p.device.memory) {
      const auto found = std::find(names.begin(), names.end(), level.name);
      if (found == names.end()) names.insert(names.begin() + static_cast<std::ptrdiff_t>(at), level.name);
      at = static_cast<size_t>(std::find(names.begin(), names.end(), level.name) - names.begin()) + 1;
    }
  }
  return names;
}

void add_steps(TextColumns& table, std::span<const DevicePlan> plans, const std::vector<const PlanStep*>& steps) {
  std::vector<StepLevels> levels;
  for (size_t d = 0; d < plans.size(); ++d) levels.push_back(steps[d] ? levels_of(*steps[d], plans[d].device) : StepLevels{});
  const auto row = [&](const std::string& label, auto&& cell) {
    std::vector<std::string> cells;
    for (size_t d = 0; d < plans.size(); ++d) cells.push_back(steps[d] ? cell(d) : "");
    table.add(label, cells);
  };
  // A convolution alone is called what it computes.
  const bool named =
      std::any_of(steps.begin(), steps.end(), [](const PlanStep* s) { return s && !what_of(*s).starts_with(s->name); });
  if (named) row("step", [&](size_t d) { return printable(steps[d]->name); });
  row("computes", [&](size_t d) { return printable(what_of(*steps[d])); });
  row("kernel", [&](size_t d) { return kernel_text(*steps[d]); });
  row("bound by", [&](size_t d) { return steps[d]->cost.bound; });
  for (const std::string& name : all_levels(plans))
    row(name, [&](size_t d) -> std::string {
      const auto& all = levels[d].levels;
      const auto use = std::find_if(all.begin(), all.end(), [&](const LevelUse& u) { return u.level == name; });
      return use == all.end() ? "-" : level_text(*use);
    });
  row("vectorised", [&](size_t d) { return levels[d].vectorised; });
  row("in flight", [&](size_t d) { return levels[d].in_flight; });
  row("fused", [&](size_t d) { return joined(levels[d].fused); });
}

nlohmann::json step_json(const PlanStep& step, const Device& device) {
  using nlohmann::json;
  const StepLevels all = levels_of(step, device);
  json levels = json::array();
  for (const LevelUse& use : all.levels) {
    json tiles = json::array();
    for (const BlockingTile& tile : use.tiles) tiles.push_back({{"what", tile.what}, {"bytes", tile.bytes}});
    levels.push_back({{"level", use.level},
                      {"capacity_bytes", use.capacity},
                      {"tiles", tiles},
                      {"bytes_moved", use.bytes},
                      {use.level == kRegisters ? "flops_per_byte" : "reuse", use.reuse}});
  }
  return {{"name", step.name},
          {"nodes", step.nodes},
          {"what", what_of(step)},
          {"algorithm", step.algorithm},
          {"family", name_of(step.stage.family())},
          {"schedule", to_text(step.schedule)},
          {"reason", has_kernel(step) ? "" : std::string(code_of(Reason::no_kernel))},
          {"predicted_ms", step.cost.seconds * 1e3},
          {"bound", step.cost.bound},
          {"levels", levels},
          {"vectorised", all.vectorised},
          {"in_flight", all.in_flight},
          {"fused", all.fused}};
}

}  // namespace

StepLevels levels_of(const PlanStep& step, const Device& device) {
  Blocking blocking = blocking_of(step.stage, step.schedule, device);
  StepLevels all;
  const std::vector<double>& bytes = step.footprint.bytes;
  const auto moved = [&](size_t i) { return i < bytes.size() ? bytes[i] : 0; };
  // Of the first level from `i` on that anything comes from; a GPU's kernel need not use its shared memory.
  const auto comes_in = [&](size_t i) {
    while (i < device.memory.size() && moved(i) <= 0) ++i;
    return moved(i);
  };
  LevelUse registers{std::string(kRegisters), 0, {}, 0, 0};
  if (const double in = comes_in(0); in > 0) registers.reuse = step.footprint.executed_flops / in;
  all.levels.push_back(std::move(registers));
  for (size_t i = 0; i < device.memory.size(); ++i) {
    LevelUse use{device.memory[i].name, device.memory[i].bytes, {}, moved(i), 0};
    if (const double in = comes_in(i + 1); in > 0) use.reuse = use.bytes / in;
    all.levels.push_back(std::move(use));
  }
  for (BlockingTile& tile : blocking.tiles) {
    const std::string level = level_of(tile, device);
    for (LevelUse& use : all.levels)
      if (use.level == level) use.tiles.push_back(tile);
  }
  // Where several loops' tiles fit a level, the outermost one holds the others; all operands may stay there besides.
  for (LevelUse& use : all.levels) {
    const auto is_inner = [](const BlockingTile& t) { return !t.is_named() && !t.whole; };
    const auto inner = std::count_if(use.tiles.begin(), use.tiles.end(), is_inner);
    std::ptrdiff_t seen = 0;
    std::erase_if(use.tiles, [&](const BlockingTile& t) { return is_inner(t) && ++seen < inner; });
  }
  all.vectorised = std::move(blocking.vectorised), all.in_flight = std::move(blocking.in_flight);
  all.fused = std::move(blocking.fused);
  return all;
}

std::vector<SameWork> same_work(std::span<const DevicePlan> plans, const std::string& name) {
  std::vector<SameWork> groups;
  std::vector<std::set<std::string>> nodes;
  // A step of one device may do the nodes of several steps of another: groups that it joins become one.
  for (size_t d = 0; d < plans.size(); ++d)
    for (const PlanStep& step : plans[d].plan.steps) {
      std::set<std::string> of_step = nodes_of(step);
      size_t at = groups.size();
      for (size_t g = 0; g < groups.size(); ++g) {
        if (!share(of_step, nodes[g])) continue;
        if (at == groups.size()) {
          at = g;
          continue;
        }
        for (size_t i = 0; i < plans.size(); ++i)
          groups[at][i].insert(groups[at][i].end(), groups[g][i].begin(), groups[g][i].end());
        nodes[at].merge(nodes[g]);
        for (auto& steps : groups[g]) steps.clear();
      }
      if (at == groups.size()) groups.emplace_back(plans.size()), nodes.emplace_back();
      groups[at][d].push_back(&step);
      nodes[at].merge(of_step);
    }
  for (SameWork& group : groups)
    for (auto& steps : group) std::sort(steps.begin(), steps.end());  // all in one array: the plan's order
  const auto any_step = [](const SameWork& group, auto is) {
    return std::any_of(group.begin(), group.end(),
                       [&](const auto& steps) { return std::any_of(steps.begin(), steps.end(), is); });
  };
  const auto whole = [&](const PlanStep* step) { return step->name == name; };
  const bool has_whole = std::any_of(groups.begin(), groups.end(), [&](const auto& g) { return any_step(g, whole); });
  std::erase_if(groups, [&](const SameWork& group) {
    if (has_whole) return !any_step(group, whole);
    return !any_step(group, [&](const PlanStep* step) { return step->name.find(name) != std::string::npos; });
  });
  return groups;
}

std::string levels_text(std::span<const DevicePlan> plans, const std::string& name) {
  std::string text;
  for (const SameWork& group : same_work(plans, name)) {
    size_t most = 0;
    for (const auto& steps : group) most = std::max(most, steps.size());
    TextColumns table(12, plans.size() == 1 ? 100 : plans.size() == 2 ? 52 : 40);
    std::vector<std::string> heads;
    for (const DevicePlan& p : plans)
      heads.push_back(printable(p.called == p.device.name ? p.called : p.called + ": " + p.device.name));
    table.add("", heads);
    for (size_t i = 0; i < most; ++i) {
      std::vector<const PlanStep*> steps;
      for (const auto& of_device : group) steps.push_back(i < of_device.size() ? of_device[i] : nullptr);
      table.line();
      add_steps(table, plans, steps);
    }
    text += (text.empty() ? "" : "\n") + table.text();
  }
  return text.empty() ? "no step has a name with '" + printable(name) + "' in it\n" : text;
}

std::string levels_json(std::span<const DevicePlan> plans, const std::string& name) {
  using nlohmann::json;
  json devices = json::array(), layers = json::array();
  for (const DevicePlan& p : plans)
    devices.push_back({{"called", p.called}, {"device", p.device.name}, {"calibrated", p.plan.calibrated}});
  for (const SameWork& group : same_work(plans, name)) {
    json of_devices = json::array();
    for (size_t d = 0; d < plans.size(); ++d) {
      json steps = json::array();
      for (const PlanStep* step : group[d]) steps.push_back(step_json(*step, plans[d].device));
      of_devices.push_back(std::move(steps));
    }
    layers.push_back({{"devices", std::move(of_devices)}});
  }
  return json{{"model", plans.empty() ? "" : plans.front().plan.model}, {"devices", devices}, {"layers", layers}}.dump(
      2, ' ', false, json::error_handler_t::replace);
}

}  // namespace sparkle
