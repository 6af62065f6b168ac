"""Cases of matrix products, normalisations, softmax and attention."""
import numpy as np

from case import covers
from draw import FLOATS, INTEGERS, DTYPES


def length(d):
    return d.pick(1, 2, 3, 4, 7, 8, 16, 17, 31, 64)


@covers("MatMul")
def matmul(d, op):
    dtype = d.type_for(op)
    m, n, k = length(d), length(d), length(d)
    if d.chance(0.05):
        k = 0
    batch = d.shape(0, 2, 12, empty=False)
    left = tuple(1 if d.chance(0.3) else s for s in batch) if d.chance(0.5) else batch
    right = batch if left != batch or d.chance(0.5) else batch[d.whole(0, len(batch)):]
    a, b = (*left, m, k), (*right, k, n)
    if d.chance(0.1):
        a = (k,)
    if d.chance(0.1):
        b = (k,)
    return [d.node(op, [d.either(d.values(dtype, a), 0.2), d.either(d.values(dtype, b), 0.6) if a else d.feed(a)])] \
        if d.chance(0.9) else [d.node(op, [d.feed(d.values(dtype, a)), d.feed(d.values(dtype, b))])]


@covers("Gemm")
def gemm(d, op):
    dtype = d.type_for(op)
    m, n, k = length(d), length(d), length(d)
    flags = [d.pick(0, 1), d.pick(0, 1)]
    c = d.pick((m, n), (n,), (1, n), (m, 1), (1,), ()) if d.opset >= 7 else (m, n)
    whole = dtype in INTEGERS  # factors that keep integers whole, and values that no product takes out of their type
    style = "small" if whole else ""
    inputs = [d.feed(d.values(dtype, (k, m) if flags[0] else (m, k), style)),
              d.either(d.values(dtype, (n, k) if flags[1] else (k, n), style), 0.7)]
    if d.opset < 11 or d.chance(0.7):
        inputs.append(d.either(d.values(dtype, c, style)))
    factor = (lambda: float(d.pick(1, 2, 3))) if whole else (lambda: d.pick(1.0, 0.5, -2.0, 0.3))
    return [d.node(op, inputs, transA=flags[0] or None, transB=flags[1] or None, alpha=d.pick(None, factor()),
                   beta=d.pick(None, factor()))]


@covers("Einsum", lowest=12)
def einsum(d, op):
    form = d.pick("ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "...ij,...jk->...ik", "ij->ji", "ii->i", "ij->", "i,j->ij",
                  "bij,bij->b", "ij,kj->ki", "bchw,bkhw->bck", "ij,jk,kl->il", "ijk->kj", "ij,ij->ij", "nkctv,kvw->nctw")
    size = {letter: d.pick(1, 2, 3, 5, 8) for letter in "bcdhijklnktvwp"}
    dtype = d.type_for(op, allowed=FLOATS + ("int32", "int64"))
    lead = d.shape(0, 2, 8, empty=False)
    inputs = []
    for term in form.split("->")[0].split(","):
        shape = lead if term.startswith("...") else ()
        inputs.append(d.either(d.values(dtype, (*shape, *(size[c] for c in term.replace(".", "")))), 0.3))
    if not d.feeds:
        inputs[0] = d.feed(d.constants.pop(inputs[0]))
    return [d.node(op, inputs, equation=form)]


@covers("Softmax", "LogSoftmax")
def softmax(d, op):
    d.edges = d.chance(0.1)
    shape = d.shape(1, 4, empty=False)
    dtype = d.type_for(op, allowed=FLOATS)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.whole(0, len(shape) - 1)
    x = d.values(dtype, shape)
    x = np.where(np.isfinite(x), np.clip(x, DTYPES[dtype](-1e4), DTYPES[dtype](1e4)), x).astype(DTYPES[dtype])
    return [d.node(op, [d.feed(x)], axis=d.pick(axis, None) if len(shape) > 1 or d.opset >= 13 else 0)]


@covers("BatchNormalization")
def batch_normalization(d, op):
    shape = (d.pick(1, 2), d.pick(1, 3, 8, 17), *d.shape(0, 3, 200, empty=False))
    dtype = d.type_for(op, allowed=FLOATS)
    other = dtype if d.opset < 15 else dtype
    attributes = {"epsilon": d.pick(None, 1e-3)}
    if d.opset < 7:
        attributes["is_test"] = 1
    if d.opset < 6:
        attributes["consumed_inputs"] = [0, 0, 0, 1, 1]
    inputs = [d.constant(d.values(other, shape[1:2], style)) for style in ("", "", "", "positive")]
    return [d.node(op, [d.feed(d.values(dtype, shape)), *inputs], **attributes)]


@covers("InstanceNormalization")
def instance_normalization(d, op):
    shape = (d.pick(1, 2), d.pick(1, 3, 8), *d.shape(1, 3, 200, empty=False))
    dtype = d.type_for(op, allowed=FLOATS)
    return [d.node(op, [d.feed(d.values(dtype, shape)), d.either(d.values(dtype, shape[1:2])),
                        d.either(d.values(dtype, shape[1:2]))], epsilon=d.pick(None, 1e-3),
                   consumed_inputs=[0, 0, 0] if d.opset < 6 else None)]


