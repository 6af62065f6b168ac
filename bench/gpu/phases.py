"""The steps of each phase of scripts/gpu: kernels before layers before networks, ours before the peers'."""

import csv
import pathlib
import shutil
import sys

from runner import Step

PHASES = ("describe", "tests", "kernels", "layers", "networks", "peers", "tune")
PRECISIONS = {"cuda": ("fp32", "tf32", "fp16", "bf16"), "vulkan": ("fp32", "matrix", "fp16")}
# What a row's file is called by, as scripts/gpu_peers.py reads it.
KIND = {"fp32": "layers", "tf32": "matrix", "matrix": "matrix", "fp16": "half", "bf16": "bfloat"}
OPTIONS = {
    "fp32": [],
    "tf32": ["--accuracy", "1e-3"],
    "matrix": ["--accuracy", "1e-3"],
    "fp16": ["--precision", "fp16"],
    "bf16": ["--precision", "bf16"],
}
TINY = "ic16ih8oc16oh8kh3ph1"


class Plan:
    """Where things lie and what is asked for. `dry`: the smallest work that goes through the same steps."""

    def __init__(self, root, folder, sparkle, devices, dry, python=sys.executable):
        self.root, self.folder, self.sparkle = pathlib.Path(root), pathlib.Path(folder), sparkle
        self.devices, self.dry, self.python = devices, dry, python

    def steps(self, phase):
        return getattr(self, phase)()

    def batched(self, batch):
        """shapes/resnet50.csv at another batch size, its rows' names with it."""
        path = self.folder / f"resnet50_n{batch}.csv"
        with open(self.root / "shapes" / "resnet50.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            for row in rows:
                writer.writerow({**row, "name": f"{row['name']}_n{batch}", "n": batch})
        return path

    def bench(self, device, precision, name, what, seconds=300, more=()):
        result = f"{device}/{KIND[precision]}_{name}.json"
        (self.folder / device).mkdir(parents=True, exist_ok=True)
        small = ["--rounds", "1", "--round-ms", "1"] if self.dry and "--model" not in what else []
        return Step(
            f"{device}_{precision}_{name}",
            [
                self.sparkle,
                "bench",
                "--device",
                device,
                *what,
                *OPTIONS[precision],
                *small,
                *more,
                "--output",
                self.folder / result,
            ],
            seconds,
            result,
        )

    def describe(self):
        yield Step("cards", ["nvidia-smi", "-q"], 60, skip="" if shutil.which("nvidia-smi") else "there is no nvidia-smi")
        for device in self.devices:
            yield Step(f"{device}_devices", [self.sparkle, "devices", "--device", device], 120)
        code = "import torch as t; print(t.__version__, t.version.cuda, t.backends.cudnn.version(), t.cuda.is_available())"
        yield Step("torch", [self.python, "-c", code], 120, skip=self.no_torch())

    def no_torch(self):
        if self.dry:
            return "a dry run measures no peers"
        found = shutil.which(self.python) and __import__("importlib.util").util.find_spec("torch")
        return "" if found else "this python3 has no PyTorch"

    def tests(self):
        for device in self.devices:
            yield Step(
                f"{device}_kernels",
                [self.sparkle, "verify", "--kernels", "--device", device] + (["copy", "pool"] if self.dry else []),
                600,
            )
            vectors = self.root / "tests" / "vectors"
            yield Step(
                f"{device}_vectors",
                [
                    self.python,
                    self.root / "tests" / "conformance" / "device_conformance.py",
                    self.sparkle,
                    device,
                    *(["--sample", "40", "1"] if self.dry else []),
                    vectors,
                ],
                600,
            )
        sanitizer = shutil.which("compute-sanitizer")
        for tool in ("memcheck", "racecheck"):
            yield Step(
                f"cuda_{tool}",
                [
                    sanitizer,
                    "--tool",
                    tool,
                    "--error-exitcode",
                    "9",
                    self.sparkle,
                    "verify",
                    "--kernels",
                    "gemm/mma",
                    "--device",
                    "cuda",
                ],
                300,
                skip=self.missing(sanitizer, "compute-sanitizer"),
            )

    def kernels(self):
        for device in self.devices:
            for precision in PRECISIONS[device]:
                what = ["--conv", TINY] if self.dry else ["--layers", self.root / "shapes" / "gpu.csv"]
                yield self.bench(device, precision, "gpu", what, 450)
            conv = TINY if self.dry else "mb32ic64ih56oc64oh56kh3ph1"
            yield self.bench(device, "fp32", "ladder", ["--conv", conv, "--ladder"], 200)
            if device == "cuda":  # planes of few channels
                few = ["--layers", self.root / "shapes" / "gpu.csv", "--filter", "few_"]
                for precision in ("tf32", "fp16"):
                    what = ["--conv", "ic1ih12oc4oh6kh7ph0"] if self.dry else few
                    yield self.bench(device, precision, "planes", [*what, "--planes"], 200)
                conv = "ic4ih12oc4oh6kh7ph0" if self.dry else "mb10000ic4ih40oc16oh34kh7ph0"
                yield self.bench(device, "tf32", "planes_ladder", ["--conv", conv, "--planes", "--ladder"], 300)
            if not self.dry:
                yield self.bench(device, "fp32", "crossover", ["--crossover", "--conv", "mb8ic64ih56oc64oh56kh3ph1"], 300)
                yield self.bench(
                    device, "fp32", "transfers", ["--conv", "mb32ic64ih56oc64oh56kh3ph1", "--batches", "20"], 120
                )

    def layers(self):
        batches = (1,) if self.dry else (32, 256)
        lists = [self.batched(batch) for batch in batches]
        for device in self.devices:
            for precision in PRECISIONS[device]:
                for path in lists:
                    what = ["--conv", TINY] if self.dry else ["--layers", path]
                    yield self.bench(device, precision, path.stem, what, 150)

    def networks(self):
        for device in self.devices:
            model = self.root / "models" / "upscale2x.onnx"
            shape = ["--shape", "image=1x3x16x16" if self.dry else "image=1x3x270x480"]
            yield self.bench(
                device, "fp32", "upscale2x", ["--model", model, *shape, *(["--runs", "2"] if self.dry else [])], 200
            )
            make = self.root / "make_network"
            for batch in () if self.dry else (1, 32):
                network = self.folder / f"resnet50_n{batch}.onnx"
                missing = "" if make.exists() else f"'{make}' was not packed"
                yield Step(f"{device}_make_n{batch}", [make, "resnet50", network, "--batch", str(batch)], 120, skip=missing)
                for precision in ("fp32", "tf32" if device == "cuda" else "matrix"):
                    step = self.bench(device, precision, f"resnet50_n{batch}", ["--model", network], 300)
                    kind = "" if precision == "fp32" else ".matrix"
                    step.result = f"{device}/model_resnet50_n{batch}{kind}.json"
                    step.command[-1] = self.folder / step.result
                    step.skip = missing
                    yield step
                yield Step(f"{device}_drop_n{batch}", ["rm", "-f", network], 10, skip=missing)
        ncu = shutil.which("ncu")
        counter = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
        yield Step(
            "tensor_pipe",
            [
                ncu,
                "--metrics",
                counter,
                "--clock-control",
                "none",
                "--kernel-name",
                "regex:sparkle_gemm",
                "--launch-count",
                "20",
                self.sparkle,
                "bench",
                "--device",
                "cuda",
                "--conv",
                "mb32ic64ih56oc64oh56kh3ph1",
                "--precision",
                "bf16",
                "--rounds",
                "1",
                "--round-ms",
                "1",
            ],
            300,
            skip=self.missing(ncu, "ncu"),
        )

    def missing(self, program, name):
        """Why what asks for this program and CUDA is not run; empty: it is."""
        if "cuda" not in self.devices:
            return "it is for --device cuda"
        return "" if program else f"there is no {name} here"

    def peers(self):
        script, all_of = self.root / "scripts" / "gpu_peers.py", self.folder.parent
        lists = [("kernels", self.root / "shapes" / "gpu.csv"), *(("layers", self.batched(n)) for n in (32, 256))]
        for phase, path in lists:
            result = f"peers_{path.stem}.json"
            command = [self.python, script, "time", "--layers", path, "--output", self.folder / result]
            yield Step(f"peers_{path.stem}", command, 200, result, self.no_torch())
            for device in self.devices:
                yield self.table(device, f"{phase}_{path.stem}", all_of / phase / device, result)
        result = "peers_networks.json"
        command = [self.python, script, "time", "--layers", "--whole", "1,32", "--output", self.folder / result]
        yield Step("peers_networks", command, 120, result, self.no_torch())
        for device in self.devices:
            yield self.table(device, "networks", all_of / "networks" / device, result)

    def table(self, device, name, ours, peers):
        script = self.root / "scripts" / "gpu_peers.py"
        skip = "" if ours.exists() else f"'{ours}' holds no times of ours: run that phase first"
        command = [self.python, script, "table", "--ours", ours, "--peers", self.folder / peers]
        return Step(f"table_{device}_{name}", command, 60, skip=skip)

    def tune(self):
        for device in self.devices:
            what = (
                ["--conv", TINY, "--seconds", "2"]
                if self.dry
                else ["--layers", self.root / "shapes" / "gpu.csv", "--seconds", "240"]
            )
            yield Step(
                f"{device}_tune",
                [self.sparkle, "tune", "--device", device, *what, "--tuning", self.folder / f"tuning_{device}.txt"],
                500,
            )
