"""How wrong the spectral and the mean learners are: their expected errors, not bounds on them.

The theorems of `sample_sizes` are true for all data and far from what happens; here is what happens, for any
(q, k, l, d, m), derived in docs/theory/asymptotics.md and checked by simulation to a few per cent. Angles are in the
metric of the covariance (that of gamma), where they decide the instance error; `euclidean_tan2` converts.

Owns errors of directions, the shift that a fitted offset takes because the direction is not exact, and the instance
error both make. Refuses laws of the counts from which the learner in question cannot learn.

Letters: d features, m bags of q rows, k positives, p = k / q, l threshold, t separation, v and c variance of a row
along the normal u, of a random bag and given the label; w half the variance of a difference within a bag. T is the
expected squared tangent of the angle between the learnt direction and u.
"""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Literal

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom, chi2

from bagwise.arrays import AnyArray, FloatArray
from bagwise.errors import InvalidInputError
from bagwise.theory.conditions import Count, check_at_least, check_size, count_probabilities
from bagwise.theory.gaussian import thresholded_gaussian
from bagwise.theory.kappas import BagProfile, bag_profile

__all__ = [
    "DirectionError",
    "combination_weights",
    "combined_direction_error",
    "euclidean_tan2",
    "expected_instance_error",
    "mean_direction_error",
    "offset_shift",
    "slope_direction_error",
    "spectral_direction_error",
    "spectral_instance_error",
]

Pairs = Literal["all", "one"]
Offset = Literal["known", "count", "satisfied"]

# Midpoints of equal shares of a standard normal and the number of angles averaged over: 1e-3 of the integrals.
_NORMAL = ndtri((np.arange(400) + 0.5) / 400)
_ANGLES = (np.arange(32) + 0.5) / 32


@dataclass(frozen=True, slots=True)
class DirectionError:
    """Expected error of a learnt direction, up to its sign.

    Attributes
    ----------
    n_features : int
        d; errors live in the d - 1 directions across the normal.
    leading : float
        First-order squared tangent, proportional to (d - 1) / m: exact as m / d grows, too small before.
    tan2 : float
        T, with the first-order effect of d / m taken in; infinite where noise hides the signal.
    """

    n_features: int
    leading: float
    tan2: float

    @property
    def sin2(self) -> float:
        """Expected squared sine of the angle; 1 - 1/d, that of a random direction, where nothing can be learnt."""
        chance = 1 - 1 / self.n_features
        return chance if self.tan2 == inf else min(chance, self.tan2 / (1 + self.tan2))

    @property
    def learnable(self) -> bool:
        """Whether the signal stands out of the noise of d features at this number of bags at all."""
        return self.tan2 < inf


