// The command `sparkle`: one subcommand per file. Status: 0 done, 1 a check failed, 2 bad usage or input, 3 a requirement not
// met.
#include <csignal>
#include <cstdio>

#include "base/out_of_memory.h"
#include "command.h"

int main(int argc, char** argv) {
  using namespace sparkle::cli;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe shows as a failed write, not as a death
  CLI::App app{"Sparkle: convolution and CNN inference at the limit of the machine it finds."};
  app.require_subcommand(1);
  app.set_version_flag("--version", SPARKLE_VERSION);
  Chosen chosen;
  add_devices(app, chosen);
  add_run(app, chosen);
  add_bench(app, chosen);
  add_explain(app, chosen);
  add_verify(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "sparkle: %s\nTry 'sparkle --help' or 'sparkle COMMAND --help'.\n", error.what());
    return kBadInput;
  }
  int status = kBadInput;
  try {
    status = chosen();
  } catch (const std::bad_alloc&) {  // the last net: the library gives errors of its own
    status = fail(sparkle::out_of_memory("This command"));
  } catch (const std::length_error&) {
    status = fail(sparkle::out_of_memory("This command"));
  }
  return std::fflush(stdout) == 0 && !std::ferror(stdout) ? status : kBadInput;
}
