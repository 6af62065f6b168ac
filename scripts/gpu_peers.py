#!/usr/bin/env python3
"""PyTorch (cuDNN, cuBLAS) on the layers of shapes/*.csv, and a table of Sparkle's times beside it.

  gpu_peers.py time  --layers shapes/resnet50.csv ... --output peers.json [--device cuda] [--whole 1,32]
               [--video-unet 2x192x64] [--filter TEXT] [--ways bf16,bf16_fused] [--made-up]
  gpu_peers.py table --ours FOLDER --peers peers.json
  gpu_peers.py same  FOUND.npy WANTED.npy

`time` measures the layers under their own names, bias added and no activation: medians of device events around bursts of
calls, cudnn.benchmark on, inputs resident, calls replayed from a CUDA graph where they can be captured. Ways: f32 (TF32 off),
tf32 (the matrix units with inputs rounded to 10 bits), f16 and bf16 (channels last, sums in f32); of convolutions f16_fused
and bf16_fused with bias and ReLU in cuDNN's one call, which is what Sparkle's times are of but for *-alone_*.json: these, and
bf16_alone, are of convolutions without either. On a CPU PyTorch's own kernels are
timed by the clock; that only tries the program. The file is rewritten after every layer, so that an end before the end loses
nothing.
--video-unet times the network of bench/gpu/video_unet.py, and writes its inputs and output in f32 as .npy beside the file: what
Sparkle must make of them, which `same` compares.
--made-up needs no PyTorch and measures nothing: every time is what 1 TFLOP/s would take, which tries the rest of the way.
`table` reads layers_*, matrix_*, half_*, bfloat_*, bfloat-alone_* and model_*.json of `scripts/gpu` and prints times and
quotients: above 1 Sparkle is faster. Whole networks of Sparkle count by the sum of their steps on the device, as events count
the peer.
"""
import argparse
import csv
import json
import math
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench" / "gpu"))

WAYS = ("f32", "tf32", "f16", "bf16", "f16_fused", "bf16_fused", "bf16_alone")
GOALS = {"bf16": " with bias and ReLU (aim: 1.3)", "bf16_alone": " of convolutions alone (aim: 1.0)"}
NARROW = {"f16": "float16", "bf16": "bfloat16"}
BURST_SECONDS = 0.01  # of calls between two events
BURSTS = 9


def read_layers(path):
    """Rows as `sparkle bench --layers` reads them: columns by name, missing ones at their defaults."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    layers = []
    for row in rows:
        number = lambda key, default: int(row[key]) if row.get(key) else default
        layers.append({
            "name": row["name"],
            "n": number("n", 1), "c": number("c", 1), "h": number("h", 1), "w": number("w", 1),
            "k": number("k", 1), "r": number("r", 1), "s": number("s", 1),
            "stride": (number("stride_h", 1), number("stride_w", 1)),
            "pad": (number("pad_h", 0), number("pad_w", 0)),
            "dilation": (number("dil_h", 1), number("dil_w", 1)),
            "groups": number("groups", 1),
            "kind": row.get("kind") or "conv",
        })
    return layers


def flops_of(layer):
    if layer["kind"] == "gemm":
        return 2 * layer["k"] * layer["c"] * layer["h"] * layer["w"] * layer["n"]
    out = 1
    for axis, size, taps in ((0, layer["h"], layer["r"]), (1, layer["w"], layer["s"])):
        seen = (taps - 1) * layer["dilation"][axis] + 1
        out *= (size + 2 * layer["pad"][axis] - seen) // layer["stride"][axis] + 1
    return 2 * layer["n"] * out * layer["k"] * layer["c"] // layer["groups"] * layer["r"] * layer["s"]


class Clock:
    """Seconds of a call: the device's events on a GPU, the host's clock elsewhere."""

    def __init__(self, torch, device):
        self.torch, self.gpu = torch, device == "cuda"

    def burst(self, call, count):
        if not self.gpu:
            begin = time.perf_counter()
            for _ in range(count):
                call()
            return time.perf_counter() - begin
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def captured(self, call):
        """The call as a CUDA graph's replay; itself where it cannot be captured."""
        if not self.gpu:
            return call
        try:
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                call()
            graph.replay()
            self.torch.cuda.synchronize()
            return graph.replay
        except RuntimeError:
            self.torch.cuda.synchronize()
            return call

    def median(self, call):
        for _ in range(3):  # the first calls choose an algorithm
            self.burst(call, 1)
        call = self.captured(call)
        one = max(self.burst(call, 1), 1e-6)
        count = max(1, min(1000, int(BURST_SECONDS / one)))
        samples = [self.burst(call, count) / count for _ in range(BURSTS)]
        return statistics.median(samples), min(samples)


