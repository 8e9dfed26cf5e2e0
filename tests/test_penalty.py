"""The choice of C by held-out totals: how long it looks, and what it says."""

import warnings
from dataclasses import replace

import numpy as np

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.errors import BagwiseWarning, IdentifiabilityWarning
from bagwise.learn.levels import CLEAN, Levels
from bagwise.learn.penalty import GRID, chosen_penalty
from bagwise.learn.starts import Search


def search_of(bags, free=False, fit_intercept=True):
    moments = bw.BagMoments.from_bags(bags).finalize()
    levels = Levels(0.1, 0.9, "both") if free else CLEAN
    return Search(bags, moments, np.diag(moments.cov_bag), fit_intercept, levels)


class Counting:
    """Bags that count how often they are split."""

    def __init__(self, bags):
        self.bags, self.splits = bags, 0

    def __getattr__(self, name):
        return getattr(self.bags, name)

    def split(self, fraction, rng):
        self.splits += 1
        return self.bags.split(fraction, rng)


def splits(bags, **more):
    counting = Counting(bags)
    choice = chosen_penalty(replace(search_of(bags, **more), source=counting), np.random.default_rng(0))
    return counting.splits, choice


def test_one_split_where_the_choice_is_clear_and_more_where_it_is_open():
    open_ones = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        clean = random_oracle(5, size=10, count=8, rng=rng).sample(400, rng)
        noisy = random_oracle(10, size=10, count=8, rng=rng, flip=0.25).sample(600, rng)
        n_splits, choice = splits(clean)
        assert n_splits == 1 and choice.C >= 100 and choice.gain > 20
        n_splits, choice = splits(noisy, free=True)
        open_ones.append(n_splits)
        assert set(choice.scores) == set(GRID)
    assert max(open_ones) > 1


def test_a_trapped_fit_is_not_chosen():
    # Flips at a quarter leave so little that a constant is as likely as a fit: held-out bags alone chose C = 0.01.
    for seed in range(4):
        rng = np.random.default_rng([4, seed])
        oracle = random_oracle(10, size=10, count=5, rng=rng, flip=0.25, random_mean=False)
        bags = oracle.sample(300, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BagwiseWarning)
            model = bw.BagLogisticRegression(label_noise="estimate", fit_intercept=False, random_state=0).fit(bags)
        contrast = model.levels_[1] - model.levels_[0]
        assert np.sqrt(model.coef_[0] @ oracle.cov @ model.coef_[0]) * contrast > 0.1


def test_a_fit_that_tells_held_out_totals_no_better_than_a_constant_says_so():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1000, 8))
    bags = bw.Bags.from_sizes(X, np.full(100, 10), rng.binomial(10, 0.3, 100))  # counts that know nothing of X
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        bw.BagLogisticRegression(random_state=0).fit(bags)
    assert any("hardly likelier under the model" in str(one.message) for one in said)
    assert all(issubclass(one.category, IdentifiabilityWarning) for one in said)
