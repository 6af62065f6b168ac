// PreparedLayer: one Problem as benches time it - random operands, kernels compiled and recorded as one program - and
// LayerCheck, which compares any engine's output of the same operands with the reference.
#pragma once

#include "backends/backend.h"
#include "plan/choose.h"

namespace sparkle {

struct LayerBenchOptions {
  int rounds = 7;
  double seconds_per_round = 0.03;
  bool verify = true;
  PlanOptions plan;
  uint64_t seed = 1;
  bool constant_weights = true;  // false: the second operand changes, so packing it is part of the work
};

// With constant weights that fit no type of 16 bits exactly, as random ones do; all operands f32.
AnchorCall call_of(const Problem& problem);
// As the device takes it: operands of an f16 problem are f16 where it stores that.
AnchorCall call_of(const Problem& problem, const Device& device);
// Errors: type_not_served where the device would compute the layer in another type than it names.
Status check_type(const Problem& problem, const Device& device);

class PreparedLayer {
 public:
  // Operands depend on the call and the seed alone. Errors: those of compiling; over_memory_budget with the bytes needed.
  static Result<std::unique_ptr<PreparedLayer>> make(Backend& backend, const AnchorCall& call, const Choice& choice,
                                                     const LayerBenchOptions& options);
  // One run; its seconds by the device's own clock where it keeps one, else from submission to completion by the host's.
  Result<double> run();
  // The same work on another first operand and output, which stay the caller's; not waited for.
  Result<Token> submit(Buffer& x, Buffer& y, Token after);
  // The output of the last run as f32, in the layout of the call's output.
  Result<const float*> output();
  // Host values in the memory order of their layouts.
  const std::vector<HostTensor>& inputs() const { return inputs_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  PreparedLayer(Backend& backend, const AnchorCall& call) : backend_(backend), call_(call) {}
  Status prepare(const Choice& choice, const LayerBenchOptions& options);

  Backend& backend_;
  AnchorCall call_;
  std::vector<HostTensor> inputs_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::unique_ptr<Program> program_;
  std::vector<Buffer*> slots_;
  std::shared_ptr<Buffer> staging_;
  std::vector<float> widened_;  // an output of another type
  int input_slot_ = 0, output_slot_ = 0;
  int64_t workspace_bytes_ = 0;
};

// A slice of output rows, as many as some ten million products allow, computed by the gemm family's reference.
class LayerCheck {
 public:
  LayerCheck(const AnchorCall& call, const std::vector<HostTensor>& inputs, uint64_t seed);
  // False for transposed convolutions: the unit tests check them, their stages are ordinary convolutions.
  bool possible() const { return possible_; }
  // Largest difference relative to the largest output of the slice; NaN where `y` has one. `y` is laid out like the call's
  // output, in f32.
  double error_of(const float* y) const;
  // What rounding to the output's type may add to that.
  double rounding() const { return slice_.dtype == DType::f16 ? 0x1p-10 : 0; }

 private:
  TensorDesc slice_;
  std::vector<float> expected_;
  bool possible_ = false;
};

}  // namespace sparkle