def switch_tf32(torch, on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def time_layer(torch, clock, device, layer, way):
    functional = torch.nn.functional
    kind, _, how = way.partition("_")
    fused, alone = how == "fused", how == "alone"
    dtype = getattr(torch, NARROW.get(kind, "float32"))
    switch_tf32(torch, way == "tf32")
    random = torch.Generator(device=device).manual_seed(1)
    make = lambda *shape: torch.randn(*shape, generator=random, device=device, dtype=torch.float32).to(dtype)
    if how and layer["kind"] == "gemm":
        raise ValueError("products have no activation here")
    if layer["kind"] == "gemm":
        a, b = make(layer["k"], layer["c"]), make(layer["c"], layer["h"] * layer["w"])
        call = lambda: torch.mm(a, b)
    else:
        x = make(layer["n"], layer["c"], layer["h"], layer["w"])
        w = make(layer["k"], layer["c"] // layer["groups"], layer["r"], layer["s"])
        w = w / math.sqrt(layer["c"] // layer["groups"] * layer["r"] * layer["s"])
        bias = None if alone else make(layer["k"])
        if kind in NARROW:
            x, w = x.contiguous(memory_format=torch.channels_last), w.contiguous(memory_format=torch.channels_last)
        fused_call = lambda: torch.cudnn_convolution_relu(x, w, bias, layer["stride"], layer["pad"], layer["dilation"],
                                                          layer["groups"])
        plain_call = lambda: functional.conv2d(x, w, bias, layer["stride"], layer["pad"], layer["dilation"], layer["groups"])
        call = fused_call if fused else plain_call
    with torch.inference_mode():
        median, least = clock.median(call)
    return {"median_ms": median * 1e3, "min_ms": least * 1e3, "gflops": flops_of(layer) / median * 1e-9}


def resnet50(torch):
    """torchvision's network where it is installed, else the same layers put together here."""
    try:
        import torchvision
        return torchvision.models.resnet50(weights=None), "torchvision " + torchvision.__version__
    except ImportError:
        pass
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, c, middle, k, stride):
            super().__init__()
            self.first, self.second = nn.Conv2d(c, middle, 1), nn.Conv2d(middle, middle, 3, stride, 1)
            self.third = nn.Conv2d(middle, k, 1)
            self.short = nn.Conv2d(c, k, 1, stride) if c != k or stride != 1 else nn.Identity()

        def forward(self, x):
            relu = nn.functional.relu
            return relu(self.third(relu(self.second(relu(self.first(x))))) + self.short(x))

    parts, c = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, (blocks, middle) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            parts.append(Block(c, middle, 4 * middle, 2 if stage > 0 and block == 0 else 1))
            c = 4 * middle
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*parts), "its layers, without batch normalisation"


def time_network(torch, clock, device, batch, way):
    network, what = resnet50(torch)
    network = network.eval().to(device)
    x = torch.randn(batch, 3, 224, 224, device=device)
    if "_" in way:
        raise ValueError("a network is not one call")
    if way in NARROW:
        dtype = getattr(torch, NARROW[way])
        network = network.to(dtype).to(memory_format=torch.channels_last)
        x = x.to(dtype).contiguous(memory_format=torch.channels_last)
    switch_tf32(torch, way == "tf32")
    with torch.inference_mode():
        median, least = clock.median(lambda: network(x))
    return {"median_ms": median * 1e3, "min_ms": least * 1e3, "network": what}


def time_video_unet(torch, clock, device, sizes, way, output):
    import video_unet

    if "_" in way:
        raise ValueError("a network is not one call")
    switch_tf32(torch, way == "tf32")
    with torch.inference_mode():
        call, inputs = video_unet.peer(torch, device, getattr(torch, NARROW.get(way, "float32")), *sizes)
        if way == "f32":
            import numpy

            for name, tensor in {**inputs, "next": call()}.items():
                numpy.save(output.parent / f"video_unet_{name}.npy", tensor.contiguous().cpu().numpy())
        median, least = clock.median(call)
    return {"median_ms": median * 1e3, "min_ms": least * 1e3, "network": "bench/gpu/video_unet.py, normalisation folded"}


def ways_on(device):
    return WAYS if device == "cuda" else ("f32",)


def layers_of(arguments):
    layers = {}
    for path in arguments.layers:
        for layer in read_layers(path):
            if not arguments.filter or any(text in layer["name"] for text in arguments.filter):
                layers.setdefault(layer["name"], layer)
    return layers


def make_up(arguments):
    """A file like one of `measure`, of a peer that does not exist."""
    time_of = lambda flops: {"median_ms": flops * 1e-9, "min_ms": flops * 1e-9, "gflops": 1000.0}
    ways = arguments.ways or WAYS
    networks = [(f"resnet50_n{batch}", 8e9 * batch) for batch in arguments.whole]
    networks += [("video_unet", 285e9)] if arguments.video_unet else []
    result = {
        "device": "made up",
        "layers": {name: {way: time_of(flops_of(layer)) for way in ways} for name, layer in layers_of(arguments).items()},
        "networks": {name: {way: time_of(flops) for way in ways if "_" not in way} for name, flops in networks},
    }
    pathlib.Path(arguments.output).write_text(json.dumps(result, indent=1) + "\n")
    return 0


def measure(arguments):
    layers = layers_of(arguments)
    try:
        import torch
    except ImportError as error:
        print(f"gpu_peers: PyTorch cannot be imported here ({error}); {len(layers)} layers were read, nothing is measured.",
              file=sys.stderr)
        return 3
    device = arguments.device
    if device == "cuda" and not torch.cuda.is_available():
        print("gpu_peers: PyTorch sees no GPU here; nothing is measured (--device cpu tries the program).", file=sys.stderr)
        return 3
    torch.backends.cudnn.benchmark = True
    clock = Clock(torch, device)
    result = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if device == "cuda" else None,
        "ways": {"f32": "TF32 off", "tf32": "TF32 on", "f16": "channels last"},
        "layers": {},
        "networks": {},
    }

    def keep():
        part = arguments.output + ".part"
        pathlib.Path(part).write_text(json.dumps(result, indent=1) + "\n")
        pathlib.Path(part).replace(arguments.output)

    def attempt(into, call):
        for way in ways_on(device):
            if arguments.ways and way not in arguments.ways:
                continue
            try:
                into[way] = call(way)
            except Exception as error:  # a layer that the peer cannot do, or has no memory for, is a row that says so
                into[way] = {"error": str(error).splitlines()[0] if str(error) else type(error).__name__}
        keep()

    keep()
    for layer in layers.values():
        row = result["layers"].setdefault(layer["name"], {})
        attempt(row, lambda way: time_layer(torch, clock, device, layer, way))
        print(layer["name"], {way: round(found.get("median_ms", math.nan), 4) for way, found in row.items()}, flush=True)
    for batch in arguments.whole:
        row = result["networks"].setdefault(f"resnet50_n{batch}", {})
        attempt(row, lambda way: time_network(torch, clock, device, batch, way))
    if arguments.video_unet:
        row = result["networks"].setdefault("video_unet", {})
        output = pathlib.Path(arguments.output)
        attempt(row, lambda way: time_video_unet(torch, clock, device, arguments.video_unet, way, output))
    return 0


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        print(f"gpu_peers: '{path}' is left out: {error}", file=sys.stderr)
        return None


