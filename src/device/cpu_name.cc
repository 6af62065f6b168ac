// What the CPU is called and which microarchitecture it is. Families and models from the vendors' identification manuals
// (Intel SDM volume 4, AMD processor programming references, Arm MIDR part numbers).
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>

#include "device/cpuid.h"
#include "device/probe_cpu.h"

namespace sparkle {

namespace {

std::string trim(std::string text) {
  std::string out;
  for (char c : text) {
    if (c == '\0') break;
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// First value of each key in /proc/cpuinfo.
std::map<std::string, std::string> read_cpuinfo(const std::string& root) {
  std::map<std::string, std::string> values;
  std::ifstream file(root + "/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string key = line.substr(0, colon);
    while (!key.empty() && (key.back() == '\t' || key.back() == ' ')) key.pop_back();
    values.emplace(std::move(key), trim(line.substr(colon + 1)));
  }
  return values;
}

[[maybe_unused]] int number_of(const std::string& text) { return static_cast<int>(std::strtol(text.c_str(), nullptr, 0)); }

std::string_view intel_architecture(int model, int stepping) {
  switch (model) {
    case 0x3c:
    case 0x3f:
    case 0x45:
    case 0x46: return "haswell";
    case 0x3d:
    case 0x47:
    case 0x4f:
    case 0x56: return "broadwell";
    case 0x4e:
    case 0x5e:
    case 0x8e:
    case 0x9e:
    case 0xa5:
    case 0xa6: return "skylake";
    case 0x55: return stepping >= 10 ? "cooper-lake" : stepping >= 5 ? "cascade-lake" : "skylake-server";
    case 0x6a:
    case 0x6c: return "icelake-server";
    case 0x7d:
    case 0x7e: return "icelake";
    case 0x8c:
    case 0x8d: return "tiger-lake";
    case 0xa7: return "rocket-lake";
    case 0x8f: return "sapphire-rapids";
    case 0xcf: return "emerald-rapids";
    case 0xad:
    case 0xae: return "granite-rapids";
    case 0xaf: return "sierra-forest";
    case 0x97:
    case 0x9a: return "alder-lake";
    case 0xb7:
    case 0xba:
    case 0xbf: return "raptor-lake";
    case 0xaa:
    case 0xac: return "meteor-lake";
    case 0xc5:
    case 0xc6: return "arrow-lake";
    case 0xbd: return "lunar-lake";
    default: return {};
  }
}

// The first cores with AMX and with AVX512-FP16 were the same, but for client parts whose AVX-512 could be switched on.
bool may_have(std::string_view architecture, X86Features features) {
  const bool server = architecture == "sapphire-rapids" || architecture == "emerald-rapids" || architecture == "granite-rapids";
  return server || (!features.amx && (!features.avx512_fp16 || architecture == "alder-lake"));
}

std::string_view amd_architecture(int family, int model) {
  if (family == 0x17) return model >= 0x30 ? "zen2" : "zen";
  if (family == 0x19) {
    const bool zen4 = (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0x7f) || model >= 0xa0;
    return zen4 ? "zen4" : "zen3";
  }
  return family == 0x1a ? "zen5" : std::string_view{};
}

}  // namespace

std::string_view x86_architecture(std::string_view vendor, int family, int model, int stepping, X86Features features) {
  if (vendor == "GenuineIntel" && family == 6) {
    const std::string_view name = intel_architecture(model, stepping);
    return may_have(name, features) ? name : "sapphire-rapids or later";
  }
  if (vendor == "AuthenticAMD") return amd_architecture(family, model);
  return {};
}

std::string_view arm_architecture(int implementer, int part) {
  struct Row {
    int implementer, part;
    std::string_view name;
  };
  static constexpr Row rows[] = {
      {0x41, 0xd03, "cortex-a53"},  {0x41, 0xd05, "cortex-a55"},  {0x41, 0xd07, "cortex-a57"},  {0x41, 0xd08, "cortex-a72"},
      {0x41, 0xd0b, "cortex-a76"},  {0x41, 0xd0c, "neoverse-n1"}, {0x41, 0xd40, "neoverse-v1"}, {0x41, 0xd41, "cortex-a78"},
      {0x41, 0xd44, "cortex-x1"},   {0x41, 0xd47, "cortex-a710"}, {0x41, 0xd48, "cortex-x2"},   {0x41, 0xd49, "neoverse-n2"},
      {0x41, 0xd4f, "neoverse-v2"}, {0x41, 0xd84, "neoverse-v3"}, {0x41, 0xd8e, "neoverse-n3"}, {0x46, 0x001, "a64fx"},
      {0x48, 0xd01, "kunpeng-920"}, {0x61, 0x022, "apple-m1"},    {0x61, 0x023, "apple-m1"},    {0x61, 0x032, "apple-m2"},
      {0x61, 0x033, "apple-m2"},    {0xc0, 0xac3, "ampere-one"},
  };
  for (const Row& row : rows)
    if (row.implementer == implementer && row.part == part) return row.name;
  return {};
}

std::string cpu_microcode(const std::string& root) { return read_cpuinfo(root)["microcode"]; }

void describe_cpu(Device& device, const std::string& root) {
  auto info = read_cpuinfo(root);
#if defined(__x86_64__)
  const CpuidLeaf zero = cpuid(0), one = cpuid(1);
  std::string id;
  for (uint32_t word : {zero.ebx, zero.edx, zero.ecx})
    for (int i = 0; i < 4; ++i) id += static_cast<char>(word >> (8 * i));
  std::string brand;
  for (uint32_t leaf = 0x80000002u; leaf <= 0x80000004u; ++leaf) {
    const CpuidLeaf r = cpuid(leaf);
    for (uint32_t word : {r.eax, r.ebx, r.ecx, r.edx})
      for (int i = 0; i < 4; ++i) brand += static_cast<char>(word >> (8 * i));
  }
  device.name = trim(brand);
  if (device.name.empty()) device.name = info["model name"];
  device.vendor = id == "GenuineIntel" ? "Intel" : id == "AuthenticAMD" ? "AMD" : trim(id);
  int family = static_cast<int>((one.eax >> 8) & 15), model = static_cast<int>((one.eax >> 4) & 15);
  if (family == 15) family += static_cast<int>((one.eax >> 20) & 0xff);
  if (family >= 6) model += static_cast<int>((one.eax >> 16) & 15) << 4;
  const uint32_t seven = cpuid(7).edx;
  const X86Features features{.amx = (seven >> 24 & 1) != 0, .avx512_fp16 = (seven >> 23 & 1) != 0};
  device.architecture = x86_architecture(id, family, model, static_cast<int>(one.eax & 15), features);
  if (device.architecture.empty()) device.architecture = "x86-64";
  device.clock_hz = 1e6 * (cpuid(0x16).eax & 0xffff);
#elif defined(__aarch64__)
  const int implementer = number_of(info["CPU implementer"]), part = number_of(info["CPU part"]);
  device.architecture = arm_architecture(implementer, part);
  switch (implementer) {
    case 0x41: device.vendor = "Arm"; break;
    case 0x46: device.vendor = "Fujitsu"; break;
    case 0x48: device.vendor = "HiSilicon"; break;
    case 0x61: device.vendor = "Apple"; break;
    case 0xc0: device.vendor = "Ampere"; break;
    default: break;
  }
  device.name = info["model name"];
  if (device.name.empty()) device.name = device.architecture.empty() ? "aarch64 CPU" : device.architecture;
  if (device.architecture.empty()) device.architecture = "aarch64";
#else
  device.name = info["model name"];
  device.architecture = "unknown";
#endif
  if (device.name.empty()) device.name = "CPU";
  if (device.clock_hz == 0) {  // nominal; measured later
    std::ifstream file(root + "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    double kilohertz = 0;
    if (file >> kilohertz && kilohertz > 0) device.clock_hz = kilohertz * 1e3;
  }
  if (device.clock_hz == 0) device.clock_hz = 1e6 * std::strtod(info["cpu MHz"].c_str(), nullptr);
}

}  // namespace sparkle
