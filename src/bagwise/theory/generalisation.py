"""From the bags that were sampled to all bags, and from all bags to instances.

Three steps of the paper: sample bag error to oracle bag error (Theorem D.1), oracle bag error to instance error
(Theorem D.2), both together (Theorem 2.2); and geometry to instance error (Lemma 2.3). Each is here as printed, if it
holds, and in the sharper form that docs/theory/generalisation.md derives.

Errors are probabilities in [0, 1]. Letters: q rows of a bag, k positives, d features, m bags; a = Pr[h = 0 | f = 1] and
b = Pr[h = 1 | f = 0], so that a bag is satisfied exactly if Bin(k, a) = Bin(q - k, b).
"""

from dataclasses import dataclass
from math import ceil, exp, lgamma, log, log1p, pi, sqrt

import numpy as np
from scipy.special import logsumexp

from bagwise.arrays import FloatArray
from bagwise.errors import InvalidInputError
from bagwise.theory.conditions import check_at_least, check_between, check_eigenvalues, check_key, check_size

__all__ = [
    "BAG_ERROR_CONSTANT",
    "ClassErrorBounds",
    "bags_for_bag_error_gap",
    "class_error_bounds",
    "classification_error_bound",
    "instance_error_bound",
    "instance_error_bound_from_sample",
    "oracle_bag_error_bound",
    "oracle_bag_error_bound_by_counting",
    "sharp_classification_error_bound",
]

#: C_0 of Theorems 2.2 and D.1, which state that it is at most 1000.
BAG_ERROR_CONSTANT = 1000.0


def bags_for_bag_error_gap(
    gap: float, delta: float, *, n_features: int, size: int, constant: float = BAG_ERROR_CONSTANT
) -> int:
    """Bags m = C_0 d (log q + log(1 / delta)) / gap^2 at which no LTF's oracle bag error exceeds its sample bag error
    by more than ``gap``, with probability 1 - ``delta`` (Theorem D.1).

    Examples
    --------
    >>> bags_for_bag_error_gap(0.1, 0.05, n_features=10, size=10)
    5298318
    """
    check_between("gap", gap, 0, 1)
    return ceil(_uniform_scale(delta, n_features, size, constant) / gap**2)


def _uniform_scale(delta: float, n_features: int, size: int, constant: float) -> float:
    """C_0 d (log q + log(1 / delta))."""
    d, q = check_size(n_features), check_size(size)
    check_between("delta", delta, 0, 1)
    check_between("constant", constant, 0, float("inf"))
    return constant * d * (log(q) - log(delta))


def oracle_bag_error_bound(
    sample_bag_error: float,
    n_bags: int,
    *,
    n_features: int,
    size: int,
    delta: float,
    constant: float = BAG_ERROR_CONSTANT,
) -> float:
    """Bound on the oracle bag error of any LTF, however chosen from these bags (Theorem D.1 solved for the gap).

    sample + sqrt(C_0 d (log q + log(1 / delta)) / m), at most 1; `oracle_bag_error_bound_by_counting` is far sharper.

    Examples
    --------
    >>> round(oracle_bag_error_bound(0.1, 10**7, n_features=10, size=10, delta=0.05), 4)
    0.1728
    """
    m = _checked_sample(sample_bag_error, n_bags)
    return min(1.0, sample_bag_error + sqrt(_uniform_scale(delta, n_features, size, constant) / m))


def _checked_sample(sample_bag_error: float, n_bags: int) -> int:
    """Number of bags, with the sample bag error a share."""
    if not 0 <= sample_bag_error <= 1:
        raise InvalidInputError(f"sample_bag_error must be a share in [0, 1]; got {sample_bag_error}.")
    return check_size(n_bags)


