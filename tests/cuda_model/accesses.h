// Which bytes of device memory a launch reads and writes, noted where that is asked for: launches that nothing orders may not
// touch the same ones when either writes, whatever order the model runs them in.
#pragma once

#include <bitset>
#include <cstdint>
#include <unordered_map>

namespace cuda_model {

class Accesses {
 public:
  void note(const void* at, uint32_t bytes, bool writes);
  // The first byte found that both touch and either writes; 0: none.
  uintptr_t conflict(const Accesses& other) const;

 private:
  static constexpr uintptr_t kPage = 4096;
  struct Page {
    std::bitset<kPage> read, written;
  };
  std::unordered_map<uintptr_t, Page> pages_;  // by their number
  uintptr_t last_ = 0;
  Page* page_ = nullptr;  // the last one's
};

// Where launches note what they touch from here on; nullptr: nowhere.
void note_accesses(Accesses* to);
// What an instruction touches, by its name.
void noted(const void* at, uint32_t bytes, const char* what);

}  // namespace cuda_model
