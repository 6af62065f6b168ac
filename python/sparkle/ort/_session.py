"""onnxruntime's InferenceSession over a sparkle.Session."""
import logging
import os
import threading
import time
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from sparkle._errors import BadInput
from sparkle._model_meta import ModelMetadata, model_metadata
from sparkle._session import Session
from sparkle.ort._binding import IOBinding
from sparkle.ort._devices import OrtAllocatorType, OrtMemoryInfo, OrtMemType
from sparkle.ort._errors import theirs_too
from sparkle.ort._options import RunOptions, SessionOptions, warn_once
from sparkle.ort._process import set_default_logger_severity
from sparkle.ort._providers import CPU, device_of, listed
from sparkle.ort._values import OrtValue, tensor_type


class NodeArg:
    """``name``, ``shape`` (names or None where a size is open, unless ``sizes`` has them) and ``type`` ("tensor(float)")."""

    def __init__(self, info: Any, sizes: Mapping[str, int]) -> None:
        self.name = info.name
        self.shape = None if info.shape is None else [sizes.get(s, s) if isinstance(s, str) else s for s in info.shape]
        self.type = tensor_type(info.dtype)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class InferenceSession:
    """A model as onnxruntime opens it: a path, the bytes of a file or an onnx.ModelProto, with ``sess_options``, and
    ``providers`` whose first that is here runs it, else the CPU (``enable_fallback=0`` and the entry
    "session.disable_cpu_ep_fallback" forbid that); of ``provider_options`` the ``device_id`` counts. Errors: those of
    ``sparkle.Session``, which are onnxruntime's too (``sparkle.ort.capi.onnxruntime_pybind11_state``)."""

    def __init__(self, path_or_bytes: Union[str, bytes, os.PathLike], sess_options: Optional[SessionOptions] = None,
                 providers: Optional[Sequence[Any]] = None, provider_options: Optional[Sequence[Mapping]] = None,
                 **others: Any) -> None:
        self._may_fall_back = int(others.pop("enable_fallback", 1)) == 1
        for name, value in others.items():
            if value:
                warn_once(f"InferenceSession's {name} is not followed.")
        self._options = options = sess_options if sess_options is not None else SessionOptions()
        self._model = path_or_bytes
        self._opened_ns = time.time_ns()
        if options.log_severity_level >= 0:
            set_default_logger_severity(options.log_severity_level)
        options._say_what_is_not_followed()
        with theirs_too():
            device = self._device_of(providers or options._providers, provider_options)
            forbid = options._forbids_the_cpu() and self._provider != CPU
            self._session = Session(path_or_bytes, device, fallback="forbid" if forbid else "warn")
        self._sizes = self._known_sizes(options._sizes)

    def _device_of(self, providers: Optional[Sequence[Any]], options: Optional[Sequence[Mapping]]) -> Any:
        """The device of the first provider that is here."""
        may_fall_back = self._may_fall_back and not self._options._forbids_the_cpu()
        self._provider, device = device_of(listed(providers, options), self._options.intra_op_num_threads, may_fall_back)
        return device

    def _known_sizes(self, sizes: Mapping[str, int]) -> dict:
        """The sizes that were set by names, of axes that inputs have."""
        names = {s: None for i in self._session.inputs for s in i.shape or () if isinstance(s, str)}
        for name in sizes:
            if name not in names:
                has = ", ".join(map(repr, names)) or "no axis with a name"
                logging.getLogger("sparkle").warning(
                    "add_free_dimension_override_by_name: no input of the model has an axis '%s'; there is %s.", name, has)
        return {name: size for name, size in sizes.items() if name in names}

    def _check_sizes(self, feed: Mapping[str, Any]) -> None:
        """Errors: BadInput for a size that is not the one that was set."""
        for info in self._session.inputs if self._sizes else ():
            given = feed.get(info.name)
            shape = getattr(given, "shape", None) if hasattr(given, "shape") else np.shape(given) if given is not None else ()
            for axis, (name, size) in enumerate(zip(info.shape or (), shape)):
                if name in self._sizes and size != self._sizes[name]:
                    raise BadInput("bad_input", f"The input '{info.name}' has {size} on axis {axis}, '{name}', which "
                                   f"add_free_dimension_override_by_name has set to {self._sizes[name]}.")

    def get_inputs(self) -> list:
        """A NodeArg for each input, in the model's order."""
        return [NodeArg(i, self._sizes) for i in self._session.inputs]

    def get_outputs(self) -> list:
        """A NodeArg for each output, in the model's order."""
        return [NodeArg(o, self._sizes) for o in self._session.outputs]

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
        return list(dict.fromkeys([self._provider, CPU])) if self._provider != CPU else [CPU]

    def get_provider_options(self) -> dict:
        """An empty dictionary for each of ``get_providers()``."""
        return {name: {} for name in self.get_providers()}

    def set_providers(self, providers: Sequence[Any], provider_options: Optional[Sequence[Mapping]] = None) -> None:
        """Goes on with the device of the first provider that is here; see ``sparkle.Session.move_to``."""
        with theirs_too():
            self._session.move_to(self._device_of(providers, provider_options))

    def disable_fallback(self) -> None:
        """``set_providers`` takes a device of those that are listed or none."""
        self._may_fall_back = False

    def enable_fallback(self) -> None:
        """``set_providers`` takes the CPU where none of those that are listed is here."""
        self._may_fall_back = True

    def get_input_memory_infos(self) -> list:
        """Where inputs are taken from: an OrtMemoryInfo of the host for each, as arrays are; an OrtValue may lie elsewhere."""
        return [_on_host() for _ in self._session.inputs]

    def get_output_memory_infos(self) -> list:
        """Where ``run`` leaves outputs: the same for each of them."""
        return [_on_host() for _ in self._session.outputs]

    def get_profiling_start_time_ns(self) -> int:
        """When the session was opened, in nanoseconds since 1970: what a profile would begin with."""
        return self._opened_ns

    def get_tuning_results(self) -> list:
        """None: what was measured is kept by sparkle tune."""
        return []

    def end_profiling(self) -> str:
        """The name of a profile: "", as none is written, which is warned of once."""
        warn_once("No profile was written: sparkle.Session.report() says what each step took.")
        return ""

    def __repr__(self) -> str:
        return f"sparkle.Inference{repr(self._session).removeprefix('sparkle.')}"

    def __reduce__(self) -> tuple:
        kept = {name: value for name, value in vars(self).items() if name not in ("_session", "_model")}
        return _reopened, (self._session, self._model, kept)

    @theirs_too()
    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: Optional[RunOptions] = None) -> list:
        """Arrays of the outputs named, in that order, or of all where ``output_names`` is None. Errors: those of
        ``sparkle.Session.run``, and BadInput where ``run_options.terminate`` is set."""
        _check(run_options)
        if not isinstance(input_feed, Mapping):
            raise BadInput("bad_usage", f"The input_feed is of type {type(input_feed).__name__}; give a dictionary of arrays "
                           "by the inputs' names.")
        feed = {n: v._value if isinstance(v, OrtValue) else v for n, v in input_feed.items()}
        self._check_sizes(feed)
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

    @theirs_too()
    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs on what is bound; ``IOBinding.get_outputs`` has the results. Errors: as of ``run``."""
        _check(run_options)
        self._check_sizes(iobinding._inputs)
        iobinding._run(self._session)


def _on_host() -> OrtMemoryInfo:
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


def _check(options: Optional[RunOptions]) -> None:
    if options is not None and options.terminate:
        raise BadInput("bad_usage", "run_options.terminate is set, so nothing was run; set it to False.")


def _reopened(session: Session, model: Any, kept: dict) -> InferenceSession:
    made = InferenceSession.__new__(InferenceSession)
    vars(made).update(kept, _session=session, _model=model)
    return made
