"""scripts/gpu without a GPU: no step loses another's results, archives are complete at any time, limits are kept."""

import csv
import json
import pathlib
import subprocess
import sys
import tarfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "gpu"))

import phases  # noqa: E402
from runner import Runner, Step  # noqa: E402


def rows_in(archive, phase):
    with tarfile.open(archive) as opened:
        return json.load(opened.extractfile(f"{phase}/summary.json"))["rows"]


def shell(name, text, seconds=20, result=""):
    return Step(name, ["sh", "-c", text], seconds, result)


def test_what_fails_hangs_or_dies_loses_nothing(tmp_path):
    runner = Runner(tmp_path, "kernels")
    steps = [
        shell("good", f"echo '{{\"rows\": []}}' > {runner.folder}/good.json", result="good.json"),
        shell("fails", "echo no such kernel >&2; exit 3"),
        shell("hangs", "sleep 60 & sleep 60", seconds=1),
        shell("dies", "kill -SEGV $$"),
        shell("missing", "true", result="nothing.json"),
        Step("absent", ["/no/such/program"]),
        Step("left_out", ["true"], skip="there is no card"),
        shell("last", "echo here"),
    ]
    for number, step in enumerate(steps, 1):
        runner.run(step)
        assert len(rows_in(tmp_path / "gpu_kernels.tar.gz", "kernels")) == number  # complete after every step
    rows = {row["name"]: row for row in rows_in(tmp_path / "gpu_kernels.tar.gz", "kernels")}
    assert [rows[name]["verdict"] for name in ("good", "last", "left_out")] == ["passed", "passed", "skipped"]
    assert rows["fails"]["why"] == "status 3: no such kernel"
    assert "took longer than 1 s and was killed" in rows["hangs"]["why"] and rows["hangs"]["seconds"] < 10
    assert "signal 11" in rows["dies"]["why"]
    assert "nothing.json" in rows["missing"]["why"]
    assert "cannot be started" in rows["absent"]["why"]
    assert (runner.count("passed"), runner.count("failed"), runner.count("skipped")) == (2, 5, 1)
    with tarfile.open(tmp_path / "gpu_kernels.tar.gz") as archive:
        assert {"kernels/good.json", "kernels/fails.log", "kernels/last.log"} <= set(archive.getnames())


def test_no_step_begins_that_has_no_time(tmp_path):
    runner = Runner(tmp_path, "tune", budget=1)
    assert not runner.run(shell("long", "sleep 30", seconds=60))
    assert rows_in(tmp_path / "gpu_tune.tar.gz", "tune")[0]["why"] == "no time is left for it"


def test_the_budget_ends_a_step_that_is_no_failure(tmp_path):
    runner = Runner(tmp_path, "tune", budget=12)
    assert not runner.run(shell("long", "sleep 60", seconds=60))
    row = rows_in(tmp_path / "gpu_tune.tar.gz", "tune")[0]
    assert row["verdict"] == "skipped" and "no time was left for it" in row["why"]


def test_who_is_ended_ends_its_step(tmp_path):
    sparkle = tmp_path / "sparkle"
    sparkle.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho $$ >{tmp_path}/pid\nsleep 60\n", encoding="utf-8")
    sparkle.chmod(0o755)
    command = [sys.executable, ROOT / "scripts" / "gpu", "--phase", "tune", "--out", tmp_path / "out", "--sparkle", sparkle]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text(encoding="utf-8").strip()):
        assert time.monotonic() < end, "the step did not begin"
        time.sleep(0.05)
    process.terminate()
    assert "signal 15 ended it" in process.communicate(timeout=30)[1]
    assert not pathlib.Path(f"/proc/{(tmp_path / 'pid').read_text(encoding='utf-8').strip()}").exists()


def test_drivers_keep_what_they_compile_in_the_archive(tmp_path):
    runner = Runner(tmp_path, "tests")
    assert runner.run(shell("compiles", 'mkdir -p "$CUDA_CACHE_PATH" && echo "$CUDA_CACHE_MAXSIZE" > "$CUDA_CACHE_PATH/index"'))
    with tarfile.open(tmp_path / "gpu_tests.tar.gz") as archive:
        assert int(archive.extractfile("cache/nv/index").read()) >= 1 << 30


