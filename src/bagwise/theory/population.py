"""Exact moments of the Gaussian bag oracle: what the estimators of `stats.moments` converge to.

``population_moments`` returns the same `Moments` as data do, so a learner can be run on exact theory
unchanged. For an LTF with image g and threshold l (see `theory.gaussian`), and pbar, Var p of the bags'
proportions,

    mu_B    = mu + a g
    Sigma_B = Sigma - kappa1 g g'
    Sigma_D = 2 Sigma - (2 kappa1 - kappa2) g g'
    D       = t g                             (difference of the class means, hence the slope in p)

Sigma_B of a mixture includes the covariance of the means of bags with different counts.
"""

import numpy as np

from bagwise.arrays import AnyArray
from bagwise.ltf import LTF
from bagwise.stats.moments import Moments
from bagwise.theory.conditions import Count, count_probabilities
from bagwise.theory.gaussian import normalise
from bagwise.theory.kappas import bag_profile

__all__ = ["population_moments"]


def population_moments(ltf: LTF, mean: AnyArray, cov: AnyArray, size: int, count: Count) -> Moments:
    """Exact moments, per bag, of bags from the oracle Ex(ltf, N(mean, cov), size, count).

    Parameters
    ----------
    ltf : LTF
        The labelling function.
    mean, cov : array of shape (d,) and (d, d)
        Of the Gaussian; normal.x must have positive variance.
    size : int
        Rows of a bag; with size 1 there are no pairs, and ``cov_diff`` is zero as it is for data.
    count : int or array of shape (size + 1,)
        Positives of each bag, or the probabilities of 0..size positives.

    Returns
    -------
    Moments
        Of one bag: ``n_bags`` is 1 and ``n_rows`` is ``size``.

    Examples
    --------
    >>> import bagwise as bw
    >>> identity = [[1.0, 0.0], [0.0, 1.0]]
    >>> exact = population_moments(bw.LTF([1.0, 0.0], 0.0), [0.0, 0.0], identity, size=2, count=1)
    >>> exact.cov_diff.round(4)  # 2 + 4 / pi along the normal, 2 across
    array([[3.2732, 0.    ],
           [0.    , 2.    ]])
    """
    normalised = normalise(ltf, mean, cov)
    weights = count_probabilities(size, count)
    profile = bag_profile(size, weights, normalised.threshold)
    g = normalised.image
    G = np.outer(g, g)
    Sigma = np.asarray(cov, dtype=np.float64)
    Sigma = (Sigma + Sigma.T) / 2
    q, p, var_p = profile.size, profile.proportion, profile.proportion_variance
    mixed = max(q * (p * (1 - p) - var_p), 0.0)  # E[q p (1 - p)] = E[k (q - k)] / q
    # Of k alone, so exact: the counts with a positive probability.
    support = np.flatnonzero(weights)
    return Moments(
        n_bags=1.0,
        n_rows=float(q),
        mean=np.asarray(mean, dtype=np.float64) + profile.shift * g,
        proportion=p,
        cov_bag=Sigma + (profile.variance - 1) * G,
        cov_diff=2 * Sigma + (2 * profile.variance + profile.kappa2 - 2) * G if q > 1 else np.zeros_like(Sigma),
        slope=profile.separation * g if var_p > 0 else np.zeros_like(g),
        count_scatter=q * var_p,
        pair_weight=mixed / (q - 1) if q > 1 else 0.0,
        size=q,
        count=int(support[0]) if len(support) == 1 else None,
    )
