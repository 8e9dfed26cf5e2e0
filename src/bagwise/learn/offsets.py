"""Normal + bags -> sign and offset: where along its normal the boundary lies.

Owns the exact search for the threshold that satisfies most bags, over both signs, and the threshold that predicts the
right total. A bag of q rows with k positives is satisfied by pos(s - t) exactly for s_(k+1) <= t < s_(k), where
s_(1) >= … >= s_(q) are its scores, s_(0) = inf and s_(q+1) = -inf: an empty set on a tie at the cut. One sort and one
sweep over these intervals see every bag at every threshold.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bagwise.arrays import FloatArray, IntArray
from bagwise.bags import Bags, BagSource
from bagwise.learn.tallies import BUDGET, Grid, Steps, Tally, resolved
from bagwise.stats.moments import Moments
from bagwise.stats.parallel import in_threads, n_threads

__all__ = [
    "Threshold",
    "best_threshold",
    "best_threshold_along",
    "matching_threshold",
    "matching_threshold_along",
    "n_satisfied",
    "n_satisfied_along",
    "satisfied_intervals",
    "scores_along",
]

_BLOCK_ELEMENTS = 1 << 20  # numbers per task of a thread


@dataclass(frozen=True, slots=True)
class Threshold:
    """Label 1 where sign · score > threshold; ``satisfied`` bags agree, ``mirrored`` with the better opposite sign."""

    sign: int
    threshold: float
    satisfied: int
    mirrored: int
    n_bags: int
    balanced: bool  # whether all bags have as many positives as negatives


def scores_along(normal: FloatArray, bags: Bags) -> FloatArray:
    """rows · normal of the bags in memory, in float64."""
    from bagwise.stats.kernels import projections

    normal = np.ascontiguousarray(normal, dtype=np.float64)
    scores = np.empty(bags.n_rows)
    rows = max(1, _BLOCK_ELEMENTS // bags.n_features)
    parts = [slice(first, first + rows) for first in range(0, bags.n_rows, rows)]
    in_threads(lambda part: projections(bags.X[part], normal, scores[part]), parts, n_threads(bags.X.size))
    return scores


def satisfied_intervals(scores: FloatArray, bags: Bags, *, signs: int = 2) -> tuple[FloatArray, FloatArray]:
    """Bounds low, high of the thresholds that satisfy each bag (low <= t < high), for scores and negatives.

    Both have shape (signs, n_bags): first row sign +1, second row, unless one sign is asked for, sign -1.
    """
    from bagwise.stats.kernels import cut_scores

    low, high = np.empty((signs, bags.n_bags)), np.empty((signs, bags.n_bags))
    cut_scores(np.ascontiguousarray(scores, dtype=np.float64), bags.sizes, bags.counts, low, high)
    return low, high


def n_satisfied(scores: FloatArray, threshold: float, bags: Bags) -> int:
    """Number of bags with as many scores above the threshold as their count says."""
    above = np.add.reduceat(scores > threshold, bags.starts[:-1], dtype=np.int64)
    return int((above == bags.counts).sum())


def best_threshold(scores: FloatArray, bags: Bags) -> Threshold:
    """The sign and threshold that satisfy most bags, the middle of the best interval.

    Of several best intervals the widest finite one is taken: an end point would hang on rounding.
    """
    margin, balanced = _margin(scores), bags.balanced
    low, high = satisfied_intervals(scores, bags, signs=1 if balanced else 2)
    plus, *rest = (_in_middle(*_most_covered(*ends), margin) for ends in zip(low, high, strict=True))
    minus = (plus[0], -plus[1]) if balanced else rest[0]  # where all is balanced the one is the other's mirror image
    return _signed(plus, minus, bags.n_bags, balanced, lambda: _deviations(scores, bags, plus[1], minus[1]))


def best_threshold_along(normal: FloatArray, source: BagSource, moments: Moments) -> Threshold:
    """`best_threshold` of the scores rows · normal, of bags in memory or not: exact in bounded memory.

    From a source in parts it is one pass while the intervals of all bags fit (two million distinct ends), and one as a
    rule beyond; the moments only place the bins, see ``tallies``. A doubtful sign costs one more.
    """
    if isinstance(source, Bags):
        return best_threshold(scores_along(normal, source), source)
    found = source.reduce(_intervals_task(normal, moments))
    margin = found.margin

    plus, minus = (
        _in_middle(*resolved(found.sides[side], partial(_look_at_side, source, normal, side)).widest_maximum(), margin)
        for side in (0, 1)
    )
    deviations = lambda: source.reduce(_Deviations(normal, plus[1], minus[1]))
    return _signed(plus, minus, found.n_bags, found.balanced, deviations)


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


def matching_threshold_along(normal: FloatArray, source: BagSource, moments: Moments) -> float:
    """`matching_threshold` of the scores rows · normal and the total count, of bags in memory or not.

    From a source in parts it is one pass as a rule, two at most for any data met so far.
    """
    if isinstance(source, Bags):
        return matching_threshold(scores_along(normal, source), int(source.counts.sum()))
    # Placed by the moments, the share of positives only says where to keep the scores; the totals decide.
    found = source.reduce(_Ranks(normal, _grid(normal, moments), 1 - moments.proportion, BUDGET))
    n, total, margin = found.n_rows, found.n_positive, found.margin
    if total <= 0:
        return found.high + margin
    if total >= n:
        return found.low - margin
    look = partial(_look_at_ranks, source, normal, 1 - moments.proportion)
    below, at, above, n_below, n_up_to = resolved(found.ranks, look, level=n - total).beside(n - total)
    if n_up_to == n - total:
        return _middle(at, above)
    # A tie at the cut: everything above it, or it and everything above, whichever total is nearer.
    if total - (n - n_up_to) <= (n - n_below) - total:
        return _middle(at, above) if np.isfinite(above) else at + margin
    return _middle(below, at) if np.isfinite(below) else at - margin


# ---------------------------------------------------------------------- one side


def _most_covered(low: FloatArray, high: FloatArray) -> tuple[int, float, float]:
    """Most intervals over one point, and the ends of the widest stretch of such points. Sorts its arguments."""
    from bagwise.stats.kernels import most_covered

    if not (open_ := low < high).all():
        low, high = low[open_], high[open_]
    low.sort()
    high.sort()
    found: tuple[int, float, float] = most_covered(low, high)
    return found


def _steps(low: FloatArray, high: FloatArray) -> tuple[int, tuple[Steps, ...]]:
    """Number of intervals that begin at -inf, and the steps of the number of intervals over a point."""
    open_ = low < high
    low, high = low[open_], high[open_]
    always = int(np.isneginf(low).sum())
    low, high = low[np.isfinite(low)], high[np.isfinite(high)]
    jumps = np.concatenate([np.ones(len(low), np.int64), np.full(len(high), -1)])
    return always, (Steps.of(np.concatenate([low, high]), jumps),)


def _in_middle(most: int, low: float, high: float, margin: float) -> tuple[int, float]:
    """Most bags over one point, and the middle of the cell that attains it."""
    if np.isfinite(low) and np.isfinite(high):
        return most, _middle(low, high)
    if np.isfinite(high):
        return most, high - margin
    return most, low + margin if np.isfinite(low) else 0.0


def _signed(
    plus: tuple[int, float], minus: tuple[int, float], n_bags: int, balanced: bool, deviations: Callable[[], IntArray]
) -> Threshold:
    """The better of the two signs.

    Satisfied bags decide if they differ by more than twice what chance explains. In large bags an imperfect direction
    satisfies hardly any with either sign; then the smaller total deviation of the counts decides. Balanced bags know no
    sign: it stays as it is.
    """
    if balanced:
        positive = True
    elif (plus[0] - minus[0]) ** 2 > 4 * (plus[0] + minus[0]):
        positive = plus[0] > minus[0]
    else:
        by_plus, by_minus = deviations()
        positive = (int(by_plus), minus[0]) <= (int(by_minus), plus[0])
    first, second = (plus, minus) if positive else (minus, plus)
    return Threshold(1 if positive else -1, first[1], first[0], second[0], n_bags, balanced)


def _deviations(scores: FloatArray, bags: Bags, at_plus: float, at_minus: float) -> IntArray:
    """Sum over bags of |number predicted positive - k|, for both signs."""
    from bagwise.stats.kernels import deviations

    scores = np.ascontiguousarray(scores, dtype=np.float64)
    return np.array(deviations(scores, bags.sizes, bags.counts, at_plus, at_minus))


def _middle(low: float, high: float) -> float:
    """A point t with low <= t < high, half way where rounding allows."""
    middle = low + (high - low) / 2
    return middle if middle < high else low


def _margin(scores: FloatArray) -> float:
    """A step beyond the outermost score."""
    return _margin_of(float(scores.min()), float(scores.max()))


def _margin_of(low: float, high: float) -> float:
    return (high - low) / 2 or max(abs(low), 1.0)


# ---------------------------------------------------------------------- bags in parts: tasks and what they add up to


def _grid(normal: FloatArray, moments: Moments) -> Grid:
    spread = float(np.sqrt(max(float(normal @ moments.cov_bag @ normal), 0.0)))
    return Grid.around(float(normal @ moments.mean), spread)


@dataclass(frozen=True, slots=True, eq=False)
class _Swept:
    """What the search for the best threshold needs of some bags."""

    sides: tuple[Tally, Tally]
    n_bags: int
    balanced: bool
    low: float
    high: float

    def __add__(self, other: "_Swept") -> "_Swept":
        return _Swept(
            (self.sides[0] + other.sides[0], self.sides[1] + other.sides[1]),
            self.n_bags + other.n_bags,
            self.balanced and other.balanced,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @property
    def margin(self) -> float:
        return _margin_of(self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False)
class _Intervals:
    """Bags -> the ends of their intervals, for both signs."""

    normal: FloatArray
    grids: tuple[Grid, Grid]
    budget: int

    def __call__(self, bags: Bags) -> _Swept:
        scores = scores_along(self.normal, bags)
        low, high = satisfied_intervals(scores, bags)
        plus, minus = (Tally(self.grids[i], *_steps(low[i], high[i]), None, self.budget) for i in (0, 1))
        return _Swept((plus, minus), bags.n_bags, bags.balanced, float(scores.min()), float(scores.max()))


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """Bags -> the ends of their intervals in some windows, for one sign."""

    normal: FloatArray
    grid: Grid
    side: int
    budget: int

    def __call__(self, bags: Bags) -> Tally:
        low, high = satisfied_intervals(scores_along(self.normal, bags), bags)
        always, (steps,) = _steps(low[self.side], high[self.side])
        return Tally(self.grid, always, (steps[self.grid.inside(steps.values)],), None, self.budget)


def _intervals_task(normal: FloatArray, moments: Moments) -> _Intervals:
    """The task of the first look, with bins where the moments expect the scores."""
    grid = _grid(normal, moments)
    return _Intervals(normal, (grid, replace(grid, lows=-grid.highs, highs=-grid.lows)), BUDGET)


def _look_at_side(source: BagSource, normal: FloatArray, side: int, grid: Grid, budget: int) -> Tally:
    return source.reduce(_Side(normal, grid, side, budget))


@dataclass(frozen=True, slots=True, eq=False)
class _Deviations:
    """Bags -> `_deviations` of two thresholds."""

    normal: FloatArray
    at_plus: float
    at_minus: float

    def __call__(self, bags: Bags) -> IntArray:
        return _deviations(scores_along(self.normal, bags), bags, self.at_plus, self.at_minus)


def n_satisfied_along(normal: FloatArray, threshold: float, source: BagSource) -> int:
    """`n_satisfied` of the scores rows · normal, of bags in memory or not: one pass."""
    return source.reduce(_SatisfiedBy(normal, threshold))


@dataclass(frozen=True, slots=True, eq=False)
class _SatisfiedBy:
    """Bags -> how many a threshold satisfies."""

    normal: FloatArray
    threshold: float

    def __call__(self, bags: Bags) -> int:
        return n_satisfied(scores_along(self.normal, bags), self.threshold, bags)


@dataclass(frozen=True, slots=True, eq=False)
class _Ranked:
    """What the search for the matching threshold needs of some bags."""

    ranks: Tally
    n_rows: int
    n_positive: int
    low: float
    high: float

    def __add__(self, other: "_Ranked") -> "_Ranked":
        return _Ranked(
            self.ranks + other.ranks,
            self.n_rows + other.n_rows,
            self.n_positive + other.n_positive,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @property
    def margin(self) -> float:
        return _margin_of(self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """Bags -> the number of scores up to each value."""

    normal: FloatArray
    grid: Grid
    aim: float
    budget: int

    def __call__(self, bags: Bags) -> _Ranked:
        scores = scores_along(self.normal, bags)
        inside = scores[self.grid.inside(scores)].astype(np.float64, copy=False)
        steps = Steps.of(inside, np.ones(len(inside), np.int64))
        return _Ranked(
            Tally(self.grid, 0, (steps,), self.aim, self.budget),
            bags.n_rows,
            int(bags.counts.sum()),
            float(scores.min()),
            float(scores.max()),
        )


def _look_at_ranks(source: BagSource, normal: FloatArray, aim: float, grid: Grid, budget: int) -> Tally:
    return source.reduce(_Ranks(normal, grid, aim, budget)).ranks
