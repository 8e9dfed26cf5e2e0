"""Normal + bags -> sign and offset: where along its normal the boundary lies.

Owns the exact search for the threshold that satisfies most bags, over both signs, and the threshold that predicts the
right total. A bag of q rows with k positives is satisfied by pos(s - t) exactly for s_(k+1) <= t < s_(k), where
s_(1) >= … >= s_(q) are its scores, s_(0) = inf and s_(q+1) = -inf: an empty set on a tie at the cut. One sort and one
sweep over these intervals see every bag at every threshold.
"""

from dataclasses import dataclass

import numpy as np

from bagwise.arrays import BoolArray, FloatArray
from bagwise.bags import Bags

__all__ = ["Threshold", "best_threshold", "matching_threshold", "satisfied_intervals"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Label 1 where sign · score > threshold; ``satisfied`` bags agree, ``mirrored`` with the better opposite sign."""

    sign: int
    threshold: float
    satisfied: int
    mirrored: int


def satisfied_intervals(scores: FloatArray, bags: Bags) -> tuple[FloatArray, FloatArray]:
    """Bounds low, high of the thresholds that satisfy each bag (low <= t < high), for scores and negatives.

    Both have shape (2, n_bags): first row sign +1, second row sign -1.
    """
    from bagwise.stats.kernels import cut_scores

    low, high = np.empty((2, bags.n_bags)), np.empty((2, bags.n_bags))
    cut_scores(np.ascontiguousarray(scores, dtype=np.float64), bags.starts, bags.counts, low, high)
    return low, high


def best_threshold(scores: FloatArray, bags: Bags) -> Threshold:
    """The sign and threshold that satisfy most bags, the middle of the best interval.

    Of several best intervals the widest finite one is taken: an end point would hang on rounding.
    """
    low, high = satisfied_intervals(scores, bags)
    (plus, at_plus), (minus, at_minus) = (_sweep(low[i], high[i], scores) for i in (0, 1))
    # Satisfied bags decide if they differ by more than twice what chance explains. In large bags an imperfect direction
    # satisfies hardly any with either sign; then the smaller total deviation of the counts decides.
    if (plus - minus) ** 2 > 4 * (plus + minus):
        positive = plus > minus
    else:
        by_plus, by_minus = _deviation(scores > at_plus, bags), _deviation(-scores > at_minus, bags)
        positive = (by_plus, minus) <= (by_minus, plus)
    return Threshold(1, at_plus, plus, minus) if positive else Threshold(-1, at_minus, minus, plus)


def matching_threshold(scores: FloatArray, total: int) -> float:
    """The threshold above which exactly ``total`` scores lie (nearest to it on ties), in the middle of its gap."""
    n = len(scores)
    spread = _margin(scores)
    if total <= 0:
        return float(scores.max() + spread)
    if total >= n:
        return float(scores.min() - spread)
    ends = np.partition(scores, [n - total - 1, n - total])
    below, above = float(ends[n - total - 1]), float(ends[n - total])
    if below < above:
        return _middle(below, above)
    # A tie at the cut: everything above it, or it and everything above, whichever total is nearer.
    at_least, more = int((scores >= above).sum()), int((scores > above).sum())
    if total - more <= at_least - total:
        higher = scores[scores > above]
        return _middle(above, float(higher.min())) if len(higher) else above + spread
    lower = scores[scores < above]
    return _middle(float(lower.max()), above) if len(lower) else above - spread


def _deviation(predicted: BoolArray, bags: Bags) -> int:
    """Sum over bags of |number predicted positive - k|."""
    counts = np.add.reduceat(predicted, bags.starts[:-1], dtype=np.int64)
    return int(np.abs(counts - bags.counts).sum())


def _sweep(low: FloatArray, high: FloatArray, scores: FloatArray) -> tuple[int, float]:
    """Largest number of intervals [low, high) over one point, and the middle of the widest cell that attains it."""
    open_ = low < high
    low, high = low[open_], high[open_]
    # One score is at most two ends; between consecutive ends the number of satisfied bags is constant.
    ends = np.unique(np.concatenate([low, high]))
    ends = ends[np.isfinite(ends)]
    always = int(np.isneginf(low).sum())
    if len(ends) == 0:
        return always, 0.0
    opened = np.searchsorted(np.sort(low), ends, side="right")
    closed = np.searchsorted(np.sort(high), ends, side="right")
    inside = np.concatenate([[always], opened - closed])  # cell i lies between ends[i - 1] and ends[i]
    most = int(inside.max())
    best = np.flatnonzero(inside == most)
    finite = best[(best > 0) & (best < len(ends))]
    if len(finite):
        cell = finite[np.argmax(ends[finite] - ends[finite - 1])]
        return most, _middle(float(ends[cell - 1]), float(ends[cell]))
    margin = _margin(scores)
    return most, float(ends[0] - margin if best[0] == 0 else ends[-1] + margin)


def _middle(low: float, high: float) -> float:
    """A point t with low <= t < high, half way where rounding allows."""
    middle = low + (high - low) / 2
    return middle if middle < high else low


def _margin(scores: FloatArray) -> float:
    """A step beyond the outermost score."""
    return float(np.ptp(scores)) / 2 or max(abs(float(scores[0])), 1.0)
