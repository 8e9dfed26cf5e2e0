"""Thresholds by chance: the best of the candidates drawn, swept exactly, and the one that matches a single total."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bagwise as bw
from bagwise.learn.random_ltf import best_random_ltf, class_ratio_ltf
from strategies import bags as any_bags


@given(any_bags(), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_the_winner_is_the_best_of_the_normals_drawn(bags, n, seed):
    found = best_random_ltf(bags, n, np.random.default_rng(seed), with_offset=False)
    normals = np.random.default_rng(seed).standard_normal((n, bags.n_features))
    satisfied = [round((1 - bw.bag_error(bw.LTF(normal), bags)) * bags.n_bags) for normal in normals]
    assert found.satisfied == max(satisfied)
    assert found.ltf.angle(bw.LTF(normals[int(np.argmax(satisfied))])) < 1e-7


@given(any_bags(), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_a_swept_candidate_satisfies_what_it_says(bags, n, seed):
    found = best_random_ltf(bags, n, np.random.default_rng(seed), with_offset=True)
    assert found.satisfied == round((1 - bw.bag_error(found.ltf, bags)) * bags.n_bags)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_more_candidates_never_satisfy_less(fit_intercept):
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0, 0.0], 0.3), np.zeros(3), np.eye(3), size=5, count=3)
    bags = oracle.sample(100, np.random.default_rng(0))
    found = [bw.RandomLTF(n, fit_intercept=fit_intercept, random_state=0).fit(bags).satisfied_ for n in (1, 10, 100)]
    assert found == sorted(found) and found[0] < found[-1]


@given(any_bags(max_bags=1, max_size=9), st.integers(0, 2**32 - 1))
def test_a_single_bag_gets_its_total(bags, seed):
    X = np.random.default_rng(seed).standard_normal(bags.X.shape)  # no ties
    bag = bw.Bags.from_sizes(X, bags.sizes, bags.counts)
    assert class_ratio_ltf(bag, np.random.default_rng(seed)).predict(X).sum() == bags.counts.sum()


def test_a_matched_total_says_nothing_of_single_rows():
    oracle = bw.BagOracle(bw.LTF(np.eye(20)[0]), np.zeros(20), np.eye(20), size=1000, count=500)
    bag = oracle.sample(1, np.random.default_rng(0))
    errors = [
        bw.instance_error(bw.ClassRatioLTF(random_state=seed).fit(bag).ltf_, oracle.ltf, oracle.mean, oracle.cov)
        for seed in range(50)
    ]
    # A random direction of 20 dimensions errs by 1/2 with standard deviation 1 / (pi sqrt(20)); four standard errors.
    assert abs(np.mean(errors) - 0.5) < 4 / (np.pi * np.sqrt(20 * 50))


@pytest.mark.parametrize("n", [0, -3])
def test_at_least_one_candidate_is_needed(n):
    with pytest.raises(ValueError, match=f"n_candidates must be at least 1; got {n}"):
        bw.RandomLTF(n).fit(bw.Bags.from_sizes([[0.0], [1.0]], [2], [1]))
