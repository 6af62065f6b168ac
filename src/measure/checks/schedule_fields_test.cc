// Each field of a schedule decides something: changed alone, the predicted cost, the tasks of a CPU's kernel or the shaders of
// a GPU's are others. Each variant is looked at by itself; fields that it has and does not read are listed, with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "algorithms/algorithm.h"
#include "backends/cpu/cpu_kernel.h"
#include "device/device_json.h"
#include "device/probe_cpu.h"
#include "families/depthwise/depthwise.h"
#include "families/direct/direct.h"
#include "families/fft/fft.h"
#include "families/gemm/gemm.h"
#include "families/grouped/grouped.h"
#include "families/inverted/inverted.h"
#include "families/registry.h"
#include "families/softmax/softmax.h"
#include "families/loops/tile_schedule.h"
#include "families/winograd/winograd.h"
#include "plan/choose/cost.h"
#if defined(SPARKLE_TESTS_WITH_VULKAN)
#include "backends/vulkan/sources.h"
#endif

namespace sparkle {
namespace {

// Fields whose effect no prediction and no count shows, in any variant. Everything else must be seen to have one.
const std::map<std::string, std::string> kUnseen = {
    {"variant", "the row of variants.inc that a kernel is forced, denied and tried by"},
    {"prefetch", "lines fetched ahead: they change times alone, which `bench --ablate` measures"},
};

// Fields that some variants have because they share a record with others, and those whose effect none of these layers shows.
struct Unread {
  std::string_view variants, fields, why;
};
constexpr Unread kUnread[] = {
    {"softmax/rows_gpu depthwise/naive depthwise/quads depthwise/vectors", "grain",
     "tasks are a CPU's, which has the same record"},
    {"softmax/rows_gpu depthwise/naive depthwise/quads depthwise/vectors gemm/naive gemm/groups gemm/halo gemm/fours "
     "gemm/several "
     "gemm/implicit",
     "unit", "the rate of arithmetic: memory, shared or the device's, binds in these layers"},
    {"gemm/naive gemm/groups", "n k thread_n", "a thread makes one output, in a row of them"},
    {"gemm/fours gemm/several", "k", "four channels a load, as it is written"},
    {"gemm/naive gemm/groups gemm/halo gemm/fours gemm/several", "depth pad subgroup unroll", "no tiles of operands are kept"},
    {"gemm/cooperative", "depth", "two tiles are in flight, as it is written; kept plans and tunings say so"},
    {"gemm/cooperative", "unroll", "stays 1: a product of fragments is one instruction"},
    {"pad/units", "grain unit", "tasks are a CPU's, which has the same record, and a copy computes nothing"},
    {"fft/whole", "product", "channels have a filter each: no sums over channels"},
    {"fft/tiles", "strip", "a vector of tiles at a time"},
    {"direct/slide", "maps", "windows slide over one vector of maps at a time"},
    {"direct/slide", "rows", "as many tasks either way, and arithmetic binds; direct/pixels and direct/maps show it"},
};

bool is_unread(const std::string& variant, const std::string& field) {
  const auto has = [](std::string_view list, const std::string& word) {
    return (" " + std::string(list) + " ").find(" " + word + " ") != std::string::npos;
  };
  return std::any_of(std::begin(kUnread), std::end(kUnread),
                     [&](const Unread& u) { return has(u.variants, variant) && has(u.fields, field); });
}

struct Sample {
  Stage stage;
  Schedule schedule;
  const Device* device;
};

// Changes field number `index` by `how`; 0: twice as much, 1: half, 2: one more, or the next name.
struct Change {
  const Device& device;
  int index, how, at = 0;
  std::string name;
  bool present(std::string_view, bool) { return true; }
  template <class T>
  void operator()(std::string_view field, T& value) {
    if (at++ != index) return;
    name = field;
    if constexpr (requires { value.visit(*this); }) {
      value.m = how == 1 ? std::max(1, value.m / 2) : 2 * value.m;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (device.units.empty()) return;
      value = device.units[static_cast<size_t>(how) % device.units.size()].name;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(static_cast<int>(value) == 0);
    } else {
      value = how == 0 ? 2 * value : how == 1 ? std::max<T>(1, value / 2) : value + 1;
    }
  }
};
constexpr int kChanges = 3;

// Threads' parts of a tile fit into it: kernels take that from the families.
template <class S>
bool is_whole(const S& s) {
  if constexpr (requires { s.product; }) return is_whole(s.product);
  if constexpr (requires { s.thread_m; }) return s.m == 0 || (s.thread_m <= s.m && s.thread_n <= s.n);
  return true;
}

// Counts the tasks that are handed out and runs none of several.
class TaskCounter final : public Executor {
 public:
  int width() const override { return 4; }
  void run(int tasks, Work, void*) override { text += " " + std::to_string(tasks); }
  std::string text;
};

// The tasks that the CPU's kernel hands out; nothing where this machine lacks the unit, since kernels may call it.
std::string kernel_on_cpu(const Stage& stage, const Schedule& schedule, const Device& device) {
  static constexpr cpu::KernelFactory kFactories[] = {
#define FAMILY(name, params) cpu::make_##name,
#include "families/families.inc"
#undef FAMILY
  };
  static const Device here = probe_cpu();
  if (!here.unit(unit_of(schedule))) return "";
  const auto make = kFactories[static_cast<size_t>(stage.family())];
  auto kernel = make(stage, schedule, device, 0);
  if (!kernel.ok()) kernel = make(stage, schedule, device, 2);  // weights that are stored in 16 bits are constant
  if (!kernel.ok()) return "refused";
  std::vector<HostTensor> tensors;
  std::vector<std::byte*> inputs, outputs;
  const auto add = [&](const TensorDesc& desc, std::vector<std::byte*>& list) {
    tensors.push_back(HostTensor::zeros(DType::u8, {extent(desc.shape, desc.layout) * size_of(desc.dtype) + 64}));
    list.push_back(tensors.back().data<std::byte>() + desc.layout.offset * size_of(desc.dtype));
  };
  for (const TensorDesc& desc : stage.inputs) add(desc, inputs);
  for (const TensorDesc& desc : stage.outputs) add(desc, outputs);
  const HostTensor workspace = HostTensor::zeros(DType::u8, {(*kernel)->workspace_bytes() + 64});
  TaskCounter counter;
  cpu::CpuLaunch launch;
  launch.inputs = inputs, launch.outputs = outputs, launch.executor = &counter;
  launch.workspace = workspace.data<std::byte>();
  (*kernel)->run(launch);
  return "tasks" + counter.text;
}

std::string shaders_of([[maybe_unused]] const Stage& stage, [[maybe_unused]] const Schedule& schedule,
                       [[maybe_unused]] const Device& device) {
  std::ostringstream text;
#if defined(SPARKLE_TESTS_WITH_VULKAN)
  const auto sources = vulkan::sources_of(stage, schedule, device, 2);
  if (!sources.ok()) return "refused";
  for (const vulkan::KernelSource& source : *sources) {
    text << source.shader << " " << source.group[0] << " " << source.subgroup;
    for (const auto& constant : source.constants) text << " " << constant.name << "=" << constant.value;
  }
#endif
  return text.str();
}

std::string effect_of(const Sample& s, const Schedule& schedule) {
  const Footprint footprint = info(s.stage.family()).footprint(s.stage, schedule, *s.device);
  const Cost cost = cost_of(footprint, schedule, *s.device);
  std::ostringstream text;
  text << std::hexfloat << cost.seconds << " " << footprint.workspace_bytes << " ";
  if (s.device->kind == DeviceKind::cpu) text << kernel_on_cpu(s.stage, schedule, *s.device);
  if (s.device->kind == DeviceKind::vulkan) text << shaders_of(s.stage, schedule, *s.device);
  return text.str();
}

// What this machine and this build can show: kernels of CPUs run by their unit's instructions.
bool can_show(const Sample& s) {
  static const Device here = probe_cpu();
  if (s.device->kind == DeviceKind::cpu) return here.unit(unit_of(s.schedule)) != nullptr;
#if defined(SPARKLE_TESTS_WITH_VULKAN)
  return true;
#else
  return false;
#endif
}

// Whether it can show all that the CPUs below run but SVE. With fewer units some variants are missing, and of others too few
// samples are left to show what a field does.
bool shows_all() {
  static const Device here = probe_cpu();
  return here.unit("avx512") != nullptr && here.unit("avx2") != nullptr;
}

// By family and variant ("gemm/implicit"), then by field of S: whether any of the samples shows an effect. What decides
// something for one variant may be left unread by another.
template <class S>
std::map<std::pair<std::string, std::string>, bool> fields_of(const std::vector<Sample>& samples) {
  std::map<std::pair<std::string, std::string>, bool> seen;
  for (const Sample& sample : samples) {
    const S* planned = get_if<S>(&sample.schedule);
    if (!planned || variant_of(sample.schedule) == "plain" || !can_show(sample)) continue;
    const std::string variant = std::string(name_of(sample.stage.family())) + "/" + variant_of(sample.schedule);
    const std::string before = effect_of(sample, sample.schedule);
    for (int index = 0, count = 1; index < count; ++index)
      for (int how = 0; how < kChanges; ++how) {
        S changed = *planned;
        Change change{*sample.device, index, how, 0, {}};
        changed.visit(change);
        count = change.at;
        if (kUnseen.contains(change.name)) continue;
        bool& effect = seen[{variant, change.name}];
        if (effect || changed == *planned || !is_whole(changed)) continue;
        effect = effect_of(sample, changed) != before;
      }
  }
  return seen;
}

std::vector<Device> devices() {
  std::vector<Device> list;
  for (const char* name : {"xeon-emr", "ryzen-zen3-laptop", "graviton3-neoverse-v1", "rtx-4090-vulkan", "radeon-rx-7900-xtx"}) {
    auto device = load_device(SPARKLE_SOURCE_DIR "/devices/" + std::string(name) + ".json");
    EXPECT_TRUE(device.ok()) << name;
    if (device.ok()) list.push_back(std::move(*device));
    if (!list.empty() && list.back().kind == DeviceKind::cpu) list.back().cores = 4;
  }
  return list;
}

TensorDesc maps(int64_t c, int64_t size) { return {DType::f32, {1, c, size, size}, channels_last({1, c, size, size})}; }

// All schedules that families offer for a few layers, a block and a softmax.
std::vector<Sample> samples(const std::vector<Device>& all) {
  std::vector<Sample> list;
  const auto add = [&](const Stage& stage, const Device& device) {
    for (const Variant& variant : info(stage.family()).variants) {
      Reason why_not = Reason::none;
      if (!variant.runs_on(device)) continue;
      size_t taken = 0;
      for (const Schedule& schedule : info(stage.family()).schedules(stage, variant, device, why_not))
        if (++taken <= 6) list.push_back({stage, schedule, &device});
    }
  };
  for (const Device& device : all) {
    for (const char* text :
         {"ic64ih28oc96oh28kh1", "ic512ih14oc512oh14kh3ph1", "ic3ih64oc32oh32kh3sh2ph1", "g96ic96ih28oc96oh28kh3ph1",
          "g32ic128ih28oc128oh28kh3ph1", "g96ic96ih56oc96oh56kh31ph15", "ic32ih112oc32oh112kh15ph7"}) {
      const auto problem = parse_conv(text);
      EXPECT_TRUE(problem.ok()) << text;
      if (!problem.ok()) continue;
      const ProblemOperands operands = operands_of(*problem);
      const AnchorCall call{*problem, operands.inputs, operands.output, WeightFit{Fit::rounded, Fit::rounded}};
      for (const Algorithm& algorithm : algorithms())
        if (algorithm.applies(call) == Reason::none)
          for (const StageUse& use : algorithm.stages(call).stages) add(use.stage, device);
    }
    InvertedParams block;
    block.window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}};
    add({block,
         {maps(24, 56), dense_desc(DType::f32, {144, 24, 1, 1}), dense_desc(DType::f32, {144, 1, 3, 3}),
          dense_desc(DType::f32, {24, 144, 1, 1})},
         {maps(24, 56)}},
        device);
    const TensorDesc rows = dense_desc(DType::f32, {256, 1000});
    add({SoftmaxParams{1, 1, false}, {rows}, {rows}}, device);
  }
  return list;
}

