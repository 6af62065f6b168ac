#!/usr/bin/env python3
"""docs/command.md describes every option of every subcommand, and no other: its tables beside `sparkle COMMAND --help`.
tests/command/command_page_test.py SPARKLE"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "command.md"
COMMAND = "sparkle"
# Sections that several commands share, and who has them.
EVERY, PLANNING = "Options of every command", "Options of commands that plan"
NOT_PLANNING = {"devices", "check", "fix", "completion", "man"}
# Of the options of every command these alone, for commands that take no device to run on.
FEW = {"check": ("-h", "--help", "--json", "--threads"), "completion": ("-h", "--help"), "man": ("-h", "--help")}
# Options whose help names what they take in a sentence: each name stands in the page too.
LISTED = {"--algorithm": r"serve: (.*)", "--unit": r"alone: (.*), where", "--preset": r"pictures: (.*)"}


def help_of(*words):
    return subprocess.run([COMMAND, *words, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout


def described():
    """{section: {option: its row}}, a section by the name of its command or by its heading."""
    sections, here = {}, None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        heading = re.match(r"## (?:`sparkle (\w+)[^`]*`|(.*))$", line)
        if heading:
            here = sections.setdefault(heading[1] or heading[2], {})
        elif here is not None and line.startswith("| `-"):
            for option in re.findall(r"`(--?[a-z][\w-]*)", line.split("|")[1]):
                here[option] = line
    if "no 'serve'" in subprocess.run([COMMAND, "serve", "x"], capture_output=True, text=True, timeout=60, check=False).stderr:
        sections.pop("serve")  # a build without it
    return sections


def options_in(text):
    """{option: its text in the help}: lines that begin with it and those that go on below."""
    found, names = {}, []
    for line in text[text.index("Options:"):].splitlines()[1:]:
        if not line.strip():
            break
        option = re.match(r"  (-\S+)", line)
        if option:
            names = [name for name in option[1].split(",") if name.startswith("-")]
        for name in names:
            found[name] = found.get(name, "") + " " + line.strip()
    return found


def words_of(option, text):
    """What an option's help says it takes: {a,b}, or a list in its sentence."""
    choices = re.search(r"\{([\w,]+)\}", text)
    listed = re.search(LISTED[option], text) if option in LISTED else None
    plain = listed[1] if listed else ""
    while "(" in plain and ")" in plain:  # what stands in brackets says more of the word before it
        plain, before = re.sub(r"\([^()]*\)", "", plain), plain
        if plain == before:
            break
    return (choices[1].split(",") if choices else []) + re.findall(r"[\w-]+", plain.replace(" or ", " "))


class Page(unittest.TestCase):
    def test_it_has_a_section_for_each_subcommand(self):
        text = help_of()
        commands = re.findall(r"^  (\w+) ", text[text.index("Subcommands:"):], re.M)
        self.assertGreaterEqual(len(commands), 8, text)
        self.assertEqual(set(commands), {s for s in described() if re.fullmatch("[a-z]+", s)})

    def test_each_option_is_described_and_no_other(self):
        sections = described()
        for command in (s for s in sections if re.fullmatch("[a-z]+", s)):
            shared = [EVERY] + ([] if command in NOT_PLANNING else [PLANNING])
            rows = {**sections[command], **{o: row for s in shared for o, row in sections[s].items()
                                            if command not in FEW or o in FEW[command]}}
            helped = options_in(help_of(command))
            self.assertGreater(len(helped), 1 if command in FEW else 3, command)
            self.assertEqual(set(helped), set(rows), f"sparkle {command}: --help and docs/command.md differ")
            for option, text in helped.items():
                for word in words_of(option, text):
                    self.assertIn(f"`{word}`", rows[option], f"sparkle {command} {option}")

    def test_choices_are_read_from_the_help(self):
        self.assertEqual(words_of("--fit", "--fit TEXT:{crop,none} crop or none"), ["crop", "none"])
        self.assertIn("avx512-vnni", words_of("--unit", options_in(help_of("run"))["--unit"]))
        self.assertIn("winograd6", words_of("--algorithm", options_in(help_of("run"))["--algorithm"]))
        self.assertIn("yolox", words_of("--preset", options_in(help_of("run"))["--preset"]))


def printed(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60, **options).stdout


class Printed(unittest.TestCase):
    """What the command prints of itself: the manual page and completion."""

    def commands(self):
        text = help_of()
        return re.findall(r"^  (\w+) ", text[text.index("Subcommands:"):], re.M)

    def test_the_manual_page_has_every_option(self):
        page = printed(COMMAND, "man")
        self.assertTrue(page.startswith('.\\" '), page[:80])
        for command in self.commands():
            part = page.split(f".SS sparkle {command}")[1].split(".SS ")[0].replace("\\-", "-")
            for option in options_in(help_of(command)):
                self.assertIn(option, part, command)
        if shutil.which("groff"):
            said = subprocess.run(["groff", "-man", "-ww", "-z"], input=page, capture_output=True, text=True, timeout=60,
                                  check=True)
            self.assertEqual(said.stderr, "")

    def complete(self, *words):
        """What bash completes the last word to."""
        script = ("source /dev/stdin; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _sparkle; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return printed("bash", "-c", script, "bash", *words, input=printed(COMMAND, "completion", "bash")).split()

    def test_bash_completes(self):
        self.assertTrue(set(self.commands()) <= set(self.complete("sparkle", "")))
        self.assertEqual(self.complete("sparkle", "dev"), ["devices"])
        for command in self.commands():
            self.assertEqual(set(self.complete("sparkle", command, "-")), set(options_in(help_of(command))), command)
        self.assertEqual(self.complete("sparkle", "run", "--fit", ""), ["crop", "stretch", "letterbox", "none"])
        self.assertEqual(self.complete("sparkle", "run", "--fit", "=", "le"), ["letterbox"])
        self.assertEqual(self.complete("sparkle", "run", "--threads", ""), [])
        self.assertEqual(self.complete("sparkle", "completion", "f"), ["fish"])

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        script = "source (status filename | psub) 2>/dev/null; " + printed(COMMAND, "completion", "fish") + "\ncomplete -C "
        self.assertEqual(printed("fish", "-N", "-c", script + "'sparkle dev'").split("\t")[0], "devices")
        found = printed("fish", "-N", "-c", script + "'sparkle run --fit '").split()
        self.assertTrue({"crop", "stretch", "letterbox", "none"} <= set(found), found)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_its_script(self):
        printed("zsh", "-n", "/dev/stdin", input=printed(COMMAND, "completion", "zsh"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tests/command/command_page_test.py SPARKLE")
    COMMAND = sys.argv.pop()
    unittest.main()
