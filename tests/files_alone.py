#!/usr/bin/env python3
"""Whether files of the library include what they need: tests/files_alone.py SHARE SEED [BUILD_FOLDER]

Compiles one in SHARE of src/**/*.cc, chosen by the seed, each by itself and without making code (clang 19); builds that take
files in groups would not show a missing include. BUILD_FOLDER, build/release by default, has the generated headers and, in
compile_commands.json, where files of src look for headers and what is defined for them. Ends with
'N passed, N failed, N skipped'."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", "-fsyntax-only", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion",
         "-Wno-deprecated-declarations"]


def chosen(share, seed):
    files = sorted(f for f in (ROOT / "src").rglob("*.cc") if not f.name.endswith("_test.cc"))
    part = [f for f in files if int(hashlib.sha256(f"{seed} {f.relative_to(ROOT)}".encode()).hexdigest()[:8], 16) % share == 0]
    return part, len(files)


def build_flags(folder):
    """Every include folder and every first definition of a name that the build gives to files of src, of tests none."""
    folders, definitions = [], {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        if not (ROOT / "src") in pathlib.Path(entry["file"]).parents or entry["file"].endswith("_test.cc"):
            continue
        words = shlex.split(entry["command"])
        for word, following in zip(words, words[1:]):
            if word == "-isystem" and (word, following) not in folders:
                folders.append((word, following))
            elif word.startswith("-I") and (word,) not in folders and word != f"-I{ROOT / 'tests'}":
                folders.append((word,))
            elif word.startswith("-D"):
                definitions.setdefault(word.split("=")[0], word)
    return [word for words in folders for word in words] + list(definitions.values())


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: tests/files_alone.py SHARE SEED [BUILD_FOLDER]")
    share, seed = int(sys.argv[1]), int(sys.argv[2])
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) == 4 else ROOT / "build" / "release").resolve()
    files, all_files = chosen(share, seed)
    if not (folder / "compile_commands.json").exists() or not (folder / "shaders").exists():
        print(f"SKIP  files alone: {folder.relative_to(ROOT) if ROOT in folder.parents else folder} has no build")
        print("0 passed, 0 failed, 1 skipped")
        return
    if not (folder / "generated" / "inference" / "inference.pb.h").exists():  # a build without gRPC
        files = [f for f in files if f.parent.name != "grpc"]
    print(f"{len(files)} of {all_files} files, chosen by seed {seed}")
    flags = FLAGS + build_flags(folder)

    def alone(file):
        command = ["clang++-19", *flags, str(file.relative_to(ROOT))]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, done in zip(files, pool.map(alone, files)):
            if done.returncode or "warning:" in done.stderr:
                failed += 1
                print(f"FAILED  {file.relative_to(ROOT)} by itself:")
                print("        " + "\n        ".join(done.stderr.splitlines()[:6]))
    print(f"{len(files) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
