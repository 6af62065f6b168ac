"""An array with the methods of PyTorch's tensors."""

import numpy as np


def wrapped(array):
    return np.asarray(array).view(Tensor)


class Tensor(np.ndarray):
    def to(self, target=None, memory_format=None):
        return self if target is None or isinstance(target, str) else wrapped(self.astype(target))

    def contiguous(self, memory_format=None):
        if memory_format and self.ndim != 4:
            raise RuntimeError("channels last is for four axes")
        return self

    def dim(self):
        return self.ndim

    def t(self):
        return wrapped(np.swapaxes(self, 0, 1))

    def transpose(self, a, b):
        return wrapped(np.swapaxes(self, a, b))

    def flatten(self, begin):
        return self.reshape(*self.shape[:begin], -1)

    def expand(self, *shape):
        return np.broadcast_to(self, shape, subok=True)

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)
