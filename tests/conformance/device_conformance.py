#!/usr/bin/env python3
"""Test directories on a GPU's backend:
tests/conformance/device_conformance.py SPARKLE vulkan|cuda [--write [--add] | --sample N SEED] [--on-host] FOLDER...

Every directory with vectors below the folders runs as `sparkle verify --device DEVICE --fallback forbid` does it. What is not
computed there must stand in tests/conformance/DEVICE_refusals.tsv with the words of its refusal; a wrong value, a refusal
that is not listed, a listed one that says something else and a listed one that passes are failures. --write takes what
passes out of the list and puts the words of today into it; a directory that is not listed stays a failure, since it may
have passed yesterday, unless --add says that it is a new one. Wrong values never get into the list. --sample takes one in N
of the directories, chosen by the seed. --on-host runs those alone that the list has for a missing kernel, with `--fallback
warn`: the CPU computes such steps between the device's and nothing else, and each must pass. Ends with 'N passed, N failed,
N skipped'."""

import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
DEVICES = ("vulkan", "cuda")
CHUNK = 40  # directories of a process
# A kernel that its self-test bans is none that is missing.
NO_KERNEL = re.compile(r"there is no \w+ kernel for the \w+ family|no \w+ kernel of the \w+ family supports it(?!; banned)")
UNSUPPORTED = re.compile(r"not supported|cannot store single elements of \d+ bits")  # operators, forms and types


def words_of(detail):
    """The part of a refusal that does not name the node; None for anything else, such as a wrong value."""
    found = NO_KERNEL.search(detail)
    if found:
        return found.group(0)
    return re.sub(r"^(Node|Step) '[^']*'[^:]*: ?", "", detail) if UNSUPPORTED.search(detail) else None


def directories(folders):
    found = set()
    for folder in folders:
        for data in pathlib.Path(folder).rglob("test_data_set_*"):
            found.add(data.parent)
    return sorted(found)


def in_sample(directory, share, seed):
    return int.from_bytes(hashlib.sha256(f"{seed} {directory.name}".encode()).digest()[:8], "big") % share == 0


def verify(sparkle, device, chunk, fallback):
    """Verdicts by directory; a process that dies fails the directories that it said nothing of."""
    command = [sparkle, "verify", "--device", device, "--fallback", fallback, *map(str, chunk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = re.findall(r"^(PASS|FAIL|SKIP)  (\S+) +(.*)$", done.stdout, re.M)
    verdicts = {name: (verdict, detail) for verdict, name, detail in lines}
    said = done.stderr.strip().splitlines()[-1:] or [""]
    silent = ("FAIL", f"the command ended with status {done.returncode} and said nothing of it: {said[0]}")
    return [(directory, verdicts.get(directory.name, silent)) for directory in chunk]


def list_of(device):
    return SOURCE / f"{device}_refusals.tsv"


def read_list(path):
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            name, words = line.split("\t")
            rows[name] = words
    return rows


def disputed():
    text = (SOURCE.parent / "disputed_vectors.tsv").read_text(encoding="utf-8")
    return {line.split("\t")[0]: line.split("\t")[1] for line in text.splitlines() if "\t" in line}


def judged(results, expected, write, add, listed):
    """Failures as lines, the refusals that the list is to have, and how many directories passed and were skipped."""
    failures, refusals, passed, skipped = [], {}, 0, 0
    for directory, (verdict, detail) in results:
        name = directory.name
        words = None if verdict == "PASS" else words_of(detail)
        if verdict == "PASS" and (write or name not in expected):
            passed += 1
        elif verdict == "PASS":
            refusals[name] = expected[name]
            failures.append(f"{name} passes, but stands in {listed}; --write takes it out")
        elif words and (expected.get(name) == words or (write and (add or name in expected))):
            refusals[name] = words
            skipped += 1
        else:
            if name in expected:
                refusals[name] = expected[name]
            missing = bool(words) and name not in expected
            failures.append(f"{name}: {detail}" + ("; it is not listed: if it never passed, --write --add" * missing))
    return failures, refusals, passed, skipped


def main():
    options = {"--write", "--add", "--on-host"}
    write, add, on_host = "--write" in sys.argv, "--add" in sys.argv, "--on-host" in sys.argv
    arguments = [a for a in sys.argv[1:] if a not in options]
    share, seed = 1, 0
    if "--sample" in arguments and not write:
        at = arguments.index("--sample")
        numbers = [int(a) for a in arguments[at + 1 : at + 3] if a.isdecimal()]
        if len(numbers) != 2 or numbers[0] < 1:
            sys.exit("tests/conformance/device_conformance.py: --sample takes two numbers, one in how many and the seed.")
        share, seed = numbers
        del arguments[at : at + 3]
    if len(arguments) < 3 or arguments[1] not in DEVICES or (add and not write) or (on_host and write):
        usage = "SPARKLE vulkan|cuda [--write [--add] | --sample N SEED] [--on-host] FOLDER..."
        sys.exit(f"usage: device_conformance.py {usage}")
    sparkle, device, folders = arguments[0], arguments[1], arguments[2:]
    against_specification = disputed()
    chosen = [d for d in directories(folders) if d.name not in against_specification]
    names = [d.name for d in chosen]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        sys.exit(f"Two directories have the name {twice[0]}, and the list goes by names; rename one.")
    if share > 1:
        found = len(chosen)
        chosen = [d for d in chosen if in_sample(d, share, seed)]
        print(f"{len(chosen)} of {found} directories, chosen by seed {seed}")
    path = list_of(device)
    expected = read_list(path)
    if on_host:
        chosen = [d for d in chosen if NO_KERNEL.search(expected.get(d.name, ""))]
        expected = {}
    chunks = [chosen[i : i + CHUNK] for i in range(0, len(chosen), CHUNK)]
    fallback = "warn" if on_host else "forbid"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [row for rows in pool.map(lambda chunk: verify(sparkle, device, chunk, fallback), chunks) for row in rows]

    failures, refusals, passed, skipped = judged(results, expected, write, add, path.name)
    for line in failures:
        print(f"FAIL  {line}")
    if write:
        rows = {**{n: w for n, w in expected.items() if n not in set(names)}, **refusals}
        script = "tests/conformance/device_conformance.py --write"
        head = f"# What the backend {device} refuses: test directory, TAB, words; {script}.\n"
        path.write_text(head + "".join(f"{n}\t{rows[n]}\n" for n in sorted(rows)), encoding="utf-8")
    counts = {}
    for words in refusals.values():
        counts[words] = counts.get(words, 0) + 1
    for words, count in sorted(counts.items(), key=lambda item: -item[1])[:12]:
        print(f"{count:5} refused: {words}")
    print(f"{passed} passed, {len(failures)} failed, {skipped} skipped")
    sys.exit(len(failures) > 0)


if __name__ == "__main__":
    main()
