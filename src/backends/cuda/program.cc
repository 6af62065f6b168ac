#include "backends/cuda/program.h"

#include <algorithm>

#include "backends/cuda/kernels/roofs/stall_record.h"
#include "base/log.h"

namespace sparkle::cuda {
namespace {

constexpr size_t kMostGraphs = 8;
// Of launches one by one: what the host takes for each of them and for the event before a step, about, and the longest that the
// stream is kept busy for that: some 2,500 steps. Of more the last ones may hold what the host takes, where they are short.
constexpr uint64_t kLaunchNanoseconds = 5000, kEventNanoseconds = 3000, kMostNanoseconds = 20'000'000;

// Bytes of a slot that a step reads or writes.
struct Touch {
  int slot = 0;
  int64_t begin = 0, end = 0;
  bool overlaps(const Touch& o) const { return slot == o.slot && begin < o.end && o.begin < end; }
};
struct Touches {
  std::vector<Touch> reads, writes;
  bool conflict(const Touches& o) const { return meet(writes, o.writes) || meet(writes, o.reads) || meet(reads, o.writes); }

 private:
  static bool meet(const std::vector<Touch>& a, const std::vector<Touch>& b) {
    return std::any_of(a.begin(), a.end(), [&](const Touch& t) {
      return std::any_of(b.begin(), b.end(), [&](const Touch& u) { return t.overlaps(u); });
    });
  }
};

// The lowest and highest bytes that an operand's elements lie in, from its binding's start.
Touch touch_of(const Binding& binding, const TensorDesc& desc, int64_t packed_bytes) {
  if (packed_bytes > 0) return {binding.slot, binding.offset_bytes, binding.offset_bytes + packed_bytes};
  int64_t low = desc.layout.offset, high = desc.layout.offset + 1;
  for (int i = 0; i < desc.shape.size(); ++i) {
    const int64_t reach = (desc.shape[i] - 1) * desc.layout.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = size_of(desc.dtype);
  return {binding.slot, binding.offset_bytes + low * size, binding.offset_bytes + high * size};
}

std::vector<CuAddress> addresses_of(std::span<Buffer* const> slots) {
  std::vector<CuAddress> list;
  for (Buffer* slot : slots) list.push_back(slot ? slot->address() : 0);
  return list;
}

// Records lie where tensor maps may: at multiples of 64 bytes.
struct alignas(64) RecordMemory {
  std::byte bytes[4096];
};

}  // namespace

Graph::~Graph() {
  const Current current(*context_);
  context_->driver().graph_exec_destroy(exec_);
}

CudaProgram::CudaProgram(const Workshop& shop, std::span<const Launch> launches) : shop_(shop), context_(shop.context) {
  auto reporting = std::make_shared<std::vector<ReportingLaunch>>();
  std::vector<Touches> touched;           // of each step
  std::vector<std::vector<size_t>> last;  // launches of each step that nothing of it waits for
  std::vector<std::vector<bool>> before;  // steps that are over before a step begins
  for (const Launch& step : launches) {
    const auto& kernel = static_cast<const CudaKernel&>(*step.kernel);
    Touches touches;
    std::vector<std::pair<int, int64_t>> origins;  // of element (0,...,0)
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const TensorDesc& desc = kernel.stage.inputs[i];
      const int64_t packed = kernel.packed_bytes(static_cast<int>(i));
      touches.reads.push_back(touch_of(step.inputs[i], desc, packed));
      origins.emplace_back(step.inputs[i].slot,
                           step.inputs[i].offset_bytes + (packed > 0 ? 0 : desc.layout.offset * size_of(desc.dtype)));
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const TensorDesc& desc = kernel.stage.outputs[i];
      touches.writes.push_back(touch_of(step.outputs[i], desc, 0));
      origins.emplace_back(step.outputs[i].slot, step.outputs[i].offset_bytes + desc.layout.offset * size_of(desc.dtype));
    }
    if (kernel.workspace > 0)
      touches.writes.push_back(
          {step.workspace.slot, step.workspace.offset_bytes, step.workspace.offset_bytes + kernel.workspace});
    // The nearest steps that it may not overtake; those before these are over anyway.
    std::vector<size_t> waits_for;
    std::vector<bool> over(touched.size());
    for (size_t s = touched.size(); s-- > 0;) {
      if (over[s] || !touches.conflict(touched[s])) continue;
      waits_for.insert(waits_for.end(), last[s].begin(), last[s].end());
      over[s] = true;
      for (size_t i = 0; i < before[s].size(); ++i)
        if (before[s][i]) over[i] = true;
    }
    // Steps without launches hand on what they wait for, so several may name one launch, and a node may depend on it once.
    std::sort(waits_for.begin(), waits_for.end());
    waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
    steps_.push_back(launches_.size());
    std::vector<size_t> tails;
    for (const KernelLaunch& launch : kernel.launches) {
      ProgramLaunch p;
      p.launch = launch;
      for (const KernelLaunch::Address& a : launch.addresses) {
        const auto report = static_cast<int64_t>(reporting->size() * sizeof(BoundsReports));
        const auto [slot, from] = a.operand == kReport      ? std::pair(kReport, report)
                                  : a.operand == kWorkspace ? std::pair(step.workspace.slot, step.workspace.offset_bytes)
                                                            : origins[static_cast<size_t>(a.operand)];
        p.places.emplace_back(slot, from + a.offset);
      }
      const bool first = &launch == kernel.launches.data();
      p.after = first || !launch.after_previous ? waits_for : tails;
      if (launch.after_previous) tails.clear();
      tails.push_back(launches_.size());
      launches_.push_back(std::move(p));
    }
    if (kernel.launches.empty()) tails = waits_for;
    if (kernel.bounds_error) reporting->push_back({step.name, kernel.bounds_error});
    tables_.insert(tables_.end(), kernel.tables.begin(), kernel.tables.end());
    touched.push_back(std::move(touches));
    last.push_back(std::move(tails));
    before.push_back(std::move(over));
  }
  steps_.push_back(launches_.size());
  reporting_ = std::move(reporting);
  if (context_->full_edges().empty()) let_begin_early();
}

// Chains, which are what streams with this attribute are captured as: a launch that follows one other, and is the first to do
// so. Edges of forks and joins stay full ones. What was left out as implied is still implied: a kernel is over after those that
// it waits for are, since each of its threads waits.
void CudaProgram::let_begin_early() {
  std::vector<bool> is_followed(launches_.size());
  for (ProgramLaunch& p : launches_) {
    p.early = p.after.size() == 1 && !is_followed[p.after[0]];
    if (p.early) is_followed[p.after[0]] = true;
  }
}

void CudaProgram::let_none_begin_early() {
  for (ProgramLaunch& p : launches_) p.early = false;
}

Status CudaProgram::open_reports() {
  if (reporting_->empty() || no_reports_) return ok();
  const std::vector<BoundsReports> none(reporting_->size());
  const auto bytes = static_cast<int64_t>(none.size() * sizeof(BoundsReports));
  SPARKLE_TRY(reports, shop_.upload(none.data(), bytes));
  SPARKLE_TRY(no_reports, shop_.upload(none.data(), bytes));
  reports_ = std::move(reports), no_reports_ = std::move(no_reports);
  return ok();
}

Result<std::shared_ptr<DeviceBuffer>> CudaProgram::fetch_reports(CuStream stream) {
  const auto bytes = static_cast<int64_t>(reporting_->size() * sizeof(BoundsReports));
  SPARKLE_TRY(block, shop_.memory->allocate(bytes, true));
  const Driver& d = context_->driver();
  const Current current(*context_);
  SPARKLE_CU(d, d.copy(block->address(), reports_->address(), static_cast<size_t>(bytes), stream), "cuMemcpyAsync");
  SPARKLE_CU(d, d.copy(reports_->address(), no_reports_->address(), static_cast<size_t>(bytes), stream), "cuMemcpyAsync");
  return block;
}

Result<std::vector<std::byte>> CudaProgram::record_of(const ProgramLaunch& p, std::span<const CuAddress> slots) const {
  RecordMemory memory;
  std::memcpy(memory.bytes, p.launch.record.data(), p.launch.record.size());
  for (size_t i = 0; i < p.places.size(); ++i) {
    const int slot = p.places[i].first;
    const CuAddress from = slot == kReport ? reports_->address() : slots[static_cast<size_t>(slot)];
    const CuAddress address = from + static_cast<CuAddress>(p.places[i].second);
    std::memcpy(memory.bytes + p.launch.addresses[i].at, &address, sizeof address);
  }
  if (p.launch.finish) SPARKLE_CHECK(p.launch.finish(memory.bytes));
  return std::vector<std::byte>(memory.bytes, memory.bytes + p.launch.record.size());
}

Result<std::shared_ptr<Graph>> CudaProgram::graph(std::span<Buffer* const> slots, bool& fresh) {
  SPARKLE_CHECK(open_reports());
  const std::vector<CuAddress> addresses = addresses_of(slots);
  fresh = false;
  if (const auto at = graphs_.find(addresses); at != graphs_.end()) {
    at->second.second = ++uses_;
    return at->second.first;
  }
  if (!context_->full_edges().empty()) let_none_begin_early();  // it may have been refused since
  std::string refused;
  auto made = make_graph(addresses, refused);
  if (!made.ok() && !refused.empty()) {
    let_none_begin_early();
    std::string ignored;
    made = make_graph(addresses, ignored);
    if (made.ok() && context_->use_full_edges(refused))
      log(LogLevel::warning, "Graphs on '" + context_->device().name + "' have full edges, where no kernel begins before " +
                                 "those that it follows are over, since " + refused + ".");
  }
  if (!made.ok()) return made.take_error();
  std::shared_ptr<Graph> graph = std::move(*made);
  fresh = true;
  if (graphs_.size() >= kMostGraphs)
    graphs_.erase(std::min_element(graphs_.begin(), graphs_.end(),
                                   [](const auto& a, const auto& b) { return a.second.second < b.second.second; }));
  graphs_[addresses] = {graph, ++uses_};
  return graph;
}

Result<std::shared_ptr<Graph>> CudaProgram::make_graph(std::span<const CuAddress> addresses, std::string& refused) const {
  const Driver& d = context_->driver();
  const Current current(*context_);
  const auto of_edges = [&](CuResult r, const char* what) {
    if (!is_lost(r) && r != CuResult::out_of_memory)
      refused = "the driver takes no programmatic ones (" + d.words_of(r, what) + ")";
    return d.error_of(r, what);
  };
  struct Owned {
    const Driver& driver;
    CuGraph graph = nullptr;
    ~Owned() {
      if (graph) driver.graph_destroy(graph);
    }
  } owned{d};
  SPARKLE_CU(d, d.graph_create(&owned.graph, 0), "cuGraphCreate");
  std::vector<CuGraphNode> nodes;
  for (const ProgramLaunch& p : launches_) {
    SPARKLE_TRY(record, record_of(p, addresses));
    std::vector<CuGraphNode> after;
    for (const size_t i : p.after) after.push_back(nodes[i]);
    void* params[] = {record.data()};
    CuKernelNodeParams how;
    how.function = p.launch.function;
    for (size_t i = 0; i < 3; ++i) how.grid[i] = p.launch.grid[i];
    how.block[0] = p.launch.threads;
    how.shared_bytes = p.launch.shared_bytes;
    how.params = params;
    CuGraphNode node = nullptr;
    SPARKLE_CU(d, d.graph_kernel(&node, owned.graph, after.data(), p.early ? 0 : after.size(), &how), "cuGraphAddKernelNode");
    if (p.early) {
      CuGraphEdge edge;
      edge.from_port = kPortProgrammatic, edge.type = kEdgeProgrammatic;
      if (const CuResult r = d.graph_dependencies(owned.graph, after.data(), &node, &edge, 1); r != CuResult::success)
        return of_edges(r, "cuGraphAddDependencies");
    }
    if (p.launch.cluster != std::array<unsigned, 3>{1, 1, 1}) {
      CuLaunchAttributeValue value{};
      value.cluster = {p.launch.cluster[0], p.launch.cluster[1], p.launch.cluster[2]};
      SPARKLE_CU(d, d.graph_attribute(node, CuLaunchAttributeId::cluster_dimension, &value), "cuGraphKernelNodeSetAttribute");
    }
    nodes.push_back(node);
  }
  CuGraphExec exec = nullptr;
  const bool early = std::any_of(launches_.begin(), launches_.end(), [](const auto& p) { return p.early; });
  if (const CuResult r = d.graph_instantiate(&exec, owned.graph, 0); r != CuResult::success)
    return early ? of_edges(r, "cuGraphInstantiate") : d.error_of(r, "cuGraphInstantiate");
  return std::make_shared<Graph>(context_, exec);
}

// Until the host has put in all launches, about.
Status CudaProgram::stall(CuStream stream) {
  const auto function = shop_.functions->get("sparkle_stall", 0);
  if (!function.ok()) return function.error().reason == Reason::backend_lacks_variant ? ok() : Status(function.error());
  StallRecord record{std::min(kMostNanoseconds, launches_.size() * kLaunchNanoseconds + steps_.size() * kEventNanoseconds)};
  void* params[] = {&record};
  CuLaunchConfig config;
  config.block[0] = 1;
  config.stream = stream;
  const Driver& d = context_->driver();
  SPARKLE_CU(d, d.launch(&config, *function, params, nullptr), "cuLaunchKernelEx");
  return ok();
}

Result<std::vector<std::shared_ptr<Event>>> CudaProgram::launch_timed(std::span<Buffer* const> slots, CuStream stream) {
  SPARKLE_CHECK(open_reports());
  const std::vector<CuAddress> addresses = addresses_of(slots);
  const Driver& d = context_->driver();
  const Current current(*context_);
  // What can be made before the first launch is: a device that waits for the host counts that as a step's time.
  std::vector<std::vector<std::byte>> records;
  for (const ProgramLaunch& p : launches_) {
    SPARKLE_TRY(record, record_of(p, addresses));
    records.push_back(std::move(record));
  }
  std::vector<std::shared_ptr<Event>> events;
  for (size_t s = 0; s < steps_.size(); ++s) {
    SPARKLE_TRY(event, Event::make(context_, true));
    events.push_back(std::move(event));
  }
  SPARKLE_CHECK(stall(stream));
  for (size_t s = 0; s + 1 < steps_.size(); ++s) {
    SPARKLE_CHECK(events[s]->put(stream));
    for (size_t i = steps_[s]; i < steps_[s + 1]; ++i) {
      const KernelLaunch& launch = launches_[i].launch;
      void* params[] = {records[i].data()};
      CuLaunchAttribute cluster;
      CuLaunchConfig config;
      for (size_t k = 0; k < 3; ++k) config.grid[k] = launch.grid[k];
      config.block[0] = launch.threads;
      config.shared_bytes = launch.shared_bytes;
      config.stream = stream;
      if (launch.cluster != std::array<unsigned, 3>{1, 1, 1}) {
        cluster.id = CuLaunchAttributeId::cluster_dimension;
        cluster.value.cluster = {launch.cluster[0], launch.cluster[1], launch.cluster[2]};
        config.attributes = &cluster, config.attribute_count = 1;
      }
      SPARKLE_CU(d, d.launch(&config, launch.function, params, nullptr), "cuLaunchKernelEx");
    }
  }
  SPARKLE_CHECK(events.back()->put(stream));
  return events;
}

}  // namespace sparkle::cuda
