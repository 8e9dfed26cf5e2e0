"""Compiled loops for the Poisson-binomial counts of bags.

Owns what is done inside one bag: the likelihood of its count and the posterior of its labels, and one pass
over
feature rows that turns them into sums. `bagwise.stats.poisson_binomial` and `bagwise.learn.likelihood` are
the doors;
this file is imported on first use only, as numba takes a second to load.

Vocabulary (docs/theory/likelihood.md derives it): row i of a bag of q rows is positive with odds exp(eta_i);
the count is
k. The *tilt* t adds the same t to all eta_i. It changes the likelihood by a known factor and the posterior
not at all,
so any t may be used; one that puts the mean count near k keeps every number far from underflow.
"""

import math
from typing import Any

import numba
import numpy as np

__all__ = ["bag_curvature", "bag_sums", "count_terms"]

# Beyond this log-odds a row is certain to rounding. Its posterior is off by at most exp(-bound) / Pr[count]:
# untilted, this is below 1e-16 while Pr[count] is above _ENOUGH; tilted, Pr[count] is at least about 1 / (2.5 sd).
_CERTAIN, _CERTAIN_TILTED = 60.0, 45.0
_ENOUGH = 1e-10
_LOG_ENOUGH = math.log(_ENOUGH)
# log of the largest share of the probability that a dropped tail or node may carry.
_DROPPED = 41.0
# The same for a Hessian, of which eight digits are plenty, as each node costs a square.
_DROPPED_OF_HESSIAN = 18.0
# With at most this many states the dynamic programme costs less than the contour sum
# (benchmarks/likelihood_kernel.py).
_MAX_STATES = 28
# Doubles of work space of one thread for the dynamic programme's table: what the second-level cache holds.
_TABLE = 1 << 16
# Places for nodes: `_by_nodes` never needs more than 41, however large the bag.
_NODES = 64

# A row or node of less weight than this adds nothing to a Hessian that is used to steer and to state errors.
_WEIGHTLESS = 1e-10
# Rows of the buffer that one matrix product takes.
_BUFFER = 128

_MATH = {"reassoc", "contract", "nsz"}

