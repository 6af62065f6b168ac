#include "backends/cuda/driver/programs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "backends/cuda/nvrtc/program_headers.h"
#include "base/files/cache_folder.h"
#include "base/files/read_file.h"
#include "base/record.h"

namespace sparkle::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestFile = 16 << 20;
constexpr size_t kMostFiles = 2048;  // some 10 KB each
constexpr const char* kMagic = "sparkle-ptx-1";

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// "sparkle-ptx-1 CHECKSUM BYTES-OF-KEY\nKEYPTX": the checksum is of all that follows the line.
std::string file_text(const std::string& key, const std::string& ptx) {
  const std::string rest = key + ptx;
  return std::string(kMagic) + " " + hex(hash_text(rest)) + " " + std::to_string(key.size()) + "\n" + rest;
}
// The PTX in such a file that is of this key; empty where it is damaged or another's.
std::string ptx_of(const std::string& file, const std::string& key) {
  const size_t line = file.find('\n');
  if (line == std::string::npos || file.size() < line + 1 + key.size()) return {};
  std::string ptx = file.substr(line + 1 + key.size());
  return file == file_text(key, ptx) ? ptx : std::string();
}

// The older half of the files goes where there are too many.
void make_room(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".ptx") files.emplace_back(at->last_write_time(error), at->path());
  if (files.size() < kMostFiles) return;
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < files.size() / 2; ++i) fs::remove(files[i].second, error);
}

}  // namespace

Programs::Programs(std::shared_ptr<Context> context, const std::string& folder) : context_(std::move(context)) {
  const Nvrtc& nvrtc = *context_->driver().compiler().nvrtc;
  architecture_ = nvrtc.architecture(context_->device().capability);
  about_ = nvrtc.name() + " compute_" + std::to_string(architecture_) + " " + Nvrtc::options() + hex(program_headers_hash());
  if (folder.empty()) return;
  folder_ = folder + "/cuda_programs";
  make_room(folder_);
}

Programs::~Programs() {
  const Current current(*context_);
  for (const auto& [text, loaded] : loaded_) context_->driver().module_unload(loaded.module);
}

Programs::Counters Programs::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::string Programs::file_of(const std::string& key) const {
  return folder_.empty() ? std::string() : folder_ + "/" + hex(hash_text(key)) + ".ptx";
}

// Where nothing can be written the next process compiles again.
void Programs::keep(const std::string& path, const std::string& key, const std::string& ptx) {
  if (path.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  (void)replace_file(path, file_text(key, ptx));
}

Result<Programs::Loaded> Programs::load(const std::string& name, const std::string& ptx) {
  const Driver& d = context_->driver();
  const Current current(*context_);
  Loaded loaded;
  SPARKLE_CU(d, d.module_load(&loaded.module, ptx.c_str()), "Loading the compiled program " + name);
  if (const CuResult r = d.module_function(&loaded.function, loaded.module, name.c_str()); r != CuResult::success) {
    d.module_unload(loaded.module);
    return d.error_of(r, "cuModuleGetFunction of " + name);
  }
  return loaded;
}

Result<CuFunction> Programs::get(const std::string& name, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (const auto at = loaded_.find(text); at != loaded_.end()) return at->second.function;
  const std::string key = about_ + "\n" + text, path = file_of(key);
  if (const std::string kept = path.empty() ? path : ptx_of(read_own_file(path, kLargestFile), key); !kept.empty()) {
    // What this driver does not take is compiled again.
    if (auto loaded = load(name, kept); loaded.ok()) {
      ++counters_.read;
      return (loaded_[text] = *loaded).function;
    }
  }
  SPARKLE_TRY(ptx, context_->driver().compiler().nvrtc->compile(text, architecture_));
  ++counters_.compiled;
  SPARKLE_TRY(loaded, load(name, ptx));
  keep(path, key, ptx);
  return (loaded_[text] = loaded).function;
}

}  // namespace sparkle::cuda
