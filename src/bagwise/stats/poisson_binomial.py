"""How likely a bag's count is, and which rows it points to.

Owns the Poisson-binomial distribution of the number of positives among independent rows: log-likelihood of the count
and posterior of each label. Exact to rounding for bags of any size, also where the likelihood underflows. Refuses
nothing: the counts have passed the door. docs/theory/likelihood.md holds the derivations.

Vocabulary: the *log-odds* of a row are log(P / (1 - P)) for its probability P of being positive; its *posterior* is
that probability given the count of its bag.
"""

from dataclasses import dataclass

import numpy as np

from bagwise.arrays import FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.stats.parallel import bag_parts, in_threads, n_threads

__all__ = ["CountPosterior", "bag_posterior", "count_posterior", "log_odds"]

_PART_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class CountPosterior:
    """What the counts of bags say.

    Attributes
    ----------
    loglik : array of shape (m,)
        Log-probability of each bag's count.
    labels : array of shape (n,)
        Pr[label = 1 | the count of its bag]; sums to the count in each bag.
    """

    loglik: FloatArray
    labels: FloatArray


def count_posterior(log_odds: FloatArray, starts: IntArray, counts: IntArray) -> CountPosterior:
    """Log-likelihood of the counts and posterior of the labels of independent rows.

    Bag b holds the rows starts[b] to starts[b + 1]. The gradient of its log-likelihood in its log-odds is posterior
    minus probability. Exact by dynamic programming in O(q min(k, q - k)) for small counts, and by a sum of at most 41
    terms over the characteristic function, O(q), for others; the error of both is that of rounding.

    >>> found = count_posterior(np.log([1 / 3, 3.0]), np.array([0, 2]), np.array([1]))
    >>> np.exp(found.loglik).round(4), found.labels.round(4)  # 1/4 · 1/4 + 3/4 · 3/4, and who it was
    (array([0.625]), array([0.1, 0.9]))
    """
    from bagwise.stats.kernels_counts import count_terms

    eta = np.ascontiguousarray(log_odds, dtype=np.float64)
    starts = np.ascontiguousarray(starts, dtype=np.int64)
    counts = np.ascontiguousarray(counts, dtype=np.int64)
    loglik, labels = np.empty(len(counts)), np.empty(len(eta))

    def task(part: slice) -> None:
        first, stop = starts[part.start], starts[part.stop]
        count_terms(eta[first:stop], starts[part.start : part.stop + 1], counts[part], loglik[part], labels[first:stop])

    in_threads(task, bag_parts(starts, _PART_ROWS), n_threads(20 * len(eta)))
    return CountPosterior(loglik, labels)


def bag_posterior(log_odds: FloatArray, bags: Bags) -> CountPosterior:
    """`count_posterior` of bags, or, where their totals were released with noise, the same summed over true counts.

    >>> from bagwise.releases import CountNoise
    >>> bags = Bags.from_sizes([[0.0], [1.0]], [2], [1.5], noise=CountNoise("laplace", 1e6))  # noise drowns the total
    >>> bag_posterior(np.log([1 / 3, 3.0]), bags).labels.round(4)
    array([0.25, 0.75])
    """
    if bags.release is None:
        return count_posterior(log_odds, bags.starts, bags.counts)
    from bagwise.stats.kernels_released import released_terms

    eta = np.ascontiguousarray(log_odds, dtype=np.float64)
    starts, release = bags.starts, bags.release
    loglik, labels = np.empty(bags.n_bags), np.empty(len(eta))

    def task(part: slice) -> None:
        first, stop = starts[part.start], starts[part.stop]
        some = release[part]
        released_terms(
            eta[first:stop], starts[part.start : part.stop + 1], some.values, some.laws, some.scales,
            loglik[part], labels[first:stop],
        )  # fmt: skip

    in_threads(task, bag_parts(starts, _PART_ROWS), n_threads(20 * len(eta)))
    return CountPosterior(loglik, labels)


def log_odds(probabilities: FloatArray) -> FloatArray:
    """log(P / (1 - P)); infinite at 0 and 1, which `count_posterior` takes.

    >>> log_odds(np.array([0.0, 0.5]))
    array([-inf,   0.])
    """
    P = np.asarray(probabilities, dtype=np.float64)
    with np.errstate(divide="ignore"):
        odds: FloatArray = np.log(P) - np.log1p(-P)
    return odds
