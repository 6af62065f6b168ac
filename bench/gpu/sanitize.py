#!/usr/bin/env python3
"""compute-sanitizer over kernels of a family: sanitize.py compute-sanitizer TOOL SPARKLE KERNEL...

Each kernel runs on small operands of odd sizes (`sparkle verify --kernels`), in a process of its own, which the tool follows.
Exit status: 0 nothing found, 9 something found, 77 the tool does not work here, and the last line says why; else the command's
own."""

import re
import subprocess
import sys

FOUND, SKIPPED = 9, 77
SUMMARY = re.compile(r"========= (ERROR|RACECHECK) SUMMARY: (\d+)")
# What the tool says where it cannot look at a program at all.
BROKEN = (
    "Internal Sanitizer Error",
    "Unable to find injection library",
    "Device not supported",
    "is not supported on this device",
    "No attachable process found",
    "terminated before first instrumented API call",
    "insufficient permission",
    "ERR_NVGPUCTRPERM",
)


def verdict(status, text):
    """(exit status, a line that says why)."""
    broken = next((line.strip() for line in text.splitlines() if any(words in line for words in BROKEN)), "")
    summaries = [int(count) for _, count in SUMMARY.findall(text)]
    if any(summaries):
        return FOUND, f"the tool counts {sum(summaries)} errors"
    if broken or not summaries:
        return SKIPPED, f"compute-sanitizer does not work here: {broken or 'it says no summary'}"
    if status:
        return status, "nothing was found, and the command failed"
    return 0, "nothing was found"


def main():
    tool, which, *command = sys.argv[1:]
    options = ["--tool", which, "--target-processes", "all", "--error-exitcode", str(FOUND)]
    sparkle, *kernels = command
    try:
        done = subprocess.run(
            [tool, *options, sparkle, "verify", "--kernels", "--device", "cuda", *kernels],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )
    except OSError as error:
        print(f"compute-sanitizer cannot be started: {error.strerror}")
        return SKIPPED
    print(done.stdout)
    status, why = verdict(done.returncode, done.stdout)
    print(why)
    return status


if __name__ == "__main__":
    sys.exit(main())
