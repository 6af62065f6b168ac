"""Networks in the forms of torch.onnx's second exporter, which translates torch.export's graphs: local functions in its first
releases, later inlined ones, axes as inputs, Shape with ends, allowzero."""
import math

import numpy as np
from onnx import TensorProto, helper

from net import exported

INT, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
TORCH, LIB = "pkg.torch.2.3.0", "pkg.onnxscript.torch_lib"


def scalar(n, value, dtype=np.float32):
    return n.constant(np.array(value, dtype))


def functions_of_the_library(n):
    """What onnxscript's library defines: a function that asks for a rank, ones that call it, activations."""
    n.function(LIB + ".common", "Rank", ["input"], ["result"], lambda s: s.nodes.extend([
        helper.make_node("Shape", ["input"], ["shape"]), helper.make_node("Size", ["shape"], ["result"])]))
    n.function(LIB + ".common", "IsScalar", ["input"], ["result"], lambda s: s.nodes.extend([
        helper.make_node("Rank", ["input"], ["rank"], domain=LIB + ".common"),
        helper.make_node("Constant", [], ["zero"], value_int=0), helper.make_node("Equal", ["rank", "zero"], ["result"])]))
    n.function(LIB, "aten_silu", ["self"], ["result"], lambda s: s.nodes.extend([
        helper.make_node("Sigmoid", ["self"], ["half"]), helper.make_node("Mul", ["self", "half"], ["result"])]))
    n.function(LIB, "aten_gelu", ["self"], ["result"], lambda s: s.nodes.extend([
        helper.make_node("Constant", [], ["root"], value_float=math.sqrt(2)), helper.make_node("Div", ["self", "root"], ["d"]),
        helper.make_node("Erf", ["d"], ["e"]), helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Add", ["e", "one"], ["a"]), helper.make_node("Mul", ["self", "a"], ["m"]),
        helper.make_node("Constant", [], ["half"], value_float=0.5), helper.make_node("Mul", ["half", "m"], ["result"])]))

    def mean_dim(s):
        then = helper.make_graph([helper.make_node("Identity", ["self"], ["same"])], "then", [],
                                 [helper.make_tensor_value_info("same", FLOAT, None)])
        keep = helper.make_node("ReduceMean", ["self", "dims"], ["mean"])
        keep.attribute.append(onnx_reference("keepdims", "keepdim"))
        other = helper.make_graph([helper.make_node("Constant", [], ["all"], value_ints=[-1]),
                                   helper.make_node("Reshape", ["dim", "all"], ["dims"]), keep], "other", [],
                                  [helper.make_tensor_value_info("mean", FLOAT, None)])
        s.nodes.extend([helper.make_node("IsScalar", ["self"], ["flat"], domain=LIB + ".common"),
                        helper.make_node("If", ["flat"], ["result"], then_branch=then, else_branch=other)])
    n.function(LIB, "aten_mean_dim", ["self", "dim"], ["result"], mean_dim, ["keepdim"])
    n.domains.update({LIB: 1, LIB + ".common": 1})


def onnx_reference(name, of):
    """An attribute that takes the value of one of the function's."""
    attribute = helper.make_attribute(name, 1)
    attribute.ClearField("i")
    attribute.ref_attr_name = of
    return attribute


@exported(18, "pytorch", nodes=True)
def functions_in_functions(n):
    """Each module a function of the model, each operator a function of the library, a question about ranks in it."""
    functions_of_the_library(n)

    def block(s):
        s.nodes.extend([helper.make_node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1],
                                         dilations=[1, 1], group=1, auto_pad="NOTSET"),
                        helper.make_node("aten_silu", ["c"], ["y"], domain=LIB)])
    n.function(TORCH, "torch_nn_modules_container_Sequential_features_1", ["x", "w", "b"], ["y"], block)
    x = n.input("l_x_", n.N, 3, 12, 12)
    y = call(n, TORCH, "torch_nn_modules_container_Sequential_features_1", x, n.w(8, 3, 3, 3), n.w(8))
    y = call(n, TORCH, "torch_nn_modules_container_Sequential_features_1", y, n.w(8, 8, 3, 3), n.w(8))
    y = call(n, LIB, "aten_mean_dim", y, [-1, -2], keepdim=0)
    return call(n, LIB, "aten_gelu", n.Gemm(y, n.w(5, 8), n.w(5), transB=1, alpha=1.0, beta=1.0))


def call(n, domain, name, *inputs, **attributes):
    result = n.fresh(name)
    names = [i if isinstance(i, str) else n.constant(i) for i in inputs]
    n.nodes.append(helper.make_node(name, names, [result], domain=domain, **attributes))
    return result


