#!/usr/bin/env python3
"""Runs the examples of README.md and docs/*.md that are shell commands, C, C++ or CMake:
tests/examples_test.py BUILD [PAGE...].

Each page has a folder of its own, with models/ and its like beside. Shell blocks run in order, by the command of the build.
Blocks of C++ without a main are one program, in order; it is built by the page's CMake block, against an installed copy. One
line a block, closing with 'N passed, N failed, N skipped'; tests/page_examples.py says how blocks are marked. Python:
tests/python/test_page_examples.py."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import page_examples

ROOT = pathlib.Path(__file__).resolve().parent.parent
CMAKE = """cmake_minimum_required(VERSION 3.16)
project(example C CXX)
find_package(sparkle REQUIRED)
add_executable(example example.cc)
target_link_libraries(example PRIVATE sparkle::sparkle)
"""
SECONDS = 120


def run(words, folder, variables):
    """What went wrong, or nothing."""
    try:
        done = subprocess.run(words, cwd=folder, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {SECONDS} s: {' '.join(map(str, words))[:200]}"
    if done.returncode == 0:
        return ""
    return f"status {done.returncode}\n{(done.stdout + done.stderr)[-1500:]}"


def run_shell(example, folder, variables):
    """`bench` calls itself wrong where another program slowed the probe of a roof: it is given two more chances."""
    for _ in range(3 if "sparkle bench" in example.text else 1):
        wrong = run(["bash", "-euo", "pipefail", "-c", example.text], folder, variables)
        if not wrong.startswith("status 1\n"):
            break
    return wrong


def program(parts):
    """C++ blocks as one file: those with a main as they are, the others in order inside one."""
    headers, body = ["#include <sparkle/sparkle.hpp>"], []
    for example in parts:
        if re.search(r"^int main\(", example.text, re.M):
            return f'#line {example.line} "{example.page}"\n{example.text}'
        body.append(f'#line {example.line} "{example.page}"')
        for line in example.text.splitlines():
            (headers if line.startswith("#include") else body).append(line)
            if line.startswith("#include"):
                body.append("")
    return "\n".join([*headers, "int main() {", *body, "}", ""])


def programs(parts):
    """Lists of blocks that are a program together."""
    alone = [[e] for e in parts if e.language == "c" or re.search(r"^int main\(", e.text, re.M)]
    together = [e for e in parts if [e] not in alone]
    return ([together] if together else []) + alone


def build_and_run(parts, cmake, folder, variables, cache):
    """By the page's own CMake block, whose source file and target it is; C as C."""
    text = cmake.text if cmake else CMAKE
    target = re.search(r"add_executable\((\w+) (\S+)\)", text)
    if not target:
        return "the CMake block has no add_executable(NAME FILE)"
    name, source = target[1], target[2]
    if parts[0].language == "c":
        text, source = text.replace(source, "example.c").replace(" CXX)", " C)"), "example.c"
    place = pathlib.Path(folder) / f"program_{parts[0].line}"
    place.mkdir()
    (place / "CMakeLists.txt").write_text(text, encoding="utf-8")
    (place / source).write_text(parts[0].text if source == "example.c" else program(parts), encoding="utf-8")
    flags = "-Wall -Wextra -Werror -Wno-unused-variable"
    settings = {"CMAKE_PREFIX_PATH": variables["PREFIX"], "CMAKE_CXX_STANDARD": "17", "CMAKE_CXX_FLAGS": flags,
                "CMAKE_C_FLAGS": flags, **{key: cache[key] for key in ("CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER")}}
    return (run(["cmake", "-G", "Ninja", "-S", place, "-B", place / "build", "--no-warn-unused-cli",
                 *[f"-D{key}={value}" for key, value in settings.items()]], folder, variables)
            or run(["cmake", "--build", place / "build"], folder, variables)
            or run([place / "build" / name], folder, variables))


def cache_of(build):
    found = re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M)
    return dict(found)


def has_vulkan(variables):
    said = subprocess.run(["sparkle", "devices"], env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    listed = [line for line in said.stdout.splitlines() if re.match(r" *vulkan:\d", line)]
    return any("cannot be used" not in line for line in listed)


class Tally:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def skip(self, example, reason):
        self.counts["skipped"] += 1
        print(f"SKIP    {example.name} ({example.language}): {reason}")

    def add(self, parts, wrong):
        self.counts["failed" if wrong else "passed"] += len(parts)
        for example in parts:
            print(f"{'FAILED ' if wrong else 'ok     '} {example.name} ({example.language})")
        if wrong:
            print("        " + wrong.replace("\n", "\n        "), flush=True)


def run_page(found, folder, variables, cache, tally):
    page_examples.fill(folder, ROOT)
    kept = []
    for example in found:
        if example.not_run:
            tally.skip(example, example.not_run)
        elif example.needs and not has_vulkan(variables):
            tally.skip(example, f"it needs {example.needs}, which is not here")
        elif example.language == "sh":
            tally.add([example], run_shell(example, folder, variables))
        elif example.language != "python":
            kept.append(example)
    cmake = next((e for e in kept if e.language == "cmake"), None)
    lists = programs([e for e in kept if e.language != "cmake"])
    for parts in lists:
        tally.add(parts, build_and_run(parts, cmake, folder, variables, cache))
    if cmake:
        tally.add([cmake], "" if lists else "no program stands on this page that it could build")


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: tests/examples_test.py BUILD [PAGE...]")
    build, chosen, tally = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:], Tally()
    try:
        found = page_examples.examples(ROOT)
    except page_examples.Wrong as wrong:
        print(f"FAILED  {wrong}\n0 passed, 1 failed, 0 skipped")
        sys.exit(1)
    cache = cache_of(build)
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        prefix = top / "prefix"
        wrong = run(["cmake", "--install", build, "--prefix", prefix], top, {})
        if wrong:
            sys.exit(f"tests/examples_test.py: '{build}' cannot be installed: {wrong}")
        library = next(prefix.rglob("libsparkle.so")).parent
        variables = {"PATH": f"{prefix / 'bin'}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(library), "PREFIX": str(prefix),
                     "XDG_CACHE_HOME": str(top / "cache"), "VK_LOADER_LAYERS_DISABLE": "~implicit~",
                     "LP_NATIVE_VECTOR_WIDTH": "128"}
        for page in dict.fromkeys(e.page for e in found):
            if not chosen or page in chosen:
                folder = top / page.replace("/", "_")
                folder.mkdir()
                run_page([e for e in found if e.page == page], folder, variables, cache, tally)
    counts = tally.counts
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
