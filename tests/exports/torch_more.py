"""Networks in the forms of torch.onnx, continued: volumes, rows of samples, masks that select, regions, newer operators."""
import numpy as np
from onnx import TensorProto

from net import exported
from torch_control import scalar
from torch_script import FLOAT, INT, as_list, conv, norm, size_of, tensor_of

BOOL = TensorProto.BOOL


@exported(13, "pytorch", nodes=True)
def video_network(n):
    """Conv3d, BatchNorm3d, pooling over time, trilinear interpolation."""
    x = n.input("clip", n.N, 3, 4, 10, 10)
    y = n.Conv(x, n.w(6, 3, 3, 3, 3), dilations=[1] * 3, group=1, kernel_shape=[3] * 3, pads=[1] * 6, strides=[1, 2, 2])
    y = n.MaxPool(n.Relu(norm(n, y, 6)), kernel_shape=[2, 1, 1], strides=[2, 1, 1], pads=[0] * 6)
    y = n.Resize(y, n.constant(np.zeros(0, np.float32)), [1.0, 1.0, 2.0, 2.0, 2.0], mode="linear",
                 coordinate_transformation_mode="pytorch_half_pixel")
    return [y, n.ReduceMean(y, axes=[-1, -2, -3], keepdims=0)]


@exported(13, "pytorch", nodes=True)
def waveform_network(n):
    """Conv1d with dilations, GLU, ConvTranspose1d, a cut by Slice."""
    x = n.input("samples", n.N, 1, 64)
    y = n.Conv(x, n.w(8, 1, 8), n.w(8), dilations=[1], group=1, kernel_shape=[8], pads=[0, 0], strides=[4])
    a, b = n.Split(n.Conv(n.Relu(y), n.w(16, 8, 3), n.w(16), dilations=[2], kernel_shape=[3], pads=[2, 2]), outputs=2, axis=1)
    y = n.ConvTranspose(n.Mul(a, n.Sigmoid(b)), n.w(8, 1, 8, spread=0.2), n.w(1), kernel_shape=[8], pads=[0, 0], strides=[4])
    return n.Slice(y, [0], n.Unsqueeze(size_of(n, x, 2), [0]), [2], [1])


@exported(13, "pytorch", nodes=True)
def mask_that_selects(n):
    """x[x > 0.5] and its like: NonZero, Transpose, GatherND; the count by Shape."""
    x = n.input("x", n.N, 6, 6)
    where = n.Transpose(n.NonZero(n.Greater(x, 0.3)), perm=[1, 0])
    chosen = n.GatherND(x, where)
    return [chosen, n.ReduceSum(n.Mul(chosen, chosen), keepdims=0), (n.Gather(n.Shape(chosen), 0, axis=0), INT)]


@exported(12, "pytorch", nodes=True)
def regions_of_a_map(n):
    """A second stage: RoiAlign at boxes of the data, a head over each."""
    x, boxes = n.input("x", n.N, 3, 16, 16), n.input("boxes", 5, 4, low=0.0, high=6.0)
    y = n.Relu(conv(n, x, 3, 8, 3))
    corner = n.Slice(boxes, [0], [2], [1])
    boxes = n.Concat(corner, n.Add(n.Add(corner, n.Slice(boxes, [2], [4], [1])), 1.0), axis=1)
    index = n.ConstantOfShape(as_list(n, size_of(n, boxes, 0)), value=tensor_of([0]))
    cut = n.RoiAlign(y, boxes, index, output_height=3, output_width=3, sampling_ratio=2, spatial_scale=1.0)
    return n.Softmax(n.Gemm(n.Flatten(cut), n.w(4, 72), n.w(4), transB=1), axis=-1)


