"""docs/python.md lists what each option of `sparkle fix`, `check` and `report` is called in Python; here the list meets the
commands' --help and the functions' parameters."""
import inspect
import os
import pathlib
import re
import subprocess

import pytest

import sparkle

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = pathlib.Path(os.environ.get("SPARKLE_COMMAND", ROOT / "build" / "release" / "sparkle"))
FUNCTIONS = {"fix": sparkle.fix, "check": sparkle.check, "report": sparkle.Session.report}
# What a command takes as plain words, by the parameter's name.
WORDS = {"fix": {"model", "samples"}, "check": {"model"}, "report": {"self"}}


def listed():
    """{command: {option: parameter, or nothing}}"""
    found = {name: {} for name in FUNCTIONS}
    for line in (ROOT / "docs" / "python.md").read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| `(\w+)` \| (`-.*`) \| (.*) \|$", line)
        if not row:
            continue
        parameter = re.match(r"`(\w+)`", row[3])
        assert parameter or re.match(r"nothing: \S", row[3]), line
        for option in re.findall(r"`(--[\w-]+)`", row[2]):
            assert option not in found[row[1]], f"{row[1]} {option} is listed twice"
            found[row[1]][option] = parameter[1] if parameter else ""
    return found


@pytest.mark.parametrize("command", FUNCTIONS)
def test_the_list_has_all_parameters(command):
    parameters = set(inspect.signature(FUNCTIONS[command]).parameters)
    assert parameters == WORDS[command] | {name for name in listed()[command].values() if name}


@pytest.mark.skipif(not COMMAND.is_file(), reason="the command is not built here")
@pytest.mark.parametrize("command", FUNCTIONS)
def test_the_list_has_all_options(command):
    text = subprocess.run([COMMAND, command, "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
    options = set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.MULTILINE)) - {"--help"}
    assert options == set(listed()[command])


def test_defaults_are_those_of_the_command():
    """As docs/command.md says them."""
    page = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    defaults = {name: p.default for name, p in inspect.signature(sparkle.fix).parameters.items()}
    for option, pattern in (("max-extra", r"; (\d+) by default"), ("percentile", r"; ([\d.]+) by default"),
                            ("min-agreement", r"; (\d+) by default")):
        row = re.search(rf"^\| `--{option} .*$", page, re.MULTILINE)[0]
        assert float(re.search(pattern, row)[1]) == defaults[option.replace("-", "_")], row
    assert f"`{defaults['calibration']}` (the default" in page


def test_everything_public_says_what_it_is():
    for name in sparkle.__all__:
        assert getattr(sparkle, name).__doc__, name
    for function in (sparkle.fix, sparkle.check, sparkle.Session.report):
        assert "Errors:" in function.__doc__, function.__name__
        for name in inspect.signature(function).parameters:
            assert name in {"self", "model", "output", "inputs"} or f"``{name}" in function.__doc__, name
            assert name in function.__annotations__ or name == "self", name
