"""The constants that the paper's sample sizes leave open, by simulation: smallest that suffice on a grid of problems.

Run: python benchmarks/calibrate_sample_sizes.py [lemma ...]. For every lemma and theorem it finds, at each grid point,
the bags at which the promised share of data sets meets the promised error (bisection, 200 data sets a step, whitened
coordinates, condition number 1, the literal Algorithm 1: one row and one pair per bag, from fresh bags), divides by
the formula with constant 1, and prints the largest ratio: the default constant of `bagwise.theory.sample_sizes` is
that, rounded up. A constant is as good as its grid: it is a calibration, not a proof.
"""

import sys
from collections.abc import Callable, Iterable
from math import ceil, log, pi

import numpy as np
from scipy.linalg import eigh
from scipy.special import log_ndtr, ndtr, ndtri_exp

from bagwise.theory.kappas import bag_profile

DATA_SETS = 200
rng = np.random.default_rng(0)


def above(l: float, n: int) -> np.ndarray:
    """n standard normals given that they exceed l."""
    return -ndtri_exp(log_ndtr(-l) + np.log1p(-rng.random(n)))


def along(labels: np.ndarray, l: float) -> np.ndarray:
    """The coordinate along the normal of rows with these labels."""
    g = np.empty(labels.shape)
    g[labels], g[~labels] = above(l, labels.sum()), -above(-l, (~labels).sum())
    return g


def scatter(square: float, dof: int, d: int) -> np.ndarray:
    """Scatter of rows whose first coordinates have this sum of squares and whose others are normal (Bartlett)."""
    out, z = np.zeros((d, d)), rng.standard_normal(d - 1)
    out[0, 0] = square
    if d > 1:
        out[0, 1:] = out[1:, 0] = np.sqrt(square) * z
        A = np.tril(rng.standard_normal((d - 1, d - 1)), -1)
        A[np.diag_indices(d - 1)] = np.sqrt(rng.chisquare(np.maximum(dof - 1 - np.arange(d - 1), 1e-9)))
        out[1:, 1:] = np.outer(z, z) + A @ A.T
    return out


