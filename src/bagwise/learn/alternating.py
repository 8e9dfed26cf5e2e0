"""The alternating mean map: label the k highest rows of each bag, refit, repeat [PNCR14].

Owns the alternation between a classifier and the labels that meet all totals: of these the classifier's own loss is
smallest for the k highest scores of each bag, so both steps descend and the loop ends. Start and intercept are ours:
the combined direction needs no variation of the totals, and as a ranking within bags needs no offset, the intercept
is free in each refit and settles by itself.
"""

from dataclasses import dataclass

import numpy as np

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.learn.soft_labels import SoftLogistic, soft_logistic

__all__ = ["Alternation", "alternate", "top_labels"]


@dataclass(frozen=True, slots=True, eq=False)
class Alternation:
    """Where the alternation ended."""

    fit: SoftLogistic
    n_rounds: int
    settled: bool  # labels repeated; otherwise the rounds ran out


def top_labels(scores: FloatArray, bags: Bags) -> FloatArray:
    """1.0 for the k highest scores of each bag (ties by position), else 0.0: the cheapest labels of its total."""
    order = np.lexsort((-scores, bags.row_bags()))
    rank = np.arange(bags.n_rows) - np.repeat(bags.starts[:-1], bags.sizes)
    labels = np.zeros(bags.n_rows)
    labels[order] = rank < np.repeat(bags.counts, bags.sizes)
    return labels


def alternate(bags: Bags, normal: FloatArray, C: float, *, fit_intercept: bool, max_rounds: int) -> Alternation:
    """Ridge logistic regression on labels of its own choice, from the ranking by a normal."""
    X = bags.X.astype(np.float64, copy=False)
    labels = top_labels(X @ normal, bags)
    start: FloatArray | None = None
    for done in range(1, max_rounds + 1):
        fit = soft_logistic(X, labels, C, fit_intercept=fit_intercept, start=start)
        start = np.append(fit.coef, fit.intercept)
        chosen = top_labels(X @ fit.coef, bags)
        if np.array_equal(chosen, labels):
            return Alternation(fit, done, True)
        labels = chosen
    return Alternation(fit, max_rounds, False)
