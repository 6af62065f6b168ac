// Backend: what runs a Plan. It decides nothing: it compiles Stages under their Schedules, moves bytes and keeps time. Shaped
// for devices that work on their own: memory may be invisible to the host, work is submitted and completes later.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "base/system/executor.h"
#include "base/result.h"
#include "device/device.h"
#include "families/stage.h"

namespace sparkle {

// Memory of a backend. host() is nullptr where the host cannot see it.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual int64_t bytes() const = 0;
  virtual std::byte* host() { return nullptr; }
  // Where the bytes lie on their device: what overlaps is the same memory. 0: only the buffer itself tells.
  virtual uint64_t address() const { return reinterpret_cast<uintptr_t>(const_cast<Buffer*>(this)->host()); }
};

// A Stage and Schedule compiled. Constant operands may be packed once into a form of the kernel's own.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int64_t workspace_bytes() const { return 0; }
  // Operand `input` in packed form: its size (0: used as it is), a key (two kernels with equal keys share one packed copy of
  // the same constant), and the packing itself from row-major host memory into host memory.
  virtual int64_t packed_bytes(int) const { return 0; }
  virtual std::string packed_key(int) const { return {}; }
  virtual void pack(int, const std::byte*, std::byte*, Executor&) const {}
};

// Work that completes in the future; 0 is complete. Tokens of one backend are ordered.
struct Token {
  uint64_t value = 0;
};

// A slot is a buffer handed over at submit (arena, inputs, outputs, constants); a Binding is a place in it.
struct Binding {
  int slot = 0;
  int64_t offset_bytes = 0;  // of the buffer's start; the operand's Layout adds its own offset
};
struct Launch {
  const Kernel* kernel = nullptr;
  std::vector<Binding> inputs, outputs;
  Binding workspace;
  std::string name;  // of the step, for errors at run time
};

// A list of launches recorded once and submitted any number of times, by any number of threads at once with other slots.
class Program {
 public:
  virtual ~Program() = default;
};

struct CopyRegion {
  Buffer* from = nullptr;
  int64_t from_offset = 0;
  Buffer* to = nullptr;
  int64_t to_offset = 0;
  int64_t bytes = 0;
};

// Device time of each launch of a submission, in seconds since the submission began.
struct StepTime {
  double begin = 0, end = 0;
};

enum class MemoryKind : uint8_t {
  device,   // fastest for kernels; host() may be nullptr
  weights,  // the same, for what lives as long as its session
  staging,  // host() is never nullptr; for uploads and downloads
};

struct SubmitOptions {
  Token after;                                                     // starts once this is complete
  bool timestamps = false;                                         // keep StepTimes for timestamps()
  std::shared_ptr<std::vector<std::shared_ptr<void>>> keep_alive;  // released when the work is complete
};

// What was moved so far beside what kernels do: regions between buffers, and transfers between the host's memory and the
// device's.
struct Traffic {
  uint64_t copies = 0, host_transfers = 0;
};

// A stage with the schedule that a plan has for it.
struct ScheduledStage {
  const Stage* stage = nullptr;
  const Schedule* schedule = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const Device& device() const = 0;
  // Tries what a plan wants to use and has never run on this driver. Errors: failed_probe where a variant gave wrong results,
  // was too slow or crashed; device() denies it from then on, and another plan takes the next one.
  virtual Status try_out(std::span<const ScheduledStage>) { return ok(); }
  virtual Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) = 0;
  // Host memory as a buffer, not copied and not freed; nullptr (no error) where the device cannot work on host memory.
  virtual Result<std::shared_ptr<Buffer>> import(void* memory, int64_t bytes) = 0;
  // Bit i of `constants` tells that input i never changes and will be packed before the first run.
  virtual Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) = 0;
  virtual Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) = 0;
  virtual Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) = 0;
  virtual Result<Token> copy(std::span<const CopyRegion> regions, Token after) = 0;
  virtual bool done(Token token) = 0;
  // Errors: device_lost, or the error of the work itself (data that breaks a rule of its family). Zero time-out waits for ever.
  virtual Status wait(Token token, std::chrono::nanoseconds timeout = {}) = 0;
  // Times of a completed submission made with `timestamps`; kept until the next such submission.
  virtual Result<std::vector<StepTime>> timestamps(Token token) = 0;
  // Whether the device may go away with all that it holds (a GPU that is reset or taken out).
  virtual bool can_be_lost() const { return false; }
  // Whether it answers no more, or was given up.
  virtual bool lost() const { return false; }
  // Waits until all that was submitted is done. Where that takes longer the device is given up: it counts as lost, and neither
  // closing it nor anything else waits for it. Errors: device_lost.
  virtual Status settle(std::chrono::nanoseconds) { return ok(); }
  // Keeps what a submission touches until it is complete. Where submissions are complete at once there is nothing to keep.
  virtual void keep_until(Token, std::vector<std::shared_ptr<void>>) {}
  // Whether these times come from a clock of the device's own: handing work over and hearing of its end are no part of them.
  virtual bool keeps_time() const { return false; }
  // Arithmetic peak of a math unit at this moment, all cores together, in flops per second; 0 where it cannot be told. Takes
  // about 2 ms: benches probe just before and after what they judge, because clocks wander.
  virtual double probe_peak(std::string_view) { return 0; }
  virtual Executor& executor() = 0;  // host threads for packing
  Traffic traffic() const { return {copies_.load(), host_transfers_.load()}; }
  void count_host_transfer() { ++host_transfers_; }  // who moves bytes to or from a buffer's memory tells it

 protected:
  void count_copy() { ++copies_; }

 private:
  std::atomic<uint64_t> copies_{0}, host_transfers_{0};
};

}  // namespace sparkle
