#include "plan/choose/blocks.h"

#include <algorithm>

#include "families/family.h"
#include "families/inverted/inverted.h"
#include "plan/choose/cost.h"

namespace sparkle {
namespace {

constexpr std::string_view kName = "inverted", kNone = "none";

// Who writes and who reads each buffer; parts of a buffer count as the whole.
struct Touches {
  std::vector<int> writer, reader, count;  // of buffers: the last step that does, -1; how many do, and operands of steps read
  explicit Touches(const Draft& draft)
      : writer(draft.buffers.size(), -1), reader(draft.buffers.size(), -1), count(draft.buffers.size(), 0) {
    for (size_t s = 0; s < draft.steps.size(); ++s) {
      for (int v : draft.steps[s].inputs) ++count[buffer(draft, v)], reader[buffer(draft, v)] = static_cast<int>(s);
      for (int v : draft.steps[s].outputs) ++count[buffer(draft, v)], writer[buffer(draft, v)] = static_cast<int>(s);
    }
  }
  static size_t buffer(const Draft& draft, int value) {
    return static_cast<size_t>(draft.values[static_cast<size_t>(value)].buffer);
  }
  // Written by one step as a whole and read by one, at one place each, and by nobody else.
  bool between(const Draft& draft, int value) const {
    const size_t b = buffer(draft, value);
    return draft.buffers[b].kind == PlaceKind::arena && count[b] == 2 && writer[b] >= 0 && reader[b] >= 0;
  }
};

const Problem* problem_of(const Draft& draft, int step) {
  return step < 0 ? nullptr : std::get_if<Problem>(&draft.steps[static_cast<size_t>(step)].work);
}

bool is_plain(const Epilogue& e) { return !e.scale && e.alpha == 1 && e.residuals() == 0 && !e.has_post_op(); }

bool is_conv(const Problem& p) { return p.kind == ProblemKind::conv && p.rank == 2 && (p.dtype == "f32" || p.dtype == "bf16"); }
bool is_pointwise(const Problem& p) {
  return is_conv(p) && p.groups == 1 && p.window.is_pointwise() && p.window.pad_end == Triple{0, 0, 0};
}
bool is_depthwise(const Problem& p) { return is_conv(p) && p.groups == p.c && p.k == p.c && p.c > 1; }

bool projects(const Problem& p) {
  const Epilogue& e = p.epilogue;
  return is_pointwise(p) && !e.scale && e.alpha == 1 && e.residuals() <= 1 && !e.has_post_op();
}

double seconds_of(const ChosenStep& step) { return step.choice.cost.seconds; }

// What a plane between layers costs beyond their own predictions: these take it to be near, but in a network the others'
// weights and planes have passed through the outer caches since its memory was last used, so that a plane larger than the L2 is
// fetched to be written and written back. Measured in MobileNetV2 on Zen 4: 0.16 to 0.23 ms for 1.6 MB.
double plane_seconds(const Draft& draft, int step, const Device& device) {
  const TensorDesc& plane = draft.desc(draft.steps[static_cast<size_t>(step)].outputs[0]);
  const MemoryLevel* l2 = device.level("L2");
  if (!l2 || l2->bytes <= 0 || plane.bytes() <= l2->bytes) return 0;
  const MemoryLevel& outermost = device.memory.back();
  const double rate = outermost.copy_bytes_per_second > 0 ? outermost.copy_bytes_per_second : outermost.total_bytes_per_second;
  return rate > 0 ? 2 * static_cast<double>(plane.bytes()) / rate : 0;
}

// The best candidate to run a stage of the block's family; none where only plain loops would serve and nobody asked for them.
struct Fused {
  std::optional<Choice> choice;
  Reason why_not = Reason::none;
};
Fused fused(const Draft& draft, const DraftStep& step, const Device& device, const PlanOptions& options, bool forced) {
  const FamilyInfo& family = inverted_info();
  const bool any =
      std::any_of(family.variants.begin(), family.variants.end(), [&](const Variant& v) { return v.runs_on(device); });
  if (!any) return {std::nullopt, Reason::no_kernel};
  Stage stage{std::get<StageParams>(step.work), {}, {}};
  for (int v : step.inputs) stage.inputs.push_back(draft.desc(v));
  for (int v : step.outputs) stage.outputs.push_back(draft.desc(v));
  auto choice = choose(stage, device, options);
  if (!choice.ok()) return {std::nullopt, choice.error().reason};
  if (variant_of(choice->schedules[0]) != "plain" || forced) return {std::move(*choice), Reason::none};
  Reason why_not = Reason::costlier;
  for (const Candidate& c : choice->candidates)
    if (!c.cost && c.reason != Reason::none && why_not == Reason::costlier) why_not = c.reason;
  return {std::nullopt, why_not};
}

// The layers of a block as they would run apart, in one row; `planes`: seconds of the planes between them.
Candidate apart(const std::vector<const ChosenStep*>& layers, double planes, Reason reason) {
  Candidate row{"apart", "", std::nullopt, reason};
  for (const ChosenStep* layer : layers) {
    row.schedule += (row.schedule.empty() ? "" : ", then ") + layer->choice.algorithm;
    row.cost = row.cost ? add(*row.cost, layer->choice.cost) : layer->choice.cost;
  }
  if (row.cost) row.cost->seconds += planes;
  return row;
}

void reject(ChosenStep& at, Reason reason) { at.choice.candidates.push_back({std::string(kName), "-", std::nullopt, reason}); }

}  // namespace

std::vector<Block> find_blocks(const Draft& draft) {
  const Touches touches(draft);
  std::vector<Block> blocks;
  for (size_t s = 0; s < draft.steps.size(); ++s) {
    const Problem* depthwise = problem_of(draft, static_cast<int>(s));
    if (!depthwise || !is_depthwise(*depthwise) || !is_plain(depthwise->epilogue)) continue;
    const DraftStep& step = draft.steps[s];
    Block block;
    block.depthwise = static_cast<int>(s);
    if (touches.between(draft, step.outputs[0])) {
      const int reader = touches.reader[Touches::buffer(draft, step.outputs[0])];
      const Problem* project = problem_of(draft, reader);
      const auto is_first = [&](int other, int from) {
        return Touches::buffer(draft, draft.steps[static_cast<size_t>(other)].inputs[0]) == Touches::buffer(draft, from);
      };
      if (project && projects(*project) && project->c == depthwise->k && project->n == depthwise->n &&
          is_first(reader, step.outputs[0]))
        block.project = reader;
    }
    if (touches.between(draft, step.inputs[0])) {
      const int writer = touches.writer[Touches::buffer(draft, step.inputs[0])];
      const Problem* expand = problem_of(draft, writer);
      if (expand && is_pointwise(*expand) && is_plain(expand->epilogue) && expand->k == depthwise->c &&
          expand->n == depthwise->n)
        block.expand = writer;
    }
    blocks.push_back(block);
  }
  return blocks;
}

DraftStep block_step(const Draft& draft, const Block& block, bool expand) {
  InvertedParams params;
  params.expand = expand;
  DraftStep whole;
  for (int s : {expand ? block.expand : -1, block.depthwise, block.project}) {
    if (s < 0) continue;
    const DraftStep& step = draft.steps[static_cast<size_t>(s)];
    const auto& problem = std::get<Problem>(step.work);
    Epilogue& part = s == block.project ? params.project : s == block.depthwise ? params.deep : params.wide;
    part = problem.epilogue;
    if (s == block.depthwise) params.window = problem.window, whole.name = step.name;
    whole.nodes.insert(whole.nodes.end(), step.nodes.begin(), step.nodes.end());
    // Only the first one's input comes from outside.
    whole.inputs.insert(whole.inputs.end(), step.inputs.begin() + (whole.inputs.empty() ? 0 : 1), step.inputs.end());
    whole.outputs = step.outputs;
  }
  whole.work = StageParams(params);
  return whole;
}

void choose_blocks(const Draft& draft, const Device& device, const PlanOptions& options, std::vector<ChosenStep>& steps) {
  const bool forced = options.fusion == kName;
  // Whoever forces an algorithm or a variant of the layers wants to see the layers.
  const auto variants = inverted_info().variants;
  const bool others = !options.algorithm.empty() ||
                      (!options.variant.empty() && (options.variant == "plain" ||
                                                    std::none_of(variants.begin(), variants.end(),
                                                                 [&](const Variant& v) { return v.name == options.variant; })));
  const bool off = !options.fuse || options.fusion == kNone || (others && !forced);
  for (Block block : find_blocks(draft)) {
    ChosenStep& depthwise = steps[static_cast<size_t>(block.depthwise)];
    if (depthwise.dropped) continue;
    if (off || block.project < 0) {
      reject(depthwise, off ? Reason::forced_other : Reason::other_reader);
      continue;
    }
    ChosenStep& project = steps[static_cast<size_t>(block.project)];
    // The projection of one block may look like the expansion of the next.
    if (block.expand >= 0 &&
        (steps[static_cast<size_t>(block.expand)].dropped || steps[static_cast<size_t>(block.expand)].block))
      block.expand = -1;
    ChosenStep* expand = block.expand < 0 ? nullptr : &steps[static_cast<size_t>(block.expand)];
    const double wide_plane = expand ? plane_seconds(draft, block.expand, device) : 0,
                 deep_plane = plane_seconds(draft, block.depthwise, device);
    const double wide = expand ? seconds_of(*expand) + wide_plane : 0;
    const double layers = wide + seconds_of(depthwise) + deep_plane + seconds_of(project);
    Fused whole;
    DraftStep whole_step;
    if (expand) whole_step = block_step(draft, block, true), whole = fused(draft, whole_step, device, options, forced);
    const DraftStep pair_step = block_step(draft, block, false);
    Fused pair = fused(draft, pair_step, device, options, forced);
    const double whole_seconds = whole.choice ? whole.choice->cost.seconds : layers;
    const double pair_seconds = pair.choice ? pair.choice->cost.seconds + wide : layers;
    const bool take_whole = whole.choice && (forced || (whole_seconds < layers && whole_seconds <= pair_seconds));
    const bool take_pair = !take_whole && pair.choice && (forced || pair_seconds < layers);
    if (!take_whole && !take_pair) {
      for (Fused* candidate : {&whole, &pair}) {
        if (candidate == &whole && !expand) continue;
        if (!candidate->choice) {
          reject(depthwise, candidate->why_not);
          continue;
        }
        Candidate row = candidate->choice->candidates[0];
        row.reason = Reason::costlier;
        depthwise.choice.candidates.push_back(std::move(row));
      }
      continue;
    }
    Choice& taken = take_whole ? *whole.choice : *pair.choice;
    std::vector<const ChosenStep*> replaced;
    if (take_whole) replaced.push_back(expand);
    replaced.push_back(&depthwise), replaced.push_back(&project);
    taken.candidates.push_back(
        apart(replaced, deep_plane + (take_whole ? wide_plane : 0), forced ? Reason::forced_other : Reason::costlier));
    if (take_whole) expand->dropped = true;
    depthwise.dropped = true;
    project.block = take_whole ? whole_step : pair_step;
    project.choice = std::move(taken);
  }
}

}  // namespace sparkle
