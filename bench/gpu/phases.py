"""The steps of each phase of scripts/gpu: kernels before layers before networks, ours before the peers'; within a phase what
matters most comes first - bf16, planes of few channels, fp16, then the wide types -, and for one device the limits of its steps
add up to no more than the phase has, so that none starves those behind it."""

import csv
import pathlib
import shutil
import sys
import tempfile

import odd_shapes
import pack
from peer_steps import PeerSteps
from runner import Step
from tool_steps import LAYER, ToolSteps

PHASES = ("describe", "tests", "kernels", "layers", "networks", "libraries", "peers", "ablation", "sanitize", "tune", "short")
PRECISIONS = {"cuda": ("bf16", "fp16", "tf32", "fp32"), "vulkan": ("fp16", "matrix", "fp32")}
PHASE_SECONDS = 570  # of one device
DURATION = "3"  # seconds of runs of a whole network, by the clock: a step that is killed leaves nothing
DRY_SECONDS = 300  # of each step at least
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
# It may hold 2.5 GB of the card's memory in 16 bits, of which its weights are 1.76: fails with the bytes where it holds more.
HELD = """import json, sys
held = json.load(open(sys.argv[1], encoding="utf-8"))["total"]["device_bytes"]
sys.exit(0 if 0 < held <= 2_500_000_000 else f"{held} bytes of the card's memory are held")"""
LEAST = {"n": 1, "c": 1, "h": 1, "w": 1, "k": 1, "r": 1, "s": 1, "stride_h": 1, "stride_w": 1, "pad_h": 0, "pad_w": 0,
         "dil_h": 1, "dil_w": 1, "groups": 1}
TYPES = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
MAKE_SECONDS = {"fp32": 45, "fp16": 28, "bf16": 28}  # to write that: 3.5 GB in fp32
TINY = "ic16ih8oc16oh8kh3ph1"