def test_caches_come_from_archives_alone(tmp_path):
    command = [
        sys.executable,
        ROOT / "scripts" / "gpu",
        "--phase",
        "tune",
        "--out",
        tmp_path,
        "--cache",
        tmp_path / "none.tar.gz",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no caches can be taken from" in done.stderr


def test_the_video_network_runs_in_each_type_and_goes_again(tmp_path, monkeypatch):
    monkeypatch.setattr(phases.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "make_network").touch()
    (tmp_path / "out").mkdir()
    plan = phases.Plan(ROOT, tmp_path / "out", tmp_path / "sparkle", ("cuda",), False)
    monkeypatch.setattr(plan, "no_torch", lambda: "")
    steps = {step.name: step for step in plan.networks() if "video_unet" in step.name}
    made = [step.command[2] for step in steps.values() if step.name.startswith("make_video_")]
    assert [path.name for path in made] == [f"video_unet_{precision}.onnx" for precision in ("bf16", "fp32", "fp16")]
    for path in made:
        step = steps[f"make_{path.stem}"]
        assert step.command[3:9] == ["--batch", "2", "--base", "192", "--size", "64"]
    for precision, result in (("fp32", ""), ("fp16", ".half"), ("bf16", ".bfloat")):
        step = steps[f"cuda_{precision}_video_unet"]
        assert step.result == f"cuda/model_video_unet{result}.json" and not step.skip
        if precision == "bf16":
            without = steps["cuda_bf16_video_unet_full_edges"]
            assert without.command[:2] == ["env", "SPARKLE_CUDA_EDGES=full"] and without.command[2:-1] == step.command[:-1]
            assert without.command[-1] == plan.folder / without.result and without.result == "cuda/edges_video_unet.bfloat.json"
        assert (f"drift_video_unet_{precision}" in steps) == (precision != "fp32")
    for path in made:
        assert path in steps["drop_video_unet"].command and plan.folder not in path.parents
    order = [step.name for step in plan.networks()]
    assert order.index("cuda_bf16_video_unet") < order.index("cuda_fp16_video_unet") < order.index("cuda_fp32_video_unet")
    assert [step.name for step in plan.peers() if "video_unet" in step.name] == [
        "peers_video_unet",
        "make_video_unet_fp32",
        "video_unet_run",
        "video_unet_same",
        "drop_video_unet",
        "table_cuda_video_unet",
    ]
    plan.devices = ("vulkan",)
    assert all(step.skip == "it is for --device cuda" for step in plan.video())


@pytest.mark.parametrize("phase", phases.PHASES)
def test_each_phase_runs_dry_over_a_command_that_fails(phase, tmp_path):
    sparkle = tmp_path / "sparkle"
    sparkle.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho nothing works >&2\nexit 2\n", encoding="utf-8")
    sparkle.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "scripts" / "gpu",
            "--phase",
            phase,
            "--dry",
            "--device",
            "both",
            "--out",
            tmp_path / "out",
            "--sparkle",
            sparkle,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    rows = rows_in(tmp_path / "out" / f"gpu_{phase}.tar.gz", phase)
    counts = [sum(row["verdict"] == verdict for row in rows) for verdict in ("passed", "failed", "skipped")]
    assert done.stdout.strip().splitlines()[-1] == "{} passed, {} failed, {} skipped".format(*counts)
    assert done.returncode == (counts[1] > 0)


def steps_of(phase, devices, tmp_path, monkeypatch, dry=False):
    """As on a machine that has everything."""
    monkeypatch.setattr(phases.tempfile, "gettempdir", lambda: str(tmp_path))
    for name in ("no_torch", "no_video"):
        monkeypatch.setattr(phases.Plan, name, lambda self: "")
    monkeypatch.setattr(phases.Plan, "missing", lambda self, program, name: "")
    (tmp_path / "out").mkdir(exist_ok=True)
    return list(phases.Plan(ROOT, tmp_path / "out", tmp_path / "sparkle", devices, dry).steps(phase))


@pytest.mark.parametrize("devices", [("cuda",), ("vulkan",)])
@pytest.mark.parametrize("phase", phases.PHASES)
def test_no_step_starves_those_behind_it(phase, devices, tmp_path, monkeypatch):
    if phase == "networks" and "cuda" not in devices:
        monkeypatch.setattr(phases.Plan, "video", lambda self: iter(()))
    limits = [step.seconds for step in steps_of(phase, devices, tmp_path, monkeypatch)]
    assert limits and sum(limits) <= phases.PHASE_SECONDS


def test_what_matters_most_comes_first(tmp_path, monkeypatch):
    names = [step.name for step in steps_of("kernels", ("cuda",), tmp_path, monkeypatch)]
    order = ["cuda_bf16_gpu", "cuda_tf32_planes", "cuda_fp16_gpu", "cuda_tf32_gpu", "cuda_fp32_gpu", "cuda_fp32_transfers"]
    assert [name for name in names if name in order] == order and names[0] == order[0]
    assert steps_of("layers", ("cuda",), tmp_path, monkeypatch)[0].name == "cuda_bf16_resnet50_n32"


def test_resnet50_runs_whole_in_16_bits_beside_pytorch(tmp_path, monkeypatch):
    steps = steps_of("networks", ("cuda",), tmp_path, monkeypatch)
    kinds = {"bf16": "bfloat", "fp16": "half"}
    wanted = []
    for precision in kinds:
        for batch in (32, 256):
            wanted += [f"cuda_make_resnet50_{precision}_n{batch}", f"cuda_{precision}_resnet50_n{batch}"]
    wanted.insert(2, "cuda_bf16_resnet50_n32_full_edges")
    wanted += ["cuda_drop_resnet50_in_16_bits", "peers_resnet50", "table_cuda_resnet50"]
    assert [step.name for step in steps[: len(wanted)]] == wanted
    by_name = {step.name: step for step in steps}
    for precision, kind in kinds.items():
        for batch in (32, 256):
            network = tmp_path / "sparkle_gpu" / f"resnet50_cuda_{precision}_n{batch}.onnx"
            made = by_name[f"cuda_make_resnet50_{precision}_n{batch}"].command
            assert made[1:] == ["resnet50", network, "--batch", str(batch), "--type", phases.TYPES[precision]]
            assert network in by_name["cuda_drop_resnet50_in_16_bits"].command
            step = by_name[f"cuda_{precision}_resnet50_n{batch}"]
            assert step.command[4:6] == ["--model", network]
            assert "--precision" not in step.command  # which is for layers
            assert step.result == f"cuda/model_resnet50_n{batch}.{kind}.json"
            assert step.command[-1] == tmp_path / "out" / step.result
    peer, table = by_name["peers_resnet50"].command, by_name["table_cuda_resnet50"].command
    assert peer[peer.index("--whole") + 1] == "32,256" and peer[peer.index("--ways") + 1] == "bf16,f16"
    assert table[-3:] == [tmp_path / "out" / "cuda", "--peers", peer[-1]]


def test_a_network_that_holds_too_much_of_the_card_is_a_failure(tmp_path, monkeypatch):
    step = next(s for s in steps_of("networks", ("cuda",), tmp_path, monkeypatch) if s.name == "video_unet_memory")
    result = pathlib.Path(step.command[-1])
    for held, status in ((1_900_000_000, 0), (2_500_000_001, 1), (0, 1)):
        result.write_text(json.dumps({"total": {"device_bytes": held}}), encoding="utf-8")
        assert subprocess.run(step.command, capture_output=True, check=False).returncode == status, held


def test_the_short_phase_has_ours_and_peers(tmp_path, monkeypatch):
    names = [step.name for step in steps_of("short", ("cuda",), tmp_path, monkeypatch)]
    right = ["cuda_devices", "cuda_kernels", "cuda_bf16_odd_shapes"]
    fast = ["cuda_fp32_gpu", "cuda_bf16_gpu", "cuda_tf32_planes", "cuda_tf32_planes_ladder", "cuda_bf16_resnet50_n32"]
    peers = ["cuda_bf16_alone_resnet50_n32", "cudnn_gpu", "cudnn_resnet50_n32", "table_cuda_resnet50_n32"]
    last = ["cuda_bf16_video_unet", "peers_gpu", "peers_video_unet"]
    assert names[:3] == right and [name for name in names[3:] if name in fast + peers + last] == fast + peers + last
    steps = {step.name: step for step in steps_of("short", ("cuda",), tmp_path, monkeypatch)}
    assert [step.name for step in steps.values() if step.slow] == right[1:]
    assert "valid_" in steps["cuda_fp32_gpu"].command
    asked = list(map(str, steps["cudnn_gpu"].command))
    assert "valid_" in asked and "f32_fused" in asked[asked.index("--ways") + 1].split(",")
    command = [sys.executable, ROOT / "scripts" / "gpu", "--minutes", "10", "--dry", "--out", tmp_path / "there"]
    sparkle = tmp_path / "sparkle"
    sparkle.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    sparkle.chmod(0o755)
    subprocess.run([*command, "--sparkle", sparkle], capture_output=True, check=False)
    assert rows_in(tmp_path / "there" / "gpu_short.tar.gz", "short")


# What a dry run leaves out is never run before there is a card.
@pytest.mark.parametrize("phase", [phase for phase in phases.PHASES if phase not in ("layers", "networks")])
def test_a_dry_run_has_the_same_steps(phase, tmp_path, monkeypatch):
    for devices in (("cuda",), ("vulkan",)):
        real = [step.name for step in steps_of(phase, devices, tmp_path, monkeypatch)]
        assert [step.name for step in steps_of(phase, devices, tmp_path, monkeypatch, dry=True)] == real


def test_batches_have_no_time_for_a_round_and_transforms_no_file(tmp_path, monkeypatch):
    for dry in (False, True):
        steps = {step.name: step for step in steps_of("kernels", ("vulkan",), tmp_path, monkeypatch, dry)}
        assert "--round-ms" not in steps["vulkan_fp32_transfers"].command
        assert "--output" not in steps["vulkan_fp32_crossover"].command and not steps["vulkan_fp32_crossover"].result


def test_made_up_peers_go_through_the_table(tmp_path):
    script = [sys.executable, ROOT / "scripts" / "gpu_peers.py"]
    peers, ours = tmp_path / "peers.json", tmp_path / "ours"
    ways = "bf16,bf16_fused,bf16_alone"
    what = ["--layers", ROOT / "shapes" / "gpu.csv", "--filter", "l2_", "--ways", ways, "--whole", "1"]
    subprocess.run([*script, "time", *what, "--made-up", "--output", peers], check=True)
    ours.mkdir()
    rows = [{"name": "l2_64_56x56_n32", "median_ms": 3.7}]
    (ours / "bfloat_gpu.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    rows[0]["median_ms"] = 1.85
    (ours / "bfloat-alone_gpu.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    done = subprocess.run([*script, "table", "--ours", ours, "--peers", peers], capture_output=True, text=True, check=True)
    assert "geometric mean of bf16 over ours with bias and ReLU (aim: 1.3): 2.0" in done.stdout and "resnet50_n1" in done.stdout
    assert "geometric mean of bf16_alone over ours of convolutions alone (aim: 1.0): 3.99" in done.stdout
    assert "few_" not in done.stdout


# What bench --batch reads is what the list says: the layers' own numbers of multiply-adds tell.
def test_layers_alone_are_those_of_the_list(tmp_path, monkeypatch):
    steps = {step.name: step for step in steps_of("layers", ("cuda",), tmp_path, monkeypatch)}
    step = steps["cuda_bf16_alone_resnet50_n32"]
    assert step.result == "cuda/bfloat-alone_resnet50_n32.json" and "--precision" not in step.command
    assert step.command[step.command.index("--dir") + 1] == "FWD_D"
    assert step.command[-1].name == "bfloat-alone_resnet50_n32.json"
    lines = (tmp_path / "out" / "resnet50_n32.benchdnn").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader((tmp_path / "out" / "resnet50_n32.csv").read_text(encoding="utf-8").splitlines()))
    assert len(lines) == len(rows)
    first = "mb32ic3oc64ih224oh112kh7sh2dh0ph3iw224ow112kw7sw2dw0pw3n"
    assert lines[0] == f'{first}"{rows[0]["name"]}"'


def test_wrong_use_is_one_sentence():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "gpu"], capture_output=True, text=True, check=False)
    sentence = "scripts/gpu: give either pack, --phase or --minutes; see scripts/gpu --help.\n"
    assert done.returncode == 1 and done.stderr == sentence
