"""EasyLLP: totals turned into targets that are right on average [BCDGM23].

Given the population share pi of positives, t = q (p - pi) + pi is an unbiased estimate of the label of each row of a
bag with q rows and proportion p, if the other rows of the bag are drawn at random. Logistic regression on these
targets is convex; their variance grows with q. Bags of one count have one target, and nothing is learnt.
"""

import numpy as np

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.errors import NotIdentifiableError
from bagwise.learn.soft_labels import SoftLogistic, soft_logistic

__all__ = ["debiased_logistic", "debiased_targets"]


def debiased_targets(bags: Bags) -> FloatArray:
    """Unbiased estimate of the label of each row, in the mean of its bag; it may lie outside of [0, 1]."""
    prevalence = bags.counts.sum() / bags.n_rows
    per_bag: FloatArray = bags.counts - (bags.sizes - 1) * prevalence
    return np.repeat(per_bag, bags.sizes)


def debiased_logistic(bags: Bags, C: float, *, fit_intercept: bool) -> SoftLogistic:
    """Ridge logistic regression on the debiased targets."""
    targets = debiased_targets(bags)
    if np.ptp(targets) == 0:
        raise NotIdentifiableError(
            f"EasyLLP learns from the variation of the totals; got proportion {bags.proportions[0]:g} in all bags, "
            "which a constant fits. Use BagLogisticRegression or SpectralLTF."
        )
    return soft_logistic(bags.X.astype(np.float64, copy=False), targets, C, fit_intercept=fit_intercept)
