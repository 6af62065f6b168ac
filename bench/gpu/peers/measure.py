"""Times of a peer's layers and networks, in a file that is written anew after each of them: an end before the end loses
nothing."""

import functools
import json
import math
import pathlib
import sys
import time

from .layers import flops_of, layers_of
from .libraries import Absent, NotAsked, PeerError

ABSENT = 77  # exit status where a peer is not on this machine
PEERS = ("torch", "cudnn", "cublaslt")
MADE_UP_WAYS = ("f32", "tf32", "f16", "bf16", "f16_fused", "bf16_fused", "bf16_alone")


def open_peer(name, device, seconds):
    if name == "torch":
        from .torch_peer import Peer

        return Peer(device)
    if device != "cuda":
        raise PeerError(f"'{name}' is for --device cuda.")
    from . import cublaslt, cudnn
    from .driver import Driver

    driver = Driver()
    peer = {"cudnn": cudnn, "cublaslt": cublaslt}[name].Peer(driver, seconds)
    peer.device = driver.name()
    peer.about["driver"] = driver.version()
    return peer


def make_up(arguments):
    """A file like one of `measure`, of a peer that does not exist."""
    time_of = lambda flops: {"median_ms": flops * 1e-9, "min_ms": flops * 1e-9, "gflops": 1000.0}
    ways = arguments.ways or MADE_UP_WAYS
    networks = [(f"resnet50_n{batch}", 8e9 * batch) for batch in arguments.whole]
    networks += [("video_unet", 285e9)] if arguments.video_unet else []
    layers = layers_of(arguments.layers, arguments.filter)
    result = {
        "peer": "made up",
        "device": "made up",
        "layers": {name: {way: time_of(flops_of(layer)) for way in ways} for name, layer in layers.items()},
        "networks": {name: {way: time_of(flops) for way in ways if "_" not in way} for name, flops in networks},
    }
    pathlib.Path(arguments.output).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(arguments):
    end = time.monotonic() + arguments.seconds if arguments.seconds else math.inf  # opening a peer takes seconds too
    layers = layers_of(arguments.layers, arguments.filter)
    try:
        peer = open_peer(arguments.peer, arguments.device, arguments.search_seconds)
    except PeerError as error:
        print(f"gpu_peers: {error} {len(layers)} layers were read, nothing is measured.", file=sys.stderr)
        return ABSENT if isinstance(error, Absent) else 3
    result = {"peer": peer.name, "device": peer.device, **peer.about, "layers": {}, "networks": {}}
    timed, failed, first = 0, 0, ""

    def keep():
        part = arguments.output + ".part"
        pathlib.Path(part).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        pathlib.Path(part).replace(arguments.output)

    def attempt(part, name, way, call):
        nonlocal timed, failed, first
        try:
            row = call(way)
            timed += 1
        except Exception as error:  # a layer that the peer cannot do, or has no memory for, is a row that says so
            row = {"error": str(error).splitlines()[0] if str(error) else type(error).__name__}
            if not isinstance(error, NotAsked):
                failed, first = failed + 1, first or row["error"]
        result[part].setdefault(name, {})[way] = row
        keep()
        print(f"{name} {way} {row.get('median_ms', row.get('error'))}", flush=True)

    keep()
    calls = {("layers", name): functools.partial(peer.time, layer) for name, layer in layers.items()}
    if arguments.peer == "torch":
        networks = peer.networks(arguments.whole, arguments.whole_size, arguments.video_unet, arguments.output)
        calls.update({("networks", name): call for name, call in networks.items()})
    ways = [way for way in arguments.ways or peer.ways if way in peer.ways]
    left = [(part, name, way, call) for way in ways for (part, name), call in calls.items()]
    while left and time.monotonic() < end:
        attempt(*left.pop(0))
    if left:
        print(f"gpu_peers: {len(left)} times were left out: the {arguments.seconds:.0f} s are over", flush=True)
        result["left_out"] = len(left)
        keep()
    peer.close()
    if failed and not timed:
        print(f"gpu_peers: nothing could be measured by '{peer.name}': {first}", file=sys.stderr)
        return 1
    return 0
