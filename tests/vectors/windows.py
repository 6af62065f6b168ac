"""Cases of generate.py: convolution, transposed convolution, pooling, resizing, padding."""
import numpy as np
from generate import Const, ints


def add(make):
    convolution(make)
    transposed(make)
    pooling(make)
    resize(make)
    padding(make)


def convolution(make):
    # name, x, w, bias, opset, attributes
    for name, x, w, bias, opset, attributes in [
            ("1x1", (2, 5, 4, 7), (9, 5, 1, 1), True, 7, {}),
            ("1x1_stride", (1, 6, 7, 5), (4, 6, 1, 1), False, 11, {"strides": [2, 2]}),
            ("3x3", (1, 3, 9, 11), (8, 3, 3, 3), True, 11, {"pads": [1, 1, 1, 1]}),
            ("3x3_stride2", (2, 4, 11, 10), (7, 4, 3, 3), True, 13, {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
            ("3x3_uneven_pads", (1, 4, 7, 8), (5, 4, 3, 3), False, 11, {"pads": [0, 2, 1, 0], "strides": [2, 1]}),
            ("3x3_dilated", (1, 4, 13, 12), (6, 4, 3, 3), True, 11, {"pads": [3, 2, 3, 2], "dilations": [3, 2]}),
            ("7x7_stem", (1, 3, 22, 24), (16, 3, 7, 7), True, 11, {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
            ("1x5", (1, 4, 6, 11), (4, 4, 1, 5), False, 11, {"pads": [0, 2, 0, 2]}),
            ("5x1", (1, 4, 11, 6), (4, 4, 5, 1), True, 11, {"pads": [2, 0, 2, 0]}),
            ("2x2_even", (1, 3, 8, 9), (5, 3, 2, 2), True, 11, {"strides": [2, 2]}),
            ("depthwise_3x3", (1, 9, 10, 9), (9, 1, 3, 3), True, 11, {"group": 9, "pads": [1, 1, 1, 1]}),
            ("depthwise_5x5_stride2", (1, 20, 13, 12), (20, 1, 5, 5), True, 11,
             {"group": 20, "pads": [2, 2, 2, 2], "strides": [2, 2]}),
            ("depthwise_multiplier", (2, 3, 8, 7), (6, 1, 3, 3), False, 11, {"group": 3, "pads": [1, 1, 1, 1]}),
            ("depthwise_dilated", (1, 16, 14, 14), (16, 1, 3, 3), True, 11, {"group": 16, "pads": [2, 2, 2, 2],
             "dilations": [2, 2]}),
            ("groups", (1, 8, 6, 9), (12, 4, 3, 3), True, 11, {"group": 2, "pads": [1, 1, 1, 1]}),
            ("groups_1x1", (2, 12, 5, 5), (8, 3, 1, 1), True, 11, {"group": 4}),
            ("same_upper", (1, 3, 8, 7), (4, 3, 3, 3), True, 11, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
            ("same_lower", (1, 3, 8, 8), (4, 3, 4, 4), True, 11, {"auto_pad": "SAME_LOWER"}),
            ("valid", (1, 3, 8, 7), (4, 3, 3, 3), True, 11, {"auto_pad": "VALID"}),
            ("1d", (2, 5, 19), (6, 5, 3), True, 11, {"pads": [1, 1]}),
            ("1d_dilated", (1, 4, 30), (4, 4, 3), True, 22, {"pads": [4, 4], "dilations": [4], "strides": [2]}),
            ("1d_depthwise", (1, 6, 17), (6, 1, 5), False, 11, {"group": 6, "pads": [2, 2]}),
            ("3d", (1, 3, 5, 6, 7), (4, 3, 3, 3, 3), True, 11, {"pads": [1] * 6}),
            ("3d_stride", (1, 2, 7, 6, 5), (3, 2, 2, 3, 1), True, 11, {"strides": [2, 2, 1]}),
            ("3d_groups", (1, 4, 4, 5, 6), (6, 2, 3, 2, 3), True, 11, {"group": 2, "pads": [1, 0, 1, 1, 1, 0]}),
            ("3d_dilated", (1, 2, 6, 7, 9), (3, 2, 2, 3, 3), True, 11, {"dilations": [3, 1, 2], "pads": [2, 1, 2, 1, 0, 2]}),
            ("3d_same_upper", (1, 2, 5, 6, 7), (3, 2, 2, 3, 4), True, 11, {"auto_pad": "SAME_UPPER", "strides": [2, 1, 2]}),
            ("wide_k", (1, 16, 6, 5), (70, 16, 3, 3), True, 11, {"pads": [1, 1, 1, 1]}),
            ("deep_c", (1, 130, 4, 5), (10, 130, 3, 3), True, 11, {"pads": [1, 1, 1, 1]}),
            ("filter_is_image", (1, 8, 5, 6), (10, 8, 5, 6), True, 11, {}),
            ("single_pixel", (1, 4, 1, 1), (4, 4, 3, 3), True, 11, {"pads": [1, 1, 1, 1]}),
            ("large_filter", (1, 2, 20, 21), (3, 2, 11, 9), False, 11, {"pads": [5, 4, 5, 4]})]:
        inputs = [x, make.weights(*w)] + ([make.weights(w[0], scale=1)] if bias else [])
        make.op(f"conv_{name}", "Conv", inputs, opset=opset, **attributes)
    make.op("conv_weights_are_inputs", "Conv", [(1, 3, 7, 6), (4, 3, 3, 3), (4,)], opset=11, pads=[1, 1, 1, 1])


def transposed(make):
    for name, x, w, bias, attributes in [
            ("2x2_stride2", (1, 6, 5, 4), (6, 3, 2, 2), True, {"strides": [2, 2]}),
            ("3x3_stride1", (1, 4, 6, 7), (4, 5, 3, 3), True, {"pads": [1, 1, 1, 1]}),
            ("3x3_stride2", (2, 4, 5, 6), (4, 3, 3, 3), True, {"pads": [1, 1, 1, 1], "strides": [2, 2], "output_padding": [1,
             1]}),
            ("4x4_stride2", (1, 8, 5, 5), (8, 4, 4, 4), False, {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
            ("uneven_pads", (1, 3, 5, 5), (3, 2, 3, 4), False, {"pads": [0, 1, 2, 0], "strides": [2, 3]}),
            ("groups", (1, 6, 4, 5), (6, 2, 3, 3), True, {"group": 3, "strides": [2, 2]}),
            ("depthwise", (1, 5, 6, 4), (5, 1, 3, 3), False, {"group": 5, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
            ("dilated", (1, 3, 5, 6), (3, 4, 3, 2), True, {"dilations": [2, 3]}),
            ("1d", (2, 3, 9), (3, 4, 4), True, {"pads": [1, 1], "strides": [2]}),
            ("3d", (1, 2, 3, 4, 3), (2, 3, 2, 2, 2), True, {"strides": [2, 2, 2]}),
            ("1x1", (1, 5, 4, 4), (5, 7, 1, 1), True, {}),
            ("same_upper", (1, 3, 4, 5), (3, 2, 3, 3), True, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
            ("same_lower", (1, 3, 4, 5), (3, 2, 4, 3), True, {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
            ("valid", (1, 3, 5, 4), (3, 2, 2, 3), True, {"auto_pad": "VALID", "strides": [2, 1]}),
            ("output_shape", (1, 3, 4, 5), (3, 2, 3, 3), False, {"output_shape": [9, 10], "strides": [2, 2]})]:
        k = w[1] * attributes.get("group", 1)
        make.op(f"convtranspose_{name}", "ConvTranspose", [x, make.weights(*w)] + ([make.weights(k, scale=1)] if bias else []),
                opset=11, **attributes)


def pooling(make):
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for name, x, opset, attributes in [
                ("2x2", (1, 5, 8, 6), 7, {"kernel_shape": [2, 2], "strides": [2, 2]}),
                ("3x3_pads", (2, 3, 9, 8), 11, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
                ("stride1", (1, 4, 7, 7), 11, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
                ("uneven_pads", (1, 3, 8, 7), 11, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [0, 1, 2, 0]}),
                ("1d", (2, 3, 15), 11, {"kernel_shape": [4], "strides": [3]}),
                ("3d", (1, 2, 6, 5, 4), 11, {"kernel_shape": [2, 2, 3], "strides": [2, 1, 1]}),
                ("same_upper", (1, 3, 8, 9), 11, {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
                ("same_lower", (1, 3, 8, 9), 11, {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}),
                ("ceil", (1, 3, 8, 10), 19, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
                ("dilated", (1, 3, 9, 10), 19, {"kernel_shape": [3, 3], "dilations": [2, 3]}),
                ("large", (1, 3, 13, 14), 11, {"kernel_shape": [13, 13], "pads": [6, 6, 6, 6]})]:
            if op == "LpPool" and name == "ceil":
                continue  # the reference evaluator and onnxruntime disagree on windows over the end
            if op == "LpPool" and name == "dilated":
                opset = 18
            if op == "LpPool":
                attributes = dict(attributes, p=1 if name == "uneven_pads" else 3 if name == "stride1" else 2)
            make.op(f"{op.lower()}_{name}", op, [x], opset=opset, **attributes)
    make.op("averagepool_count_pads", "AveragePool", [(1, 3, 7, 8)], opset=11, kernel_shape=[3, 3], strides=[2, 2],
            pads=[1, 1, 1, 1], count_include_pad=1)
    make.op("averagepool_count_pads_ceil", "AveragePool", [(1, 2, 8, 8)], opset=19, kernel_shape=[3, 3], strides=[2, 2],
            pads=[1, 1, 1, 1], count_include_pad=1, ceil_mode=1)
    make.op("maxpool_negative", "MaxPool", [lambda m: m.uniform(-5, -1, 1, 3, 6, 6)], opset=12, kernel_shape=[3, 3],
            pads=[1, 1, 1, 1], strides=[3, 3])
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for shape, opset in (((2, 7, 5, 6), 7), ((1, 3, 17), 13), ((1, 4, 3, 2, 5), 22), ((1, 20, 1, 1), 13)):
            make.op(f"{op.lower()}_{'x'.join(map(str, shape))}", op, [shape], opset=opset)


def resize(make):
    def scales(*values):
        return Const(np.array(values, dtype=np.float32), exact=True)

    for name, x, opset, inputs, attributes in [
            ("nearest_opset10", (1, 3, 4, 5), 10, [scales(1, 1, 2, 2)], {"mode": "nearest"}),
            ("linear_opset10", (1, 2, 4, 5), 10, [scales(1, 1, 2, 3)], {"mode": "linear"}),
            ("nearest_asymmetric_floor", (1, 3, 5, 4), 11, [scales(), scales(1, 1, 2, 3)],
             {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
            ("nearest_half_pixel", (2, 2, 5, 7), 13, [None, scales(1, 1, 1.5, 2.5)], {"mode": "nearest"}),
            ("nearest_ceil_down", (1, 2, 9, 8), 13, [None, scales(1, 1, 0.5, 0.375)],
             {"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "asymmetric"}),
            ("nearest_prefer_ceil", (1, 2, 6, 5), 13, [None, None, ints(1, 2, 9, 10)],
             {"mode": "nearest", "nearest_mode": "round_prefer_ceil"}),
            ("linear_half_pixel", (1, 3, 5, 6), 11, [scales(), scales(1, 1, 2, 2)], {"mode": "linear"}),
            ("linear_align_corners", (1, 3, 5, 6), 11, [scales(), scales(), ints(1, 3, 9, 17)],
             {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
            ("linear_asymmetric", (1, 2, 5, 6), 13, [None, scales(1, 1, 2, 1.5)],
             {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}),
            ("linear_pytorch", (1, 2, 5, 6), 13, [None, None, ints(1, 2, 10, 1)],
             {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}),
            ("linear_down", (1, 3, 10, 12), 13, [None, scales(1, 1, 0.5, 0.25)], {"mode": "linear"}),
            ("linear_1d", (1, 3, 9), 13, [None, scales(1, 1, 2)], {"mode": "linear"}),
            ("linear_3d", (1, 2, 3, 4, 3), 13, [None, scales(1, 1, 2, 2, 2)], {"mode": "linear"}),
            ("cubic_half_pixel", (1, 2, 6, 7), 11, [scales(), scales(1, 1, 2, 2)], {"mode": "cubic"}),
            ("cubic_align_corners", (1, 2, 6, 7), 13, [None, None, ints(1, 2, 11, 9)],
             {"mode": "cubic", "coordinate_transformation_mode": "align_corners", "cubic_coeff_a": -0.5}),
            ("cubic_exclude_outside", (1, 2, 6, 7), 13, [None, scales(1, 1, 1.5, 2)], {"mode": "cubic", "exclude_outside": 1}),
            ("axes_linear", (1, 3, 5, 6), 18, [None, scales(2, 2)], {"mode": "linear", "axes": [2, 3]}),
            ("axes_sizes_not_larger", (1, 3, 6, 8), 18, [None, None, ints(9, 9)],
             {"mode": "nearest", "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}),
            ("linear_antialias", (1, 2, 12, 10), 18, [None, scales(1, 1, 0.5, 0.5)], {"mode": "linear", "antialias": 1}),
            ("identity", (1, 3, 5, 6), 13, [None, scales(1, 1, 1, 1)], {"mode": "linear"})]:
        make.op(f"resize_{name}", "Resize", [x] + inputs, opset=opset, **attributes)


def padding(make):
    value = Const(np.float32(1.5))
    make.op("pad_attributes", "Pad", [(1, 3, 4, 5)], opset=7, pads=[0, 0, 1, 2, 0, 0, 3, 0], value=0.5)
    make.op("pad_reflect_attributes", "Pad", [(1, 2, 5, 6)], opset=7, pads=[0, 0, 2, 3, 0, 0, 1, 4], mode="reflect")
    make.op("pad_constant", "Pad", [(2, 3, 4), ints(1, 0, 2, 0, 3, 1), value], opset=11)
    make.op("pad_channels", "Pad", [(1, 3, 4, 5), ints(0, 2, 0, 0, 0, 3, 0, 0)], opset=13)
    make.op("pad_reflect", "Pad", [(1, 3, 6, 5), ints(0, 0, 3, 2, 0, 0, 3, 4)], opset=13, mode="reflect")
    make.op("pad_edge", "Pad", [(1, 3, 4, 5), ints(0, 0, 2, 3, 0, 0, 1, 0)], opset=13, mode="edge")
    make.op("pad_edge_far", "Pad", [(1, 2, 3), ints(0, 1, 5, 1, 0, 7)], opset=13, mode="edge")
    make.op("pad_crop", "Pad", [(1, 3, 6, 7), ints(0, 0, -1, -2, 0, 0, -2, 1), value], opset=13)
    make.op("pad_axes", "Pad", [(2, 3, 4, 5), ints(1, 2, 3, 4), value, ints(-1, 2)], opset=18)
    make.op("pad_wrap", "Pad", [(1, 2, 4, 5), ints(0, 0, 2, 1, 0, 0, 3, 5)], opset=19, mode="wrap")
