"""Sessions and values under the name of the module that has them in onnxruntime."""
from sparkle.ort._binding import IOBinding
from sparkle.ort._devices import OrtDevice
from sparkle.ort._session import InferenceSession
from sparkle.ort._values import OrtValue

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue"]
