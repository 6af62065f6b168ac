"""bench/many_machines.py on a small model and few rows: what it measures, keeps and makes a table of, and that wrong answers
end it. Ways that start a cluster are not run here."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMAND = pathlib.Path(os.environ.get("SPARKLE_COMMAND") or ROOT / "build" / "release" / "sparkle")
sys.path.insert(0, str(ROOT / "bench"))
import many_machines  # noqa: E402
from tables import makers  # noqa: E402

WAYS = ["session", "pipeline", "pool"]
ROWS = 20000  # some are left when the last process of the pool has begun, unless the machine is very busy


def dense(path, rows):
    weights = np.random.default_rng(3).standard_normal((6, 4), dtype=np.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "dense",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 4])],
                              [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def measured(*words):
    return subprocess.run([sys.executable, ROOT / "bench" / "many_machines.py", *map(str, words)], capture_output=True,
                          text=True, check=False)


def test_each_way_is_measured_and_its_answers_held_together(tmp_path):
    models = [dense(tmp_path / "open.onnx", "n"), dense(tmp_path / "three.onnx", 3)]
    keeping = ["--output", tmp_path / "result.json", "--sparkle", COMMAND] if COMMAND.is_file() else []
    rows = ROWS
    while True:
        done = measured(*models, "--rows", rows, "--batch", 4, "--rounds", 1, "--ways", ",".join(WAYS), *keeping)
        if rows > 20 * ROWS or "give more --rows" not in done.stderr:
            break
        rows *= 3
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "first answer" in line]
    assert sorted(tuple(line.split()[:2]) for line in lines) == sorted((m.stem, way) for m in models for way in WAYS)
    if not keeping:
        return
    result = json.loads((tmp_path / "result.json").read_text())
    assert [(r["model"], r["way"]) for r in result["rows"]] == [(m.stem, way) for m in models for way in WAYS]
    assert [r["rows"] for r in result["rows"][::3]] == [rows, -(-rows // 12) * 12]  # in whole batches of whole runs
    assert all(0 < r["up_s"] < r["start_s"] and r["rows_per_s"] > 0 and r["memory_mb"] > 1 for r in result["rows"])
    table = makers.make_many_machines(ROOT, [result], [])
    assert sum(line.startswith("| open |") for line in table) == 3 and table[-1].startswith("- three: `sparkle.Pipeline` ")


def test_a_row_that_is_answered_twice_or_wrong_ends_it(tmp_path):
    right, ids = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([2, 0, 3, 1])
    model = {"name": "m", "count": 4}

    def checked(ids, answers):
        np.savez(tmp_path / "a.npz", ids=ids, answers=answers)
        many_machines.check("pool", model, right, tmp_path / "a.npz")

    checked(ids, right[ids])
    with pytest.raises(SystemExit, match="m by pool: 1 rows have no answer, 1 several"):
        checked(np.array([2, 0, 3, 3]), right[ids])
    with pytest.raises(SystemExit, match="m by pool: 1 rows have no answer, 0 several"):
        checked(ids[:3], right[ids[:3]])
    with pytest.raises(SystemExit, match="m by pool: answers differ by"):
        checked(ids, right[ids] + np.float32([[0, 0], [0, 0.1], [0, 0], [0, 0]]))
    with pytest.raises(SystemExit, match="m by pool: answers differ by"):
        checked(ids, right[ids] * np.float32("nan"))


def test_from_how_many_rows_on_a_way_pays():
    from tables.machines import paying
    session = {"rows_per_s": 100, "start_s": 1}
    assert paying({"rows_per_s": 200, "start_s": 11}, session) == pytest.approx(2000)  # 21 s by both
    assert paying({"rows_per_s": 90, "start_s": 0}, session) is None


def test_what_cannot_be_measured_is_said(tmp_path):
    done = measured("--ways", "pigeon")
    assert done.returncode == 2 and "no way 'pigeon'" in done.stderr
    done = measured(dense(tmp_path / "one.onnx", "n"), "--rows", 4, "--batch", 4, "--rounds", 1, "--ways", "session")
    assert done.returncode == 1 and "give more --rows" in done.stderr
