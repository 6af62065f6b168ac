// Products of four warps (PTX ISA, "Asynchronous warpgroup level matrix instructions"): operands by descriptors of shared
// memory, read when the product is waited for; the sums' registers are poison from its issue until then.
#include <cstring>

#include "cuda_model/machine.h"
#include "cuda_model/products.h"

namespace cuda_model {
namespace {

constexpr uint32_t kGroupThreads = 128;

Warpgroup& own_group() {
  const Warp& warp = *self().warp;
  return *warp.block->warpgroups[self().id / kGroupThreads];
}
void meet_group(const char* what, void* operand, void (*act)(void* const* operands)) {
  Thread& thread = self();
  if (thread.warp->block->threads.size() % kGroupThreads) fault("a warpgroup of less than four warps");
  meet(own_group().meeting, kGroupThreads, thread.id % kGroupThreads, what, operand, act);
}

// A matrix whose rows' k lies side by side: byte `k` (0 to 31) of row `row`.
struct Described {
  SharedAddress start;
  uint32_t leading, stride, swizzle;
  explicit Described(uint64_t bits) {
    start = cluster_rank() << kRankShift | static_cast<uint32_t>(bits & 0x3fff) << 4;
    leading = static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4;
    stride = static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4;
    const uint32_t mode = static_cast<uint32_t>(bits >> 62);
    swizzle = mode == 0 ? 0 : 256u >> mode;
    if (bits >> 49 & 7) fault("a matrix descriptor with a base offset");
  }
  SharedAddress at(uint32_t row, uint32_t k) const {
    if (swizzle == 0) return start + row / 8 * stride + row % 8 * 16 + k / 16 * leading + k % 16;
    return swizzled(start + row / 8 * stride + row % 8 * swizzle + k, swizzle);
  }
};

void fill(double (&to)[32], const Described& matrix, uint32_t row, Product type) {
  unsigned char bytes[32];
  for (uint32_t k = 0; k < 32; k += 16) std::memcpy(bytes + k, shared_bytes(matrix.at(row, k), 16, 16, "wgmma"), 16);
  const int element = product_bytes(type);
  for (int k = 0; k < 32 / element; ++k) to[k] = element_of(type, bytes + k * element);
}
void read_by(const Described& matrix, uint32_t first, uint32_t rows, Warp& warp) {
  for (uint32_t row = first; row < first + rows; ++row) {
    for (uint32_t k = 0; k < 32; k += 16) {
      shared_bytes(matrix.at(row, k), 16, 16, "wgmma");
      touch(matrix.at(row, k), 16, warp, Access::async_read, "wgmma");
    }
  }
}

void multiply(const Wgmma& w, Warpgroup& group) {
  const Described a(w.a), b(w.b);
  Block& block = *self().warp->block;
  const uint32_t first_warp = self().id / kGroupThreads * 4;
  for (uint32_t warp = 0; warp < 4; ++warp) {
    read_by(a, warp * 16, 16, *block.warps[first_warp + warp]);
    read_by(b, 0, static_cast<uint32_t>(w.n), *block.warps[first_warp + warp]);
  }
  static double rows[64][32], columns[256][32];
  for (uint32_t row = 0; row < 64; ++row) fill(rows[row], a, row, w.a_type);
  for (int column = 0; column < w.n; ++column) fill(columns[column], b, static_cast<uint32_t>(column), w.b_type);
  const int depth = 32 / product_bytes(w.a_type);
  for (int lane = 0; lane < 128; ++lane) {
    std::vector<uint32_t>& sums = group.sums[w.sums[lane]];
    for (int i = 0; i < w.n / 2; ++i) {
      if (!w.keep) sums[static_cast<size_t>(i)] = 0;
      const int row = lane / 32 * 16 + lane % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double sum = 0;
      for (int k = 0; k < depth; ++k) sum += rows[row][k] * columns[column][k];
      add_to(w.a_type, sums.data(), i, sum);
    }
  }
}

struct Issue {
  Wgmma wgmma;
  void* sums;
};

}  // namespace

void wgmma_fence() {
  meet_group("wgmma.fence", nullptr, [](void* const*) { own_group().fenced = true; });
}

void wgmma(Product a_type, Product b_type, int n, void* sums, uint64_t a, uint64_t b, bool keep) {
  Issue mine{{a_type, b_type, n, a, b, keep, {}}, sums};
  meet_group("wgmma", &mine, [](void* const* all) {
    Warpgroup& group = own_group();
    Wgmma w = static_cast<const Issue*>(all[0])->wgmma;
    if (!group.fenced) fault("wgmma with no wgmma.fence since its registers or its operands were touched");
    for (int lane = 0; lane < 128; ++lane) {
      const auto& issue = *static_cast<const Issue*>(all[lane]);
      if (issue.wgmma.a != w.a || issue.wgmma.b != w.b || issue.wgmma.keep != w.keep)
        fault("wgmma whose threads name different operands");
      w.sums[lane] = issue.sums;
      auto& kept = group.sums[issue.sums];
      const size_t bytes = static_cast<size_t>(w.n / 2) * 4;
      if (kept.empty()) {
        kept.resize(static_cast<size_t>(w.n / 2));
        std::memcpy(kept.data(), issue.sums, bytes);
      }
      std::memset(issue.sums, kPoison, bytes);
    }
    group.groups.back().push_back(w);
  });
}

void wgmma_commit() {
  meet_group("wgmma.commit_group", nullptr, [](void* const*) { own_group().groups.emplace_back(); });
}

void wgmma_wait(uint32_t left) {
  meet_group("wgmma.wait_group", &left, [](void* const* all) {
    Warpgroup& group = own_group();
    const uint32_t left = *static_cast<const uint32_t*>(all[0]);
    while (group.groups.size() > left + 1) {
      for (const Wgmma& w : group.groups.front()) multiply(w, group);
      group.groups.pop_front();
    }
    // Registers that no product under way writes are their threads' again.
    for (auto sums = group.sums.begin(); sums != group.sums.end();) {
      bool busy = false;
      for (const auto& ones : group.groups) {
        for (const Wgmma& w : ones) {
          for (const void* p : w.sums) busy = busy || p == sums->first;
        }
      }
      if (busy) {
        ++sums;
        continue;
      }
      std::memcpy(sums->first, sums->second.data(), sums->second.size() * 4);
      sums = group.sums.erase(sums);
    }
    if (group.sums.empty()) group.fenced = false;
  });
}

}  // namespace cuda_model
