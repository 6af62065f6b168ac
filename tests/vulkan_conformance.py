#!/usr/bin/env python3
"""Test directories on a Vulkan device: tests/vulkan_conformance.py SPARKLE [--write] FOLDER...

Every directory with vectors below the folders runs as `sparkle verify --device vulkan --fallback forbid` does it. What is
not computed there must stand in tests/vulkan_refusals.tsv with the words of its refusal; a wrong value, a refusal that is not
listed, a listed one that says something else and a listed one that passes are failures. --write makes the list anew; wrong
values never get into it. Ends with 'N passed, N failed, N skipped'.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
LIST = SOURCE / "vulkan_refusals.tsv"
CHUNK = 40  # directories of a process
NO_KERNEL = re.compile(r"there is no Vulkan kernel for the \w+ family")
NOT_SERVED = re.compile(r"not served|cannot store single elements of \d+ bits")  # operators, forms and types


def words_of(detail):
    """The part of a refusal that does not name the node; None for anything else, such as a wrong value."""
    found = NO_KERNEL.search(detail)
    if found:
        return found.group(0)
    return re.sub(r"^(Node|Step) '[^']*'[^:]*: ?", "", detail) if NOT_SERVED.search(detail) else None


def directories(folders):
    found = set()
    for folder in folders:
        for data in pathlib.Path(folder).rglob("test_data_set_*"):
            found.add(data.parent)
    return sorted(found)


def verify(sparkle, chunk):
    """Verdicts by directory; a process that dies fails the directories it did not come to."""
    command = [sparkle, "verify", "--device", "vulkan", "--fallback", "forbid", *map(str, chunk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = re.findall(r"^(PASS|FAIL|SKIP)  (\S+) +(.*)$", done.stdout, re.M)
    verdicts = [(verdict, detail) for verdict, _, detail in lines]
    missing = len(chunk) - len(verdicts)
    said = done.stderr.strip().splitlines()[-1:] or [""]
    verdicts += [("FAIL", f"the command ended with status {done.returncode} before it: {said[0]}")] * missing
    return list(zip(chunk, verdicts))


def read_list():
    rows = {}
    for line in LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []:
        if line and not line.startswith("#"):
            name, words = line.split("\t")
            rows[name] = words
    return rows


def disputed():
    text = (SOURCE / "disputed_vectors.tsv").read_text(encoding="utf-8")
    return {line.split("\t")[0]: line.split("\t")[1] for line in text.splitlines() if "\t" in line}


def main():
    arguments = sys.argv[1:]
    write = "--write" in arguments
    arguments = [a for a in arguments if a != "--write"]
    if len(arguments) < 2:
        sys.exit("usage: tests/vulkan_conformance.py SPARKLE [--write] FOLDER...")
    sparkle, folders = arguments[0], arguments[1:]
    against_specification = disputed()
    chosen = [d for d in directories(folders) if d.name not in against_specification]
    chunks = [chosen[i : i + CHUNK] for i in range(0, len(chosen), CHUNK)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [row for rows in pool.map(lambda chunk: verify(sparkle, chunk), chunks) for row in rows]

    expected = read_list()
    refusals, passed, failed, skipped = {}, 0, 0, 0
    for directory, (verdict, detail) in results:
        name = directory.name
        words = None if verdict == "PASS" else words_of(detail)
        if words:
            refusals[name] = words
        if verdict == "PASS" and name not in expected:
            passed += 1
        elif verdict == "PASS":
            failed += not write
            passed += write
            if not write:
                print(f"FAIL  {name} passes, but stands in {LIST.name}; take it out")
        elif words and (write or expected.get(name) == words):
            skipped += 1
        else:
            failed += 1
            print(f"FAIL  {name}: {detail}")
    if write:
        rows = {**{n: w for n, w in expected.items() if n not in {d.name for d in chosen}}, **refusals}
        head = "# What the Vulkan backend refuses: test directory, TAB, words; tests/vulkan_conformance.py --write.\n"
        LIST.write_text(head + "".join(f"{n}\t{rows[n]}\n" for n in sorted(rows)), encoding="utf-8")
    counts = {}
    for words in refusals.values():
        counts[words] = counts.get(words, 0) + 1
    for words, count in sorted(counts.items(), key=lambda item: -item[1])[:12]:
        print(f"{count:5} refused: {words}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
