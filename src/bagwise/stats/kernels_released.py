"""Compiled loops for totals released with noise: the unknown count of each bag is summed over.

Owns what is done inside of one bag. With f(k) the Poisson-binomial distribution of the count and g the law of the
noise, the likelihood of a released value v is sum_k f(k) g(v - k), and the posterior of row i
P_i sum_k f_-i(k) g(v - k - 1) / likelihood, where f_-i leaves the row out. f is tilted (see
`bagwise.stats.kernels_counts`) to where the posterior of k lies, so that nothing underflows, and kept in a band of nine
standard deviations: where f and f g have nearly one mean, g is flat, and rounding in the tails of f weighs nothing.
f_-i comes from f by division, from the side from which that is stable. O(q x band) for each bag.
"""

import math
from typing import Any

import numba
import numpy as np

from bagwise.stats.kernels_counts import _tilt_to

__all__ = ["released_terms"]

_CERTAIN = 50.0


@numba.njit(nogil=True, cache=True)
def _log_noise(x: float, law: int, scale: float) -> float:
    """Log-density of the noise, by the number of its law."""
    if law == 0:
        return 0.0 if x == 0.0 else -np.inf
    if law == 1:
        return -abs(x) / scale - math.log(2.0 * scale)
    if law == 2:
        return -abs(x) / scale + math.log(math.tanh(0.5 / scale))
    return -0.5 * (x / scale) ** 2 - math.log(scale) - 0.9189385332046727


@numba.njit(nogil=True, cache=True)
def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@numba.njit(
    "void(float64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], float64[::1])",
    nogil=True,
    cache=True,
)
def released_terms(log_odds: Any, starts: Any, values: Any, laws: Any, scales: Any, loglik: Any, post: Any) -> None:
    """Log-likelihood (m,) of the released values and posterior (n,) of the rows, for log-odds (n,) of m bags."""
    longest = 1
    for b in range(values.shape[0]):
        longest = max(longest, starts[b + 1] - starts[b])
    eta, P, O = np.empty((3, longest))
    f, w = np.zeros((2, longest + 2))
    for b in range(values.shape[0]):
        o = starts[b] - starts[0]
        q = starts[b + 1] - starts[b]
        v, law, scale = values[b], laws[b], scales[b]
        mean = var = 0.0
        for i in range(q):
            eta[i] = min(max(log_odds[o + i], -_CERTAIN), _CERTAIN)
            p = 1.0 / (1.0 + math.exp(-eta[i]))
            mean += p
            var += p * (1.0 - p)
        spread = 1e-12 if law == 0 else (scale * scale if law == 3 else 2.0 * scale * scale)
        near = (mean * spread + v * var) / (spread + var)
        total, base, low, high, tilt = 0.0, 0.0, 0, 0, 0.0
        for _ in range(12):
            near = min(max(near, 0.5 if q > 1 else 0.25), q - (0.5 if q > 1 else 0.25))
            tilt = _tilt_to(eta, 0, q, near, 0.1)
            var = base = 0.0
            for i in range(q):
                x = eta[i] + tilt
                e = math.exp(-abs(x))
                small = e / (1.0 + e)
                P[i] = 1.0 - small if x > 0.0 else small
                O[i] = small if x > 0.0 else 1.0 - small
                var += P[i] * O[i]
                base += _softplus(x) - _softplus(eta[i])
            reach = 9.0 * math.sqrt(var) + 12.0
            for k in range(q + 2):
                f[k] = 0.0
            f[0] = 1.0
            low, high = 0, 0
            partial = 0.0
            for i in range(q):
                partial += P[i]
                f[high + 1] = f[high] * P[i]
                for k in range(high, low, -1):
                    f[k] = f[k] * O[i] + f[k - 1] * P[i]
                f[low] *= O[i]
                high += 1
                while high > partial + reach:
                    f[high] = 0.0
                    high -= 1
                while low < partial - reach:
                    f[low] = 0.0
                    low += 1
            top = -np.inf
            for k in range(low, high + 1):
                w[k] = _log_noise(v - k, law, scale) - tilt * k
                top = max(top, w[k])
            total = first = 0.0
            if top > -np.inf:
                for k in range(low, high + 1):
                    w[k] = math.exp(w[k] - top)
                    total += f[k] * w[k]
                    first += k * f[k] * w[k]
            base += top
            if not total > 0.0:
                near = v
                continue
            found = first / total
            if abs(found - near) <= 0.25 * math.sqrt(var) + 0.1:
                break
            near = found
        if not total > 0.0:
            loglik[b] = -np.inf
            for i in range(q):
                post[o + i] = 1.0 / (1.0 + math.exp(-eta[i]))
            continue
        loglik[b] = math.log(total) + base
        for i in range(q):
            p, other = P[i], O[i]
            lifted = 0.0
            without = 0.0  # f_-i at the last k
            if p <= 0.5:
                for k in range(low, high):
                    without = (f[k] - p * without) / other
                    lifted += without * w[k + 1]
            else:
                for k in range(high, low, -1):
                    without = (f[k] - other * without) / p
                    lifted += without * w[k]
            post[o + i] = min(1.0, max(0.0, p * lifted / total))