def our_times(folder):
    """Name -> {what: ms} of layers_* (fp32), matrix_* (matrix units allowed), half_*, bfloat_* (in 16 bits), model_*.json."""
    ours = {}
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        what, _, rest = path.stem.partition("_")
        if what not in ("layers", "matrix", "half", "bfloat", "bfloat-alone", "model"):
            continue
        data = read_json(path)
        if data is None:
            continue
        if what == "model":
            name, _, kind = rest.partition(".")
            total = data.get("total", {})
            if "median_ms" in total:
                ours.setdefault(name, {})[kind or "layers"] = total.get("steps_ms") or total["median_ms"]
            continue
        for row in data.get("rows", []):
            if "median_ms" in row:
                ours.setdefault(row["name"], {})[what] = row["median_ms"]
    return ours


def print_table(ours, peers):
    rows = {**(peers or {}).get("layers", {}), **(peers or {}).get("networks", {})}
    if peers:
        print(f"{peers.get('device')}; torch {peers.get('torch')}, CUDA {peers.get('cuda')}, cuDNN {peers.get('cudnn')}")
    print("ms; ours: fp32, with matrix units (inputs rounded), stored in fp16 and in bf16, all with bias and ReLU, and in bf16")
    print("the convolution alone, as bf16_alone is the peer's; quotients:")
    print("the peer's time over ours, above 1 Sparkle is faster; of 16 bits the peer's one fused call where there is one")
    heads = ("ours", "matrix", "half", "bfloat", "alone", *WAYS)
    pairs = (("f32", "layers"), ("tf32", "matrix"), ("f16", "half"), ("bf16", "bfloat"), ("bf16_alone", "bfloat-alone"))
    quotients = " ".join(f"{way[-7:]:>7s}" for way, _ in pairs)
    print(f"{'layer':28s} {' '.join(f'{head:>10s}' for head in heads)} {quotients}")
    shares = {way: [] for way, _ in pairs}

    def number(value, width=10):
        return f"{value:{width}.4f}" if value else f"{'-':>{width}s}"

    for name in sorted(set(ours) | set(rows)):
        mine = ours.get(name, {})
        times = {way: rows.get(name, {}).get(way, {}).get("median_ms") for way in WAYS}
        columns = [number(mine.get(kind)) for _, kind in pairs] + [number(t) for t in times.values()]
        for way, kind in pairs:
            own, peer = mine.get(kind), times.get(f"{way}_fused") or times[way]
            if own and peer:
                shares[way].append(peer / own)
            columns.append(number(peer / own if own and peer else None, 7)[:7])
        print(f"{name:28.28s} {' '.join(columns)}")
    for way, values in shares.items():
        if values:
            mean = math.exp(sum(math.log(v) for v in values) / len(values))
            print(f"geometric mean of {way} over ours{GOALS.get(way, '')}: {mean:.3f} ({len(values)} rows)")


