"""Cases of generate.py: operators that move, cut and join data."""
import numpy as np
from generate import Case, Const, ints
from onnx import helper


def number(value):
    return Const(np.array(value, np.float32))


def old(make, name, shape, node, constants, outputs, like):
    """A form of opset 1 that the engines lack."""
    make.random(name)
    node.name = name
    case = Case(name, [node], {"x": make.normal(*shape), **constants}, outputs, 1)
    case.like = like
    make.cases.append(case)


def add(make):
    for name, shapes, axis, opset in [
            ("channels", [(2, 3, 4, 5), (2, 1, 4, 5), (2, 6, 4, 5)], 1, 7), ("last", [(2, 3, 4), (2, 3, 1)], -1, 13),
            ("first", [(1, 5), (3, 5), (2, 5)], 0, 13), ("rows", [(1, 8, 3, 5), (1, 8, 2, 5)], 2, 13), ("one", [(3, 4)], 1, 13),
            ("with_constant", [(1, 4, 3, 3), None], 1, 13)]:
        inputs = [s if s else make.weights(1, 2, 3, 3, scale=1) for s in shapes]
        make.op(f"concat_{name}", "Concat", inputs, opset=opset, axis=axis)
    make.op("split_equal", "Split", [(2, 6, 4)], opset=11, outputs=3, axis=1)
    make.op("split_attribute", "Split", [(2, 7, 3, 3)], opset=7, outputs=3, axis=1, split=[1, 4, 2])
    make.op("split_sizes", "Split", [(2, 3, 9), ints(4, 3, 2)], opset=13, outputs=3, axis=-1)
    make.op("split_uneven", "Split", [(7, 3)], opset=18, outputs=3, num_outputs=3)
    make.op("slice_attributes", "Slice", [(3, 7, 5)], opset=7, starts=[1, -3], ends=[6, 100], axes=[1, 2])
    for name, shape, starts, ends, axes, steps, opset in [
            ("all_axes", (4, 6, 5), (1, 0, 2), (3, 5, 5), None, None, 10),
            ("steps", (1, 3, 9, 8), (0, 1), (9, 8), (2, 3), (2, 3), 13),
            ("negative", (2, 9, 4), (-5, -1), (-1, -4), (1, 2), (1, -1), 13),
            ("reverse", (3, 7), (-1,), (-100,), (1,), (-1,), 13),
            ("focus", (1, 3, 8, 8), (1,), (2**31 - 1,), (3,), (2,), 11),
            ("channels", (1, 8, 3, 5), (2,), (6,), (-3,), None, 13)]:
        inputs = [shape, ints(*starts), ints(*ends)] + ([ints(*axes)] if axes else []) + ([ints(*steps)] if steps else [])
        make.op(f"slice_{name}", "Slice", inputs, opset=opset)
    for name, shape, target, opset, attributes in [
            ("plain", (2, 3, 4), (4, 6), 7, {}), ("infer", (2, 3, 4, 5), (0, -1, 5), 13, {}),
            ("flat", (2, 3, 4), (-1,), 13, {}),
            ("more_axes", (6, 4), (2, 3, 1, 4), 14, {}), ("copy_two", (2, 3, 4, 5), (0, 0, -1), 14, {"allowzero": 0}),
            ("channels", (1, 12, 2, 3), (1, 3, 4, 2, 3), 13, {})]:
        make.op(f"reshape_{name}", "Reshape", [shape, ints(*target)], opset=opset, **attributes)
    for name, shape, axis, opset in [("default", (2, 3, 4, 5), None, 9), ("axis0", (2, 3, 4), 0, 13),
                                     ("axis2", (2, 3, 4, 5), 2, 13),
                                     ("negative", (2, 3, 4, 5), -1, 13), ("rank1", (6,), None, 13)]:
        make.op(f"flatten_{name}", "Flatten", [shape], opset=opset, **({} if axis is None else {"axis": axis}))
    make.op("squeeze_attribute", "Squeeze", [(1, 3, 1, 4)], opset=11, axes=[0, 2])
    make.op("squeeze_input", "Squeeze", [(2, 1, 3, 1), ints(-1, 1)], opset=13)
    make.op("squeeze_all", "Squeeze", [(1, 5, 1, 2)], opset=13)
    make.op("unsqueeze_attribute", "Unsqueeze", [(3, 4)], opset=11, axes=[0, 3])
    make.op("unsqueeze_input", "Unsqueeze", [(3, 4), ints(1)], opset=13)
    make.op("unsqueeze_negative", "Unsqueeze", [(3, 4), ints(-1, 0)], opset=13)
    for name, shape, order in [("reverse", (2, 3, 4), None), ("nhwc", (2, 3, 4, 5), (0, 2, 3, 1)),
                               ("nchw", (1, 4, 5, 3), (0, 3, 1, 2)),
                               ("shuffle", (1, 2, 3, 4, 5), (0, 2, 1, 3, 4)), ("inner", (2, 3, 5, 7), (0, 1, 3, 2)),
                               ("matrix", (17, 19), (1, 0))]:
        make.op(f"transpose_{name}", "Transpose", [shape], opset=13, **({"perm": order} if order else {}))
    make.op("expand_channels", "Expand", [(3, 1, 1), ints(2, 3, 4, 5)], opset=8)
    make.op("expand_both", "Expand", [(3, 1, 5), ints(3, 4, 1)], opset=13)
    make.op("expand_scalar", "Expand", [(1,), ints(2, 3)], opset=13)
    make.op("tile_spatial", "Tile", [(1, 2, 3, 2), ints(1, 1, 2, 3)], opset=7)
    make.op("tile_outer", "Tile", [(2, 3), ints(3, 1)], opset=13)
    # Opset 1 tiles one axis, by numbers of the data's type; its Split takes sizes of that type as an input.
    for name, shape, tiles, axis in [("channels", (1, 2, 3, 2), 3, 1), ("last", (2, 5), 2, 1)]:
        repeats = [tiles if a == axis else 1 for a in range(len(shape))]
        old(make, f"tile_opset1_{name}", shape, helper.make_node("Tile", ["x", "tiles", "axis"], ["y"]),
            {"tiles": number(tiles), "axis": number(axis)}, ["y"],
            [helper.make_node("Constant", [], ["r"], value_ints=repeats), helper.make_node("Tile", ["x", "r"], ["y"])])
    old(make, "split_opset1_sizes", (2, 9, 3), helper.make_node("Split", ["x", "sizes"], ["a", "b", "c"], axis=1),
        {"sizes": Const(np.array([4, 3, 2], np.float32))}, ["a", "b", "c"],
        [helper.make_node("Constant", [], ["s"], value_ints=[4, 3, 2]),
         helper.make_node("Split", ["x", "s"], ["a", "b", "c"], axis=1)])
    make.op("tile_all", "Tile", [(2, 1, 3), ints(2, 3, 2)], opset=13)
    for mode in ("DCR", "CRD"):
        make.op(f"depthtospace_{mode.lower()}", "DepthToSpace", [(2, 12, 3, 4)], opset=13, blocksize=2, mode=mode)
        make.op(f"depthtospace_{mode.lower()}_3", "DepthToSpace", [(1, 18, 2, 3)], opset=11, blocksize=3, mode=mode)
    make.op("depthtospace_default", "DepthToSpace", [(1, 8, 3, 3)], opset=9, blocksize=2)
    make.op("spacetodepth_2", "SpaceToDepth", [(2, 3, 4, 6)], opset=7, blocksize=2)
    make.op("spacetodepth_3", "SpaceToDepth", [(1, 2, 6, 3)], opset=13, blocksize=3)
    make.op("spacetodepth_4", "SpaceToDepth", [(1, 1, 8, 4)], opset=13, blocksize=4)
    indices = lambda *v: Const(np.array(v, dtype=np.int64))
    make.op("gather_first", "Gather", [(5, 4), indices(3, 0, 4, 4)], opset=7)
    make.op("gather_negative", "Gather", [(2, 6, 3), indices(-1, 2)], opset=13, axis=1)
    make.op("gather_matrix", "Gather", [(3, 4, 5), Const(np.array([[0, 2], [1, -3]], dtype=np.int64))], opset=13, axis=-1)
    make.op("gather_scalar", "Gather", [(3, 4, 5), Const(np.array(2, dtype=np.int64))], opset=13, axis=1)
    make.op("gather_run_time_indices", "Gather", [(6, 3), np.array([5, 0, 2], dtype=np.int32)], opset=13)
