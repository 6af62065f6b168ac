"""How arrays come and go: bfloat16, DLPack without copies, the interpreter lock, the stubs beside the code."""
import ast
import ctypes
import pathlib
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

import sparkle
import sparkle._core

ml_dtypes = pytest.importorskip("ml_dtypes")
MODEL = pathlib.Path(__file__).resolve().parents[2] / "models" / "upscale2x.onnx"


def one_node(op, inputs, output, opset=18, **attributes):
    """A model of one node; inputs and output are (type, shape)."""
    values = [helper.make_tensor_value_info(f"x{i}", *value) for i, value in enumerate(inputs)]
    node = helper.make_node(op, [v.name for v in values], ["y"], **attributes)
    graph = helper.make_graph([node], "one", values, [helper.make_tensor_value_info("y", *output)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


class Foreign:
    """An array of another library: DLPack and nothing else."""

    def __init__(self, array, device=None):
        self._array = array
        self._device = device or array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._device


class DLTensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h, of an element type that NumPy does not have."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ForeignBfloat16:
    """bfloat16 of another library; keeps its memory alive itself."""

    def __init__(self, bits):
        sizes = ctypes.c_int64 * bits.ndim
        self._bits, shape, strides = bits, sizes(*bits.shape), sizes(*(s // bits.itemsize for s in bits.strides))
        self._tensor = DLTensor(bits.ctypes.data, 1, 0, bits.ndim, 4, 16, 1, shape, strides, 0, None, None)

    def __dlpack__(self, **options):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return 1, 0


NARROW = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4",
          "uint4", "int2", "uint2")
BITS = {"float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def cast_session(source, to, shape, **attributes):
    numbers = [int(helper.np_dtype_to_tensor_dtype(np.dtype(t))) for t in (source, to)]
    model = helper.make_model(helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=numbers[1], **attributes)], "cast",
        [helper.make_tensor_value_info("x", numbers[0], shape)], [helper.make_tensor_value_info("y", numbers[1], shape)]),
        opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    return sparkle.Session(model.SerializeToString())


def expect_equal(got, want, floats=np.float32):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(floats), want.astype(floats))  # NaN equals NaN


@pytest.mark.parametrize("name", NARROW)
def test_every_code_of_the_narrow_types_is_what_ml_dtypes_says(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(1 << BITS.get(name, 8)).astype(np.uint8)
    session = cast_session(dtype, np.float32, codes.shape)
    assert session.inputs[0].dtype == name
    floats = session.run([codes.view(dtype)])[0]
    expect_equal(floats, codes.view(dtype).astype(np.float32))
    np.testing.assert_array_equal(session.run([codes])[0], floats)  # the bits
    session.explain()
    with pytest.raises(ValueError, match="float32 was given"):
        session.run([floats])
    back = cast_session(np.float32, dtype, codes.shape, saturate=int("e8m0" in name)).run([floats])[0]
    expect_equal(back, codes.view(dtype))
    numbers = ~np.isnan(floats)
    np.testing.assert_array_equal(back.view(np.uint8)[numbers], codes[numbers])


@pytest.mark.parametrize("name", NARROW[:4])
def test_floats_round_to_8_bits_as_in_ml_dtypes(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    random = np.random.default_rng(3)
    x = np.concatenate([(np.exp2(random.uniform(-20, 18, 4000)) * random.choice([-1, 1], 4000)).astype(np.float32),
                        np.float32([0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 480, 57344, 61440, 240, 248])])
    expect_equal(cast_session(np.float32, dtype, x.shape, saturate=0).run([x])[0], x.astype(dtype))
    info = ml_dtypes.finfo(dtype)
    bounded = np.clip(x, np.float32(info.min), np.float32(info.max)).astype(dtype)
    expect_equal(cast_session(np.float32, dtype, x.shape).run([x])[0], bounded)
    double = x[:4000].astype(np.float64) * 1.01
    expect_equal(cast_session(np.float64, dtype, double.shape, saturate=0).run([double])[0], double.astype(dtype))


@pytest.mark.parametrize("name", NARROW[5:])
def test_floats_become_4_and_2_bits_as_in_ml_dtypes(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    x = np.linspace(-9, 9, 1201).astype(np.float32)
    expect_equal(cast_session(np.float32, dtype, x.shape).run([x])[0], x.astype(dtype))


def test_bfloat16_comes_and_goes():
    shape = (2, 3)
    session = sparkle.Session(one_node("Add", [(TensorProto.BFLOAT16, shape)] * 2, (TensorProto.BFLOAT16, shape)))
    assert session.inputs[0].dtype == "bfloat16"
    x = np.arange(6, dtype=np.float32).reshape(shape).astype(ml_dtypes.bfloat16)
    y = session.run([x, x])[0]
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), 2 * np.arange(6).reshape(shape))
    np.testing.assert_array_equal(session.run([x.view(np.uint16), x])[0], y)  # the bits
    np.testing.assert_array_equal(session.run([x[:, ::-1], x[:, ::-1]])[0], y[:, ::-1])
    session.explain()  # for the shapes of the last call
    assert session.report()["steps"]
    with pytest.raises(ValueError, match="float16 was given"):
        session.run([x.astype(np.float16), x])


def test_bfloat16_is_no_other_type():
    session = sparkle.Session(one_node("Abs", [(TensorProto.UINT16, (4,))], (TensorProto.UINT16, (4,))))
    with pytest.raises(ValueError, match="bfloat16 was given"):
        session.run(np.zeros(4, ml_dtypes.bfloat16))
    assert sparkle.Session(MODEL).inputs[0].dtype == "float32"
    with pytest.raises(ValueError, match="bfloat16 was given"):
        sparkle.Session(MODEL).run(np.zeros((1, 3, 4, 4), ml_dtypes.bfloat16))


def test_bfloat16_of_other_libraries():
    session = sparkle.Session(one_node("Abs", [(TensorProto.BFLOAT16, (2, 3))], (TensorProto.BFLOAT16, (2, 3))))
    assert session.peak_bytes() > 0  # before any run
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16).view(np.uint16)
    np.testing.assert_array_equal(session.run(ForeignBfloat16(x))[0].astype(np.float32), [[3, 2, 1], [0, 1, 2]])
    with pytest.raises(sparkle.BadInput, match="input 'x0' is no dense row-major array"):
        session.run(ForeignBfloat16(x[:, ::-1]))
    with pytest.raises(sparkle.BadInput, match="input 'image' is float32 in the model; .* cannot be shared by DLPack"):
        sparkle.Session(MODEL).run(ForeignBfloat16(x))


def test_dlpack_of_any_strides():
    session = sparkle.Session(MODEL)
    x = np.random.default_rng(1).random((1, 3, 6, 4), dtype=np.float32)
    y = session.run(x)[0]
    np.testing.assert_array_equal(session.run(Foreign(np.asfortranarray(x)))[0], y)
    np.testing.assert_array_equal(session.run(Foreign(x[:, :, ::-1]))[0], session.run(x[:, :, ::-1].copy())[0])
    assert session.explain()  # for the shapes of the last call
    with pytest.raises(sparkle.BadInput, match="input 'image' is float32 in the model, float64 was given"):
        session.run(Foreign(x.astype(np.float64)))


def test_dlpack_elsewhere_is_refused():
    x = np.zeros((1, 3, 4, 4), np.float32)
    with pytest.raises(sparkle.BadInput, match="input 'image' lies in memory of another device"):
        sparkle.Session(MODEL).run(Foreign(x, device=(2, 0)))  # a GPU
    sparkle.Session(MODEL).run(Foreign(x, device=(3, 0)))  # host memory that a GPU reads too


def test_outputs_are_views_of_one_memory():
    y = sparkle.Session(MODEL).run(np.ones((1, 3, 4, 6), np.float32))[0]
    assert np.shares_memory(np.from_dlpack(y), y)


def peak_bytes():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


@pytest.mark.parametrize("given", [lambda x: x, Foreign], ids=["numpy", "dlpack"])
def test_inputs_are_not_copied(given):
    size = 16 << 20
    session = sparkle.Session(one_node("ReduceMax", [(TensorProto.FLOAT, (1, size))], (TensorProto.FLOAT, (1, 1)), keepdims=1))
    x = np.arange(size, dtype=np.float32).reshape(1, size)
    session.run(given(x))  # whatever a plan takes is there now
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = peak_bytes()
    except (OSError, StopIteration):
        pytest.skip("this system does not tell a process its peak of memory")
    assert session.run(given(x))[0].item() == size - 1
    assert peak_bytes() - before < x.nbytes // 2


def test_the_interpreter_goes_on_while_it_runs():
    session = sparkle.Session(MODEL, device=sparkle.Device("reference"))
    x = np.ones((1, 3, 24, 24), np.float32)
    session.run(x)
    rounds = 3
    done = threading.Event()
    ticks = [0]

    def count():
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    for _ in range(rounds):
        session.run(x)
    seconds = time.perf_counter() - begin
    done.set()
    thread.join()
    # With the lock held the other thread could move between two runs only.
    assert ticks[0] > 2 * rounds, f"{ticks[0]} ticks in {rounds} runs of {seconds:.2f} s"


def test_stubs_name_what_is_there():
    stub = ast.parse((pathlib.Path(sparkle.__file__).parent / "_core.pyi").read_text())
    for entry in stub.body:
        if isinstance(entry, ast.FunctionDef):
            assert callable(getattr(sparkle._core, entry.name))
        if not isinstance(entry, ast.ClassDef):
            continue
        there = getattr(sparkle._core, entry.name)
        functions = [f for f in entry.body if isinstance(f, ast.FunctionDef)]
        named = {f.name for f in functions}
        fields = {f.target.id for f in entry.body if isinstance(f, ast.AnnAssign)}
        own = {name for name, value in vars(there).items() if callable(value) and not name.startswith("_")}
        if entry.name == "CoreError":
            continue
        assert own == named - {"__init__"}, entry.name
        assert fields == {name for name, value in vars(there).items() if isinstance(value, property)}, entry.name
        for function in functions:
            signatures = [signature for signature, *_ in vars(there)[function.name].__nb_signature__]
            assert len(signatures) == sum(f.name == function.name for f in functions), signatures  # overloads
            core = [ast.parse(signature + ": ...").body[0] for signature in signatures]
            assert [a.arg for a in function.args.args] in [[a.arg for a in c.args.args] for c in core], signatures
    assert (pathlib.Path(sparkle.__file__).parent / "py.typed").exists()
    for kind in (sparkle.Session, sparkle.Device, sparkle.DeviceTensor, sparkle.InferenceSession):
        for name, function in vars(kind).items():
            if callable(function) and not name.startswith("_"):
                assert "return" in function.__annotations__, f"{kind.__name__}.{name} says no type"
