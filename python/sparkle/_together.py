"""Whether the rows of a batch have the results that each has alone: whoever gathers rows that are not one another's asks the
first batch. A model may mix them (a softmax over its first axis, statistics of the batch), and shapes do not tell."""
from typing import Any, Callable, Optional, Sequence

import numpy as np

Arrays = Sequence[np.ndarray]


def are_told_apart(arrays: Arrays) -> bool:
    """Whether the first row and the last differ in some array: what a batch of one row repeated shows is no proof."""
    return any(not np.array_equal(a[:1], a[-1:]) for a in arrays)


def mixed_output(arrays: Arrays, results: Sequence[Any], alone: Callable[[Arrays], Sequence[Any]],
                 floats_only: bool = False) -> Optional[int]:
    """The first output that is another, beyond rounding, for the first row of ``arrays`` or the last, where ``alone`` runs that
    row by itself; None where all are the same. ``results`` are those of the whole batch; both have a row for each given.
    ``floats_only``: of others - places of the largest, boxes in order - the shapes alone are compared, since two that are
    nearly even may come in either order."""
    last = len(arrays[0]) - 1
    for row in (0, last):
        for o, (one, all_rows) in enumerate(zip(alone([a[row:row + 1] for a in arrays]), results)):
            same = all_rows[row:row + 1]
            if floats_only and np.asarray(one).dtype.kind in "iub":
                same = one if np.shape(one) == np.shape(same) else same
            if not agree(one, same):
                return o
    return None


def agree(a: Any, b: Any) -> bool:
    """Whether they are the same but for rounding in the type that they have: another number of rows may be served by another
    kernel, which sums in another order."""
    most = 0.02 if np.asarray(a).dtype.itemsize < 4 else 1e-3
    one, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
    near = most * np.max(np.abs(one), initial=0, where=np.isfinite(one))
    return one.shape == other.shape and np.allclose(one, other, rtol=most, atol=near, equal_nan=True)
