"""How wrong a classifier is: on bags at hand, on a Gaussian, and on the bags of an oracle.

Owns the measures of the paper, as single numbers. What may be concluded from held-out bags, with intervals, lives in
``rates`` and ``certificate``. Refuses classifiers whose predictions are not labels 0 and 1.

Vocabulary: a *classifier* is anything with predict(X), an LTF or a fitted model. A bag is *satisfied* when as many of
its rows are predicted positive as its count says. *Bag error* is the share of bags not satisfied, *instance error*
Pr[prediction != true label].
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from bagwise.arrays import AnyArray, FloatArray, IntArray
from bagwise.bags import Bags, require_exact
from bagwise.data.oracles import BagOracle
from bagwise.errors import InvalidInputError
from bagwise.ltf import LTF, error_rates

__all__ = [
    "BagErrors",
    "Classifier",
    "bag_error",
    "instance_error",
    "mismatch_probability",
    "oracle_bag_error",
    "predicted_counts",
    "proportion_error",
]


class Classifier(Protocol):
    """Anything that predicts labels 0 and 1."""

    def predict(self, X: Any) -> AnyArray: ...


def predicted_counts(model: Classifier, bags: Bags) -> IntArray:
    """Number of rows predicted positive in each bag.

    Raises InvalidInputError when predictions are not 0 and 1.

    Examples
    --------
    >>> import bagwise as bw
    >>> bags = bw.Bags.from_sizes([[-1.0], [2.0], [3.0]], sizes=[1, 2], counts=[0, 1])
    >>> predicted_counts(bw.LTF([1.0]), bags)
    array([0, 2])
    """
    # Learners of this house take Bags, and compare the names of the features with those of the fit.
    labels = np.asarray(model.predict(bags if hasattr(model, "ltf_") else bags.X))
    if labels.shape != (bags.n_rows,):
        raise InvalidInputError(
            f"predict must give one label per row, {bags.n_rows}; got shape {labels.shape}. "
            "Measures need hard labels: for scores compare them with a cut first."
        )
    positive = labels == 1
    if not (positive | (labels == 0)).all():
        other = labels[np.argmin(positive | (labels == 0))]
        raise InvalidInputError(
            f"predictions must be 0 or 1, as counts count the 1s; got {other!r}. Recode the labels."
        )
    counts: IntArray = np.add.reduceat(positive, bags.starts[:-1], dtype=np.int64)
    return counts


def bag_error(model: Classifier, bags: Bags) -> float:
    """Share of bags in which the number of predicted positives is not the count.

    Examples
    --------
    >>> import bagwise as bw
    >>> bags = bw.Bags.from_sizes([[-1.0], [2.0], [3.0]], sizes=[1, 2], counts=[0, 1])
    >>> bw.bag_error(bw.LTF([1.0]), bags)
    0.5
    """
    require_exact(bags, "bag_error")
    return float(np.mean(predicted_counts(model, bags) != bags.counts))


@dataclass(frozen=True, slots=True)
class BagErrors:
    """Both errors of the totals as sums, so that bags may come in parts: add with ``+``."""

    n_bags: int
    n_rows: int
    n_wrong: int
    deviation: float

    @staticmethod
    def task(model: Classifier) -> "Callable[[Bags], BagErrors]":
        """Bags -> the sums of a classifier: for `BagSource.reduce`."""
        return partial(_bag_errors, model)

    def __add__(self, other: "BagErrors") -> "BagErrors":
        return BagErrors(
            self.n_bags + other.n_bags,
            self.n_rows + other.n_rows,
            self.n_wrong + other.n_wrong,
            self.deviation + other.deviation,
        )

    @property
    def bag_error(self) -> float:
        """Share of bags whose predicted count is wrong."""
        return self.n_wrong / self.n_bags

    @property
    def proportion_error(self) -> float:
        """Mean deviation of a bag's predicted proportion."""
        return self.deviation / self.n_bags


def _bag_errors(model: Classifier, bags: Bags) -> BagErrors:
    excess = np.abs(predicted_counts(model, bags) - bags.counts)
    return BagErrors(bags.n_bags, bags.n_rows, int((excess > 0).sum()), float((excess / bags.sizes).sum()))


def proportion_error(model: Classifier, bags: Bags) -> float:
    """Mean over bags of |predicted share of positives - proportion|.

    Examples
    --------
    >>> import bagwise as bw
    >>> bags = bw.Bags.from_sizes([[-1.0], [2.0], [3.0]], sizes=[1, 2], counts=[0, 1])
    >>> bw.proportion_error(bw.LTF([1.0]), bags)
    0.25
    """
    return float(np.mean(np.abs(predicted_counts(model, bags) - bags.counts) / bags.sizes))


