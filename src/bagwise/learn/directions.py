"""Moments -> normal: where the boundary points, up to its sign and offset.

Owns the paper's spectral direction, the mean direction, the slope (mean-map) direction and their best combination.
Letters: S_w = ``cov_within``, S_b = ``cov_residual``, D = ``slope``, A = ``count_scatter``, lam = ``pair_weight``; C is
the covariance of one class, r a normal.

What a bag of one class distribution tells, for any two classes with means D apart:

    S_b ~ C,   S_w ~ C + lam D D^T,   slope ~ D.

Fisher's normal r = C^-1 D therefore shows twice: as the direction in which S_w most exceeds S_b (the paper's spectral
direction: for one (q, k) the pencils (Sigma_D, Sigma_B) and (S_w, S_b) have the same eigenvectors), and as S_w^-1
slope. The first needs no variation of k, the second needs it. `combined_direction` weighs both by their noise.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.errors import NotIdentifiableError
from bagwise.ltf import LTF
from bagwise.stats.linalg import Whitener, eigenpairs, whitener
from bagwise.stats.moments import Moments

__all__ = [
    "Direction",
    "combined_direction",
    "fisher_ltf",
    "mean_direction",
    "one_row_mean_direction",
    "slope_direction",
    "spectral_direction",
]

_MAX_STEPS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """A unit normal and how it was found.

    Attributes
    ----------
    normal : unit vector of shape (d,)
    source : "pairs", "means" or "both"
    ratios : eigenvalues rho of (Sigma_D, Sigma_B), ascending; empty when pairs were not used
    rank : dimension that the features span
    sine : expected root mean square sine of the angle to the true normal, in the metric of a class; nan where unknown
    contradiction : distances of the class means by pairs and by means, in standard deviations of a class, where the
        first is far above the second: the totals then vary by noise rather than with the rows
    """

    normal: FloatArray
    source: Literal["pairs", "means", "both"]
    ratios: FloatArray
    rank: int
    sine: float
    contradiction: tuple[float, float] | None = None


def spectral_direction(moments: Moments) -> Direction:
    """Direction with the largest ratio of difference to bag variance [BSR23, Alg. 2 and 4].

    Solves Sigma_D r = rho Sigma_B r for the largest rho, where Sigma_D is ``cov_diff`` and Sigma_B ``cov_given_count``.
    Costs O(d^3). The sign is arbitrary; ``best_threshold`` settles it.
    """
    if moments.n_pairs <= 0 or moments.pair_weight <= 0:
        raise NotIdentifiableError(
            "pairs tell a direction only if some bag has a positive and a negative row; "
            f"got {moments.n_bags:g} bags of {moments.n_rows:g} rows without one. Learn from the means (MeanMap) "
            f"instead."
        )
    W = whitener(moments.cov_bag)
    ratios, vectors = eigenpairs(W.covariance(moments.cov_diff), W.covariance(moments.cov_given_count))
    u = vectors[:, -1]
    within, c = (float(u @ W.covariance(S) @ u) for S in (moments.cov_within, moments.cov_residual))
    return Direction(_unit(W.normal(u)), "pairs", ratios, W.rank, _sine(W.rank, _pair_variance(moments, within, c)))


def slope_direction(moments: Moments) -> Direction:
    """Fisher's normal from the regression of bag means on p: S_w^-1 D; its sign is that of the positive class.

    For bags of one row this is linear discriminant analysis. Costs O(d^3).
    """
    _require_slope(moments)
    W, share = _pooled_whitener(moments)
    D = W.vector(moments.slope)
    variance = _slope_variance(moments, float(D @ D), share)
    return Direction(_unit(W.normal(D)), "means", np.zeros(0), W.rank, _sine(W.rank, variance))


def fisher_ltf(moments: Moments) -> LTF:
    """The classifier that class means and pooled covariance determine: normal C^-1 D, offset at the bags' prevalence.

    log-odds = D^T C^-1 (x - middle) + log(p / (1 - p)): Fisher's discriminant with the bags' own prevalence.
    """
    _require_slope(moments)
    W, share = _pooled_whitener(moments)
    D = W.vector(moments.slope)
    # S^-1 D = C^-1 D / (1 + share D^T C^-1 D) for S = C + share D D^T; by noise the divisor may come out as nonsense.
    normal = W.normal(D) / max(1 - share * float(D @ D), 1e-3)
    p = moments.proportion
    middle = moments.mean + (0.5 - p) * moments.slope
    return LTF(normal, float(np.log(p / (1 - p)) - normal @ middle))


def mean_direction(moments: Moments) -> FloatArray:
    """Unit normal along the mean of rows weighed by 2p - 1: the paper's A3, for N(0, I) only [BSR23, Thm 1].

    E[row | p] is (2p - 1) sqrt(2/pi) r, so sum q (2p - 1) mean points along r for any mix of unbalanced bags.
    """
    p, n = moments.proportion, moments.n_rows
    return _along_mean(
        (2 * p - 1) * moments.mean + 2 * moments.count_scatter / n * moments.slope,
        (2 * p - 1) ** 2 + 4 * moments.count_scatter / n,
    )


def one_row_mean_direction(bags: Bags, rng: np.random.Generator) -> FloatArray:
    """The same from one random row of each bag, as the algorithm is printed [BSR23, Alg. 3]."""
    rows = bags.X[bags.starts[:-1] + rng.integers(bags.sizes)]
    weights = 2 * bags.proportions - 1
    return _along_mean(weights @ rows, float(np.mean(weights**2)))


def combined_direction(moments: Moments) -> Direction:
    """Direction from pairs and means together, each weighed by the inverse of its noise.

    Along a current normal r the transverse parts of S_b r, S_w r and slope are independent with variances c / n_b,
    (c + kappa) / n_w and 1 / A per coordinate, where c = r^T C r, kappa = lam (r·D)^2. Generalised least squares for
    C r and D, then r <- C^-1 D; one step from a root-n start is efficient, more make the answer independent of the
    start. With one (size, count) the spectral direction is its fixed point, with single rows discriminant analysis.
    """
    pairs = moments.n_pairs > 0 and moments.pair_weight > 0
    means = moments.count_scatter > 0
    if not pairs and not means:
        raise NotIdentifiableError(
            "totals tell nothing about single rows here: no bag has both classes and all bags have one share of "
            "positives "
            f"({moments.proportion:g}). Add bags with other shares, or bags with both classes."
        )
    if not means:
        return spectral_direction(moments)
    by_slope = slope_direction(moments)
    if not pairs:
        return by_slope
    by_pairs = spectral_direction(moments)
    start = by_slope if not by_pairs.sine < by_slope.sine else by_pairs
    W = whitener(moments.cov_bag)
    if distances := _contradiction(_whitened(moments, W), np.linalg.lstsq(W.matrix, by_pairs.normal, rcond=None)[0]):
        return replace(by_pairs, contradiction=distances)
    u = np.linalg.lstsq(W.matrix, start.normal, rcond=None)[0]
    refined, variance = _least_squares(_whitened(moments, W), u)
    if refined is None:
        return start
    return Direction(_unit(W.normal(refined)), "both", by_pairs.ratios, W.rank, _sine(W.rank, variance))


# ---------------------------------------------------------------------- the combination


@dataclass(frozen=True, slots=True, eq=False)
class _Signals:
    """The three signals in whitened coordinates."""

    S_w: FloatArray
    S_b: FloatArray
    D: FloatArray
    n_w: float
    n_b: float
    A: float
    lam: float


def _whitened(moments: Moments, W: Whitener) -> _Signals:
    return _Signals(
        W.covariance(moments.cov_within),
        W.covariance(moments.cov_residual),
        W.vector(moments.slope),
        moments.n_pairs,
        moments.n_residuals,
        moments.count_scatter,
        moments.pair_weight,
    )


def _least_squares(signals: _Signals, r: FloatArray) -> tuple[FloatArray | None, float]:
    """Fixed point of the weighted combination from the start r, and its transverse variance; None if there is none."""
    S_w, S_b, slope, lam = signals.S_w, signals.S_b, signals.D, signals.lam
    total = signals.n_w + signals.n_b
    r = r / np.sqrt(r @ S_w @ r)
    r = -r if r @ slope < 0 else r
    along = _depth(signals, r)
    variance = np.nan
    for _ in range(_MAX_STEPS):
        c, within = float(r @ S_b @ r), float(r @ S_w @ r)
        if c <= 0 or along <= 0:
            return None, np.nan
        weight_b, weight_w, weight_d = signals.n_b / c, signals.n_w / within, signals.A
        h = lam * along
        a, b, e = weight_b + weight_w, weight_w * h, weight_w * h * h + weight_d
        determinant = a * e - b * b
        sum_w = weight_w * (S_w @ r)
        of_class, of_slope = weight_b * (S_b @ r) + sum_w, h * sum_w + weight_d * slope
        Cr = (e * of_class - b * of_slope) / determinant
        D = (a * of_slope - b * of_class) / determinant
        c, along = float(r @ Cr), float(r @ D)
        if c <= 0 or along <= 0:
            return None, np.nan
        tilt = c / along
        C = (signals.n_w * (S_w - lam * np.outer(D, D)) + signals.n_b * S_b) / total
        new: FloatArray = r + np.linalg.lstsq(C, tilt * D - Cr, rcond=None)[0]
        # Var of (c / along) D - C r per transverse coordinate, over |r|^2: from the inverse of the normal equations.
        variance = (tilt * tilt * a + 2 * tilt * b + e) / determinant / c
        norm = float(np.sqrt(new @ S_w @ new))
        if not norm > 0:
            return None, np.nan
        new, along = new / norm, float(new @ D) / norm
        moved = float(np.linalg.norm(new - r) / np.linalg.norm(r))
        r = new
        if moved < 1e-12:
            break
    return r, variance


def _depth(signals: _Signals, r: FloatArray) -> float:
    """r·D: by the slope, or by the excess of S_w over S_b where that is larger than the slope's noise."""
    by_slope = float(r @ signals.D)
    excess = float(r @ (signals.S_w - signals.S_b) @ r)
    noise = 1 / np.sqrt(signals.A)
    return by_slope if by_slope > noise or excess <= 0 else float(np.sqrt(excess / signals.lam))