def oracle_bag_error_bound_by_counting(
    sample_bag_error: float, n_bags: int, *, n_features: int, size: int, delta: float
) -> float:
    """Bound on the oracle bag error of any LTF, without an unstated constant.

    With S the number of ways in which hyperplanes label 2 m q points (Cover 1965) and A = (ln S + ln(4 / delta)) / m:
    the smaller of sample + sqrt(8 A) and sample + 2 sqrt(sample A) + 4 A (Vapnik and Chervonenkis' inequality for the
    sets of unsatisfied bags, uniform and relative form).

    Examples
    --------
    >>> round(oracle_bag_error_bound_by_counting(0.1, 20_000, n_features=10, size=10, delta=0.05), 4)
    0.1726
    """
    m = _checked_sample(sample_bag_error, n_bags)
    d, q = check_size(n_features), check_size(size)
    check_between("delta", delta, 0, 1)
    A = (_log_labellings(2 * m * q, d) + log(4 / delta)) / m
    uniform = sample_bag_error + sqrt(8 * A)
    relative = sample_bag_error + 2 * sqrt(sample_bag_error * A) + 4 * A
    return min(1.0, uniform, relative)


def _log_labellings(n: int, d: int) -> float:
    """log of 2 sum_(i <= d) C(n - 1, i), the labellings of n points in general position by hyperplanes in R^d."""
    i = np.arange(min(d, n - 1) + 1)
    terms: FloatArray = np.array([lgamma(n) - lgamma(j + 1) - lgamma(n - j) for j in i])
    return float(log(2) + logsumexp(terms))


@dataclass(frozen=True, slots=True)
class ClassErrorBounds:
    """What an oracle bag error bounds, up to complement when bags are balanced.

    Attributes
    ----------
    false_negative, false_positive : float
        Bounds on a = Pr[h = 0 | f = 1] and on b = Pr[h = 1 | f = 0].
    up_to_complement : bool
        Balanced bags: the bounds hold for h or for 1 - h.
    """

    false_negative: float
    false_positive: float
    up_to_complement: bool

    @property
    def instance(self) -> float:
        """Bound on Pr[f != h] whatever the share of positives in the population."""
        return max(self.false_negative, self.false_positive)


def class_error_bounds(bag_error: float, size: int, count: int) -> ClassErrorBounds:
    """Bounds on both class errors from an oracle bag error e < 1/2 (sharper than Theorem D.2).

    Pr[Bin(k, a) = Bin(q - k, b)] = 1 - e > 1/2 forces both binomials to have their mode at the same end, 0 (or, if
    q = 2 k, at k); then 1 - e <= (1 - a)^k and 1 - e <= (1 - b)^(q - k). Hence a <= 1 - (1 - e)^(1 / k) and
    b <= 1 - (1 - e)^(1 / (q - k)), both at most e. Theorem D.2 has 4 e, and only for e < 1 / (4 q). At e = 1/2 the
    statement is false ((3, 1), a = 1, b = 1/2).

    Examples
    --------
    >>> bounds = class_error_bounds(0.2, size=10, count=8)
    >>> round(bounds.false_negative, 4), round(bounds.false_positive, 4)
    (0.0275, 0.1056)
    """
    q, k = check_key(size, count)
    if not 0 <= bag_error < 0.5:
        raise InvalidInputError(
            f"the oracle bag error must lie in [0, 1/2); got {bag_error}. From 1/2 on, bags are satisfied by chance "
            "and say nothing about instances."
        )
    satisfied = log1p(-float(bag_error))
    return ClassErrorBounds(
        false_negative=-np.expm1(satisfied / k).item(),
        false_positive=-np.expm1(satisfied / (q - k)).item(),
        up_to_complement=2 * k == q,
    )


def instance_error_bound(bag_error: float, size: int, count: int) -> float:
    """Bound 4 e on the instance error from an oracle bag error e < 1 / (4 q), as printed (Theorem D.2).

    Up to complement when q = 2 k. Stated for k in 1..q, but false at k = q (h = 1 satisfies every bag), so k <= q - 1
    here; `class_error_bounds` is sharper.

    Examples
    --------
    >>> instance_error_bound(0.02, size=10, count=8)
    0.08
    """
    q, _ = check_key(size, count)
    if not 0 <= bag_error < 1 / (4 * q):
        raise InvalidInputError(
            f"Theorem D.2 asks for an oracle bag error below 1 / (4 q) = {1 / (4 * q):g}; got {bag_error}. Use "
            "class_error_bounds, which holds below 1/2."
        )
    return 4 * float(bag_error)


