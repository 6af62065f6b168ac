"""The names that onnxruntime has, in sparkle.ort: what is lacking stands here with a reason."""
import inspect
import pathlib
import pickle

import numpy as np
import pytest

import sparkle
import sparkle.ort as ort
from sparkle.ort.capi import _pybind_state
from sparkle.ort.capi import onnxruntime_pybind11_state as state

MODEL = pathlib.Path(__file__).resolve().parents[3] / "models" / "upscale2x.onnx"
ADAPTERS = "weights of adapters that are changed between runs: Sparkle packs weights when it opens a model"
COMPILE = "sparkle.compile writes a plan with its weights"
PLUGINS = "libraries of execution providers, and devices as those list them: devices here are providers, or sparkle.devices()"
SPARSE = "no operator that Sparkle has takes a sparse tensor"
WEIGHTS = "weights that are not in the model's file: an onnx.ModelProto that holds them can be opened"
GRAPHS = "launches recorded once are Sparkle's own matter"
TUNING = "sparkle tune measures and keeps choices"
TESTS = "what that engine's own tests and tools ask of it"
# object -> name -> why sparkle.ort has it not
LACKING = {
    "module": {
        **dict.fromkeys(("AdapterFormat", "LoraAdapter"), ADAPTERS),
        **dict.fromkeys(("ModelCompiler", "OrtCompileApiFlags", "OrtEpContextData", "OrtEpContextDataBuffer"), COMPILE),
        **dict.fromkeys(("OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpDevice", "OrtExecutionProviderDevicePolicy",
                         "OrtHardwareDevice", "OrtSyncStream", "get_ep_devices", "register_execution_provider_library",
                         "unregister_execution_provider_library"), PLUGINS),
        **dict.fromkeys(("OrtSparseFormat", "SparseTensor"), SPARSE), "OrtExternalInitializerInfo": WEIGHTS},
    "InferenceSession": {
        **dict.fromkeys(("create_ortvalue_from_shape_and_type", "get_input_epdevices", "get_provider_graph_assignment_info",
                         "set_ep_dynamic_options"), PLUGINS),
        "release_captured_graph": GRAPHS, "run_with_ortvaluevector": "run_with_iobinding writes into values that are there",
        "set_tuning_results": TUNING},
    "SessionOptions": {
        **dict.fromkeys(("add_external_initializers", "add_external_initializers_from_files_in_memory", "add_initializer"),
                        WEIGHTS),
        **dict.fromkeys(("add_provider_for_devices", "set_provider_selection_policy", "set_provider_selection_policy_delegate"),
                        PLUGINS),
        **dict.fromkeys(("clear_ep_context_data_read_func", "set_ep_context_data_read_func"), COMPILE),
        "set_load_cancellation_flag": "opening a model cannot be cancelled"},
    "RunOptions": {"add_active_adapter": ADAPTERS},
    "OrtValue": dict.fromkeys(("as_sparse_tensor", "ort_value_from_sparse_tensor"), SPARSE),
    "state": {
        **dict.fromkeys(("ArenaExtendStrategy", "OrtCompiledModelCompatibility", "OrtDeviceEpIncompatibilityReason",
                         "OrtValueVector", "SessionObjectInitializer", "SparseBlockSparseView", "SparseCooView",
                         "SparseCsrView", "get_all_operator_schema", "get_all_opkernel_def",
                         "get_compatibility_info_from_model",
                         "get_compatibility_info_from_model_bytes", "get_default_session_options",
                         "get_hardware_device_ep_incompatibility_details", "get_hardware_devices",
                         "get_model_compatibility_for_ep_devices", "get_registered_ep_kernel_defs", "get_session_initializer",
                         "is_dlpack_uint8_tensor", "kNextPowerOfTwo", "kSameAsRequested", "pack_fp4_weights_for_cuda_moe_gemm",
                         "quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits", "quantize_matmul_bnb4",
                         "quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits", "DeviceReset"), TESTS)},
}


def public(of):
    return {name for name in dir(of) if not name.startswith("_")
            and not (inspect.ismodule(getattr(of, name, None)) and name != "capi")}


