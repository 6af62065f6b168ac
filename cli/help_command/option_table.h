// What the command's own parser knows of its subcommands and options, as plain rows: completion and the manual page are written
// from them, so neither can say what the command does not take.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sparkle::cli {

enum class Takes { nothing, number, choice, text };  // text may be a file

struct OptionRow {
  std::vector<std::string> names;  // "-o", "--output"; of an argument its one name, without dashes
  Takes takes = Takes::text;
  std::vector<std::string> choices;  // of Takes::choice
  std::string value;                 // what stands for the value, in capitals: "N", "FILE"
  std::string text, default_text;
};

struct CommandRow {
  std::string name, text;
  std::vector<OptionRow> arguments, options;
};

// The rows of all subcommands that are for people, in the order of the help.
std::vector<CommandRow> option_table(const CLI::App& app);

// The part of an option's text before its first full clause ends: what fits a line of completion.
std::string short_text(const std::string& text);

std::string completion_for_bash(const std::vector<CommandRow>& commands);
std::string completion_for_zsh(const std::vector<CommandRow>& commands);
std::string completion_for_fish(const std::vector<CommandRow>& commands);
// In roff, for man; `version` stands in its footer.
std::string manual_page(const std::vector<CommandRow>& commands, const std::string& version);

}  // namespace sparkle::cli
