"""Networks in the forms of torch.onnx's first exporter, continued: recurrent layers, sequences, loops, detection."""
import numpy as np
from onnx import TensorProto

from net import exported
from torch_script import FLOAT, INT, as_list, conv, decomposed_layer_norm, norm, size_of, tensor_of

BOOL = TensorProto.BOOL


def scalar(n, value, dtype=np.int64):
    return n.constant(np.array(value, dtype))


@exported(14, "pytorch", nodes=True, named=True)
def lstm_batch_first(n):
    """nn.LSTM(batch_first): Transpose, states of zeros by Shape, Gather, Concat, ConstantOfShape; Squeeze, Transpose."""
    x = n.input("x", n.N, "T", 6)
    y = n.Transpose(x, perm=[1, 0, 2])
    zeros = n.ConstantOfShape(as_list(n, 1, size_of(n, y, 1), 5), value=tensor_of([0], np.float32))
    y, last, _ = n.LSTM(y, n.w(1, 20, 6), n.w(1, 20, 5), n.w(1, 40), None, zeros, zeros, outputs=3, hidden_size=5)
    y = n.Transpose(n.Squeeze(y, [1]), perm=[1, 0, 2])
    return [n.Gemm(n.Gather(y, scalar(n, -1), axis=1), n.w(3, 5), n.w(3), transB=1), last]


@exported(13, "pytorch", nodes=True)
def gru_in_both_directions(n):
    x = n.input("x", "T", n.N, 6)
    zeros = n.Expand(n.constant(np.zeros((2, 1, 4), np.float32)), as_list(n, 2, size_of(n, x, 1), 4))
    y, _ = n.GRU(x, n.w(2, 12, 6), n.w(2, 12, 4), n.w(2, 24), None, zeros, outputs=2, direction="bidirectional", hidden_size=4,
                 linear_before_reset=1)
    y = n.Reshape(n.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])
    return n.Softmax(n.Add(n.MatMul(y, n.w(8, 5)), n.w(5)), axis=2)


@exported(12, "pytorch", nodes=True)
def chunks_as_a_sequence(n):
    """A list of chunks by SplitToSequence and SequenceAt, put together again as a list."""
    x = n.input("x", n.N, 12, 8, 8)
    parts = n.SplitToSequence(conv(n, x, 12, 12, 3), [4, 4, 4], axis=1)
    a, b, c = (n.SequenceAt(parts, scalar(n, i)) for i in range(3))
    made = n.SequenceConstruct(n.Relu(a), n.Mul(b, n.Sigmoid(c)), b)
    return n.ConcatFromSequence(made, axis=1)


@exported(13, "pytorch", nodes=True)
def loop_that_fills_a_sequence(n):
    """A scripted loop: for i in range(x.size(1)): list.append(f(x[:, i])); torch.stack(list, 1)."""
    x = n.input("x", n.N, "T", 6)
    w = n.w(6, 4, spread=0.4)
    empty = n.SequenceEmpty(dtype=1)

    def step(s, i, going, parts):
        part = s.Tanh(s.MatMul(s.Gather(x, i, axis=1), w))
        return [(s.Identity(going), BOOL), (s.SequenceInsert(parts, part), FLOAT)]
    body = n.body("step", [(INT, []), (BOOL, []), (FLOAT, None)], step)
    for value in (body.input[2], body.output[1]):  # sequences of tensors
        value.type.Clear()
        value.type.sequence_type.elem_type.tensor_type.elem_type = FLOAT
    parts = n.Loop(size_of(n, x, 1), scalar(n, True, bool), empty, body=body)
    return n.ConcatFromSequence(parts, axis=1, new_axis=1)


@exported(13, "pytorch", nodes=True)
def loop_of_refinements(n):
    """A scripted while: state carried round, condition computed."""
    x = n.input("x", n.N, 6)
    w = n.w(6, 6, spread=0.4)

    def step(s, i, going, state, total):
        state = s.Tanh(s.MatMul(state, w))
        return [(s.Less(i, 4), BOOL), (state, FLOAT), (s.Add(total, state), FLOAT)]
    body = n.body("step", [(INT, []), (BOOL, []), (FLOAT, None), (FLOAT, None)], step)
    return n.Loop(scalar(n, 20), scalar(n, True, bool), x, x, outputs=2, body=body)


