"""Sums of the likelihood over bags whose totals were released with noise: the unknown counts are summed over.

Owns what `bagwise.learn.likelihood` asks of such bags, in its terms; the distribution itself is
`bagwise.stats.poisson_binomial.bag_posterior`. The gradient is that of exact counts with the posterior given the
released total in place of that given the count. In place of the exact Hessian stands minus the sum of squared
gradients of the bags, which is its mean under the model; it only steers the search.
"""

import numpy as np
from scipy.special import expit

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.releases import LAWS
from bagwise.stats.poisson_binomial import bag_posterior

__all__ = ["released_sums"]


def released_sums(
    bags: Bags, weights: FloatArray, centre: FloatArray, coef: FloatArray, intercept: float, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Terms (m, 4) and scores (m, d + 3) of each bag, the latter times its weight.

    Terms are log-likelihood of the released total, and its mean, variance and fourth cumulant under the model.
    ``intercept`` belongs to rows relative to ``centre``; scores are in (coef, intercept, low, high).
    """
    assert bags.release is not None
    X = bags.X - centre
    z = X @ coef + intercept
    up, down = expit(z), expit(-z)
    P = np.maximum(low + (high - low) * up, 1e-290)
    O = np.maximum(1 - high + (high - low) * down, 1e-290)
    found = bag_posterior(np.log(P) - np.log(O), bags)
    each = (found.labels - P) / np.maximum(P * O, 1e-300)
    pull = each * (high - low) * up * down
    starts = bags.starts[:-1]
    scores = np.empty((bags.n_bags, bags.n_features + 3))
    scores[:, :-3] = np.add.reduceat(X * pull[:, None], starts, axis=0)
    for j, values in ((-3, pull), (-2, each * down), (-1, each * up)):
        scores[:, j] = np.add.reduceat(values, starts)
    release = bags.release
    laplace = (release.laws == LAWS.index("laplace")) | (release.laws == LAWS.index("discrete-laplace"))
    terms = np.stack(
        [
            found.loglik,
            np.add.reduceat(P, starts),
            np.add.reduceat(P * O, starts) + release.variances,
            np.add.reduceat(P * O * (1 - 6 * P * O), starts) + np.where(laplace, 12 * release.scales**4, 0.0),
        ],
        axis=1,
    )
    return terms, scores * weights[:, None]