def spectral_direction_error(
    n_features: int,
    n_bags: float,
    size: int,
    count: Count,
    threshold: float = 0.0,
    *,
    pairs: Pairs = "all",
    fresh: bool = False,
    pooled: bool = False,
) -> DirectionError:
    """Expected error of the generalised top eigenvector of (Sigma_D, Sigma_B): Algorithms 2 and 4.

    With all pairs, T = (d - 1) / m c (1 - c / (q v)) / (1 - c / v)^2 to first order, and, with s = w / c - 1,
    T = c (1 + s) (y_w + (1 + s) y_b) / (s^2 - y_w - (1 + s)^2 y_b) with y_b = (d - 1) / m, y_w = y_b / (q - 1) beyond.
    Where that denominator is not positive, the direction cannot be seen.

    Parameters
    ----------
    n_features, n_bags : int, float
        d and m, the bags of each of Algorithm 1's two samples.
    size, count, threshold
        q, k (or the probabilities of 0..q) and l.
    pairs : "all" or "one"
        All rows and pairs of every bag, or Algorithm 1 read literally: one row and one pair of each bag.
    fresh : bool
        With ``pairs="one"``: whether the pairs come from m further bags, as printed.
    pooled : bool
        With counts that vary: the paper's Sigma_B (True), or the regression on p, which keeps the signal when counts
        vary like chance (False).

    Examples
    --------
    >>> error = spectral_direction_error(n_features=10, n_bags=2000, size=10, count=8)
    >>> round(error.leading, 5), round(error.sin2, 5)
    (0.00558, 0.00563)
    >>> spectral_direction_error(50, 200, 50, 1).learnable
    False
    """
    d, m = check_size(n_features), check_at_least("n_bags", n_bags, 1)
    q = check_size(size, 2)
    profile = bag_profile(q, count, threshold)
    if pairs not in ("all", "one"):
        raise InvalidInputError(f'pairs must be "all" or "one"; got {pairs!r}.')
    y = (d - 1) / m
    c, w = profile.variance_within, _half_difference(profile)
    if pairs == "one":
        # Half of Sigma_D against Sigma_B, both of m draws; 2 / q of the pairs hold the very row when bags are shared.
        shared = 0.0 if fresh else 1 / q
        base, y_w, y_b = profile.variance, y, y
    else:
        # Within bags against between bags; scatter of the counts is noise unless the regression removes it.
        shared = 0.0
        base, y_w, y_b = c + (_count_variance(profile) if pooled else 0.0), y / (q - 1), y
    s = w / base - 1
    _refuse_without_signal(profile, s)
    numerator = base * (1 + s) * (y_w + (1 + s) * y_b - 2 * shared * (1 + s) * y)
    denominator = s**2 - y_w - (1 + s) ** 2 * y_b + 2 * shared * (1 + s) * y
    return DirectionError(
        n_features=d,
        leading=numerator / s**2,
        tan2=(numerator / denominator if denominator > 0 else inf) if d > 1 else 0.0,
    )


def _half_difference(profile: BagProfile) -> float:
    """w, half the variance along u of the difference of two distinct rows of a bag: 1 - kappa1 + kappa2 / 2."""
    return profile.variance + profile.kappa2 / 2


def _count_variance(profile: BagProfile) -> float:
    """q Var(p) t^2, what varying counts add to the variance along u of sqrt(q) times a bag's mean."""
    return profile.size * profile.proportion_variance * profile.separation**2


def _refuse_without_signal(profile: BagProfile, signal: float) -> None:
    """A pair signal of zero or of the wrong sign."""
    if not signal > 1e-12:
        p = profile.proportion
        chance = p * (1 - p) / profile.size
        raise InvalidInputError(
            "pairs must differ more along the normal than across it; got an excess of "
            f"{signal:.3g} with Var p = {profile.proportion_variance:.3g} and chance's {chance:.3g}. Counts as "
            "variable as chance hide the normal from pooled moments (pooled=False does not pool); bags of one class "
            "have no pairs."
        )


def mean_direction_error(
    n_features: int, n_bags: float, size: int, count: Count, threshold: float = 0.0, *, pairs: Pairs = "all"
) -> DirectionError:
    """Expected error of the direction of the mean of bags' rows over N(0, I): Algorithm 3.

    (d - 1) / (m q a^2) with all rows, (d - 1) / (m a^2) with one row of each bag; at l = 0, a = eta(q, k).

    Examples
    --------
    >>> round(mean_direction_error(10, 2000, 10, 8).sin2, 5)
    0.00196
    """
    d, m = check_size(n_features), check_at_least("n_bags", n_bags, 1)
    profile = bag_profile(size, count, threshold)
    if not abs(profile.shift) > 1e-12:
        raise InvalidInputError(
            f"bags must be unbalanced against the population for their mean to show the normal; got a share of "
            f"positives of {profile.proportion:.3g} in both. Use the spectral direction."
        )
    rows = m * (profile.size if pairs == "all" else 1)
    error = (d - 1) / (rows * profile.shift**2)
    return DirectionError(n_features=d, leading=error, tan2=error)


