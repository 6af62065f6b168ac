// sparkle try-kernels: what the other commands start, as a process of its own, before they trust a driver with kernels that it
// has never run. Reads lines from a file, tries each, and leaves the verdicts in the cache folder.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/files/read_file.h"
#include "base/waiting.h"
#include "command.h"

namespace sparkle::cli {
namespace {

int try_kernels(const std::string& device, const std::string& path) {
  auto lines = read_file(path, {"list of kernels"});
  if (!lines.ok()) return fail(lines.error());
  BackendOptions options;
  options.name = device;
  const Status tried = try_listed_kernels(options, *lines);
  return tried.ok() ? kDone : fail(tried.error());
}

}  // namespace

// The child writes what it finds where this process looks for it; whatever else becomes of it is no matter here.
void try_kernels_elsewhere(const std::string& device, const std::string& lines) {
  // A file without a name, which the child inherits: nothing lies about when this process is killed meanwhile.
  const int file = memfd_create("kernels", 0);
  if (file < 0) return;
  const bool written = write(file, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
  std::string path = "/proc/self/fd/" + std::to_string(file);
  std::string self = "/proc/self/exe", command = "try-kernels", option = "--device", name = device;
  char* arguments[] = {self.data(), command.data(), option.data(), name.data(), path.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  if (written && posix_spawn(&child, self.c_str(), &quiet, nullptr, arguments, environ) == 0) {
    // A driver may hang as it compiles: then the process is ended, and its marker names the kernel.
    const auto kernels = std::count(lines.begin(), lines.end(), '\n');
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(150) + kernels * std::chrono::seconds(30);
    const auto kernels_in_all = static_cast<size_t>(kernels);
    int status = 0;
    for (pid_t ended = 0; ended == 0 || (ended < 0 && errno == EINTR);) {
      ended = waitpid(child, &status, WNOHANG);
      tell_waiting("trying kernels that this driver has never run", 0, kernels_in_all);
      if (ended != 0) continue;
      if (std::chrono::steady_clock::now() > until) kill(child, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    tell_waiting("trying kernels that this driver has never run", kernels_in_all, kernels_in_all);
  }
  posix_spawn_file_actions_destroy(&quiet);
  close(file);
}

void add_try_kernels(CLI::App& app, Chosen& chosen) {
  auto* command =
      app.add_subcommand("try-kernels", "Try kernels on a driver that has never run them (other commands start this)");
  command->group("");
  auto device = std::make_shared<std::string>("vulkan");
  auto path = std::make_shared<std::string>();
  command->add_option("--device", *device, "vulkan or vulkan:I");
  command->add_option("FILE", *path, "a line per kernel")->required();
  command->callback([&chosen, device, path] { chosen = [device, path] { return try_kernels(*device, *path); }; });
}

}  // namespace sparkle::cli
