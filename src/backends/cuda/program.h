// Programs: launches with the order that their bytes demand, made a CUDA graph once for each set of slots.
#pragma once

#include <map>
#include <mutex>

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// A launch with what its addresses are made of, and what must be over before it.
struct ProgramLaunch {
  KernelLaunch launch;
  std::vector<std::pair<int, int64_t>> places;  // slot and bytes, for each of launch.addresses
  std::vector<size_t> after;                    // launches of the program
  bool early = false;                           // begins while the one before it ends, and waits for it itself
};

// A graph for one set of slots.
class Graph {
 public:
  Graph(std::shared_ptr<Context> context, CuGraphExec exec) : context_(std::move(context)), exec_(exec) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  CuGraphExec exec() const { return exec_; }

 private:
  std::shared_ptr<Context> context_;
  CuGraphExec exec_;
};

class CudaProgram final : public Program {
 public:
  CudaProgram(const Workshop& shop, std::span<const Launch> launches);
  // The graph for these slots, made where it is new (`fresh`). Who launches it keeps it until it is done.
  Result<std::shared_ptr<Graph>> graph(std::span<Buffer* const> slots, bool& fresh);
  // The launches one after the other, with an event before each step and one behind the last.
  Result<std::vector<std::shared_ptr<Event>>> launch_timed(std::span<Buffer* const> slots, CuStream stream);
  bool empty() const { return launches_.empty(); }
  // The launches that look at their data, in the order of a submission's BoundsReports. Not empty: submissions are to be asked.
  const std::shared_ptr<const std::vector<ReportingLaunch>>& reporting() const { return reporting_; }
  // What they have to say of the submission that went into the stream last, in memory of the host's once the stream is there;
  // the next one begins without reports.
  Result<std::shared_ptr<DeviceBuffer>> fetch_reports(CuStream stream);
  std::mutex mutex;  // held while graph() is called

 private:
  void let_begin_early();
  void let_none_begin_early();
  // `refused`: what the driver said to programmatic edges, where that may be why there is no graph.
  Result<std::shared_ptr<Graph>> make_graph(std::span<const CuAddress> addresses, std::string& refused) const;
  Status open_reports();
  Status stall(CuStream stream);
  // The launch's record with addresses in it.
  Result<std::vector<std::byte>> record_of(const ProgramLaunch& launch, std::span<const CuAddress> slots) const;

  Workshop shop_;
  std::shared_ptr<Context> context_;
  std::vector<ProgramLaunch> launches_;
  std::vector<size_t> steps_;  // where the launches of each step begin
  std::vector<std::shared_ptr<DeviceBuffer>> tables_;
  std::shared_ptr<const std::vector<ReportingLaunch>> reporting_;
  std::shared_ptr<DeviceBuffer> reports_, no_reports_;  // on the device; what they begin with
  using Slots = std::vector<CuAddress>;
  std::map<Slots, std::pair<std::shared_ptr<Graph>, uint64_t>> graphs_;  // with when they were last used
  uint64_t uses_ = 0;
};

}  // namespace sparkle::cuda