def test_names_of_onnxruntime_are_here():
    theirs = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(MODEL)
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros(1, np.float32))
    pairs = {"module": (theirs, ort), "InferenceSession": (theirs.InferenceSession, session),
             "SessionOptions": (theirs.SessionOptions, ort.SessionOptions()),
             "RunOptions": (theirs.RunOptions, ort.RunOptions()),
             "OrtValue": (theirs.OrtValue, value), "IOBinding": (theirs.IOBinding, session.io_binding()),
             "ModelMetadata": (theirs.ModelMetadata, session.get_modelmeta()),
             "NodeArg": (theirs.NodeArg, session.get_inputs()[0]),
             "OrtDevice": (theirs.OrtDevice, ort.OrtDevice), "OrtArenaCfg": (theirs.OrtArenaCfg, ort.OrtArenaCfg()),
             "OrtMemoryInfo": (theirs.OrtMemoryInfo, session.get_input_memory_infos()[0]),
             "state": (theirs.capi.onnxruntime_pybind11_state, state)}
    for kind in ("ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType", "OrtDeviceMemoryType",
                 "OrtDeviceVendorId", "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfoDeviceType"):
        pairs[kind] = (getattr(theirs, kind), getattr(ort, kind))
        for name, member in getattr(theirs, kind).__members__.items():
            assert int(getattr(getattr(ort, kind), name)) == int(member), (kind, name)
    lacking = {}
    for name, (given, ours) in pairs.items():
        without = {n for n in public(given) if not hasattr(ours, n)} - {"name", "value"} - set(LACKING.get(name, ()))
        if name == "state":
            without -= set(LACKING["module"])
        lacking[name] = sorted(without)
    assert lacking == {name: [] for name in lacking}
    there = {name: [n for n in names if hasattr(pairs[name][1], n)] for name, names in LACKING.items()}
    assert there == {name: [] for name in there}, "no longer lacking"


def test_exceptions_are_onnxruntimes_and_ours(tmp_path):
    from sparkle.ort.capi.onnxruntime_pybind11_state import (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile,
                                                             NotImplemented, RuntimeException)
    onnx = pytest.importorskip("onnx")
    assert ort.capi.onnxruntime_pybind11_state.Fail is Fail and _pybind_state.Fail is Fail
    kinds = {Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented, RuntimeException}

    def one(kind, operator, domain="", inputs=("x",)):
        info = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in "xy"]
        graph = onnx.helper.make_graph([onnx.helper.make_node(operator, inputs, ["y"], domain=domain)], "g", info[:1], info[1:])
        opsets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid("ours", 1)]
        return lambda: ort.InferenceSession(onnx.helper.make_model(graph, opset_imports=opsets).SerializeToString())

    session, x = ort.InferenceSession(MODEL), np.zeros((1, 3, 4, 4), np.float32)
    for call, theirs, ours in (
            (lambda: session.run(None, {"nobody": x}), InvalidArgument, sparkle.BadInput),
            (lambda: session.run(None, {}), InvalidArgument, ValueError),
            (lambda: session.run(None, None), InvalidArgument, sparkle.BadInput),
            (lambda: session.run(None, {"image": x.astype(np.float64)}), InvalidArgument, sparkle.BadInput),
            (lambda: session.run(["nobody"], {"image": x}), InvalidArgument, sparkle.BadInput),
            (lambda: session.run_with_ort_values(None, {"image": ort.OrtValue.ortvalue_from_numpy(x[0])}), InvalidArgument,
             sparkle.BadInput),
            (lambda: session.io_binding().bind_output("nobody"), InvalidArgument, sparkle.BadInput),
            (lambda: ort.InferenceSession(tmp_path / "none.onnx"), NoSuchFile, sparkle.FileUnreadable),
            (lambda: ort.InferenceSession(tmp_path / "none.onnx"), NoSuchFile, OSError),
            (lambda: ort.InferenceSession(b"no model at all"), InvalidProtobuf, sparkle.BadInput),
            (one(InvalidGraph, "Add", inputs=("x",)), InvalidGraph, sparkle.BadInput),
            (one(NotImplemented, "Foo", "ours"), NotImplemented, sparkle.NotServed),
            (lambda: ort.InferenceSession(MODEL, providers=["none"], enable_fallback=0), InvalidArgument, sparkle.BadInput)):
        try:
            call()
        except theirs as e:
            error = e
        assert isinstance(error, (ours, sparkle.Error)) and isinstance(error, ours) and error.code
        assert type(error).__name__ == theirs.__name__ and not isinstance(error, tuple(kinds - {theirs}))
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and again.code == error.code
        del error
    with pytest.raises(sparkle.BadInput) as told:  # where onnxruntime's interface has no part
        sparkle.Session(MODEL).run({})
    assert type(told.value) is sparkle.BadInput
    from sparkle._core import CoreError
    from sparkle.ort._errors import theirs_too
    for code, theirs in (("out_of_memory", RuntimeException), ("device_lost", state.EPFail), ("internal", Fail)):
        with pytest.raises(theirs) as told, theirs_too():
            from sparkle._errors import translated
            with translated():
                raise CoreError(code, "A sentence.")
        assert isinstance(told.value, sparkle.Error) and told.value.code == code


