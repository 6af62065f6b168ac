"""Cases of generate.py: operators whose paths or shapes the data tells (If, Loop, Scan, NonZero, Compress, Unique, RoiAlign),
those on sequences of tensors, and what exports of detectors build of them."""
import numpy as np
from generate import PEER_IS_RIGHT, Case, Const, ints
from onnx import TensorProto, helper


def info(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(name, inputs, outputs, nodes):
    return helper.make_graph(nodes, name, inputs, outputs)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def number(value, dtype=np.int64):
    return Const(np.array(value, dtype=dtype))


def add(make):
    def case(name, nodes, feeds, outputs, opset=16):
        make.cases.append(Case(name, nodes, feeds, outputs, opset, single=True))
    branches(make, case)
    loops(make, case)
    scans(make, case)
    finding(make, case)
    sequences(make, case)
    regions(make, case)
    detectors(make, case)
    integers = {name: (None, TensorProto.INT64) for name in ("first", "back", "count")}
    next(c for c in make.cases if c.name == "unique_first_seen").kinds = integers


# Cases where the reference evaluator errs.
PEER_IS_RIGHT.update({
    "loop_unrolled": "it wants scanned outputs to have an axis", "loop_counted": "it wants scanned outputs to have an axis",
    "loop_growing": "its loop without a condition takes no step",
    "sequence_of_loop": "its loop without a condition takes no step",
    "scan_backwards": "its Scan knows one direction", "scan_second_axis": "its Scan knows the first axis",
    "unique_first_seen": "its Unique without sorting fails", "roialign_opset10": "its RoiAlign shifts corners in every opset",
    "detector_tail": "its NonMaxSuppression gives no list of its rows here",
})


def branches(make, case):
    """The branches read x and w of the graph around them."""
    def either(**extra):
        return node("If", ["c"], ["y"],
                    then_branch=graph("then", [], [info("a")], [node("MatMul", ["x", "w"], ["a"])]),
                    else_branch=graph("else", [], [info("b")], [node("Neg", ["x"], ["b"])]), **extra)
    for name, value in (("if_then", True), ("if_else", False)):
        make.random(name)
        case(name, [either()], {"c": np.array(value), "x": make.normal(3, 4), "w": make.normal(4, 4)}, ["y"])
    make.random("if_of_data")
    case("if_of_data", [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Less", ["s", "zero"], ["c"]), either(),
                        node("Relu", ["y"], ["z"])],
         {"x": make.normal(3, 4), "w": Const(make.normal(4, 4)), "zero": number(0, np.float32)}, ["z"])
    make.random("if_of_shape")
    case("if_of_shape", [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Equal", ["n", "one"], ["c"]),
                         node("If", ["c"], ["y"],
                              then_branch=graph("then", [], [info("a")], [node("Squeeze", ["x", "axes"], ["a"])]),
                              else_branch=graph("else", [], [info("b")], [node("Identity", ["x"], ["b"])]))],
         {"x": make.normal(3, 1, 4), "one": number(1), "axes": ints(1)}, ["y"])
    make.random("if_within_if")
    inner = node("If", ["d"], ["a"], then_branch=graph("deep", [], [info("p")], [node("Add", ["x", "x"], ["p"])]),
                 else_branch=graph("other", [], [info("q")], [node("Mul", ["x", "x"], ["q"])]))
    case("if_within_if", [node("If", ["c"], ["y"], then_branch=graph("then", [], [info("a")], [inner]),
                               else_branch=graph("else", [], [info("b")], [node("Neg", ["x"], ["b"])]))],
         {"c": np.array(True), "d": np.array(False), "x": make.normal(2, 3)}, ["y"])


def loops(make, case):
    step = graph("body", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v")],
                 [info("on", TensorProto.BOOL, []), info("next"), info("seen")],
                 [node("Identity", ["c"], ["on"]), node("Mul", ["v", "x"], ["vx"]), node("Add", ["vx", "x"], ["next"]),
                  node("ReduceSum", ["next"], ["seen"], keepdims=0)])
    for name, count in (("loop_unrolled", number(3)), ("loop_counted", np.array(5, np.int64))):
        make.random(name)
        case(name, [node("Loop", ["m", "", "x"], ["y", "s"], body=step)], {"m": count, "x": make.normal(2, 3, scale=.5)},
             ["y", "s"])
    make.random("loop_until")
    until = graph("body", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v")],
                  [info("on", TensorProto.BOOL, []), info("next")],
                  [node("Add", ["v", "v"], ["next"]), node("ReduceMax", ["next"], ["top"], keepdims=0),
                   node("Less", ["top", "limit"], ["on"])])
    case("loop_until", [node("Loop", ["", "go", "x"], ["y"], body=until)],
         {"go": np.array(True), "x": np.abs(make.normal(4)), "limit": number(50, np.float32)}, ["y"])
    make.random("loop_growing")
    growing = graph("body", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v")],
                    [info("on", TensorProto.BOOL, []), info("next")],
                    [node("Identity", ["c"], ["on"]), node("Concat", ["v", "x"], ["next"], axis=0)])
    case("loop_growing", [node("Loop", ["m", "", "x"], ["y"], body=growing), node("Neg", ["y"], ["z"])],
         {"m": np.array(3, np.int64), "x": make.normal(2, 3)}, ["z"])


def scans(make, case):
    body = graph("body", [info("s"), info("a")], [info("t"), info("o")],
                 [node("Add", ["s", "a"], ["t"]), node("Mul", ["t", "w"], ["o"])])
    for name, extra in (("scan_sum", {}), ("scan_backwards", {"scan_input_directions": [1], "scan_output_directions": [1]}),
                        ("scan_second_axis", {"scan_input_axes": [1], "scan_output_axes": [1]})):
        make.random(name)
        case(name, [node("Scan", ["h", "x"], ["l", "y"], body=body, num_scan_inputs=1, **extra)],
             {"h": make.normal(3), "x": make.normal(3, 3), "w": make.normal(3)}, ["l", "y"])


def finding(make, case):
    for name, shape, kind in (("nonzero_2d", (4, 5), np.float32), ("nonzero_int64", (3, 2, 4), np.int64),
                              ("nonzero_bool", (7,), np.bool_)):
        make.random(name)
        case(name, [node("NonZero", ["x"], ["y"])], {"x": make.rng.integers(0, 2, shape).astype(kind)}, ["y"])
    make.random("nonzero_constant")
    case("nonzero_constant", [node("NonZero", ["m"], ["p"]), node("Transpose", ["p"], ["t"]),
                              node("GatherND", ["x", "t"], ["y"])],
         {"x": make.normal(3, 4), "m": Const(make.rng.integers(0, 2, (3, 4)))}, ["y"])
    for name, extra in (("compress_rows", {"axis": 0}), ("compress_last", {"axis": -1}), ("compress_flat", {})):
        make.random(name)
        case(name, [node("Compress", ["x", "c"], ["y"], **extra)],
             {"x": make.normal(4, 4), "c": np.array([False, True, True])}, ["y"])
    results = ["y", "first", "back", "count"]
    for name, extra in (("unique_sorted", {}), ("unique_first_seen", {"sorted": 0}), ("unique_rows", {"axis": 0})):
        make.random(name)
        case(name, [node("Unique", ["x"], results, **extra)],
             {"x": make.rng.integers(0, 2, (6, 2)).astype(np.float32)}, results)


def sequences(make, case):
    make.random("sequence_build")
    case("sequence_build", [node("SequenceConstruct", ["x", "w"], ["s"]), node("SequenceInsert", ["s", "x", "one"], ["t"]),
                            node("SequenceErase", ["t", "zero"], ["u"]), node("SequenceLength", ["u"], ["n"]),
                            node("SequenceAt", ["u", "last"], ["a"]), node("ConcatFromSequence", ["u"], ["y"], axis=1)],
         {"x": make.normal(2, 3), "w": make.normal(2, 3), "zero": number(0), "one": number(1), "last": number(-1)},
         ["n", "a", "y"])
    make.random("sequence_stack")
    case("sequence_stack", [node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "x"], ["s"]),
                            node("SequenceInsert", ["s", "w"], ["t"]), node("SequenceLength", ["t"], ["n"]),
                            node("ConcatFromSequence", ["t"], ["y"], axis=0, new_axis=1)],
         {"x": make.normal(2, 3), "w": make.normal(2, 3)}, ["n", "y"])
    make.random("sequence_of_three")
    case("sequence_of_three", [node("SequenceConstruct", ["x", "w", "x"], ["s"]), node("SequenceErase", ["s", "last"], ["t"]),
                               node("SequenceLength", ["t"], ["n"]), node("SequenceAt", ["t", "last"], ["a"]),
                               node("ConcatFromSequence", ["s"], ["y"], axis=-1)],
         {"x": make.normal(2, 3), "w": make.normal(2, 3), "last": number(-1)}, ["n", "a", "y"])
    make.random("sequence_of_integers")
    case("sequence_of_integers", [node("SequenceEmpty", [], ["e"], dtype=TensorProto.INT64),
                                  node("SequenceInsert", ["e", "x"], ["s"]), node("SequenceConstruct", ["x", "x"], ["p"]),
                                  node("SequenceErase", ["p"], ["q"]), node("SequenceLength", ["q"], ["n"]),
                                  node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)],
         {"x": make.rng.integers(0, 9, (2, 3))}, ["n", "y"])
    for name, split, extra in (("splittosequence_sizes", ints(1, 3), {"axis": 0}),
                               ("splittosequence_scalar", number(3), {"axis": 1}),
                               ("splittosequence_rows", None, {"axis": 0, "keepdims": 0})):
        make.random(name)
        feeds = {"x": make.normal(4, 6), "zero": number(0)}
        if split is not None:
            feeds["p"] = split
        case(name, [node("SplitToSequence", ["x", "p"] if split is not None else ["x"], ["s"], **extra),
                    node("SequenceAt", ["s", "zero"], ["y"]), node("SequenceLength", ["s"], ["n"])], feeds, ["y", "n"])
    make.random("sequence_of_loop")
    body = graph("body", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []),
                          helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
                 [info("on", TensorProto.BOOL, []), helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)],
                 [node("Identity", ["c"], ["on"]), node("Add", ["x", "x"], ["twice"]), node("SequenceErase", ["s"], ["less"]),
                  node("SequenceInsert", ["less", "twice"], ["more"]), node("SequenceInsert", ["more", "x"], ["t"])])
    case("sequence_of_loop", [node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "x"], ["s"]),
                              node("Loop", ["m", "", "s"], ["l"], body=body), node("SequenceErase", ["l", "zero"], ["k"]),
                              node("ConcatFromSequence", ["k"], ["y"], axis=0)],
         {"x": make.normal(2, 3), "m": np.array(3, np.int64), "zero": number(0)}, ["y"])