def decoded_boxes(n, y, anchors):
    """YOLOv5's head: sizes from a grid of constants."""
    y = n.Sigmoid(n.Transpose(n.Reshape(y, [0, anchors, 7, 8, 8]), perm=[0, 1, 3, 4, 2]))
    xy, wh, score = n.Split(y, [2, 2, 3], outputs=3, axis=4)
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1)[None, None].astype(np.float32) - 0.5
    xy = n.Mul(n.Add(n.Mul(xy, 2.0), n.constant(grid)), 4.0)
    wh = n.Mul(n.Pow(n.Mul(wh, 2.0), 2.0),
               n.constant(np.linspace(4, 20, anchors * 2, dtype=np.float32).reshape(1, anchors, 1, 1, 2)))
    return n.Reshape(n.Concat(xy, wh, score, axis=4), [0, -1, 7])


@exported(13, "pytorch", nodes=True)
def detector_head(n):
    x = n.input("images", n.N, 3, 32, 32)
    y = n.Relu(conv(n, n.Relu(conv(n, x, 3, 8, 3, stride=2)), 8, 16, 3, stride=2))
    boxes = decoded_boxes(n, conv(n, y, 16, 14, 1), 2)
    return n.named_output("output0", boxes)


@exported(11, "pytorch", nodes=True)
def detector_with_suppression(n):
    """torchvision's batched_nms: boxes moved apart by class, NonMaxSuppression, Gather, the best few by TopK."""
    x = n.input("image", 1, 3, 32, 32)
    y = n.Relu(conv(n, n.Relu(conv(n, x, 3, 8, 3, stride=2)), 8, 16, 3, stride=2))
    rows = n.Squeeze(n.Reshape(n.Transpose(conv(n, y, 16, 6, 1), perm=[0, 2, 3, 1]), [1, -1, 6]), axes=[0])
    corner = n.Abs(n.Slice(rows, [0], [2], [1]))
    boxes = n.Concat(n.Mul(corner, 30.0), n.Add(n.Mul(corner, 30.0), n.Add(n.Abs(n.Slice(rows, [2], [4], [1])), 4.0)), axis=1)
    scores = n.Sigmoid(n.Slice(rows, [4], [6], [1]))
    best, label = n.ReduceMax(scores, axes=[1], keepdims=0), n.ArgMax(scores, axis=1, keepdims=0)
    apart = n.Add(boxes, n.Unsqueeze(n.Mul(n.Cast(label, to=FLOAT), n.Add(n.ReduceMax(boxes, keepdims=0), 1.0)), axes=[1]))
    chosen = n.NonMaxSuppression(n.Unsqueeze(apart, axes=[0]), n.Unsqueeze(n.Unsqueeze(best, axes=[0]), axes=[0]),
                                 [2147483647], [0.5])
    kept = n.Squeeze(n.Gather(chosen, [2], axis=1), axes=[1])
    few = n.Min(n.Shape(kept), [5]) if n.opset >= 12 else [5]
    kept = n.Slice(kept, [0], few, [0])
    return [n.Gather(boxes, kept, axis=0), n.Gather(best, kept, axis=0), (n.Gather(label, kept, axis=0), INT)]


