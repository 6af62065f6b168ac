#!/usr/bin/env python3
"""A list of random realistic layers for `sparkle bench --layers`: channels, planes, strides and groups as published families
have them, in combinations that nobody chose. The same seed gives the same list.
bench/random_layers.py [--seed N] [--count N] > FILE"""
import argparse
import random
import sys

FIELDS = "name,n,c,h,w,k,r,s,stride_h,stride_w,pad_h,pad_w,dil_h,dil_w,groups".split(",")
WIDTHS = [8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 144, 160, 168, 176, 184, 192, 200,
          224, 232, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 432, 440, 448, 480, 512, 528, 576, 608, 640, 672,
          720, 768, 784, 832, 888, 912, 960, 1024, 1088, 1152, 1280, 1536, 1600, 1920, 2048]
PLANES = [7, 8, 10, 12, 13, 14, 16, 17, 20, 24, 26, 28, 32, 35, 38, 40, 48, 52, 56, 64, 71, 75, 80, 96, 104, 112, 128, 150, 160,
          208, 224, 256, 320]
MOST_FLOPS, LEAST_FLOPS = 1.2e9, 4e5


def near(rng, values, low, high):
    return rng.choice([v for v in values if low <= v <= high])


def plane(rng, c):
    """Deep layers have small planes."""
    high = 320 if c <= 32 else 160 if c <= 96 else 80 if c <= 256 else 40 if c <= 640 else 20
    return near(rng, PLANES, 7, high)


def layer(kind, rng):
    groups, batch, dilation = 1, rng.choice([1] * 8 + [2, 4, 8]), 1
    c, k, r, stride = near(rng, WIDTHS, 16, 2048), near(rng, WIDTHS, 16, 2048), 1, 1
    h = w = plane(rng, min(c, k))
    if kind == "pointwise":
        stride = rng.choice([1] * 7 + [2])
    elif kind == "odd_pointwise":
        c, k = rng.randrange(17, 400), rng.randrange(17, 400)
        h = w = plane(rng, min(c, k))
    elif kind == "few_outputs":
        k, c = rng.choice([1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 18]), near(rng, WIDTHS, 32, 1024)
        r = rng.choice([1, 1, 3])
        h = w = near(rng, PLANES, 10, 112 if c <= 256 else 40)
    elif kind == "dense":
        c, k, r = near(rng, WIDTHS, 16, 640), near(rng, WIDTHS, 16, 640), rng.choice([3] * 6 + [5, 7])
        stride, dilation = rng.choice([1] * 5 + [2] * 3), rng.choice([1] * 9 + [2, 4])
        h = w = plane(rng, min(c, k))
    elif kind == "large_stride":
        c, k, r, stride = near(rng, WIDTHS, 8, 128), near(rng, WIDTHS, 16, 192), 3, 2
        h = w = near(rng, PLANES, 104, 320)
    elif kind == "flat":
        c, k, r = near(rng, WIDTHS, 32, 320), near(rng, WIDTHS, 32, 320), rng.choice([3, 5, 7])
        h = w = plane(rng, min(c, k))
    elif kind == "first":
        c, k, r, stride = rng.choice([1, 2, 3, 3, 3, 4, 6]), near(rng, WIDTHS, 8, 96), rng.choice([3, 3, 5, 7, 4, 6]), \
            rng.choice([1, 2, 2, 4])
        h = w = rng.choice([96, 128, 160, 192, 224, 256, 299, 320])
    elif kind == "depthwise":
        c = k = groups = near(rng, WIDTHS, 16, 1280)
        r, stride = rng.choice([3, 3, 3, 5, 5, 7, 9]), rng.choice([1, 1, 1, 2])
        h = w = plane(rng, c)
    elif kind == "groups":
        width = rng.choice([4, 8, 8, 16, 16, 24, 32, 48, 56])
        groups = rng.choice([2, 3, 4, 6, 8, 12, 16, 24, 32])
        c = k = width * groups
        r, stride = rng.choice([3, 3, 3, 1, 5]), rng.choice([1, 1, 2])
        h = w = plane(rng, c)
    elif kind == "line":
        h, w = 1, rng.choice([64, 128, 250, 500, 1000, 2048, 4096])
        c, k, r = near(rng, WIDTHS, 16, 512), near(rng, WIDTHS, 16, 512), 0
        stride = rng.choice([1, 1, 2])
    elif kind == "squeeze":
        h = w = 1
        c, k = rng.choice([(a, max(8, a // b)) for a in WIDTHS for b in (4, 16)] + [(max(8, a // 4), a) for a in WIDTHS])
    s = r
    if kind == "flat":
        r, s = rng.choice([(1, r), (r, 1)])
    if kind == "line":
        r, s = 1, rng.choice([3, 5, 9])
    pads = [(side - 1) // 2 * dilation for side in (r, s)]
    strides = [stride if h > 1 else 1, stride]
    row = [batch, c, h, w, k, r, s, *strides, *pads, dilation, dilation, groups]
    out = [(size + 2 * pad - dilation * (side - 1) - 1) // step + 1 for size, pad, side, step in
           zip((h, w), pads, (r, s), strides)]
    flops = 2.0 * batch * k * out[0] * out[1] * (c // groups) * r * s
    return row if min(out) > 0 and (LEAST_FLOPS if kind == "squeeze" else 2e6) <= flops <= MOST_FLOPS else None


KINDS = {"pointwise": 5, "odd_pointwise": 3, "few_outputs": 3, "dense": 6, "large_stride": 2, "flat": 2, "first": 3,
         "depthwise": 5,
         "groups": 4, "line": 2, "squeeze": 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    a = parser.parse_args()
    rng = random.Random(a.seed)
    print(f"# bench/random_layers.py --seed {a.seed} --count {a.count}", file=sys.stderr)
    print(",".join(FIELDS))
    kinds, weights = list(KINDS), list(KINDS.values())
    made = 0
    while made < a.count:
        kind = rng.choices(kinds, weights)[0]
        row = layer(kind, rng)
        if row:
            print(",".join(map(str, [f"r{made:03d}_{kind}", *row])))
            made += 1


if __name__ == "__main__":
    main()
