"""The same names as in ``onnxruntime_pybind11_state``."""
from sparkle.ort.capi.onnxruntime_pybind11_state import *  # noqa: F401,F403
