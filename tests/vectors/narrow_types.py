"""Cases of generate.py in the element types below 16 bits: Cast with its attributes, moves of elements, QuantizeLinear and
DequantizeLinear. onnxruntime lacks most of them and is not asked."""
import ml_dtypes
import numpy as np
from generate import Const, ints
from onnx import helper

TYPES = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
         ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2]
BITS = {"float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
EIGHT = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}


def number(dtype):
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def name_of(dtype):
    return np.dtype(dtype).name.replace("float8_e8m0fnu", "e8m0").replace("float4_e2m1fn", "e2m1").removeprefix("float8_")


def drawn(dtype, *shape, finite=False):
    """Any of the type's codes."""
    def values(m):
        codes = m.rng.integers(0, 1 << BITS.get(np.dtype(dtype).name, 8), shape).astype(np.uint8).view(dtype)
        return np.where(np.isfinite(codes.astype(np.float32)), codes, np.ones_like(codes)) if finite else codes
    return values


def add(make):
    def op(case, *arguments, **attributes):
        make.op(f"narrow_{case}", *arguments, opset=25, **attributes)
        make.cases[-1].exact, make.cases[-1].ir_version = True, 13

    for dtype in TYPES:
        t, small = name_of(dtype), np.dtype(dtype).name in BITS
        whole = small and t != "e2m1"
        low, high = (0, 3.99) if t.startswith("uint") else (-2, 1.99) if whole else (0.001, 900) if t == "e8m0" else (-900, 900)
        reals = lambda m, low=low, high=high: m.uniform(low, high, 3, 67)
        op(f"cast_float_to_{t}", "Cast", [reals], to=number(dtype))
        op(f"cast_{t}_to_float", "Cast", [drawn(dtype, 7, 67)], to=1)
        op(f"cast_{t}_to_float16", "Cast", [drawn(dtype, 7, 67)], to=10)
        op(f"castlike_{t}", "CastLike", [lambda m, f=reals: f(m).astype(np.float16), drawn(dtype, 1)])
        op(f"transpose_{t}", "Transpose", [drawn(dtype, 3, 5, 7)], perm=[2, 0, 1])
        op(f"reshape_{t}", "Reshape", [drawn(dtype, 3, 5, 7), ints(5, 21)])
        if whole:
            op(f"cast_int32_to_{t}", "Cast", [lambda m: m.rng.integers(-99, 99, (3, 67)).astype(np.int32)], to=number(dtype))
            op(f"cast_{t}_to_int64", "Cast", [drawn(dtype, 3, 67)], to=7)
    # Beyond the largest number.
    for dtype in TYPES[:4]:
        t = name_of(dtype)
        far = lambda m: (m.normal(3, 67) * 1e5).astype(np.float32)
        op(f"cast_saturated_{t}", "Cast", [far], to=number(dtype))
        op(f"cast_beyond_{t}", "Cast", [far], to=number(dtype), saturate=0)
    for rounding in ("up", "down", "nearest"):
        op(f"cast_e8m0_{rounding}", "Cast", [lambda m: m.uniform(0.01, 99, 3, 67)], to=number(TYPES[4]), round_mode=rounding)
    quantized(op)


def quantized(op):
    real = lambda *v: Const(np.array(v if len(v) > 1 else v[0], dtype=np.float32))
    point = lambda dtype, *v: Const(np.array(v if len(v) > 1 else v[0], dtype=np.float32).astype(dtype))
    x = lambda *s: (lambda m: m.uniform(-9, 9, *s))
    scales = lambda *s: (lambda m: Const(m.uniform(0.5, 3, *s)))
    for dtype in TYPES:
        t = name_of(dtype)
        if t == "e8m0":
            continue
        zero = point(dtype, 1) if t.startswith(("int", "uint")) else point(dtype, 0)
        op(f"quantize_{t}", "QuantizeLinear", [x(3, 67), real(1.7), zero])
        op(f"quantize_axis_{t}", "QuantizeLinear", [x(2, 3, 5), real(0.9, 1.7, 3.1), Const(np.repeat(zero.values, 3))], axis=1)
        op(f"dequantize_{t}", "DequantizeLinear", [drawn(dtype, 3, 67, finite=True), real(1.7), zero])
        op(f"dequantize_blocks_{t}", "DequantizeLinear", [drawn(dtype, 5, 12, finite=True), scales(5, 3)], axis=1, block_size=4)
    op("quantize_beyond_e4m3fn", "QuantizeLinear", [lambda m: m.uniform(-900, 900, 3, 67), real(1), point(TYPES[0], 0)],
       saturate=0)
    op("quantize_output_int4", "QuantizeLinear", [x(6, 8), scales(3, 8)], axis=0, block_size=2, output_dtype=number(TYPES[6]))
    half = lambda *s: (lambda m: Const(m.uniform(0.5, 3, *s).astype(np.float16)))
    op("dequantize_half_int4", "DequantizeLinear", [drawn(TYPES[6], 4, 6), half(4)], axis=0)
    op("dequantize_half_e4m3fn", "DequantizeLinear", [drawn(TYPES[0], 4, 6, finite=True), half(4)], axis=0)
