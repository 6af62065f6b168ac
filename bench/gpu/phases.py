"""The steps of each phase of scripts/gpu: kernels before layers before networks, ours before the peers'."""

import csv
import pathlib
import shutil
import sys
import tempfile

import pack
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
# The video UNet by batch, base channels and size; what 16 bits may do to it in 25 passes on its own outputs: on a CPU, which
# rounds weights alone, they do 0.0006 and 0.0041.
VIDEO, VIDEO_DRY, VIDEO_MOST = (2, 192, 64), (1, 16, 16), {"fp16": "0.003", "bf16": "0.02"}
TYPES = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
TINY = "ic16ih8oc16oh8kh3ph1"


class Plan:
    """Where things lie and what is asked for. `dry`: the smallest work that goes through the same steps."""

    def __init__(self, root, folder, sparkle, devices, dry, python=sys.executable):
        self.root, self.folder, self.sparkle = pathlib.Path(root), pathlib.Path(folder), sparkle
        self.devices, self.dry, self.python = devices, dry, python
        self.made = pathlib.Path(tempfile.gettempdir()) / "sparkle_gpu"  # networks: nothing that archives take in
        self.make, self.no_make = pathlib.Path(sparkle).parent / "bench" / "make_network", ""

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

    def find_make(self):
        """The program that makes networks: unpacked where it was packed, else the build's; `no_make` says why there is none."""
        packed = self.root / pack.PACKED_TOOL
        try:
            self.made.mkdir(parents=True, exist_ok=True)
            if packed.exists():
                self.make = self.made / "make_network"
                pack.unpack(self.root, self.make)
        except (OSError, pack.lzma.LZMAError) as error:
            self.no_make = f"'{packed}' cannot be unpacked into '{self.made}': {error}"
        if not self.no_make and not self.make.exists():
            self.no_make = f"neither '{packed}' nor '{self.make}' is there"

    def make_video(self, precision, skip):
        batch, base, size = map(str, VIDEO_DRY if self.dry else VIDEO)
        network = self.made / f"video_unet_{precision}.onnx"
        sizes = ["--batch", batch, "--base", base, "--size", size, "--type", TYPES[precision]]
        return network, Step(f"make_video_unet_{precision}", [self.make, "video_unet", network, *sizes], 120, skip=skip)

    def drop_video(self, skip):
        files = [self.made / f"video_unet_{precision}.onnx{end}" for precision in TYPES for end in ("", ".data")]
        return Step("drop_video_unet", ["rm", "-f", *files], 20, skip=skip)

    def video(self):
        """The network of 880 million parameters: one CUDA graph a pass; and what 16 bits do to it on its own outputs."""
        skip = self.no_make or ("" if "cuda" in self.devices else "it is for --device cuda")
        (self.folder / "cuda").mkdir(parents=True, exist_ok=True)
        wide, step = self.make_video("fp32", skip)
        yield step
        for precision, kind in (("bf16", ".bfloat"), ("fp16", ".half"), ("fp32", ""))[: 1 if self.dry else 3]:
            network = wide
            if precision != "fp32":
                network, step = self.make_video(precision, skip)
                yield step
            # The model has the type that its tensors are stored in: --precision is for layers.
            result = f"cuda/model_video_unet{kind}.json"
            command = [self.sparkle, "bench", "--device", "cuda", "--model", network, *(["--runs", "1"] if self.dry else [])]
            command += ["--output", self.folder / result]
            step = Step(f"cuda_{precision}_video_unet", command, 200, result, skip)
            yield step
            yield self.with_full_edges(step, f"cuda/edges_video_unet{kind}.json")
            if precision == "fp32":
                continue
            passes = ["--passes", "1" if self.dry else "25", "--noise", "0.6", "--most", VIDEO_MOST[precision]]
            command = [self.sparkle, "drift", wide, network, "--device", "cuda", *passes]
            yield Step(f"drift_video_unet_{precision}", command, 120, skip=skip)
        yield self.drop_video(skip)

    def with_full_edges(self, step, result):
        """The same where no kernel of a graph begins before the one that it follows is over: what programmatic edges bring."""
        command = ["env", "SPARKLE_CUDA_EDGES=full", *step.command[:-1], self.folder / result]
        return Step(f"{step.name}_full_edges", command, step.seconds, result, step.skip)

    def pipeline(self, device, name, network, more=(), skip=""):
        """Items one by one beside the same through a pipeline: how busy the device is."""
        result = f"{device}/pipeline_{name}.json"
        command = [self.sparkle, "bench", network, "--pipeline", "--device", device, *more, "--output", self.folder / result]
        return Step(f"{device}_pipeline_{name}", command, 120, result, skip)

    def networks(self):
        self.find_make()
        for device in self.devices:
            model = self.root / "models" / "upscale2x.onnx"
            shape = ["--shape", "image=1x3x16x16" if self.dry else "image=1x3x270x480"]
            yield self.bench(
                device, "fp32", "upscale2x", ["--model", model, *shape, *(["--runs", "2"] if self.dry else [])], 200
            )
            yield self.pipeline(device, "upscale2x", model, [*shape, *(["--items", "2"] if self.dry else [])])
            for batch in () if self.dry else (1, 32):
                network = self.made / f"resnet50_n{batch}.onnx"
                command = [self.make, "resnet50", network, "--batch", str(batch)]
                yield Step(f"{device}_make_n{batch}", command, 120, skip=self.no_make)
                for precision in ("fp32", "tf32" if device == "cuda" else "matrix"):
                    step = self.bench(device, precision, f"resnet50_n{batch}", ["--model", network], 300)
                    kind = "" if precision == "fp32" else ".matrix"
                    step.result = f"{device}/model_resnet50_n{batch}{kind}.json"
                    step.command[-1] = self.folder / step.result
                    step.skip = self.no_make
                    yield step
                    if device == "cuda":
                        yield self.with_full_edges(step, f"cuda/edges_resnet50_n{batch}{kind}.json")
                yield self.pipeline(device, f"resnet50_n{batch}", network, skip=self.no_make)
                yield Step(f"{device}_drop_n{batch}", ["rm", "-f", network], 10, skip=self.no_make)
        yield from self.video()
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
        yield from self.video_peer(script, all_of)

    def video_peer(self, script, all_of):
        """The video UNet by PyTorch, and whether both engines computed the same network."""
        self.find_make()
        skip = self.no_torch() or self.no_make or ("" if "cuda" in self.devices else "it is for --device cuda")
        result, out = "peers_video_unet.json", self.folder / "video_unet"
        sizes = "x".join(map(str, VIDEO))
        command = [self.python, script, "time", "--layers", "--video-unet", sizes, "--output", self.folder / result]
        yield Step("peers_video_unet", command, 200, result, skip)
        network, step = self.make_video("fp32", skip)
        yield step
        inputs = [self.folder / f"video_unet_{name}.npy" for name in ("frame", "previous", "time")]
        command = [self.sparkle, "run", network, *inputs, "--device", "cuda", "--output", out]
        yield Step("video_unet_run", command, 120, skip=skip)
        files = [out / "next.npy", self.folder / "video_unet_next.npy"]
        yield Step("video_unet_same", [self.python, script, "same", *files], 60, skip=skip)
        yield self.drop_video(skip)
        table = self.table("cuda", "video_unet", all_of / "networks" / "cuda", result)
        table.skip = skip or table.skip
        yield table

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
