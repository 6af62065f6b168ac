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
};

class ConstantStore {
 public:
  explicit ConstantStore(Backend& backend) : backend_(backend) {}
  // The constant as operand `input` of a kernel: packed if the kernel wants it so, else its plain bytes.
  Result<std::shared_ptr<Buffer>> get(const PlanConstant& constant, const Kernel& kernel, int input);
  int64_t bytes() const;
  // The same once these are in it as well.
  int64_t bytes_with(std::span<const PlanConstant> constants, std::span<const ConstantUse> uses) const;

 private:
  // One copy per constant and packed form.
  using Key = std::pair<const std::byte*, std::string>;
  static Key key_of(const PlanConstant& constant, const Kernel& kernel, int input);
  Result<std::shared_ptr<Buffer>> upload(const std::byte* bytes, int64_t size);
  struct Entry {
    std::shared_ptr<Buffer> buffer;
    std::shared_ptr<std::byte[]> source;  // keeps the key's address taken
    bool imported = false;
  };
  Backend& backend_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace sparkle
