"""The GPU held open for a whole run of scripts/gpu: each step is a process, and without persistence mode a driver starts a card
anew for the first process that opens it, and lets it go with the last. No setting of the card is changed."""

import contextlib
import ctypes
import threading

PATIENCE = 20  # seconds for a driver to start its card, and to let it go
COMPUTE_MODE, DEFAULT_MODE = 20, 0  # CU_DEVICE_ATTRIBUTE_COMPUTE_MODE; in any other, who holds the card keeps others out


def release_of(library="libcuda.so.1"):
    """Retains the first device's primary context; what releases it, or None where there is no such driver or card."""
    try:
        cuda = ctypes.CDLL(library)
        device, mode, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        if (
            cuda.cuInit(0)
            or cuda.cuDeviceGet(ctypes.byref(device), 0)
            or cuda.cuDeviceGetAttribute(ctypes.byref(mode), COMPUTE_MODE, device)
            or mode.value != DEFAULT_MODE
            or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        ):
            return None
        return lambda: cuda.cuDevicePrimaryCtxRelease_v2(device)
    except (OSError, AttributeError):
        return None


def within(patience, call):
    """What `call` returns, in a thread of its own: None where a driver hangs, which holds no step back."""
    said = []
    thread = threading.Thread(target=lambda: said.append(call()), daemon=True)
    thread.start()
    thread.join(patience)
    return said[0] if said else None


@contextlib.contextmanager
def held_device(library="libcuda.so.1", patience=PATIENCE):
    """Yields whether it is held."""
    release = within(patience, lambda: release_of(library))
    try:
        yield release is not None
    finally:
        if release:
            within(patience, release)
