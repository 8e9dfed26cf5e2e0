"""How likely the counts of bags are when their rows fall into a few classes of one probability each.

Owns the count likelihood as a function of the probabilities of the classes, with its gradient and curvature. Refuses
nothing: what comes has passed the door. docs/theory/assessment.md holds the derivations.

Vocabulary: row classes are *bins* j; n_j rows of a bag are in it, each positive with probability r_j.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise.arrays import FloatArray, IntArray
from bagwise.stats.parallel import in_threads, n_threads

__all__ = ["LEAST", "BinnedCounts", "CountTerms"]

#: Probabilities stay so far from 0 and 1: a row there is certain for any data, and derivatives keep their digits.
LEAST = 1e-8

_PART_BAGS = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class CountTerms:
    """The log-likelihood at some probabilities.

    Attributes
    ----------
    loglik : float
        Weighted sum over bags.
    gradient, information : arrays of shape (B,) and (B, B)
        First and minus second derivatives of ``loglik``; the second where asked for.
    scores : array of shape (m, B)
        Gradient of each bag's log-probability, not weighted.
    """

    loglik: float
    gradient: FloatArray
    scores: FloatArray
    information: FloatArray


class BinnedCounts:
    """Counts of bags whose rows are known by bin.

    Parameters
    ----------
    rows : int array of shape (m, B)
        Rows of each bag in each bin.
    counts : int array of shape (m,)
    weights : array of shape (m,), optional
        How often each bag counts.
    """

    def __init__(self, rows: IntArray, counts: IntArray, weights: FloatArray | None = None) -> None:
        self.rows = np.ascontiguousarray(rows, dtype=np.int64)
        self.counts = np.ascontiguousarray(counts, dtype=np.int64)
        self.weights = np.ones(len(counts)) if weights is None else np.asarray(weights, dtype=np.float64)
        sizes = self.rows.sum(axis=1)
        nodes = _nodes_of(sizes)
        self._parts = [
            (int(n), members[first : first + _PART_BAGS])
            for n in np.unique(nodes)
            for members in [np.flatnonzero(nodes == n)]
            for first in range(0, len(members), _PART_BAGS)
        ]
        self._data = [(self.rows[at], self.counts[at], self.weights[at]) for _, at in self._parts]
        self._work = int(np.sum(nodes)) * self.rows.shape[1]
        self.totals: FloatArray = self.weights @ self.rows  # (B,)

    def reweighted(self, weights: FloatArray) -> "BinnedCounts":
        """The same bags, each counted so many times."""
        kept = weights > 0
        return BinnedCounts(self.rows[kept], self.counts[kept], weights[kept])

    def part(self, chosen: Any) -> "BinnedCounts":
        """The bags that a slice or mask selects."""
        return BinnedCounts(self.rows[chosen], self.counts[chosen], self.weights[chosen])

    def at(self, r: FloatArray, *, curvature: bool = True) -> CountTerms:
        """Log-likelihood and its derivatives in probabilities within [LEAST, 1 - LEAST]."""
        from bagwise.stats.kernels_bins import bin_terms

        m, B = self.rows.shape
        loglik, post = np.empty(m), np.empty((m, B))
        second = np.zeros((len(self._parts), B, B))

        def task(part: slice) -> None:
            for i in range(part.start, part.stop):
                (n_nodes, at), (rows, counts, weights) = self._parts[i], self._data[i]
                own_loglik, own_post = np.empty(len(at)), np.empty((len(at), B))
                bin_terms(rows, counts, weights, r, n_nodes, curvature, own_loglik, own_post, second[i])
                loglik[at], post[at] = own_loglik, own_post

        each = [slice(i, i + 1) for i in range(len(self._parts))]
        in_threads(task, each, n_threads(self._work))
        steep = 1 / (r * (1 - r))  # d log-odds / d r
        pull = post - self.rows * r
        total = self.weights @ pull
        information = np.diag(self.totals * r * (1 - r)) - second.sum(axis=0)
        information = information * np.outer(steep, steep) + np.diag(total * (1 - 2 * r) * steep**2)
        return CountTerms(float(self.weights @ loglik), total * steep, pull * steep, information)


def _nodes_of(sizes: IntArray) -> IntArray:
    """Odd numbers of roots of unity that keep Pr[K = k + j N] below rounding (Bernstein's inequality), few distinct."""
    reach = 41 / 3
    needed = np.minimum(sizes + 1, np.ceil(reach + np.sqrt(reach**2 + 82 * sizes / 4) + 3 * np.sqrt(sizes)) + 2)
    # Above 16 rounded up to one in eight, so that ragged bags share their tables.
    step = 2 ** np.maximum(np.floor(np.log2(needed)) - 3, 0)
    nodes = (np.ceil(needed / step) * step).astype(np.int64)
    odd: IntArray = nodes + 1 - nodes % 2
    return odd