@exported(16, "pytorch", nodes=True, named=True)
def shifted_windows(n):
    """Swin: roll by Slice and Concat, windows by Reshape and Transpose, attention with a mask and a bias."""
    c, size, heads = 16, 4, 2
    x = n.input("x", n.N, 8, 8, c)

    def roll(y, by):
        for axis in (1, 2):
            y = n.Concat(n.Slice(y, [-by], [9223372036854775807], [axis]), n.Slice(y, [0], [-by], [axis]), axis=axis)
        return y
    y = roll(decomposed_layer_norm(n, x, c), -2)
    y = n.Transpose(n.Reshape(y, as_list(n, size_of(n, y, 0), 2, size, 2, size, c)), perm=[0, 1, 3, 2, 4, 5])
    y = n.Reshape(y, [-1, size * size, c])
    qkv = n.Add(n.MatMul(y, n.w(c, 3 * c, spread=0.3)), n.w(3 * c))
    qkv = n.Transpose(n.Reshape(qkv, as_list(n, size_of(n, y, 0), size * size, 3, heads, c // heads)), perm=[2, 0, 3, 1, 4])
    q, k, v = (n.Squeeze(part, [0]) for part in n.Split(qkv, outputs=3, axis=0))
    p = n.Add(n.MatMul(n.Mul(q, 0.3535533845424652), n.Transpose(k, perm=[0, 1, 3, 2])),
              n.Unsqueeze(n.w(heads, 16, 16, spread=0.5), [0]))
    mask = n.constant((np.random.default_rng(5).random((4, 16, 16)) < 0.3).astype(np.float32) * -100)
    windows = n.Div(size_of(n, p, 0), scalar(n, 4))
    p = n.Add(n.Reshape(p, as_list(n, windows, 4, heads, 16, 16)), n.Unsqueeze(n.Unsqueeze(mask, [1]), [0]))
    p = n.Softmax(n.Reshape(p, [-1, heads, 16, 16]), axis=-1)
    y = n.Reshape(n.Transpose(n.MatMul(p, v), perm=[0, 2, 1, 3]), as_list(n, size_of(n, y, 0), 16, c))
    y = n.Transpose(n.Reshape(y, [-1, 2, 2, size, size, c]), perm=[0, 1, 3, 2, 4, 5])
    return n.Add(x, roll(n.Reshape(y, [-1, 8, 8, c]), 2))


@exported(16, "pytorch", nodes=True, named=True)
def sampled_and_scattered(n):
    """grid_sample, masked_fill, index_put, gather, topk, cumsum, einsum: the operators that traces end in."""
    x = n.input("x", n.N, 4, 9, 9)
    grid = n.input("grid", n.N, 5, 6, 2)
    y = n.GridSample(conv(n, x, 4, 4, 3), grid, align_corners=0, mode="bilinear", padding_mode="zeros")
    y = n.Where(n.Greater(y, scalar(n, 0.5, np.float32)), scalar(n, 0.5, np.float32), y)
    values, places = n.TopK(n.Reshape(y, [0, 4, 30]), [7], outputs=2, axis=-1, largest=1, sorted=1)
    steps = n.CumSum(values, scalar(n, -1))
    gathered = n.GatherElements(n.Reshape(y, [0, 4, 30]), places, axis=-1)
    put = n.ScatterND(n.w(6, 5, spread=1), n.constant(np.array([[0], [3]], np.int64)), n.w(2, 5, spread=1))
    return [steps, gathered, n.Einsum(n.Slice(steps, [0], [5], [2]), put, equation="bck,hk->bhc"), (places, INT)]


@exported(11, "pytorch", nodes=True)
def pyramid_pooling(n):
    """DeepLab: atrous convolutions, a pooled branch brought back to the map's size, argmax at the picture's."""
    x = n.input("x", n.N, 3, "H", "W")
    y = n.Relu(norm(n, conv(n, x, 3, 8, 3, stride=2), 8))
    parts = [n.Relu(n.Conv(y, n.w(4, 8, 3, 3), n.w(4), dilations=[d, d], kernel_shape=[3, 3], pads=[d] * 4)) for d in (1, 2, 4)]
    pooled = n.Relu(conv(n, n.GlobalAveragePool(y), 8, 4, 1))
    sizes = n.Concat(n.Slice(n.Shape(pooled), [0], [2], [0]), as_list(n, size_of(n, y, 2), size_of(n, y, 3)), axis=0)
    empty = n.constant(np.zeros(0, np.float32))
    parts.append(n.Resize(pooled, empty, empty, sizes, coordinate_transformation_mode="pytorch_half_pixel", mode="linear"))
    z = conv(n, n.Concat(*parts, axis=1), 16, 5, 1)
    sizes = n.Concat(n.Slice(n.Shape(z), [0], [2], [0]), n.Slice(n.Shape(x), [2], [4], [0]), axis=0)
    z = n.Resize(z, empty, empty, sizes, coordinate_transformation_mode="pytorch_half_pixel", mode="linear")
    return [z, (n.ArgMax(z, axis=1, keepdims=0, select_last_index=0) if n.opset >= 12 else n.ArgMax(z, axis=1, keepdims=0),
                INT)]
