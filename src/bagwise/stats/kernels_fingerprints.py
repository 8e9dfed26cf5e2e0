"""The loop behind `bagwise.stats.fingerprints`; imported on first use only, as numba takes a second to load."""

from typing import Any

import numba
import numpy as np

__all__ = ["bag_hashes"]

_NEGATIVE_ZERO = np.uint64(1 << 63)
_WORDS = numba.types.Array(numba.uint64, 1, "C", readonly=True)
_TABLE = numba.types.Array(numba.uint64, 2, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)


@numba.njit(inline="always")
def _mix(word: Any) -> Any:
    """The finaliser of splitmix64: each bit of the output depends on each of the input."""
    z = word + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@numba.njit([numba.void(_TABLE, _INTEGERS, _INTEGERS, _WORDS, numba.uint64[::1])], cache=True, nogil=True)
def bag_hashes(bits: Any, starts: Any, counts: Any, multipliers: Any, out: Any) -> None:
    """mix(sum over rows of mix(bits of the row . multipliers) + mix(size, count)) of each bag, mod 2^64.

    bits (n, d) holds the rows of some bags, starts (m + 1,) where they begin (from any offset). The bits of -0.0 are
    read as those of 0.0.
    """
    d = bits.shape[1]
    for b in range(len(starts) - 1):
        first, stop = starts[b] - starts[0], starts[b + 1] - starts[0]
        total = _mix(np.uint64(stop - first) << np.uint64(32) | np.uint64(counts[b]))
        for i in range(first, stop):
            row = np.uint64(0)
            for j in range(d):
                x = bits[i, j]
                row += (np.uint64(0) if x == _NEGATIVE_ZERO else x) * multipliers[j]
            total += _mix(row)
        out[b] = _mix(total)