class Plan(PeerSteps, ToolSteps):
    """Where things lie and what is asked for. `dry`: the smallest work that goes through the same steps."""

    def __init__(self, root, folder, sparkle, devices, dry, python=sys.executable, seed=1):
        self.root, self.folder, self.sparkle = pathlib.Path(root), pathlib.Path(folder), sparkle
        self.devices, self.dry, self.python, self.seed = devices, dry, python, seed
        self.made = pathlib.Path(tempfile.gettempdir()) / "sparkle_gpu"  # networks: nothing that archives take in
        self.numpy_python = self.not_compiled = None  # of a dry run's stand-ins, once they are asked for
        self.make, self.no_make = pathlib.Path(sparkle).parent / "bench" / "make_network", ""

    def steps(self, phase):
        for step in getattr(self, phase)():
            if self.dry:  # software devices are slow, and how slow is not what a dry run tries
                step.seconds = max(step.seconds, DRY_SECONDS)
            yield step

    def batched(self, batch):
        """shapes/resnet50.csv at another batch size, its rows' names with it."""
        path = self.folder / f"resnet50_n{batch}.csv"
        with open(self.root / "shapes" / "resnet50.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.write_rows(path, [{**row, "name": f"{row['name']}_n{batch}", "n": batch} for row in rows])
        return path

    @staticmethod
    def write_rows(path, rows):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    def problems(self, path):
        """The layers of a list as benchdnn writes them: `sparkle bench --batch` takes these without bias and activation."""
        out = self.folder / f"{path.stem}.benchdnn"
        lines = []
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                r = {key: int(row.get(key) or least) for key, least in LEAST.items()}
                groups = f"g{r['groups']}" if r["groups"] > 1 else ""
                axes = ""
                for axis, size, taps in (("h", "h", "r"), ("w", "w", "s")):
                    seen = (r[taps] - 1) * r[f"dil_{axis}"] + 1
                    rows = (r[size] + 2 * r[f"pad_{axis}"] - seen) // r[f"stride_{axis}"] + 1
                    axes += f"i{axis}{r[size]}o{axis}{rows}k{axis}{r[taps]}s{axis}{r[f'stride_{axis}']}"
                    axes += f"d{axis}{r[f'dil_{axis}'] - 1}p{axis}{r[f'pad_{axis}']}"
                lines.append(f"{groups}mb{r['n']}ic{r['c']}oc{r['k']}{axes}n\"{row['name']}\"\n")
        out.write_text("".join(lines), encoding="utf-8")
        return out

    def alone(self, device, precision, path, seconds):
        """Convolutions without bias and activation, beside the peers' alone."""
        options = ["--dt", precision, "--dir", "FWD_D"]
        what = ["--conv", TINY, *OPTIONS[precision]] if self.dry else ["--batch", self.problems(path), *options]
        step = self.bench(device, precision, f"alone_{path.stem}", what, seconds)
        step.result = f"{device}/{KIND[precision]}-alone_{path.stem}.json"
        step.command[-1] = self.folder / step.result
        return step

    def bench(self, device, precision, name, what, seconds, more=()):
        result = f"{device}/{KIND[precision]}_{name}.json"
        (self.folder / device).mkdir(parents=True, exist_ok=True)
        small = []
        if self.dry and "--model" not in what:  # batches are handed over at once and have no time for a round
            small = ["--rounds", "1", *([] if "--batches" in what else ["--round-ms", "1"])]
        return Step(
            f"{device}_{precision}_{name}",
            [
                self.sparkle,
                "bench",
                "--device",
                device,
                *what,
                *([] if "--dt" in what or "--precision" in what else OPTIONS[precision]),
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
            yield self.devices_step(device)
        code = "import torch as t; print(t.__version__, t.version.cuda, t.backends.cudnn.version(), t.cuda.is_available())"
        skip = "it is of a machine with a card" if self.dry else self.no_torch()
        yield Step("torch", [self.python, "-c", code], 120, skip=skip)

    def devices_step(self, device, seconds=120):
        return Step(f"{device}_devices", [self.sparkle, "devices", "--device", device], seconds)

    def tests(self):
        for device in self.devices:
            yield self.self_tests(device, 260)
            for precision in PRECISIONS[device]:
                yield self.odd_shapes(device, precision, 34 if device == "cuda" else 45)
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
                170,
            )

    def self_tests(self, device, seconds, slow=False):
        command = [self.sparkle, "verify", "--kernels", "--device", device]
        return Step(f"{device}_kernels", command + (["copy", "pool"] if self.dry else []), seconds, slow=slow)

    def odd_shapes(self, device, precision, seconds, count=odd_shapes.COUNT):
        """Small layers that nothing divides, alone and with bias and ReLU: bench holds whole outputs to double precision."""
        rows = odd_shapes.layers(self.seed, odd_shapes.COUNT_DRY if self.dry else count)
        path = self.folder / f"odd_shapes_{count}.csv"
        self.write_rows(path, rows)
        problems = self.problems(path)
        text = problems.read_text(encoding="utf-8")
        both = problems.with_name(f"odd_shapes_{count}_both.benchdnn")
        both.write_text(f"--dir=FWD_D\n{text}--dir=FWD_B\n--attr-post-ops=relu\n{text}", encoding="utf-8")
        kind = TYPES.get(precision, "f32")
        what = ["--batch", both, "--dt", kind, *(OPTIONS[precision] if kind == "f32" else []), "--seed", str(self.seed)]
        step = self.bench(device, precision, "odd_shapes", what, seconds)
        if not self.dry:
            step.command[-2:-2] = ["--rounds", "1", "--round-ms", "1"]
        return step

    def kernels(self):
        for device in self.devices:
            first, *others = PRECISIONS[device]
            yield self.gpu_layers(device, first, 90)
            if device == "cuda":
                yield from self.planes(50, 50)
            for precision in others:
                yield self.gpu_layers(device, precision, 70)
        for device in self.devices:
            conv = TINY if self.dry else LAYER
            batches = "2" if self.dry else "20"
            yield self.bench(device, "fp32", "transfers", ["--conv", conv, "--batches", batches], 40)
            if device == "vulkan":  # CUDA has no transforms
                yield self.crossover(device, 50)

    def gpu_layers(self, device, precision, seconds, names=()):
        what = ["--conv", TINY] if self.dry else ["--layers", self.root / "shapes" / "gpu.csv"]
        filters = [] if self.dry else [word for name in names for word in ("--filter", name)]
        return self.bench(device, precision, "gpu", [*what, *filters], seconds)

    def planes(self, seconds, ladder_seconds):
        """Planes of few channels, which CUDA has kernels for."""
        few = ["--layers", self.root / "shapes" / "gpu.csv", "--filter", "few_"]
        for precision in ("tf32", "fp16"):
            what = ["--conv", "ic1ih12oc4oh6kh7ph0"] if self.dry else few
            yield self.bench("cuda", precision, "planes", [*what, "--planes"], seconds)
        conv = "ic4ih12oc4oh6kh7ph0" if self.dry else "mb10000ic4ih40oc16oh34kh7ph0"
        yield self.bench("cuda", "tf32", "planes_ladder", ["--conv", conv, "--planes", "--ladder"], ladder_seconds)

    def crossover(self, device, seconds):
        """It prints a table, and writes no JSON."""
        conv = "ic1ih8oc1oh8kh3ph1" if self.dry else "mb8ic64ih56oc64oh56kh3ph1"
        step = self.bench(device, "fp32", "crossover", ["--crossover", "--conv", conv], seconds)
        step.command, step.result = step.command[: step.command.index("--output")], ""
        return step

    def layers(self):
        batches = (1,) if self.dry else (32, 256)
        lists = [self.batched(batch) for batch in batches]
        for precision, device in ((p, d) for i in range(4) for d in self.devices for p in PRECISIONS[d][i : i + 1]):
            for path in lists:
                what = ["--conv", TINY] if self.dry else ["--layers", path]
                yield self.bench(device, precision, path.stem, what, 55)
                if precision == "bf16":
                    yield self.alone(device, precision, path, 55)

    def find_make(self):
        """The program that makes networks: unpacked where it was packed, else the build's; `no_make` says why there is none."""
        travelled, built = self.root / pack.PACKED_TOOL, self.make
        packed = travelled if travelled.exists() or built.exists() else pack.packed(self.root, pack.PACKED_TOOL)
        try:
            self.made.mkdir(parents=True, exist_ok=True)
            if packed and packed.exists():
                self.make = self.made / "make_network"
                pack.unpack(packed, self.make)
        except (OSError, pack.lzma.LZMAError) as error:
            self.no_make = f"'{packed}' cannot be unpacked into '{self.made}': {error}"
        if not self.no_make and not self.make.exists():
            self.no_make = f"neither '{travelled}' nor '{built}' is there"

    def video_sizes(self):
        return VIDEO_DRY if self.dry else VIDEO

    def make_video(self, precision, skip, seconds=0):
        batch, base, size = map(str, self.video_sizes())
        network = self.made / f"video_unet_{precision}.onnx"
        sizes = ["--batch", batch, "--base", base, "--size", size, "--type", TYPES[precision]]
        command = [self.make, "video_unet", network, *sizes]
        return network, Step(f"make_video_unet_{precision}", command, seconds or MAKE_SECONDS[precision], skip=skip)

    def drop_video(self, skip, seconds=5):
        files = [self.made / f"video_unet_{precision}.onnx{end}" for precision in TYPES for end in ("", ".data")]
        return Step("drop_video_unet", ["rm", "-f", *files], seconds, skip=skip)

    def no_video(self):
        return self.no_make or ("" if "cuda" in self.devices else "it is for --device cuda")

    def bench_video(self, precision, network, seconds):
        """One CUDA graph a pass. The model has the type that its tensors are stored in: --precision is for layers."""
        kind = {"bf16": ".bfloat", "fp16": ".half", "fp32": ""}[precision]
        (self.folder / "cuda").mkdir(parents=True, exist_ok=True)
        result = f"cuda/model_video_unet{kind}.json"
        command = [self.sparkle, "bench", "--device", "cuda", "--model", network, *(["--runs", "1"] if self.dry else [])]
        command += ["--output", self.folder / result]
        return Step(f"cuda_{precision}_video_unet", command, seconds, result, self.no_video())

    def video(self):
        """The network of 880 million parameters; and what 16 bits do to it on its own outputs."""
        skip = self.no_video()
        wide = None
        for precision in ("bf16", "fp16", "fp32")[: 1 if self.dry else 3]:
            network, step = self.make_video(precision, skip)
            if precision != "fp32":
                yield step
                yield from self.bench_video_both(precision, network)
            if wide is None:
                wide, step = self.make_video("fp32", skip)
                yield step
            if precision == "fp32":
                yield from self.bench_video_both("fp32", wide)
                continue
            passes = ["--passes", "1" if self.dry else "25", "--noise", "0.6", "--most", VIDEO_MOST[precision]]
            command = [self.sparkle, "drift", wide, network, "--device", "cuda", *passes]
            yield Step(f"drift_video_unet_{precision}", command, 36, skip=skip)
        yield self.drop_video(skip)

    def bench_video_both(self, precision, network):
        step = self.bench_video(precision, network, 34)
        yield step
        if precision == "bf16":
            yield self.held_video(step)
            yield self.with_full_edges(step, step.result.replace("model_", "edges_"))

    def held_video(self, step):
        return Step("video_unet_memory", [self.python, "-c", HELD, self.folder / step.result], 5, skip=step.skip)

    def with_full_edges(self, step, result, seconds=0):
        """The same where no kernel of a graph begins before the one that it follows is over: what programmatic edges bring.
        Starting and judging take as long as before, runs half of it."""
        half = ["1.5" if word == DURATION else word for word in step.command[:-1]]
        command = ["env", "SPARKLE_CUDA_EDGES=full", *half, self.folder / result]
        return Step(f"{step.name}_full_edges", command, seconds or 2 * step.seconds // 5, result, step.skip)

    def pipeline(self, device, name, network, more=(), skip=""):
        """Items one by one beside the same through a pipeline: how busy the device is."""
        result = f"{device}/pipeline_{name}.json"
        command = [self.sparkle, "bench", network, "--pipeline", "--device", device, *more, "--output", self.folder / result]
        return Step(f"{device}_pipeline_{name}", command, 14, result, skip)

    def networks(self):
        self.find_make()
        for device in self.devices:
            yield from self.resnet50_in_16_bits(device)
        yield from self.resnet50_peer()
        yield from self.video()
        for device in self.devices:
            model = self.root / "models" / "upscale2x.onnx"
            shape = ["--shape", "image=1x3x16x16" if self.dry else "image=1x3x270x480"]
            yield self.bench(
                device, "fp32", "upscale2x", ["--model", model, *shape, *(["--runs", "2"] if self.dry else [])], 14
            )
            yield self.pipeline(device, "upscale2x", model, [*shape, *(["--items", "2"] if self.dry else [])])
            yield from self.resnet50(device)

    def make_resnet50(self, device, precision, batch):
        """Of a dry run a smaller network in its place."""
        network = self.made / f"resnet50_{device}_{precision}_n{batch}.onnx"
        name = "tiny_residual" if self.dry else "resnet50"
        command = [self.make, name, network, "--batch", str(batch), "--type", TYPES[precision]]
        return network, Step(f"{device}_make_resnet50_{precision}_n{batch}", command, 5, skip=self.no_make)

    def bench_resnet50(self, device, precision, network, what, seconds):
        """One CUDA graph a pass. `what`: n32."""
        step = self.bench(device, precision, f"resnet50_{what}", ["--model", network, *self.once()], seconds)
        kind = {"fp32": "", "tf32": ".matrix", "matrix": ".matrix", "fp16": ".half", "bf16": ".bfloat"}[precision]
        if precision in ("fp16", "bf16"):  # the model has the type that its tensors are stored in
            step.command = [word for word in step.command if word not in OPTIONS[precision]]
        step.result = f"{device}/model_resnet50_{what}{kind}.json"
        step.command[-1] = self.folder / step.result
        step.skip = self.no_make
        return step

    def drop_resnet50(self, device, name, *networks):
        return Step(f"{device}_drop_resnet50_{name}", ["rm", "-f", *networks], 5, skip=self.no_make)

    def once(self):
        return ["--runs", "1"] if self.dry else ["--duration", DURATION]

    def resnet50_in_16_bits(self, device):
        """The whole network in large batches: what matters most of it, so it comes first."""
        networks = []
        for precision in (one for one in PRECISIONS[device] if one in ("bf16", "fp16")):
            for batch, seconds in zip(self.batches(), (12, 20)):
                network, step = self.make_resnet50(device, precision, batch)
                networks.append(network)
                yield step
                step = self.bench_resnet50(device, precision, network, f"n{batch}", seconds)
                yield step
                if precision == "bf16" and batch == self.batches()[0]:  # the less work, the more launches are of its time
                    yield self.with_full_edges(step, f"cuda/edges_resnet50_n{batch}.bfloat.json", 8)
        yield self.drop_resnet50(device, "in_16_bits", *networks)

    def resnet50(self, device):
        """The same in fp32 and with matrix units, for one picture and for a batch; of a dry run the whole network once, on
        small pictures."""
        networks = []
        if self.dry:
            whole = self.made / f"resnet50_{device}_small.onnx"
            networks.append(whole)
            yield Step(f"{device}_make_resnet50_small", [self.make, "resnet50", whole, "--size", "32"], 5, skip=self.no_make)
            yield self.bench_resnet50(device, "fp32", whole, "small", 2 * DRY_SECONDS)  # minutes over the functional model
        for batch in (1, self.batches()[0]):
            network, step = self.make_resnet50(device, "fp32", batch)
            networks.append(network)
            yield step
            for precision in ("fp32", "tf32" if device == "cuda" else "matrix"):
                step = self.bench_resnet50(device, precision, network, f"n{batch}", 14)
                yield step
                if precision == "tf32" and batch == 1:
                    yield self.with_full_edges(step, "cuda/edges_resnet50_n1.matrix.json")
            items = ["--items", "2"] if self.dry else []
            yield self.pipeline(device, f"resnet50_n{batch}", network, items, skip=self.no_make)
        yield self.drop_resnet50(device, "fp32", *networks)

    def batches(self):
        return (2, 3) if self.dry else (32, 256)

    def short(self):
        """Of a card that is lent for a quarter of an hour: whether every kernel is right, then what is compared with others -
        strict fp32, the layers in bf16 that bounds differ for, planes of few channels, ResNet-50's layers, the video UNet -,
        each with its peer."""
        device, cuda = self.devices[0], self.devices[0] == "cuda"
        precision = PRECISIONS[device][0]
        yield self.devices_step(device, 25)
        yield self.self_tests(device, 120, slow=True)
        step = self.odd_shapes(device, precision, 20, 20)
        step.slow = True  # a card that is slow to begin is no finding
        yield step
        yield self.gpu_layers(device, "fp32", 25, ("valid_",))
        names = ("compute_", "l2_", "memory_", "conv_4x4")
        yield self.gpu_layers(device, precision, 40, names)
        if cuda:
            yield from self.planes(25, 20)
        layers = self.batched(32)
        what = ["--conv", TINY] if self.dry else ["--layers", layers]
        yield self.bench(device, precision, layers.stem, what, 30)
        if cuda:
            yield self.alone(device, precision, layers, 25)
        yield from self.short_libraries(("valid_", *names), layers)
        self.find_make()
        skip = self.no_video()
        network, step = self.make_video("bf16", skip, 20)
        yield step
        step = self.bench_video("bf16", network, 35)
        yield step
        yield self.held_video(step)
        yield self.drop_video(skip)
        yield from self.short_torch(names, skip)

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
