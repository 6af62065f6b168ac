"""What scripts/gpu makes of tools that a machine may have or not: compute-sanitizer, Nsight Compute, NVRTC of Python's
packages; and of steps that find they cannot do what they are for."""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "gpu"))

import machine  # noqa: E402
import phases  # noqa: E402
import rates  # noqa: E402
import sanitize  # noqa: E402
import tensor_pipe  # noqa: E402
import tool_steps  # noqa: E402
from runner import Runner, Step  # noqa: E402


MAKE = pathlib.Path(os.environ.get("SPARKLE_COMMAND", ROOT / "build" / "release" / "sparkle")).parent / "bench" / "make_network"


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_verdicts_of_the_sanitizer():
    clean = "========= ERROR SUMMARY: 0 errors\n"
    found = "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\n"
    assert sanitize.verdict(0, clean + clean)[0] == 0
    assert sanitize.verdict(9, clean + found) == (9, "the tool counts 2 errors")
    assert sanitize.verdict(0, found)[0] == 9  # whatever the status says
    assert sanitize.verdict(1, clean) == (1, "nothing was found, and the command failed")
    status, why = sanitize.verdict(1, "========= Error: Device not supported. Please refer to the documentation\n")
    assert status == 77 and "Device not supported" in why
    assert sanitize.verdict(0, "all is well\n") == (77, "compute-sanitizer does not work here: it says no summary")


def test_the_sanitizer_is_told_of_every_process(tmp_path):
    tool = program(tmp_path / "tool", f'echo "$@" >{tmp_path}/said; echo "========= ERROR SUMMARY: 1 error"; exit 9')
    script = [sys.executable, ROOT / "bench" / "gpu" / "sanitize.py"]
    done = subprocess.run([*script, tool, "racecheck", "sparkle", "gemm"], capture_output=True, text=True, check=False)
    assert done.returncode == 9 and done.stdout.strip().splitlines()[-1] == "the tool counts 1 errors"
    said = (tmp_path / "said").read_text(encoding="utf-8").strip()
    assert said == ("--tool racecheck --target-processes all --error-exitcode 9 sparkle verify --kernels --device cuda gemm")
    absent = [tmp_path / "none", "memcheck", "sparkle", "gemm"]
    done = subprocess.run([*script, *absent], capture_output=True, text=True, check=False)
    assert done.returncode == 77 and "cannot be started" in done.stdout


def families_on_cuda():
    found = set()
    for path in (ROOT / "src" / "families").glob("*/variants.inc"):
        rows = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("//")]
        if any(word in line for line in rows for word in ("cuda", "gpus")):
            found.add(path.parent.name)
    return found


def test_every_family_with_kernels_on_cuda_is_looked_at():
    assert set(tool_steps.MEMCHECK) == families_on_cuda()
    assert set(tool_steps.RACECHECK) <= set(tool_steps.MEMCHECK)


