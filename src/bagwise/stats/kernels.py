"""Compiled loops over the rows of bags.

Owns the loops that numpy cannot express without a temporary as large as the data. Each is compiled for
float64 and
float32 rows, reads every row once and writes into buffers of the caller; sums are float64 throughout.
Imported on
first use only, as numba takes a second to load.
"""

from typing import Any

import numba
import numpy as np

__all__ = ["centred_rows", "weighted_bag_means"]


@numba.njit(
    [
        "void(float64[:, ::1], int64[::1], float64[::1], float64[::1], float64[:, ::1])",
        "void(float32[:, ::1], int64[::1], float64[::1], float64[::1], float64[:, ::1])",
    ],
    cache=True,
    nogil=True,
    fastmath={"contract", "nsz"},  # not "reassoc": it would pull the origin out of the sums
)
def weighted_bag_means(X: Any, starts: Any, proportions: Any, origin: Any, out: Any) -> None:
    """sqrt(q) (1, p, mean - origin) of each bag: rows whose Gram matrix is the size-weighted one of (1, p,
    mean).

     X (n, d) holds the rows of some bags, starts (m + 1,) where they begin (from any offset), out (m, d + 2).
    """
    d = X.shape[1]
    offset = starts[0]
    for b in range(len(starts) - 1):
        first, stop = starts[b] - offset, starts[b + 1] - offset
        total = out[b, 2:]
        for j in range(d):
            total[j] = X[first, j] - origin[j]
        for i in range(first + 1, stop):
            for j in range(d):
                total[j] += X[i, j] - origin[j]
        root = np.sqrt(np.float64(stop - first))
        share = 1.0 / root
        for j in range(d):
            total[j] *= share
        out[b, 0] = root
        out[b, 1] = root * proportions[b]


@numba.njit(
    [
        "void(float64[:, ::1], int64[::1], float64[:, ::1])",
        "void(float32[:, ::1], int64[::1], float64[:, ::1])",
    ],
    cache=True,
    nogil=True,
)
def centred_rows(X: Any, starts: Any, out: Any) -> None:
    """Rows minus the mean of their bag; sums start from the bag's first row, so that no digit is lost to "
    "the origin."""
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
