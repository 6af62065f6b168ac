// ConstantStore: each constant of a model once per packed form on the backend, shared by every plan that names it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "backends/backend.h"
#include "plan/plan.h"

namespace sparkle {

// A constant of a plan as operand `input` of a kernel.
struct ConstantUse {
  size_t constant = 0;
  const Kernel* kernel = nullptr;
  int input = 0;
  RunsOn side = RunsOn::device;  // of the kernel
};

// Memory of constants as they came from the model or from planning, by address: how many bytes lie there.
using Originals = std::map<const std::byte*, int64_t>;
void add_original(Originals& originals, const HostTensor& value);

// Bytes of constants, originals and copies together.
struct ConstantMemory {
  int64_t resident = 0;  // once all is done
  int64_t peak = 0;      // on the way
};

class ConstantStore {
 public:
  explicit ConstantStore(Backend& backend) : backend_(backend) {}
  // The constant as operand `input` of a kernel: packed if the kernel wants it so, else its plain bytes.
  Result<std::shared_ptr<Buffer>> get(const PlanConstant& constant, const Kernel& kernel, int input);
  // Bytes that are packed already, which stay where they are as long as the buffer: used there, or uploaded.
  Result<std::shared_ptr<Buffer>> place(std::span<const std::byte> bytes);
  // Bytes of its own: packed and uploaded copies, not what is used where it lies.
  int64_t bytes() const;
  // Adds the originals that the store keeps.
  void add_originals(Originals& originals) const;
  // What getting all of `uses` in order takes, beside `originals`. With `release` each original that is not used where it lies
  // goes after its last use.
  Result<ConstantMemory> foresee(std::span<const PlanConstant> constants, std::span<const ConstantUse> uses,
                                 const Originals& originals, bool release) const;
  // Gives up a constant's original unless it is used where it lies. Only when no other constant will ever be asked for: a new
  // one could get its address.
  void release(const PlanConstant& constant);
  // Gives up what no plan uses any more: packed forms, and originals that only the store kept. Their bytes.
  int64_t collect();

 private:
  // One copy per constant and packed form.
  using Key = std::pair<const std::byte*, std::string>;
  static Key key_of(const PlanConstant& constant, const Kernel& kernel, int input);
  Result<std::shared_ptr<Buffer>> upload(const std::byte* bytes, int64_t size);
  struct Entry {
    std::shared_ptr<Buffer> buffer;
    std::shared_ptr<std::byte[]> source;  // keeps the key's address taken
    int64_t source_bytes = 0;
    bool imported = false;
  };
  Backend& backend_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace sparkle
