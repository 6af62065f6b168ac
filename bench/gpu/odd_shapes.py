"""Small convolutions whose sizes nothing divides: odd channels and maps, tails of tiles, strides, dilation, groups, padding and
batches, by a seed. They are for whether kernels are right, not for how fast they are."""

import random

COUNT, COUNT_DRY = 40, 3
MOST = 6_000_000  # multiply-adds of a layer: the host repeats each in double precision
# Filters by rows and columns: those that have kernels of their own, and some that have none.
FILTERS = ((1, 1), (3, 3), (3, 3), (5, 5), (7, 7), (1, 7), (2, 2), (3, 1), (4, 4), (5, 3))
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 48, 63, 65, 72)


def outputs(size, taps, stride, pad, dilation):
    return (size + 2 * pad - (taps - 1) * dilation - 1) // stride + 1


def one(rng):
    r, s = rng.choice(FILTERS)
    groups = rng.choice((1, 1, 1, 1, 2, 3, 5))
    c, k = groups * rng.choice(CHANNELS), groups * rng.choice(CHANNELS)
    if rng.random() < 0.15:  # depthwise
        groups = k = c
    h, w = rng.randint(1, 33), rng.randint(1, 33)
    return {
        "n": rng.choice((1, 1, 2, 3, 5)), "c": c, "h": h, "w": w, "k": k, "r": r, "s": s,
        "stride_h": rng.choice((1, 1, 1, 2, 3)), "stride_w": rng.choice((1, 1, 1, 2, 3)),
        "pad_h": rng.randint(0, r // 2), "pad_w": rng.randint(0, s // 2),
        "dil_h": rng.choice((1, 1, 1, 2, 3)), "dil_w": rng.choice((1, 1, 1, 2, 3)), "groups": groups,
    }  # fmt: skip


def fits(layer):
    rows = outputs(layer["h"], layer["r"], layer["stride_h"], layer["pad_h"], layer["dil_h"])
    columns = outputs(layer["w"], layer["s"], layer["stride_w"], layer["pad_w"], layer["dil_w"])
    if rows < 1 or columns < 1:
        return False
    taps = layer["r"] * layer["s"] * layer["c"] // layer["groups"]
    return layer["n"] * layer["k"] * rows * columns * taps <= MOST


def layers(seed, count=COUNT):
    """Rows of a layer list, the same ones for the same seed."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        layer = one(rng)
        if fits(layer):
            found.append({"name": f"odd_{seed}_{len(found) + 1}", **layer})
    return found
