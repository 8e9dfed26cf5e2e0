"""Compiled loop over bags whose rows share a few probabilities; imported on first use only, as numba takes a second.

Owns, for a bag with n_j rows of probability r_j in class j, the log-probability of its count and the posterior means
and covariances of the positives of each class. `bagwise.stats.binned_counts` is the door.

With z = exp(iu) at the N-th roots of unity, the count's characteristic function is prod_j (1 - r_j + r_j z)^n_j, a sum
of n_j times tabulated logarithms; its mean against z^-k is the probability of k, with a factor h_j = r_j z / (1 - r_j +
r_j z) in front it is the posterior mean of S_j / n_j, with two factors the second moments.
"""

import math
from typing import Any

import numba
import numpy as np

__all__ = ["bin_terms"]

# A mean over roots of unity is exact to 1e-16 absolutely: less probable counts are summed around their own centre.
_ENOUGH = 1e-7
# Nodes whose characteristic function is below exp(-_DROPPED) of its largest value add nothing.
_DROPPED = 40.0

_MATH = {"reassoc", "contract", "nsz", "arcp"}


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _tabulate(r: Any, n_nodes: int, logs: Any, angles: Any, hr: Any, hi: Any) -> None:
    """log |c|, arg c and h = r z / c at each node l of the upper half circle, for c = 1 - r + r z: all (B, L)."""
    step = 2.0 * math.pi / n_nodes
    for j in range(r.shape[0]):
        p = r[j]
        for l in range(logs.shape[1]):
            half = math.sin(0.5 * step * l)
            cos, sin = 1.0 - 2.0 * half * half, math.sin(step * l)
            a, b = 1.0 - 2.0 * p * half * half, p * sin  # 1 - p + p cos u without its loss of digits
            square = a * a + b * b
            logs[j, l] = (
                0.5 * math.log1p(-4.0 * p * (1.0 - p) * half * half) if square > 0.1 else 0.5 * math.log(square)
            )
            angles[j, l] = math.atan2(b, a)
            hr[j, l] = p * (cos * a + sin * b) / square
            hi[j, l] = p * (sin * a - cos * b) / square


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _sum_nodes(n: Any, used: Any, n_used: int, k: int, n_nodes: int, logs: Any, angles: Any, re: Any, im: Any) -> float:
    """Probability of k; the terms phi(u) exp(-iuk), twice but for u = 0, into re and im."""
    L = logs.shape[1]
    for l in range(L):
        re[l] = 0.0
        im[l] = 0.0
    for s in range(n_used):
        j = used[s]
        times = float(n[j])
        for l in range(L):
            re[l] += times * logs[j, l]
            im[l] += times * angles[j, l]
    step = 2.0 * math.pi / n_nodes
    total = 0.0
    for l in range(L):
        if re[l] < -_DROPPED:
            re[l] = 0.0
            im[l] = 0.0
            continue
        angle = im[l] - step * ((l * k) % n_nodes)
        size = math.exp(re[l]) * (1.0 if l == 0 else 2.0)
        re[l] = size * math.cos(angle)
        im[l] = size * math.sin(angle)
        total += re[l]
    return total / n_nodes


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _tilt(n: Any, r: Any, k: int, tilted: Any) -> float:
    """t that makes k the mean of the count when t is added to all log-odds, by bisection; the probabilities then."""
    low, high = -80.0, 80.0
    t = 0.0
    for _ in range(60):
        t = 0.5 * (low + high)
        mean = 0.0
        for j in range(r.shape[0]):
            odds = r[j] / (1.0 - r[j]) * math.exp(t)
            tilted[j] = odds / (1.0 + odds)
            mean += n[j] * tilted[j]
        if mean > k:
            high = t
        else:
            low = t
    return t


@numba.njit(
    "void(int64[:, ::1], int64[::1], float64[::1], float64[::1], int64, boolean, float64[::1], float64[:, ::1],"
    " float64[:, ::1])",
    nogil=True,
    cache=True,
    fastmath=_MATH,
)
def bin_terms(
    n: Any, counts: Any, weights: Any, r: Any, n_nodes: int, curvature: bool, loglik: Any, post: Any, second: Any
) -> None:
    """Log-probability of the counts (m,), posterior means (m, B), and the weighted sum over bags of the posterior
    covariances (B, B), which is added to ``second`` if ``curvature``.

    n (m, B) rows of each class, r (B,) their probabilities strictly within (0, 1); n_nodes odd and large enough for
    every bag (see `bagwise.stats.binned_counts`).
    """
    B = r.shape[0]
    L = (n_nodes + 1) // 2
    logs, angles, hr, hi = np.empty((4, B, L))
    own_logs, own_angles, own_hr, own_hi = np.empty((4, B, L))
    _tabulate(r, n_nodes, logs, angles, hr, hi)
    re, im, fr, fi = np.empty((4, L))
    tilted = np.empty(B)
    used = np.empty(B, np.int64)
    for b in range(counts.shape[0]):
        k, q, n_used = counts[b], 0, 0
        for j in range(B):
            post[b, j] = 0.0
            if n[b, j] > 0:
                used[n_used] = j
                n_used += 1
                q += n[b, j]
        if k == 0 or k == q:
            total = 0.0
            for s in range(n_used):
                j = used[s]
                total += n[b, j] * (math.log1p(-r[j]) if k == 0 else math.log(r[j]))
                post[b, j] = 0.0 if k == 0 else float(n[b, j])
            loglik[b] = total
            continue
        mean = 0.0
        for s in range(n_used):
            mean += n[b, used[s]] * r[used[s]]
        prob, base = 0.0, 0.0
        gr, gi = hr, hi
        if abs(mean - k) < 3.0 * math.sqrt(q):
            prob = _sum_nodes(n[b], used, n_used, k, n_nodes, logs, angles, re, im)
        if not prob > _ENOUGH:
            t = _tilt(n[b], r, k, tilted)
            _tabulate(tilted, n_nodes, own_logs, own_angles, own_hr, own_hi)
            prob = _sum_nodes(n[b], used, n_used, k, n_nodes, own_logs, own_angles, re, im)
            base = -t * k
            for s in range(n_used):
                j = used[s]
                base += n[b, j] * (math.log1p(-r[j]) - math.log1p(-tilted[j]))
            gr, gi = own_hr, own_hi
        loglik[b] = base + math.log(prob)
        share = 1.0 / (prob * n_nodes)
        for s in range(n_used):
            j = used[s]
            total = 0.0
            for l in range(L):
                total += re[l] * gr[j, l] - im[l] * gi[j, l]
            post[b, j] = n[b, j] * min(1.0, max(0.0, total * share))
        if not curvature:
            continue
        weight = weights[b]
        for s in range(n_used):
            j = used[s]
            for l in range(L):
                fr[l] = re[l] * gr[j, l] - im[l] * gi[j, l]
                fi[l] = re[l] * gi[j, l] + im[l] * gr[j, l]
            for v in range(s + 1):
                i = used[v]
                total = 0.0
                for l in range(L):
                    total += fr[l] * gr[i, l] - fi[l] * gi[i, l]
                pairs = n[b, j] * (n[b, j] - 1) if i == j else n[b, i] * n[b, j]
                covariance = pairs * total * share - post[b, i] * post[b, j]
                if i == j:
                    second[j, j] += weight * (covariance + post[b, j])
                else:
                    second[i, j] += weight * covariance
                    second[j, i] += weight * covariance
