#!/usr/bin/env python3
"""Keeps what the last runs of scripts/demo and scripts/test in clones of this commit took: bench/minutes.py DEMO_CLONE
TEST_CLONE reads build/demo/minutes.json of the one and build/logs/minutes.json of the other, and writes
bench/results/minutes_MACHINE.json. Refuses runs of other commits and with a warm compiler cache."""
import json
import pathlib
import sys

import certificate

KEPT = {"demo": "build/demo/minutes.json", "test": "build/logs/minutes.json"}


def taken(clone, tool, commit):
    file = pathlib.Path(clone) / KEPT[tool]
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"bench/minutes.py: {file} cannot be read ({error}); run scripts/{tool} there.")
    if said["commit"] != commit:
        sys.exit(f"bench/minutes.py: {file} is of commit {said['commit'][:12]}, not {commit[:12]}; run scripts/{tool} again.")
    if said["cache"] != "cold":
        sys.exit(f"bench/minutes.py: {file} is of a run with a warm compiler cache; run scripts/{tool} in a fresh clone.")
    return said


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print("usage: bench/minutes.py DEMO_CLONE TEST_CLONE", file=sys.stderr if len(sys.argv) != 2 else sys.stdout)
        sys.exit(0 if sys.argv[1:] in (["--help"], ["-h"]) else 2)
    made = certificate.certificate(["build/release/sparkle"], "bench/minutes.py DEMO_CLONE TEST_CLONE")
    demo, test = (taken(clone, tool, made["commit"]) for clone, tool in zip(sys.argv[1:], KEPT))
    certificate.store(certificate.RESULTS / f"minutes_{certificate.label(made)}.json", made, {"demo": demo, "test": test})


if __name__ == "__main__":
    main()
