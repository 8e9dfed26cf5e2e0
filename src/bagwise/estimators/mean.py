"""Learners from bag means behind scikit-learn's door: the paper's A3, and the mean map."""

from typing import Any, Literal

import numpy as np

from bagwise.bags import Bags, BagSource
from bagwise.errors import InvalidInputError
from bagwise.estimators.base import MomentsEstimator, generator, require_choice, warn_all
from bagwise.learn.directions import fisher_ltf, mean_direction, one_row_mean_direction, slope_direction
from bagwise.learn.identifiability import direction_findings
from bagwise.ltf import LTF
from bagwise.stats.moments import Moments

__all__ = ["MeanLTF", "MeanMap"]


class MeanLTF(MomentsEstimator):
    """Homogeneous linear threshold along the mean of unbalanced bags: the paper's A3, for rows from N(0, I).

    Rows are weighed by 2p - 1, so bags of any unbalanced sizes and counts work together. On other distributions the
    answer is biased; use SpectralLTF or BagLogisticRegression there.

    Parameters
    ----------
    pairs : "all" or "one"
        All rows of each bag, or one random row per bag as the algorithm is printed.
    random_state : int, Generator-compatible or None
        For ``pairs="one"``.

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([0.6, 0.8], 0.0), np.zeros(2), np.eye(2), size=10, count=8)
    >>> model = bw.MeanLTF().fit(oracle.sample(500, np.random.default_rng(0)))
    >>> bool(model.ltf_.angle(oracle.ltf) < 0.1)
    True
    """

    def __init__(self, *, pairs: Literal["all", "one"] = "all", random_state: Any = None) -> None:
        self.pairs = pairs
        self.random_state = random_state

    def _fit(self, bags: BagSource) -> LTF:
        require_choice(self, "pairs", ("all", "one"))
        if self.pairs == "all":
            return super()._fit(bags)
        if not isinstance(bags, Bags):
            raise InvalidInputError('pairs="one" needs the bags in memory; got a source. Leave it at "all".')
        self.__dict__.pop("_sums", None)
        self.ambiguous_ = False
        return LTF(one_row_mean_direction(bags, generator(self.random_state)), 0.0)

    def _along(self, moments: Moments) -> LTF:
        if self.pairs == "one":
            raise InvalidInputError('partial_fit needs sums over all rows; got pairs="one". Set it to "all".')
        self.ambiguous_ = False
        return LTF(mean_direction(moments), 0.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # right for N(0, I) and boundaries through the origin only
        return tags


class MeanMap(MomentsEstimator):
    """Linear classifier from class means that are read off bag means of different proportions.

    The mean of a bag is linear in its proportion whatever the distribution of the classes; its ends at 0 and 1 are the
    class means [QSCL09], and with the pooled covariance of a class they give Fisher's linear discriminant.

    Attributes
    ----------
    coef_, intercept_, ltf_, classes_, ambiguous_ : see `BagEstimator`
    means_ : array of shape (2, n_features)
        The class means.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> law = np.full(11, 1 / 11)  # any number of positives from 0 to 10, equally often
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=10, count=law)
    >>> model = bw.MeanMap().fit(oracle.sample(500, np.random.default_rng(0)))
    >>> bool(model.ltf_.angle(oracle.ltf) < 0.1)
    True

    Bags that come later are learnt from by ``partial_fit``, without those before:

    >>> model = model.partial_fit(oracle.sample(500, np.random.default_rng(1)))
    """

    def _along(self, moments: Moments) -> LTF:
        warn_all(direction_findings(moments, slope_direction(moments)))
        negative = moments.mean - moments.proportion * moments.slope
        self.means_ = np.stack([negative, negative + moments.slope])
        self.ambiguous_ = False
        return fisher_ltf(moments)
