"""Tensors in memory of a device: uploaded once, run on where they lie, fetched when asked; nothing else moves."""
import gc
import pathlib
import threading
import weakref

import numpy as np
import pytest
from onnx import TensorProto, helper

import sparkle

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models" / "upscale2x.onnx"
STILL = {"copies": 0, "host_transfers": 0}


def model(nodes, inputs, outputs, opset=18):
    """inputs and outputs: name: (type, shape)."""
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info(n, *v) for n, v in inputs.items()],
                              [helper.make_tensor_value_info(n, *v) for n, v in outputs.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


F, I = TensorProto.FLOAT, TensorProto.INT64
SUM = model([helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["product"])],
            {"a": (F, ["n", 3]), "b": (F, ["n", 3])}, {"sum": (F, ["n", 3]), "product": (F, ["n", 3])})
RELU = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (F, ["n", 5])}, {"y": (F, ["n", 5])})
RESHAPE = model([helper.make_node("Abs", ["x"], ["t"]), helper.make_node("Reshape", ["t", "shape"], ["y"])],
                {"x": (F, [2, 6]), "shape": (I, [2])}, {"y": (F, ["p", "q"])})


CUDA_MODEL = pathlib.Path(__file__).resolve().parents[2] / "build/release/tests/cuda_model/driver/libcuda_model.so"


@pytest.fixture(scope="module", params=["cpu", "vulkan", "cuda"])
def device(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as settings:
        if request.param == "cuda":  # the functional model of the release build
            if not CUDA_MODEL.exists():
                pytest.skip("the release build has no functional model of CUDA's devices")
            settings.setenv("SPARKLE_CUDA_DRIVER", str(CUDA_MODEL))
            settings.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        if request.param == "vulkan":  # Mesa's software device is quickest to compile for with short vectors
            settings.setenv("VK_LOADER_LAYERS_DISABLE", "~implicit~")
            settings.setenv("LP_NATIVE_VECTOR_WIDTH", "128")
            settings.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        try:
            opened = sparkle.Device(request.param)
        except sparkle.Error as e:
            pytest.skip(str(e))
        yield opened


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def moved(device, since):
    return {what: count - since[what] for what, count in device.traffic().items()}


def test_values_come_and_go(device):
    x = numbers(3, 5, 7)
    t = device.tensor(x)
    assert (t.shape, t.dtype, t.nbytes, t.device) == ((3, 5, 7), "float32", x.nbytes, device)
    assert repr(t) == f"sparkle.DeviceTensor(shape=(3, 5, 7), dtype='float32', device={device.name!r})"
    np.testing.assert_array_equal(t.numpy(), x)
    np.testing.assert_array_equal(device.tensor(x[:, ::-1]).numpy(), x[:, ::-1])
    t.write(x.swapaxes(0, 2).reshape(3, 5, 7))
    np.testing.assert_array_equal(t.numpy(), x.swapaxes(0, 2).reshape(3, 5, 7))
    x[:] = 0
    assert t.numpy().any() and t.numpy() is not t.numpy()
    for array in (np.float32(3), np.zeros((0, 4), np.int8), np.arange(5, dtype=">i4"), np.array([True, False]),
                  np.arange(7, dtype=np.float16), np.arange(3, dtype=np.uint64)):
        got = device.tensor(array).numpy()
        assert got.dtype == array.dtype.newbyteorder("=") and got.shape == array.shape
        np.testing.assert_array_equal(got, array)
    np.testing.assert_array_equal(device.tensor([[1, 2], [3, 4]], "float32").numpy(), np.float32([[1, 2], [3, 4]]))
    place = device.empty((4, 2), np.int32)
    place.write(np.arange(8, dtype=np.int32).reshape(4, 2))
    assert place.numpy()[3, 1] == 7


def test_types_that_numpy_lacks(device):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "int4"):
        x = np.arange(-4, 4).astype(getattr(ml_dtypes, name))
        t = device.tensor(x)
        assert t.dtype == name and t.nbytes == 8 * x.itemsize and t.numpy().dtype == x.dtype
        bits = device.tensor(x.view(np.uint16 if x.itemsize == 2 else np.uint8), name)
        assert t.numpy().tobytes() == bits.numpy().tobytes() == x.tobytes()


