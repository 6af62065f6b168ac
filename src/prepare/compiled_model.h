// CompiledModel: a compiled file understood. Nothing in it is believed: the plan is made again from the graph in the file, for
// the machine described there, and must be the one that the file holds; each packed constant must be what the kernel of its
// step asks for. So a file can only give other weights, never another program.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "plan/plan.h"
#include "plan/choose/tuning_store.h"
#include "prepare/compiled_file.h"
#include "prepare/constant_store.h"

namespace sparkle {

// What a model was compiled with, and a session that opens it may not contradict.
using CompileOptions = PlanSettings;

// A constant as operand of one kernel: where its bytes lie among the weights, and the key of their packing; "-": as they are.
struct PackedConstant {
  int64_t at = 0, bytes = 0;
  uint64_t hash = 0;
  std::string key;
};

class CompiledModel {
 public:
  // Maps the file; its weights are read where they are used. Errors: file_unreadable, bad_format.
  static Result<std::shared_ptr<const CompiledModel>> open(const std::string& path);
  // The same of bytes in memory, which are copied.
  static Result<std::shared_ptr<const CompiledModel>> from_memory(std::span<const std::byte> bytes, const std::string& name);

  const std::string& name() const { return name_; }
  const Graph& graph() const { return graph_; }  // bound; constants without their values
  const Device& device() const { return device_; }
  // The CPU that the plan was made with, for steps that the device has no kernel for; nullptr: it needed none.
  const Device* host() const { return host_ ? &*host_ : nullptr; }
  const CompileOptions& options() const { return options_; }
  const TuningStore* tuning() const { return tuning_.get(); }
  int64_t weight_bytes() const { return static_cast<int64_t>(weights_.size()); }

  // Errors: device_unusable with the first thing that differs. Rates do not count: the plan is that of the time of compiling.
  Status check_device(const Device& here) const;
  // The same of that CPU; ok where there is none.
  Status check_host(const Device& here) const;
  // The plan, its constants without values. Errors: bad_format where this library does not come to the plan in the file.
  Result<Plan> plan() const;
  // The constants of `uses` where they lie in the file. Errors: bad_format where they are not what the kernels ask for.
  Result<std::vector<std::span<const std::byte>>> constants(const Plan& plan, std::span<const ConstantUse> uses) const;
  // Every constant against its hash. Errors: bad_format.
  Status check_weights() const;

 private:
  struct Source;  // who keeps the bytes
  CompiledModel() = default;
  static Result<std::shared_ptr<const CompiledModel>> read(std::shared_ptr<const Source> source,
                                                           std::span<const std::byte> file, const std::string& name);
  Error damaged(const std::string& what) const;
  Status check_same(const Device& there, const Device& here) const;
  Status read_constants(std::string_view text);

  std::string name_;
  std::shared_ptr<const Source> source_;
  std::span<const std::byte> weights_;
  CompileOptions options_;
  Device device_;
  std::optional<Device> host_;
  std::unique_ptr<TuningStore> tuning_;
  Graph graph_;
  std::string_view plan_text_;
  std::vector<PackedConstant> constants_;
};

// What a file holds of a constant's values for planning: lines of the section `constants`, beside those of PackedConstants.
struct KeptValue {
  int tensor = 0;  // of the graph
  int64_t at = 0, bytes = 0;
  uint64_t hash = 0;
};

// The text forms; `constant` and `value` lines.
std::string to_line(const PackedConstant& constant);
std::string to_line(const KeptValue& value);

// The graph of a compiled file ready for planning: text read, values put in, shapes inferred. `value` gives the bytes of a
// constant, empty where the file keeps none; those are zeros that take no memory.
Result<Graph> planning_graph(std::string_view text, const std::vector<std::span<const std::byte>>& values);

// What a plan of that graph says of itself: its text, with the constants' hashes of `hashes`.
std::string plan_text_with(Plan& plan, std::span<const uint64_t> hashes);

}  // namespace sparkle
