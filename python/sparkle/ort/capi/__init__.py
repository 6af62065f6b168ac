"""The place of onnxruntime.capi: ``from sparkle.ort.capi.onnxruntime_pybind11_state import Fail, InvalidArgument``."""
from sparkle.ort.capi import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state

__all__ = ["_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state"]