def instance_error_bound_from_sample(
    sample_bag_error: float,
    n_bags: int,
    *,
    n_features: int,
    size: int,
    count: int,
    delta: float,
    constant: float | None = None,
) -> float:
    """Bound on the instance error of any LTF, however chosen from these bags (Theorem 2.2, sharpened).

    Composes the bound on the oracle bag error (by counting, or Theorem D.1 if ``constant`` is given) with
    `class_error_bounds`; 1 where the oracle bag error is not bounded below 1/2. Up to complement when q = 2 k. With a
    sample bag error and a gap of eps < 1 / (4 q) each, it is at most 2 eps: the 4 eps that Theorem 2.2 states, though
    its own two steps give 8 eps.

    Examples
    --------
    >>> round(instance_error_bound_from_sample(0.05, 50_000, n_features=10, size=10, count=8, delta=0.05), 4)
    0.0423
    """
    check_key(size, count)
    if constant is None:
        bag = oracle_bag_error_bound_by_counting(
            sample_bag_error, n_bags, n_features=n_features, size=size, delta=delta
        )
    else:
        bag = oracle_bag_error_bound(
            sample_bag_error, n_bags, n_features=n_features, size=size, delta=delta, constant=constant
        )
    return class_error_bounds(bag, size, count).instance if bag < 0.5 else 1.0


def classification_error_bound(
    distance: float,
    *,
    lambda_min: float = 1.0,
    lambda_max: float = 1.0,
    mean_norm: float = 0.0,
    c0: float = 2.0,
    c1: float = 1 / sqrt(2 * pi),
) -> float:
    """Bound on Pr[pos(r.x + c) != pos(s.x + c)] of unit normals r, s at this Euclidean distance (Lemma 2.3).

    distance (c0 sqrt(lambda_max / lambda_min) + c1 |mu| / sqrt(lambda_min)), at most 1, for x ~ N(mu, Sigma) and any c;
    c0 = 2 and c1 = 1 / sqrt(2 pi) by the paper's proof. That proof takes |Sigma^(1/2) r| and |Sigma^(1/2) s| as equal,
    which they are not; the constants hold all the same, and c0 = sqrt(1/4 + phi(1)^2) = 0.56 does.

    Parameters
    ----------
    distance : float
        |r - s|, in [0, 2].
    lambda_min, lambda_max : float
        Extreme eigenvalues of Sigma.
    mean_norm : float
        |mu|.

    Examples
    --------
    >>> classification_error_bound(0.01, lambda_max=4.0)
    0.04
    """
    low, high = check_eigenvalues(lambda_min, lambda_max)
    if not 0 <= distance <= 2:
        raise InvalidInputError(f"distance must lie in [0, 2], as of unit vectors; got {distance}. Normalise them.")
    check_at_least("mean_norm", mean_norm, 0.0)
    return min(1.0, distance * (c0 * sqrt(high / low) + c1 * mean_norm / sqrt(low)))


def sharp_classification_error_bound(
    distance: float, *, lambda_min: float = 1.0, lambda_max: float = 1.0, mean_norm: float = 0.0
) -> float:
    """`classification_error_bound` with the least c0 we can prove, sqrt(1/4 + phi(1)^2) = 0.56; none is below 1/2.

    Examples
    --------
    >>> round(sharp_classification_error_bound(0.01, lambda_max=4.0), 4)
    0.0111
    """
    return classification_error_bound(
        distance,
        lambda_min=lambda_min,
        lambda_max=lambda_max,
        mean_norm=mean_norm,
        c0=sqrt(1 / 4 + exp(-1) / (2 * pi)),
    )