def long_form(rows):
    text = io.StringIO()
    names = ["ID", "Process ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    writer = csv.DictWriter(text, names, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    for number, (kernel, metric, value) in enumerate(rows):
        row = {"ID": number // 2, "Kernel Name": kernel, "Metric Name": metric, "Metric Unit": "%", "Metric Value": value}
        writer.writerow(row)
    return "==PROF== Connected to process 7\nms GFLOP/s\n" + text.getvalue()


def test_counters_of_both_forms():
    rows = [("sparkle_gemm", tensor_pipe.BUSY, "71.25"), ("sparkle_gemm", tensor_pipe.COUNT, "1,234,567"),
            ("sparkle_copy", tensor_pipe.BUSY, "0"), ("sparkle_copy", tensor_pipe.COUNT, "n/a")]
    found = tensor_pipe.counters(long_form(rows))
    assert found == [{"kernel": "sparkle_gemm", tensor_pipe.BUSY: 71.25, tensor_pipe.COUNT: 1234567.0},
                     {"kernel": "sparkle_copy", tensor_pipe.BUSY: 0.0}]
    wide = f'"ID","Kernel Name","{tensor_pipe.BUSY}"\n"","","%"\n"0","sparkle_gemm","50"\n'
    assert tensor_pipe.counters(wide) == [{"kernel": "sparkle_gemm", tensor_pipe.BUSY: 50.0}]
    assert tensor_pipe.counters("==ERROR== nothing\n") == []


BENCH = {
    "device": {"units": [{"name": "wgmma-bf16", "kind": "matrix", "total_flops_per_second": 1e15}]},
    "rows": [{"name": "layer", "median_ms": 0.5, "executed_gflops": 6e5, "schedule": "variant=wgmma unit=wgmma-bf16 m=64"}],
}


def pipes(tmp_path, ncu):
    """The program over a command that writes BENCH, and a profiler of our own."""
    (tmp_path / "bench.json").write_text(json.dumps(BENCH), encoding="utf-8")
    copies = f'while [ $# -gt 0 ]; do [ "$1" = --output ] && cp {tmp_path}/bench.json "$2"; shift; done; exit 0'
    command = [ROOT / "bench" / "gpu" / "tensor_pipe.py", program(tmp_path / "ncu", ncu), program(tmp_path / "sparkle", copies)]
    result = tmp_path / "pipe.json"
    done = subprocess.run([sys.executable, *command, result, "--conv", "x"], capture_output=True, text=True, check=False)
    return done, json.loads(result.read_text(encoding="utf-8")) if result.exists() else None


def test_the_tensor_pipes_stand_beside_executed_operations(tmp_path):
    rows = [("sparkle_gemm", tensor_pipe.BUSY, "60"), ("sparkle_gemm", tensor_pipe.COUNT, "100")]
    (tmp_path / "rows.csv").write_text(long_form(rows), encoding="utf-8")
    # A card that does not know the second of the two: asked for it, the profiler gives nothing.
    ncu = (f'case "$*" in *{tensor_pipe.COUNT}*) echo "==ERROR== Failed to find metric"; exit 1;; esac\n'
           f'while [ $# -gt 0 ]; do [ "$1" = --log-file ] && cp {tmp_path}/rows.csv "$2"; shift; done')
    done, found = pipes(tmp_path, ncu)
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["percent_of_peak"] == pytest.approx(60) and found["unit"] == "wgmma-bf16" and found["layer"] == "layer"
    assert found["tensor_pipe"][tensor_pipe.BUSY] == {"mean": 60.0, "most": 60.0} and len(found["launches"]) == 1
    assert "60.0 % of its peak executed" in done.stdout


def test_counters_without_permission_are_a_reason(tmp_path):
    done, found = pipes(tmp_path, 'echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"; exit 1')
    assert done.returncode == 77 and found is None
    assert done.stdout.strip().splitlines()[-1].startswith("the tensor pipes' counters cannot be read here: ERR_NVGPUCTRPERM")
    done, found = pipes(tmp_path, "exit 0")
    assert done.returncode == 77 and "it says nothing" in done.stdout


def rows_of(runner):
    return {row["name"]: row for row in json.loads((runner.folder / "summary.json").read_text(encoding="utf-8"))["rows"]}


def test_a_step_may_find_that_it_cannot(tmp_path):
    runner = Runner(tmp_path, "sanitize")
    assert not runner.run(Step("cannot", ["sh", "-c", "echo there is no permission; exit 77"]))
    assert not runner.run(Step("slow", ["sleep", "30"], 1, slow=True))
    assert not runner.run(Step("late", ["sleep", "30"], 1))
    assert runner.run(Step("good", ["true"]))
    runner.remark("it took no time")
    rows = rows_of(runner)
    assert rows["cannot"]["verdict"] == "skipped" and rows["cannot"]["why"] == "there is no permission"
    assert rows["slow"]["verdict"] == "skipped" and rows["late"]["verdict"] == "failed"
    assert rows["good"]["remarks"] == ["it took no time"]


def test_the_share_of_matrix_units(tmp_path):
    device = {"units": [{"name": "mma-tf32", "kind": "matrix"}, {"name": "fma-f32", "kind": "vector_fma"}]}
    rows = [{"median_ms": 3.0, "schedule": "variant=mma unit=mma-tf32 m=1"}, {"median_ms": 0.5, "schedule": "unit=fma-f32"},
            {"median_ms": 0.5, "schedule": "variant=host"}, {"name": "not timed"}]
    file = tmp_path / "model.json"
    file.write_text(json.dumps({"device": device, "total": {"median_ms": 5}, "rows": rows}), encoding="utf-8")
    assert rates.matrix_time(file) == ("matrix units take 75.0 % of the 4.000 ms of 3 steps "
                                       "(mma-tf32 75.0 %, fma-f32 12.5 %, none 12.5 %)")
    # 8 + 1 GFLOP in 4 ms of 5; the first unit's operands have a faster one. What was probed of a card that is known is no data
    # sheet.
    for name, peak, shares in (("a card", 10, (22.5, 18.0)), ("NVIDIA H200", 989.4, (0.2, 0.2))):
        units = [{"name": f"{unit}-bf16", "kind": "matrix", "input": "bf16", "total_flops_per_second": rate}
                 for unit, rate in (("mma", 5e12), ("wgmma", 1e13))]
        rows = [{"median_ms": 1.0, "executed_gflops": 8e3, "schedule": "unit=wgmma-bf16"},
                {"median_ms": 3.0, "executed_gflops": 1e3 / 3, "schedule": "unit=mma-bf16"}, {"median_ms": 1.0, "schedule": ""}]
        model = {"device": {"name": name, "kind": "cuda", "units": units}, "rows": rows,
                 "total": {"median_ms": 9}, "profiling": {"plain_ms": 4.5}}
        file.write_text(json.dumps(model), encoding="utf-8")
        said = rates.matrix_time(file)
        of_peak = f"{shares[0]} % of the card's peak of {peak:.1f}, and {shares[1]} % of it over all steps"
        assert said.endswith(f", execute 2.2 TFLOP/s there, {of_peak}; the whole run takes 4.500 ms")
    for text in ("[]", "{}", json.dumps({"device": device, "rows": rows}), json.dumps({"device": "card", "layers": {}})):
        file.write_text(text, encoding="utf-8")
        assert rates.matrix_time(file) == ""


def test_the_share_is_in_the_summary(tmp_path):
    device = {"units": [{"name": "mma-tf32", "kind": "matrix"}]}
    model = {"device": device, "total": {"median_ms": 5}, "rows": [{"median_ms": 3.0, "schedule": "unit=mma-tf32"}]}
    (tmp_path / "model.json").write_text(json.dumps(model), encoding="utf-8")
    copies = f'while [ $# -gt 0 ]; do [ "$1" = --output ] && cp {tmp_path}/model.json "$2"; shift; done; exit 0'
    command = [sys.executable, ROOT / "scripts" / "gpu", "--phase", "networks", "--only", "upscale2x", "--dry"]
    command += ["--device", "cuda", "--out", tmp_path / "out", "--sparkle", program(tmp_path / "sparkle", copies)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    summary = json.loads((tmp_path / "out" / "networks" / "summary.json").read_text(encoding="utf-8"))
    row = next(row for row in summary["rows"] if row["name"] == "cuda_fp32_upscale2x")
    assert row["remarks"] == ["matrix units take 100.0 % of the 3.000 ms of 1 steps (mma-tf32 100.0 %)"], done.stdout


def test_nvrtc_of_packages_is_taken_where_there_is_no_other(tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "cuda_nvrtc" / "lib"
    folder.mkdir(parents=True)
    for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
        (folder / name).touch()
    for name in ("SPARKLE_NVRTC", "SPARKLE_CUDA_DRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    versions = {"libcuda.so.1": (12080,), "libnvrtc.so.13": (13, 0), "libnvrtc.so.12": (12, 8)}
    monkeypatch.setattr(machine, "version_of", lambda library, function, count: versions.get(pathlib.Path(library).name))
    monkeypatch.setattr(machine, "libraries", set)
    assert machine.nvrtc_environment() == {"SPARKLE_NVRTC": str(folder / "libnvrtc.so.12")}  # the driver reads no newer one
    versions["libcuda.so.1"] = (13000,)
    assert machine.nvrtc_environment() == {"SPARKLE_NVRTC": str(folder / "libnvrtc.so.13")}
    monkeypatch.setattr(machine, "libraries", lambda: {"libnvrtc.so.12"})
    assert machine.nvrtc_environment() == {}
    monkeypatch.setattr(machine, "libraries", set)
    for name in ("SPARKLE_NVRTC", "SPARKLE_CUDA_DRIVER"):  # who says which, or has a stand-in for the driver, knows better
        monkeypatch.setenv(name, "")
        taken = {} if name == "SPARKLE_NVRTC" else {"SPARKLE_NVRTC": str(folder / "libnvrtc.so.13")}
        assert machine.nvrtc_environment() == taken
        monkeypatch.setenv(name, "x")
        assert machine.nvrtc_environment() == {}
        monkeypatch.delenv(name)


def test_ablations_are_of_the_layers_that_are_asked_about(tmp_path, monkeypatch):
    monkeypatch.setattr(phases.Plan, "missing", lambda self, program, name: "")
    (tmp_path / "out").mkdir()
    steps = {step.name: step for step in phases.Plan(ROOT, tmp_path / "out", tmp_path / "sparkle", ("cuda",), False).ablation()}
    for precision in ("bf16", "fp32"):
        for option in ("ablate", "ladder"):
            command = steps[f"cuda_{precision}_{option}"].command
            assert f"--{option}" in command and tool_steps.LAYER in command
            assert ("bf16" in command) == (precision == "bf16")
    lists = (ROOT / "shapes" / "gpu.csv").read_text(encoding="utf-8")
    for name in tool_steps.FEW:
        assert name in lists and "--ablate" in steps[f"cuda_fp16_ablate_{name}"].command
    pipe = steps["tensor_pipe_tf32"].command
    assert pipe[-4:] == ["--conv", tool_steps.LAYER, "--accuracy", "1e-3"] and pipe[-5].name == "tensor_pipe_tf32.json"


@pytest.mark.skipif(not MAKE.exists(), reason=f"SKIP: '{MAKE}' is not there")
def test_resnet50_has_smaller_pictures_for_a_dry_run(tmp_path):
    sizes = []
    for size in ("32", "64"):
        subprocess.run([MAKE, "resnet50", tmp_path / "network.onnx", "--size", size], check=True)
        sizes.append((tmp_path / "network.onnx").read_bytes())
    assert sizes[0] != sizes[1] and abs(len(sizes[0]) - len(sizes[1])) < 10  # the same weights
    for name, size in (("vgg16", "64"), ("resnet50", "16")):
        done = subprocess.run([MAKE, name, tmp_path / "none.onnx", "--size", size], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "Only resnet50 has pictures of another size" in done.stderr


@pytest.mark.skipif(not MAKE.exists(), reason=f"SKIP: '{MAKE}' is not there")
def test_networks_of_16_bits_hold_the_same_weights_rounded(tmp_path):
    onnx, np = (pytest.importorskip(name, reason=f"SKIP: there is no {name} here") for name in ("onnx", "numpy"))

    def tensors(name, kind):
        file = tmp_path / f"{name}_{kind}.onnx"
        subprocess.run([MAKE, name, file, "--type", kind], check=True)
        graph = onnx.load(file).graph
        ends = [value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)]
        assert ends == [onnx.TensorProto.FLOAT] * 2
        casts = [node.attribute[0].i for node in graph.node if node.op_type == "Cast"]
        return {one.name: one for one in graph.initializer}, casts

    def nearest_bf16(wide):
        bits = wide.view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)

    rounding = {"f16": (onnx.TensorProto.FLOAT16, lambda wide: wide.astype(np.float16).view(np.uint16)),
                "bf16": (onnx.TensorProto.BFLOAT16, nearest_bf16)}
    for name in ("tiny_residual", "resnet50"):
        wide, casts = tensors(name, "f32")
        assert not casts and len(wide) > 10
        for kind, (element, rounded) in rounding.items():
            narrow, casts = tensors(name, kind)
            assert casts == [element, onnx.TensorProto.FLOAT] and narrow.keys() == wide.keys()
            for key, one in wide.items():
                assert narrow[key].data_type == element and narrow[key].dims == one.dims
                bits = np.frombuffer(narrow[key].raw_data, np.uint16)
                assert (bits == rounded(np.frombuffer(one.raw_data, np.float32))).all(), (name, kind, key)
    command = [MAKE, "resnet50", tmp_path / "none.onnx", "--type", "i64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "tensors of f32, f16 or bf16" in done.stderr