# Rows may be memory-mapped or shared read-only; a writable array passes as a read-only one, not the other way round.
_ROWS = [numba.types.Array(number, 2, "C", readonly=True) for number in (numba.float64, numba.float32)]
_NUMBERS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_OUT = numba.float64[:, ::1]


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _softplus(x: float) -> float:
    """log(1 + exp(x)) without overflow."""
    if x > 0.0:
        return x + math.log1p(math.exp(-x))
    return math.log1p(math.exp(x))


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _log_product(rest: Any, eta: Any, o: int, q: int, sign: float) -> float:
    """sum_i log(1 - sigmoid(sign eta_(o+i))), where rest_i is that factor: few logarithms, and no underflow."""
    total, product = 0.0, 1.0
    for i in range(q):
        if rest[i] > 1e-100:
            product *= rest[i]
            if product < 1e-200:
                total += math.log(product)
                product = 1.0
        else:
            total -= _softplus(sign * eta[o + i])
    return total + math.log(product)


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _tilt_to(eta: Any, o: int, q: int, k: int, goal: float) -> float:
    """t with |sum_i sigmoid(eta_(o+i) + t) - k| at most goal standard deviations: safeguarded Newton."""
    low = high = eta[o]
    for i in range(o, o + q):
        low = min(low, eta[i])
        high = max(high, eta[i])
    centre = math.log(k / (q - k))
    left, right = centre - high, centre - low  # all probabilities below, above k / q
    t = 0.0
    if not left <= t <= right:
        t = 0.5 * (left + right)
    for _ in range(200):
        mean = var = 0.0
        for i in range(o, o + q):
            x = eta[i] + t
            e = math.exp(-abs(x))
            small = e / (1.0 + e)
            mean += 1.0 - small if x > 0.0 else small
            var += small * (1.0 - small)
        gap = mean - k
        if gap * gap <= goal * goal * var or right - left <= 1e-9:
            break
        if gap > 0.0:
            right = t
        else:
            left = t
        t = t - gap / var if var > 0.0 else left - 1.0
        if not left < t < right:
            t = 0.5 * (left + right)
    return t


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _by_states(P: Any, Q: Any, n: int, s: int, post: Any, table: Any, ahead: Any) -> Any:
    """Probability that s of n rows are positive, posteriors into post: forward and backward sums over s + 1
    states.

     table[i, j]: the first i rows hold j positives. ahead[j]: the rows from i on turn j into s.
    """
    width = s + 1
    for j in range(width):
        table[j] = 0.0
    table[0] = 1.0
    for i in range(n):
        here, there = i * width, (i + 1) * width
        p, o = P[i], Q[i]
        table[there] = table[here] * o
        for j in range(1, width):
            table[there + j] = table[here + j] * o + table[here + j - 1] * p
    prob = table[n * width + s]
    if not prob > 0.0:
        return prob
    for j in range(s):
        ahead[j] = 0.0
    ahead[s] = 1.0
    ahead[s + 1] = 0.0
    share = 1.0 / prob
    for i in range(n - 1, -1, -1):
        here = i * width
        p, o = P[i], Q[i]
        total = 0.0
        for j in range(width):
            following = ahead[j + 1]
            total += table[here + j] * following
            ahead[j] = ahead[j] * o + following * p
        post[i] = p * total * share
    return prob


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _by_nodes(P: Any, n: int, k: int, var: float, gap: float, post: Any, work: Any) -> Any:
    """As `_by_states` by the trapezoidal sum of the characteristic function over the circle.

    With N nodes the sum is Pr[K = k] + sum over j != 0 of Pr[K = k + j N]: N is chosen by Bernstein's inequality so
    that these are below exp(-_DROPPED), and nodes are left out where |phi(u)|^2 <= exp(-4 var sin^2(u / 2)) is.
    N is odd, so that no factor 1 - P + P exp(iu) of a node vanishes.
    """
    reach = _DROPPED / 3.0
    reach += math.sqrt(reach * reach + 2.0 * _DROPPED * var) + gap + 2.0
    nodes = min(int(reach) + 1, max(k, n - k) + 2)
    nodes += 1 - nodes % 2
    used = (nodes + 1) // 2
    edge = _DROPPED / (2.0 * var)
    if edge < 1.0:
        used = min(used, int(math.asin(math.sqrt(edge)) * nodes / math.pi) + 2)
    step = 2.0 * math.pi / nodes
    re, im, turn, rise = work[0, :used], work[1, :used], work[2, :used], work[3, :used]
    for l in range(used):
        re[l], im[l] = 1.0, 0.0
        half = math.sin(0.5 * step * l)
        turn[l] = 2.0 * half * half  # 1 - cos u
        rise[l] = math.sin(step * l)
    for i in range(n):
        p = P[i]
        for l in range(used):
            a, b = 1.0 - p * turn[l], p * rise[l]
            x = re[l] * a - im[l] * b
            im[l] = re[l] * b + im[l] * a
            re[l] = x
    total = 0.0
    for l in range(used):  # phi(u) exp(-iuk), twice but for u = 0; then times exp(iu), for the posteriors
        angle = step * ((l * k) % nodes)
        c, z = math.cos(angle), math.sin(angle)
        scale = 1.0 if l == 0 else 2.0
        x, y = scale * (re[l] * c + im[l] * z), scale * (im[l] * c - re[l] * z)
        total += x
        c = 1.0 - turn[l]
        re[l], im[l] = x * c - y * rise[l], x * rise[l] + y * c
    prob = total / nodes
    if not prob > 0.0:
        return prob
    share = 1.0 / total
    for i in range(n):
        p = P[i]
        lifted = 0.0
        for l in range(used):
            a, b = 1.0 - p * turn[l], p * rise[l]
            lifted += (re[l] * a + im[l] * b) / (a * a + b * b)
        post[i] = min(1.0, max(0.0, p * lifted * share))
    return prob


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _bag(
    eta: Any,
    post: Any,
    o: int,
    q: int,
    k: int,
    prior: Any,
    rest: Any,
    P: Any,
    Q: Any,
    found: Any,
    tilted: Any,
    rows: Any,
    table: Any,
    ahead: Any,
    work: Any,
) -> Any:
    """Log-likelihood, mean and variance of the count of the bag of rows o to o + q.

    Its entries of post are written, and prior and rest = 1 - prior from 0 on.
    """
    mean = var = 0.0
    for i in range(q):
        x = eta[o + i]
        e = math.exp(-abs(x))
        small = e / (1.0 + e)
        if x > 0.0:
            prior[i], rest[i] = 1.0 - small, small
        else:
            prior[i], rest[i] = small, 1.0 - small
        mean += prior[i]
        var += small * (1.0 - small)
    if k == 0 or k == q:
        for i in range(q):
            post[o + i] = 0.0 if k == 0 else 1.0
        return _log_product(rest, eta, o, q, 1.0) if k == 0 else _log_product(prior, eta, o, q, -1.0), mean, var
    # Untilted first; tilted where that loses digits.
    for attempt in range(2):
        t = 0.0
        n, left = 0, k
        base = 0.0
        near_mean, near_var = mean, var
        if attempt == 0:
            for i in range(q):
                x = eta[o + i]
                if x > _CERTAIN:
                    post[o + i] = 1.0
                    left -= 1
                    near_mean -= 1.0
                elif x < -_CERTAIN:
                    post[o + i] = 0.0
                else:
                    rows[n], P[n], Q[n] = i, prior[i], rest[i]
                    n += 1
        else:
            t = _tilt_to(eta, o, q, k, 0.5)
            near_mean = near_var = 0.0
            for i in range(q):
                x = eta[o + i] + t
                found[i] = x
                e = math.exp(-abs(x))
                small = e / (1.0 + e)
                tilted[i] = 1.0 - small if x < 0.0 else small
                if x > _CERTAIN_TILTED:
                    left -= 1
                elif x >= -_CERTAIN_TILTED:
                    rows[n] = i
                    if x > 0.0:
                        P[n], Q[n] = 1.0 - small, small
                    else:
                        P[n], Q[n] = small, 1.0 - small
                    near_mean += P[n]
                    near_var += small * (1.0 - small)
                    n += 1
            base = _log_product(rest, eta, o, q, 1.0) - _log_product(tilted, found, 0, q, 1.0) - t * k
            for i in range(q):
                post[o + i] = 1.0 if found[i] > 0.0 else 0.0
        if left < 0 or left > n:
            continue
        if left == 0 or left == n:
            log_prob = 0.0
            for i in range(n):
                log_prob += math.log(Q[i] if left == 0 else P[i])
                post[o + rows[i]] = 0.0 if left == 0 else 1.0
            if attempt == 0 and log_prob < _LOG_ENOUGH:
                continue
            return base + log_prob, mean, var
        flip = 2 * left > n
        s = n - left if flip else left
        if s < _MAX_STATES and (n + 1) * (s + 1) <= _TABLE:
            if flip:
                prob = _by_states(Q, P, n, s, found, table, ahead)
            else:
                prob = _by_states(P, Q, n, s, found, table, ahead)
            for i in range(n):
                post[o + rows[i]] = 1.0 - found[i] if flip else found[i]
        else:
            gap = abs(near_mean - left)
            if attempt == 0 and gap * gap > near_var:
                continue
            prob = _by_nodes(P, n, left, near_var, gap, found, work)
            for i in range(n):
                post[o + rows[i]] = found[i]
        if prob > _ENOUGH:
            return base + math.log(prob), mean, var
    return -np.inf, mean, var


