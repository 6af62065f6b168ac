// The devices that the stand-in offers: SPARKLE_CUDA_MODEL_DEVICES lists some of "h200", "a100", "rtx-3090", "t4"; one "h200"
// else. Numbers are what NVIDIA's driver tells of these cards.
#include <cstdlib>
#include <sstream>

#include "model_driver.h"

namespace cuda_model::driver {
namespace {

using A = CuDeviceAttribute;

DeviceModel device(const std::string& name, size_t memory, int capability, int sms, int clock, int memory_clock, int bus,
                   int l2, int shared) {
  return {name,
          memory,
          {{A::max_threads_per_block, 1024},
           {A::warp_size, 32},
           {A::clock_rate, clock},
           {A::multiprocessor_count, sms},
           {A::integrated, 0},
           {A::compute_mode, 0},
           {A::pci_bus_id, 1},
           {A::memory_clock_rate, memory_clock},
           {A::global_memory_bus_width, bus},
           {A::l2_cache_size, l2},
           {A::max_threads_per_multiprocessor, capability == 86 ? 1536 : 2048},
           {A::async_engine_count, 3},
           {A::unified_addressing, 1},
           {A::compute_capability_major, capability / 10},
           {A::compute_capability_minor, capability % 10},
           {A::max_shared_memory_per_multiprocessor, shared},
           {A::max_registers_per_multiprocessor, 65536},
           {A::max_shared_memory_per_block_optin, shared - 1024},
           {A::reserved_shared_memory_per_block, 1024}}};
}

DeviceModel named(const std::string& name) {
  if (name == "a100")
    return device("NVIDIA A100-SXM4-80GB", size_t{80} << 30, 80, 108, 1410000, 1593000, 5120, 40 << 20, 164 << 10);
  if (name == "rtx-3090")
    return device("NVIDIA GeForce RTX 3090", size_t{24} << 30, 86, 82, 1695000, 9751000, 384, 6 << 20, 100 << 10);
  if (name == "t4") return device("Tesla T4", size_t{16} << 30, 75, 40, 1590000, 5001000, 256, 4 << 20, 64 << 10);
  return device("NVIDIA H200", size_t{141} * 1000 * 1000 * 1000, 90, 132, 1980000, 3125000, 6144, 50 << 20, 228 << 10);
}

}  // namespace

Driver::Driver() {
  const char* list = std::getenv("SPARKLE_CUDA_MODEL_DEVICES");
  std::istringstream names(list ? list : "h200");
  for (std::string name; std::getline(names, name, ',');) {
    devices.push_back(named(name));
    contexts.push_back(std::make_unique<Context>());
    contexts.back()->device = static_cast<int>(contexts.size()) - 1;
  }
}

Driver& Driver::get() {
  static auto* const driver = new Driver;  // outlives what other threads do at the end
  return *driver;
}

std::vector<Context*>& context_stack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

Context* Driver::current() { return context_stack().empty() ? nullptr : context_stack().back(); }

}  // namespace cuda_model::driver
