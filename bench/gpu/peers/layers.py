"""Layer lists as `sparkle bench --layers` reads them, the operations of a layer, and single results of it by plain sums."""

import csv
import random

from .libraries import PeerError

# What a result may be off by: of its own rounding, and of the root of its products' squares, which is what a sum of them is
# about. The latter is wide enough for transforms (Winograd, FFT) and narrow enough that the sum of other elements is no such
# result.
RESULT_EPSILON = {"f32": 2.0**-23, "tf32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
SPREAD = {"f32": 2.0**-12, "tf32": 2.0**-6, "f16": 2.0**-5, "bf16": 2.0**-5}


def read_layers(path):
    """Rows as `sparkle bench --layers` reads them: columns by name, missing ones at their defaults."""
    with open(path, newline="", encoding="utf-8") as file:
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


def layers_of(paths, filters=()):
    """Layers by their names, of several lists; `filters`: only those with one of these in their names."""
    layers = {}
    for path in paths:
        for layer in read_layers(path):
            if not filters or any(text in layer["name"] for text in filters):
                layers.setdefault(layer["name"], layer)
    return layers


def output_sizes(layer):
    sizes = []
    for axis, size, taps in ((0, layer["h"], layer["r"]), (1, layer["w"], layer["s"])):
        seen = (taps - 1) * layer["dilation"][axis] + 1
        sizes.append((size + 2 * layer["pad"][axis] - seen) // layer["stride"][axis] + 1)
    return tuple(sizes)


def flops_of(layer):
    if layer["kind"] == "gemm":
        return 2 * layer["k"] * layer["c"] * layer["h"] * layer["w"] * layer["n"]
    p, q = output_sizes(layer)
    return 2 * layer["n"] * p * q * layer["k"] * layer["c"] // layer["groups"] * layer["r"] * layer["s"]


def is_product(layer):
    """Whether a convolution is one matrix product over pixels."""
    return (layer["r"], layer["s"], *layer["stride"], *layer["pad"], layer["groups"]) == (1, 1, 1, 1, 0, 0, 1)


def parts_of(way):
    """Type of the elements in memory, how products are rounded, and what follows: '', 'fused' or 'alone'."""
    kind, _, how = way.partition("_")
    return ("f32" if kind == "tf32" else kind), kind, how


def strides_of(sizes, planes=False):
    """Of N, C, H, W in memory: channels last, or plane by plane."""
    _, c, h, w = sizes
    return (c * h * w, h * w, w, 1) if planes else (c * h * w, 1, w * c, c)


def sizes_of(layer):
    p, q = output_sizes(layer)
    inside = layer["c"] // layer["groups"]
    return {"x": (layer["n"], layer["c"], layer["h"], layer["w"]), "w": (layer["k"], inside, layer["r"], layer["s"]),
            "bias": (1, layer["k"], 1, 1), "y": (layer["n"], layer["k"], p, q)}


def place(strides, *at):
    return sum(stride * index for stride, index in zip(strides, at, strict=True))


def taps_at(layer, at, planes=False):
    """Pairs of element numbers (input, filter) of the products that output (n, p, q, k) sums up."""
    sizes = sizes_of(layer)
    x_strides, w_strides = (strides_of(sizes[name], planes) for name in ("x", "w"))
    n, p, q, k = at
    inside = layer["c"] // layer["groups"]
    first = k // (layer["k"] // layer["groups"]) * inside
    for r in range(layer["r"]):
        for s in range(layer["s"]):
            y = p * layer["stride"][0] + r * layer["dilation"][0] - layer["pad"][0]
            x = q * layer["stride"][1] + s * layer["dilation"][1] - layer["pad"][1]
            if 0 <= y < layer["h"] and 0 <= x < layer["w"]:
                for c in range(inside):
                    yield place(x_strides, n, first + c, y, x), place(w_strides, k, c, r, s)


def check_sample(found, products, bias, way, relu, where):
    """Holds one result to the plain sum of its products. Errors: PeerError."""
    _, math, _ = parts_of(way)
    total, size = bias + sum(products), abs(bias) + sum(map(abs, products))
    wanted = max(total, 0.0) if relu else total
    spread = SPREAD[math] * sum(value * value for value in products) ** 0.5
    allowed = RESULT_EPSILON[math] * abs(total) + spread + 2.0**-19 * size
    if not abs(found - wanted) <= allowed:
        raise PeerError(f"its result at {where} is {found:.6g}, the plain sum {wanted:.6g}.")


def check_convolution(layer, way, x, w, bias, y, planes=False, count=6):
    """Holds some outputs of a convolution to plain sums. Errors: PeerError."""
    p, q = output_sizes(layer)
    strides = strides_of(sizes_of(layer)["y"], planes)
    pick = random.Random(7)
    corners = [(0, 0, 0, 0), (layer["n"] - 1, p - 1, q - 1, layer["k"] - 1)]
    sizes = (layer["n"], p, q, layer["k"])
    for at in corners + [tuple(pick.randrange(size) for size in sizes) for _ in range(count - 2)]:
        products = [x.value(i) * w.value(j) for i, j in taps_at(layer, at, planes)]
        found = y.read(place(strides, at[0], at[3], at[1], at[2]))
        check_sample(found, products, bias.value(at[3]) if bias else 0.0, way, way.endswith("_fused"), at)