@numba.njit(
    "void(float64[::1], int64[::1], int64[::1], float64[::1], float64[::1])", nogil=True, cache=True, fastmath=_MATH
)
def count_terms(eta: Any, starts: Any, counts: Any, loglik: Any, post: Any) -> None:
    """Log-likelihood (m,) of the counts and posterior (n,) of the rows, for log-odds eta (n,) of m bags."""
    longest = 1
    for b in range(counts.shape[0]):
        longest = max(longest, starts[b + 1] - starts[b])
    prior, rest, P, Q, found, tilted = np.empty((6, longest))
    rows = np.empty(longest, np.int64)
    table, ahead = np.empty(_TABLE), np.empty(_MAX_STATES + 2)
    work = np.empty((4, _NODES))
    for b in range(counts.shape[0]):
        o = starts[b] - starts[0]
        loglik[b], _, _ = _bag(
            eta,
            post,
            o,
            starts[b + 1] - starts[b],
            counts[b],
            prior,
            rest,
            P,
            Q,
            found,
            tilted,
            rows,
            table,
            ahead,
            work,
        )


@numba.njit(
    [
        numba.void(rows, *[_INTEGERS] * 3, *[_NUMBERS] * 3, *[numba.float64] * 3, _OUT, numba.float64[::1], _OUT)
        for rows in _ROWS
    ],
    nogil=True,
    cache=True,
    fastmath=_MATH,
)
def bag_sums(
    X: Any,
    firsts: Any,
    sizes: Any,
    counts: Any,
    weights: Any,
    centre: Any,
    coef: Any,
    intercept: float,
    low: float,
    high: float,
    terms: Any,
    gradient: Any,
    scores: Any,
) -> None:
    """What one pass over the rows of m bags tells about Pr[label = 1 | x] = low + (high - low) sigmoid(coef.x +
    intercept).

    Bag b holds rows firsts[b] to firsts[b] + sizes[b] of X. Written per bag: terms (m, 4) log-likelihood, mean,
    variance and fourth cumulant of the count. Added to gradient (d + 3,): the weighted sum of the bags' gradients in
    (coef, intercept, low, high); these themselves go into scores (m, d + 3), unless it has no rows.
    """
    d = X.shape[1]
    longest = 1
    for b in range(counts.shape[0]):
        longest = max(longest, sizes[b])
    prior, rest, post, P, Q, found, tilted, eta, share, lever = np.empty((10, longest))
    rows = np.empty(longest, np.int64)
    table, ahead = np.empty(_TABLE), np.empty(_MAX_STATES + 2)
    work = np.empty((4, _NODES))
    score = np.zeros(d + 3)
    apart = scores.shape[0] > 0
    noisy = low != 0.0 or high != 1.0
    for b in range(counts.shape[0]):
        first, q = firsts[b], sizes[b]
        for i in range(q):
            z = 0.0
            for j in range(d):
                z += coef[j] * (X[first + i, j] - centre[j])
            z += intercept
            if noisy:
                e = math.exp(-abs(z))
                small = e / (1.0 + e)
                up = 1.0 - small if z > 0.0 else small
                down = small if z > 0.0 else 1.0 - small
                p = max(low + (high - low) * up, 1e-290)
                o = max(1.0 - high + (high - low) * down, 1e-290)
                eta[i] = math.log(p / o)
                share[i] = up
                lever[i] = (high - low) * small * (1.0 - small) / (p * o)
            else:
                eta[i] = z
        if q == 1:  # an ordinary label
            x = eta[0] if counts[b] == 0 else -eta[0]
            e = math.exp(-abs(x))
            small = e / (1.0 + e)
            prior[0] = 1.0 - small if eta[0] > 0.0 else small
            rest[0] = small if eta[0] > 0.0 else 1.0 - small
            post[0] = 1.0 if counts[b] == 1 else 0.0
            terms[b, 0], terms[b, 1], terms[b, 2] = -math.log1p(e) - max(x, 0.0), prior[0], prior[0] * rest[0]
        else:
            terms[b, 0], terms[b, 1], terms[b, 2] = _bag(
                eta, post, 0, q, counts[b], prior, rest, P, Q, found, tilted, rows, table, ahead, work
            )
        if apart:
            for j in range(d + 3):
                score[j] = 0.0
        scale = 1.0 if apart else weights[b]
        fourth = 0.0
        for i in range(q):
            pull = scale * (post[i] - prior[i])
            push = prior[i] * rest[i]
            fourth += push * (1.0 - 6.0 * push)
            if noisy:
                each = pull / max(push, 1e-300)
                score[d + 1] += each * (1.0 - share[i])
                score[d + 2] += each * share[i]
                pull *= lever[i]
            score[d] += pull
            if abs(pull) > 1e-18:
                for j in range(d):
                    score[j] += pull * (X[first + i, j] - centre[j])
        terms[b, 3] = fourth
        if apart:
            for j in range(d + 3):
                scores[b, j] = score[j]
                gradient[j] += weights[b] * score[j]
    if not apart:
        for j in range(d + 3):
            gradient[j] += score[j]


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _flush(F: Any, weights: Any, filled: int, H: Any) -> int:
    """H += F^T diag(weights) F of the filled rows; returns 0, the rows then filled."""
    if filled > 0:
        weighted = F[:filled] * weights[:filled].reshape(filled, 1)
        H += np.dot(F[:filled].T, weighted)
    return 0


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _add_row(X: Any, at: int, centre: Any, weight: float, F: Any, by: Any, filled: int, H: Any) -> int:
    """weight times the square of (row, 1, 0, 0) into the buffer; returns the rows then filled."""
    d = X.shape[1]
    if filled == F.shape[0]:
        filled = _flush(F, by, filled, H)
    for j in range(d):
        F[filled, j] = X[at, j] - centre[j]
    F[filled, d], F[filled, d + 1], F[filled, d + 2] = 1.0, 0.0, 0.0
    by[filled] = weight
    return filled + 1