def slope_direction_error(
    n_features: int, n_bags: float, size: int, count: Count, threshold: float = 0.0
) -> DirectionError:
    """Expected error of S^-1 D-hat: slope of bag means in p, whitened by their residual covariance around it.

    To first order (d - 1) / m (c + c^2 / (t^2 q Var p)); needs counts that vary.

    Examples
    --------
    >>> chance = [1 / 8, 3 / 8, 3 / 8, 1 / 8]  # three rows at random
    >>> round(slope_direction_error(10, 2000, 3, chance).leading, 5)
    0.00257
    """
    d, m = check_size(n_features), check_at_least("n_bags", n_bags, 1)
    profile = bag_profile(size, count, threshold)
    spread = _count_variance(profile)
    if not spread > 1e-12:
        raise InvalidInputError(
            f"proportions must vary for bag means to have a slope in them; got a variance of "
            f"{profile.proportion_variance:.3g}. Use the spectral direction."
        )
    c = profile.variance_within
    error = (d - 1) / m * (c + c**2 / spread)
    return DirectionError(n_features=d, leading=error, tan2=error)


def combined_direction_error(
    n_features: int, n_bags: float, size: int, count: Count, threshold: float = 0.0
) -> DirectionError:
    """Least expected error from the three second-order statistics of bags: within, residual, slope.

    First-order generalised least squares for the normal from the within-bag covariance, the residual covariance of
    bag means and their slope in p; with one count it is the spectral direction's, with bags of one row the slope's.

    Examples
    --------
    >>> even = [1 / 4, 1 / 4, 1 / 4, 1 / 4]
    >>> for error in (spectral_direction_error, slope_direction_error, combined_direction_error):
    ...     round(error(10, 2000, 3, even).leading, 5)
    0.00693
    0.0022
    0.00196
    """
    d, m = check_size(n_features), check_at_least("n_bags", n_bags, 1)
    profile = bag_profile(size, count, threshold)
    q, t, c = profile.size, profile.separation, profile.variance_within
    spread = profile.proportion_variance
    mixed = profile.proportion * (1 - profile.proportion) - spread  # E[p (1 - p)]
    omega = q * mixed / (q - 1) if q > 1 else 0.0
    if not max(spread, omega) > 1e-12:
        raise InvalidInputError(
            "bags must mix the classes or differ in their proportions; got bags of one class only, in one proportion."
        )
    # Unknowns per direction across u: class covariance C and class difference D. Observed: C + omega t D within bags,
    # C between bags, D in the slope; each row of `information` is one observation over its noise.
    within = (q - 1) / (c + omega * t**2) if q > 1 else 0.0
    information = (
        within * np.outer([1.0, omega * t], [1.0, omega * t]) + np.diag([1 / c, 0.0]) + np.diag([0.0, q * spread])
    )
    functional = np.array([-1.0, c / t])
    error = (d - 1) / m * float(functional @ np.linalg.solve(information, functional))
    return DirectionError(n_features=d, leading=error, tan2=error)


def combination_weights(ratio: float, pairs_per_bag: float, slope_signal: float) -> tuple[float, float]:
    """Weights of the pair direction and of the slope direction in their least noisy combination.

    Both directions must have the same sign and the same length in the metric of the residual covariance S, there
    their errors have variances (per bag) L (1 / n + L) / (L - 1)^2 and 1 + 1 / s, and covariance L / (L - 1). The
    weights sum to 1; that of the pairs is 0 for bags formed at random, and negative beyond.

    Parameters
    ----------
    ratio : float
        L, the largest variance ratio of within-bag to residual covariance, the pair direction's; above 1.
    pairs_per_bag : float
        n = n_pairs / n_bags, q - 1 for bags of one size.
    slope_signal : float
        s = count_scatter / n_bags D' S^-1 D with D the slope; 0 where proportions do not vary.

    Examples
    --------
    >>> combination_weights(2.0, 9.0, 0.0)
    (1.0, 0.0)
    >>> combination_weights(1.5, 9.0, 1 / 2)[0] < 0.3
    True
    """
    L, n = check_at_least("ratio", ratio, 1.0), check_at_least("pairs_per_bag", pairs_per_bag, 0.0)
    s = check_at_least("slope_signal", slope_signal, 0.0)
    if s == 0:
        return 1.0, 0.0
    if L == 1 or n == 0:
        return 0.0, 1.0
    pair, slope, both = L * (1 / n + L) / (L - 1) ** 2, 1 + 1 / s, L / (L - 1)
    share = (slope - both) / (pair + slope - 2 * both)
    return share, 1 - share


