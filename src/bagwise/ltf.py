"""Linear threshold functions, and how often two of them disagree under a Gaussian.

Owns the noun ``LTF`` and the bivariate normal probabilities between two of them. Refuses normals and offsets
that are not finite, and Gaussians whose covariance is not one.

Vocabulary: an LTF labels x with 1 when its *score* normal·x + offset is above 0 (strictly). Under N(mean,
cov) the score is normal too; its *threshold* l is the number of standard deviations that the hyperplane lies
from the mean, so that label 1 has probability 1 - Phi(l). The *angle* of two LTFs under a covariance is that
between their normals after whitening: its cosine is the correlation of the two scores.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bagwise.arrays import FloatArray, IntArray
from bagwise.errors import InvalidInputError

__all__ = ["LTF", "as_gaussian", "error_rates", "threshold"]

# Beyond so many standard deviations a probability is 0 in float64, and so is what it adds to a disagreement.
_INVISIBLE = 40.0
# The quadrature resolves peaks of width 1 / threshold; thresholds beyond this many standard deviations are cut.
_FARTHEST = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class LTF:
    """Linear threshold function: label 1 where ``normal · x + offset > 0`` (strictly), else 0.

    Parameters
    ----------
    normal : array of shape (n_features,)
        Kept as a read-only float64 copy. All zeros are allowed: the constant classifier.
    offset : float

    Examples
    --------
    >>> import bagwise as bw
    >>> ltf = bw.LTF([1.0, -1.0], 0.5)
    >>> ltf.predict([[0.0, 0.0], [0.0, 0.5]])
    array([1, 0])
    >>> ltf.flipped()
    LTF(normal=[-1.0, 1.0], offset=-0.5)
    """

    normal: FloatArray
    offset: float = 0.0

    def __post_init__(self) -> None:
        normal = np.array(self.normal, dtype=np.float64)
        if normal.ndim != 1 or normal.size == 0:
            raise InvalidInputError(
                f"normal must be one vector with a weight per feature; got an array of shape {normal.shape}. "
                "Pass a flat list of numbers."
            )
        if not np.isfinite(normal).all():
            at = int(np.argmin(np.isfinite(normal)))
            raise InvalidInputError(
                f"normal must be finite; got {normal[at]} at feature {at}. Check the fit or the file it came from."
            )
        offset = float(self.offset)
        if not np.isfinite(offset):
            raise InvalidInputError(
                f"offset must be finite; got {offset}. For a constant classifier use a zero normal and offset 1 or -1."
            )
        normal.setflags(write=False)
        object.__setattr__(self, "normal", normal)
        object.__setattr__(self, "offset", offset)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LTF):
            return NotImplemented
        return self.offset == other.offset and np.array_equal(self.normal, other.normal)

    def __hash__(self) -> int:
        # + 0.0 maps -0.0 to 0.0, as the two are equal.
        return hash((self.offset + 0.0, (self.normal + 0.0).tobytes()))

    def __repr__(self) -> str:
        shown = [float(f"{weight:.6g}") for weight in self.normal[:8]]
        more = f", … {self.n_features} weights]" if self.n_features > 8 else "]"
        return f"LTF(normal={str(shown)[:-1]}{more}, offset={float(f'{self.offset:.6g}')})"

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return int(self.normal.size)

    def scores(self, X: Any) -> FloatArray:
        """normal · x + offset of each row of X."""
        matrix = np.asarray(X)
        if matrix.ndim != 2 or matrix.shape[1] != self.n_features:
            raise InvalidInputError(
                f"X must have one column per weight, {self.n_features}; got shape {matrix.shape}. "
                "For one row use X.reshape(1, -1)."
            )
        scores: FloatArray = matrix @ self.normal + self.offset
        return scores

    def predict(self, X: Any) -> IntArray:
        """Label of each row of X: 1 where the score is above 0, else 0."""
        return (self.scores(X) > 0).astype(np.int64)

    def flipped(self) -> "LTF":
        """The complement: (-normal, -offset), which differs everywhere but on the hyperplane itself."""
        return LTF(-self.normal, -self.offset)

    def normalised(self) -> "LTF":
        """The same function with a normal of length 1.

        Raises InvalidInputError for a zero normal, as a constant has no direction.

        Examples
        --------
        >>> import bagwise as bw
        >>> bw.LTF([3.0, 4.0], 10.0).normalised()
        LTF(normal=[0.6, 0.8], offset=2.0)
        """
        largest = float(np.abs(self.normal).max())
        if largest == 0:
            raise InvalidInputError(
                "a normal must not be all zeros to have a length of 1; got zeros in all "
                f"{self.n_features} features. The LTF is constant: it has no direction."
            )
        shrunk = self.normal / largest  # squares of 1e-200 vanish, those of 1e200 overflow
        length = float(np.linalg.norm(shrunk))
        return LTF(shrunk / length, self.offset / largest / length)

    def angle(self, other: "LTF", cov: Any = None) -> float:
        """Angle of the two normals in radians, 0 to pi; under ``cov``, that of the whitened normals.

        Its cosine is then the correlation of the two scores. Small angles keep their digits: the angle comes
        from the length of the difference, not from a cosine near 1.

        Parameters
        ----------
        other : LTF
        cov : matrix of shape (n_features, n_features), optional
            Covariance of the features; the identity by default.

        Examples
        --------
        >>> import bagwise as bw
        >>> one, two = bw.LTF([1.0, 0.0]), bw.LTF([1.0, 1.0])
        >>> round(one.angle(two), 4), round(one.angle(two, cov=[[1.0, 0.0], [0.0, 3.0]]), 4)
        (0.7854, 1.0472)
        """
        _refuse_other_width(self, other)
        first, second = self.normalised(), other.normalised()
        d = self.n_features
        _, metric = as_gaussian(np.zeros(d), np.eye(d) if cov is None else cov)
        spreads = _spread(first.normal, metric), _spread(second.normal, metric)
        if min(spreads) == 0:
            raise InvalidInputError(
                "both normals must have variance under cov; one of them has none. "
                "Its LTF is constant there, and a constant has no direction."
            )
        return _angles(first.normal, second.normal, metric, spreads)[0]

    def disagreement(self, other: "LTF", mean: Any, cov: Any) -> float:
        """Exact Pr[self(x) != other(x)] for x ~ N(mean, cov).

        A sum of positive terms, so that probabilities of 1e-9 or 1e-100 are as accurate as those of 0.1
        (about 12 digits). ``cov`` may be singular.

        Parameters
        ----------
        other : LTF
        mean : vector of shape (n_features,)
        cov : matrix of shape (n_features, n_features)

        Examples
        --------
        >>> import bagwise as bw
        >>> truth, guess = bw.LTF([1.0, 0.0]), bw.LTF([1.0, 1.0])
        >>> round(truth.disagreement(guess, mean=[0.0, 0.0], cov=[[1.0, 0.0], [0.0, 1.0]]), 12)
        0.25
        """
        from scipy.special import ndtr

        pair = _Pair.under_gaussian(self, other, mean, cov)
        l = pair.first
        return min(1.0, float(ndtr(-l) * pair.missed() + ndtr(l) * pair.mirrored().missed()))


def error_rates(ltf: LTF, true_ltf: LTF, mean: Any, cov: Any) -> tuple[float, float]:
    """Exact Pr[ltf = 0 | true = 1] and Pr[ltf = 1 | true = 0] under N(mean, cov).

    Both keep their digits however rare the condition is.

    Examples
    --------
    >>> import bagwise as bw
    >>> truth, never = bw.LTF([1.0, 0.0]), bw.LTF([0.0, 0.0], -1.0)
    >>> error_rates(never, truth, mean=[0.0, 0.0], cov=[[1.0, 0.0], [0.0, 1.0]])
    (1.0, 0.0)
    """
    pair = _Pair.under_gaussian(true_ltf, ltf, mean, cov)
    if not np.isfinite(pair.first):
        raise InvalidInputError(
            "the true LTF must give both labels under the Gaussian; its normal has no variance under cov, "
            "so it "
            "gives only one. Use a normal that cov does not annihilate."
        )
    return pair.missed(), pair.mirrored().missed()


def threshold(ltf: LTF, mean: Any, cov: Any) -> float:
    """The l of Pr[ltf = 1] = 1 - Phi(l) under N(mean, cov): -(offset + normal·mean) / sd of the score.

    A score without variance is a constant: l is then -inf (always 1) or inf (always 0).

    Examples
    --------
    >>> import bagwise as bw
    >>> threshold(bw.LTF([2.0], -2.0), mean=[0.0], cov=[[4.0]])
    0.5
    """
    mean, cov = as_gaussian(mean, cov, n_features=ltf.n_features)
    return _threshold(ltf, mean, _spread(ltf.normal, cov))


def as_gaussian(mean: Any, cov: Any, n_features: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance as float64 arrays; refuses shapes that do not fit, and what no covariance can
    be."""
    mean = np.asarray(mean, dtype=np.float64)
    cov = np.asarray(cov, dtype=np.float64)
    d = mean.size if n_features is None else n_features
    if mean.shape != (d,):
        raise InvalidInputError(
            f"mean must be a vector with one entry per feature, {d}; got shape {mean.shape}. Drop or add entries."
        )
    if cov.shape != (d, d):
        raise InvalidInputError(
            f"cov must be a matrix of {d} by {d}, one row and column per feature; got shape {cov.shape}. "
            "For independent features pass numpy.diag(variances)."
        )
    if not (np.isfinite(mean).all() and np.isfinite(cov).all()):
        what = "cov" if np.isfinite(mean).all() else "mean"
        raise InvalidInputError(f"{what} must be finite; got NaN or infinite entries. Check how it was computed.")
    asymmetry = float(np.abs(cov - cov.T).max())
    scale = float(np.abs(cov).max())
    if asymmetry > 1e-8 * scale:
        raise InvalidInputError(
            f"cov must be symmetric; got entries that differ by {asymmetry:.3g} from their mirror image. "
            "Pass (cov + cov.T) / 2 if that is meant."
        )
    cov = (cov + cov.T) / 2
    lowest = float(np.linalg.eigvalsh(cov)[0])
    if lowest < -1e-8 * scale:
        raise InvalidInputError(
            f"cov must have no negative eigenvalue; got {lowest:.3g}. No distribution has such a covariance: "
            "check signs and units."
        )
    return mean, cov


