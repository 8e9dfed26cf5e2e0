"""How far bags reveal the normal: the paper's kappa, theta, gamma and rho.

Along the direction u of the normal (whitened, so every other direction has variance 1 among rows and 2 among
differences) a row of a random bag has mean a and variance 1 - kappa1, and the difference of two distinct rows
of a bag has variance 2 (1 - kappa1) + kappa2. The spectral learners live on kappa2 alone: kappa2 / (1 -
kappa1) is how far the variance ratio rho along u stands out of the 2 everywhere else.

Every function takes one count k or the probabilities of k = 0..q. Letters: q size, k count, p = k / q, l
threshold, t separation of the class means, v = 1 - kappa1, c variance within a class. See
docs/theory/kappas.md.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from bagwise.arrays import AnyArray
from bagwise.errors import InvalidInputError
from bagwise.theory.conditions import Count, check_between, check_eigenvalues, check_size, proportion_moments
from bagwise.theory.gaussian import thresholded_gaussian

__all__ = ["BagProfile", "bag_profile", "gamma", "kappa1", "kappa2", "kappa3", "rho", "theta"]


@dataclass(frozen=True, slots=True)
class BagProfile:
    """What rows of bags do along the whitened normal u.

    Attributes
    ----------
    size : int
        q, rows in a bag.
    proportion, proportion_variance : float
        Mean and variance of p = k / q over bags; the variance is 0 for a single count.
    separation : float
        t, difference of the class means along u.
    shift : float
        a = t (pbar - (1 - Phi(l))), the mean of a row along u; outside of bags it would be 0.
    variance_within : float
        c, the variance of a row along u given its label, averaged over the bags' labels.
    """

    size: int
    proportion: float
    proportion_variance: float
    separation: float
    shift: float
    variance_within: float

    @property
    def variance(self) -> float:
        """v = 1 - kappa1 = c + pbar (1 - pbar) t^2, the variance of a row along u; positive by
        construction."""
        return self.variance_within + self.proportion * (1 - self.proportion) * self.separation**2

    @property
    def kappa1(self) -> float:
        """1 - v = a^2 - l a, at least -l^2 / 4 and below 1."""
        return 1 - self.variance

    @property
    def kappa2(self) -> float:
        """2 t^2 / (q - 1) (pbar (1 - pbar) - q Var p): how much more two distinct rows differ than two draws
        do.

        2 / (q - 1) p (1 - p) t^2 for one count; 0 when k is as variable as chance makes it; negative beyond.
        """
        if self.size < 2:
            raise InvalidInputError(
                f"kappa2 needs bags of at least two rows; got size {self.size}. A bag of one row has no pair."
            )
        spread = self.proportion * (1 - self.proportion) - self.size * self.proportion_variance
        return 2 * self.separation**2 / (self.size - 1) * spread

    @property
    def kappa3(self) -> float:
        """kappa2 / ((1 - kappa1) (1 - min(0, kappa1))): rho(u) - rho(r) >= kappa3 (1 - gamma(r)^2).

        Definition C.3 prints max for min, with which that inequality is false for kappa1 < 0.
        """
        return self.kappa2 / (self.variance * max(1.0, self.variance))

    @property
    def excess(self) -> float:
        """kappa2 / (1 - kappa1) = rho(u) - 2: the eigengap of Sigma_B^(-1/2) Sigma_D Sigma_B^(-1/2)."""
        return self.kappa2 / self.variance


def bag_profile(size: int, count: Count, threshold: float = 0.0) -> BagProfile:
    """What rows of bags of ``size`` rows and ``count`` positives do along the whitened normal.

    Parameters
    ----------
    size : int
        Rows of a bag, at least 1.
    count : int or array of shape (size + 1,)
        Positives of each bag, or the probabilities of 0..size positives.
    threshold : float
        l in standard deviations, see `bagwise.theory.gaussian.normalise`.

    Examples
    --------
    >>> profile = bag_profile(size=10, count=8)
    >>> round(profile.kappa1, 4), round(profile.kappa2, 4), round(profile.kappa3, 4)
    (0.2292, 0.0905, 0.1175)
    >>> binomial = [1 / 4, 1 / 2, 1 / 4]  # bags formed at random
    >>> bag_profile(2, binomial).kappa2
    0.0
    """
    q = check_size(size)
    pbar, spread = proportion_moments(q, count)
    truncated = thresholded_gaussian(threshold)
    return BagProfile(
        size=q,
        proportion=pbar,
        proportion_variance=spread,
        separation=truncated.separation,
        shift=pbar * truncated.mean_above + (1 - pbar) * truncated.mean_below,
        variance_within=pbar * truncated.var_above + (1 - pbar) * truncated.var_below,
    )


def kappa1(size: int, count: Count, threshold: float = 0.0) -> float:
    """Loss of variance of a bag's rows along the normal: Var = 1 - kappa1 (Definitions 4.3, C.3, H.3).

    a^2 - l a with a = t (p - (1 - Phi(l))); at l = 0 it is (2 k / q - 1)^2 2 / pi. In [-l^2 / 4, 1). Of a
    mixture, it depends on the mean count only (the covariance of the bags' means is part of Sigma_B, which
    App. H leaves out).
    """
    return bag_profile(size, count, threshold).kappa1


def kappa2(size: int, count: Count, threshold: float = 0.0) -> float:
    """Gain of variance of differences within a bag along the normal (Definitions 4.3, C.3, H.3); size >= 2.

    2 / (q - 1) p (1 - p) t^2; at l = 0 it is 16 / pi p (1 - p) / (q - 1), in [16 / (pi q^2), 4 / (pi (q -
    1))] for 1 <= k <= q - 1. Of a mixture 2 t^2 / (q - 1) (pbar (1 - pbar) - q Var p), which may be 0 or
    negative.
    """
    return bag_profile(size, count, threshold).kappa2


def kappa3(size: int, count: Count, threshold: float = 0.0) -> float:
    """kappa2 / ((1 - kappa1) (1 - min(0, kappa1))), the curvature of rho at its optimum; size >= 2."""
    return bag_profile(size, count, threshold).kappa3


def theta(
    size: int, count: Count, threshold: float = 0.0, *, lambda_min: float = 1.0, lambda_max: float = 1.0
) -> float:
    """Relative error of rho per unit of covariance error: |rho_hat / rho - 1| <= theta eps (Lemma B.4).

    2 lambda_max / lambda_min (1 / (2 - max(0, 2 kappa1 - kappa2)) + 1 / (1 - max(0, kappa1))), at least
    3 lambda_max / lambda_min; size >= 2. Holds for eps <= (1 - max(0, kappa1)) lambda_min / (2 lambda_max).
    """
    low, high = check_eigenvalues(lambda_min, lambda_max)
    profile = bag_profile(size, count, threshold)
    differences = 2 - max(0.0, 2 * profile.kappa1 - profile.kappa2)
    return 2 * high / low * (1 / differences + 1 / min(1.0, profile.variance))


def gamma(normal: AnyArray, true_normal: AnyArray, cov: AnyArray) -> float:
    """Cosine of the angle between two normals in the metric of ``cov`` (Lemma 4.4), in [-1, 1].

    Examples
    --------
    >>> gamma([1.0, 0.0], [1.0, 1.0], [[1.0, 0.0], [0.0, 3.0]])
    0.5
    """
    r, s, Sigma = (np.asarray(value, dtype=np.float64) for value in (normal, true_normal, cov))
    squares = float(r @ Sigma @ r), float(s @ Sigma @ s)
    if not min(squares) > 0:
        raise InvalidInputError(
            f"normal.x and true_normal.x must have positive variances under cov; got {squares[0]:g} and {squares[1]:g}."
        )
    return float(np.clip(r @ Sigma @ s / (sqrt(squares[0]) * sqrt(squares[1])), -1.0, 1.0))


def rho(cosine: float, size: int, count: Count, threshold: float = 0.0) -> float:
    """Variance ratio r' Sigma_D r / r' Sigma_B r of a direction with gamma(r) = ``cosine`` (Lemmas 4.4, C.4,
    H.4).

    2 + gamma^2 kappa2 / (1 - gamma^2 kappa1): 2 across the normal, extreme along it (largest if kappa2 > 0).

    Examples
    --------
    >>> rho(0.0, size=2, count=1)
    2.0
    >>> rho(1.0, size=2, count=1) == 2 + kappa2(2, 1)  # balanced: kappa1 = 0
    True
    """
    square = float(cosine) ** 2
    check_between("cosine", cosine, -1 - 1e-12, 1 + 1e-12)
    profile = bag_profile(size, count, threshold)
    # 1 - gamma^2 kappa1, as a sum of positive terms.
    return 2 + square * profile.kappa2 / (1 - square + square * profile.variance)
