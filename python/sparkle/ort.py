"""The common case of onnxruntime's interface, so that a program can change engines by changing an import:

    from sparkle.ort import InferenceSession
    session = InferenceSession("model.onnx")
    session.run(None, {session.get_inputs()[0].name: image})

Of the providers that a program lists, CPUExecutionProvider must be one; a warning names the others, which are not there.
"""
import warnings
from typing import Any, Mapping, Optional, Sequence, Union

from sparkle._device import Device
from sparkle._errors import BadInput
from sparkle._session import Session

_CPU = "CPUExecutionProvider"
_TYPES = {"float32": "float", "float64": "double", "float8_e8m0fnu": "float8e8m0", "float4_e2m1fn": "float4e2m1",
          **{f"float8_{form}": f"float8{form}" for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}}


class NodeArg:
    """``name``, ``shape`` (names or None where a size is open) and ``type`` ("tensor(float)")."""

    def __init__(self, info: Any) -> None:
        self.name = info.name
        self.shape = None if info.shape is None else list(info.shape)
        self.type = f"tensor({_TYPES.get(info.dtype, info.dtype)})"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class SessionOptions:
    """``intra_op_num_threads`` is used; anything else set here is refused rather than ignored."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "intra_op_num_threads":
            raise AttributeError(f"sparkle.ort.SessionOptions has no option '{name}'; it has intra_op_num_threads.")
        super().__setattr__(name, value)


class InferenceSession:
    """A model as onnxruntime opens it, run on the CPU: ``run(None, {name: array})``. Errors: those of ``sparkle.Session``."""

    def __init__(self, path_or_bytes: Union[str, bytes], sess_options: Optional[SessionOptions] = None,
                 providers: Optional[Sequence[str]] = None) -> None:
        names = [p if isinstance(p, str) else p[0] for p in providers or [_CPU]]
        others = ", ".join(f"'{n}'" for n in names if n != _CPU)
        if _CPU not in names:
            raise BadInput("bad_usage", f"There is no provider {others} here; list {_CPU}.")
        if others:
            warnings.warn(f"Sparkle has no provider {others}; {_CPU} runs the model.", stacklevel=2)
        threads = sess_options.intra_op_num_threads if sess_options else 0
        self._session = Session(path_or_bytes, Device("cpu", threads=threads))

    def get_inputs(self) -> list:
        return [NodeArg(i) for i in self._session.inputs]

    def get_outputs(self) -> list:
        return [NodeArg(o) for o in self._session.outputs]

    def __repr__(self) -> str:
        return f"sparkle.Inference{repr(self._session).removeprefix('sparkle.')}"

    def get_providers(self) -> list:
        return [_CPU]

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any], run_options: None = None) -> list:
        if run_options is not None:
            raise BadInput("bad_usage", "run_options are not supported; pass None.")
        results = dict(zip((o.name for o in self._session.outputs), self._session.run(dict(input_feed))))
        if not output_names:
            return list(results.values())
        for name in output_names:
            if name not in results:
                raise BadInput("bad_usage", f"The model has no output '{name}'; it has {', '.join(map(repr, results))}.")
        return [results[name] for name in output_names]
