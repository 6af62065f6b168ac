#!/usr/bin/env python3
"""PyTorch, cuDNN and cuBLASLt on the layers of shapes/*.csv, and a table of Sparkle's times beside the fastest of them.

  gpu_peers.py time  --layers shapes/resnet50.csv ... --output peers.json [--peer torch|cudnn|cublaslt] [--device cuda]
               [--whole 1,32] [--video-unet 2x192x64] [--filter TEXT] [--ways bf16,bf16_fused] [--made-up]
  gpu_peers.py table --ours FOLDER --peers peers.json...
  gpu_peers.py same  FOUND.npy WANTED.npy

`time` measures the layers under their own names: medians of device events around bursts of calls, inputs resident, calls
replayed from a CUDA graph where they can be captured. Ways: f32 (TF32 off), tf32 (the matrix units with inputs rounded to 10
bits), f16 and bf16 (sums in f32), with a bias and no activation; f32_fused to bf16_fused with bias and ReLU in one call, which
is what Sparkle's times are of but for *-alone_*.json: these, and bf16_alone, are of convolutions without either.
--peer torch takes cudnn.benchmark, and channels last for 16 bits; on a CPU PyTorch's own kernels are timed by the clock, which
only tries the program. --peer cudnn opens libcudnn.so.9 itself: what its heuristics list is built and timed one by one for so
many seconds as --search-seconds says, and the fastest whose results are right is measured; the row says whether the graph API
took the layer or the older calls had to. --peer cublaslt opens libcublasLt for products and for convolutions that are one,
with up to 32 algorithms each. Both take tensors with channels last.
The file is rewritten after every time, so that an end before the end loses nothing; --seconds ends in good order.
Exit status 77: the peer is not on this machine.
--video-unet times the network of bench/gpu/video_unet.py, and writes its inputs and output in f32 as .npy beside the file: what
Sparkle must make of them, which `same` compares.
--made-up needs no peer and measures nothing: every time is what 1 TFLOP/s would take, which tries the rest of the way.
`table` reads layers_*, matrix_*, half_*, bfloat_*, bfloat-alone_* and model_*.json of `scripts/gpu` and prints times and
quotients: above 1 Sparkle is faster. Whole networks of Sparkle and of the peer are one graph each, launched one after another
between two events; where the device tells no such time it is from submission to the end, by the host's clock.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench" / "gpu"))

from peers.measure import PEERS, make_up, measure  # noqa: E402
from peers.table import table  # noqa: E402


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
    timing = commands.add_parser("time", help="measure a peer")
    timing.add_argument("--layers", nargs="*", required=True, metavar="FILE.csv")
    timing.add_argument("--output", required=True, metavar="FILE.json")
    timing.add_argument("--peer", choices=PEERS, default="torch")
    timing.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    timing.add_argument("--search-seconds", type=float, default=1.0, help="how long algorithms of one layer are tried")
    timing.add_argument("--seconds", type=float, default=0, help="after which nothing more is begun; 0: all of it")
    timing.add_argument("--whole", default=[], type=lambda text: [int(n) for n in text.split(",")],
                        help="batches of the whole ResNet-50: 1,32")
    timing.add_argument("--whole-size", type=int, default=224, help="rows and columns of its pictures")
    timing.add_argument("--video-unet", type=lambda text: [int(n) for n in text.split("x")],
                        help="batch, base channels and size of the video UNet: 2x192x64")
    timing.add_argument("--filter", action="append", default=[], metavar="TEXT", help="only layers with this in their names")
    timing.add_argument("--ways", type=lambda text: text.split(","), help="only these, in this order: bf16,bf16_fused")
    timing.add_argument("--made-up", action="store_true", help="made-up times, without a peer")
    timing.set_defaults(call=lambda arguments: make_up(arguments) if arguments.made_up else measure(arguments))
    tables = commands.add_parser("table", help="print Sparkle's times beside them")
    tables.add_argument("--ours", required=True, metavar="FOLDER")
    tables.add_argument("--peers", nargs="*", default=[], metavar="FILE.json")
    tables.set_defaults(call=table)
    comparing = commands.add_parser("same", help="compare an output of Sparkle's with the peer's")
    comparing.add_argument("found", metavar="FOUND.npy")
    comparing.add_argument("wanted", metavar="WANTED.npy")
    comparing.set_defaults(call=same)
    arguments = parser.parse_args()
    return arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