def mean_covs(q: int, k: int, l: float, d: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Algorithm 1's mean, Sigma_B and Sigma_D from two times m fresh bags."""
    x = along(rng.random(m) < k / q, l)
    mean = np.concatenate([[x.mean()], rng.standard_normal(d - 1) / np.sqrt(m)])
    first = rng.random(m) < k / q
    second = rng.random(m) < (k - first) / (q - 1)
    y = along(first, l) - along(second, l)
    difference = scatter(float(y @ y), m, d) / m
    if d > 1:  # coordinates across have variance 2
        scale = np.diag([1.0] + [np.sqrt(2.0)] * (d - 1))
        difference = scale @ difference @ scale
    return mean, scatter(float(((x - x.mean()) ** 2).sum()), m - 1, d) / m, difference


def spectral_tangent(q: int, k: int, l: float, d: int, m: int) -> float:
    """Signed tangent of the angle of the literal spectral direction; infinite if Sigma_B is singular."""
    if m <= d + 1:
        return np.inf
    _, B, D = mean_covs(q, k, l, d, m)
    r = eigh(D, B, subset_by_index=[d - 1, d - 1])[1][:, 0]
    return float(np.sqrt(r[1:] @ r[1:]) / abs(r[0]))


def distance(tangent: float) -> float:
    """min |r - u|, |r + u| of unit vectors at this angle."""
    return float(2 * np.sin(np.arctan(tangent) / 2))


def bags_needed(error: Callable[[int], float], eps: float, share: float, start: float) -> float:
    """Bags at which `share` of data sets has an error of at most eps, within 5 %."""

    def enough(m: float) -> bool:
        errors = np.sort([error(ceil(m)) for _ in range(DATA_SETS)])
        return bool(errors[ceil(share * DATA_SETS) - 1] <= eps)

    low = high = max(start, 2.0)
    if enough(high):
        while low > 2 and enough(low / 2):
            low /= 2
        low, high = low / 2, low
    else:
        while not enough(high * 2):
            high *= 2
        low, high = high, 2 * high
    while high / low > 1.05:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


Cell = tuple[str, float]


def lemma_3_1() -> Iterable[Cell]:
    """m eps^2 / (d max(1, l^4) log(d / delta))."""
    for d in (1, 2, 10, 30):
        for q, k in ((2, 1), (5, 1), (10, 8)):
            for l in (-4.0, -1.0, 0.0, 1.0, 2.0):
                profile = bag_profile(q, k, l)
                SB = np.diag([profile.variance] + [1.0] * (d - 1))
                SD = np.diag([2 * profile.variance + profile.kappa2] + [2.0] * (d - 1))
                mean = np.array([profile.shift] + [0.0] * (d - 1))

                def error(m, q=q, k=k, l=l, d=d, SB=SB, SD=SD, mean=mean):
                    a, B, D = mean_covs(q, k, l, d, m)
                    return max(2 * np.linalg.norm(a - mean), np.linalg.norm(B - SB, 2), np.linalg.norm(D - SD, 2))

                for eps in (0.3, 0.9):
                    for delta in (0.05, 0.5):
                        scale = d * max(1, l**4) * log(d / delta) / eps**2
                        yield (
                            f"d={d} {q},{k} l={l} eps={eps} delta={delta}",
                            bags_needed(error, eps, 1 - delta, scale) / scale,
                        )


def lemma_a_1() -> Iterable[Cell]:
    """m eps^2 eta^2 / (d log(d / delta))."""
    for d in (2, 10, 50):
        for q, k in ((3, 1), (10, 9), (10, 6)):
            eta2, p = (2 * k / q - 1) ** 2 * 2 / pi, max(k, q - k) / q

            def error(m, d=d, p=p):
                x = along(rng.random(m) < p, 0.0).mean()
                r = np.concatenate([[x], rng.standard_normal(d - 1) / np.sqrt(m)])
                return float(np.linalg.norm(r / np.linalg.norm(r) - np.eye(d)[0]))

            for eps in (0.3, 0.9):
                for delta in (0.05, 0.5):
                    scale = d * log(d / delta) / eps**2 / eta2
                    yield f"d={d} {q},{k} eps={eps} delta={delta}", bags_needed(error, eps, 1 - delta, scale) / scale


def lemma_4_1() -> Iterable[Cell]:
    """m eps^4 / (d max(1, l^2) log(d / delta) q^4), also of Lemma C.1."""
    for d in (2, 10):
        for q, k in ((2, 1), (3, 1), (3, 2), (5, 1), (5, 4)):
            for l in (0.0, 1.0, 2.0, 4.0):
                error = lambda m, q=q, k=k, l=l, d=d: distance(spectral_tangent(q, k, l, d, m))
                for eps in (0.5, 0.95):
                    for delta in (0.1, 0.8):
                        scale = d * max(1, l**2) * log(d / delta) * q**4 / eps**4
                        needed = bags_needed(error, eps, 1 - delta / 2, 200.0)
                        yield f"d={d} {q},{k} l={l} eps={eps} delta={delta}", needed / scale


def theorem_1() -> Iterable[Cell]:
    """m eps^2 eta^2 / (d log(d / delta)) for an instance error of eps."""
    for d in (2, 10, 50):
        for q, k in ((3, 1), (10, 9), (10, 6)):
            eta2, p = (2 * k / q - 1) ** 2 * 2 / pi, max(k, q - k) / q

            def error(m, d=d, p=p):
                x = along(rng.random(m) < p, 0.0).mean()
                return float(np.arctan2(np.linalg.norm(rng.standard_normal(d - 1)) / np.sqrt(m), x) / pi)

            for eps in (0.1, 0.3):
                for delta in (0.05, 0.5):
                    scale = d * log(d / delta) / eps**2 / eta2
                    yield (
                        f"d={d} {q},{k} eps={eps} delta={delta}",
                        bags_needed(error, eps, 1 - delta, scale / 9) / scale,
                    )


def theorem_2() -> Iterable[Cell]:
    """m eps^4 / (d log(d / delta) q^8), with q^4 for q = 2 k; the sign from 200 bags."""
    for d in (2, 10):
        for q, k in ((2, 1), (3, 1), (4, 2), (5, 4)):

            def error(m, q=q, k=k, d=d):
                angle = np.arctan(spectral_tangent(q, k, 0.0, d, m))
                if 2 * k != q:
                    z = along(np.tile(np.arange(q) < k, (200, 1)), 0.0)
                    found = np.cos(angle) * z + np.sin(angle) * rng.standard_normal(z.shape) > 0
                    wrong = [(found.sum(axis=1) != k).mean(), ((~found).sum(axis=1) != k).mean()]
                    angle = angle if wrong[0] <= wrong[1] else pi - angle
                return float(angle / pi)

            for eps in (0.1, 0.3):
                for delta in (0.1, 0.5):
                    scale = d * log(d / delta) * q ** (4 if 2 * k == q else 8) / eps**4
                    yield (
                        f"d={d} {q},{k} eps={eps} delta={delta}",
                        bags_needed(error, eps, 1 - delta, 200.0) / scale,
                    )


def theorem_3() -> Iterable[Cell]:
    """m eps^4 (Phi (1 - Phi))^4 / (d max(1, l^2) log(d / delta) q^8); sign and offset from 2000 bags."""
    for d in (2, 10):
        for q, k in ((2, 1), (3, 1), (3, 2)):
            for l in (0.0, 1.0, 2.0):

                def error(m, q=q, k=k, l=l, d=d):
                    angle = np.arctan(spectral_tangent(q, k, l, d, m))
                    z = along(np.tile(np.arange(q) < k, (2000, 1)), l)
                    s = np.cos(angle) * z + np.sin(angle) * rng.standard_normal(z.shape)
                    best = max(((*best_cut(sign * s, k), sign) for sign in (1, -1)), key=lambda cut: cut[0])
                    g = rng.standard_normal((2, 20000))
                    found = best[2] * (np.cos(angle) * g[0] + np.sin(angle) * g[1]) > best[1]
                    wrong = (found != (g[0] > l)).mean()
                    return float(min(wrong, 1 - wrong) if 2 * k == q else wrong)

                for eps in (0.1, 0.2, 0.4):
                    if eps >= min(ndtr(l), ndtr(-l)):
                        continue
                    delta = 0.2
                    tails = ndtr(l) * ndtr(-l)
                    scale = d * max(1, l**2) * log(d / delta) * q**8 / (eps * tails) ** 4
                    yield f"d={d} {q},{k} l={l} eps={eps}", bags_needed(error, eps, 1 - delta, 200.0) / scale


def best_cut(s: np.ndarray, k: int) -> tuple[float, float]:
    """(bags satisfied, cut) of the cut that satisfies most bags."""
    s = -np.sort(-s, axis=1)
    ends = np.concatenate([s[:, k], s[:, k - 1]])
    order = np.argsort(ends, kind="stable")
    satisfied = np.cumsum(np.repeat([1, -1], len(s))[order])
    i = int(satisfied.argmax())
    return float(satisfied[i]), float(ends[order[i : i + 2]].mean())


STATEMENTS = {f.__name__: f for f in (lemma_3_1, lemma_a_1, lemma_4_1, theorem_1, theorem_2, theorem_3)}

if __name__ == "__main__":
    start = rng.bit_generator.state
    for name in sys.argv[1:] or STATEMENTS:
        rng.bit_generator.state = start  # a statement alone repeats what it gives among all
        cells = list(STATEMENTS[name]())
        where, constant = max(cells, key=lambda cell: cell[1])
        print(
            f"{name:10s} {constant:.3g} at {where}; median {np.median([c for _, c in cells]):.2g} of {len(cells)} cells"
        )
        sys.stdout.flush()
