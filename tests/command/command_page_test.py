#!/usr/bin/env python3
"""docs/command.md describes every option of every subcommand, and no other: its tables beside `sparkle COMMAND --help`.
tests/command/command_page_test.py SPARKLE"""
import pathlib
import re
import subprocess
import sys
import unittest

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "command.md"
COMMAND = "sparkle"
# Sections that several commands share, and who has them.
EVERY, PLANNING = "Options of every command", "Options of commands that plan"
NOT_PLANNING = {"devices", "check", "fix"}
# Of the options of every command these alone, for commands that take no device to run on.
FEW = {"check": ("-h", "--help", "--json", "--threads")}
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
            self.assertGreater(len(helped), 3, command)
            self.assertEqual(set(helped), set(rows), f"sparkle {command}: --help and docs/command.md differ")
            for option, text in helped.items():
                for word in words_of(option, text):
                    self.assertIn(f"`{word}`", rows[option], f"sparkle {command} {option}")

    def test_choices_are_read_from_the_help(self):
        self.assertEqual(words_of("--fit", "--fit TEXT:{crop,none} crop or none"), ["crop", "none"])
        self.assertIn("avx512-vnni", words_of("--unit", options_in(help_of("run"))["--unit"]))
        self.assertIn("winograd6", words_of("--algorithm", options_in(help_of("run"))["--algorithm"]))
        self.assertIn("yolox", words_of("--preset", options_in(help_of("run"))["--preset"]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tests/command/command_page_test.py SPARKLE")
    COMMAND = sys.argv.pop()
    unittest.main()
