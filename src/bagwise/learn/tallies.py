"""Thresholds of more bags than memory holds: exact answers from tallies that merge with ``+``.

Owns step functions that come in parts. As the threshold moves up, the number of satisfied bags steps up where a bag
begins to be satisfied and down where it ceases; the number of rows below steps up at each score. A tally keeps all
steps of its part. When it has more than its *budget*, it keeps those in the most promising *bins* of a grid, and of the
others only their sums, first and last per bin. What is kept and these sums bound the whole function, so that one look
tells whether the point that is sought lies where all steps are known; if not, the bins that may hide it (*windows*) are
looked at again through a finer grid. Ties, however many, are one step.

Refuses to know of bags and classifiers: see ``offsets``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bagwise.arrays import AnyArray, BoolArray, FloatArray, IntArray

__all__ = ["Grid", "Profile", "Steps", "Tally", "resolved"]

#: Distinct steps that a tally keeps; twice that many are in memory for a moment, at 16 bytes each.
BUDGET = 1 << 21
_BINS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Equal bins in each of some windows (disjoint, ascending); what lies outside of all windows is not looked at."""

    lows: FloatArray
    highs: FloatArray
    bins: int = _BINS
    everywhere: bool = False  # the one window only places the bins

    @classmethod
    def around(cls, centre: float, spread: float, bins: int = _BINS) -> "Grid":
        """Bins where scores of that mean and standard deviation lie; the outermost two have no end."""
        return cls(np.array([centre - 8 * spread]), np.array([centre + 8 * spread]), bins, everywhere=True)

    @property
    def edges(self) -> FloatArray:
        """Ends of the bins, ascending; values at an end belong to the bin above."""
        each = max(self.bins // len(self.lows), 1)
        edges: FloatArray = np.linspace(self.lows, self.highs, each + 1, axis=1).ravel()
        return edges

    def inside(self, values: FloatArray) -> BoolArray:
        """Which values lie in some window, ends included."""
        if self.everywhere:
            return np.ones(len(values), np.bool_)
        window = np.searchsorted(self.lows, values, side="right") - 1
        inside: BoolArray = (window >= 0) & (values <= self.highs[np.maximum(window, 0)])
        return inside


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Distinct values, ascending, and by how much the function changes at each."""

    values: FloatArray
    jumps: IntArray

    @classmethod
    def of(cls, values: FloatArray, jumps: IntArray) -> "Steps":
        """Steps from values in any order and number; equal ones become one step."""
        order = np.argsort(values)  # jumps of equal values are added up, so that their order does not matter
        values, jumps = values[order], jumps[order]
        starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])) if len(values) else order
        return cls(values[starts], np.add.reduceat(jumps, starts) if len(values) else jumps)

    @classmethod
    def merged(cls, parts: tuple["Steps", ...]) -> "Steps":
        """All steps of the parts."""
        if len(parts) == 1:
            return parts[0]
        return cls.of(
            np.concatenate([np.zeros(0), *(part.values for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.jumps for part in parts)]),
        )

    def __getitem__(self, chosen: BoolArray) -> "Steps":
        return Steps(self.values[chosen], self.jumps[chosen])

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Of the steps of each bin: how far up and down in all, and the first and last value (inf and -inf: no step)."""

    up: IntArray
    down: IntArray
    first: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, steps: Steps, edges: FloatArray) -> "_Sums":
        bins = np.searchsorted(edges, steps.values, side="right")
        n = len(edges) + 1
        up, down = np.zeros(n, np.int64), np.zeros(n, np.int64)
        np.add.at(up, bins, np.maximum(steps.jumps, 0))
        np.add.at(down, bins, np.maximum(-steps.jumps, 0))
        first, last = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(first, bins, steps.values)
        np.maximum.at(last, bins, steps.values)
        return cls(up, down, first, last)

    def __add__(self, other: "_Sums") -> "_Sums":
        return _Sums(
            self.up + other.up,
            self.down + other.down,
            np.minimum(self.first, other.first),
            np.maximum(self.last, other.last),
        )

    @property
    def present(self) -> BoolArray:
        """Bins with any step."""
        present: BoolArray = self.first < np.inf
        return present


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The steps of some bags, all or the promising ones; merges with ``+``.

    ``aim`` None seeks the maximum of the function, a number the point below which that share of its rise lies.
    """

    grid: Grid
    base: int  # value left of all steps
    kept: tuple[Steps, ...]
    aim: float | None = None
    budget: int = BUDGET
    lost: _Sums | None = field(default=None, repr=False)

    def __add__(self, other: "Tally") -> "Tally":
        lost = self.lost
        if other.lost is not None:
            lost = other.lost if lost is None else lost + other.lost
        kept = (*self.kept, *other.kept)
        both = Tally(self.grid, self.base + other.base, kept, self.aim, self.budget, lost)
        return both._compact() if sum(map(len, kept)) > self.budget else both

    def _compact(self) -> "Tally":
        """The same with at most half of the budget kept: the steps of the most promising bins."""
        steps = Steps.merged(self.kept)
        if 2 * len(steps) <= self.budget:
            return Tally(self.grid, self.base, (steps,), self.aim, self.budget, self.lost)
        edges = self.grid.edges
        bins = np.searchsorted(edges, steps.values, side="right")
        sums = _Sums.of(steps, edges)
        whole = sums if self.lost is None else sums + self.lost
        promise = _promise(whole, self.base, self.aim)
        if self.lost is not None:
            promise = np.where(self.lost.present, -np.inf, promise)  # such a bin is not known however much is kept
        sizes = np.bincount(bins, minlength=len(edges) + 1)
        best_first = np.argsort(-promise, kind="stable")
        fits = np.cumsum(sizes[best_first]) <= self.budget // 2
        chosen = np.zeros(len(sizes), np.bool_)
        chosen[best_first[fits & np.isfinite(promise[best_first])]] = True
        dropped = _Sums.of(steps[~chosen[bins]], edges)
        lost = dropped if self.lost is None else self.lost + dropped
        return Tally(self.grid, self.base, (steps[chosen[bins]],), self.aim, self.budget, lost)

    def profile(self) -> "Profile":
        """What is known of the function."""
        steps = Steps.merged(self.kept)
        if self.lost is None:
            return Profile.of(self.base, steps.values, steps.jumps)
        edges = self.grid.edges
        hidden = self.lost.present[np.searchsorted(edges, steps.values, side="right")]
        sums = self.lost + _Sums.of(steps[hidden], edges)
        steps, sums = steps[~hidden], _chosen(sums, sums.present)
        # A bin with lost steps shows where they begin and end; if that is one place, it hides nothing.
        wide = sums.first < sums.last
        net = sums.up - sums.down
        nothing = np.zeros(len(steps), np.int64)
        return Profile.of(
            self.base,
            np.concatenate([steps.values, sums.first[wide], sums.last]),
            np.concatenate([steps.jumps, np.zeros(wide.sum(), np.int64), net]),
            np.concatenate([nothing == 1, np.ones(wide.sum(), np.bool_), np.zeros(len(net), np.bool_)]),
            np.concatenate([nothing, sums.up[wide], np.zeros_like(net)]),
            np.concatenate([nothing, net[wide], np.zeros_like(net)]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A step function: ``levels[i]`` holds from ``values[i]`` up to the next value, ``base`` left of all.

    Where ``hidden``, the function between ``values[i]`` and the next value is known to lie at most ``tops[i]`` high and
    to end ``rises[i]`` above its beginning ``levels[i]``, and no more.
    """

    base: int
    values: FloatArray
    levels: IntArray
    hidden: BoolArray
    tops: IntArray
    rises: IntArray

    @classmethod
    def of(
        cls,
        base: int,
        values: FloatArray,
        jumps: IntArray,
        hidden: BoolArray | None = None,
        ups: IntArray | None = None,
        rises: IntArray | None = None,
    ) -> "Profile":
        """From steps in any order; a hidden stretch is a step of 0 with its ups, its end a step of its net rise."""
        order = np.argsort(values, kind="stable")
        levels: IntArray = base + np.cumsum(jumps[order])
        nothing = np.zeros(len(values), np.int64)
        return cls(
            base,
            values[order],
            levels,
            nothing == 1 if hidden is None else hidden[order],
            levels + (nothing if ups is None else ups[order]),
            nothing if rises is None else rises[order],
        )

    def widest_maximum(self) -> tuple[int, float, float]:
        """The maximum, and the ends of the widest finite stretch with it (the first of equals; else an infinite one).

        Meaningful once no hidden stretch may reach as high.
        """
        most = int(max(self.base, self.levels[~self.hidden].max(initial=self.base)))
        at = np.flatnonzero(~self.hidden[:-1] & (self.levels[:-1] == most))
        if len(at):
            i = at[np.argmax(self.values[at + 1] - self.values[at])]
            return most, float(self.values[i]), float(self.values[i + 1])
        if self.base == most:
            return most, -np.inf, float(self.values[0]) if len(self.values) else np.inf
        return most, float(self.values[-1]), np.inf

    def beside(self, level: int) -> tuple[float, float, float, int, int]:
        """The first value from which on at least ``level`` (> base) holds, its neighbours, and the levels at both."""
        i = int(np.searchsorted(self.levels, level))
        before = float(self.values[i - 1]) if i else -np.inf
        after = float(self.values[i + 1]) if i + 1 < len(self.values) else np.inf
        return before, float(self.values[i]), after, int(self.levels[i - 1]) if i else self.base, int(self.levels[i])

    def suspects(self, level: int | None) -> BoolArray:
        """Hidden stretches that may hold the maximum, or the step at which the function reaches the level."""
        if level is None:
            most = max(self.base, int(self.levels[~self.hidden].max(initial=self.base)))
            suspects: BoolArray = self.hidden & (self.tops >= most)
        else:
            suspects = self.hidden & (self.levels < level) & (self.levels + self.rises > level)
        return suspects

    def with_detail(self, detail: Tally) -> "Profile":
        """The same where the windows of a second look replace what was hidden there."""
        grid = detail.grid
        fine = detail.profile()
        starts = np.searchsorted(self.values, grid.lows)  # each window is one hidden stretch of this profile
        covered = np.zeros(len(self.values), np.bool_)
        covered[starts] = covered[starts + 1] = True
        # Levels of the fine look run on from window to window; each begins at the level known before.
        ends = np.searchsorted(fine.values, grid.highs, side="right")
        begins = np.searchsorted(fine.values, grid.lows)
        before = np.concatenate([[fine.base], fine.levels])[begins]
        shift = np.repeat(self.levels[starts] - before, ends - begins)
        values = np.concatenate([self.values[~covered], fine.values])
        order = np.argsort(values, kind="stable")

        def join(mine: AnyArray, theirs: AnyArray) -> AnyArray:
            joined: AnyArray = np.concatenate([mine[~covered], theirs])[order]
            return joined

        return Profile(
            self.base,
            values[order],
            join(self.levels, fine.levels + shift),
            join(self.hidden, fine.hidden),
            join(self.tops, fine.tops + shift),
            join(self.rises, fine.rises),
        )