@numba.njit(nogil=True, cache=True, fastmath=_MATH)
def _add_levels(
    X: Any,
    at: int,
    centre: Any,
    scale: float,
    h: float,
    lever: float,
    by_low: float,
    by_high: float,
    cross: float,
    H: Any,
) -> None:
    """The entries of one row in which a level takes part: h g g^T, and what crosses levels and log-odds."""
    d = X.shape[1]
    low, high = scale * (h * lever * by_low - cross), scale * (h * lever * by_high + cross)
    for j in range(d):
        x = X[at, j] - centre[j]
        H[j, d + 1] += low * x
        H[d + 1, j] += low * x
        H[j, d + 2] += high * x
        H[d + 2, j] += high * x
    H[d, d + 1] += low
    H[d + 1, d] += low
    H[d, d + 2] += high
    H[d + 2, d] += high
    H[d + 1, d + 1] += scale * h * by_low * by_low
    H[d + 2, d + 2] += scale * h * by_high * by_high
    H[d + 1, d + 2] += scale * h * by_low * by_high
    H[d + 2, d + 1] += scale * h * by_low * by_high


@numba.njit(
    [numba.void(rows, *[_INTEGERS] * 3, *[_NUMBERS] * 3, *[numba.float64] * 3, _OUT) for rows in _ROWS],
    nogil=True,
    cache=True,
    fastmath=_MATH,
)
def bag_curvature(
    X: Any,
    firsts: Any,
    sizes: Any,
    counts: Any,
    weights: Any,
    centre: Any,
    coef: Any,
    intercept: float,
    low: float,
    high: float,
    H: Any,
) -> None:
    """Adds the weighted sum over bags of the exact Hessian of the log-likelihood in (coef, intercept, low, high) to H.

    With g_i the gradient of the log-odds eta_i, S = sum_i y_i g_i and r_i = posterior - prior of row i, the Hessian of
    a bag is Cov[S | count] - Cov[S] + sum_i r_i Hess eta_i. Given the count, labels are dependent; the trapezoidal sum
    of `_by_nodes` makes them independent at each node u with complex probabilities tau_i(u), so that

        Cov[S | count] = sum_u Re c_u M_u M_u^T + diagonal part,   M_u = sum_i (tau_i(u) - posterior_i) g_i.
    """
    d = X.shape[1]
    D = d + 3
    longest = 1
    for b in range(counts.shape[0]):
        longest = max(longest, sizes[b])
    eta, prior, rest, P, lever, each, bend, by_low, by_high, spread = np.empty((10, longest))
    rows = np.empty(longest, np.int64)
    re, im, turn, rise, c_re, c_im = np.empty((6, _NODES))
    M_re, M_im = np.zeros((_NODES, D)), np.zeros((_NODES, D))
    F, by = np.empty((_BUFFER, D)), np.empty(_BUFFER)
    filled = 0
    noisy = low != 0.0 or high != 1.0
    contrast = high - low
    for b in range(counts.shape[0]):
        first, q, k = firsts[b], sizes[b], counts[b]
        scale = weights[b]
        if scale == 0.0:
            continue
        mean = var = 0.0
        for i in range(q):
            z = intercept
            for j in range(d):
                z += coef[j] * (X[first + i, j] - centre[j])
            e = math.exp(-abs(z))
            small = e / (1.0 + e)
            up = 1.0 - small if z > 0.0 else small
            down = small if z > 0.0 else 1.0 - small
            sigma_slope = up * down
            if noisy:
                p = max(low + contrast * up, 1e-290)
                o = max(1.0 - high + contrast * down, 1e-290)
                eta[i] = math.log(p / o)
                prior[i], rest[i] = p, o
                spread[i] = p * o
                lever[i] = contrast * sigma_slope / (p * o)
                # Of Hess eta: r_i (each f_zz - (1 - 2 f) g g^T), r_i still to come.
                each[i] = contrast * sigma_slope * (down - up) / (p * o)
                bend[i] = p - o
                by_low[i], by_high[i] = down / (p * o), up / (p * o)
            else:
                eta[i] = z
                prior[i], rest[i] = up, down
                spread[i] = sigma_slope
                lever[i] = 1.0
            mean += prior[i]
            var += spread[i]
        tilt = 0.0
        if 0 < k < q and (mean - k) * (mean - k) > var:
            tilt = _tilt_to(eta, 0, q, k, 0.5)
        # Rows that neither prior nor posterior leaves open drop out; they have the label they tend to.
        n, left = 0, k
        near_mean = near_var = 0.0
        for i in range(q):
            x = eta[i] + tilt
            e = math.exp(-abs(x))
            small = e / (1.0 + e)
            doubt = small * (1.0 - small)
            if 0 < k < q and doubt > _WEIGHTLESS:
                rows[n] = i
                P[n] = 1.0 - small if x > 0.0 else small
                near_mean += P[n]
                near_var += doubt
                n += 1
            else:
                known = 1.0 if (x > 0.0 and k > 0) or k == q else 0.0
                left -= int(known)
                # known - prior to its last digit, and -spread + r bend, which then is -r^2.
                r = rest[i] if known == 1.0 else -prior[i]
                if noisy:
                    hx = r * each[i] - (lever[i] * r) ** 2
                else:
                    hx = -spread[i]
                if abs(hx) > _WEIGHTLESS or noisy:
                    filled = _add_row(X, first + i, centre, scale * hx, F, by, filled, H)
                    if noisy:
                        _add_levels(
                            X,
                            first + i,
                            centre,
                            scale,
                            -r * r,
                            lever[i],
                            by_low[i],
                            by_high[i],
                            r * lever[i] / contrast,
                            H,
                        )
        if n == 0:
            continue
        if left < 0 or left > n:
            left = min(max(left, 0), n)
        gap = abs(near_mean - left)
        reach = _DROPPED_OF_HESSIAN / 3.0
        reach += math.sqrt(reach * reach + 2.0 * _DROPPED_OF_HESSIAN * near_var) + gap + 2.0
        nodes = min(int(reach) + 1, max(left, n - left) + 2)
        nodes += 1 - nodes % 2
        used = (nodes + 1) // 2
        edge = _DROPPED_OF_HESSIAN / (2.0 * near_var)
        if edge < 1.0:
            used = min(used, int(math.asin(math.sqrt(edge)) * nodes / math.pi) + 2)
        step = 2.0 * math.pi / nodes
        for l in range(used):
            half = math.sin(0.5 * step * l)
            turn[l] = 2.0 * half * half  # 1 - cos u
            rise[l] = math.sin(step * l)
            re[l], im[l] = 1.0, 0.0
        for i in range(n):
            for l in range(used):
                a, c = 1.0 - P[i] * turn[l], P[i] * rise[l]
                x = re[l] * a - im[l] * c
                im[l] = re[l] * c + im[l] * a
                re[l] = x
        total = 0.0
        for l in range(used):
            angle = step * ((l * left) % nodes)
            c, z = math.cos(angle), math.sin(angle)
            twice = 1.0 if l == 0 else 2.0
            c_re[l] = twice * (re[l] * c + im[l] * z)
            c_im[l] = twice * (im[l] * c - re[l] * z)
            total += c_re[l]
        if not total > 0.0:
            continue
        for l in range(used):
            c_re[l] /= total
            c_im[l] /= total
            for j in range(D):
                M_re[l, j] = 0.0
                M_im[l, j] = 0.0
        for i in range(n):
            row = rows[i]
            # tau = P exp(iu) / (1 - P + P exp(iu)); its weighted mean over the nodes is the posterior.
            found = square = 0.0
            for l in range(used):
                a, c = 1.0 - P[i] * turn[l], P[i] * rise[l]
                size = P[i] / (a * a + c * c)
                e_re, e_im = 1.0 - turn[l], rise[l]
                re[l], im[l] = size * (e_re * a + e_im * c), size * (e_im * a - e_re * c)
                found += c_re[l] * re[l] - c_im[l] * im[l]
            for l in range(used):
                re[l] -= found
                x, y = re[l] * re[l] - im[l] * im[l], 2.0 * re[l] * im[l]
                square += c_re[l] * x - c_im[l] * y
            r = found - prior[row]
            h = found * (1.0 - found) - square - spread[row]
            at = first + row
            if noisy:
                hx = lever[row] * lever[row] * (h + r * bend[row]) + r * each[row]
            else:
                hx = h
            filled = _add_row(X, at, centre, scale * hx, F, by, filled, H)
            if noisy:
                _add_levels(
                    X,
                    at,
                    centre,
                    scale,
                    h + r * bend[row],
                    lever[row],
                    by_low[row],
                    by_high[row],
                    r * lever[row] / contrast,
                    H,
                )
            for l in range(used):
                u, v = lever[row] * re[l], lever[row] * im[l]
                for j in range(d):
                    M_re[l, j] += u * (X[at, j] - centre[j])
                for j in range(d):
                    M_im[l, j] += v * (X[at, j] - centre[j])
                M_re[l, d] += u
                M_im[l, d] += v
                if noisy:
                    M_re[l, d + 1] += re[l] * by_low[row]
                    M_im[l, d + 1] += im[l] * by_low[row]
                    M_re[l, d + 2] += re[l] * by_high[row]
                    M_im[l, d + 2] += im[l] * by_high[row]
        for l in range(used):
            # Re c M M^T = A A^T - B B^T with A + iB = sqrt(c) M
            size = math.sqrt(c_re[l] * c_re[l] + c_im[l] * c_im[l])
            if size < 1e-17:
                continue
            x, y = math.sqrt(max(0.5 * (size + c_re[l]), 0.0)), math.sqrt(max(0.5 * (size - c_re[l]), 0.0))
            if c_im[l] < 0.0:
                y = -y
            if filled + 2 > _BUFFER:
                filled = _flush(F, by, filled, H)
            for j in range(D):
                F[filled, j] = x * M_re[l, j] - y * M_im[l, j]
                F[filled + 1, j] = x * M_im[l, j] + y * M_re[l, j]
            by[filled], by[filled + 1] = scale, -scale
            filled += 2
    _flush(F, by, filled, H)