def test_runs_where_tensors_lie_and_moves_nothing(device):
    session = sparkle.Session(SUM, device)
    a, b = numbers(4, 3), numbers(4, 3, seed=1)
    given = [device.tensor(a), device.tensor(b)]
    places = [device.empty((4, 3)), device.empty((4, 3))]
    session.run(given, outputs=places)  # plans, and whatever packing moves
    before = device.traffic()
    for _ in range(3):
        assert session.run(given, outputs=places) == places
        made = session.run(dict(zip("ab", given)), outputs="device")
        session.run(given, outputs={"product": places[1], "sum": places[0]})
        again = session.run([made[0], made[1]], outputs="device")  # results as inputs
    assert moved(device, before) == STILL
    for results in (places, made):
        np.testing.assert_array_equal(results[0].numpy(), a + b)
        np.testing.assert_array_equal(results[1].numpy(), a * b)
    assert moved(device, before)["host_transfers"] == 4
    np.testing.assert_array_equal(again[0].numpy(), (a + b) + a * b)
    assert made[0].shape == (4, 3) and made[0].dtype == "float32" and made[0].device is device


def test_a_network_moves_nothing():
    device = sparkle.Device("cpu")
    session = sparkle.Session(MODEL, device)
    image = numbers(1, 3, 9, 12)
    (wanted,) = session.run(image)
    x = device.tensor(image)
    (y,) = session.run(x, outputs="device")
    before = device.traffic()
    session.run(x, outputs=y)
    assert moved(device, before) == STILL
    np.testing.assert_array_equal(y.numpy(), wanted)
    assert session.explain() == session.explain(x) == session.explain(image)  # by the shapes of the last call too
    assert session.plan(x) and session.peak_bytes(x) > 0 and session.report(x)["steps"] and session.report()["steps"]


def test_arrays_and_tensors_mix(device):
    session = sparkle.Session(SUM, device)
    a, b = numbers(2, 3), numbers(2, 3, seed=1)
    wanted = session.run([a, b])
    for inputs in ([device.tensor(a), b], [a, device.tensor(b)], {"a": a.tolist(), "b": device.tensor(b)},
                   [device.tensor(a), device.tensor(b)]):
        results = session.run(inputs)
        assert all(isinstance(r, np.ndarray) for r in results)
        np.testing.assert_array_equal(results, wanted)
    np.testing.assert_array_equal([t.numpy() for t in session.run([a, b], outputs="device")], wanted)


def test_inputs_that_decide_shapes_are_arrays(device):
    session = sparkle.Session(RESHAPE, device)
    x = numbers(2, 6)
    t, shape = device.tensor(x), np.array([3, 4])
    (y,) = session.run([t, shape], outputs="device")
    assert y.shape == (3, 4)
    np.testing.assert_array_equal(y.numpy(), np.abs(x).reshape(3, 4))
    np.testing.assert_array_equal(session.run([t, np.array([12, 1])])[0], np.abs(x).reshape(12, 1))
    with pytest.raises(sparkle.BadInput, match="'shape' decides shapes; its values must be given"):
        session.run([t, device.tensor(shape)])


def test_misuse_is_told_in_a_sentence(device):
    session = sparkle.Session(RELU, device)
    x = device.tensor(numbers(2, 5))
    other = sparkle.Device("reference")
    place = device.empty((2, 5))
    for inputs, outputs, words in [
            (other.tensor(numbers(2, 5)), None, "input 'x' lies on another device than the session's; make it with"),
            (x, other.empty((2, 5)), "place of output 'y' lies on another device"),
            (device.tensor(np.zeros((2, 5))), None, "input 'x' is float32 in the model, float64 was given"),
            (device.tensor(numbers(2, 6)), "device", "Input 'x' has shape nx5 in the model, 2x6 was given"),
            (device.tensor(numbers(5)), "device", "Input 'x' has shape nx5 in the model, 5 was given"),
            (numbers(2, 6), place, "Input 'x' has shape nx5 in the model, 2x6 was given"),
            (x, device.empty((2, 6)), "Output 0 .* 2x5.* its place is f32 2x6"),
            (x, device.empty((2, 5), "int32"), "Output 0 .* its place is i32 2x5"),
            (x, x, "place of output 'y' is an input or another output's place too"),
            (x, [place, place], "The model has 1 output, 2 were given"),
            (x, {"z": place}, "The model has no output 'z'; it has 'y'"),
            (x, {}, "The output 'y' is missing"),
            (x, "gpu", "The model has no output 'gpu'; it has .*names, \"device\", arrays or device tensors"),
            (x, np.zeros((2, 5), np.float32), "place of output 'y' is no device tensor; device.empty makes one"),
            ([x, x], "device", "The model takes 1 input, 2 were given")]:
        with pytest.raises(sparkle.BadInput, match=f"{words}[^\n]*\\.$"):
            session.run(inputs, outputs=outputs)
    both = device.empty((2, 3))
    with pytest.raises(sparkle.BadInput, match="place of output 'product' is an input or another output's place"):
        sparkle.Session(SUM, device).run([numbers(2, 3)] * 2, outputs=[both, both])
    session.run(x, outputs=place)  # and it runs after all that
    np.testing.assert_array_equal(place.numpy(), np.maximum(x.numpy(), 0))


