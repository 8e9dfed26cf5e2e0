"""EasyLLP behind scikit-learn's door."""

from bagwise.bags import Bags
from bagwise.estimators.base import BagEstimator, SigmoidProbability, require_positive
from bagwise.learn.debiased import debiased_logistic
from bagwise.ltf import LTF

__all__ = ["EasyLLP"]


class EasyLLP(SigmoidProbability, BagEstimator):
    """Logistic regression on debiased totals [BCDGM23]: convex and fast, for randomly formed small bags.

    Each row gets its bag's excess over expectation as a target that is right on average; the noise of the targets grows
    with the size of the bags, and bags of one count teach nothing.

    Parameters
    ----------
    C : float
        Inverse strength of the ridge penalty, as in LogisticRegression.
    fit_intercept : bool

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> law = np.array([1, 4, 6, 4, 1]) / 16  # four rows a bag, at random
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.0), np.zeros(2), np.eye(2), size=4, count=law)
    >>> model = bw.EasyLLP().fit(oracle.sample(500, np.random.default_rng(0)))
    >>> bool(model.ltf_.angle(oracle.ltf) < 0.1)
    True
    """

    def __init__(self, C: float = 1.0, *, fit_intercept: bool = True) -> None:
        self.C = C
        self.fit_intercept = fit_intercept

    def _fit(self, bags: Bags) -> LTF:
        require_positive(self, "C")
        self.ambiguous_ = False
        found = debiased_logistic(bags, self.C, fit_intercept=self.fit_intercept)
        return LTF(found.coef, found.intercept)
