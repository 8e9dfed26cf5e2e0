"""The alternating mean map behind scikit-learn's door."""

import warnings

import numpy as np

from bagwise.bags import Bags
from bagwise.errors import FitWarning
from bagwise.estimators.base import BagEstimator, require_positive, warn_all
from bagwise.learn.alternating import alternate
from bagwise.learn.directions import combined_direction
from bagwise.learn.identifiability import balance_finding
from bagwise.learn.offsets import best_threshold, scores_along
from bagwise.ltf import LTF
from bagwise.stats.moments import BagMoments

__all__ = ["AlternatingMeanMap"]


class AlternatingMeanMap(BagEstimator):
    """Logistic regression on labels of its own choice that meet all totals (AMM) [PNCR14].

    Of each bag the k rows with the highest scores are called positive, the classifier is refitted, and so on until the
    labels repeat. Accurate on clean totals; label noise, which the labels must then imitate, misleads it.

    Parameters
    ----------
    C : float
        Inverse strength of the ridge penalty, as in LogisticRegression.
    fit_intercept : bool
    max_rounds : int

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`
    n_rounds_ : int
        Refits until the labels repeated.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=10, count=6)
    >>> model = bw.AlternatingMeanMap(C=100.0).fit(oracle.sample(200, np.random.default_rng(0)))
    >>> bool(bw.instance_error(model.ltf_, oracle.ltf, oracle.mean, oracle.cov) < 0.02)
    True
    """

    def __init__(self, C: float = 1.0, *, fit_intercept: bool = True, max_rounds: int = 200) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds

    def _fit(self, bags: Bags) -> LTF:
        require_positive(self, "C", "max_rounds")
        self.ambiguous_ = bags.balanced
        warn_all(balance_finding(bags))
        normal = combined_direction(BagMoments.from_bags(bags).finalize()).normal
        sign = best_threshold(scores_along(normal, bags), bags).sign
        found = alternate(bags, sign * normal, self.C, fit_intercept=self.fit_intercept, max_rounds=self.max_rounds)
        self.n_rounds_ = found.n_rounds
        if not found.settled:
            warnings.warn(
                f"the labels had to repeat within max_rounds={self.max_rounds}, but still changed; the last fit is "
                "kept. Raise max_rounds.",
                FitWarning,
                stacklevel=3,
            )
        return LTF(found.fit.coef, found.fit.intercept if np.isfinite(found.fit.intercept) else 0.0)