def test_tensors_that_cannot_be(device):
    t = device.tensor(numbers(2, 5))
    for call, words in [
            (lambda: device.tensor([1.0]), "no NumPy array need a dtype"),
            (lambda: device.tensor(np.array(["a"])), "no element type .*; there are float32"),
            (lambda: device.tensor(np.zeros(2, np.complex64)), "no element type dtype\\('complex64'\\)"),
            (lambda: device.tensor(numbers(2), "float64"), "is float64, float32 was given"),
            (lambda: device.tensor("abc", "float32"), "The tensor cannot be made an array of float32"),
            (lambda: device.empty((2,), "no type"), "no element type 'no type'"),
            (lambda: device.empty((2, -1)), "sizes are 0 or more"),
            (lambda: device.empty((1 << 40, 1 << 40)), "fewer than 2\\^62"),
            (lambda: device.empty((1 << 70,)), "fewer than 2\\^62"),
            (lambda: device.empty((1,) * 9), "at most 8 axes"),
            (lambda: t.write(numbers(5, 2)), "is float32 2x5, float32 5x2 was given"),
            (lambda: t.write(np.zeros((2, 5))), "is float32, float64 was given")]:
        with pytest.raises(sparkle.BadInput, match=f"{words}.*\\.$"):
            call()
    with pytest.raises(MemoryError):
        device.empty((1 << 55,))
    with pytest.raises(TypeError, match="its numpy\\(\\) fetches"):
        np.asarray(t)


def test_tensors_of_the_device_before_a_move_are_refused(device):
    session = sparkle.Session(RELU, device)
    x = device.tensor(numbers(2, 5))
    (y,) = session.run(x, outputs="device")
    session.move_to("reference")
    with pytest.raises(sparkle.BadInput, match="input 'x' lies on another device than the session's"):
        session.run(x)
    np.testing.assert_array_equal(session.run(session.device.tensor(x.numpy()))[0], y.numpy())


def test_lifetimes(device):
    x = numbers(2, 5)
    own = sparkle.Device(device.describe()["kind"])
    session = sparkle.Session(RELU, own)
    t = own.tensor(x)
    (y,) = session.run(t, outputs="device")
    del session, own
    gc.collect()
    np.testing.assert_array_equal(y.numpy(), np.maximum(x, 0))  # the tensor outlives session and device
    session = sparkle.Session(RELU, y.device)
    gone = weakref.ref(t)
    del t
    assert gone() is None
    for seed in range(50):  # tensors that end at once, while sessions go on
        part = numbers(3, 5, seed=seed)
        np.testing.assert_array_equal(session.run(y.device.tensor(part), outputs="device")[0].numpy(), np.maximum(part, 0))
    del y
    gc.collect()
    np.testing.assert_array_equal(session.run(x)[0], np.maximum(x, 0))


