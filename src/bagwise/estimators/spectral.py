"""The paper's spectral learners (A2, A4) behind scikit-learn's door."""

from typing import Any, Literal

import numpy as np

from bagwise.bags import Bags, BagSource
from bagwise.errors import InvalidInputError
from bagwise.estimators.base import BagEstimator, generator, require_choice, warn_all
from bagwise.learn.directions import Direction, combined_direction
from bagwise.learn.identifiability import balance_finding, direction_findings
from bagwise.learn.offsets import best_threshold_along, matching_threshold_along, n_satisfied_along
from bagwise.ltf import LTF
from bagwise.stats.moments import BagMoments, Moments, key_moments, one_draw_moments

__all__ = ["SpectralLTF"]


class SpectralLTF(BagEstimator):
    """Linear threshold from second moments: fast, one pass, no variation of the totals needed.

    The normal is the direction in which rows of a bag differ most beyond what bags differ by: the paper's A4, and A2
    without intercept [BSR23]. Bags of several sizes and counts are learnt from together, pairs and means weighed by
    their noise.

    Of features scaled to unit variance, directions with less than 1e-11 of the largest variance (constant and collinear
    columns, fewer rows than features) are left out as by the pseudo-inverse, and a warning says how many are left.

    Parameters
    ----------
    fit_intercept : bool
        Whether to look for an offset; otherwise the boundary passes through the origin.
    pairs : "all" or "one"
        All pairs of rows of each bag, or one random row and one random pair per bag as Algorithm 1 is printed
        (bags of one size and count only; for comparison, not for use).
    keys : "all" or "largest"
        Which bags give the direction: all together, or those of the most frequent (size, count), as the paper remarks.
    offset : "satisfied" or "count"
        The offset that satisfies most bags (the paper's), or the one that predicts the right total.
    holdout : float in [0, 1)
        Share of the bags kept apart for sign and offset; 0 uses all bags for both.
    random_state : int, Generator-compatible or None
        For ``pairs="one"`` and ``holdout``.

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`
    satisfied_ : float
        Share of the bags (for the offset) that are satisfied.
    mirrored_ : float
        The same for the best threshold of the opposite sign; close to ``satisfied_`` means that the sign is a guess.
    expected_sine_ : float
        Root mean square sine of the angle to the true normal that theory expects at this number of bags.
    dispersion_ : float
        Variance of the proportions over that of randomly formed bags: 0 all alike, 1 as by chance.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=10, count=6)
    >>> model = bw.SpectralLTF().fit(oracle.sample(500, np.random.default_rng(0)))
    >>> bool(model.ltf_.angle(oracle.ltf) < 0.1)
    True
    """

    _learns_from_sums = True

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        pairs: Literal["all", "one"] = "all",
        keys: Literal["all", "largest"] = "all",
        offset: Literal["satisfied", "count"] = "satisfied",
        holdout: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.pairs = pairs
        self.keys = keys
        self.offset = offset
        self.holdout = holdout
        self.random_state = random_state

    def _fit(self, bags: BagSource) -> LTF:
        require_choice(self, "pairs", ("all", "one"))
        require_choice(self, "keys", ("all", "largest"))
        require_choice(self, "offset", ("satisfied", "count"))
        if not 0 <= self.holdout < 1:
            raise InvalidInputError(f"holdout must lie in [0, 1); got {self.holdout}. It is a share of the bags.")
        rng = generator(self.random_state)
        learnt, judged = bags.split(1 - self.holdout, rng) if self.holdout else (bags, bags)
        moments = self._moments(learnt, rng)
        return self._along(combined_direction(moments), moments, judged)

    def _along(self, direction: Direction, moments: Moments, judged: BagSource) -> LTF:
        """The threshold along a direction, with sign and offset by the judged bags."""
        normal = direction.normal
        # The sign is judged with a free offset even where none is wanted: a boundary forced through the origin by a
        # slightly wrong normal may miss all large bags, and then says nothing of its sign.
        found = best_threshold_along(normal, judged, moments)
        self.ambiguous_ = found.balanced
        self.dispersion_ = moments.dispersion
        self.expected_sine_ = direction.sine
        warn_all(balance_finding(found) + direction_findings(moments, direction))
        threshold = found.threshold if self.fit_intercept else 0.0
        if self.fit_intercept and self.offset == "count":
            threshold = matching_threshold_along(found.sign * normal, judged, moments)
        satisfied = found.satisfied
        if threshold != found.threshold:
            satisfied = n_satisfied_along(found.sign * normal, threshold, judged)
        self.satisfied_ = satisfied / found.n_bags
        self.mirrored_ = found.mirrored / found.n_bags
        return LTF(found.sign * normal, -threshold)

    def _moments(self, bags: BagSource, rng: np.random.Generator) -> Moments:
        if self.keys == "all" and self.pairs == "all":
            return bags.reduce(BagMoments.from_bags).finalize()
        if not isinstance(bags, Bags):
            raise InvalidInputError(
                'keys="largest" and pairs="one" need the bags in memory; got a source. Pass scan.read(), or leave both '
                'at "all".'
            )
        if self.keys == "largest":
            largest = next(iter(key_moments(bags)))
            bags = bags[(bags.sizes == largest[0]) & (bags.counts == largest[1])]
        if self.pairs == "one":
            return one_draw_moments(bags, rng)
        return BagMoments.from_bags(bags).finalize()