def test_values_and_devices():
    theirs = pytest.importorskip("onnxruntime")
    for dtype in ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                  "bool"):
        array = np.ones((2, 3), dtype)
        given, ours = theirs.OrtValue.ortvalue_from_numpy(array), ort.OrtValue.ortvalue_from_numpy(array)
        for method in ("element_type", "data_type", "shape", "device_name", "is_tensor", "is_tensor_sequence",
                       "is_sparse_tensor", "has_value", "tensor_size_in_bytes", "data_ptr"):
            assert getattr(ours, method)() == getattr(given, method)(), (dtype, method)
        assert ort.OrtValue.ortvalue_from_shape_and_type([2], ours.element_type()).data_type() == ours.data_type()
    with pytest.raises(sparkle.BadInput, match="There is no element type"):
        ort.OrtValue.ortvalue_from_numpy(np.array(["a", "bc"]))
    assert ort.OrtValue.ortvalue_from_numpy(np.array(3.0)).shape() == []
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert value.data_ptr() == bits.ctypes.data
    with pytest.raises(state.InvalidArgument, match="Elements of float32 have 4 bytes, those of uint16 were given"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 1)
    with pytest.raises(sparkle.BadInput, match="ONNX's element type 8 here"):
        ort.OrtValue.ortvalue_from_shape_and_type([2], 8)
    source = np.arange(3, dtype=np.float32)
    shared = ort.OrtValue.from_dlpack(source)
    assert shared.data_ptr() == source.ctypes.data and ort.OrtValue.from_dlpack(shared).numpy() is shared.numpy()
    place = ort.OrtValue.ortvalue_from_shape_and_type([3], np.float32)
    ort.copy_tensors([shared], [place])
    np.testing.assert_array_equal(np.asarray(place), source)
    for name in ("cpu", "cuda", "gpu", "npu", "dml"):
        given, ours = theirs.OrtDevice.make(name, 1), ort.OrtDevice.make(name, 1)
        for method in ("device_type", "device_id", "device_vendor_id", "device_mem_type"):
            assert getattr(ours, method)() == int(getattr(given, method)()), (name, method)
    assert ort.OrtDevice(ort.OrtDevice.cuda(), 0, 1).device_id() == 1 and ort.OrtDevice.cpu() == 0
    with pytest.raises(sparkle.BadInput, match="no device type 'toaster'; there are cpu, cuda"):
        ort.OrtDevice.make("toaster", 0)
    kinds = (ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, ort.OrtMemType.DEFAULT)
    info = ort.OrtMemoryInfo("Cpu", kinds[0], 0, kinds[1])
    assert (info.name, info.allocator_type, info.device_id, info.mem_type) == ("Cpu", kinds[0], 0, kinds[1])
    with pytest.raises(sparkle.BadInput, match="no option 'most'"):
        ort.OrtArenaCfg({"most": 1})


def test_what_changes_nothing_takes_its_arguments(capsys):
    ort.preload_dlls()
    ort.preload_dlls(cuda=True, cudnn=False, msvc=False, directory="")
    ort.disable_telemetry_events()
    ort.enable_telemetry_events()
    ort.print_debug_info()
    assert "Sparkle" in capsys.readouterr().out and not ort.has_collective_ops() and ort.version == ort.__version__
    session = ort.InferenceSession(MODEL)
    assert session.get_profiling_start_time_ns() > 0 and session.get_tuning_results() == []
