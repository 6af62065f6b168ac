// sparkle verify --kernels [NAME...]: every kernel variant of a device on small operands against its family's reference. Each
// in a process of its own: a kernel that hangs or takes its device along is a line like any other.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/self_tests/variant_self_tests.h"
#include "base/printable.h"
#include "command.h"

namespace sparkle::cli {
namespace {

constexpr std::chrono::seconds kTimeout{120};  // of a self-test; and twice that of a process for each of its self-tests

struct Verdict {
  bool passed = false, skipped = false;
  std::string detail;
};

Verdict tried_here(Backend& backend, const VariantSelfTests& variant) {
  if (variant.self_tests.empty()) return {false, true, "no self-test has a form for it on this device"};
  size_t run = 0;
  std::string refusal;  // where a kernel asks for more than a self-test has, as constant filters
  for (const SelfTest& t : variant.self_tests) {
    const Status ran = run_self_test(backend, t, kTimeout);
    run += ran.ok();
    if (ran.ok()) continue;
    const Reason why = ran.error().reason;
    // A GPU's schedules are those that a planner finds: what they ask for there has to be.
    if (backend.device().has_workgroups() ||
        (why != Reason::backend_lacks_variant && why != Reason::type_not_served && why != Reason::layout_not_served))
      return {false, false, t.to_text() + ": " + ran.error().message};
    refusal = ran.error().message;
  }
  if (run == 0) return {false, true, refusal};
  std::string detail = std::to_string(run) + (run == 1 ? " self-test" : " self-tests");
  if (!refusal.empty()) detail += ", " + std::to_string(variant.self_tests.size() - run) + " not run: " + refusal;
  return {true, false, detail};
}

// "PASS  gemm/mma    detail" is what a child prints; anything else is its end.
Verdict verdict_of(const std::string& said, int status) {
  Verdict v;
  v.passed = said.starts_with("PASS"), v.skipped = said.starts_with("SKIP");
  if (const size_t end = said.find('\n'); said.size() > 4 && (v.passed || v.skipped || said.starts_with("FAIL"))) {
    const size_t name = said.find_first_not_of(' ', 4), gap = said.find(' ', name), detail = said.find_first_not_of(' ', gap);
    if (detail < end) v.detail = said.substr(detail, end - detail);
    return v;
  }
  v.detail = WIFSIGNALED(status) ? "its process was ended by signal " + std::to_string(WTERMSIG(status))
                                 : "its process ended with status " + std::to_string(WEXITSTATUS(status)) + " and said nothing";
  return v;
}

Verdict tried_elsewhere(const CommonOptions& common, const VariantSelfTests& variant) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {false, false, "no pipe could be opened"};
  std::vector<std::string> words{"/proc/self/exe", "verify",      "--kernels", variant.name,
                                 "--device",       common.device, "--threads", std::to_string(common.threads)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (spawned != 0) {
    close(ends[0]);
    return {false, false, "no process could be started for it"};
  }
  const auto until = std::chrono::steady_clock::now() + kTimeout + kTimeout * variant.self_tests.size();
  std::string said;
  bool late = false;
  for (char part[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    late = ready <= 0;
    if (late) break;
    const ssize_t count = read(ends[0], part, sizeof part);
    if (count <= 0) break;
    said.append(part, static_cast<size_t>(count));
  }
  if (late) kill(child, SIGKILL);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) return {false, false, "it did not come to an end and was killed"};
  return verdict_of(said, status);
}

bool is_named(const std::string& variant, const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return variant == name || variant.starts_with(name + "/");
         });
}

}  // namespace

int verify_kernels(const CommonOptions& common, const std::vector<std::string>& names) {
  auto open = open_device(common);
  if (!open.ok()) return fail(open.error(), common);
  // What the denylist has is tried again.
  Device device = open->backend->device();
  device.denylist.clear();
  std::vector<VariantSelfTests> variants = self_tests_of_variants(device);
  std::erase_if(variants, [&](const VariantSelfTests& v) { return !is_named(v.name, names); });
  if (variants.empty())
    return fail({Reason::bad_usage, names.empty() ? "The device '" + device.name + "' has no kernels of its own to verify."
                                                  : "The device '" + device.name + "' has no kernel '" + names[0] +
                                                        "'; 'sparkle verify --kernels' lists all."});
  const bool here = names.size() == 1 && variants.size() == 1 && variants[0].name == names[0];
  if (!here) open->backend.reset();  // children open the device anew
  int counts[3] = {0, 0, 0};
  nlohmann::json rows = nlohmann::json::array();
  for (const VariantSelfTests& variant : variants) {
    const Verdict v = here ? tried_here(*open->backend, variant) : tried_elsewhere(common, variant);
    const char* word = v.passed ? "PASS" : v.skipped ? "SKIP" : "FAIL";
    ++counts[v.passed ? 0 : v.skipped ? 2 : 1];
    if (common.json) rows.push_back({{"name", variant.name}, {"verdict", word}, {"detail", v.detail}});
    else std::printf("%s  %-32s %s\n", word, variant.name.c_str(), printable_sentence(v.detail).c_str());
    std::fflush(stdout);
  }
  if (common.json) {
    const nlohmann::json all{
        {"device", device.name}, {"rows", rows}, {"passed", counts[0]}, {"failed", counts[1]}, {"skipped", counts[2]}};
    std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%d passed, %d failed, %d skipped\n", counts[0], counts[1], counts[2]);
  }
  return counts[1] > 0 ? kCheckFailed : kDone;
}

}  // namespace sparkle::cli