def test_threads_share_session_and_tensors(device):
    session = sparkle.Session(SUM, device)
    a, b = numbers(4, 3), numbers(4, 3, seed=1)
    shared = device.tensor(a)
    wrong = []

    def work(n):
        other = device.tensor(b + n)
        place = [device.empty((4, 3)), device.empty((4, 3))]
        for _ in range(10):
            session.run([shared, other], outputs=place)
            if not np.array_equal(place[0].numpy(), a + (b + n)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


class Foreign:
    """An array of another library on memory of a device tensor: what DLPack asks of it, and with which stream."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **others):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, **others)


def test_memory_is_shared_by_dlpack(device):
    x = numbers(4, 5)
    t = device.tensor(x)
    if device.name == "vulkan":
        with pytest.raises(BufferError, match="cannot be shared by DLPack; numpy\\(\\) fetches"):
            t.__dlpack__()
        with pytest.raises(sparkle.BadInput, match="shares memory of none"):
            device.from_dlpack(x)
        return
    again = device.from_dlpack(Foreign(t))
    assert (again.shape, again.dtype, again.device) == (t.shape, t.dtype, device)
    np.testing.assert_array_equal(again.numpy(), x)
    again.write(2 * x)
    np.testing.assert_array_equal(t.numpy(), 2 * x)
    del t
    gc.collect()
    np.testing.assert_array_equal(again.numpy(), 2 * x)
    with pytest.raises(BufferError, match="does not copy"):
        again.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="no type for elements of int4"):
        device.empty((4,), "int4").__dlpack__()


def test_arrays_of_the_host_are_the_cpus_tensors():
    device = sparkle.Device("cpu")
    x = numbers(4, 5)
    t = device.from_dlpack(x)
    x[:] = 1
    np.testing.assert_array_equal(t.numpy(), x)
    y = np.from_dlpack(t)
    t.write(np.full((4, 5), 3, np.float32))
    assert (x == 3).all() and (y == 3).all()
    session = sparkle.Session(RELU, device)
    (z,) = session.run(device.from_dlpack(-x), outputs="device")
    np.testing.assert_array_equal(np.from_dlpack(z), np.zeros((4, 5), np.float32))
    with pytest.raises(sparkle.BadInput, match="no dense row-major array"):
        device.from_dlpack(x[:, ::2])
    with pytest.raises(sparkle.BadInput, match="no device that DLPack knows"):
        device.from_dlpack([1.0])


def test_arrays_of_a_cuda_device_run_where_they_lie(device):
    if device.name != "cuda":
        pytest.skip("for CUDA devices")
    session = sparkle.Session(SUM, device)
    a, b = numbers(4, 3), numbers(4, 3, seed=1)
    given = [Foreign(device.tensor(a)), Foreign(device.tensor(b))]
    places = [Foreign(device.empty((4, 3))), Foreign(device.empty((4, 3)))]
    session.run(given, outputs=places)
    before = device.traffic()
    assert session.run(given, outputs=places) == places
    assert moved(device, before) == STILL
    np.testing.assert_array_equal(places[0].tensor.numpy(), a + b)
    np.testing.assert_array_equal(places[1].tensor.numpy(), a * b)
    assert given[0].streams == [1, 1]  # the default stream, which ours then waits for
    np.testing.assert_array_equal(session.run(given)[0], a + b)
    device.follow_stream(0)
    with pytest.raises(sparkle.BadInput, match="another device"):
        sparkle.Session(SUM, "cpu").run(given)
    with pytest.raises(sparkle.BadInput, match="CUDA|of DLPack's device|DLPack's device"):
        device.from_dlpack(a)


def test_compiled_files_hold_what_the_host_does(device, tmp_path):
    """DeformConv of doubles has no kernel on GPUs."""
    source, file = tmp_path / "moved.onnx", tmp_path / "moved.sparkle"
    double = TensorProto.DOUBLE
    graph = helper.make_graph([helper.make_node("DeformConv", ["x", "w", "offsets"], ["y"])], "moved",
                              [helper.make_tensor_value_info(name, double, [1, 2, 5, 7]) for name in ("x", "offsets")],
                              [helper.make_tensor_value_info("y", double, [1, 3, 5, 7])],
                              [helper.make_tensor("w", double, [3, 2, 1, 1], [1, 2, 3, 4, 5, 6])])
    source.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8).SerializeToString())
    x = [numbers(1, 2, 5, 7).astype(np.float64), numbers(1, 2, 5, 7).astype(np.float64) / 4]
    live = sparkle.Session(source, device)
    want = live.run(x)[0]
    sparkle.compile(source, file, device)
    opened = sparkle.Session(file, device)
    np.testing.assert_array_equal(opened.run(x)[0], want)
    assert opened.events == live.events
    if device.name == "cpu":
        return
    layer = [e.layer for e in live.events if e.reason == "no_kernel"][0]
    with pytest.raises(sparkle.NotServed, match=layer):
        sparkle.Session(file, device, fallback="forbid").run(x)
    with pytest.raises(sparkle.NotServed):
        sparkle.compile(source, tmp_path / "other.sparkle", device, fallback="forbid")
    assert not (tmp_path / "other.sparkle").exists()
