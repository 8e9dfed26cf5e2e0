"""Laws of the sums over bags: how they merge, what moves them and what does not, and what they are by definition."""

from functools import reduce
from itertools import combinations, permutations
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import bagwise as bw
from bagwise.stats.moments import BagMoments, Moments
from strategies import bags as integer_bags

SUMS = ("n_bags", "n_rows", "centre", "between", "within", "sizes", "counts")
FIGURES = (
    "n_bags", "n_rows", "mean", "proportion", "cov_bag", "cov_diff", "slope", "count_scatter", "pair_weight",
    "size", "count", "cov_residual", "cov_within", "cov_given_count", "n_pairs", "n_residuals", "dispersion",
)  # fmt: skip


def ragged(seed: int, n_bags: int = 30, n_features: int = 3, max_size: int = 9) -> bw.Bags:
    """Random bags of standard normal rows, some with the counts of single classes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, max_size + 1, n_bags)
    return bw.Bags.from_sizes(rng.standard_normal((sizes.sum(), n_features)), sizes, rng.integers(0, sizes + 1))


def like(bags: bw.Bags, X: np.ndarray, counts: np.ndarray | None = None) -> bw.Bags:
    """The same bags with other features, or other counts."""
    return bw.Bags.from_sizes(X, bags.sizes, bags.counts if counts is None else counts)


def assert_same(found: object, expected: object, fields: tuple[str, ...], rtol: float = 0.0) -> None:
    """All fields agree: exactly, or relative to the largest entry of each."""
    for field in fields:
        a, b = getattr(found, field), getattr(expected, field)
        if rtol == 0 or a is None:
            assert_array_equal(a, b, err_msg=field)
        else:
            assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(), err_msg=field)


def moments(bags: bw.Bags) -> Moments:
    return BagMoments.from_bags(bags).finalize()


# ---------------------------------------------------------------------- merging


@given(integer_bags(max_bags=8), st.integers(0, 8))
def test_sums_of_parts_are_the_sums_of_the_whole(bags, cut):
    parts = BagMoments.from_bags(bags[:cut]) + BagMoments.from_bags(bags[cut:])
    # Scatters of small integers: rounding is 1e-15 of the squares, which are below 16 n.
    whole = BagMoments.from_bags(bags)
    for field in SUMS:
        assert_allclose(getattr(parts, field), getattr(whole, field), rtol=1e-13, atol=1e-12, err_msg=field)


@given(integer_bags(), integer_bags())
def test_merging_is_commutative_to_the_last_bit(one, two):
    a, b = (BagMoments.from_bags(bags) for bags in (one, two))
    if one.n_features != two.n_features:
        with pytest.raises(ValueError, match=f"same features; got {one.n_features} and {two.n_features}"):
            a + b
    else:
        assert_same(a + b, b + a, SUMS)


@given(integer_bags())
def test_no_bags_are_neutral_on_both_sides(bags):
    state, nothing = BagMoments.from_bags(bags), BagMoments.empty(bags.n_features)
    assert_same(state + nothing, state, SUMS)
    assert_same(nothing + state, state, SUMS)
    assert_same(nothing + nothing, nothing, SUMS)
    assert_same(BagMoments.from_bags(bags[:0]), nothing, SUMS)


@given(st.integers(0, 2**32 - 1))
def test_merging_is_associative(seed):
    bags = ragged(seed)
    parts = [BagMoments.from_bags(bags[start : start + 10]) for start in (0, 10, 20)]
    for order in permutations(parts):
        assert_same(order[0] + (order[1] + order[2]), (order[0] + order[1]) + order[2], SUMS, rtol=1e-13)


def test_merging_with_anything_else_is_a_type_error():
    with pytest.raises(TypeError):
        BagMoments.empty(1) + 1


# ---------------------------------------------------------------------- what does not matter


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_rows_and_of_bags_does_not_matter(seed):
    bags, rng = ragged(seed), np.random.default_rng(seed)
    X, y = bags.as_rows()
    order = rng.permutation(len(X))
    shuffled = bw.Bags.from_target(X[order], y[order])
    assert_same(moments(shuffled), moments(bags), FIGURES, rtol=1e-13)


@pytest.mark.parametrize("n_features", [1, 3, 40])
def test_blocks_do_not_show(monkeypatch, n_features):
    bags = ragged(0, n_bags=200, n_features=n_features)
    whole = moments(bags)
    monkeypatch.setattr("bagwise.stats.moments._BLOCK_ELEMENTS", 1)  # every bag is a block of its own
    assert_same(moments(bags), whole, FIGURES, rtol=1e-13)


@given(st.integers(0, 2**32 - 1))
def test_float32_rows_are_summed_in_float64(seed):
    bags = ragged(seed)
    single = like(bags, bags.X.astype(np.float32))
    found = moments(single)
    assert found.cov_bag.dtype == np.float64
    assert_same(found, moments(like(bags, single.X.astype(np.float64))), FIGURES, rtol=1e-14)


def test_rows_that_may_not_be_written_are_read():
    bags = ragged(1)
    X = bags.X.copy()
    X.setflags(write=False)
    assert_same(moments(like(bags, X)), moments(bags), FIGURES)


# ---------------------------------------------------------------------- how they move


@given(st.integers(0, 2**32 - 1))
def test_moments_follow_an_affine_map(seed):
    bags, rng = ragged(seed), np.random.default_rng(seed)
    A, b = rng.standard_normal((4, 3)), rng.standard_normal(4)
    moved, still = moments(like(bags, bags.X @ A.T + b)), moments(bags)
    for field in ("cov_bag", "cov_diff", "cov_residual"):
        expected = A @ getattr(still, field) @ A.T
        assert_allclose(getattr(moved, field), expected, atol=1e-11 * (1 + np.abs(expected).max()), err_msg=field)
    assert_allclose(moved.mean, A @ still.mean + b, atol=1e-11)
    assert_allclose(moved.slope, A @ still.slope, atol=1e-10)
    assert_same(moved, still, ("proportion", "count_scatter", "pair_weight", "n_pairs"))


@given(st.integers(0, 2**32 - 1))
def test_naming_the_other_class_positive_turns_only_the_slope(seed):
    bags = ragged(seed)
    mirror, plain = moments(like(bags, bags.X, bags.sizes - bags.counts)), moments(bags)
    assert_same(mirror, plain, ("mean", "cov_bag", "cov_diff"))
    assert_allclose(mirror.slope, -plain.slope, rtol=1e-9, atol=1e-12)
    assert_allclose(mirror.proportion, 1 - plain.proportion, rtol=1e-14)
    assert_same(mirror, plain, ("count_scatter", "pair_weight", "cov_residual", "dispersion"), rtol=1e-10)


# ---------------------------------------------------------------------- by definition


def by_definition(bags: bw.Bags) -> dict[str, object]:
    """All figures by loops over rows and pairs, and by numpy's own regression."""
    X, q, p = np.asarray(bags.X, np.float64), bags.sizes, bags.proportions
    rows = np.split(X, bags.starts[1:-1])
    n, m = bags.n_rows, bags.n_bags
    mean, share = X.mean(axis=0), bags.counts.sum() / n
    pairs = [
        (len(x) - 1) * np.mean([np.outer(x[i] - x[j], x[i] - x[j]) for i, j in combinations(range(len(x)), 2)], axis=0)
        for x in rows
        if len(x) > 1
    ]
    means = np.stack([x.mean(axis=0) for x in rows])
    varies = len(np.unique(p)) > 1
    design = np.column_stack([np.ones(m), p]) if varies else np.ones((m, 1))
    root = np.sqrt(q)[:, None]
    beta = np.linalg.lstsq(root * design, root * means, rcond=None)[0]
    residual = root * (means - design @ beta)
    return {
        "mean": mean,
        "proportion": share,
        "cov_bag": (X - mean).T @ (X - mean) / n,
        "cov_diff": sum(pairs) / (n - m) if pairs else np.zeros((X.shape[1],) * 2),
        "slope": beta[1] if varies else np.zeros(X.shape[1]),
        "count_scatter": (q * (p - share) ** 2).sum() if varies else 0.0,
        "pair_weight": (q * p * (1 - p)).sum() / (n - m) if n > m else 0.0,
        "cov_residual": residual.T @ residual / max(m - design.shape[1], 1),
        "size": q[0] if len(set(q)) == 1 else None,
        "count": bags.counts[0] if len(set(bags.counts)) == 1 else None,
    }


