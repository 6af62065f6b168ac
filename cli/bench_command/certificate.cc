#include "bench_command/certificate.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/system/cpu_count.h"
#include "command.h"
#include "device/probe_cpu.h"

namespace sparkle::cli {
namespace {

std::string given_command;
int cores_at_start = 0;  // a process that pins itself later may use fewer

std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The first value of a key of /proc/cpuinfo; empty where the system has none.
std::string cpu_says(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key) continue;
    return colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return "";
}

// What changes how fast this program, its peers and software devices are.
nlohmann::json environment() {
  nlohmann::json set = nlohmann::json::object();
  for (const char* name : {"DNNL_MAX_CPU_ISA", "LP_NATIVE_VECTOR_WIDTH", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA",
                           "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "SPARKLE_CUDA_EDGES"})
    if (const char* value = std::getenv(name)) set[name] = value;
  return set;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

void remember_command(int argc, char** argv) {
  cores_at_start = usable_threads(0).threads;
  given_command = "sparkle";  // wherever it lies
  for (int i = 1; i < argc; ++i) given_command += " " + quoted(argv[i]);
}

nlohmann::json certificate_of(const std::string& command, const nlohmann::json& versions) {
  const Device device = probe_cpu({});
  nlohmann::json all = versions.is_object() ? versions : nlohmann::json::object();
  all["sparkle"] = SPARKLE_VERSION;
  double load[1] = {0};
  if (getloadavg(load, 1) != 1) load[0] = 0;
  return {{"command", command},
          {"commit", kBuildStamp.commit},
          {"clean", kBuildStamp.clean},
          {"date", now()},
          {"cpu",
           {{"name", device.name},
            {"architecture", device.architecture},
            {"family", cpu_says("cpu family")},
            {"model", cpu_says("model")},
            {"usable_cores", cores_at_start}}},
          {"versions", all},
          {"environment", environment()},
          {"load_average", load[0]}};
}

nlohmann::json certified(nlohmann::json result) {
  nlohmann::json versions = nlohmann::json::object();
  if (result.contains("versions")) versions = result["versions"], result.erase("versions");
  result["certificate"] = certificate_of(given_command, versions);
  return result;
}

namespace {

struct Asked {
  std::string command;
  std::vector<std::string> versions;
};

int certificate(const Asked& asked) {
  nlohmann::json versions = nlohmann::json::object();
  for (const std::string& version : asked.versions) {
    const size_t equals = version.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail({Reason::bad_usage, "--version takes NAME=VERSION, not '" + version + "'."});
    versions[version.substr(0, equals)] = version.substr(equals + 1);
  }
  const nlohmann::json json = certificate_of(asked.command, versions);
  std::printf("%s\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return kDone;
}

}  // namespace

void add_certificate(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("certificate", "For measuring tools: by what a result of theirs came about");
  command->group("");  // not for people
  auto a = std::make_shared<Asked>();
  command->add_option("--command", a->command, "what was run")->required();
  command->add_option("--version", a->versions, "NAME=VERSION of what was measured beside; as often as needed");
  command->callback([&chosen, a] { chosen = [a] { return certificate(*a); }; });
}

}  // namespace sparkle::cli
