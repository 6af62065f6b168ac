// Math units of this CPU, from cpuid and xgetbv on x86 and from the kernel's hardware capabilities on Arm. Those with tile
// registers (AMX) are units only where the system grants them to this process, which it is asked for here. Units without a
// kernel are described too: the planner then says what the machine could do and does not yet. A build for some units alone
// (SPARKLE_UNITS of CMake) does not name the vector units that it has no kernels for.
#include "device/cpuid.h"
#include "device/probe_cpu.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#elif defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sparkle {

namespace {

[[maybe_unused]] MathUnit vector_unit(std::string name, int lanes, int registers, DType type = DType::f32) {
  MathUnit unit;
  unit.name = std::move(name);
  unit.n = lanes;
  unit.input = unit.accumulator = type;
  unit.registers = registers;
  return unit;
}

[[maybe_unused]] MathUnit other_unit(std::string name, UnitKind kind, int m, int n, int k, DType input, DType accumulator,
                                     int registers) {
  MathUnit unit;
  unit.name = std::move(name);
  unit.kind = kind;
  unit.m = m;
  unit.n = n;
  unit.k = k;
  unit.input = input;
  unit.accumulator = accumulator;
  unit.registers = registers;
  return unit;
}

}  // namespace

#if defined(__x86_64__)

namespace {

// Register sets that the operating system saves on a task switch (XCR0).
uint64_t saved_registers() {
  constexpr uint32_t kOsxsave = 1u << 27;
  if (!(cpuid(1).ecx & kOsxsave)) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

constexpr bool bit(uint32_t word, int at) { return (word >> at) & 1; }

// Linux lets a process use tile registers once it has asked: their 8 KB would make each of its signal frames larger. Granted
// for good and for all threads; refused where the kernel is too old or a signal stack too small.
bool tiles_permitted() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM and the bit of XCR0
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

std::vector<MathUnit> cpu_units() {
  const CpuidLeaf one = cpuid(1), seven = cpuid(7), seven_one = cpuid(7, 1);
  const uint64_t saved = saved_registers();
  const bool ymm = (saved & 0x6) == 0x6, zmm = (saved & 0xe6) == 0xe6, tiles = (saved & 0x60000) == 0x60000;
  // The sets below are what the kernels' compilation targets assume, not AVX2 and AVX-512F alone.
  const bool avx2 = ymm && bit(one.ecx, 28) && bit(one.ecx, 12) && bit(one.ecx, 29) && bit(one.ecx, 1) && bit(one.ecx, 25) &&
                    bit(seven.ebx, 5) && bit(seven.ebx, 3) && bit(seven.ebx, 8);  // AVX FMA F16C PCLMUL AES AVX2 BMI1 BMI2
#if defined(SPARKLE_WITHOUT_AVX512)
  const bool avx512 = false;
#else
  const bool avx512 = avx2 && zmm && bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 28) && bit(seven.ebx, 30) &&
                      bit(seven.ebx, 31);  // F DQ CD BW VL
#endif

  std::vector<MathUnit> units;
  using enum UnitKind;
  if (avx512) units.push_back(vector_unit("avx512", 16, 32));
#if !defined(SPARKLE_WITHOUT_AVX2)
  if (avx2) units.push_back(vector_unit("avx2", 8, 16));
#endif
  if (avx512 && bit(seven.edx, 23)) units.push_back(vector_unit("avx512-fp16", 32, 32, DType::f16));
  if (avx512 && bit(seven.ecx, 11))
    units.push_back(other_unit("avx512-vnni", dot_product, 1, 16, 4, DType::u8, DType::i32, 32));
  if (avx512 && bit(seven_one.eax, 5))
    units.push_back(other_unit("avx512-bf16", dot_product, 1, 16, 2, DType::bf16, DType::f32, 32));
  if (avx2 && bit(seven_one.eax, 4)) units.push_back(other_unit("avx-vnni", dot_product, 1, 8, 4, DType::u8, DType::i32, 16));
  // vpmaddwd, pairs of 16-bit products: what bytes are multiplied by where nothing multiplies bytes exactly.
  if (avx2) units.push_back(other_unit("avx2-int16", dot_product, 1, 8, 2, DType::i16, DType::i32, 16));
  // What their kernels do beside the products, they do by AVX-512: no CPU has tiles without it.
  if (tiles && bit(seven.edx, 24) && avx512 && bit(seven.ecx, 11) && tiles_permitted()) {
    if (bit(seven.edx, 25)) units.push_back(other_unit("amx-int8", matrix, 16, 16, 64, DType::i8, DType::i32, 8));
    if (bit(seven.edx, 22)) units.push_back(other_unit("amx-bf16", matrix, 16, 16, 32, DType::bf16, DType::f32, 8));
    if (bit(seven_one.eax, 21)) units.push_back(other_unit("amx-fp16", matrix, 16, 16, 32, DType::f16, DType::f32, 8));
  }
  return units;
}

#elif defined(__aarch64__) && defined(__linux__)

std::vector<MathUnit> cpu_units() {
  // Bit numbers of the kernel's arch/arm64/include/uapi/asm/hwcap.h; C libraries know only those of their own age.
  const unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
  const auto has = [](unsigned long word, int at) { return ((word >> at) & 1) != 0; };
  constexpr int kSveGetVl = 51, kSmeGetVl = 64;  // prctl operations; the low 16 bits of the answer are bytes

  std::vector<MathUnit> units;
  using enum UnitKind;
  if (has(caps, 22)) {
    const int answer = prctl(kSveGetVl, 0, 0, 0, 0);
    if (answer > 0) units.push_back(vector_unit("sve", (answer & 0xffff) / 4, 32));
  }
  if (has(caps, 1)) units.push_back(vector_unit("neon", 4, 32));
  if (has(caps, 10)) units.push_back(vector_unit("neon-fp16", 8, 32, DType::f16));
  if (has(caps, 20)) units.push_back(other_unit("neon-dot", dot_product, 1, 4, 4, DType::i8, DType::i32, 32));
  if (has(caps2, 13)) units.push_back(other_unit("neon-i8mm", matrix, 2, 2, 8, DType::i8, DType::i32, 32));
  if (has(caps2, 14)) units.push_back(other_unit("neon-bf16mm", matrix, 2, 2, 4, DType::bf16, DType::f32, 32));
  if (has(caps2, 23)) {
    const int answer = prctl(kSmeGetVl, 0, 0, 0, 0);
    const int lanes = answer > 0 ? (answer & 0xffff) / 4 : 0;
    if (lanes > 0) units.push_back(other_unit("sme", matrix, lanes, lanes, 1, DType::f32, DType::f32, 4));
  }
  return units;
}

#else

std::vector<MathUnit> cpu_units() { return {}; }

#endif

}  // namespace sparkle