# ---------------------------------------------------------------------- the bivariate normal


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two thresholds, and the angle between the whitened normals with its supplement (each to full
    accuracy)."""

    first: float
    second: float
    angle: float
    supplement: float

    @classmethod
    def under_gaussian(cls, first: LTF, second: LTF, mean: Any, cov: Any) -> "_Pair":
        _refuse_other_width(first, second)
        mean, cov = as_gaussian(mean, cov, n_features=first.n_features)
        spreads = _spread(first.normal, cov), _spread(second.normal, cov)
        l1, l2 = (_threshold(f, mean, s) for f, s in zip((first, second), spreads, strict=True))
        # A constant disagrees with anything at any angle by the same probability.
        right = np.pi / 2
        angles = _angles(first.normal, second.normal, cov, spreads) if min(spreads) > 0 else (right, right)
        return cls(l1, l2, *angles)

    def mirrored(self) -> "_Pair":
        """Both LTFs replaced by their complements."""
        return _Pair(-self.first, -self.second, self.angle, self.supplement)

    def missed(self) -> float:
        """Pr[V <= l2 | U > l1] for standard normals with correlation cos(angle); nan-free, no cancellation.

        With theta the angle and p(theta) = Pr[U > l1, V <= l2],

            p(0) = max(0, Phi(l2) - Phi(l1)),
            dp/dtheta = exp(-(l1^2 - 2 l1 l2 cos(theta) + l2^2) / (2 sin(theta)^2)) / (2 pi)   (Plackett),

        so p is a sum of positive terms for any angle. As the exponent is l1^2/2 + x^2/2 with
        x = (l2 - l1 cos(theta)) / sin(theta), dividing by 1 - Phi(l1) leaves the hazard phi/(1 - Phi) at l1
        as the only factor, and no tail underflows. x is written as (l2 - l1)/sin(theta) + l1 tan(theta/2),
        and beyond a right angle with the supplement in place of theta, so that neither end loses digits.
        """
        if np.isinf(self.first):  # U > inf never holds; what it conditions has weight 0
            return 0.0 if self.first > 0 else _phi(self.second)
        l1 = float(np.clip(self.first, -_FARTHEST, _FARTHEST))
        reach = abs(l1) + _INVISIBLE
        l2 = float(np.clip(self.second, -reach, reach))
        hazard = _hazard(l1)
        parallel = _interval_given_tail(l1, l2, hazard)
        if self.angle <= np.pi / 2:
            turn = _turn(l2 - l1, l1, l2, 0.0, self.angle)
        else:
            turn = _turn(l2 - l1, l1, l2, 0.0, np.pi / 2) + _turn(l2 + l1, -l1, l2, self.supplement, np.pi / 2)
        return min(1.0, parallel + hazard * turn / float(np.sqrt(2 * np.pi)))


def _turn(gap: float, l1: float, l2: float, start: float, stop: float) -> float:
    """∫ exp(-x(s)²/2) ds over [start, stop], x(s) = gap / sin(s) + l1 tan(s/2).

    The integrand varies on the scale of s near 0 (gap / s), may rise as steeply as exp(-(gap / s)²/2) at the
    upper end, and has peaks of width 1 / threshold: panels halve towards both ends and are no longer than
    peaks are wide.
    """
    if stop <= start:
        return 0.0
    halves = 0.5 ** np.arange(1, 54)
    inner = stop * np.concatenate([halves[::-1], 1 - halves[1:12]])
    edges = np.concatenate([[start], inner[inner > start], [stop]])
    longest = 1 / max(10.0, abs(l1), abs(l2))
    pieces = np.maximum(1, np.ceil(np.diff(edges) / longest)).astype(np.int64)
    lengths = np.repeat(np.diff(edges) / pieces, pieces)
    offsets = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    left = np.repeat(edges[:-1], pieces) + offsets * lengths
    nodes, weights = _gauss_legendre()
    s = left[:, None] + lengths[:, None] * nodes
    x = gap / np.sin(s) + l1 * np.tan(s / 2)
    return float(lengths @ (np.exp(-0.5 * np.minimum(np.abs(x), 60.0) ** 2) @ weights))


def _interval_given_tail(l1: float, l2: float, hazard: float) -> float:
    """Pr[U <= l2 | U > l1] for a standard normal U, whose hazard at l1 is given; 0 when l2 <= l1."""
    from scipy.special import log_ndtr, ndtr

    width = l2 - l1
    if width <= 0:
        return 0.0
    if width * (abs(l1) + width) <= 1:
        # ∫ phi(l1 + s) ds over [0, width] = phi(l1) ∫ exp(-l1 s - s²/2) ds, which keeps a width of 1e-12.
        nodes, weights = _gauss_legendre()
        s = width * nodes
        return float(hazard * width * (np.exp(-l1 * s - s * s / 2) @ weights))
    if l1 + l2 >= 0:
        return float(-np.expm1(log_ndtr(-l2) - log_ndtr(-l1)))
    return float(ndtr(l2) * -np.expm1(log_ndtr(l1) - log_ndtr(l2)) / ndtr(-l1))


def _hazard(l: float) -> float:
    """phi(l) / (1 - Phi(l))."""
    from scipy.special import erfcx, ndtr

    if l > 0:
        return float(np.sqrt(2 / np.pi) / erfcx(l / np.sqrt(2)))
    return float(np.exp(-l * l / 2) / np.sqrt(2 * np.pi) / ndtr(-l))


def _phi(l: float) -> float:
    """Phi(l)."""
    from scipy.special import ndtr

    return float(ndtr(l))


@cache
def _gauss_legendre() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of 16-point Gauss-Legendre quadrature on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return (nodes + 1) / 2, weights / 2


def _spread(normal: FloatArray, cov: FloatArray) -> float:
    """Standard deviation of normal · x; 0 when the variance is not above the rounding of its own sum."""
    variance = float(normal @ cov @ normal)
    rounding = normal.size * np.finfo(np.float64).eps * float(np.abs(normal) @ np.abs(cov) @ np.abs(normal))
    return float(np.sqrt(variance)) if variance > rounding else 0.0


def _threshold(ltf: LTF, mean: FloatArray, spread: float) -> float:
    """-(offset + normal·mean) / spread, or the infinity that says which constant the LTF is."""
    score = ltf.offset + float(ltf.normal @ mean)
    if spread == 0:
        return -np.inf if score > 0 else np.inf
    return -score / spread


def _angles(
    first: FloatArray, second: FloatArray, cov: FloatArray, spreads: tuple[float, float]
) -> tuple[float, float]:
    """Angle of two normals in the metric of cov, and its supplement.

    By half-angles (Kahan): tan(theta/2) = |u - v| / |u + v| of the unit vectors, exact to rounding for any
    angle.
    """
    u, v = first / spreads[0], second / spreads[1]
    apart = np.sqrt(max(0.0, float((u - v) @ cov @ (u - v))))
    together = np.sqrt(max(0.0, float((u + v) @ cov @ (u + v))))
    return 2 * float(np.arctan2(apart, together)), 2 * float(np.arctan2(together, apart))


def _refuse_other_width(first: LTF, second: LTF) -> None:
    if first.n_features != second.n_features:
        raise InvalidInputError(
            f"two LTFs must have the same features to be compared; got {first.n_features} and "
            f"{second.n_features} weights. Fit both on the same columns."
        )