@given(integer_bags(max_bags=8, max_size=6))
def test_moments_are_what_loops_over_rows_and_pairs_give(bags):
    found = moments(bags)
    for field, expected in by_definition(bags).items():
        if expected is None:
            assert getattr(found, field) is None, field
        else:
            assert_allclose(getattr(found, field), expected, rtol=1e-10, atol=1e-10, err_msg=field)


@given(st.integers(1, 6), st.integers(2, 7), st.data())
def test_with_one_key_the_pairs_are_those_of_the_paper(m, q, data):
    k = data.draw(st.integers(0, q))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((m, q, 2))
    found = moments(bw.Bags.from_sizes(X.reshape(-1, 2), [q] * m, [k] * m))
    pairs = [x[i] - x[j] for x in X for i, j in permutations(range(q), 2)]
    assert_allclose(found.cov_diff, np.mean([np.outer(z, z) for z in pairs], axis=0), rtol=1e-10)
    assert (found.size, found.count, found.count_scatter) == (q, k, 0.0)
    assert not found.slope.any()
    assert_allclose(found.pair_weight, k * (q - k) / (q * (q - 1)), atol=1e-14)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6), st.integers(1, 3))
def test_proportions_that_are_equal_in_different_sizes_do_not_vary(halves, seed):
    sizes = 2 * np.array(halves)
    X = np.random.default_rng(seed).standard_normal((sizes.sum(), 2))
    found = moments(bw.Bags.from_sizes(X, sizes, sizes // 2))
    assert found.count_scatter == 0 and not found.slope.any()
    assert_allclose(found.proportion, 0.5, rtol=1e-15)


# ---------------------------------------------------------------------- digits


def grid_bags(offset: np.ndarray, seed: int = 0) -> bw.Bags:
    """Bags of multiples of 2^-20 in [-1, 1], moved by multiples of 1/2 (one vector, or one per bag): all exact."""
    bags = ragged(seed, n_bags=200)
    X = np.round(np.clip(bags.X / 3, -1, 1) * 2**20) / 2**20
    return like(bags, X + (offset if offset.ndim == 1 else np.repeat(offset, bags.sizes, axis=0)))


@pytest.mark.parametrize("scale", [50.0, 1e3, 1e8])
def test_features_far_from_zero_lose_nothing(scale):
    near = moments(grid_bags(np.zeros(3)))
    far = moments(grid_bags(np.array([scale, -2 * scale, 0.0])))
    # The inputs are exact at both places. The quick way may lose three digits of sixteen, the careful one none.
    assert_same(far, near, ("cov_bag", "cov_diff", "slope", "cov_residual"), rtol=1e-11)
    assert_allclose(far.mean - [scale, -2 * scale, 0.0], near.mean, atol=4e-16 * scale)


def test_bags_that_lie_far_apart_keep_their_inner_scatter():
    shifts = np.round(np.random.default_rng(1).standard_normal((200, 3)) * 1e8)
    near, apart = moments(grid_bags(np.zeros(3))), moments(grid_bags(shifts))
    assert_allclose(apart.cov_diff, near.cov_diff, rtol=1e-12, atol=1e-12 * np.abs(near.cov_diff).max())


@pytest.mark.parametrize("value", [0.1, -1e8 / 3, 7e-5])
def test_a_constant_column_has_no_variance_however_its_sums_are_merged(value):
    bags = ragged(2, n_bags=210)
    fixed = like(bags, np.column_stack([bags.X, np.full(bags.n_rows, value)]))
    merged = reduce(add, [BagMoments.from_bags(fixed[start : start + 7]) for start in range(0, 210, 7)]).finalize()
    for found in (moments(fixed), merged):
        assert not found.cov_bag[3].any() and not found.cov_diff[3].any() and found.slope[3] == 0
        assert found.mean[3] == value
