"""Whether the rows of a batch have the results that each has alone: whoever gathers rows that are not one another's asks the
first batch. A model may mix them (a softmax over its first axis, statistics of the batch), and shapes do not tell."""
from typing import Any, Callable, Optional, Sequence

import numpy as np

Arrays = Sequence[np.ndarray]


def are_told_apart(arrays: Arrays) -> bool:
    """Whether the first row and the last differ in some array: what a batch of one row repeated shows is no proof."""
    return any(not np.array_equal(a[:1], a[-1:]) for a in arrays)


def mixed_output(arrays: Arrays, results: Sequence[Any], alone: Callable[[Arrays], Sequence[Any]]) -> Optional[int]:
    """The first output that is another, beyond rounding, for the first row of ``arrays`` or the last, where ``alone`` runs that
    row by itself; None where all are the same. ``results`` are those of the whole batch; both have a row for each given."""
    last = len(arrays[0]) - 1
    for row in (0, last):
        for o, (one, all_rows) in enumerate(zip(alone([a[row:row + 1] for a in arrays]), results)):
            if not agree(one, all_rows[row:row + 1]):
                return o
    return None


def agree(a: Any, b: Any) -> bool:
    """Whether they are the same but for rounding: another number of rows may be served by another kernel, which sums in another
    order, and steps of 8 or 16 bits within the model round to one side or the other. Integers - places of the largest, boxes in
    order - tell shapes alone: two that are nearly even may come in either order."""
    if not np.issubdtype(np.asarray(a).dtype, np.integer) and np.asarray(a).dtype != bool:
        return _near(np.asarray(a), np.asarray(b))
    return np.shape(a) == np.shape(b)


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    most = 0.02 if a.dtype.itemsize < 4 else 0.01
    one, other = a.astype(np.float64), b.astype(np.float64)
    near = most * np.max(np.abs(one), initial=0, where=np.isfinite(one))
    return one.shape == other.shape and np.allclose(one, other, rtol=most, atol=near, equal_nan=True)
