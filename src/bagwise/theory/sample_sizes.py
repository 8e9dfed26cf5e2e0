"""Bags that suffice, lemma by lemma and theorem by theorem, with the misprints put right.

Every function returns a number of bags m (or s) at which the statement's error eps is met with the statement's
probability. The paper leaves the constants of O(.) open: each is an argument, ``constant``, whose default is
*calibrated*, the smallest that sufficed on a grid of simulated problems (benchmarks/calibrate_sample_sizes.py), not
proven. What is stated or follows from stated constants says so. Bounds are worst cases: for the bags that a learner
really needs see `bagwise.theory.asymptotics`.

Directions are learnt by the literal Algorithm 1, one row and one pair per bag, from 2 m bags. Errors of directions are
min |r - r*|, |r + r*| of unit normals. Letters: d features, q rows, k positives, l threshold, lambda_min and lambda_max
eigenvalues of the covariance, Phi the normal distribution function.
"""

from dataclasses import dataclass
from math import ceil, exp, log, pi

from scipy.special import log_ndtr

from bagwise.errors import InvalidInputError
from bagwise.theory.conditions import (
    Count,
    check_at_least,
    check_between,
    check_eigenvalues,
    check_finite,
    check_key,
    check_size,
    count_probabilities,
)
from bagwise.theory.generalisation import BAG_ERROR_CONSTANT
from bagwise.theory.kappas import bag_profile, kappa2

__all__ = [
    "DIRECTION_CONSTANT",
    "MEAN_COVS_CONSTANT",
    "MEAN_DIRECTION_CONSTANT",
    "THEOREM_1_CONSTANT",
    "THEOREM_2_CONSTANT",
    "THEOREM_3_CONSTANT",
    "LearnerBags",
    "direction_bags",
    "mean_bags",
    "mean_covs_bags",
    "mean_direction_bags",
    "mixture_direction_bags",
    "offset_bags",
    "offset_error_bound",
    "sign_bags",
    "sign_error_bound",
    "theorem_1_bags",
    "theorem_2_bags",
    "theorem_3_bags",
]

# Calibrated by benchmarks/calibrate_sample_sizes.py, rounded up.
MEAN_COVS_CONSTANT = 22.0
MEAN_DIRECTION_CONSTANT = 0.65
DIRECTION_CONSTANT = 0.53
THEOREM_1_CONSTANT = 0.07
THEOREM_2_CONSTANT = 0.0033
THEOREM_3_CONSTANT = 8.4e-7

# Follows from C_0: the lemmas of the unique solution apply Theorem D.1 with a gap of 4 q c0 eps >= 8 q eps.
_SELECTION_CONSTANT = BAG_ERROR_CONSTANT / 64


@dataclass(frozen=True, slots=True)
class LearnerBags:
    """Bags of a whole learner: ``estimation`` is m, ``selection`` is s, ``total`` all that are drawn.

    Algorithm 1 draws m bags for single rows and m more for pairs, where pairs are needed.
    """

    estimation: int
    selection: int
    total: int


def _bags(log_number: float, constant: float) -> int:
    """constant * exp(log_number), rounded up, at least 1."""
    check_between("constant", constant, 0, float("inf"))
    exponent = log_number + log(constant)
    if exponent > 700:
        raise InvalidInputError(
            f"the bound must stay below 1e304 bags; got 10^{exponent / log(10):.0f}. The bound says nothing here; see "
            "bagwise.theory.asymptotics for what a learner really needs."
        )
    return max(1, ceil(exp(exponent)))


def _log_base(eps: float, delta: float, n_features: int, power: int) -> float:
    """log of (d / eps^power) log(d / delta), with eps and delta in (0, 1)."""
    d = check_size(n_features)
    check_between("eps", eps, 0, 1)
    check_between("delta", delta, 0, 1)
    return log(d) - power * log(eps) + log(log(d / delta))


def _log_at_least_one(threshold: float, power: int) -> float:
    """log max(1, |l|^power): the paper's l^power vanishes at l = 0, where the norms are still of order 1."""
    return power * log(max(1.0, abs(check_finite("threshold", threshold))))


def mean_bags(
    eps: float, delta: float, *, n_features: int, threshold: float = 0.0, constant: float = MEAN_COVS_CONSTANT
) -> int:
    """Bags m = C (d / eps^2) max(1, l^2) log(d / delta) for |mu_B-hat - mu_B| <= eps sqrt(lambda_max) / 2 with
    probability 1 - delta, one row per bag (the first part of Lemma 3.1; printed with l^2).
    """
    return _bags(_log_base(eps, delta, n_features, 2) + _log_at_least_one(threshold, 2), constant)


