"""Where measuring tools run: in the environment that scripts/setup bench makes, which has the peers. A tool calls enter() after
it has read its arguments, so that --help and mistakes come before anything is installed, and imports what lies there after."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "venv"


def enter():
    if pathlib.Path(sys.prefix).resolve() == VENV:
        return
    subprocess.run([ROOT / "scripts" / "setup", "bench"], check=True)
    os.execv(VENV / "bin" / "python", [str(VENV / "bin" / "python"), *sys.argv])


def add_arguments(parser, rounds):
    """What the tools that compare models with onnxruntime have in common, but for the number of threads."""
    parser.add_argument("--unit", default="", help="hold Sparkle to this unit: avx2; onnxruntime goes on with the widest")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"), help="the command to measure")
    parser.add_argument("--output", type=pathlib.Path, help="file of the result, else bench/results/KIND_MACHINE....json")
