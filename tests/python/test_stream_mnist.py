"""`sparkle run` on the 10,000 test digits of MNIST as a stream: as many right as the golden engine, in order, in flat memory;
killed in the middle and gone on with, the file is the same; of files that cannot be read each is named."""
import csv
import gzip
import pathlib
import signal
import subprocess
import time

import numpy as np
import pytest
from serving import COMMAND

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"
MODEL = DATA / "models" / "mnist-8" / "mnist-8.onnx"
RIGHT = 9891  # of 10,000 by mnist-8
MOST_BYTES = 200 << 20  # resident, however many items come; the items alone are 31 MB as the model takes them

pytestmark = [
    pytest.mark.skipif(not (DATA / "mnist").is_dir(), reason="there is no ../shared/data/mnist beside this clone"),
    pytest.mark.skipif(COMMAND is None, reason="there is no build/release/sparkle and no sparkle in PATH"),
]


def idx(name, offset):
    with gzip.open(DATA / "mnist" / name) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


@pytest.fixture(scope="module")
def digits():
    return idx("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28), idx("t10k-labels-idx1-ubyte.gz", 8)


def finished(arguments, expected):
    """Runs to its end; the most memory that it had."""
    child = subprocess.Popen([COMMAND, "run", *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0  # what the kernel counts for a child begins with the memory of who started it
    while child.poll() is None:
        try:
            said = pathlib.Path(f"/proc/{child.pid}/status").read_text()
        except OSError:
            break
        most = max([most, *(int(line.split()[1]) * 1024 for line in said.splitlines() if line.startswith("VmHWM:"))])
        time.sleep(0.01)
    assert child.wait() == expected
    return most


def killed(arguments, output, least):
    """Kills it once its file holds so many bytes."""
    child = subprocess.Popen([COMMAND, "run", *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None and not (output.exists() and output.stat().st_size >= least):
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()


def answers(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_rows_of_a_file(digits, tmp_path):
    pixels, truth = digits
    items, whole, parts = tmp_path / "digits.npy", tmp_path / "whole.csv", tmp_path / "parts.csv"
    np.save(items, pixels.astype(np.float32))
    assert finished([MODEL, items, "--top", 1, "--output", whole], 0) < MOST_BYTES
    said = answers(whole)
    assert [row["item"] for row in said] == [f"{items}[{i}]" for i in range(10000)]
    assert sum(int(row["class1"]) == label for row, label in zip(said, truth)) == RIGHT
    for share in (0.1, 0.6):
        killed([MODEL, items, "--top", 1, "--output", parts], parts, share * whole.stat().st_size)
    assert parts.stat().st_size < whole.stat().st_size
    finished([MODEL, items, "--top", 1, "--output", parts], 0)
    assert parts.read_bytes() == whole.read_bytes()
    # A hundred at once are answered alike.
    batches = tmp_path / "batches.csv"
    finished([MODEL, items, "--top", 1, "--batch", 100, "--output", batches], 0)
    assert [row["class1"] for row in answers(batches)] == [row["class1"] for row in said]


def test_one_in_twenty_cannot_be_read(digits, tmp_path):
    pixels, truth = digits
    folder, output = tmp_path / "digits", tmp_path / "answers.csv"
    folder.mkdir()
    bad = set(range(7, 10000, 20))
    for i, picture in enumerate(pixels):
        (folder / f"{i:05}.pgm").write_bytes(b"P5\n28 28\n255\n" + picture.tobytes()[: 300 if i in bad else None])
    arguments = [MODEL, folder, "--preset", "raw", "--top", 1, "--output", output]
    killed(arguments, output, 100000)
    assert finished(arguments, 1) < MOST_BYTES
    said = answers(output)
    assert [pathlib.Path(row["item"]).stem for row in said] == [f"{i:05}" for i in range(10000)]
    assert {i for i, row in enumerate(said) if row["error"]} == bad
    assert all(f"{i:05}.pgm" in said[i]["error"] and not said[i]["class1"] for i in bad)
    right = [i for i in range(10000) if i not in bad and int(said[i]["class1"]) == truth[i]]
    assert len(right) >= RIGHT - len(bad)
