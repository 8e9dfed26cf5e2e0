"""Thresholds from parts in bounded memory: equal to the sweep in memory to the last bit, whatever is forgotten."""

from dataclasses import dataclass, field
from functools import reduce as fold
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import bagwise as bw
from bagwise.learn import offsets
from bagwise.learn.offsets import (
    best_threshold,
    best_threshold_along,
    matching_threshold,
    matching_threshold_along,
)
from bagwise.learn.tallies import Grid, Steps, Tally, resolved
from bagwise.stats.moments import BagMoments


@dataclass
class Parts:
    """A source that hands over its bags in parts of a few, and counts the passes."""

    bags: bw.Bags
    size: int
    passes: list[str] = field(default_factory=list)

    @property
    def n_features(self) -> int:
        return self.bags.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return None

    def reduce(self, task: Any) -> Any:
        self.passes.append(type(task).__name__)
        parts = [self.bags[i : i + self.size] for i in range(0, self.bags.n_bags, self.size)]
        return fold(lambda a, b: a + b, map(task, parts))

    def split(self, fraction: float, rng: np.random.Generator) -> Any:
        raise NotImplementedError


@st.composite
def scored_bags(draw: st.DrawFn) -> bw.Bags:
    """Bags of one feature, the score itself; coarse scores tie within and between bags."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    m = draw(st.integers(1, 60))
    sizes = rng.integers(1, draw(st.integers(1, 9)) + 1, m)
    scores = rng.standard_normal(sizes.sum()) * draw(st.sampled_from([1.0, 1e-12, 1e9])) + draw(st.floats(-5, 5))
    if draw(st.booleans()):
        scores = np.round(rng.standard_normal(sizes.sum()) * draw(st.sampled_from([0.3, 3.0, 100.0])))
    counts = rng.binomial(sizes, draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])))
    return bw.Bags.from_sizes(scores[:, None], sizes, counts)


@given(scored_bags(), st.integers(1, 20), st.integers(1, 64), st.integers(1, 64))
def test_a_sweep_in_parts_is_the_sweep_in_memory(bags: bw.Bags, part: int, budget: int, bins: int) -> None:
    moments = BagMoments.from_bags(bags).finalize()
    normal = np.ones(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offsets, "BUDGET", budget)
        patch.setattr(offsets, "_grid", lambda normal, moments: Grid.around(0.0, 1.0, bins))
        in_parts = best_threshold_along(normal, Parts(bags, part), moments)
    assert in_parts == best_threshold(bags.X[:, 0], bags)


@given(scored_bags(), st.integers(1, 20), st.integers(1, 64), st.integers(1, 64))
def test_a_rank_in_parts_is_the_rank_in_memory(bags: bw.Bags, part: int, budget: int, bins: int) -> None:
    moments = BagMoments.from_bags(bags).finalize()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offsets, "BUDGET", budget)
        patch.setattr(offsets, "_grid", lambda normal, moments: Grid.around(0.0, 1.0, bins))
        in_parts = matching_threshold_along(np.ones(1), Parts(bags, part), moments)
    in_memory = matching_threshold(bags.X[:, 0], int(bags.counts.sum()))
    assert in_parts == in_memory


def oracle_bags(n_bags: int) -> bw.Bags:
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.5), np.zeros(2), np.eye(2), size=10, count=6)
    return oracle.sample(n_bags, np.random.default_rng(0))


def test_one_pass_is_enough_even_when_most_is_forgotten() -> None:
    bags = oracle_bags(20_000)
    moments = BagMoments.from_bags(bags).finalize()
    source = Parts(bags, 500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offsets, "BUDGET", 4_000)  # of 40,000 steps per sign
        found = best_threshold_along(np.array([1.0, 2.0]), source, moments)
    assert found == best_threshold(bags.X @ [1.0, 2.0], bags)
    assert source.passes == ["_Intervals"]


def test_a_tally_forgets_to_stay_within_its_budget() -> None:
    rng = np.random.default_rng(0)
    grid = Grid.around(0.0, 1.0, 1000)
    jumps = rng.choice([-1, 1], (50, 1000))
    parts = [Tally(grid, 0, (Steps.of(rng.standard_normal(1000), row),), None, 5000) for row in jumps]
    total = fold(lambda a, b: a + b, parts)
    assert sum(map(len, total.kept)) <= 5000
    assert total.profile().levels[-1] == jumps.sum()


def test_ties_cost_no_memory() -> None:
    grid = Grid.around(0.0, 1.0, 4)
    step = lambda: Tally(grid, 0, (Steps.of(np.repeat([0.0, 0.1, 0.2], 100), np.ones(300, np.int64)),), None, 10)
    total = fold(lambda a, b: a + b, (step() for _ in range(50)))
    assert total.lost is None
    assert_array_equal(total.profile().levels, [5000, 10000, 15000])


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 40))
def test_merging_does_not_hang_on_the_order(seed: int, budget: int, bins: int) -> None:
    rng = np.random.default_rng(seed)
    grid = Grid.around(0.0, 1.0, bins)
    raw = [(rng.standard_normal(8).round(1), rng.integers(-3, 4, 8)) for _ in range(9)]
    tallies = [Tally(grid, int(rng.integers(3)), (Steps.of(*r),), None, budget) for r in raw]
    look = lambda grid, budget: fold(
        lambda a, b: a + b,
        (
            Tally(grid, 0, (s[grid.inside(s.values)],), None, budget)
            for s in (Steps.of(*r) for r in raw)
        ),
    )  # fmt: skip
    forward = resolved(fold(lambda a, b: a + b, tallies), look).widest_maximum()
    backward = resolved(fold(lambda a, b: a + b, tallies[::-1]), look).widest_maximum()
    in_a_tree = resolved((tallies[0] + tallies[5]) + (tallies[3] + (tallies[1] + tallies[2])) + (
        (tallies[8] + tallies[4]) + (tallies[6] + tallies[7])), look).widest_maximum()  # fmt: skip
    values, jumps = np.concatenate([r[0] for r in raw]), np.concatenate([r[1] for r in raw])
    plain = Tally(grid, sum(t.base for t in tallies), (Steps.of(values, jumps),)).profile().widest_maximum()
    assert forward == backward == in_a_tree == plain
