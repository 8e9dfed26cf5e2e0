"""Sign and offset: the sweep against brute force, ties, mirrored signs, and totals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import bagwise as bw
from bagwise.learn.offsets import (
    best_threshold,
    matching_threshold,
    n_satisfied,
    n_satisfied_along,
    satisfied_intervals,
    scores_along,
)


@st.composite
def scored(draw, max_size=7):
    """Bags and scores, coarse ones with ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.integers(1, draw(st.integers(1, max_size)) + 1, draw(st.integers(1, 12)))
    n = int(sizes.sum())
    scores = rng.standard_normal(n)
    if draw(st.booleans()):
        scores = np.round(scores * draw(st.sampled_from([1.0, 3.0])))
    counts = rng.binomial(sizes, draw(st.sampled_from([0.0, 0.3, 0.5, 1.0])))
    return scores, bw.Bags.from_sizes(np.zeros((n, 1)), sizes, counts)


def everywhere(scores):
    """A threshold in each place where predictions differ: at the scores, between them and beyond."""
    ends = np.unique(scores)
    return np.concatenate([[ends[0] - 1], ends, (ends[1:] + ends[:-1]) / 2, [ends[-1] + 1]])


@given(scored(max_size=60))
def test_intervals_are_the_thresholds_that_satisfy_a_bag(case):
    scores, bags = case
    for sign, low, high in zip((1, -1), *satisfied_intervals(scores, bags), strict=True):
        for t in everywhere(sign * scores):
            above = np.add.reduceat(sign * scores > t, bags.starts[:-1], dtype=int)
            assert_array_equal((low <= t) & (t < high), above == bags.counts)


@given(scored())
def test_the_sweep_is_the_best_of_all_thresholds(case):
    scores, bags = case
    found = best_threshold(scores, bags)
    best = {sign: max(n_satisfied(sign * scores, t, bags) for t in everywhere(sign * scores)) for sign in (1, -1)}
    assert found.satisfied == best[found.sign] == n_satisfied(found.sign * scores, found.threshold, bags)
    assert found.mirrored == best[-found.sign]
    # Satisfied bags decide where they can; within twice what chance explains, the deviations of the counts do.
    if (best[1] - best[-1]) ** 2 > 4 * (best[1] + best[-1]):
        assert found.satisfied == max(best.values())


def test_the_threshold_is_the_middle_of_the_widest_best_stretch():
    bags = bw.Bags.from_sizes(np.zeros((4, 1)), [2, 2], [1, 1])
    found = best_threshold(np.array([0.0, 10.0, 2.0, 4.0]), bags)
    assert (found.satisfied, found.threshold) == (2, 3.0)  # both in [2, 4)
    lone = bw.Bags.from_sizes(np.zeros((2, 1)), [2], [1])
    assert best_threshold(np.array([1.0, 5.0]), lone).threshold == 3.0


def test_a_tie_at_the_cut_satisfies_nothing():
    bags = bw.Bags.from_sizes(np.zeros((2, 1)), [2], [1])
    assert best_threshold(np.array([1.0, 1.0]), bags).satisfied == 0


def test_balanced_bags_are_met_by_both_signs():
    bags = bw.Bags.from_sizes(np.zeros((4, 1)), [2, 2], [1, 1])
    found = best_threshold(np.array([0.0, 1.0, 0.2, 0.9]), bags)
    assert found.balanced and found.satisfied == found.mirrored == 2


@given(scored(max_size=5))
def test_balanced_bags_know_no_sign_and_are_swept_once(case):
    scores = np.repeat(case[0], 2) + np.tile([0.0, 1.0], len(case[0]))
    scores = scores[np.random.default_rng(0).permutation(len(scores))]
    sizes = np.full(len(case[0]), 2)
    bags = bw.Bags.from_sizes(np.zeros((len(scores), 1)), sizes, sizes // 2)
    found = best_threshold(scores, bags)
    assert found.balanced and found.sign == 1
    for sign, satisfied in ((1, found.satisfied), (-1, found.mirrored)):
        assert satisfied == max(n_satisfied(sign * scores, t, bags) for t in everywhere(sign * scores))
    assert n_satisfied(scores, found.threshold, bags) == found.satisfied
    low, high = satisfied_intervals(scores, bags, signs=1)
    both = satisfied_intervals(scores, bags)
    assert_array_equal(low[0], both[0][0])
    assert_array_equal(high[0], both[1][0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_are_products_and_the_same_for_equal_rows(dtype):
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.standard_normal((400, 7)).astype(dtype), 5, axis=0)
    normal = rng.standard_normal(14)[::2]  # not contiguous
    bags = bw.Bags.from_sizes(rows, [5] * 400, [2] * 400)
    scores = scores_along(normal, bags)
    # Seven products and sums, each rounded to 2^-53 of at most the sum of the absolute terms.
    assert (np.abs(scores - rows @ normal) <= 14 * 2.0**-53 * (np.abs(rows) @ np.abs(normal))).all()
    assert (scores.reshape(400, 5) == scores[::5, None]).all()
    assert n_satisfied_along(normal, 0.0, bags) == n_satisfied(scores, 0.0, bags)


def test_large_bags_that_no_sign_satisfies_get_theirs_from_deviations():
    rng = np.random.default_rng(0)
    oracle = bw.BagOracle(bw.LTF([1.0, 0.0]), np.zeros(2), np.eye(2), size=2000, count=1400)
    bags = oracle.sample(8, rng)
    scores = bags.X @ [0.9, 0.45]  # 26 degrees off: hardly any bag is met
    for sign in (1, -1):
        assert best_threshold(sign * scores, bags).sign == sign


@given(scored())
def test_the_matching_threshold_predicts_the_total_or_the_nearest(case):
    scores, bags = case
    total = int(bags.counts.sum())
    off = lambda t: abs(int((scores > t).sum()) - total)
    assert off(matching_threshold(scores, total)) == min(map(off, everywhere(scores)))


@pytest.mark.parametrize("q", [13, 20, 21, 50, 500])
@pytest.mark.parametrize("kind", ["random", "sorted", "reversed", "two values", "equal"])
def test_selection_is_sorting(q, kind):
    rng = np.random.default_rng(q)
    s = rng.standard_normal(4 * q)
    s = {
        "random": s,
        "sorted": np.sort(s),
        "reversed": np.sort(s)[::-1],
        "two values": np.round(s > 0.5).astype(float),
        "equal": np.ones(4 * q),
    }[kind]
    bags = bw.Bags.from_sizes(np.zeros((4 * q, 1)), [q] * 4, [0, q, q // 3, q // 2])
    low, high = satisfied_intervals(s, bags)
    for b, k in enumerate(bags.counts):
        ordered = np.concatenate([[-np.inf], np.sort(s[b * q : (b + 1) * q]), [np.inf]])
        assert (low[0, b], high[0, b]) == (ordered[q - k], ordered[q - k + 1])
        assert (low[1, b], high[1, b]) == (-ordered[k + 1], -ordered[k])


@given(scored(), st.floats(-2, 2))
def test_satisfied_bags_are_those_without_bag_error(case, threshold):
    scores, bags = case
    rows = bw.Bags.from_sizes(scores[:, None], bags.sizes, bags.counts)
    expected = 1 - bw.bag_error(bw.LTF([1.0], -threshold), rows)
    assert n_satisfied(scores, threshold, bags) == round(expected * bags.n_bags)
