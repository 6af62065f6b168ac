"""How measuring tools store a result: what they measured with the certificate that `sparkle certificate` writes, in one place.
The commit is that of the command which was measured; clean says that it was built from that commit and the tools are of it."""
import json
import os
import pathlib
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
# What may differ from the commit without any measurement feeling it; cmake/write_build_stamp.cmake has the same list.
TEXTS = [":(exclude)bench/results", ":(exclude)docs", ":(exclude)*.md"]


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def certificate(sparkle, command, versions=None):
    """The certificate of a run of `command`; `sparkle` is the words that start the command measured."""
    words = [*sparkle, "certificate", "--command", command]
    for name, version in (versions or {}).items():
        words += ["--version", f"{name}={version}"]
    made = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    # The command knows what it was built from; the tool around it must be of the same commit, and unchanged.
    made["clean"] = bool(made["clean"] and git("rev-parse", "HEAD") == made["commit"]
                         and git("status", "--porcelain", "--", ".", *TEXTS) == "")
    return made


def label(made):
    """Of a machine, for names of files: amd_epyc_zen5."""
    words = f"{made['cpu']['name']} {made['cpu']['architecture']}".lower()
    return "_".join("".join(c if c.isalnum() else " " for c in words).split())


def run_again(words, tool, attempts=3):
    """What a command prints. One that calls its own measurement wrong (status 1: a rate above the roof, while somebody else had
    the machine) is run again, and every attempt is told."""
    for attempt in range(1, attempts + 1):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        print(f"{tool}: attempt {attempt} of {attempts}: {done.stderr.strip()}", flush=True)
        if done.returncode != 1:
            break
    raise SystemExit(f"{tool}: {shlex.join(['sparkle', *words[1:]])} ended with status {done.returncode}")


def command_of(script, arguments):
    return shlex.join([script, *arguments])


def store(file, certified, body):
    """Writes {"certificate": ..., **body} beside `file` and puts it in its place."""
    file = pathlib.Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(json.dumps({"certificate": certified, **body}, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, file)
    print(f"written: {os.path.relpath(file, ROOT)}")
    if not certified["clean"] or certified["commit"] == "unknown":
        print("         its tree was not clean or its commit is not known: scripts/check takes no figure from it")