@exported(11, "pytorch", nodes=True)
def pooling_with_places(n):
    """MaxPool2d(return_indices), its places brought back by MaxUnpool."""
    x = n.input("x", n.N, 4, 8, 8)
    y, places = n.MaxPool(conv(n, x, 4, 4, 3), outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    return n.MaxUnpool(n.Sigmoid(y), places, n.Shape(x), kernel_shape=[2, 2], strides=[2, 2])


@exported(16, "pytorch", nodes=True)
def causal_attention(n):
    """A decoder's step: Trilu of ones, Where with minus infinity, cumulated positions, keys of before put in front."""
    c = 8
    x, past = n.input("x", n.N, "T", c), n.input("past", n.N, 3, c)
    q, k, v = (n.MatMul(x, n.w(c, c, spread=0.4)) for _ in range(3))
    k, v = n.Concat(past, k, axis=1), n.Concat(n.Tanh(past), v, axis=1)
    rows, columns = size_of(n, q, 1), size_of(n, k, 1)
    ones = n.Cast(n.Expand(n.constant(np.ones((1, 1), np.int64)), as_list(n, rows, columns)), to=FLOAT)
    seen = n.Cast(n.Trilu(ones, n.Sub(columns, rows), upper=0), to=BOOL)
    p = n.Div(n.MatMul(q, n.Transpose(k, perm=[0, 2, 1])), n.Sqrt(n.Cast(scalar(n, c), to=FLOAT)))
    p = n.Softmax(n.Where(seen, p, scalar(n, -np.inf, np.float32)), axis=-1)
    return [n.MatMul(p, v), n.Identity(k)]


@exported(18, "pytorch", named=True, ir=10)
def antialiased_resizes(n):
    """F.interpolate(antialias=True) down, bicubic up, nearest-exact."""
    x = n.input("x", n.N, 3, 20, 18)
    down = n.Resize(x, None, None, [7, 9], axes=[2, 3], antialias=1, coordinate_transformation_mode="half_pixel", mode="linear",
                    keep_aspect_ratio_policy="stretch")
    up = n.Resize(down, None, [2.0, 2.0], axes=[2, 3], coordinate_transformation_mode="half_pixel", mode="cubic",
                  cubic_coeff_a=-0.75)
    return n.Resize(up, None, None, n.Concat(n.Shape(up, start=0, end=2), [20, 18], axis=0),
                    coordinate_transformation_mode="half_pixel", mode="nearest", nearest_mode="round_prefer_ceil")


@exported(18, "pytorch", named=True, ir=10)
def scanned_states(n):
    """A recurrence by Scan, as torch's higher-order scan and other recurrent cells are exported."""
    x = n.input("x", "T", n.N, 6)
    w, u = n.w(6, 4, spread=0.4), n.w(4, 4, spread=0.4)
    state = n.Expand(n.constant(np.zeros((1, 4), np.float32)), n.Concat(n.Shape(x, start=1, end=2), [4], axis=0))

    def step(s, before, part):
        now = s.Tanh(s.Add(s.MatMul(part, w), s.MatMul(before, u)))
        return [(now, FLOAT), (s.Identity(now), FLOAT)]
    body = n.body("body", [(FLOAT, None), (FLOAT, None)], step)
    last, all_of_them = n.Scan(state, x, outputs=2, body=body, num_scan_inputs=1)
    return [last, all_of_them]


@exported(17, "pytorch", nodes=True, named=True)
def spectrogram(n):
    """torch.stft with a window as a model's first layer, its magnitude, a filter bank, logarithm."""
    x = n.input("wave", n.N, 96)
    window = n.constant(np.hanning(16).astype(np.float32))
    y = n.STFT(x, 8, window, 16, onesided=1)
    power = n.ReduceSum(n.Mul(y, y), [-1], keepdims=0)
    return n.Log(n.Add(n.MatMul(power, n.positive(9, 5)), 1e-3))


@exported(13, "pytorch", nodes=True)
def mixed_integers(n):
    """A picture of bytes as input, normalised inside: Cast, Div, Sub, Transpose; classes as int32."""
    x = n.input("image", n.N, 12, 12, 3, dtype=np.uint8, low=0, high=255)
    y = n.Transpose(n.Cast(x, to=FLOAT), perm=[0, 3, 1, 2])
    y = n.Div(n.Sub(n.Div(y, 255.0), n.constant(np.array([0.485, 0.456, 0.406], np.float32).reshape(1, 3, 1, 1))),
              n.constant(np.array([0.229, 0.224, 0.225], np.float32).reshape(1, 3, 1, 1)))
    y = n.Gemm(n.Flatten(n.AveragePool(conv(n, y, 3, 8, 3), kernel_shape=[12, 12])), n.w(6, 8), n.w(6), transB=1)
    best, place = n.TopK(n.Softmax(y, axis=1), [2], outputs=2, axis=1)
    return [best, (n.Cast(place, to=TensorProto.INT32), TensorProto.INT32), (n.Not(n.Less(best, 0.5)), BOOL)]
