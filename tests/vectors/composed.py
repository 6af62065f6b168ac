"""Cases of generate.py: operators that are written with others once shapes are known (recurrent networks, losses, transforms,
states of language models, places), and those on bits."""
import numpy as np
from generate import PEER_IS_RIGHT, Case, Const, ints
from onnx import TensorProto, helper

RECURRENT = "its recurrent operators know no lengths, no clip and no activations but the usual ones"
OLD_IR, NEW_IR = 8, 13  # the opsets from 24 on want a newer version of the format


def integers(low, high, *shape, dtype=np.int64, constant=False):
    def values(m):
        drawn = m.rng.integers(low, high, shape).astype(dtype)
        return Const(drawn) if constant else drawn
    return values


def number(value, dtype=np.int64):
    return Const(np.array(value, dtype=dtype))


def lengths(*values):
    return np.array(values, dtype=np.int32)


def add(make):
    def alone(name, op, inputs, opset, outputs=1, **attributes):
        """Where onnxruntime has no such operator, or not in these types: the reference evaluator alone says what is right."""
        make.op(name, op, inputs, opset=opset, outputs=outputs, **attributes)
        case = make.cases[-1]
        case.exact = True
        case.ir_version = NEW_IR if opset > 23 else OLD_IR
    recurrent(make, alone)
    elements(make, alone)
    bits(make, alone)
    losses(make)
    spectra(make)
    states(make, alone)
    places(make, alone)
    images(make)
    optional(make)


def weights_of(make, gates, directions, size, hidden, constant=True):
    kind = make.weights if constant else lambda *shape, scale: shape
    return [kind(directions, gates * hidden, size, scale=0.5), kind(directions, gates * hidden, hidden, scale=0.5),
            kind(directions, 2 * gates * hidden, scale=0.5)]


def recurrent(make, alone):
    w = weights_of
    make.op("lstm_forward", "LSTM", [(5, 2, 3), *w(make, 4, 1, 3, 4)], opset=14, outputs=3, hidden_size=4)
    make.op("lstm_both_ways", "LSTM", [(5, 3, 3), *w(make, 4, 2, 3, 4), lengths(5, 2, 4), (2, 3, 4), (2, 3, 4), (2, 12)],
            opset=14, outputs=3, hidden_size=4, direction="bidirectional", peer_is_right=RECURRENT)
    make.op("lstm_clipped_backwards", "LSTM", [(4, 2, 3), *w(make, 4, 1, 3, 5)], opset=7, outputs=3, hidden_size=5,
            direction="reverse", clip=0.7, activations=["HardSigmoid", "Softsign", "LeakyRelu"], activation_alpha=[0.3, 0.1],
            activation_beta=[0.4], peer_is_right=RECURRENT)
    make.op("lstm_coupled", "LSTM", [(3, 2, 3), *w(make, 4, 1, 3, 4)], opset=14, outputs=3, hidden_size=4, input_forget=1,
            peer_is_right=RECURRENT)
    alone("lstm_batch_first", "LSTM", [(2, 4, 3), *w(make, 4, 1, 3, 4)], opset=14, outputs=3, hidden_size=4, layout=1)
    make.random("lstm_last_state")  # the states of all steps are not asked for
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=4)]
    feeds = {"x": make.normal(3, 2, 3), "w": Const(make.normal(1, 16, 3)), "r": Const(make.normal(1, 16, 4))}
    make.cases.append(Case("lstm_last_state", nodes, feeds, ["h"], 14))
    PEER_IS_RIGHT["lstm_last_state"] = RECURRENT
    make.op("gru_forward", "GRU", [(5, 2, 3), *w(make, 3, 1, 3, 4)], opset=14, outputs=2, hidden_size=4)
    make.op("gru_linear_both_ways", "GRU", [(4, 3, 3), *w(make, 3, 2, 3, 4), lengths(1, 4, 3), (2, 3, 4)], opset=14, outputs=2,
            hidden_size=4, direction="bidirectional", linear_before_reset=1, peer_is_right=RECURRENT)
    make.op("gru_of_data", "GRU", [(3, 2, 3), *w(make, 3, 1, 3, 4, constant=False)[:2], None, None, (1, 2, 4)], opset=14,
            outputs=2, hidden_size=4, direction="reverse", activations=["Sigmoid", "ScaledTanh"], activation_alpha=[1.5],
            activation_beta=[0.5], peer_is_right=RECURRENT)
    make.op("rnn_forward", "RNN", [(5, 2, 3), *w(make, 1, 1, 3, 4)], opset=14, outputs=2, hidden_size=4)
    make.op("rnn_both_ways", "RNN", [(4, 3, 3), *w(make, 1, 2, 3, 4), lengths(4, 1, 2)], opset=14, outputs=2, hidden_size=4,
            direction="bidirectional", activations=["Relu", "Tanh"], peer_is_right=RECURRENT)
    make.op("rnn_clipped", "RNN", [(4, 2, 3), *w(make, 1, 1, 3, 4), None, (1, 2, 4)], opset=14, outputs=2, hidden_size=4,
            direction="reverse", clip=0.5, activations=["Affine"], activation_alpha=[0.8], activation_beta=[0.1],
            peer_is_right=RECURRENT)


