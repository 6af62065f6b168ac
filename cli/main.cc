// The command `sparkle`: one subcommand per file. Status: 0 done, 1 a check failed, 2 bad usage or input, 3 a requirement not
// met.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/out_of_memory.h"
#include "bench_command/certificate.h"
#include "command.h"

namespace sparkle::cli {
namespace {

// Letters to add, drop, change or swap with a neighbour to get from one word to the other.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

bool is_command(const CLI::App& app, const std::string& word) {
  const auto commands = app.get_subcommands({});
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* c) { return c->get_name() == word; });
}

int unknown_command(const CLI::App& app, const std::string& given_word) {
  const std::string word = given_word.substr(0, 64);
  std::string nearest, names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // not for people
    const std::string name = command->get_name();
    names += (names.empty() ? "" : ", ") + name;
    if (nearest.empty() || distance(word, name) < distance(word, nearest)) nearest = name;
  }
  std::string advice = distance(word, nearest) <= 2 ? "did you mean '" + nearest + "'?" : "there are " + names + ".";
  if (word.find('.') != std::string::npos || word.find('/') != std::string::npos)
    advice = "to run a model write 'sparkle run " + word + "'; " + advice;
  return fail({Reason::bad_usage, "There is no command '" + word + "'; " + advice});
}

// What the parser says of a command line that it does not understand, with the option that was meant and where to read on.
Error not_understood(const CLI::App& app, const CLI::ParseError& error, const std::string& first_word) {
  const bool known = is_command(app, first_word);
  std::string sentence = error.what(), advice;
  if (!sentence.empty() && sentence.back() == '.') sentence.pop_back();
  if (!known && error.get_name() == "RequiredError") sentence = "A command is missing, as in 'sparkle run MODEL'";
  const CLI::App& command = known ? *app.get_subcommand(first_word) : app;
  if (const size_t at = sentence.find(": -"); dynamic_cast<const CLI::ExtrasError*>(&error) && at != std::string::npos) {
    const std::string word = sentence.substr(at + 2, std::min(sentence.find_first_of(" =", at + 2), at + 66) - at - 2);
    std::string nearest;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames())
        if (nearest.empty() || distance(word, "--" + name) < distance(word, nearest)) nearest = "--" + name;
    if (!nearest.empty() && distance(word, nearest) <= 2) advice = "; did you mean " + nearest + "?";
  }
  if (advice.empty()) advice = "; see 'sparkle " + (known ? first_word + " " : std::string()) + "--help'.";
  return {Reason::bad_usage, sentence + advice};
}

// The words of the command line, an expression's sign hidden from the parser of options.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words[0] != "eval") return words;
  words.erase(words.begin());
  guard_expression(*app.get_subcommand("eval"), words);
  words.insert(words.begin(), "eval");
  return words;
}

// Ends as a process does that writes to a reader who has seen enough: without a word, by the signal for it.
int end_with_reader() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;  // where the signal is blocked
}

// `status`, unless what was printed could not all be written: on a full disk, to a reader that is gone.
int printed(int status) {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout) return status;
  if (errno == EPIPE || reader_is_gone()) return end_with_reader();
  const std::string why = errno ? std::string(": ") + std::strerror(errno) : "";
  std::fprintf(stderr, "sparkle: The output could not be printed in full%s.\n", why.c_str());
  return kBadInput;
}

}  // namespace

int command_line(int argc, char** argv) {
  remember_command(argc, argv);
  std::signal(SIGPIPE, SIG_IGN);  // results are written all the same when nobody reads the text any more
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files shows as a failed write
  print_warnings();
  show_waiting();
  CLI::App app{"Sparkle: convolution and CNN inference at the limit of the machine it finds."};
  app.require_subcommand(1);
  app.footer(
      "'sparkle devices' lists the CPU and the CUDA and Vulkan devices that --device names; 'sparkle COMMAND --help' lists a "
      "command's options.");
  app.set_version_flag("--version", SPARKLE_VERSION);
  Chosen chosen;
  add_devices(app, chosen);
  add_run(app, chosen);
  add_bench(app, chosen);
  add_explain(app, chosen);
  add_check(app, chosen);
  add_report(app, chosen);
  add_compile(app, chosen);
  add_verify(app, chosen);
  add_compare(app, chosen);
  add_drift(app, chosen);
  add_fix(app, chosen);
  add_tune(app, chosen);
  add_eval(app, chosen);
  add_serve(app, chosen);
  add_completion(app, chosen);
  add_manual(app, chosen);
  add_try_kernels(app, chosen);
  add_certificate(app, chosen);
  for (int i = 1; i < argc; ++i)  // before parsing: errors of parsing count too
    if (std::string_view(argv[i]) == "--json") print_errors_as_json();
  std::string help = "--help";
  if (argc > 1 && std::string_view(argv[1]) == "help") {  // 'sparkle help run' is 'sparkle run --help'
    if (argc > 2 && is_command(app, argv[2])) argv[1] = argv[2], argv[2] = help.data(), argc = 3;
    else argv[1] = help.data(), argc = 2;
  }
  if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1])) return unknown_command(app, argv[1]);
  try {
    const std::vector<std::string> words = words_of(app, argc, argv);
    std::vector<const char*> given = {argc > 0 ? argv[0] : "sparkle"};
    for (const std::string& word : words) given.push_back(word.c_str());
    app.parse(static_cast<int>(given.size()), given.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return printed(app.exit(error));  // --help, --version
    return fail(not_understood(app, error, argc > 1 ? argv[1] : ""));
  }
  int status = kBadInput;
  try {
    status = chosen();
  } catch (const std::bad_alloc&) {  // the last net: the library gives errors of its own
    status = fail(sparkle::out_of_memory("This command"));
  } catch (const std::length_error&) {
    status = fail(sparkle::out_of_memory("This command"));
  } catch (const std::filesystem::filesystem_error& error) {
    status = fail({sparkle::Reason::file_unreadable,
                   "'" + error.path1().string() + "' cannot be looked at: " + error.code().message() + "."});
  }
  return printed(status);
}

}  // namespace sparkle::cli
