"""The loop behind `bagwise.stats.fingerprints`; imported on first use only, as numba takes a second to load."""

from typing import Any

import numba
import numpy as np

__all__ = ["row_sums"]

_NEGATIVE_ZERO = np.uint64(1 << 63)


@numba.njit(
    [numba.void(numba.types.Array(numba.uint64, 2, "C", readonly=True), numba.uint64[::1], numba.uint64[::1])],
    cache=True,
    nogil=True,
)
def row_sums(bits: Any, multipliers: Any, out: Any) -> None:
    """out_i = sum_j bits_ij multipliers_j mod 2^64, with the bits of -0.0 read as those of 0.0."""
    n, d = bits.shape
    for i in range(n):
        total = np.uint64(0)
        for j in range(d):
            x = bits[i, j]
            total += (np.uint64(0) if x == _NEGATIVE_ZERO else x) * multipliers[j]
        out[i] = total
