"""onnxruntime's interface, so that a program changes engines by changing an import:

    import sparkle.ort as ort
    session = ort.InferenceSession("model.onnx", providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    session.run(None, {session.get_inputs()[0].name: image})

Of the providers that a program lists the first whose device is here runs the model: CUDA's and TensorRT's are "cuda",
DirectML's and WebGPU's "vulkan", those of CPUs "cpu"; a warning names what was passed over. Options that change results or
files and are not followed are warned of once.
"""
import os
import threading
import warnings
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from sparkle._core import version as _version
from sparkle._device import Device, devices
from sparkle._errors import BadInput, Error
from sparkle._model_meta import ModelMetadata, model_metadata
from sparkle._ort_options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions, warn_once
from sparkle._ort_values import IOBinding, OrtValue, tensor_type
from sparkle._session import Session

__version__ = _version()
__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata",
           "NodeArg", "OrtValue", "RunOptions", "SessionOptions", "get_all_providers", "get_available_providers", "get_device",
           "get_version_string", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed"]

_CPU = "CPUExecutionProvider"
# Sparkle's device of each provider.
_DEVICES = {"TensorrtExecutionProvider": "cuda", "NvTensorRTRTXExecutionProvider": "cuda", "CUDAExecutionProvider": "cuda",
            "DmlExecutionProvider": "vulkan", "WebGpuExecutionProvider": "vulkan", "VulkanExecutionProvider": "vulkan",
            "OpenVINOExecutionProvider": "cpu", "DnnlExecutionProvider": "cpu", "XnnpackExecutionProvider": "cpu", _CPU: "cpu"}


def get_all_providers() -> list:
    """Names of onnxruntime's providers for which Sparkle has a kind of device."""
    return list(_DEVICES)


def get_available_providers() -> list:
    """Those whose devices are here."""
    here = {d.name.split(":")[0] for d in devices() if not d.unusable}
    return [p for p, device in _DEVICES.items()
            if device in here and p in ("CUDAExecutionProvider", "VulkanExecutionProvider", _CPU)]


def get_device() -> str:
    """The word "GPU" where one is here, else "CPU"."""
    return "GPU" if len(get_available_providers()) > 1 else "CPU"


def get_version_string() -> str:
    """Sparkle's version."""
    return __version__


def set_default_logger_severity(level: int) -> None:
    """3 (errors) and above silence what Sparkle warns of, which goes to the logger "sparkle"."""
    import logging
    logging.getLogger("sparkle").setLevel([logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR,
                                           logging.CRITICAL][min(max(int(level), 0), 4)])


def set_default_logger_verbosity(level: int) -> None:
    """Nothing here is more verbose."""


def set_seed(seed: int) -> None:
    """Nothing here is random."""


