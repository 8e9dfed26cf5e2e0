"""Totals that vary by noise alone -> the share of positives that all bags have in truth.

Owns one special case of wrong labels: bags made with one true proportion, whose labels were flipped before they were
counted. The reported count of such a bag says nothing of its rows, but that all true counts are alike is as good as
having them: rows within a bag still tell which are the positives. So the counts are put back to what they were.

Letters: s mean reported share, v variance of a reported label within a bag, p true share, (low, high) the shares of
reported positives among clean negatives and positives. Flips at one rate r, low = r = 1 - high, give s = r + (1 - 2r) p
and v = r (1 - r): both p and r show in the counts alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from bagwise.bags import Bags, BagSource
from bagwise.learn.likelihood import WeightedBags

__all__ = ["Steadied", "Steady", "steadied", "steady_totals"]

T = TypeVar("T")

# Standard errors by which counts must scatter less than those of independent rows, or may differ from stated levels.
_SURE = 5.0


@dataclass(frozen=True, slots=True)
class Steady:
    """The true share of positives of all bags, and how it was reported; as a function: bags with their true counts."""

    share: float
    low: float
    high: float

    def __call__(self, bags: Bags) -> Bags:
        counts = np.clip(np.rint(self.share * bags.sizes), 0, bags.sizes).astype(np.int64)
        return replace(bags, counts=counts)


@dataclass(frozen=True, slots=True, eq=False)
class Steadied:
    """Bags from anywhere, seen with their true counts."""

    source: BagSource
    steady: Steady

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self.source.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        return self.source.feature_names

    def reduce(self, task: Callable[[Bags], T]) -> T:
        """What the task makes of all bags."""
        return cast(T, self.source.reduce(_After(self.steady, task)))

    def split(self, fraction: float, rng: np.random.Generator) -> "tuple[BagSource, BagSource]":
        """Two random parts by bags."""
        first, second = self.source.split(fraction, rng)
        return Steadied(first, self.steady), Steadied(second, self.steady)


def steadied(source: BagSource, steady: Steady) -> BagSource:
    """The same bags with their true counts."""
    if isinstance(source, Bags):
        return steady(source)
    if isinstance(source, WeightedBags):
        return WeightedBags(steady(source.bags), source.weights)
    return Steadied(source, steady)


def steady_totals(source: BagSource, levels: tuple[float, float] | None) -> Steady | None:
    """The one true share that the reported counts scatter around by flips alone; None if they do not.

    ``levels`` are the stated (low, high); None: flips at one rate, to be found.
    """
    sums = source.reduce(_CountSums.of)
    if sums.released or sums.n_bags < 2:
        return None
    s = sums.counts / sums.rows
    v = max(sums.squares - 2 * s * sums.products + s * s * sums.size_squares, 0.0) / sums.rows
    # Of a variance from n_bags nearly normal counts.
    error = v * float(np.sqrt(2 / (sums.n_bags - 1)))
    if levels is None:
        if v <= 0 or v + _SURE * error >= s * (1 - s):
            return None  # independent rows scatter like that, whatever their labels
        r = (1 - np.sqrt(1 - 4 * v)) / 2
        low, high = float(r), float(1 - r)
    else:
        low, high = levels
    share = (s - low) / (high - low)
    if not 0 < share < 1:
        return None
    expected = share * high * (1 - high) + (1 - share) * low * (1 - low)
    return Steady(share, low, high) if abs(v - expected) <= _SURE * error else None


@dataclass(frozen=True, slots=True)
class _CountSums:
    """Sums over bags of what reported counts are judged by."""

    n_bags: int
    rows: float
    counts: float
    squares: float
    products: float
    size_squares: float
    released: bool

    @classmethod
    def of(cls, bags: Bags) -> "_CountSums":
        q, k = bags.sizes.astype(np.float64), bags.counts.astype(np.float64)
        sums = (float(q.sum()), float(k.sum()), float(k @ k), float(q @ k), float(q @ q))
        return cls(bags.n_bags, *sums, bags.release is not None)

    def __add__(self, other: "_CountSums") -> "_CountSums":
        return _CountSums(
            self.n_bags + other.n_bags,
            self.rows + other.rows,
            self.counts + other.counts,
            self.squares + other.squares,
            self.products + other.products,
            self.size_squares + other.size_squares,
            self.released or other.released,
        )


@dataclass(frozen=True, slots=True)
class _After:
    """A task on bags as `Steady` has them; a value, so that it can travel to workers."""

    steady: Steady
    task: Callable[[Bags], Any]

    def __call__(self, bags: Bags) -> Any:
        return self.task(self.steady(bags))
