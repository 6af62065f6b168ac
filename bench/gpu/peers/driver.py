"""CUDA's driver through ctypes: the primary context, memory filled with numbers, and times of calls by events around graphs
that replay them. What a peer of NVIDIA's needs, and no more."""

import ctypes
import functools
import math
import random
import statistics
import struct

from .libraries import PeerError, declare, open_library

Pointer, Int, Size, U64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint64
Out = ctypes.POINTER
FUNCTIONS = {
    "cuInit": (Int, ctypes.c_uint),
    "cuDriverGetVersion": (Int, Out(Int)),
    "cuDeviceGet": (Int, Out(Int), Int),
    "cuDeviceGetName": (Int, ctypes.c_char_p, Int, Int),
    "cuDevicePrimaryCtxRetain": (Int, Out(Pointer), Int),
    "cuDevicePrimaryCtxRelease_v2": (Int, Int),
    "cuCtxSetCurrent": (Int, Pointer),
    "cuCtxSynchronize": (Int,),
    "cuMemAlloc_v2": (Int, Out(U64), Size),
    "cuMemFree_v2": (Int, U64),
    "cuMemcpyHtoD_v2": (Int, U64, Pointer, Size),
    "cuMemcpyDtoH_v2": (Int, Pointer, U64, Size),
    "cuMemcpyDtoD_v2": (Int, U64, U64, Size),
    "cuMemsetD8_v2": (Int, U64, ctypes.c_ubyte, Size),
    "cuStreamCreate": (Int, Out(Pointer), ctypes.c_uint),
    "cuStreamSynchronize": (Int, Pointer),
    "cuStreamDestroy_v2": (Int, Pointer),
    "cuStreamBeginCapture_v2": (Int, Pointer, Int),
    "cuStreamEndCapture": (Int, Pointer, Out(Pointer)),
    "cuGraphInstantiateWithFlags": (Int, Out(Pointer), Pointer, ctypes.c_ulonglong),
    "cuGraphLaunch": (Int, Pointer, Pointer),
    "cuGraphDestroy": (Int, Pointer),
    "cuGraphExecDestroy": (Int, Pointer),
    "cuEventCreate": (Int, Out(Pointer), ctypes.c_uint),
    "cuEventRecord": (Int, Pointer, Pointer),
    "cuEventSynchronize": (Int, Pointer),
    "cuEventElapsedTime": (Int, Out(ctypes.c_float), Pointer, Pointer),
    "cuEventDestroy_v2": (Int, Pointer),
    "cuGetErrorName": (Int, Int, Out(ctypes.c_char_p)),
}
NON_BLOCKING, THREAD_LOCAL = 1, 1  # of streams; how strict a capture is
PERIOD = 65521  # numbers of a tensor until they come again: a prime, so that no axis has the same number everywhere
BURST_SECONDS, MOST_IN_GRAPH, BURSTS = 0.01, 20, 9
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


def rounded(value, kind):
    """As the type holds it; bf16 by cutting digits off."""
    if kind == "f16":
        return struct.unpack("<e", struct.pack("<e", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000 if kind == "bf16" else bits))[0]


def encoded(values, kind):
    if kind == "bf16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{'e' if kind == 'f16' else 'f'}", *values)


def decoded(data, kind):
    if kind == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[at : at + 2])[0] for at in range(0, len(data), 2)]
    return list(struct.unpack(f"<{len(data) // BYTES[kind]}{'e' if kind == 'f16' else 'f'}", data))


@functools.lru_cache(maxsize=32)
def numbers(seed, kind, scale):
    """PERIOD normal numbers as the type holds them, and their bytes."""
    values = random.Random(seed)
    made = [rounded(values.gauss(0, scale), kind) for _ in range(PERIOD)]
    return made, encoded(made, kind)