def mean_covs_bags(
    eps: float, delta: float, *, n_features: int, threshold: float = 0.0, constant: float = MEAN_COVS_CONSTANT
) -> int:
    """Bags m = C (d / eps^2) max(1, l^4) log(d / delta) for all three estimates of Algorithm 1 (the MeanCovs lemma).

    |mu_B-hat - mu_B| <= eps sqrt(lambda_max) / 2 and |Sigma-hat - Sigma| <= eps lambda_max for Sigma_B and Sigma_D,
    with probability 1 - delta. Lemma 3.1 prints l^2, with which it is false: a row along the normal is a mixture of two
    clusters |l| apart, so its square has variance of order l^4 (docs/theory/direction.md).

    Parameters
    ----------
    eps, delta : float
        In (0, 1).
    n_features : int
        d.
    threshold : float
        l, in standard deviations.

    Examples
    --------
    >>> mean_covs_bags(0.1, 0.05, n_features=10) == mean_covs_bags(0.1, 0.05, n_features=10, threshold=0.5)
    True
    """
    return _bags(_log_base(eps, delta, n_features, 2) + _log_at_least_one(threshold, 4), constant)


def mean_direction_bags(
    eps: float,
    delta: float,
    *,
    n_features: int,
    size: int,
    count: int,
    constant: float = MEAN_DIRECTION_CONSTANT,
) -> int:
    """Bags m = C (d / eps^2) log(d / delta) / eta^2 for Algorithm 3's direction within eps (Lemma A.1).

    eta = (2 k / q - 1) sqrt(2 / pi), so 1 / eta^2 is up to pi q^2 / 2; the paper prints eta^2, and drops it. Over
    N(0, I), l = 0, q > 2, k != q / 2, with probability 1 - delta.

    Examples
    --------
    >>> even = mean_direction_bags(0.1, 0.05, n_features=10, size=10, count=9)
    >>> mean_direction_bags(0.1, 0.05, n_features=10, size=10, count=6) / even > 15
    True
    """
    return _bags(_log_base(eps, delta, n_features, 2) - _log_eta2(size, count), constant)


def _log_eta2(size: int, count: int) -> float:
    """log eta(q, k)^2 of unbalanced bags."""
    q, k = check_key(size, count)
    if 2 * k == q:
        raise InvalidInputError(
            f"count must not be half of size for bag means to show the normal; got ({q}, {k}). Use the spectral "
            "direction."
        )
    return 2 * log(abs(2 * k / q - 1)) + log(2 / pi)


def direction_bags(
    eps: float,
    delta: float,
    *,
    n_features: int,
    size: int,
    threshold: float = 0.0,
    lambda_min: float = 1.0,
    lambda_max: float = 1.0,
    constant: float = DIRECTION_CONSTANT,
) -> int:
    """Bags m = C (d / eps^4) max(1, l^2) log(d / delta) (lambda_max / lambda_min)^4 q^4 for the spectral direction.

    Within eps of the normal or its opposite with probability 1 - delta / 2, for every 1 <= k <= q - 1 (Lemmas 4.1 and
    C.1, printed with l^2). Their proof needs kappa3 with min for max and Lemma 3.1, which is false; the statement
    holds, with eps^2 for eps^4 and one power of the condition number for four (docs/theory/direction.md).

    Examples
    --------
    >>> one, two = (direction_bags(0.1, 0.05, n_features=10, size=q) for q in (5, 10))
    >>> round(two / one)
    16
    """
    q = check_size(size, 2)
    low, high = check_eigenvalues(lambda_min, lambda_max)
    exponent = _log_base(eps, delta, n_features, 4) + _log_at_least_one(threshold, 2)
    return _bags(exponent + 4 * log(high / low) + 4 * log(q), constant)


def mixture_direction_bags(
    eps: float,
    delta: float,
    *,
    n_features: int,
    size: int,
    count: Count,
    lambda_min: float = 1.0,
    lambda_max: float = 1.0,
    per_count: bool = False,
    constant: float = DIRECTION_CONSTANT,
) -> int:
    """Bags m = C (d / eps^4) log(d / delta) (lambda_max / lambda_min)^4 (16 / (pi kappa2))^2 for a mixture of counts.

    The mixture lemma (H.4) put right. Its covariances weigh counts by p_k^2 where p_k is right, and leave out the
    covariance of the means of bags of different counts; with it kappa2 = 2 t^2 / (q - 1) (pbar (1 - pbar) - q Var p),
    which must be positive. With ``per_count`` each count's rows are centred at their own mean: then kappa2 is the
    average of the counts' own, and the factor is at most q^4 / (sum_(0 < k < q) p_k)^2. With one count of 1 or
    q - 1 it is `direction_bags`. Homogeneous LTFs over N(0, Sigma), probability 1 - delta / 2.

    Examples
    --------
    >>> one = mixture_direction_bags(0.1, 0.05, n_features=10, size=4, count=[0, 1, 0, 0, 0])
    >>> one == direction_bags(0.1, 0.05, n_features=10, size=4)
    True
    """
    q = check_size(size, 2)
    low, high = check_eigenvalues(lambda_min, lambda_max)
    weights = count_probabilities(q, count)
    if per_count:
        signal = float(sum(weight * kappa2(q, k) for k, weight in enumerate(weights)))
    else:
        signal = bag_profile(q, weights).kappa2
    if not signal > 1e-12:
        raise InvalidInputError(
            "counts must vary less than chance makes them for pooled pairs to show the normal; got kappa2 = "
            f"{signal:.3g}. Centre each count's rows at their own mean (per_count=True), or use the regression on p."
        )
    exponent = _log_base(eps, delta, n_features, 4) + 4 * log(high / low) + 2 * log(16 / (pi * signal))
    return _bags(exponent, constant)