def resolved(first: Tally, look_again: Callable[[Grid, int], Tally], level: int | None = None) -> Profile:
    """The profile of a tally with nothing hidden where the maximum, or the level, may be.

    ``look_again(grid, budget)`` is the tally of all bags in the windows of the grid. Each look divides the windows by
    tens of thousands, and one is the rule; the end is sure, as bins narrow down to single values.
    """
    profile = first.profile()
    while (suspects := profile.suspects(level)).any():
        at = np.flatnonzero(suspects)
        # The most promising are looked at together, each in at least 16 bins; the rest may fall away by what they tell.
        at = np.sort(at[np.argsort(-profile.tops[at], kind="stable")[: max(first.grid.bins // 16, 1)]])
        grid = Grid(profile.values[at], profile.values[at + 1], first.grid.bins)
        profile = profile.with_detail(look_again(grid, 4 * first.budget))
    return profile


def _promise(sums: _Sums, base: int, aim: float | None) -> FloatArray:
    """How likely a bin is to hold what is sought: its upper bound, or minus the distance of its levels from the aim."""
    net = sums.up - sums.down
    begins = base + np.cumsum(net) - net
    if aim is None:
        promise: AnyArray = (begins + sums.up).astype(np.float64)
        return promise
    target = aim * float(net.sum())
    distance: FloatArray = -np.maximum(np.maximum(begins - target, target - begins - net), 0.0)
    return distance


def _chosen(sums: _Sums, chosen: BoolArray) -> _Sums:
    return _Sums(sums.up[chosen], sums.down[chosen], sums.first[chosen], sums.last[chosen])
