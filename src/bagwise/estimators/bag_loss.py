"""The linear bag-loss model behind scikit-learn's door."""

import warnings

from bagwise.bags import Bags
from bagwise.errors import FitWarning
from bagwise.estimators.base import BagEstimator, SigmoidProbability, require_positive
from bagwise.learn.bag_loss import bag_loss_logistic
from bagwise.ltf import LTF

__all__ = ["BagLossRegression"]


class BagLossRegression(SigmoidProbability, BagEstimator):
    """Logistic model whose mean probability in each bag is fitted to the proportion by cross-entropy [AC17].

    The loss of most networks that learn from label proportions, with a linear model. It needs proportions that vary.

    Parameters
    ----------
    C : float
        Inverse strength of the ridge penalty beside the sum over bags.
    fit_intercept : bool
    max_iter : int
        Most steps of L-BFGS.

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`

    n_iter_ : int
        Steps taken.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> law = np.array([1, 4, 6, 4, 1]) / 16  # four rows a bag, at random
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.0), np.zeros(2), np.eye(2), size=4, count=law)
    >>> model = bw.BagLossRegression(C=100.0).fit(oracle.sample(500, np.random.default_rng(0)))
    >>> bool(model.ltf_.angle(oracle.ltf) < 0.05)
    True
    """

    def __init__(self, C: float = 1.0, *, fit_intercept: bool = True, max_iter: int = 1000) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter

    def _fit(self, bags: Bags) -> LTF:
        require_positive(self, "C", "max_iter")
        self.ambiguous_ = False
        found = bag_loss_logistic(bags, self.C, fit_intercept=self.fit_intercept, max_steps=self.max_iter)
        self.n_iter_ = max(found.n_steps, 1)
        if not found.converged:
            warnings.warn(
                f"L-BFGS had to come to rest within max_iter={self.max_iter} steps; it did not. "
                "Raise max_iter or lower C.",
                FitWarning,
                stacklevel=3,
            )
        return LTF(found.coef, found.intercept)