TEST(ScheduleFields, EachDecidesSomething) {
  const std::vector<Device> all = devices();
  const std::vector<Sample> list = samples(all);
  std::set<const ScheduleType*> checked;
  const auto check = [&]<class S>(const S&, const char* type) {
    checked.insert(&ScheduleType::of<S>);
    const auto fields = fields_of<S>(list);
    EXPECT_TRUE(!fields.empty() || !shows_all()) << type << " is in no sample";
    for (const auto& [name, seen] : fields)
      if (seen || shows_all()) {
        EXPECT_NE(seen, is_unread(name.first, name.second)) << type << " of " << name.first << ": " << name.second
                                                            << (seen ? " is seen to decide something" : " decides nothing");
      }
  };
  check(LoopSchedule{}, "LoopSchedule");
  check(GemmSchedule{}, "GemmSchedule");
  check(DirectSchedule{}, "DirectSchedule");
  check(GroupedSchedule{}, "GroupedSchedule");
  check(DepthwiseSchedule{}, "DepthwiseSchedule");
  check(WinogradSchedule{}, "WinogradSchedule");
  check(FftSchedule{}, "FftSchedule");
  check(InvertedSchedule{}, "InvertedSchedule");
#if defined(SPARKLE_TESTS_WITH_VULKAN)
  check(TileSchedule{}, "TileSchedule");
  check(FftTileSchedule{}, "FftTileSchedule");
#endif
  for (int i = 0; i < kFamilies; ++i) {
    const FamilyInfo& family = info(static_cast<Family>(i));
    EXPECT_TRUE(checked.contains(family.cpu_schedule)) << family.name;
#if defined(SPARKLE_TESTS_WITH_VULKAN)
    EXPECT_TRUE(checked.contains(family.gpu_schedule)) << family.name;
#endif
  }
}

// Plans leave no count of tasks to kernels.
TEST(ScheduleFields, CpusAreGivenAGrain) {
  const std::vector<Device> all = devices();
  for (const Sample& s : samples(all))
    if (s.device->kind == DeviceKind::cpu) {
      EXPECT_EQ(to_text(s.schedule).find("grain=0"), std::string::npos) << to_text(s.schedule);
    }
}

}  // namespace
}  // namespace sparkle