def table(arguments):
    ours = our_times(arguments.ours)
    peers = read_json(arguments.peers) if arguments.peers else None
    if not ours:
        print(f"gpu_peers: '{arguments.ours}' holds no times of Sparkle's.", file=sys.stderr)
    if not ours and not peers:
        return 3
    print_table(ours, peers)
    return 0


def same(arguments):
    """Whether two arrays agree as two engines in fp32 do."""
    import numpy

    found, wanted = numpy.load(arguments.found), numpy.load(arguments.wanted)
    if found.shape != wanted.shape:
        print(f"gpu_peers: '{arguments.found}' is {found.shape}, '{arguments.wanted}' {wanted.shape}.", file=sys.stderr)
        return 1
    error, largest = numpy.abs(found - wanted).max(), numpy.abs(wanted).max()
    print(f"largest difference {error:.2e}, largest value {largest:.2e}")
    return 0 if error <= 1e-3 * largest else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    timing = commands.add_parser("time", help="measure PyTorch")
    timing.add_argument("--layers", nargs="*", required=True, metavar="FILE.csv")
    timing.add_argument("--output", required=True, metavar="FILE.json")
    timing.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    timing.add_argument("--whole", default=[], type=lambda text: [int(n) for n in text.split(",")],
                        help="batches of the whole ResNet-50: 1,32")
    timing.add_argument("--video-unet", type=lambda text: [int(n) for n in text.split("x")],
                        help="batch, base channels and size of the video UNet: 2x192x64")
    timing.add_argument("--filter", action="append", default=[], metavar="TEXT", help="only layers with this in their names")
    timing.add_argument("--ways", type=lambda text: text.split(","), help="only these: bf16,bf16_fused")
    timing.add_argument("--made-up", action="store_true", help="made-up times, without PyTorch")
    timing.set_defaults(call=lambda arguments: make_up(arguments) if arguments.made_up else measure(arguments))
    tables = commands.add_parser("table", help="print Sparkle's times beside them")
    tables.add_argument("--ours", required=True, metavar="FOLDER")
    tables.add_argument("--peers", metavar="FILE.json")
    tables.set_defaults(call=table)
    comparing = commands.add_parser("same", help="compare an output of Sparkle's with the peer's")
    comparing.add_argument("found", metavar="FOUND.npy")
    comparing.add_argument("wanted", metavar="WANTED.npy")
    comparing.set_defaults(call=same)
    arguments = parser.parse_args()
    return arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
