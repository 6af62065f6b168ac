"""Cases of generate.py: operators that look for places (ArgMax, TopK, NonMaxSuppression), read or write at places (gather and
scatter by elements and tuples, OneHot), run along an axis (CumSum), keep a part (Trilu, CenterCropPad), and Einsum."""
import numpy as np
from generate import SOFTMAX_11, Const, ints


def number(value, dtype=np.int64):
    return Const(np.array(value, dtype=dtype))


def coarse(*shape, dtype=np.float32):
    """Few different values, so that equal ones happen."""
    return lambda m: m.rng.integers(-4, 5, shape).astype(dtype)


def places(size, *shape, dtype=np.int64):
    return lambda m: m.rng.integers(-size, size, shape).astype(dtype)


def different(size, *shape):
    """Along the first axis all places differ, some of them counted from the end."""
    def values(m):
        lines = [m.rng.permutation(size)[:shape[0]] for _ in range(int(np.prod(shape[1:])))]
        indices = np.stack(lines, axis=1).reshape(shape)
        return np.where(m.rng.random(shape) < 0.5, indices, indices - size).astype(np.int64)
    return values


def add(make):
    search(make)
    reading(make)
    writing(make)
    others(make)
    einsum(make)
    boxes(make)


def search(make):
    for op in ("ArgMax", "ArgMin"):
        name = op.lower()
        make.op(f"{name}_default", op, [(5, 7)], opset=13)
        make.op(f"{name}_ties_first", op, [coarse(3, 40)], opset=11, axis=1, keepdims=0)
        make.op(f"{name}_ties_last", op, [coarse(3, 5, 9)], opset=13, axis=-2, select_last_index=1)
        make.op(f"{name}_last_of_line", op, [coarse(4, 300)], opset=13, axis=-1, select_last_index=1)
        make.op(f"{name}_int32", op, [coarse(2, 70, 5, dtype=np.int32)], opset=13, axis=0)
        make.op(f"{name}_uint8", op, [lambda m: m.rng.integers(0, 256, (3, 90)).astype(np.uint8)], opset=13, axis=1)
        make.op(f"{name}_opset1", op, [(2, 3, 4)], opset=7, axis=2, keepdims=0)
    make.op("hardmax_default", "Hardmax", [(3, 4, 5)], opset=13)
    make.op("hardmax_ties", "Hardmax", [coarse(2, 30, 3)], opset=13, axis=1)
    make.op("hardmax_flat", "Hardmax", [(2, 3, 4)], opset=11, axis=1, peer_is_right=SOFTMAX_11)
    make.op("hardmax_flat0", "Hardmax", [coarse(2, 3, 4)], opset=11, axis=0, peer_is_right=SOFTMAX_11)
    make.op("topk_last_axis", "TopK", [(3, 20), ints(4)], opset=11, outputs=2)
    make.op("topk_smallest", "TopK", [(4, 9, 3), ints(5)], opset=11, outputs=2, axis=1, largest=0)
    make.op("topk_ties", "TopK", [coarse(2, 50), ints(7)], opset=11, outputs=2, axis=-1, sorted=1)
    make.op("topk_all", "TopK", [(6, 2), ints(6)], opset=11, outputs=2, axis=0)
    make.op("topk_opset10", "TopK", [(3, 8), ints(2)], opset=10, outputs=2, axis=1)
    make.op("topk_int64", "TopK", [lambda m: m.rng.integers(-2**60, 2**60, (3, 11)), ints(3)], opset=11, outputs=2)


def reading(make):
    make.op("gatherelements_rows", "GatherElements", [(4, 5), places(4, 3, 5)], opset=11, axis=0)
    make.op("gatherelements_columns", "GatherElements", [(3, 6, 2), places(6, 3, 9, 2)], opset=13, axis=-2)
    make.op("gatherelements_int32", "GatherElements", [coarse(3, 4, dtype=np.int64), places(4, 3, 2, dtype=np.int32)], opset=13,
            axis=1)
    make.op("gathernd_elements", "GatherND", [(3, 4), lambda m: m.rng.integers(-3, 3, (5, 2))], opset=11)
    make.op("gathernd_slices", "GatherND", [(3, 4, 5), places(3, 2, 3, 1)], opset=12)
    make.op("gathernd_batch", "GatherND", [(2, 3, 4, 5), lambda m: m.rng.integers(-3, 3, (2, 3, 2))], opset=13, batch_dims=1)
    make.op("gathernd_batch2", "GatherND", [(2, 3, 4, 2), places(4, 2, 3, 1)], opset=13, batch_dims=2)