def _contradiction(signals: _Signals, r: FloatArray) -> tuple[float, float] | None:
    """Distances of the class means along r by pairs and by means, if the latter is less than half and 5 errors below.

    One in three million by chance where the model holds; the factor of two leaves room for classes of unequal spread.
    """
    c, within = float(r @ signals.S_b @ r), float(r @ signals.S_w @ r)
    excess = within - c
    if c <= 0 or excess <= 0:
        return None
    by_pairs, by_means = np.sqrt(excess / signals.lam), abs(float(r @ signals.D))
    variance = (2 * within**2 / signals.n_w + 2 * c**2 / signals.n_b) / (4 * excess * signals.lam) + c / signals.A
    if by_means < by_pairs / 2 and by_pairs - by_means > 5 * np.sqrt(variance):
        return float(by_pairs / np.sqrt(c)), float(by_means / np.sqrt(c))
    return None


def _pooled_whitener(moments: Moments) -> tuple[Whitener, float]:
    """Whitening of S = C + share D D^T, pooled from within and between bags, and the share."""
    total = moments.n_pairs + moments.n_residuals
    pooled = (moments.n_pairs * moments.cov_within + moments.n_residuals * moments.cov_residual) / total
    return whitener(pooled), moments.n_pairs / total * moments.pair_weight


