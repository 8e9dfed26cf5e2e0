"""The bag oracle: what it holds exactly, what it refuses, and the draws that are pinned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bagwise as bw
from bagwise.errors import InvalidInputError
from strategies import oracles

LTF = bw.LTF([1.0, -2.0, 0.5], 0.3)
MEAN = np.array([0.5, 0.0, -1.0])
COV = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.5]])


def oracle(size=4, count=2, ltf=LTF, mean=MEAN, cov=COV, **kwargs) -> bw.BagOracle:
    return bw.BagOracle(ltf, mean, cov, size, count, **kwargs)


def at_threshold(l: float, **kwargs) -> bw.BagOracle:
    """The oracle whose hyperplane lies l standard deviations from the mean."""
    offset = -LTF.normal @ MEAN - l * np.sqrt(LTF.normal @ COV @ LTF.normal)
    return oracle(ltf=bw.LTF(LTF.normal, offset), **kwargs)


# ---------------------------------------------------------------------- what holds exactly


@given(oracles(), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_labels_and_counts_are_as_stated(pair, n_bags: int, seed: int) -> None:
    source, _ = pair
    bags, labels = source.sample_labelled(n_bags, np.random.default_rng(seed))
    assert (len(bags), bags.n_rows, bags.n_features) == (n_bags, n_bags * source.size, source.mean.size)
    assert bags.ids.tolist() == list(range(n_bags)) and (bags.sizes == source.size).all()
    assert bags.X.dtype == np.float64 and bags.counts.dtype == labels.dtype == np.int64
    assert (source.ltf.predict(bags.X) == labels).all()
    counted = labels.reshape(n_bags, -1).sum(axis=1) if source.flip == 0 or source.count_is == "true" else bags.counts
    assert (source.count_probabilities[counted] > 0).all()
    if source.flip == 0:
        assert (counted == bags.counts).all()


def test_sample_is_sample_labelled_without_the_labels() -> None:
    noisy = oracle(flip=0.2)
    alone = noisy.sample(5, np.random.default_rng(3))
    bags, _ = noisy.sample_labelled(5, np.random.default_rng(3))
    assert (alone.X == bags.X).all() and (alone.counts == bags.counts).all()


def test_the_same_seed_gives_the_same_bags_and_another_gives_others() -> None:
    first, again, other = (oracle().sample(3, np.random.default_rng(seed)).X for seed in (1, 1, 2))
    assert (first == again).all() and not (first == other).any()


def test_the_draw_of_given_arguments_is_pinned() -> None:
    bags = oracle().sample(2, np.random.default_rng(0))
    np.testing.assert_allclose(bags.X, PINNED_ROWS, rtol=1e-9)
    assert bags.counts.tolist() == [2, 2]
    mixed = oracle(count=[0.1, 0.2, 0.4, 0.2, 0.1], flip=0.3)
    bags, labels = mixed.sample_labelled(6, np.random.default_rng(0))
    assert (bags.counts.tolist(), "".join(map(str, labels))) == PINNED_MIXED
    bags, labels = oracle(flip=0.3, count_is="true").sample_labelled(6, np.random.default_rng(0))
    assert (bags.counts.tolist(), "".join(map(str, labels))) == PINNED_TRUE
    X, y = oracle().sample_instances(2, np.random.default_rng(0))
    np.testing.assert_allclose(X, PINNED_INSTANCES, rtol=1e-9)
    assert y.tolist() == [1, 0]


def test_draws_do_not_hang_on_block_boundaries(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = oracle().sample(50, np.random.default_rng(0)).X
    monkeypatch.setattr("bagwise.data.oracles._BLOCK_NUMBERS", 21)
    np.testing.assert_allclose(oracle().sample(50, np.random.default_rng(0)).X, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("l", [-900.0, -30.0, -8.0, 0.0, 8.0, 26.0, 30.0, 900.0])
@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_far_tails_give_finite_rows_on_their_side(l: float, flip: float) -> None:
    source = at_threshold(l, size=10, count=5, flip=flip)
    bags, labels = source.sample_labelled(2000, np.random.default_rng(0))
    assert np.isfinite(bags.X).all()
    assert (source.ltf.predict(bags.X) == labels).all()
    # In the tail the distance to the hyperplane is about exponential of rate |l|: mean 1 / |l|, not a heap on it.
    scores = (bags.X @ LTF.normal + source.ltf.offset) / np.sqrt(LTF.normal @ COV @ LTF.normal)
    rare = scores[labels == (l > 0)]
    if l and rare.size > 1000:
        assert 0.8 < np.abs(rare).mean() * abs(l) < 1.1  # 1 - 1/l² ± 4 / sqrt(1000)


def test_a_singular_covariance_keeps_rows_in_its_plane() -> None:
    flat = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    source = oracle(cov=flat)
    bags, labels = source.sample_labelled(200, np.random.default_rng(0))
    np.testing.assert_allclose(bags.X[:, 0] - MEAN[0], bags.X[:, 1] - MEAN[1], atol=1e-14)
    assert (source.ltf.predict(bags.X) == labels).all()


def test_levels_of_the_papers_noise_are_those_of_the_design() -> None:
    centred = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), 10, 8, flip=0.1)
    # Of 8 reported positives 7.2 are true and 0.8 false; of 2 reported negatives 0.2 are true positives.
    assert centred.levels == pytest.approx((0.8 / 2.6, 7.2 / 7.4), rel=1e-14)
    assert centred.true_given_reported == pytest.approx((0.1, 0.9), rel=1e-14)
    held = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), 10, 8, flip=0.1, count_is="true")
    assert held.levels == (0.1, 0.9)


def test_levels_without_rows_of_a_class_are_nan() -> None:
    low, high = oracle(count=4).levels
    assert np.isnan(low) and high == 1
    low, high = oracle(count=0).levels
    assert low == 0 and np.isnan(high)


@pytest.mark.parametrize("flip", [0.0, 1.0])
def test_certain_flips_are_certain(flip: float) -> None:
    for count_is in ("reported", "true"):
        source = oracle(count=3, flip=flip, count_is=count_is)
        bags, labels = source.sample_labelled(100, np.random.default_rng(0))
        positives = labels.reshape(100, 4).sum(axis=1)
        assert set(positives) == ({1} if flip and count_is == "reported" else {3})
        assert set(bags.counts) == ({1} if flip and count_is == "true" else {3})


def test_instances_carry_clean_labels() -> None:
    source = oracle(flip=0.4)
    X, y = source.sample_instances(1000, np.random.default_rng(0))
    assert X.shape == (1000, 3) and (source.ltf.predict(X) == y).all()


def test_arguments_are_kept_as_read_only_copies() -> None:
    cov = COV.copy()
    source = oracle(cov=cov)
    cov[0, 0] = 100.0
    assert source.cov[0, 0] == 2.0
    for array in (source.mean, source.cov, source.count_probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_print_says_the_design() -> None:
    assert repr(oracle()) == "BagOracle(3 features, size 4, count 2, 55.2 % positive in the population)"
    assert "count mixed" in repr(oracle(count=[0.2] * 5)) and "flip 0.1 (count is true)" in repr(
        oracle(flip=0.1, count_is="true")
    )


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ltf": "f"}, r"ltf must be an LTF; got str"),
        ({"mean": [0.0]}, r"mean must be a vector with one entry per feature, 3; got shape \(1,\)"),
        ({"cov": np.eye(2)}, r"cov must be a matrix of 3 by 3.* got shape \(2, 2\)"),
        ({"cov": -np.eye(3)}, r"no negative eigenvalue; got -1"),
        ({"cov": COV + np.triu(np.ones((3, 3)), 1)}, r"cov must be symmetric; got .* differ by 1 "),
        ({"cov": np.zeros((3, 3))}, r"normal must have variance under cov"),
        ({"ltf": bw.LTF([0.0, 0.0, 0.0], 1.0)}, r"normal must have variance under cov"),
        ({"ltf": bw.LTF(LTF.normal, 1e5)}, r"within 1000 standard deviations of the mean; got 4\.334e\+04"),
        ({"size": 0}, r"size must be an integer of at least 1.* got 0"),
        ({"size": 4.0}, r"size must be an integer of at least 1.* got 4\.0"),
        ({"size": True}, r"size must be an integer of at least 1.* got True"),
        ({"count": 5}, r"count must lie in 0\.\.size; got 5 for size 4"),
        ({"count": -1}, r"count must lie in 0\.\.size; got -1 for size 4"),
        ({"count": 0.5}, r"count must be an integer, or the probabilities of 0\.\.4; got 0\.5.*proportion \* size"),
        ({"count": True}, r"count must be an integer, .* got True"),
        ({"count": [0.5, 0.5]}, r"one probability for each of 0\.\.4; got shape \(2,\)\. Pass 5 numbers"),
        ({"count": [0.5, 0.7, -0.2, 0.0, 0.0]}, r"not negative; got -0\.2"),
        ({"count": [0.5, np.nan, 0.5, 0.0, 0.0]}, r"must be finite and not negative; got nan"),
        ({"count": [0.5, 0.0, 0.0, 0.0, 0.0]}, r"must add up to 1; got 0\.5"),
        ({"flip": -0.1}, r"flip must be a probability in \[0, 1\]; got -0\.1"),
        ({"flip": np.nan}, r"flip must be a probability in \[0, 1\]; got nan"),
        ({"count_is": "noisy"}, r"count_is must be 'reported' or 'true'; got 'noisy'"),
    ],
)
def test_what_is_refused_is_said(arguments: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        oracle(**arguments)


def test_samples_of_nothing_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"n_bags must be an integer of at least 1; got 0"):
        oracle().sample(0, rng)
    with pytest.raises(InvalidInputError, match=r"n must be an integer of at least 1; got 2\.5"):
        oracle().sample_instances(2.5, rng)  # type: ignore[arg-type]


# One draw each of numpy's default generator seeded with 0. A change here changes every seeded result of users.
PINNED_ROWS = [
    [-0.18560144363, 0.94907774624, -2.2040278428],
    [0.94561506667, -1.6355961664, -0.75754372964],
    [2.3023131583, 0.043035209437, -0.82213593202],
    [-1.1473853683, 0.49285085489, -1.1276168864],
    [0.36659846315, 0.7080562002, -1.7101565312],
    [-1.2874818372, 1.1894555906, -1.4088542616],
    [1.0682088934, -1.1223124896, -0.75281780865],
    [0.56765034089, 0.2301473332, -0.79708859645],
]
PINNED_MIXED = ([2, 1, 0, 0, 3, 4], "111110000000000111100011")
PINNED_TRUE = ([2, 1, 2, 2, 2, 3], "011000111010100110100011")
PINNED_INSTANCES = [
    [0.88671908032, -0.02852787346, -1.3072805057],
    [1.705799439, 0.91204096268, -0.37312437568],
]
