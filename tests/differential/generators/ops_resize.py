"""Cases of operators that sample between elements: Resize, Upsample, GridSample."""
import numpy as np

from case import covers
from draw import FLOATS


@covers("Resize", lowest=10)
def resize(d, op):
    axes = d.pick(1, 2, 2, 2, 3)
    shape = (d.pick(1, 2), d.pick(1, 3, 8), *(d.pick(1, 2, 3, 4, 5, 8) for _ in range(axes)))
    mode = d.pick("nearest", "linear", "cubic" if axes == 2 and d.opset >= 11 else "linear")
    dtype = d.type_for(op, allowed=FLOATS)
    x = d.feed(d.values(dtype, shape))
    powers = [d.pick(1.0, 2.0, 4.0, 0.5, 1.5, 0.25) for _ in range(axes)]  # exact, so that no position is a matter of rounding
    powers = [p if int(s * p) >= 1 else 1.0 for p, s in zip(powers, shape[2:])]
    scales = d.constant(np.array([1, 1, *powers], np.float32))
    if d.opset < 11:
        return [d.node(op, [x, scales], mode=mode)]
    attributes = {"mode": mode, "coordinate_transformation_mode": d.pick(
        None, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
        "half_pixel_symmetric" if d.opset >= 19 else "half_pixel")}
    if mode == "nearest":
        attributes["nearest_mode"] = d.pick(None, "floor", "ceil", "round_prefer_ceil", "round_prefer_floor")
        if attributes["coordinate_transformation_mode"] == "align_corners":
            attributes["coordinate_transformation_mode"] = "asymmetric"  # thirds: a matter of rounding
    if mode == "cubic":
        attributes["cubic_coeff_a"] = d.pick(None, -0.5)
        attributes["exclude_outside"] = d.pick(None, 1)
    if d.opset >= 18 and mode != "nearest" and d.chance(0.2):
        attributes["antialias"] = 1
    if d.chance(0.4) and mode != "nearest":
        sizes = [d.whole(1, 9) for _ in range(axes)]
        empty = d.constant(np.zeros(0, np.float32)) if d.opset < 13 else ""
        return [d.node(op, [x, empty, empty, d.constant(d.ints(*shape[:2], *sizes))], **attributes)]
    roi = d.constant(np.zeros(0, np.float32)) if d.opset < 13 else ""
    return [d.node(op, [x, roi, scales], **attributes)]


@covers("Upsample")
def upsample(d, op):
    d.opset = d.whole(7, 9)
    dtype = "float"
    x = d.feed(d.values(dtype, (d.pick(1, 2), d.pick(1, 3, 8), d.pick(1, 2, 5), d.pick(1, 3, 4))))
    scales = [1.0, 1.0, d.pick(1.0, 2.0, 3.0), d.pick(1.0, 2.0, 1.5)]
    mode = d.pick("nearest", "linear")
    if d.opset < 9:
        return [d.node(op, [x], scales=scales, mode=mode)]
    return [d.node(op, [x, d.constant(np.array(scales, np.float32))], mode=mode)]


@covers("GridSample", lowest=16)
def grid_sample(d, op):
    shape = (d.pick(1, 2), d.pick(1, 3, 8), d.pick(1, 3, 5, 8), d.pick(2, 4, 7))
    out = (shape[0], d.pick(1, 3, 6), d.pick(1, 2, 5), 2)
    dtype = d.type_for(op, allowed=("float", "double"))
    old = d.opset < 20
    mode = d.pick("bilinear", "bicubic", "nearest") if old else d.pick("linear", "cubic", "nearest")
    grid = d.numbers.integers(-45, 46, out) / 32 + 1 / 128  # away from the places where nearest or a border changes
    return [d.node(op, [d.feed(d.values(dtype, shape)), d.feed(grid.astype(np.float32 if dtype == "float" else np.float64))],
                   mode=mode, padding_mode=d.pick("zeros", "border", "reflection"), align_corners=d.pick(0, 1))]