def writing(make):
    # The name before opset 11.
    make.op("scatter_rows", "Scatter", [(6, 4), different(6, 3, 4), (3, 4)], opset=9)
    make.op("scatter_columns", "Scatter", [(3, 7), lambda m: different(7, 5, 3)(m).T.copy(), (3, 5)], opset=9, axis=1)
    make.op("scatter_last", "Scatter", [(2, 3, 6), lambda m: np.moveaxis(different(6, 2, 2, 3)(m), 0, 2), (2, 3, 2)], opset=10,
            axis=2)
    make.op("scatterelements_rows", "ScatterElements", [(6, 4), different(6, 3, 4), (3, 4)], opset=11, axis=0)
    make.op("scatterelements_columns", "ScatterElements",
            [(3, 7, 2), lambda m: np.moveaxis(different(7, 4, 3, 2)(m), 0, 1), (3, 4, 2)], opset=13, axis=1)
    for reduction, opset in (("add", 16), ("mul", 16), ("max", 18), ("min", 18)):
        make.op(f"scatterelements_{reduction}", "ScatterElements", [(3, 5), places(3, 6, 5), (6, 5)], opset=opset, axis=0,
                reduction=reduction)
    make.op("scatternd_elements", "ScatterND", [(8,), lambda m: different(8, 4)(m).reshape(4, 1), (4,)], opset=11)
    make.op("scatternd_slices", "ScatterND", [(5, 3, 4), lambda m: different(5, 3)(m).reshape(3, 1), (3, 3, 4)], opset=13)
    for reduction, opset in (("add", 16), ("mul", 16), ("max", 18), ("min", 18)):
        make.op(f"scatternd_{reduction}", "ScatterND", [(4, 3), places(4, 6, 1), (6, 3)], opset=opset, reduction=reduction)
    values = Const(np.array([-1, 2], dtype=np.float32))
    make.op("onehot_last", "OneHot", [lambda m: m.rng.integers(0, 5, (2, 3)), number(5), values], opset=11)
    make.op("onehot_first", "OneHot", [lambda m: m.rng.integers(-5, 5, (2, 3)), number(5), values], opset=11, axis=0)
    make.op("onehot_outside", "OneHot", [lambda m: m.rng.integers(-9, 9, (3, 4)), number(4), values], opset=11, axis=1)
    make.op("onehot_opset9", "OneHot", [lambda m: m.rng.integers(0, 3, (7,)), number(3), values], opset=9, axis=-2)


def others(make):
    for name, shape, axis, attributes in (("default", (9,), 0, {}), ("exclusive", (3, 7), 1, {"exclusive": 1}),
                                          ("reverse", (3, 5, 4), 1, {"reverse": 1}),
                                          ("both", (2, 150), -1, {"exclusive": 1, "reverse": 1}),
                                          ("outer", (6, 2, 3), -3, {})):
        make.op(f"cumsum_{name}", "CumSum", [shape, number(axis)], opset=11 if axis else 14, **attributes)
    make.op("cumsum_int64", "CumSum", [coarse(4, 6, dtype=np.int64), number(0)], opset=14)
    make.op("trilu_upper", "Trilu", [(4, 5)], opset=14)
    make.op("trilu_lower", "Trilu", [(2, 5, 3)], opset=14, upper=0)
    make.op("trilu_diagonal", "Trilu", [(3, 4, 4), number(2)], opset=14, upper=1)
    make.op("trilu_below", "Trilu", [(5, 4), number(-2)], opset=14, upper=0)
    make.op("trilu_int64", "Trilu", [coarse(2, 3, 6, dtype=np.int64), number(-1)], opset=14, upper=1)
    make.op("centercroppad_crop", "CenterCropPad", [(10, 7, 3), ints(5, 4, 3)], opset=18)
    make.op("centercroppad_pad", "CenterCropPad", [(3, 4), ints(8, 7)], opset=18)
    make.op("centercroppad_both", "CenterCropPad", [(3, 9, 4), ints(4, 9)], opset=18, axes=[1, 2])


def einsum(make):
    for name, equation, shapes in (
            ("transpose", "ij->ji", [(3, 5)]), ("sum", "ijk->j", [(2, 3, 4)]), ("product", "ij,jk->ik", [(3, 4), (4, 5)]),
            ("batch", "bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("implicit", "bij,bkj", [(2, 3, 4), (2, 5, 4)]),
            ("ellipsis", "...ij,...jk->...ik", [(2, 1, 3, 4), (1, 5, 4, 2)]), ("diagonal", "...ii->...i", [(2, 4, 4)]),
            ("trace", "ii", [(5, 5)]), ("outer", "i,j->ij", [(3,), (4,)]), ("three", "ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
            ("attention", "bhqd,bhkd->bhqk", [(1, 2, 3, 4), (1, 2, 5, 4)])):
        make.op(f"einsum_{name}", "Einsum", shapes, opset=12, equation=equation)


def boxes(make):
    def corners(count):
        def values(m):
            low = m.rng.uniform(0, 10, (1, count, 2))
            return np.concatenate([low, low + m.rng.uniform(2, 6, low.shape)], axis=2).astype(np.float32)
        return values

    def centers(count):
        return lambda m: np.concatenate([m.rng.uniform(0, 10, (2, count, 2)), m.rng.uniform(2, 6, (2, count, 2))],
                                        axis=2).astype(np.float32)
    scores = lambda *shape: (lambda m: m.uniform(0, 1, *shape))
    real = lambda v: Const(np.array([v], dtype=np.float32))
    make.op("nonmaxsuppression_corners", "NonMaxSuppression",
            [corners(30), scores(1, 2, 30), ints(5), real(0.3), real(0.2)], opset=11, single=True)
    make.op("nonmaxsuppression_centers", "NonMaxSuppression",
            [centers(20), scores(2, 1, 20), ints(20), real(0.4), real(0.1)], opset=11, single=True, center_point_box=1)
    make.op("nonmaxsuppression_no_threshold", "NonMaxSuppression", [corners(12), scores(1, 3, 12), ints(4), real(0.5)],
            opset=10, single=True)
    make.op("nonmaxsuppression_none", "NonMaxSuppression", [corners(6), scores(1, 1, 6), ints(3), real(0.5), real(2)],
            opset=11, single=True)
    sizes = lambda *v: Const(np.array(v, dtype=np.int64))
    for name, mode, attributes in (("linear", "linear", {}), ("cubic", "cubic", {"cubic_coeff_a": -0.5}),
                                   ("cubic_inside", "cubic", {"exclude_outside": 1})):
        make.op(f"resize_antialias_{name}", "Resize", [(1, 2, 13, 17), None, None, sizes(1, 2, 5, 6)], opset=18, mode=mode,
                antialias=1, **attributes)