def sign_bags(
    eps: float, delta: float, *, n_features: int, size: int, count: int, constant: float = _SELECTION_CONSTANT
) -> int:
    """Bags s = C d (log q + log(1 / delta)) / eps^2 that tell the normal from its opposite (Lemma 4.2), k != q / 2.

    With a direction within eps, the better of the two signs then has an instance error of at most `sign_error_bound`,
    with probability 1 - delta / 2. The default constant follows from C_0 <= 1000.
    """
    q, k = check_key(size, count)
    if 2 * k == q:
        raise InvalidInputError(
            f"count must not be half of size for bags to tell a normal from its opposite; got ({q}, {k})."
        )
    return _selection(eps, delta, n_features, q, constant)


def _selection(eps: float, delta: float, n_features: int, q: int, constant: float) -> int:
    """C d (log q + log(1 / delta)) / eps^2."""
    check_between("eps", eps, 0, 1)
    check_between("delta", delta, 0, 1)
    return _bags(log(check_size(n_features)) + log(log(q) - log(delta)) - 2 * log(eps), constant)


def sign_error_bound(
    eps: float, *, size: int, lambda_min: float = 1.0, lambda_max: float = 1.0, c0: float = 2.0
) -> float:
    """Instance error 16 c0 q eps sqrt(lambda_max / lambda_min) after choosing the sign, at most 1 (Lemma 4.2).

    ``eps`` is the error of the direction. Speaks only where 16 c0 q^2 eps sqrt(lambda_max / lambda_min) < 1, as the
    theorem that it uses does (a condition that the lemma does not print).

    Examples
    --------
    >>> sign_error_bound(1e-4, size=10)
    0.032
    """
    q = check_size(size, 2)
    low, high = check_eigenvalues(lambda_min, lambda_max)
    error = 16 * c0 * q * check_between("eps", eps, 0, 1) * (high / low) ** 0.5
    return _within_range(error, q)


def _within_range(error: float, q: int) -> float:
    """The error, if the bag error behind it, a quarter of it, is below the 1 / (4 q) of Theorem 2.2."""
    if not error * q < 1:
        raise InvalidInputError(
            f"the bound must be below 1 / q = {1 / q:g} for Theorem 2.2 to apply; got {error:g}. Give a smaller eps."
        )
    return error


def offset_bags(eps: float, delta: float, *, n_features: int, size: int, constant: float = _SELECTION_CONSTANT) -> int:
    """Bags s = C d (log q + log(1 / delta)) / eps^2 for sign and offset by satisfied bags (Lemma C.2).

    With a direction within eps, the best offset's instance error is then at most `offset_error_bound`, with
    probability 1 - delta / 2; up to complement when q = 2 k. The default constant follows from C_0 <= 1000.
    """
    return _selection(eps, delta, n_features, check_size(size, 2), constant)


def offset_error_bound(
    eps: float,
    *,
    size: int,
    threshold: float = 0.0,
    lambda_min: float = 1.0,
    lambda_max: float = 1.0,
    mean_norm: float = 0.0,
    c0: float = 2.0,
    c1: float = (2 * pi) ** -0.5,
) -> float:
    """Instance error 8 q eps / (Phi(l) (1 - Phi(l))) (c0 sqrt(lambda_max / lambda_min) + c1 |mu| / sqrt(lambda_min))
    after choosing sign and offset (Lemma C.2), where it is below 1 / q.

    Examples
    --------
    >>> round(offset_error_bound(1e-4, size=10), 6)
    0.064
    """
    q = check_size(size, 2)
    low, high = check_eigenvalues(lambda_min, lambda_max)
    check_at_least("mean_norm", mean_norm, 0.0)
    geometry = c0 * (high / low) ** 0.5 + c1 * mean_norm / low**0.5
    error = 8 * q * check_between("eps", eps, 0, 1) * geometry * exp(-_log_tails(threshold))
    return _within_range(error, q)