def euclidean_tan2(tan2: float, normal: AnyArray, cov: AnyArray) -> float:
    """Expected squared tangent of the Euclidean angle to ``normal``, from that in the metric of ``cov``.

    T / (d - 1) tr(P cov^-1) (r' cov r) / |r|^2 with P the projection across r: errors in the whitened directions are
    alike, in the features they are largest where the covariance is small.

    Examples
    --------
    >>> euclidean_tan2(0.01, [1.0, 0.0], [[1.0, 0.0], [0.0, 0.25]])
    0.04
    """
    r, Sigma = np.asarray(normal, dtype=np.float64), np.asarray(cov, dtype=np.float64)
    if len(r) == 1:
        return 0.0
    length = float(r @ r)
    inverse = np.linalg.inv(Sigma)
    across = float(np.trace(inverse) - r @ inverse @ r / length)
    return float(tan2) / (len(r) - 1) * across * float(r @ Sigma @ r) / length


def _disagreement(l: float, shift: float, tangent: float) -> tuple[float, float]:
    """(1 - TPR, FPR) of a direction at this tangent with the threshold at l + ``shift``.

    The score is g + e z with z across the normal: a positive row is lost if g <= l + shift - e z. Each rate is computed
    in its own tail, so a threshold deep in one loses nothing.
    """
    moved = l + shift - tangent * _NORMAL
    lost = float(np.maximum(ndtr(-l) - ndtr(-moved), 0).mean() / ndtr(-l))
    taken = float(np.maximum(ndtr(l) - ndtr(moved), 0).mean() / ndtr(l))
    return lost, taken


def _satisfied(weights: FloatArray, lost: float, taken: float) -> float:
    """Share of satisfied bags, Pr[Bin(k, lost) = Bin(q - k, taken)], averaged over the counts."""
    q, total = len(weights) - 1, 0.0
    # Rates below any that matter are none: the binomial overflows at subnormal probabilities.
    lost, taken = (rate if rate > 1e-150 else 0.0 for rate in (lost, taken))
    for k in np.flatnonzero(weights):
        r = np.arange(min(k, q - k) + 1)
        total += float(weights[k]) * float(binom.pmf(r, k, lost) @ binom.pmf(r, q - k, taken))
    return total