class NodeArg:
    """``name``, ``shape`` (names or None where a size is open) and ``type`` ("tensor(float)")."""

    def __init__(self, info: Any) -> None:
        self.name = info.name
        self.shape = None if info.shape is None else list(info.shape)
        self.type = tensor_type(info.dtype)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class InferenceSession:
    """A model as onnxruntime opens it: a path, the bytes of a file or an onnx.ModelProto, with ``sess_options``, and
    ``providers`` whose first that is here runs it; of ``provider_options`` the ``device_id`` counts. Errors: those of
    ``sparkle.Session``."""

    def __init__(self, path_or_bytes: Union[str, bytes, os.PathLike], sess_options: Optional[SessionOptions] = None,
                 providers: Optional[Sequence[Any]] = None, provider_options: Optional[Sequence[Mapping]] = None,
                 **others: Any) -> None:
        for name, value in others.items():
            if value:
                warn_once(f"InferenceSession's {name} is not followed.")
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._model = path_or_bytes
        if self._options.log_severity_level >= 0:
            set_default_logger_severity(self._options.log_severity_level)
        self._session = Session(path_or_bytes, self._device_of(providers, provider_options))

    def _device_of(self, providers: Optional[Sequence[Any]], options: Optional[Sequence[Mapping]]) -> Device:
        """The first device that a provider stands for and that is here."""
        pairs = [(p, {}) if isinstance(p, str) else (p[0], dict(p[1])) for p in providers or [_CPU]]
        if options and len(options) == len(pairs):
            pairs = [(name, {**own, **given}) for (name, own), given in zip(pairs, options)]
        threads, passed_over = self._options.intra_op_num_threads, []
        for name, given in pairs:
            if name not in _DEVICES:
                passed_over.append(f"'{name}'")
                continue
            kind = _DEVICES[name]
            number = given.get("device_id")
            try:
                device = Device(kind if kind == "cpu" or number is None else f"{kind}:{int(number)}", threads)
            except Error as e:
                passed_over.append(f"'{name}' ({str(e).splitlines()[0].rstrip('.')})")
                continue
            self._provider = name
            if passed_over:
                warnings.warn(f"Sparkle has no provider {', '.join(passed_over)} here; {name} runs the model.", stacklevel=3)
            return device
        raise BadInput("bad_usage", f"There is no provider {', '.join(passed_over)} here; list {_CPU}.")

    def get_inputs(self) -> list:
        """A NodeArg for each input, in the model's order."""
        return [NodeArg(i) for i in self._session.inputs]

    def get_outputs(self) -> list:
        """A NodeArg for each output, in the model's order."""
        return [NodeArg(o) for o in self._session.outputs]

    def get_overridable_initializers(self) -> list:
        """None: constants are no inputs here."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of itself: producer, version, descriptions, and its own entries."""
        return model_metadata(self._model.SerializeToString() if hasattr(self._model, "SerializeToString") else self._model)

    def get_session_options(self) -> SessionOptions:
        """The options that the session was opened with."""
        return self._options

    def get_providers(self) -> list:
        """The provider whose device runs the model, and the CPU's behind it."""
        return list(dict.fromkeys([self._provider, _CPU])) if self._provider != _CPU else [_CPU]

    def get_provider_options(self) -> dict:
        """An empty dictionary for each of ``get_providers()``."""
        return {name: {} for name in self.get_providers()}

    def set_providers(self, providers: Sequence[Any], provider_options: Optional[Sequence[Mapping]] = None) -> None:
        """Goes on with the device of the first provider that is here; see ``sparkle.Session.move_to``."""
        self._session.move_to(self._device_of(providers, provider_options))

    def disable_fallback(self) -> None:
        """A model runs on its device or not at all."""

    enable_fallback = disable_fallback

    def end_profiling(self) -> str:
        """The name of a profile: "", as none is written, which is warned of once."""
        warn_once("No profile was written: sparkle.Session.report() says what each step took.")
        return ""

    def __repr__(self) -> str:
        return f"sparkle.Inference{repr(self._session).removeprefix('sparkle.')}"

    def __reduce__(self) -> tuple:
        return _reopened, (self._session, self._provider, self._model)

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: Optional[RunOptions] = None) -> list:
        """Arrays of the outputs named, in that order, or of all where ``output_names`` is None. Errors: those of
        ``sparkle.Session.run``, and BadInput where ``run_options.terminate`` is set."""
        _check(run_options)
        feed = {n: v._value if isinstance(v, OrtValue) else v for n, v in input_feed.items()}
        results = self._session.run(feed)
        return list(results if not output_names else results._of(self._session._wanted(list(output_names)) or []))

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> list:
        """The same with OrtValues as inputs and results."""
        return [OrtValue(r) for r in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                  callback: Callable[[list, Any, str], None], user_data: Any = None,
                  run_options: Optional[RunOptions] = None) -> None:
        """Runs in a thread of its own, then calls ``callback(results, user_data, error)``; error is "" where it went well. The
        others are those of ``run``."""
        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as e:  # whatever it is, the callback is told
                results, error = [], str(e) or type(e).__name__
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def io_binding(self) -> IOBinding:
        """An empty IOBinding of this session, for ``run_with_iobinding``."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs on what is bound; ``IOBinding.get_outputs`` has the results. Errors: as of ``run``."""
        _check(run_options)
        iobinding._run(self._session)


def _check(options: Optional[RunOptions]) -> None:
    if options is not None and options.terminate:
        raise BadInput("bad_usage", "run_options.terminate is set, so nothing was run; set it to False.")


def _reopened(session: Session, provider: str, model: Any) -> InferenceSession:
    made = InferenceSession.__new__(InferenceSession)
    made._session, made._provider, made._model, made._options = session, provider, model, SessionOptions()
    return made