def instance_error(ltf: LTF, true_ltf: LTF, mean: Any, cov: Any) -> float:
    """Exact Pr[ltf(x) != true_ltf(x)] for x ~ N(mean, cov); see `LTF.disagreement`.

    Examples
    --------
    >>> import bagwise as bw
    >>> truth, guess = bw.LTF([1.0, 0.0]), bw.LTF([1.0, 1e-6])
    >>> error = bw.instance_error(guess, truth, mean=[0.0, 0.0], cov=[[1.0, 0.0], [0.0, 1.0]])
    >>> f"{error:.6e}"
    '3.183099e-07'
    """
    return ltf.disagreement(true_ltf, mean, cov)


def oracle_bag_error(ltf: LTF, oracle: BagOracle) -> float:
    """Exact probability that a bag of the oracle is not satisfied by ``ltf``: BagErr.

    With a = Pr[ltf = 0 | f = 1] and b = Pr[ltf = 1 | f = 0] under the oracle's Gaussian, a bag of k positives is not
    satisfied with probability Pr[Bin(k, a) != Bin(q - k, b)], averaged over k. Flips with
    ``count_is="reported"`` mix the two rates row by row and keep this form. With ``count_is="true"`` each row
    adds predicted - reported, which is -1, 0 or 1, and the law of the sum comes from its characteristic function at
    the (2 q + 1)-th roots of unity.

    Examples
    --------
    >>> import bagwise as bw, numpy as np
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 0.0]), np.zeros(2), np.eye(2), size=2, count=1)
    >>> round(oracle_bag_error(bw.LTF([1.0, 1.0]), oracle), 6)  # a = b = 1/4
    0.375
    """
    missed, false = error_rates(ltf, oracle.ltf, oracle.mean, oracle.cov)
    k = np.flatnonzero(oracle.count_probabilities)
    weights = oracle.count_probabilities[k]
    if oracle.flip == 0 or oracle.count_is == "reported":
        true_0, true_1 = oracle.true_given_reported
        a = true_1 * missed + (1 - true_1) * (1 - false)
        b = true_0 * (1 - missed) + (1 - true_0) * false
        return float(weights @ mismatch_probability(k, oracle.size - k, a, b))
    flip = oracle.flip
    over = np.array([(1 - flip) * false, flip * (1 - missed)])  # Pr[predicted 1, reported 0 | true 0 or 1]
    under = np.array([flip * (1 - false), (1 - flip) * missed])
    period = 2 * oracle.size + 1
    z = np.exp(2j * np.pi * np.arange(period) / period)
    of_0, of_1 = (1 + o * (z - 1) + u * (z.conj() - 1) for o, u in zip(over, under, strict=True))
    equal = [np.mean(of_1**n * of_0 ** (oracle.size - n)).real for n in k]
    return float(min(1.0, max(0.0, weights @ (1 - np.array(equal)))))


def mismatch_probability(n: Any, m: Any, a: float, b: float) -> FloatArray:
    """Pr[Bin(n, a) != Bin(m, b)] of independent binomials, for each pair of n and m.

    A sum of products of probabilities, so that an error of 1e-12 keeps its digits. Costs O(max(n)) per pair.

    Examples
    --------
    >>> import numpy as np
    >>> mismatch_probability(np.array([8]), np.array([2]), 0.0, 1e-12)
    array([2.e-12])
    """
    from scipy.special import bdtr, bdtrc, gammaln, xlog1py, xlogy

    n, m = np.atleast_1d(np.asarray(n, np.int64)), np.atleast_1d(np.asarray(m, np.int64))
    j = np.arange(int(n.max()) + 1)
    size = n[:, None]
    with np.errstate(invalid="ignore"):
        log_first = (
            gammaln(size + 1) - gammaln(j + 1) - gammaln(np.maximum(size - j, 0) + 1)
            + xlogy(j, a) + xlog1py(size - j, -a)
        )  # fmt: skip
    first = np.where(j <= size, np.exp(np.where(j <= size, log_first, -np.inf)), 0.0)
    first /= first.sum(axis=1, keepdims=True)  # log-gamma of 1000 leaves 1e-13
    # Pr[Bin(m, b) < j] + Pr[Bin(m, b) > j]
    inside = np.minimum(j, m[:, None])
    above = np.where(j < m[:, None], bdtrc(inside, m[:, None], b), 0.0)
    below = np.where(j > 0, bdtr(np.minimum(np.maximum(j - 1, 0), m[:, None]), m[:, None], b), 0.0)
    probabilities: FloatArray = np.minimum(1.0, np.sum(first * (above + below), axis=1))
    return probabilities