def elements(make, alone):
    make.op("shrink_default", "Shrink", [(3, 7)], opset=9)
    make.op("shrink_biased", "Shrink", [(2, 3, 5)], opset=9, lambd=0.8, bias=0.3)
    make.op("shrink_soft", "Shrink", [(4, 9)], opset=9, lambd=0.25, bias=0.25)
    values = np.array([[1, -np.inf, np.nan, np.inf], [0, 3e38, -np.inf, -1]], dtype=np.float32)
    alone("isinf_both", "IsInf", [values], opset=20)
    alone("isinf_positive", "IsInf", [values.astype(np.float16)], opset=20, detect_negative=0)
    alone("isinf_negative", "IsInf", [values.astype(np.float64)], opset=20, detect_positive=0)
    alone("swiglu_default", "SwiGLU", [(3, 8), (3, 8)], opset=28)
    alone("swiglu_alpha", "SwiGLU", [(2, 3, 5), (2, 3, 5)], opset=28, alpha=1.702)
    double = lambda m: m.rng.standard_normal((2, 9))
    alone("swiglu_double", "SwiGLU", [double, double], opset=28)


def bits(make, alone):
    def pair(dtype, *shapes):
        info = np.iinfo(dtype)
        return [lambda m, s=s: m.rng.integers(info.min, info.max, s, dtype=dtype, endpoint=True) for s in shapes]
    for op in ("And", "Or", "Xor"):
        name = f"bitwise_{op.lower()}"
        alone(f"{name}_int32", f"Bitwise{op}", pair(np.int32, (3, 5), (3, 5)), opset=18)
        alone(f"{name}_uint64_row", f"Bitwise{op}", pair(np.uint64, (2, 3, 4), (4,)), opset=18)
        alone(f"{name}_int8_columns", f"Bitwise{op}", pair(np.int8, (3, 1), (1, 7)), opset=18)
    for dtype in (np.int16, np.uint8, np.int64):
        alone(f"bitwise_not_{np.dtype(dtype).name}", "BitwiseNot", pair(dtype, (2, 9)), opset=18)
    alone("bitshift_left_uint8", "BitShift", [*pair(np.uint8, (3, 9)), integers(0, 9, 3, 9, dtype=np.uint8)], opset=11,
          direction="LEFT")
    alone("bitshift_right_uint64", "BitShift", [*pair(np.uint64, (2, 5)), integers(0, 64, 5, dtype=np.uint64)], opset=11,
          direction="RIGHT")
    alone("bitshift_right_int32", "BitShift", [*pair(np.int32, (4, 6)), integers(-2, 40, 4, 6, dtype=np.int32)], opset=28,
          direction="RIGHT")
    alone("bitcast_float32", "BitCast", [(3, 5)], opset=26, to=TensorProto.INT32)
    alone("bitcast_int64", "BitCast", [lambda m: m.rng.standard_normal((2, 3)).view(np.int64)], opset=26, to=TensorProto.DOUBLE)
    alone("bitcast_uint8", "BitCast", pair(np.uint8, (2, 8)), opset=26, to=TensorProto.INT8)
    make.op("det_one", "Det", [(4, 4)], opset=11)
    make.op("det_batch", "Det", [(2, 3, 5, 5)], opset=11)
    make.op("det_small", "Det", [(7, 1, 1)], opset=11)