class Tensor:
    """Elements on the device; of those that were filled, value(i) is the host's knowledge of them."""

    def __init__(self, driver, count, kind, seed=None, scale=1.0):
        self.driver, self.count, self.kind = driver, count, kind
        self.bytes = count * BYTES[kind]
        self.address = driver.alloc(self.bytes)
        self.values = []
        if seed is None:
            self.spoil()
            return
        self.values, data = numbers(seed, kind, 2.0 ** round(math.log2(scale)))
        done = min(len(data), self.bytes)
        driver.call("cuMemcpyHtoD_v2", self.address, data, done)
        while done < self.bytes:  # what is there is doubled
            more = min(done, self.bytes - done)
            driver.call("cuMemcpyDtoD_v2", self.address + done, self.address, more)
            done += more
        driver.call("cuCtxSynchronize")  # the stream of the calls waits for no other

    def spoil(self):
        """NaN everywhere: what is not written is seen."""
        self.driver.call("cuMemsetD8_v2", self.address, 0xFF, self.bytes)
        self.driver.call("cuCtxSynchronize")

    def value(self, index):
        return self.values[index % PERIOD]

    def read(self, index):
        size = BYTES[self.kind]
        data = ctypes.create_string_buffer(size)
        self.driver.call("cuMemcpyDtoH_v2", data, self.address + index * size, size)
        return decoded(data.raw, self.kind)[0]


class Driver:
    """The first device's primary context and a stream. Errors: PeerError."""

    def __init__(self, number=0):
        self.library, self.path = open_library("cuda")
        declare(self.library, FUNCTIONS, PeerError)
        self.allocated = []
        self.number, self.context, self.stream = Int(), Pointer(), Pointer()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", self.number, number)
        self.call("cuDevicePrimaryCtxRetain", self.context, self.number)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuStreamCreate", self.stream, NON_BLOCKING)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, text)
            raise PeerError(f"{name} answers {(text.value or b'an error').decode()} ({status}).")

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.number)
        return text.value.decode()

    def version(self):
        number = Int()
        self.call("cuDriverGetVersion", number)
        return number.value

    def alloc(self, size):
        address = U64()
        self.call("cuMemAlloc_v2", address, max(size, 1))
        self.allocated.append(address.value)
        return address.value

    def free_since(self, count):
        """What was allocated after the first `count`."""
        while len(self.allocated) > count:
            self.call("cuMemFree_v2", self.allocated.pop())

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)

    def close(self):
        self.free_since(0)
        self.call("cuStreamDestroy_v2", self.stream)
        self.call("cuDevicePrimaryCtxRelease_v2", self.number)

    def captured(self, call, count):
        """`count` calls as one graph that can be launched, or None where the library's calls cannot be captured."""
        graph, program = Pointer(), Pointer()
        self.call("cuStreamBeginCapture_v2", self.stream, THREAD_LOCAL)
        failed = None
        try:
            for _ in range(count):
                call()
        except PeerError as error:
            failed = error
        ended = self.library.cuStreamEndCapture(self.stream, graph)
        if failed or ended or not graph.value:
            return None
        try:
            self.call("cuGraphInstantiateWithFlags", program, graph, 0)
        finally:
            self.call("cuGraphDestroy", graph)
        return program

    def seconds(self, call, count):
        """Of `count` calls, between two events."""
        begin, end, took = Pointer(), Pointer(), ctypes.c_float()
        self.call("cuEventCreate", begin, 0)
        self.call("cuEventCreate", end, 0)
        try:
            self.call("cuEventRecord", begin, self.stream)
            for _ in range(count):
                call()
            self.call("cuEventRecord", end, self.stream)
            self.call("cuEventSynchronize", end)
            self.call("cuEventElapsedTime", took, begin, end)
        finally:
            self.call("cuEventDestroy_v2", begin)
            self.call("cuEventDestroy_v2", end)
        return took.value * 1e-3

    def quick(self, call):
        """Seconds of a call to choose among algorithms by: one to begin with, then the least of two bursts."""
        call()
        self.wait()
        one = max(self.seconds(call, 1), 1e-6)
        count = max(1, min(10, int(0.002 / one)))
        return min(self.seconds(call, count) / count for _ in range(2))

    def measure(self, call):
        """Median and least seconds of a call, and whether a graph replayed it."""
        call()
        self.wait()
        one = max(self.seconds(call, 1), 1e-6)
        inside = max(1, min(MOST_IN_GRAPH, int(BURST_SECONDS / one)))
        program = self.captured(call, inside)
        if program is None:
            inside, launch = 1, call
        else:
            launch = lambda: self.call("cuGraphLaunch", program, self.stream)
        try:
            launch()
            self.wait()
            count = max(1, min(1000, int(BURST_SECONDS / (one * inside))))
            samples = [self.seconds(launch, count) / (count * inside) for _ in range(BURSTS)]
        finally:
            if program is not None:
                self.call("cuGraphExecDestroy", program)
        return statistics.median(samples), min(samples), program is not None
