"""What scripts/gpu takes to a machine with a GPU and brings back, and what it makes of rates and of odd shapes there."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "gpu"))

import odd_shapes  # noqa: E402
import pack  # noqa: E402
import phases  # noqa: E402
import rates  # noqa: E402
from runner import Runner, Step  # noqa: E402


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def strip(tmp_path):
    return program(tmp_path / "strip", 'cp "$3" "$2"')


def gpu(*arguments, script=ROOT / "scripts" / "gpu", **environment):
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_what_travels_is_limited(tmp_path, monkeypatch, strip):
    sparkle = tmp_path / "sparkle"
    sparkle.write_bytes(b"\0" * 1000)
    size, command = pack.pack(ROOT, sparkle, tmp_path / "to", strip=strip)
    assert (tmp_path / "to" / "scripts" / "gpu").exists() and size < pack.MOST_ALL and command == 1000
    assert (tmp_path / "to" / "bench" / "gpu" / "peers" / "cudnn.py").exists()
    assert (tmp_path / "to" / pack.PACKED_COMMAND).exists() and not (tmp_path / "to" / "sparkle").exists()
    monkeypatch.setattr(pack, "MOST_BINARY", 999)
    with pytest.raises(pack.CannotTravel, match="may travel"):
        pack.pack(ROOT, sparkle, tmp_path / "to", strip=strip)


def test_programs_travel_compressed_and_alone_beside_a_tree(tmp_path, strip):
    program(tmp_path / "bench" / "make_network", "echo made $2\n" + "#" * 100000)
    program(tmp_path / "sparkle", "echo here\n" + "#" * 100000)
    size, command = pack.pack(ROOT, tmp_path / "sparkle", tmp_path / "to", strip=strip, alone=True)
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == [pack.PACKED_TOOL, pack.PACKED_COMMAND]
    assert size < 5000 and command > 100000
    for name, says in ((pack.PACKED_TOOL, b"made y\n"), (pack.PACKED_COMMAND, b"here\n")):
        pack.unpack(tmp_path / "to" / name, tmp_path / "there" / "program")
        done = subprocess.run([tmp_path / "there" / "program", "x", "y"], capture_output=True, check=True)
        assert done.stdout == says and len(list((tmp_path / "there").iterdir())) == 1


def test_a_command_that_needs_libraries_does_not_travel_unless_told(tmp_path, strip):
    sparkle = tmp_path / "sparkle"
    sparkle.write_bytes(b"\0" * 1000)
    lines = "".join(f" 0x01 (NEEDED)  Shared library: [{name}]\n" for name in ("libstdc++.so.6", "libc.so.6", "libodd.so.0.11"))
    readelf = program(tmp_path / "readelf", f"cat <<'END'\n{lines}END")
    with pytest.raises(pack.CannotTravel, match=r"links libodd\.so\.0\.11, which .* -DSPARKLE_SERVE=OFF"):
        pack.pack(ROOT, sparkle, tmp_path / "to", strip=strip, readelf=readelf, alone=True)
    pack.pack(ROOT, sparkle, tmp_path / "to", strip=strip, readelf=readelf, alone=True, with_libraries=True)
    if shutil.which("readelf"):
        assert pack.more_libraries("/bin/sh") == [] and pack.more_libraries(sparkle) == []


@pytest.mark.parametrize("packed_at", ["build/gpu", "."])
def test_what_was_carried_is_found(packed_at, tmp_path):
    tree, temporary = tmp_path / "tree", tmp_path / "tmp"
    temporary.mkdir()
    for name in ("scripts/gpu", "bench/gpu"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tree / name)
    (tree / packed_at).mkdir(parents=True, exist_ok=True)
    text = b"#!/bin/sh\necho carried\n"
    (tree / packed_at / pack.PACKED_COMMAND).write_bytes(pack.lzma.compress(text))
    (tree / packed_at / pack.PACKED_TOOL).write_bytes(pack.lzma.compress(b"#!/bin/sh\n"))

    def version():
        arguments = ["--phase", "describe", "--only", "cuda_devices", "--out", tmp_path / "out"]
        done = gpu(*arguments, script=tree / "scripts" / "gpu", TMPDIR=str(temporary))
        assert done.returncode == 0, done.stderr
        summary = json.loads((tmp_path / "out" / "describe" / "summary.json").read_text(encoding="utf-8"))
        return summary["sparkle"]

    assert version() == "carried" and (temporary / "sparkle_gpu" / "sparkle").exists()
    plan = phases.Plan(tree, tmp_path, temporary / "sparkle_gpu" / "sparkle", ("cuda",), False)
    plan.made = tmp_path / "made"
    plan.find_make()
    assert not plan.no_make and plan.make.read_bytes() == b"#!/bin/sh\n"
    program(tree / "build" / "release" / "sparkle", "echo built")  # a build is newer than what was carried once
    assert version() == ("built" if packed_at == "build/gpu" else "carried")


def test_a_command_that_cannot_start_ends_the_phase(tmp_path):
    words = "error while loading shared libraries: libodd.so.0"
    sparkle = program(tmp_path / "sparkle", f"echo '{words}' >&2; exit 127")
    done = gpu("--phase", "tests", "--dry", "--out", tmp_path / "out", "--sparkle", sparkle)
    assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert words in done.stderr and "status 127" in done.stderr and "cannot be started here" in done.stderr


def test_one_file_alone_comes_back(tmp_path):
    sparkle = program(tmp_path / "sparkle", '[ "$1" = --version ]')
    back, temporary = tmp_path / "back", tmp_path / "tmp"
    back.mkdir(), temporary.mkdir()
    arguments = ["--phase", "tests", "--dry", "--sparkle", sparkle]
    done = gpu(*arguments, OUT=str(back), TMPDIR=str(temporary))
    assert [path.name for path in back.iterdir()] == ["gpu_tests.tar.gz"], done.stderr
    with tarfile.open(back / "gpu_tests.tar.gz") as archive:
        assert {"tests/summary.json", "tests/cuda_kernels.log"} <= set(archive.getnames())
    gpu(*arguments, "--out", tmp_path / "asked", OUT=str(back), TMPDIR=str(temporary))
    assert (tmp_path / "asked" / "tests" / "summary.json").exists() and len(list(back.iterdir())) == 1


def test_caches_stay_where_they_make_an_archive_too_large(tmp_path, capsys):
    (tmp_path / "back").mkdir()
    (tmp_path / "work" / "cache").mkdir(parents=True)
    (tmp_path / "work" / "cache" / "code").write_bytes(random.Random(1).randbytes(100_000))
    for most, kept in ((1 << 20, True), (50_000, False)):
        runner = Runner(tmp_path / "work", "tests", archives=tmp_path / "back", most=most)
        for _ in range(2):
            assert runner.run(Step("good", ["true"]))
        assert [path.name for path in (tmp_path / "back").iterdir()] == ["gpu_tests.tar.gz"]
        with tarfile.open(tmp_path / "back" / "gpu_tests.tar.gz") as archive:
            assert ("cache/code" in archive.getnames()) == kept
            assert ("caches" in json.load(archive.extractfile("tests/summary.json"))) != kept
        assert capsys.readouterr().out.count("caches are left out") == (not kept)


def test_odd_shapes_are_those_of_their_seed():
    rows = odd_shapes.layers(7)
    assert rows == odd_shapes.layers(7) != odd_shapes.layers(8) and len({row["name"] for row in rows}) == odd_shapes.COUNT
    # Each seed tries what kernels treat apart.
    for seed in range(1, 6):
        rows = odd_shapes.layers(seed)
        for tried in (
            lambda r: r["groups"] > 1,
            lambda r: r["dil_h"] > 1 and r["r"] > 1,
            lambda r: r["stride_h"] != r["stride_w"],
            lambda r: r["pad_w"] > 0,
            lambda r: r["n"] > 1,
            lambda r: r["c"] // r["groups"] % 8 and r["c"] // r["groups"] > 8,
            lambda r: r["k"] % 8,
            lambda r: r["c"] // r["groups"] <= 4,
        ):
            assert sum(map(bool, map(tried, rows))) >= 2, seed


def test_odd_shapes_run_in_each_type_alone_and_with_bias_and_activation(tmp_path):
    plan = phases.Plan(ROOT, tmp_path, "sparkle", ("cuda",), False, seed=11)
    steps = [step for step in plan.tests() if "odd_shapes" in step.name]
    assert [step.name for step in steps] == [f"cuda_{p}_odd_shapes" for p in ("bf16", "fp16", "tf32", "fp32")]
    types = [step.command[step.command.index("--dt") + 1] for step in steps]
    assert types == ["bf16", "f16", "f32", "f32"]
    assert [step.name for step in steps if "--accuracy" in step.command] == ["cuda_tf32_odd_shapes"]
    for step in steps:
        command = list(map(str, step.command))
        assert command[command.index("--seed") + 1] == "11" and command[command.index("--rounds") + 1] == "1"
        assert command[-2:] == ["--output", str(tmp_path / step.result)]
    lines = pathlib.Path(steps[0].command[steps[0].command.index("--batch") + 1]).read_text(encoding="utf-8").splitlines()
    problems = [line for line in lines if not line.startswith("--")]
    count = odd_shapes.COUNT
    assert len(problems) == 2 * count and problems[:count] == problems[count:]
    assert lines[0] == "--dir=FWD_D" and lines[count + 1 : count + 3] == ["--dir=FWD_B", "--attr-post-ops=relu"]


def test_the_seed_is_said_and_another_one_each_time(tmp_path):
    sparkle = program(tmp_path / "sparkle", '[ "$1" = --version ]')
    arguments = ["--phase", "tests", "--only", "odd", "--out", tmp_path / "out", "--sparkle", sparkle]
    assert "by --seed 5\n" in gpu(*arguments, "--seed", "5").stdout
    assert gpu(*arguments).stdout.splitlines()[0] != gpu(*arguments).stdout.splitlines()[0]
    summary = json.loads((tmp_path / "out" / "tests" / "summary.json").read_text(encoding="utf-8"))
    assert summary["seed"] >= 1


def test_rates_above_the_peak_are_named(tmp_path):
    units = [{"name": "mma-f16", "total_flops_per_second": 1e12}, {"name": "fma-f16"}]
    roofs = {"compute": {"of": "mma-f16", "rate": 1.01e12, "probed": 0.9e12, "spread_percent": 3.0}}
    unusable = {"compute": {"of": "mma-f16", "rate": 1.01e12, "probed": 0.9e12, "spread_percent": 4.0}}
    other = {"compute": {"of": "fma-f32", "rate": 1.01e12, "probed": 0.1e12, "spread_percent": 0.0}}
    rows = [
        {"name": "right", "schedule": "variant=mma unit=mma-f16 m=64", "executed_gflops": 1020.0},
        {"name": "wrong", "schedule": "variant=mma unit=mma-f16 m=64", "executed_gflops": 1040.0},
        {"name": "unknown", "schedule": "variant=x unit=fma-f16", "executed_gflops": 1e9},
        {"name": "failed"},
        {"name": "below", "schedule": "variant=mma unit=mma-f16 m=64", "executed_gflops": 926.0, "roofs": roofs},
        {"name": "above", "schedule": "variant=mma unit=mma-f16 m=64", "executed_gflops": 928.0, "roofs": roofs},
        {"name": "another unit", "schedule": "variant=mma unit=mma-f16 m=64", "executed_gflops": 960.0, "roofs": other},
        {"name": "apart", "schedule": "variant=mma unit=mma-f16 m=64", "executed_gflops": 960.0, "roofs": unusable},
        {"name": "far apart", "schedule": "variant=mma unit=mma-f16 m=64", "executed_gflops": 1040.0, "roofs": unusable},
    ]
    file = tmp_path / "layers.json"
    file.write_text(json.dumps({"device": {"units": units}, "rows": rows}), encoding="utf-8")
    assert rates.above_peak(file) == [
        "wrong: 1.0 TFLOP/s by mma-f16, whose peak is 1.0 (by its data sheet, nothing was probed)",
        "above: 0.9 TFLOP/s by mma-f16, whose peak is 0.9 (probed)",
        "far apart: 1.0 TFLOP/s by mma-f16, whose peak is 1.0 (by its data sheet, its probes lie apart)",
    ]
    said = "probes lie up to 4.0 % apart and judge nothing of apart, far apart: data sheets do"
    assert rates.probes_apart(file) == said
    for text in ("[]", '{"device": "NVIDIA H200", "layers": {}}'):  # the latter is a file of peers
        file.write_text(text, encoding="utf-8")
        assert rates.above_peak(file) == [] and rates.probes_apart(file) == ""
    assert rates.above_peak(tmp_path / "none.json") == []
