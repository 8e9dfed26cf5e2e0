"""A linear threshold over a Gaussian, in the one coordinate that matters.

After whitening, f(x) = 1 exactly if g > l, where g = u.z is a standard normal coordinate and l the normalised
threshold; all other directions stay standard normal whatever the label. So the theory needs the moments of a
standard normal above and below l, and nothing else of the distribution.

Owns the normalisation and those moments, sound in both tails (l = 40 as well as l = 0). Letters: phi and Phi
are the standard normal density and distribution function, h(x) = phi(x) / (1 - Phi(x)) the inverse Mills
ratio.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import erfcx, ndtr

from bagwise.arrays import AnyArray, FloatArray
from bagwise.errors import InvalidInputError
from bagwise.ltf import LTF
from bagwise.theory.conditions import check_finite

__all__ = ["NormalisedLTF", "ThresholdedGaussian", "inverse_mills_ratio", "normalise", "thresholded_gaussian"]

# From here on the series of 1 - h' in 1/x^2 is closer than the difference 1 - h (h - x), which loses x^4
# rounding errors.
_SERIES_FROM = 20.0
_SERIES = (1.0, -6.0, 50.0, -518.0, 6354.0, -89782.0, 1435330.0)


def inverse_mills_ratio(x: float) -> float:
    """E[g | g > x] = phi(x) / (1 - Phi(x)) of a standard normal g; close to x when x is large.

    Through the scaled complementary error function, so that neither tail cancels or underflows early.

    Examples
    --------
    >>> round(inverse_mills_ratio(0.0), 6)  # sqrt(2 / pi)
    0.797885
    >>> round(inverse_mills_ratio(100.0), 6)
    100.009998
    """
    return float(sqrt(2 / np.pi) / erfcx(check_finite("x", x) / sqrt(2)))


def _variance_above(x: float) -> float:
    """Var[g | g > x] = 1 - h(x) (h(x) - x); about 1 / x^2 when x is large."""
    if x > _SERIES_FROM:
        inverse = 1 / x**2
        return float(inverse * np.polynomial.polynomial.polyval(inverse, _SERIES))
    h = inverse_mills_ratio(x)
    return 1 - h * (h - x)


@dataclass(frozen=True, slots=True)
class ThresholdedGaussian:
    """Moments of a standard normal g above and below a threshold l (Lemmas 4.4 and C.4, App. E).

    Attributes
    ----------
    threshold : float
        l, in standard deviations.
    probability_above, probability_below : float
        1 - Phi(l) and Phi(l).
    mean_above, mean_below : float
        E[g | g > l] = h(l) > 0 and E[g | g <= l] = -h(-l) < 0.
    var_above, var_below : float
        Var[g | g > l] = 1 - h(l) (h(l) - l) and its mirror image; both lie in (0, 1).
    """

    threshold: float
    probability_above: float
    probability_below: float
    mean_above: float
    mean_below: float
    var_above: float
    var_below: float

    @property
    def separation(self) -> float:
        """t = E[g | g > l] - E[g | g <= l] = phi(l) / (Phi(l) (1 - Phi(l))), at least |l| and sqrt(8 /
        pi)."""
        return self.mean_above - self.mean_below

    @property
    def square_above(self) -> float:
        """E[g^2 | g > l] = 1 + l phi(l) / (1 - Phi(l))."""
        return 1 + self.threshold * self.mean_above

    @property
    def square_below(self) -> float:
        """E[g^2 | g <= l] = 1 - l phi(l) / Phi(l)."""
        return 1 + self.threshold * self.mean_below


def thresholded_gaussian(threshold: float) -> ThresholdedGaussian:
    """Moments of a standard normal above and below ``threshold``.

    Examples
    --------
    >>> half = thresholded_gaussian(0.0)
    >>> round(half.mean_above, 6), round(half.var_above, 6), half.square_above
    (0.797885, 0.36338, 1.0)
    """
    l = check_finite("threshold", threshold)
    return ThresholdedGaussian(
        threshold=l,
        probability_above=float(ndtr(-l)),
        probability_below=float(ndtr(l)),
        mean_above=inverse_mills_ratio(l),
        mean_below=-inverse_mills_ratio(-l),
        var_above=_variance_above(l),
        var_below=_variance_above(-l),
    )


@dataclass(frozen=True, slots=True, eq=False)
class NormalisedLTF:
    """An LTF f over N(mean, cov) in whitened coordinates: f(x) = 1 exactly if u.z > l.

    Attributes
    ----------
    threshold : float
        l = -(c + r.mean) / sqrt(r' cov r): where the hyperplane cuts, in standard deviations of r.x above the
        mean. Theorem 3 and Definition C.3 use this sign; Lemma E.13 prints the opposite one.
    image : array of shape (d,)
        g = cov r / sqrt(r' cov r) = cov^(1/2) u: what one standard deviation along u is in the features.
    """

    threshold: float
    image: FloatArray


def normalise(ltf: LTF, mean: AnyArray, cov: AnyArray) -> NormalisedLTF:
    """The threshold l and the image of u under which ``ltf`` becomes pos(u.z - l) with z ~ N(0, I) (Lemma
    E.13).

    Parameters
    ----------
    ltf : LTF
        f(x) = 1 if normal.x + offset > 0.
    mean, cov : array of shape (d,) and (d, d)
        Of the Gaussian; the variance of normal.x must be positive, the rest may be singular.

    Examples
    --------
    >>> import bagwise as bw
    >>> normalise(bw.LTF([2.0, 0.0], offset=-6.0), mean=[1.0, 5.0], cov=[[4.0, 0.0], [0.0, 1.0]]).threshold
    1.0
    """
    mu, Sigma = _checked_gaussian(mean, cov, len(ltf.normal))
    r = np.asarray(ltf.normal, dtype=np.float64)
    image = Sigma @ r
    variance = float(r @ image)
    if not variance > 0:
        raise InvalidInputError(
            f"the variance of normal.x under cov must be positive; got {variance:g}. The threshold is "
            "constant in the Gaussian: every row has the same label."
        )
    deviation = sqrt(variance)
    return NormalisedLTF(threshold=-(float(ltf.offset) + float(r @ mu)) / deviation, image=image / deviation)


def _checked_gaussian(mean: AnyArray, cov: AnyArray, d: int) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of the right shapes, the covariance symmetric."""
    mu, Sigma = np.asarray(mean, dtype=np.float64), np.asarray(cov, dtype=np.float64)
    if mu.shape != (d,) or Sigma.shape != (d, d):
        raise InvalidInputError(
            f"mean and cov must have shapes ({d},) and ({d}, {d}) for a normal of {d} features; got "
            f"{mu.shape} and {Sigma.shape}."
        )
    if not (np.isfinite(mu).all() and np.isfinite(Sigma).all()):
        raise InvalidInputError("mean and cov must be finite; got a NaN or an infinity.")
    asymmetry = float(np.abs(Sigma - Sigma.T).max(initial=0.0))
    if asymmetry > 1e-8 * float(np.abs(Sigma).max(initial=0.0)):
        raise InvalidInputError(
            f"cov must be symmetric; got a largest difference to its transpose of {asymmetry:g}. Pass "
            "(cov + cov.T) / 2 if rounding is the cause."
        )
    return mu, Sigma
