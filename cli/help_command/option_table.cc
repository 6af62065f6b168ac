#include "help_command/option_table.h"

#include <algorithm>
#include <sstream>

namespace sparkle::cli {
namespace {

// What the type of an option says, "TEXT:{crop,none}": its choices, where it lists them.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  const size_t begin = type.find('{');
  const size_t end = begin == std::string::npos ? begin : type.find('}', begin);
  if (end == std::string::npos) return choices;
  std::istringstream list(type.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(list, word, ',');) choices.push_back(word);
  return choices;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  if (row.names.empty()) row.names.push_back(option.get_name(true));
  row.text = option.get_description();
  row.default_text = option.get_default_str();
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() == 0) {
    row.takes = Takes::nothing;
  } else if (row.choices = choices_of(type); !row.choices.empty()) {
    row.takes = Takes::choice;
  } else if (type.compare(0, 3, "INT") == 0 || type.compare(0, 4, "UINT") == 0 || type.compare(0, 5, "FLOAT") == 0) {
    row.takes = Takes::number;
  }
  row.value = row.takes == Takes::nothing ? "" : row.takes == Takes::number ? "N" : "VALUE";
  return row;
}

}  // namespace

std::vector<CommandRow> option_table(const CLI::App& app) {
  std::vector<CommandRow> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // not for people
    CommandRow row{command->get_name(), command->get_description(), {}, {}};
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group().empty()) continue;
      OptionRow of_option = row_of(*option);
      if (option->nonpositional()) row.options.push_back(of_option);
      if (!option->get_positional()) continue;  // some are both: `bench MODEL` and `bench --model MODEL`
      of_option.names = {option->get_name(true)};
      row.arguments.push_back(std::move(of_option));
    }
    commands.push_back(std::move(row));
  }
  return commands;
}

std::string short_text(const std::string& text) {
  constexpr size_t kMost = 72;
  const size_t clause = text.find_first_of(";(");
  std::string first = text.substr(0, clause);
  while (!first.empty() && (first.back() == ' ' || first.back() == ',' || first.back() == ':')) first.pop_back();
  if (first.size() <= kMost) return first;
  const size_t word = first.find_last_of(' ', kMost - 4);
  return first.substr(0, word == std::string::npos ? kMost - 4 : word) + " ...";
}

}  // namespace sparkle::cli
