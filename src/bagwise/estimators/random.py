"""Learners by chance behind scikit-learn's door: baselines that anything useful must beat."""

from typing import Any

from bagwise.bags import Bags
from bagwise.errors import InvalidInputError
from bagwise.estimators.base import BagEstimator, generator
from bagwise.learn.random_ltf import best_random_ltf, class_ratio_ltf
from bagwise.ltf import LTF

__all__ = ["ClassRatioLTF", "RandomLTF"]


class RandomLTF(BagEstimator):
    """The best of random linear thresholds: the paper's baseline R.

    Parameters
    ----------
    n_candidates : int
    fit_intercept : bool
        False: homogeneous candidates. True: the sign and offset of each candidate that satisfy most bags, found
        exactly.
    random_state : int, Generator-compatible or None

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`
    satisfied_ : float
        Share of the bags that the winner satisfies.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.0), np.zeros(2), np.eye(2), size=4, count=3)
    >>> bags = oracle.sample(200, np.random.default_rng(0))
    >>> bool(bw.RandomLTF(random_state=0).fit(bags).satisfied_ > 0.8)  # easy in two dimensions
    True
    """

    def __init__(self, n_candidates: int = 100, *, fit_intercept: bool = False, random_state: Any = None) -> None:
        self.n_candidates = n_candidates
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def _fit(self, bags: Bags) -> LTF:
        if self.n_candidates < 1:
            raise InvalidInputError(f"n_candidates must be at least 1; got {self.n_candidates}.")
        rng = generator(self.random_state)
        best = best_random_ltf(bags, self.n_candidates, rng, with_offset=self.fit_intercept)
        self.ambiguous_ = bags.balanced
        self.satisfied_ = best.satisfied / bags.n_bags
        return best.ltf

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class ClassRatioLTF(BagEstimator):
    """A linear threshold with the right total and nothing else: the paper's class-ratio learner.

    From a single bag one can learn a classifier that predicts its share of positives, and no more: the direction is
    random. Several bags are poured into one.

    Parameters
    ----------
    random_state : int, Generator-compatible or None

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`

    Examples
    --------
    >>> import bagwise as bw
    >>> bag = bw.Bags.from_sizes([[0.0], [1.0], [2.0], [3.0]], sizes=[4], counts=[1])
    >>> int(bw.ClassRatioLTF(random_state=0).fit(bag).predict(bag.X).sum())
    1
    """

    def __init__(self, *, random_state: Any = None) -> None:
        self.random_state = random_state

    def _fit(self, bags: Bags) -> LTF:
        self.ambiguous_ = True
        return class_ratio_ltf(bags, generator(self.random_state))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
