"""PyTorch as a peer: layers by its calls, whole networks, each replayed from a CUDA graph where that can be captured."""

import math
import pathlib
import statistics
import time

from .layers import flops_of
from .libraries import NotAsked, PeerError

NARROW = {"f16": "float16", "bf16": "bfloat16"}
BURST_SECONDS = 0.01  # of calls between two events
BURSTS = 9
MOST_IN_GRAPH = 20  # calls of a layer, as the libraries beside it have them


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

    def captured(self, call, inside):
        """(so many calls as a CUDA graph's replay, how many); the call itself where it cannot be captured."""
        if not self.gpu:
            return call, 1
        try:
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                for _ in range(inside):
                    call()
            graph.replay()
            self.torch.cuda.synchronize()
            return graph.replay, inside
        except RuntimeError:
            self.torch.cuda.synchronize()
            return call, 1

    def median(self, call, most=MOST_IN_GRAPH):
        """Seconds of a call: (median, least). Up to `most` in a graph, so that a short one is not its launch from Python."""
        for _ in range(3):  # the first calls choose an algorithm
            self.burst(call, 1)
        one = max(self.burst(call, 1), 1e-6)
        call, inside = self.captured(call, max(1, min(most, int(BURST_SECONDS / one))))
        one = max(self.burst(call, 1), 1e-6)
        count = max(1, min(1000, int(BURST_SECONDS / one)))
        samples = [self.burst(call, count) / (count * inside) for _ in range(BURSTS)]
        return statistics.median(samples), min(samples)


def switch_tf32(torch, on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def time_layer(torch, clock, device, layer, way):
    functional = torch.nn.functional
    kind, _, how = way.partition("_")
    fused, alone = how == "fused", how == "alone"
    dtype = getattr(torch, NARROW.get(kind, "float32"))
    switch_tf32(torch, kind == "tf32")
    random = torch.Generator(device=device).manual_seed(1)
    make = lambda *shape: torch.randn(*shape, generator=random, device=device, dtype=torch.float32).to(dtype)
    if how and layer["kind"] == "gemm":
        raise NotAsked("products have no activation here.")
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


def fold_normalisation(torch, network):
    """Batch normalisation into the convolutions before it, as Sparkle's network has it: of torchvision's ResNets, in eval()."""
    nn, fold = torch.nn, torch.nn.utils.fusion.fuse_conv_bn_eval
    for module in list(network.modules()):
        for conv, norm in (("conv1", "bn1"), ("conv2", "bn2"), ("conv3", "bn3")):
            if isinstance(getattr(module, norm, None), nn.BatchNorm2d):
                setattr(module, conv, fold(getattr(module, conv), getattr(module, norm)))
                setattr(module, norm, nn.Identity())
        short = getattr(module, "downsample", None)
        if short is not None:
            module.downsample = fold(short[0], short[1])
    return network


def resnet50(torch):
    """torchvision's network where it is installed, else the same layers put together here."""
    try:
        import torchvision
        network = fold_normalisation(torch, torchvision.models.resnet50(weights=None).eval())
        return network, f"torchvision {torchvision.__version__}, batch normalisation folded"
    except (ImportError, RuntimeError, AttributeError):  # the others: it is of another PyTorch
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
    return nn.Sequential(*parts), "its layers, batch normalisation folded"


def time_network(torch, clock, device, batch, size, way):
    network, what = resnet50(torch)
    network = network.eval().to(device)
    x = torch.randn(batch, 3, size, size, device=device)
    if "_" in way:
        raise NotAsked("a network is not one call.")
    if way in NARROW:
        dtype = getattr(torch, NARROW[way])
        network = network.to(dtype).to(memory_format=torch.channels_last)
        x = x.to(dtype).contiguous(memory_format=torch.channels_last)
    switch_tf32(torch, way == "tf32")
    with torch.inference_mode():
        median, least = clock.median(lambda: network(x), most=1)
    return {"median_ms": median * 1e3, "min_ms": least * 1e3, "network": what}


def time_video_unet(torch, clock, device, sizes, way, output):
    import video_unet

    if "_" in way:
        raise NotAsked("a network is not one call.")
    switch_tf32(torch, way == "tf32")
    with torch.inference_mode():
        call, inputs = video_unet.peer(torch, device, getattr(torch, NARROW.get(way, "float32")), *sizes)
        if way == "f32":
            import numpy

            for name, tensor in {**inputs, "next": call()}.items():
                numpy.save(output.parent / f"video_unet_{name}.npy", tensor.contiguous().cpu().numpy())
        median, least = clock.median(call, most=1)
    return {"median_ms": median * 1e3, "min_ms": least * 1e3, "network": "bench/gpu/video_unet.py, normalisation folded"}


class Peer:
    """PyTorch on a GPU, or on a CPU, where its own kernels are timed by the clock: that only tries the program."""

    name = "torch"

    def __init__(self, device):
        try:
            import torch
        except ImportError as error:
            raise PeerError(f"PyTorch cannot be imported here ({error}).") from None
        if device == "cuda" and not torch.cuda.is_available():
            raise PeerError("PyTorch sees no GPU here (--device cpu tries the program).")
        torch.backends.cudnn.benchmark = True
        self.torch, self.where, self.clock = torch, device, Clock(torch, device)
        ways = ("bf16_fused", "bf16_alone", "bf16", "f16_fused", "f16", "tf32", "f32")  # what matters most comes first
        self.ways = ways if device == "cuda" else ("f32",)
        self.device = torch.cuda.get_device_name() if device == "cuda" else "cpu"
        cudnn = torch.backends.cudnn.version() if device == "cuda" else None
        self.about = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": cudnn}

    def time(self, layer, way):
        return time_layer(self.torch, self.clock, self.where, layer, way)

    def networks(self, whole, size, video, output):
        """Names and functions of a way."""
        call = lambda batch: lambda way: time_network(self.torch, self.clock, self.where, batch, size, way)
        found = {f"resnet50_n{batch}": call(batch) for batch in whole}
        if video:
            unet = lambda way: time_video_unet(self.torch, self.clock, self.where, video, way, pathlib.Path(output))
            found["video_unet"] = unet
        return found

    def close(self):
        pass