def _log_tails(threshold: float) -> float:
    """log(Phi(l) (1 - Phi(l)))."""
    l = check_finite("threshold", threshold)
    return float(log_ndtr(l) + log_ndtr(-l))


def theorem_1_bags(
    eps: float, delta: float, *, n_features: int, size: int, count: int, constant: float = THEOREM_1_CONSTANT
) -> LearnerBags:
    """Bags m = C (d / eps^2) log(d / delta) / eta^2 for an instance error of eps with probability 1 - delta.

    Theorem 1 (1.3): N(0, I), homogeneous LTF, q > 2, k != q / 2, Algorithm 3. Printed without 1 / eta^2, up to
    pi q^2 / 2.

    Examples
    --------
    >>> theorem_1_bags(0.05, 0.05, n_features=10, size=10, count=8).selection
    0
    """
    check_size(size, 3)
    m = _bags(_log_base(eps, delta, n_features, 2) - _log_eta2(size, count), constant)
    return LearnerBags(estimation=m, selection=0, total=m)


def theorem_2_bags(
    eps: float,
    delta: float,
    *,
    n_features: int,
    size: int,
    count: int,
    lambda_min: float = 1.0,
    lambda_max: float = 1.0,
    constant: float = THEOREM_2_CONSTANT,
) -> LearnerBags:
    """Bags m = C (d / eps^4) log(d / delta) (lambda_max / lambda_min)^6 q^8 for an instance error of eps.

    Theorem 2 (1.4): N(0, Sigma), homogeneous LTF, Algorithm 2, probability 1 - delta. With q^4 for q^8 when k = q / 2
    (its proof; up to complement, no sign to choose). The direction lemma's q^4 becomes q^8 because the bags that choose
    the sign ask for a direction 16 c0 q times as close. s = 16 C_0 d (log q + log(1 / delta)) q^2 (lambda_max /
    lambda_min) / eps^2.

    Examples
    --------
    >>> theorem_2_bags(0.1, 0.05, n_features=10, size=10, count=5).selection
    0
    """
    q, k = check_key(size, count)
    low, high = check_eigenvalues(lambda_min, lambda_max)
    balanced = 2 * k == q
    exponent = _log_base(eps, delta, n_features, 4) + 6 * log(high / low) + (4 if balanced else 8) * log(q)
    m = _bags(exponent, constant)
    s = 0 if balanced else _selection(eps / (q * (high / low) ** 0.5), delta, n_features, q, 16 * BAG_ERROR_CONSTANT)
    return LearnerBags(estimation=m, selection=s, total=2 * m + s)


def theorem_3_bags(
    eps: float,
    delta: float,
    *,
    n_features: int,
    size: int,
    count: int,
    threshold: float = 0.0,
    lambda_min: float = 1.0,
    lambda_max: float = 1.0,
    mean_norm: float = 0.0,
    constant: float = THEOREM_3_CONSTANT,
) -> LearnerBags:
    """Bags m for an instance error of eps with probability 1 - delta, up to complement if k = q / 2.

    Theorem 3 (1.5): N(mu, Sigma), any LTF, Algorithm 4. m = C (d / eps^4) max(1, l^2) / (Phi(l) (1 - Phi(l)))^4
    log(d / delta) (lambda_max / lambda_min)^4 ((sqrt(lambda_max) + |mu|) / sqrt(lambda_min))^4 q^8, printed with l^2
    and the square of the tails: an error of eps asks for a direction within eps Phi (1 - Phi), whose bags go with its
    fourth power. s = 16 C_0 d (log q + log(1 / delta)) q^2 (sqrt(lambda_max) + |mu|)^2 / (eps^2 (Phi (1 - Phi))^2
    lambda_min).

    Examples
    --------
    >>> near, far = (theorem_3_bags(0.1, 0.05, n_features=10, size=3, count=1, threshold=l) for l in (0.0, 1.0))
    >>> round((far.estimation / near.estimation) ** (1 / 4), 2)  # (1/4) / (Phi(1) (1 - Phi(1)))
    1.87
    """
    q, _ = check_key(size, count)
    low, high = check_eigenvalues(lambda_min, lambda_max)
    check_at_least("mean_norm", mean_norm, 0.0)
    check_between("eps", eps, 0, 1)
    reach = log(high**0.5 + mean_norm) - log(low) / 2
    tails = _log_tails(threshold)
    exponent = _log_base(eps, delta, n_features, 4) + _log_at_least_one(threshold, 2) - 4 * tails
    m = _bags(exponent + 4 * log(high / low) + 4 * reach + 8 * log(q), constant)
    check_between("delta", delta, 0, 1)
    counted = log(check_size(n_features)) + log(log(q) - log(delta))
    s = _bags(counted + 2 * (log(q) + reach - log(eps) - tails), 16 * BAG_ERROR_CONSTANT)
    return LearnerBags(estimation=m, selection=s, total=2 * m + s)
