"""Cases of generate.py: Attention, RotaryEmbedding, GridSample, DeformConv."""
import numpy as np


def add(make):
    attention(make)
    rotary(make)
    sampling(make)


def attention(make):
    def case(name, inputs, opset=23, outputs=1, **attributes):
        make.op(f"attention_{name}", "Attention", inputs, opset=opset, outputs=outputs, **attributes)
    q, kv = (2, 4, 5, 8), (2, 4, 7, 8)
    case("4d", [q, kv, (2, 4, 7, 6)])
    case("3d_causal", [(2, 5, 12), (2, 5, 12), (2, 5, 9)], q_num_heads=3, kv_num_heads=3, is_causal=1)
    case("shared_heads", [(1, 6, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)], scale=0.3)
    case("mask", [q, kv, kv, (5, 7)], opset=24)
    case("mask_bool", [q, kv, kv, lambda m: m.normal(2, 1, 5, 7) > -0.5])
    case("past", [q, kv, kv, None, (2, 4, 3, 8), (2, 4, 3, 8)], outputs=3, is_causal=1)
    case("scores", [q, kv, kv], opset=24, outputs=4, qk_matmul_output_mode=3)
    case("one_key", [(1, 2, 3, 4), (1, 2, 1, 4), (1, 2, 1, 4)])


def rotary(make):
    def tables(*shape):
        return [lambda m: np.cos(m.uniform(-3, 3, *shape)).astype(np.float32),
                lambda m: np.sin(m.uniform(-3, 3, *shape)).astype(np.float32)]
    positions = np.array([[0, 1, 2], [4, 3, 9]], dtype=np.int64)
    make.op("rotaryembedding_4d", "RotaryEmbedding", [(2, 3, 3, 10), *tables(10, 5), positions], opset=23)
    make.op("rotaryembedding_3d", "RotaryEmbedding", [(2, 3, 24), *tables(10, 4), positions], opset=23, num_heads=3)
    make.op("rotaryembedding_interleaved", "RotaryEmbedding", [(2, 3, 3, 10), *tables(2, 3, 5)], opset=23, interleaved=1)


def sampling(make):
    def case(name, x, grid, opset=22, **attributes):
        make.op(f"gridsample_{name}", "GridSample", [x, lambda m: m.uniform(-1.4, 1.4, *grid)], opset=opset, **attributes)
    case("linear", (2, 3, 5, 6), (2, 4, 3, 2))
    case("linear_border", (1, 5, 4, 7), (1, 5, 4, 2), opset=16, mode="bilinear", padding_mode="border", align_corners=1)
    case("cubic", (1, 2, 6, 5), (1, 3, 4, 2), mode="cubic")
    case("cubic_reflection", (1, 2, 6, 5), (1, 3, 4, 2), opset=20, mode="cubic", padding_mode="reflection")
    case("nearest", (1, 17, 5, 4), (1, 3, 5, 2), mode="nearest", padding_mode="reflection", align_corners=1)
    case("linear_3d", (1, 2, 4, 3, 5), (1, 2, 3, 4, 3), padding_mode="reflection")
    make.op("deformconv_plain", "DeformConv", [(1, 3, 6, 7), make.weights(4, 3, 3, 3), (1, 18, 4, 5)], opset=19)
    make.op("deformconv_mask", "DeformConv",
            [(2, 4, 6, 5), make.weights(6, 4, 3, 3), (2, 36, 3, 3), make.weights(6, scale=1),
             lambda m: m.uniform(0, 2, 2, 18, 3, 3)], opset=22, offset_group=2, strides=[2, 2], pads=[1, 1, 1, 1])
    make.op("deformconv_groups", "DeformConv", [(1, 6, 7, 6), make.weights(4, 3, 2, 2), (1, 8, 7, 4)], opset=22, group=2,
            dilations=[2, 2], pads=[1, 0, 1, 0])