def offset_shift(
    tan2: float, size: int, count: Count, threshold: float = 0.0, *, offset: Offset = "satisfied"
) -> float:
    """Shift of the fitted threshold, in standard deviations, that a direction at squared tangent ``tan2`` causes.

    Of the threshold on g + e z, g the coordinate along the normal and z one across, e = sqrt(``tan2``); the known
    offset of a unit normal stands at l sqrt(1 + e^2) there. Both ways of fitting the offset are consistent only once
    the direction is: with a direction at angle e, positive rows just above the threshold are lost and negative ones
    just below are taken, at densities b1 = p h(l) and b0 = (1 - p) h(-l), which differ unless the bags have the
    population's proportion. Matching the total count moves the threshold to where the two totals are equal, maximising
    the satisfied bags to where their sum is least: for small e to e Phi^-1(b0 / (b0 + b1)). Exact in the size of the
    bags.

    Parameters
    ----------
    tan2 : float
        Squared tangent of the angle between the direction and the normal.
    size, count, threshold
        q, k (or the probabilities of 0..q) and l.
    offset : "known", "count" or "satisfied"
        How the offset is chosen: not at all, by the total count, by the number of satisfied bags.

    Examples
    --------
    >>> round(offset_shift(1e-4, 10, 8, 1.0, offset="count") / 1e-2, 2)
    -1.17
    >>> offset_shift(1e-4, 10, 8, 0.0, offset="known")
    0.0
    """
    l, e = float(threshold), sqrt(check_at_least("tan2", tan2, 0.0))
    if offset not in ("known", "count", "satisfied"):
        raise InvalidInputError(f'offset must be "known", "count" or "satisfied"; got {offset!r}.')
    weights = count_probabilities(size, count)
    p = float(weights @ np.arange(len(weights))) / (len(weights) - 1)
    if offset == "known" or e == 0:
        return l * (sqrt(1 + e**2) - 1)
    if not 0 < p < 1:
        raise InvalidInputError(f"bags must hold both classes to place an offset; got a share of positives of {p:g}.")
    limit = 8 * e

    def surplus(x: float) -> float:
        lost, taken = _disagreement(l, x, e)
        return p * lost - (1 - p) * taken

    if offset == "count":
        return float(brentq(surplus, -limit, limit, xtol=1e-6 * e)) if surplus(-limit) < 0 < surplus(limit) else 0.0

    def unsatisfied(x: float) -> float:
        lost, taken = _disagreement(l, x, e)
        return -_satisfied(weights, lost, taken)

    grid = np.linspace(-4 * e, 4 * e, 33)
    best = int(np.argmin([unsatisfied(float(x)) for x in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, 32)]
    return float(minimize_scalar(unsatisfied, bounds=(low, high), method="bounded", options={"xatol": 1e-4 * e}).x)


def expected_instance_error(
    direction: DirectionError, threshold: float = 0.0, *, shift_per_tangent: float | None = None
) -> float:
    """Expected Pr[h != f] over the Gaussian, of a direction with the given error and the right sign.

    Averages the exact disagreement over angles with tan^2 = T chi^2_(d - 1) / (d - 1), or over all angles where nothing
    is learnt. For small angles it is phi(l) E[tan] E|Z - x| with x = ``shift_per_tangent`` (sqrt(2 / pi) = 0.80 at 0).

    Parameters
    ----------
    direction : DirectionError
        Of the learnt direction.
    threshold : float
        l, in standard deviations.
    shift_per_tangent : float or None
        How far the fitted threshold moves with the angle, `offset_shift` over sqrt(tan2); None for a known offset.

    Examples
    --------
    >>> error = spectral_direction_error(10, 4000, 10, 8, 1.0)
    >>> round(expected_instance_error(error, 1.0), 4)
    0.0072
    """
    d, l = direction.n_features, float(threshold)
    if d == 1:
        return 0.0
    truncated = thresholded_gaussian(l)
    above, below = truncated.probability_above, truncated.probability_below
    if direction.sin2 < 1 - 1 / d:
        squares = direction.tan2 * chi2.ppf(_ANGLES, d - 1) / (d - 1)
    else:
        squares, shift_per_tangent = 1 / beta.ppf(_ANGLES, 1 / 2, (d - 1) / 2) - 1, None
    total = 0.0
    for e in np.sqrt(squares).tolist():
        shift = l * (sqrt(1 + e**2) - 1) if shift_per_tangent is None else shift_per_tangent * e
        lost, taken = _disagreement(l, shift, e)
        total += above * lost + below * taken
    return total / len(_ANGLES)


def spectral_instance_error(
    n_features: int,
    n_bags: float,
    size: int,
    count: Count,
    threshold: float = 0.0,
    *,
    offset: Offset = "satisfied",
    pairs: Pairs = "all",
) -> float:
    """Expected Pr[h != f] of the spectral learner: its direction's error and the shift of its offset together.

    Examples
    --------
    >>> for offset in ("known", "count", "satisfied"):
    ...     round(spectral_instance_error(10, 4000, 10, 8, 1.0, offset=offset), 3)
    0.007
    0.012
    0.016
    """
    direction = spectral_direction_error(n_features, n_bags, size, count, threshold, pairs=pairs)
    if offset == "known" or not direction.learnable or direction.tan2 == 0:
        return expected_instance_error(direction, threshold)
    shift = offset_shift(direction.tan2, size, count, threshold, offset=offset)
    return expected_instance_error(direction, threshold, shift_per_tangent=shift / sqrt(direction.tan2))
