"""The compiled loop over pairs of binomials; imported on first use only, as numba takes a second to load.

Vocabulary: a bag of k positives and l negatives is satisfied exactly if as many positives are missed, Bin(k, a), as
negatives are taken, Bin(l, b).
"""

import math
from typing import Any

import numba
import numpy as np

__all__ = ["mean_satisfied"]


@numba.njit(nogil=True, cache=True)
def _log_binomial(n: int, p: float, j: int) -> float:
    """log Pr[Bin(n, p) = j] for 0 <= j <= n."""
    if (p <= 0.0 and j > 0) or (p >= 1.0 and j < n):
        return -np.inf
    total = math.lgamma(n + 1.0) - math.lgamma(j + 1.0) - math.lgamma(n - j + 1.0)
    if j > 0:
        total += j * math.log(p)
    if j < n:
        total += (n - j) * math.log1p(-p)
    return total


@numba.njit(nogil=True, cache=True)
def _satisfied(k: int, l: int, a: float, b: float) -> float:
    """Pr[Bin(k, a) = Bin(l, b)]: terms are summed from the largest outwards, their ratio falls with j."""
    most = min(k, l)
    if a <= 0.0 or b <= 0.0:
        return (1.0 - a) ** k * (1.0 - b) ** l
    if a >= 1.0 or b >= 1.0:
        j = k if a >= 1.0 else l
        return math.exp(_log_binomial(k, a, j) + _log_binomial(l, b, j)) if j <= most else 0.0
    odds = a / (1.0 - a) * b / (1.0 - b)
    # (k - j)(l - j) odds = (j + 1)^2 at the mode.
    low, high = 0, most
    while low < high:
        j = (low + high) // 2
        if (k - j) * (l - j) * odds > (j + 1.0) * (j + 1.0):
            low = j + 1
        else:
            high = j
    peak = math.exp(_log_binomial(k, a, low) + _log_binomial(l, b, low))
    total, term, j = peak, peak, low
    while j < most and term > 1e-18 * total:
        term *= (k - j) * (l - j) * odds / ((j + 1.0) * (j + 1.0))
        total += term
        j += 1
    term, j = peak, low
    while j > 0 and term > 1e-18 * total:
        term *= j * j / ((k - j + 1.0) * (l - j + 1.0) * odds)
        total += term
        j -= 1
    return min(1.0, total)


@numba.njit(
    ["void(int64[::1], int64[::1], float64[::1], float64[::1], float64[::1], float64[::1])"], nogil=True, cache=True
)
def mean_satisfied(positives: Any, negatives: Any, weights: Any, a: Any, b: Any, out: Any) -> None:
    """sum_key weight Pr[Bin(positives, a) = Bin(negatives, b)] at each point (a, b)."""
    for i in range(len(a)):
        total = 0.0
        for key in range(len(weights)):
            total += weights[key] * _satisfied(positives[key], negatives[key], a[i], b[i])
        out[i] = total
