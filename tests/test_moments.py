"""Moments by example: one draw per bag, keys apart, degrees of freedom, and what is refused."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.stats.moments import BagMoments, key_moments, one_draw_moments
from bagwise.theory.population import population_moments

RNG = lambda: np.random.default_rng(7)
ORACLE = bw.BagOracle(bw.LTF([1.0, -2.0], 0.3), np.array([0.5, 0.0]), np.array([[1.0, 0.4], [0.4, 2.0]]), 4, 3)


def test_two_bags_of_two_by_hand():
    bags = bw.Bags.from_sizes([[0.0], [2.0], [1.0], [5.0]], [2, 2], [1, 2])
    found = BagMoments.from_bags(bags).finalize()
    # Means 1 and 3 at p = 1/2 and 1; grand mean 2, pbar 3/4.
    assert (found.n_bags, found.n_rows, found.n_pairs) == (2, 4, 2)
    assert_allclose([*found.mean, found.proportion], [2, 0.75])
    assert_allclose(found.cov_bag, [[(4 + 0 + 1 + 9) / 4]])
    assert_allclose(found.cov_diff, [[(4 + 16) / 2]])
    assert_allclose(found.slope, [(3 - 1) / (1 - 1 / 2)])
    assert_allclose(found.count_scatter, 2 * (1 / 16 + 1 / 16))
    assert_allclose(found.pair_weight, 2 * 1 / 4 / 2)
    assert_allclose(found.dispersion, 0.25 / (2 * 3 / 16))
    assert found.size == 2 and found.count is None and found.n_features == 1


def test_bags_of_one_row_have_no_pairs():
    found = BagMoments.from_bags(bw.Bags.from_sizes([[0.0], [2.0]], [1, 1], [0, 1])).finalize()
    assert found.n_pairs == 0 and found.cov_diff.tolist() == [[0.0]] and found.pair_weight == 0
    assert_allclose(found.slope, [2.0])


def test_randomly_formed_bags_have_dispersion_one():
    # Var k = q p (1 - p) for binomial k; the sample variance of m = 4000 proportions has a relative standard error of
    # sqrt((2 + excess kurtosis) / m) < 0.023. Five of them: 0.12; false alarms 6e-7.
    bags = bw.BagOracle(ORACLE.ltf, ORACLE.mean, ORACLE.cov, 6, binomial(6, 0.3)).sample(4000, RNG())
    assert abs(BagMoments.from_bags(bags).finalize().dispersion - 1) < 0.12


def binomial(q: int, p: float) -> np.ndarray:
    from scipy.stats import binom

    return binom.pmf(np.arange(q + 1), q, p)


def test_keys_apart_are_the_bags_of_each_key_most_frequent_first():
    sizes, counts = np.array([2, 3, 2, 2, 3, 2]), np.array([1, 1, 1, 0, 1, 1])
    X = RNG().standard_normal((sizes.sum(), 2))
    bags = bw.Bags.from_sizes(X, sizes, counts)
    found = key_moments(bags)
    assert list(found) == [(2, 1), (3, 1), (2, 0)]
    for (q, k), state in found.items():
        chosen = bags[(sizes == q) & (counts == k)]
        assert state.n_bags == chosen.n_bags and state.finalize().size == q and state.finalize().count == k
        assert_array_equal(state.within, BagMoments.from_bags(chosen).within)


# ---------------------------------------------------------------------- one draw per bag


@pytest.mark.parametrize("fresh", [False, True])
def test_one_draw_per_bag_has_the_moments_of_the_oracle(fresh):
    exact = population_moments(ORACLE.ltf, ORACLE.mean, ORACLE.cov, 4, 3)
    bags = ORACLE.sample(20_000, RNG())
    found = one_draw_moments(bags, RNG(), fresh=fresh)
    m = 10_000 if fresh else 20_000
    # Entries of covariances of near-normal vectors: standard error sqrt((S_ij^2 + S_ii S_jj) / m), five of them.
    # Rows of truncated normals have lighter tails, so this is on the safe side. 10 comparisons at 6e-7.
    for field in ("cov_bag", "cov_diff"):
        S = getattr(exact, field)
        error = np.sqrt((S**2 + np.outer(np.diag(S), np.diag(S))) / m)
        assert (np.abs(getattr(found, field) - S) < 5 * error).all(), field
    assert (np.abs(found.mean - exact.mean) < 5 * np.sqrt(np.diag(exact.cov_bag) / m)).all()
    assert (found.size, found.count, found.proportion) == (4, 3, 0.75)
    assert_allclose(found.pair_weight, exact.pair_weight)


def test_one_draw_takes_one_row_and_one_pair_of_distinct_rows_of_each_bag():
    m, q = 50, 3
    X = np.zeros((m * q, 1))
    X[:, 0] = np.tile([0.0, 1.0, 3.0], m)  # differences of distinct rows: 1, 2, 3 in size, never 0
    bags = bw.Bags.from_sizes(X, [q] * m, [1] * m)
    for seed in range(20):
        found = one_draw_moments(bags, np.random.default_rng(seed))
        assert 1 <= found.cov_diff[0, 0] <= 9
    spread = [one_draw_moments(bags, np.random.default_rng(seed)).cov_diff[0, 0] for seed in range(400)]
    # Mean square over pairs (1 + 4 + 9) / 3, variance of a square 98/3 - (14/3)^2 = 10.9; 20,000 pairs: error 0.0233.
    assert abs(np.mean(spread) - 14 / 3) < 5 * 0.0233


def test_fresh_draws_use_each_bag_once():
    # The first half of the bags is far from the second: rows come from the first, pairs from the second.
    X = np.concatenate([np.full((20, 1), 100.0), np.tile([[0.0], [1.0]], (10, 1))])
    bags = bw.Bags.from_sizes(X, [2] * 20, [1] * 20)
    found = one_draw_moments(bags, RNG(), fresh=True)
    assert found.mean.tolist() == [100.0] and found.cov_bag.tolist() == [[0.0]] and found.cov_diff.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("sizes", "counts", "fresh", "message"),
    [
        ([2, 3], [1, 1], False, "needs bags of one (size, count) with at least two rows; got sizes 2..3"),
        ([2, 2], [1, 0], False, "got sizes 2..2, counts 0..1. Use the moments of all pairs, or select the bags of one"),
        ([1, 1], [1, 1], False, "with at least two rows; got sizes 1..1, counts 1..1"),
        ([2], [1], False, "one draw per bag needs at least 2 bags; got 1"),
        ([2, 2, 2], [1, 1, 1], True, "one draw per bag needs at least 4 bags; got 3"),
    ],
)  # fmt: skip
def test_what_one_draw_cannot_learn_from_is_refused(sizes, counts, fresh, message):
    bags = bw.Bags.from_sizes(np.zeros((sum(sizes), 1)), sizes, counts)
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        one_draw_moments(bags, RNG(), fresh=fresh)


def test_moments_of_no_bags_are_refused():
    with pytest.raises(InvalidInputError, match="moments need at least one bag; got none"):
        BagMoments.empty(3).finalize()
