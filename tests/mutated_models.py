#!/usr/bin/env python3
"""Damaged models through `sparkle run` and `sparkle explain`: no signal, no time-out over 10 s, no silent exit.

tests/mutated_models.py SPARKLE COUNT [SEED]. Models come from tests/vectors and models/, and the small ones in ../shared/data
beside the clone where they are. Each is truncated, has bits flipped, numbers of its wire format changed, pieces doubled,
dropped or exchanged. Closes with 'N passed, N failed, N skipped'; what fails is kept in build/mutants."""
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 10
MEMORY = 8 << 30  # address space of the program: a mutant must not allocate beyond what it justifies


def sources():
    found = sorted((ROOT / "tests" / "vectors").glob("*/model.onnx")) + sorted((ROOT / "models").glob("*.onnx"))
    shared = ROOT.parent / "shared" / "data" / "models"
    found += [m for m in sorted(shared.glob("*/*.onnx")) if m.stat().st_size < 2_000_000]
    return found


def mutate(data, pick):
    data = bytearray(data)
    for _ in range(pick.choice([1, 1, 1, 2, 4, 16])):
        if len(data) < 8:
            break
        at = pick.randrange(len(data))
        kind = pick.randrange(8)
        if kind == 0:
            data[at] ^= 1 << pick.randrange(8)
        elif kind == 1:
            data[at] = pick.choice([0, 1, 0x7F, 0x80, 0xFF, pick.randrange(256)])
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at:at + pick.randrange(1, 64)]
        elif kind == 4:
            data[at:at] = data[at:at + pick.randrange(1, 64)]
        elif kind == 5:
            data[at:at] = bytes([0xFF] * pick.randrange(1, 10) + [pick.randrange(128)])  # a long varint
        elif kind == 6:
            other = pick.randrange(len(data))
            length = pick.randrange(1, 32)
            data[at:at + length], data[other:other + length] = data[other:other + length], data[at:at + length]
        else:
            near = data.find(pick.choice([b"Conv", b"kernel_shape", b"pads", b"axis", b"input", b"strides", b"shape"]))
            if near >= 0:
                data[min(len(data) - 1, near + pick.randrange(24))] = pick.randrange(256)
    return bytes(data)


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def trouble(command):
    """What is wrong with how the command ended, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return f"took more than {SECONDS} s"
    if done.returncode < 0 or done.returncode > 3:
        return f"ended with status {done.returncode}: {done.stderr.decode(errors='replace').strip()[-200:]}"
    if done.returncode != 0 and not done.stderr.strip():
        return f"ended with status {done.returncode} and said nothing"
    if done.returncode == 0 and not done.stdout.strip():
        return "ended well and said nothing"
    return None


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    pick = random.Random(seed)
    models = sources()
    keep = ROOT / "build" / "mutants"
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "mutant.onnx"
        for i in range(count):
            model = pick.choice(models)
            file.write_bytes(mutate(model.read_bytes(), pick))
            for verb in ("explain", "run"):
                problem = trouble([program, verb, str(file), "--memory-budget", "2G"])
                if problem:
                    failed += 1
                    keep.mkdir(parents=True, exist_ok=True)
                    kept = keep / f"{seed}_{i}.onnx"
                    kept.write_bytes(file.read_bytes())
                    print(f"FAILED  {verb} {kept.relative_to(ROOT)} (from {model.parent.name}): {problem}")
    print(f"{2 * count - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
