#!/usr/bin/env python3
"""Whether scripts/reference finds what is missing: mistakes are planted in a copy of include/sparkle and python/sparkle, in
files that are there and in new ones, and its report must name each. Closes with 'N passed, N failed, N skipped'."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
C, SESSION = "include/sparkle/sparkle.h", "python/sparkle/_session.py"
RANK = "  int32_t rank;                    /* how many axes */\n"
PLAN = '        """The plan in its text form, one line per tensor, constant and step; ``inputs`` as of ``explain``."""\n'
# Mistake: (file, what stands there - nothing: the file is new -, what takes its place, words of the report).
MISTAKES = {
    "a function of C without a comment": (C, "/* Its size in bytes. */\n", "", "Member sparkle_buffer_bytes("),
    "a field of C without a comment": (
        C, RANK + "  int64_t shape[SPARKLE_MAX_RANK]; /* the size of each, outermost first */\n  void*",
        "  int32_t rank;\n  int64_t shape[SPARKLE_MAX_RANK]; /* sizes */\n  void*",
        "Member rank (variable) of struct sparkle_tensor "),
    "a class in a new header without a comment": (
        "include/sparkle/newcomer.hpp", "",
        "// New.\n#pragma once\nnamespace sparkle {\nclass Newcomer {\n public:\n  // Made.\n  Newcomer();\n};\n}\n",
        "Compound sparkle::Newcomer is not documented"),
    "a function in a new module without a docstring": (
        "python/sparkle/newcomer.py", "", '"""New."""\n__all__ = ["arrive"]\n\n\ndef arrive():\n    return 1\n',
        "sparkle.newcomer.arrive has no docstring"),
    "an option that no docstring names": (
        "python/sparkle/latecomer.py", "",
        '"""New."""\n__all__ = ["go"]\n\n\ndef go(late=False):\n    """Goes."""\n    return late\n',
        "sparkle.latecomer.go: its docstring does not name the option late"),
    "a method without a docstring": (SESSION, PLAN, "", "sparkle.Session.plan has no docstring"),
    "markup that is none": (SESSION, '"""The results by their names."""', '"""The ``results by their names."""', "as_dict"),
    "a value that shows the folder of its file": (
        "python/sparkle/origin.py", "",
        '"""New."""\nfrom pathlib import Path\n__all__ = ["ORIGIN"]\nORIGIN = str(Path(__file__).parent)\n',
        "sparkle.origin.html names the folder that it was made from"),
    "a link that leads nowhere": (
        SESSION, '"""``run`` for coroutines:', '"""`run <nowhere.html>`__ for coroutines:', "nowhere.html"),
}


def plant(sources):
    """Names of the mistakes for which there is no place any more."""
    lost = []
    for name, (file, old, new, _) in MISTAKES.items():
        place = sources / file
        text = place.read_text(encoding="utf-8") if old else ""
        if old and text.count(old) != 1:
            lost.append(name)
        else:
            place.write_text(text.replace(old, new) if old else new, encoding="utf-8")
    return lost


def main():
    with tempfile.TemporaryDirectory(prefix="sparkle-planted-") as folder:
        sources = pathlib.Path(folder)
        for part in ("include", "python"):
            shutil.copytree(ROOT / part / "sparkle", sources / part / "sparkle", ignore=shutil.ignore_patterns("__pycache__"))
        lost = plant(sources)
        done = subprocess.run([ROOT / "scripts" / "reference", "--sources", sources, "--output", sources / "pages"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=300)
    failed = 0
    for name, (file, _, _, words) in MISTAKES.items():
        wrong = (f"{file} no longer has the text that it takes out" if name in lost else
                 f"'{words}' is not in the report: {done.stdout[-3000:]}" if words not in done.stdout else
                 f"the script ended with status {done.returncode}" if done.returncode != 1 else "")
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok    '}  {name}{': ' + wrong if wrong else ''}")
    print(f"{len(MISTAKES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