def losses(make):
    def probabilities(*shape):
        def values(m):
            x = m.normal(*shape).astype(np.float64)
            return (x - np.log(np.exp(x).sum(axis=1, keepdims=True))).astype(np.float32)
        return values
    for op, name, first in (("NegativeLogLikelihoodLoss", "nll", probabilities),
                            ("SoftmaxCrossEntropyLoss", "softmax_loss", lambda *shape: shape)):
        make.op(f"{name}_mean", op, [first(3, 5), integers(0, 5, 3)], opset=13)
        make.op(f"{name}_weights", op, [first(2, 4, 6), integers(0, 4, 2, 6), lambda m: m.uniform(0.1, 1, 4)], opset=13,
                reduction="mean", ignore_index=2)
        make.op(f"{name}_image", op, [first(2, 3, 4, 5), integers(0, 3, 2, 4, 5, dtype=np.int32)], opset=13, reduction="none",
                ignore_index=0)
        make.op(f"{name}_sum", op, [first(3, 5), integers(0, 5, 3), lambda m: m.uniform(0.1, 1, 5)], opset=13, reduction="sum")
    make.op("softmax_loss_probabilities", "SoftmaxCrossEntropyLoss", [(3, 4, 2), integers(0, 4, 3, 2)], opset=13, outputs=2)


def spectra(make):
    make.op("dft_real", "DFT", [(2, 10, 1)], opset=17, single=True)
    make.op("dft_one_sided_padded", "DFT", [(3, 7, 1), number(9)], opset=17, single=True, onesided=1)
    make.op("dft_complex_second_axis", "DFT", [(2, 5, 6, 2)], opset=17, single=True, axis=2)
    make.op("dft_inverse_cut", "DFT", [(2, 12, 2), number(8)], opset=17, single=True, inverse=1)
    make.op("dft_axis_input", "DFT", [(6, 4, 2), None, number(0)], opset=20, single=True)
    window = Const(np.hanning(16).astype(np.float32))
    make.op("stft_real", "STFT", [(2, 64, 1), number(8), window, number(16)], opset=17, single=True, onesided=1)
    make.op("stft_two_sided", "STFT", [(1, 40, 1), number(5), Const(np.hamming(12).astype(np.float32))], opset=17, single=True,
            onesided=0)
    make.op("stft_window_of_data", "STFT", [(2, 30, 1), number(4), (10,)], opset=17, single=True, onesided=1)
    def window_case(name, op, size, dtype=None, **attributes):
        # The window times x, so that the model reads something.
        make.random(name)
        nodes = [helper.make_node(op, ["size"], ["w"], **attributes), helper.make_node("Mul", ["x", "w"], ["y"])]
        make.cases.append(Case(name, nodes, {"x": make.normal(2, size), "size": number(size)}, ["y"], 17, single=True))
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        name = op.replace("Window", "window").lower()
        window_case(f"{name}_periodic", op, 10)
        window_case(f"{name}_symmetric", op, 9, periodic=0)
        window_case(f"{name}_float", op, 16, output_datatype=TensorProto.FLOAT)
    for name, bins, length, rate, low, high in (("mel_8", 8, 64, 8000, 0.0, 4000.0), ("mel_20", 20, 512, 16000, 60.0, 7600.0),
                                                ("mel_4", 4, 32, 8192, 20.0, 4096.0)):
        make.random(name)
        nodes = [helper.make_node("MelWeightMatrix", ["bins", "length", "rate", "low", "high"], ["m"]),
                 helper.make_node("MatMul", ["x", "m"], ["y"])]
        feeds = {"x": make.normal(3, length // 2 + 1), "bins": number(bins), "length": number(length), "rate": number(rate),
                 "low": number(low, np.float32), "high": number(high, np.float32)}
        make.cases.append(Case(name, nodes, feeds, ["y"], 17, single=True))


def states(make, alone):
    keys = lambda *shape: lambda m: (lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True))(m.normal(*shape))
    gate = lambda *shape: lambda m: -m.uniform(0, 1, *shape)
    rate = lambda *shape: lambda m: m.uniform(0, 1, *shape)
    alone("linear_attention_linear", "LinearAttention", [(2, 3, 8), (2, 3, 8), (2, 3, 6)], opset=27, outputs=2, q_num_heads=2,
          kv_num_heads=2, update_rule="linear")
    alone("linear_attention_gated", "LinearAttention", [(1, 4, 16), keys(1, 4, 8), (1, 4, 6), (1, 2, 4, 3), gate(1, 4, 8)],
          opset=27, outputs=2, q_num_heads=4, kv_num_heads=2, update_rule="gated", scale=0.5)
    alone("linear_attention_gated_delta", "LinearAttention",
          [(2, 3, 8), keys(2, 3, 8), (2, 3, 4), (2, 2, 4, 2), gate(2, 3, 2), rate(2, 3, 2)], opset=27, outputs=2, q_num_heads=2,
          kv_num_heads=2)
    alone("causal_conv_plain", "CausalConvWithState", [(2, 3, 6), (3, 1, 4)], opset=27, outputs=2)
    alone("causal_conv_silu", "CausalConvWithState", [(1, 4, 5), make.weights(4, 1, 3), make.weights(4), (1, 4, 2)], opset=27,
          outputs=2, activation="silu")
    alone("causal_conv_step", "CausalConvWithState", [(2, 5, 1), make.weights(5, 1, 4), None, (2, 5, 3)], opset=27, outputs=2,
          activation="swish")
    alone("tensorscatter_linear", "TensorScatter", [(2, 3, 6, 4), (2, 3, 2, 4), np.array([1, 3])], opset=24)
    alone("tensorscatter_circular", "TensorScatter", [(3, 5, 2), (3, 3, 2), np.array([4, 0, 3])], opset=24, mode="circular",
          axis=1)
    alone("tensorscatter_first", "TensorScatter", [(2, 4, 3), (2, 2, 3)], opset=24)


