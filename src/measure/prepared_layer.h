// PreparedLayer: one Problem as benches time it - kernels compiled and recorded as one program, operands that can be exchanged,
// results that can be wiped - and SliceCheck, which says how large the errors on random operands are.
#pragma once

#include <algorithm>

#include "backends/burst_clock.h"
#include "prepare/layer_planner.h"
#include "measure/checks/layer_check.h"
#include "run/wipe.h"

namespace sparkle {

struct LayerBenchOptions {
  int rounds = 7;
  double seconds_per_round = 0.03;
  bool verify = true;
  PlanOptions plan;
  uint64_t seed = 0;             // all values and what is looked at come of it; 0: another one in each process
  bool planes = false;           // feature maps lie plane by plane (NCHW) instead of channels last
  bool constant_weights = true;  // false: the second operand changes, so packing it is part of the work
};

// With constant weights that fit no type of 16 bits exactly, as random ones do; all operands f32.
AnchorCall call_of(const Problem& problem);
// As the device takes it: operands of an f16 problem are f16 where it stores that; `planes`: maps lie plane by plane.
AnchorCall call_of(const Problem& problem, const Device& device, bool planes = false);
// Errors: type_not_served where the device would compute the layer in another type than it names.
Status check_type(const Problem& problem, const Device& device);

class PreparedLayer {
 public:
  // Its variants have been tried (prepare/layer_planner.h). It has operands once it took some. Errors: those of compiling;
  // over_memory_budget with the bytes needed.
  static Result<std::unique_ptr<PreparedLayer>> make(Backend& backend, const AnchorCall& call, const Choice& choice,
                                                     const LayerBenchOptions& options);
  // Operands from here on, in the memory order of their layouts: uploaded, constant ones packed.
  Status take(std::vector<HostTensor> inputs);
  // Every byte that a run may write is NaN from here on: output, temporaries, workspace. What is found there later was computed
  // later, whatever lay in the memory before.
  Status wipe();
  // One run; its seconds by the device's own clock where it keeps one, else from submission to completion by the host's.
  Result<double> run();
  // The seconds of a run as benches time it: run()'s; where the device has a BurstClock, the mean of repeats() that follow one
  // another in one program, so many that the host's part is nothing beside them. The first sample finds how many that is.
  Result<double> sample();
  bool takes_bursts() const { return dynamic_cast<const BurstClock*>(&backend_) != nullptr; }
  int repeats() const { return std::max(repeats_, 1); }
  // Runs that a sample does, also those that it does not time.
  int runs_of_sample() const;
  // The same work on another first operand and output, which stay the caller's; not waited for.
  Result<Token> submit(Buffer& x, Buffer& y, Token after);
  // The output of the last run as f32, in the layout of the call's output.
  Result<const float*> output();
  const std::vector<HostTensor>& inputs() const { return inputs_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  PreparedLayer(Backend& backend, const AnchorCall& call) : backend_(backend), call_(call) {}
  Status prepare(const Choice& choice, const LayerBenchOptions& options);
  Status find_repeats(BurstClock& clock);
  Result<double> burst(BurstClock& clock);
  // Runs before those that a sample times: what keeps the device busy while the host hands them over.
  int before() const;
  // An operand that never changes, in the form that a kernel takes it in.
  struct Constant {
    size_t operand = 0;
    const Kernel* kernel = nullptr;
    int input = 0;
    size_t slot = 0;
  };

  Backend& backend_;
  AnchorCall call_;
  std::vector<HostTensor> inputs_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  Kernels kernels_;
  std::vector<Launch> launches_;
  std::unique_ptr<Program> program_, repeated_;  // the latter repeats_ times, where that is more than one
  int repeats_ = 0;                              // of a sample; 0: not known yet
  double sampled_ = 0;                           // seconds of a run by the device's clock, of the last sample once there is one
  std::vector<Buffer*> slots_;
  std::vector<std::shared_ptr<Buffer>> written_, packed_;  // by a run; for constants_
  std::vector<Constant> constants_;
  std::vector<int> slot_of_;  // of operands that change, the output, temporaries
  std::shared_ptr<Buffer> staging_;
  std::vector<float> widened_;  // an output of another type
  int input_slot_ = 0, output_slot_ = 0;
  int64_t workspace_bytes_ = 0;
};

// Random operands of the call: normal numbers, weights scaled by the length of the sums. Errors: out_of_memory.
Result<std::vector<HostTensor>> random_operands(const AnchorCall& call, uint64_t seed);

// The layer on the check's operands: wiped, run once, its whole output looked at. Errors: those of running; internal where the
// output is wrong.
Status check_once(PreparedLayer& layer, const LayerCheck& check, const Choice& choice, const LayerBenchOptions& options,
                  Checked& checked);

// A slice of output rows, as many as some ten million products allow, computed by the gemm family's reference: the size of the
// errors on operands that take all the bits there are.
class SliceCheck {
 public:
  SliceCheck(const AnchorCall& call, const std::vector<HostTensor>& inputs, uint64_t seed);
  // False for transposed convolutions: their stages are ordinary convolutions.
  bool possible() const { return possible_; }
  // Largest difference relative to the largest output of the slice, at least to a sum's deviation; NaN where `y` has one. `y`
  // is laid out like the call's output, in f32.
  double error_of(const float* y) const;
  // What rounding to the output's type may add to that.
  double rounding() const { return rounding_of(slice_.dtype); }

 private:
  TensorDesc slice_;
  std::vector<float> expected_;
  bool possible_ = false;
};

}  // namespace sparkle
