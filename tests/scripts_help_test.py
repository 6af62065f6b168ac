#!/usr/bin/env python3
"""--help of each program in scripts/ prints what it is for, and does nothing else: the environment holds no package manager, no
compiler and no network, and no file of the tree changes. tests/scripts_help_test.py"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    wrong = []
    scripts = sorted(p for p in (ROOT / "scripts").iterdir() if p.is_file() and os.access(p, os.X_OK))
    with tempfile.TemporaryDirectory() as folder:
        tools = pathlib.Path(folder) / "bin"
        tools.mkdir()
        for tool in ("bash", "sh", "env", "sed", "python3"):  # nothing that installs, builds or fetches
            there = [pathlib.Path(d) / tool for d in ("/usr/bin", "/bin")]
            (tools / tool).symlink_to(next(p for p in there if p.exists()))
        for script in scripts:
            environment = {"PATH": str(tools), "HOME": folder, "PYTHONDONTWRITEBYTECODE": "1"}
            run = subprocess.run([script, "--help"], cwd=folder, capture_output=True, text=True, timeout=60,
                                 stdin=subprocess.DEVNULL, env=environment)
            if run.returncode != 0 or len(run.stdout.split()) < 8 or run.stderr:
                wrong.append(f"scripts/{script.name} --help: status {run.returncode}, '{run.stdout[:80]}', "
                             f"'{run.stderr[:200]}'")
        left = [p.name for p in pathlib.Path(folder).iterdir() if p.name != "bin"]
        if left:
            wrong.append(f"--help wrote {', '.join(left)}")
    print("\n".join(wrong + [f"{len(scripts) - len(wrong)} passed, {len(wrong)} failed, 0 skipped"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
