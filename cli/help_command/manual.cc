// sparkle man: the manual page in roff, of what the command's own parser knows.
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "command.h"
#include "help_command/option_table.h"

namespace sparkle::cli {
namespace {

// Text as roff prints it: backslashes and hyphens stand for themselves, and no line begins a request.
std::string roff(const std::string& text) {
  std::string all;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    if (line_begins && (text[i] == '.' || text[i] == '\'')) all += "\\&";
    if (text[i] == '\\') all += "\\e";
    else if (text[i] == '-') all += "\\-";
    else if (text[i] == '\'') all += "\\(aq";
    else all += text[i];
  }
  return all;
}

std::string roff_bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string manual_entry(const OptionRow& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + roff_bold(name);
  if (option.takes != Takes::nothing) names += " \\fI" + roff(option.value) + "\\fR";
  std::string text = option.text, choices;
  for (const std::string& choice : option.choices)
    if (text.find(choice) == std::string::npos) choices += (choices.empty() ? "" : ", ") + choice;
  if (!choices.empty()) text += (text.empty() ? "one of " : "; one of ") + choices;
  if (!option.default_text.empty()) text += "; default " + option.default_text;
  return ".TP\n" + names + "\n" + roff(text) + "\n";
}

std::string manual_section(const CommandRow& command) {
  std::string text = ".SS sparkle " + roff(command.name);
  for (const OptionRow& argument : command.arguments) text += " " + roff(capitals(argument.names[0]));
  text += "\n" + roff(command.text) + ".\n";
  for (const OptionRow& argument : command.arguments)
    if (!argument.text.empty()) text += ".TP\n\\fI" + roff(capitals(argument.names[0])) + "\\fR\n" + roff(argument.text) + "\n";
  for (const OptionRow& option : command.options) text += manual_entry(option);
  return text;
}

int manual(const CLI::App& app) {
  std::fputs(manual_page(option_table(app), SPARKLE_VERSION).c_str(), stdout);
  return kDone;
}

}  // namespace

std::string manual_page(const std::vector<CommandRow>& commands, const std::string& version) {
  std::string text =
      ".\\\" Written by 'sparkle man'.\n"
      ".TH SPARKLE 1 \"\" \"sparkle " +
      roff(version) +
      "\" \"User Commands\"\n"
      ".SH NAME\nsparkle \\- run, measure and explain convolutional networks\n"
      ".SH SYNOPSIS\n.B sparkle\n\\fICOMMAND\\fR [\\fIARGUMENT\\fR ...] [\\fIOPTION\\fR ...]\n"
      ".SH DESCRIPTION\nSparkle runs convolutional networks from ONNX files. It plans every layer for the machine that it runs "
      "on,\n"
      "and tells which algorithm it chose, why, and how far its speed is from the roofline of that machine.\n"
      "Messages go to standard error, results to standard output.\n"
      ".SH COMMANDS\n";
  for (const CommandRow& command : commands) text += manual_section(command);
  return text +
         ".SH EXIT STATUS\n"
         ".TP\n.B 0\ndone\n.TP\n.B 1\na check failed\n.TP\n.B 2\nbad usage or bad input\n"
         ".TP\n.B 3\na requirement that the command line states was not met\n"
         ".SH FILES\nMeasured rates and compiled kernels are kept in \\fI$XDG_CACHE_HOME/sparkle\\fR, or in "
         "\\fI~/.cache/sparkle\\fR.\n";
}

void add_manual(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("man", "Print the manual page, as 'man -l' reads it");
  command->callback([&app, &chosen] { chosen = [&app] { return manual(app); }; });
}

}  // namespace sparkle::cli
