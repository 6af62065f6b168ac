// sparkle completion SHELL: scripts in which bash, zsh and fish find the command's subcommands, options and their choices.
#include <cstdio>

#include "command.h"
#include "help_command/option_table.h"

namespace sparkle::cli {
namespace {

std::string words_joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::string escaped(const std::string& text, const std::string& special, const std::string& before) {
  std::string all;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) all += before;
    all += c;
  }
  return all;
}

// As one word of the shell: in single quotes, in which a quote is '\''.
std::string shell_word(const std::string& text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return all + "'";
}

// What an option, by all of its names, leads to, as a branch of bash's `case`.
std::string bash_branch(const OptionRow& option) {
  const std::string names = "        " + words_joined(option.names, " | ") + ") ";
  if (option.takes == Takes::choice) return names + "words=" + shell_word(words_joined(option.choices, " ")) + " ;;\n";
  if (option.takes == Takes::number) return names + "return ;;\n";
  if (option.takes == Takes::text) return names + "compopt -o default; return ;;\n";
  return "";
}

std::string bash_command(const CommandRow& command) {
  std::string text = "    " + command.name + ")\n      case $previous in\n";
  std::vector<std::string> names, choices;
  for (const OptionRow& option : command.options) {
    text += bash_branch(option);
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  for (const OptionRow& argument : command.arguments)
    choices.insert(choices.end(), argument.choices.begin(), argument.choices.end());
  text += "        *)\n          if [[ $current == -* ]]; then words=" + shell_word(words_joined(names, " "));
  text += "; else ";
  text += choices.empty() ? "compopt -o default; return" : "words=" + shell_word(words_joined(choices, " "));
  return text + "; fi ;;\n      esac ;;\n";
}

std::string zsh_text(const std::string& text) { return escaped(short_text(text), "[]:\\", "\\"); }

// The specification of an option for zsh's _arguments: each name by itself, as often as it may be given.
std::string zsh_option(const OptionRow& option) {
  std::string text;
  for (const std::string& name : option.names) {
    std::string spec = "*" + name + "[" + zsh_text(option.text) + "]";
    if (option.takes != Takes::nothing) spec += ":" + option.value + ":";
    if (option.takes == Takes::choice) spec += "(" + words_joined(option.choices, " ") + ")";
    if (option.takes == Takes::text) spec += "_files";
    text += " \\\n        " + shell_word(spec);
  }
  return text;
}

int completion(const CLI::App& app, const std::string& shell) {
  const std::vector<CommandRow> commands = option_table(app);
  const std::string text = shell == "bash"  ? completion_for_bash(commands)
                           : shell == "zsh" ? completion_for_zsh(commands)
                                            : completion_for_fish(commands);
  std::fputs(text.c_str(), stdout);
  return kDone;
}

}  // namespace

std::string completion_for_bash(const std::vector<CommandRow>& commands) {
  std::vector<std::string> names;
  for (const CommandRow& command : commands) names.push_back(command.name);
  std::string text =
      "# Completion of sparkle for bash, written by 'sparkle completion bash'.\n"
      "_sparkle() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
      "  COMPREPLY=()\n"
      "  if [[ $current == = ]]; then\n"
      "    current=\n"
      "  elif [[ $previous == = && $COMP_CWORD -ge 2 ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  local command=${COMP_WORDS[1]}\n"
      "  if [[ $COMP_CWORD == 1 ]]; then command=; fi\n"
      "  case $command in\n"
      "    '') words='" +
      words_joined(names, " ") + " help --help --version' ;;\n    help) words='" + words_joined(names, " ") + "' ;;\n";
  for (const CommandRow& command : commands) text += bash_command(command);
  return text +
         "    *) compopt -o default; return ;;\n"
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "}\n"
         "complete -F _sparkle sparkle\n";
}

std::string completion_for_zsh(const std::vector<CommandRow>& commands) {
  std::string text =
      "#compdef sparkle\n"
      "# Completion of sparkle for zsh, written by 'sparkle completion zsh'.\n"
      "_sparkle() {\n"
      "  local -a commands\n"
      "  commands=(";
  for (const CommandRow& command : commands)
    text += "\n    " + shell_word(command.name + ":" + escaped(short_text(command.text), ":\\", "\\"));
  text +=
      "\n  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe -t commands command commands\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $words[1] in\n"
      "    help) _describe -t commands command commands ;;\n";
  for (const CommandRow& command : commands) {
    text += "    " + command.name + ")\n      _arguments -S";
    for (const OptionRow& option : command.options) text += zsh_option(option);
    for (const OptionRow& argument : command.arguments)
      if (!argument.choices.empty())
        text += " \\\n        '1:" + argument.names[0] + ":(" + words_joined(argument.choices, " ") + ")'";
    text += " \\\n        '*:file:_files' ;;\n";
  }
  return text +
         "  esac\n"
         "}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _sparkle \"$@\"; else compdef _sparkle sparkle; fi\n";
}

std::string completion_for_fish(const std::vector<CommandRow>& commands) {
  std::string text = "# Completion of sparkle for fish, written by 'sparkle completion fish'.\n";
  const std::string line = "complete -c sparkle -n ";
  for (const CommandRow& command : commands) {
    text += line + "__fish_use_subcommand -f -a " + command.name + " -d " +
            shell_word(escaped(short_text(command.text), "\\", "\\"));
    text += "\n";
  }
  text += line + "__fish_use_subcommand -f -l version -d 'Print the version'\n";
  for (const CommandRow& command : commands) {
    const std::string here = line + shell_word("__fish_seen_subcommand_from " + command.name);
    for (const OptionRow& option : command.options) {
      text += here;
      for (const std::string& name : option.names)
        text += name.compare(0, 2, "--") == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (option.takes == Takes::choice) text += " -x -a " + shell_word(words_joined(option.choices, " "));
      if (option.takes == Takes::number) text += " -x";
      if (option.takes == Takes::text) text += " -r -F";
      text += " -d " + shell_word(escaped(short_text(option.text), "\\", "\\")) + "\n";
    }
    for (const OptionRow& argument : command.arguments)
      if (!argument.choices.empty()) text += here + " -f -a " + shell_word(words_joined(argument.choices, " ")) + "\n";
  }
  return text;
}

void add_completion(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("completion", "Print a script by which bash, zsh or fish completes the command");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, &chosen, shell] { chosen = [&app, shell] { return completion(app, *shell); }; });
}

}  // namespace sparkle::cli
