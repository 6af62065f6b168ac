#include "device/known/known_devices.h"

#include <algorithm>
#include <cctype>

#include "device/device_json.h"

namespace sparkle {
namespace {

struct File {
  std::string_view name, text;
};
constexpr File kFiles[] = {
#define KNOWN_DEVICE(name, text) {name, text},
#include "known_devices.inc"  // by cmake/known_devices.cmake
#undef KNOWN_DEVICE
};

// What people call a machine, or a generation by one of its members.
constexpr KnownDevice kNames[] = {
    {"h200", "h200", "NVIDIA H200"},
    {"a100", "a100", "NVIDIA A100 SXM 80 GB"},
    {"a40", "a40", "NVIDIA A40"},
    {"a4500", "rtx-a4500", "NVIDIA RTX A4500"},
    {"rtx3090", "rtx-3090", "NVIDIA GeForce RTX 3090"},
    {"rtx3080", "rtx-3080", "NVIDIA GeForce RTX 3080"},
    {"ada", "rtx-4090-vulkan", "NVIDIA GeForce RTX 4090 through Vulkan"},
    {"rdna2", "radeon-rx-6900-xt", "AMD Radeon RX 6900 XT"},
    {"rdna3", "radeon-rx-7900-xtx", "AMD Radeon RX 7900 XTX"},
    {"rx7900xt", "radeon-rx-7900-xt", "AMD Radeon RX 7900 XT"},
    {"raphael", "raphael-graphics", "the graphics inside AMD's Ryzen 7000 for desktops"},
    {"xe", "arc-a770", "Intel Arc A770"},
    {"avx512", "epyc-zen4", "two cores of an AMD EPYC (Zen 4)"},
    {"avx2", "ryzen-zen3-laptop", "AMD Ryzen 7 5800H"},
    {"amx", "xeon-emr", "two cores of an Intel Xeon (Emerald Rapids)"},
    {"neon", "graviton3-neoverse-v1", "AWS Graviton3"},
    {"7700x", "ryzen-7-7700x", "AMD Ryzen 7 7700X"},
    {"7900x", "ryzen-9-7900x", "AMD Ryzen 9 7900X"},
};

// Letters and digits, small.
std::string bare(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c))) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

const File* file_of(std::string_view given) {
  const std::string name = bare(given);
  std::string_view stem;
  for (const KnownDevice& known : kNames)
    if (known.name == name) stem = known.file;
  for (const File& file : kFiles)
    if (stem.empty() ? bare(file.name) == name : file.name == stem) return &file;
  return nullptr;
}

}  // namespace

std::vector<KnownDevice> known_devices() {
  std::vector<KnownDevice> all(std::begin(kNames), std::end(kNames));
  for (const File& file : kFiles)
    if (std::none_of(all.begin(), all.end(), [&](const KnownDevice& k) { return k.file == file.name; }))
      all.push_back({file.name, file.name, ""});
  return all;
}

bool is_known_device(std::string_view name) { return file_of(name) != nullptr; }

Result<Device> known_device(std::string_view name) {
  if (const File* file = file_of(name)) return device_from_json(file->text);
  std::string names;
  for (const KnownDevice& known : known_devices()) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return Error{Reason::bad_usage,
               "There is no description of a device '" + std::string(name) + "'; there are " + names + ", and any FILE.json."};
}

Result<Device> described_device(const std::string& name) {
  return name.ends_with(".json") ? load_device(name) : known_device(name);
}

}  // namespace sparkle