def places(make, alone):
    make.op("reversesequence_time_first", "ReverseSequence", [(4, 3, 2), np.array([4, 1, 3])], opset=10)
    make.op("reversesequence_batch_first", "ReverseSequence", [(3, 5), np.array([0, 2, 5])], opset=10, time_axis=1,
            batch_axis=0)
    make.op("reversesequence_known", "ReverseSequence", [(4, 4), ints(1, 2, 3, 4)], opset=10)
    alone("cumprod_inclusive", "CumProd", [(3, 11), number(1)], opset=26)
    alone("cumprod_exclusive_backwards", "CumProd", [(4, 5, 2), number(-2)], opset=26, exclusive=1, reverse=1)
    alone("cumprod_int32", "CumProd", [integers(-3, 4, 2, 9, dtype=np.int32), number(1, np.int32)], opset=26, exclusive=1)


def images(make):
    def pooled(m, n, c, h, w):
        x = m.rng.permutation(n * c * h * w).reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        x = x.reshape(n, c, h // 2, w // 2, 4)
        best = x.argmax(axis=-1)
        flat = np.arange(n * c * h * w).reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        return np.take_along_axis(flat.reshape(x.shape), best[..., None], -1)[..., 0].astype(np.int64)
    make.op("maxunpool_2d", "MaxUnpool", [(2, 3, 3, 2), lambda m: pooled(m, 2, 3, 6, 4)], opset=11, kernel_shape=[2, 2],
            strides=[2, 2])
    make.op("maxunpool_one_image", "MaxUnpool", [(1, 1, 2, 4), lambda m: pooled(m, 1, 1, 4, 8)], opset=11, kernel_shape=[2, 2],
            strides=[2, 2])
    make.op("maxunpool_1d", "MaxUnpool", [(1, 2, 3), np.array([[[0, 3, 4], [7, 8, 11]]])], opset=11, kernel_shape=[2],
            strides=[2])
    make.op("col2im_plain", "Col2Im", [(2, 12, 9), ints(4, 4), ints(2, 2)], opset=18)
    make.op("col2im_strided", "Col2Im", [(1, 18, 9), ints(7, 6), ints(3, 3)], opset=18, strides=[2, 2], pads=[1, 0, 0, 1],
            peer_is_right="its Col2Im errs on pads that differ")
    make.op("col2im_dilated", "Col2Im", [(1, 8, 8), ints(6, 3), ints(2, 2)], opset=18, dilations=[2, 1])
    make.op("affinegrid_2d", "AffineGrid", [(2, 2, 3), ints(2, 1, 4, 5)], opset=20)
    make.op("affinegrid_corners", "AffineGrid", [(1, 2, 3), ints(1, 3, 3, 2)], opset=20, align_corners=1)
    make.op("affinegrid_3d", "AffineGrid", [(2, 3, 4), ints(2, 1, 2, 3, 4)], opset=20)
    make.op("eyelike_square", "EyeLike", [(4, 4)], opset=9)
    make.op("eyelike_below", "EyeLike", [(3, 5)], opset=9, k=-1)
    make.op("eyelike_int64", "EyeLike", [(5, 3)], opset=9, dtype=TensorProto.INT64, k=1)


def optional(make):
    for name, shape in (("optional_tensor", (2, 3)), ("optional_vector", (5,)), ("optional_number", ())):
        make.random(name)
        nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalHasElement", ["o"], ["there"]),
                 helper.make_node("OptionalGetElement", ["o"], ["z"]), helper.make_node("Cast", ["there"], ["f"], to=1),
                 helper.make_node("Add", ["z", "f"], ["y"])]
        make.cases.append(Case(name, nodes, {"x": make.normal(*shape)}, ["y"], 18, single=True))
        PEER_IS_RIGHT[name] = "its optional values are lists"