@covers("LayerNormalization", "RMSNormalization", lowest=17)
def layer_normalization(d, op):
    shape = d.shape(1, 4, empty=False)
    axis = d.axis(len(shape))
    dtype = d.type_for(op, allowed=FLOATS)
    inner = shape[axis:] if d.chance(0.7) else tuple(1 if d.chance(0.4) else s for s in shape[axis:])
    inputs = [d.feed(d.values(dtype, shape)), d.either(d.values(dtype, inner))]
    if op == "LayerNormalization" and d.chance(0.6):
        inputs.append(d.either(d.values(dtype, inner)))
    outputs = d.pick(1, 1, 3) if op == "LayerNormalization" and inner == shape[axis:] else 1
    made = d.node(op, inputs, outputs=outputs, axis=axis if axis != -1 or d.chance(0.5) else None, epsilon=d.pick(None, 1e-3))
    return [made] if outputs == 1 else made


@covers("GroupNormalization", lowest=18)
def group_normalization(d, op):
    groups, each = d.pick(1, 2, 3, 4), d.pick(1, 2, 4)
    shape = (d.pick(1, 2), groups * each, *d.shape(1, 3, 100, empty=False))
    dtype = d.type_for(op, allowed=FLOATS)
    size = (groups,) if d.opset < 21 else (groups * each,)
    return [d.node(op, [d.feed(d.values(dtype, shape)), d.either(d.values(dtype, size)), d.either(d.values(dtype, size))],
                   num_groups=groups, epsilon=d.pick(None, 1e-3))]


@covers("MeanVarianceNormalization", "LpNormalization")
def plain_normalization(d, op):
    dtype = d.type_for(op, allowed=FLOATS)
    if op == "LpNormalization":
        shape = d.shape(1, 4, empty=False)
        return [d.node(op, [d.feed(d.values(dtype, shape))], axis=d.axis(len(shape)), p=d.pick(1, 2, None))]
    shape = tuple(d.pick(1, 2, 3, 8) for _ in range(4))
    axes = d.pick(None, [0, 2, 3], [2, 3], [1, 2, 3], [-1, -2]) if d.opset >= 9 else None
    return [d.node(op, [d.feed(d.values(dtype, shape))], axes=axes)]


@covers("LRN")
def local_response(d, op):
    shape = (d.pick(1, 2), d.pick(1, 3, 8, 17), d.pick(1, 3, 5), d.pick(1, 4))
    dtype = d.type_for(op, allowed=FLOATS)
    return [d.node(op, [d.feed(d.values(dtype, shape))], size=d.pick(1, 3, 5, 7), alpha=d.pick(None, 0.1, 1.0),
                   beta=d.pick(None, 0.5, 1.0), bias=d.pick(None, 2.0))]


@covers("Attention", lowest=23)
def attention(d, op):
    d.opset = max(d.opset, 23)
    batch, heads, group = d.pick(1, 2), d.pick(1, 2, 4), d.pick(1, 1, 2)
    length_q, length_k, size, value = d.pick(1, 3, 7, 16), d.pick(1, 4, 9, 16), d.pick(1, 4, 8), d.pick(2, 4, 8)
    dtype = d.type_for(op, allowed=FLOATS)
    flat = d.chance(0.4)

    def tensor(n, length_, width):
        array = d.values(dtype, (batch, n, length_, width))
        return np.ascontiguousarray(array.transpose(0, 2, 1, 3).reshape(batch, length_, n * width)) if flat else array
    inputs = [d.feed(tensor(heads * group, length_q, size)), d.feed(tensor(heads, length_k, size)),
              d.feed(tensor(heads, length_k, value))]
    attributes = {"scale": d.pick(None, 0.5), "is_causal": d.pick(None, None, 1), "softcap": d.pick(None, None, 2.0)}
    if d.chance(0.5):
        shape = d.pick((length_q, length_k), (1, 1, length_q, length_k), (batch, heads * group, length_q, length_k))
        if d.chance(0.5):
            mask = d.values("bool", shape) | (np.arange(length_k) == 0)  # no row without a key
        else:
            mask = d.values(dtype, shape)
        inputs.append(d.either(mask))
    if flat:
        attributes.update(q_num_heads=heads * group, kv_num_heads=heads)
    return [d.node(op, inputs, **attributes)]


@covers("RotaryEmbedding", lowest=23)
def rotary(d, op):
    batch, heads, length_, size = d.pick(1, 2), d.pick(1, 2, 3), d.pick(1, 3, 7), d.pick(2, 4, 8)
    dtype = d.type_for(op, allowed=FLOATS)
    flat, turned = d.chance(0.4), d.pick(None, None, 2)
    half = (turned or size) // 2
    x = d.values(dtype, (batch, length_, heads * size) if flat else (batch, heads, length_, size))
    placed = d.chance(0.5)
    table = (9, half) if placed else (batch, length_, half)
    inputs = [d.feed(x), d.either(d.values(dtype, table, "unit")), d.either(d.values(dtype, table, "unit"))]
    if placed:
        inputs.append(d.feed(d.numbers.integers(0, 9, (batch, length_))))
    return [d.node(op, inputs, interleaved=d.pick(None, 1), num_heads=heads if flat or turned else None,
                   rotary_embedding_dim=turned)]
