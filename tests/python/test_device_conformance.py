"""The judge of test directories on a GPU's backend, behind a command that says what the test wants."""

import importlib.util
import pathlib
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "conformance" / "device_conformance.py"
REFUSED = "Node 'n' (Op): there is no Vulkan kernel for the scan family"
WORDS = "there is no Vulkan kernel for the scan family"


@pytest.fixture
def judge(tmp_path, monkeypatch, capsys):
    """Runs the script: what the command says of each directory, what is listed before and after, the lines it prints."""
    spec = importlib.util.spec_from_file_location("device_conformance", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def run(says, listed, *options, names=("a", "b", "c")):
        for name in names:
            (tmp_path / "vectors" / name / "test_data_set_0").mkdir(parents=True, exist_ok=True)
        command = tmp_path / "sparkle"
        lines = "".join(f"{verdict}  {name:48} {detail}\n" for verdict, name, detail in says)
        command.write_text(f"#!/bin/sh\ncat <<'END'\n{lines}END\nexit 1\n", encoding="utf-8")
        command.chmod(0o755)
        listing = tmp_path / "list.tsv"
        script.list_of = lambda device: listing
        listing.write_text("".join(f"{n}\t{w}\n" for n, w in listed.items()), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["script", str(command), "vulkan", *options, str(tmp_path / "vectors")])
        with pytest.raises(SystemExit) as ended:
            script.main()
        return ended.value.code, script.read_list(listing), capsys.readouterr().out

    return run


def test_verdicts_go_by_name(judge):
    code, _, out = judge([("PASS", "c", "1 set"), ("FAIL", "a", "wrong")], {})
    assert code
    assert "FAIL  a: wrong" in out
    assert "FAIL  b: the command ended with status 1" in out
    assert "1 passed, 2 failed, 0 skipped" in out


def test_listed_refusals_are_skipped_and_those_that_pass_fail(judge):
    says = [("FAIL", "a", REFUSED), ("PASS", "b", "1 set"), ("PASS", "c", "1 set")]
    code, listed, out = judge(says, {"a": WORDS, "b": WORDS})
    assert code
    assert "FAIL  b passes, but stands in list.tsv; --write takes it out" in out
    assert "1 passed, 1 failed, 1 skipped" in out
    assert listed == {"a": WORDS, "b": WORDS}
    code, listed, out = judge(says, {"a": WORDS, "b": WORDS, "elsewhere": WORDS}, "--write")
    assert not code
    assert listed == {"a": WORDS, "elsewhere": WORDS}


def test_regressions_are_not_written_down(judge):
    says = [("FAIL", "a", REFUSED), ("FAIL", "b", REFUSED), ("FAIL", "c", "largest error 0.5")]
    code, listed, out = judge(says, {"a": "other words", "c": WORDS}, "--write")
    assert code
    assert "FAIL  b: Node" in out and "--write --add" in out
    assert "0 passed, 2 failed, 1 skipped" in out
    assert listed == {"a": WORDS, "c": WORDS}
    code, listed, _ = judge(says, {"a": WORDS, "c": WORDS}, "--write", "--add")
    assert code  # the wrong value
    assert listed == {"a": WORDS, "b": WORDS, "c": WORDS}