@exported(18, "pytorch", named=True, ir=10)
def symbolic_sizes(n):
    """Inlined and folded: sizes by Shape with ends, Concat, Reshape allowzero; means over axes as inputs; Split num_outputs."""
    x = n.input("x", n.N, 3, "H", "W")
    y = n.Conv(x, n.w(8, 3, 3, 3), n.w(8), auto_pad="NOTSET", dilations=[1, 1], group=1, pads=[1] * 4, strides=[2, 2])
    y = n.BatchNormalization(y, n.positive(8), n.w(8), n.w(8, spread=0.1), n.positive(8), epsilon=1e-5, momentum=0.1,
                             training_mode=0)
    y = n.Relu(y)
    batch, rows, columns = (n.Shape(y, start=i, end=i + 1) for i in (0, 2, 3))
    flat = n.Reshape(y, n.Concat(batch, [8], n.Mul(rows, columns), axis=0), allowzero=1)
    a, b = n.Split(n.Transpose(flat, perm=[0, 2, 1]), outputs=2, axis=2, num_outputs=2)
    y = n.LayerNormalization(n.Mul(a, n.Sigmoid(b)), n.positive(4), n.w(4), axis=-1, epsilon=1e-5, stash_type=1)
    y = n.Reshape(n.Transpose(y, perm=[0, 2, 1]), n.Concat(batch, [4], rows, columns, axis=0), allowzero=1)
    return [y, n.ReduceMean(y, [-1, -2], keepdims=1, noop_with_empty_axes=0)]


@exported(18, "pytorch", named=True, ir=10)
def decomposed_attention(n):
    """scaled_dot_product_attention: both operands scaled by the root of the factor, mask added, NaN rows of all-masked kept
    out."""
    c, heads = 16, 2
    x, mask = n.input("hidden", n.N, "T", c), n.input("attention_mask", n.N, "T", dtype=np.int64, low=1, high=1)
    batch, time = n.Shape(x, start=0, end=1), n.Shape(x, start=1, end=2)
    shape = n.Concat(batch, time, [heads], [c // heads], axis=0)
    q, k, v = (n.Transpose(n.Reshape(n.Add(n.MatMul(x, n.w(c, c, spread=0.3)), n.w(c)), shape, allowzero=1), perm=[0, 2, 1, 3])
               for _ in range(3))
    wide = n.Cast(n.Unsqueeze(mask, [1, 2]), to=FLOAT)
    bias = n.Mul(n.Sub(scalar(n, 1.0), wide), scalar(n, -3.4028234663852886e38))
    root = scalar(n, math.sqrt(1 / math.sqrt(c // heads)))
    p = n.Softmax(n.Add(n.MatMul(n.Mul(q, root), n.Mul(n.Transpose(k, perm=[0, 1, 3, 2]), root)), bias), axis=-1)
    y = n.Transpose(n.MatMul(p, v), perm=[0, 2, 1, 3])
    y = n.Reshape(y, n.Concat(batch, time, [c], axis=0), allowzero=1)
    return n.Add(n.MatMul(y, n.w(c, c, spread=0.3)), n.w(c))


@exported(20, "pytorch", named=True, ir=10)
def native_gelu_and_sizes(n):
    x = n.input("x", n.N, 3, 16, 16)
    y = n.Conv(x, n.w(16, 3, 4, 4), n.w(16), auto_pad="NOTSET", dilations=[1, 1], group=1, pads=[0] * 4, strides=[4, 4])
    y = n.Gelu(n.Add(n.MatMul(n.Transpose(n.Reshape(y, [0, 16, 16]), perm=[0, 2, 1]), n.w(16, 32, spread=0.3)), n.w(32)),
               approximate="none")
    y = n.Gelu(n.MatMul(y, n.w(32, 16, spread=0.2)), approximate="tanh")
    y = n.Reshape(n.Transpose(y, perm=[0, 2, 1]), n.Concat(n.Shape(x, start=0, end=1), [16, 4, 4], axis=0), allowzero=1)
    return n.Resize(y, None, [1.0, 1.0, 2.0, 2.0], coordinate_transformation_mode="half_pixel", mode="cubic",
                    cubic_coeff_a=-0.75,
                    keep_aspect_ratio_policy="stretch", extrapolation_value=0.0)


@exported(21, "pytorch", named=True, ir=10)
def group_norm_native(n):
    x = n.input("x", n.N, 8, 12, 12)
    y = n.GroupNormalization(x, n.positive(8), n.w(8), epsilon=1e-5, num_groups=4)
    y = n.Conv(n.Mul(y, n.Sigmoid(y)), n.w(8, 8, 3, 3), n.w(8), auto_pad="NOTSET", pads=[1] * 4)
    y = n.Pad(y, [1, 0, 1, 2], scalar(n, 0.0), [-1, -2], mode="constant")
    return n.MaxPool(y, auto_pad="NOTSET", ceil_mode=1, dilations=[1, 1], kernel_shape=[3, 3], pads=[0] * 4, storage_order=0,
                     strides=[2, 2])


@exported(18, "pytorch", named=True, ir=10)
def condition_of_the_data(n):
    """torch.cond: both branches see tensors of the graph around them."""
    x = n.input("x", n.N, 6)
    y = n.Gemm(x, n.w(6, 6), n.w(6), transB=1)
    total = n.ReduceSum(y, keepdims=0)

    def high(s):
        return [(s.Relu(y), FLOAT)]

    def low(s):
        return [(s.Mul(s.Neg(y), 0.5), FLOAT)]
    chosen = n.If(n.Greater(total, scalar(n, 0.0)), then_branch=n.body("true_graph_0", [], high),
                  else_branch=n.body("false_graph_0", [], low))
    return n.Add(chosen, x)