def _along_mean(mean: FloatArray, information: float) -> FloatArray:
    if information <= 1e-12:
        raise NotIdentifiableError(
            "the mean direction needs bags that are not balanced; got k = q/2 in all bags, whose mean is 0 whatever "
            "the "
            "boundary. Use SpectralLTF or BagLogisticRegression."
        )
    return _unit(mean)


def _require_slope(moments: Moments) -> None:
    if moments.count_scatter <= 0:
        raise NotIdentifiableError(
            f"class means show in bag means only if the share of positives varies; got {moments.proportion:g} in all "
            f"bags. "
            "Use SpectralLTF or BagLogisticRegression, which need no variation."
        )


def _pair_variance(moments: Moments, within: float, c: float) -> float:
    """Variance of the spectral direction per transverse coordinate of a class: w / kappa^2 (c / n_w + w / n_b).

    Here w = c + kappa. To first order the direction moves by (c / w) S_w r - S_b r; see docs/theory/directions.md.
    """
    kappa = within - c
    if kappa <= 0 or c <= 0 or moments.n_bags <= 1:
        return np.inf
    return within / kappa**2 * (c / moments.n_pairs + within / moments.n_residuals)


def _slope_variance(moments: Moments, depth: float, share: float) -> float:
    """Variance of the slope direction per transverse coordinate of a class: w^2 / (A depth) + w / n.

    Here w = 1 + share depth. The given depth is D^T S^-1 D for S = C + share D D^T; that of C is larger.
    """
    if moments.n_bags <= 1 or depth <= 0 or share * depth >= 1:
        return np.inf
    depth = depth / (1 - share * depth)
    w = 1 + share * depth
    return w * w / (moments.count_scatter * depth) + w / moments.n_rows


def _sine(rank: int, variance: float) -> float:
    """Expected root mean square sine of the angle; 1 at the worst."""
    return float(min(np.sqrt(max(rank - 1, 0) * variance), 1.0)) if np.isfinite(variance) else np.nan


def _unit(v: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(v))
    if length == 0 or not np.isfinite(length):
        raise NotIdentifiableError(
            "the bags show no direction: all features are constant, or the class means coincide. Check the features."
        )
    return v / length
