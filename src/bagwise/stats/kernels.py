"""Compiled loops over the rows of bags.

Owns the loops that numpy cannot express without a temporary as large as the data. Each takes float64 or float32 rows,
reads them once and writes into buffers of the caller; sums are float64 throughout. Imported on first use only, as
numba takes a second to load.
"""

from typing import Any

import numba
import numpy as np

__all__ = ["centred_rows", "cut_scores", "weighted_bag_means"]

# Rows may be memory-mapped or shared read-only; a writable array passes as a read-only one, not the other way round.
_ROWS = [numba.types.Array(number, 2, "C", readonly=True) for number in (numba.float64, numba.float32)]
_NUMBERS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_OUT = numba.float64[:, ::1]


@numba.njit(
    [numba.void(rows, _INTEGERS, _INTEGERS, _NUMBERS, _OUT) for rows in _ROWS],
    cache=True,
    nogil=True,
    fastmath={"contract", "nsz"},  # not "reassoc": it would pull the origin out of the sums
)
def weighted_bag_means(X: Any, starts: Any, counts: Any, origin: Any, out: Any) -> None:
    """sqrt(q) (1, p, mean - origin) of each bag: rows whose Gram matrix is the size-weighted one of (1, p, mean).

    X (n, d) holds the rows of some bags, starts (m + 1,) where they begin (from any offset), out (m, d + 2).
    """
    d = X.shape[1]
    offset = starts[0]
    size, root, share = 0, 0.0, 0.0
    for b in range(len(starts) - 1):
        first, stop = starts[b] - offset, starts[b + 1] - offset
        if stop - first != size:  # a root and a division cost as much as a small bag
            size = stop - first
            root = np.sqrt(np.float64(size))
            share = 1.0 / root
        total = out[b, 2:]
        for j in range(d):
            total[j] = X[first, j] - origin[j]
        for i in range(first + 1, stop):
            for j in range(d):
                total[j] += X[i, j] - origin[j]
        for j in range(d):
            total[j] *= share
        out[b, 0] = root
        out[b, 1] = counts[b] * share


@numba.njit([numba.void(rows, _INTEGERS, _OUT) for rows in _ROWS], cache=True, nogil=True)
def centred_rows(X: Any, starts: Any, out: Any) -> None:
    """Rows minus the mean of their bag; sums start from the bag's first row, so that no digit is lost to the origin."""
    d = X.shape[1]
    offset = starts[0]
    mean = np.empty(d)
    for b in range(len(starts) - 1):
        first, stop = starts[b] - offset, starts[b + 1] - offset
        mean[:] = 0.0
        for i in range(first + 1, stop):
            for j in range(d):
                mean[j] += np.float64(X[i, j]) - np.float64(X[first, j])
        mean /= stop - first
        for i in range(first, stop):
            for j in range(d):
                out[i, j] = (np.float64(X[i, j]) - np.float64(X[first, j])) - mean[j]


@numba.njit([numba.void(_NUMBERS, _INTEGERS, _INTEGERS, _OUT, _OUT)], cache=True, nogil=True)
def cut_scores(scores: Any, starts: Any, counts: Any, low: Any, high: Any) -> None:
    """Bounds of the thresholds that leave exactly counts[b] of a bag's scores above, for scores and their negatives.

    low and high (2, m); row 0 for the scores, row 1 for their negatives. See ``bagwise.learn.offsets``.
    """
    for b in range(len(starts) - 1):
        s = np.sort(scores[starts[b] : starts[b + 1]])
        q, k = len(s), counts[b]
        high[0, b] = s[q - k] if k > 0 else np.inf
        low[0, b] = s[q - k - 1] if k < q else -np.inf
        high[1, b] = -s[k - 1] if k > 0 else np.inf
        low[1, b] = -s[k] if k < q else -np.inf