def regions(make, case):
    for name, opset, extra in (("roialign_average", 16, {"sampling_ratio": 2}), ("roialign_adaptive", 16, {}),
                               ("roialign_opset10", 10, {"sampling_ratio": 2}),
                               ("roialign_max", 16, {"mode": "max", "sampling_ratio": 1})):
        make.random(name)
        corner = make.uniform(0, 20, 3, 2)
        rois = np.concatenate([corner, corner + make.uniform(4, 20, 3, 2)], axis=1)
        case(name, [node("RoiAlign", ["x", "r", "b"], ["y"], output_height=3, output_width=2, spatial_scale=.25, **extra)],
             {"x": make.normal(2, 2, 10, 9), "r": rois, "b": np.array([0, 1, 1], np.int64)}, ["y"], opset)


def detectors(make, case):
    """What exports of detectors have behind their scores: those above a bound, the best of these, suppression, the rest."""
    make.random("detector_tail")
    corner = make.uniform(0, 30, 20, 2)
    case("detector_tail", [
        node("Sigmoid", ["logits"], ["score"]), node("Greater", ["score", "bound"], ["over"]), node("NonZero", ["over"], ["n"]),
        node("Transpose", ["n"], ["t"]), node("Squeeze", ["t", "axis1"], ["places"]),
        node("Gather", ["score", "places"], ["s"]),
        node("Gather", ["boxes", "places"], ["b"]), node("Shape", ["s"], ["count"]), node("Min", ["count", "most"], ["k"]),
        node("TopK", ["s", "k"], ["best", "where"]), node("Gather", ["b", "where"], ["best_boxes"]),
        node("Unsqueeze", ["best_boxes", "axis0"], ["bb"]), node("Unsqueeze", ["best", "axis01"], ["ss"]),
        node("NonMaxSuppression", ["bb", "ss", "keep", "overlap"], ["kept"]), node("Gather", ["kept", "two"], ["row"], axis=1),
        node("Squeeze", ["row", "axis1"], ["rows"]), node("Gather", ["best_boxes", "rows"], ["found"]),
        node("Gather", ["best", "rows"], ["found_scores"])],
         {"logits": make.normal(20), "boxes": np.concatenate([corner, corner + make.uniform(5, 20, 20, 2)], axis=1),
          "bound": number(.4, np.float32), "axis0": ints(0), "axis1": ints(1), "axis01": ints(0, 1), "most": ints(10),
          "keep": number(6), "overlap": number(.5, np.float32), "two": ints(2)}, ["found", "found_scores"])
