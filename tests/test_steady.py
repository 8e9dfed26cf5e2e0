"""Totals that vary by noise alone: recognised, put back, and left alone where they say something."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.errors import IdentifiabilityWarning
from bagwise.learn.likelihood import WeightedBags
from bagwise.learn.steady import Steadied, Steady, steadied, steady_totals
from bagwise.stats.moments import BagMoments


def flipped(m=500, seed=0):
    rng = np.random.default_rng(seed)
    ltf = bw.LTF(rng.standard_normal(6))
    oracle = bw.BagOracle(ltf, np.zeros(6), np.eye(6), size=10, count=8, flip=0.1, count_is="true")
    return oracle, oracle.sample(m, rng)


def error(model, oracle):
    return bw.instance_error(model.ltf_, oracle.ltf, oracle.mean, oracle.cov)


def test_mean_and_scatter_of_counts_tell_the_share_and_the_rate_of_flips():
    _, bags = flipped(m=4000)
    found = steady_totals(bags, None)
    assert found is not None
    # v = r (1 - r) = 0.09 is known to v sqrt(2 / m) = 0.002, and dr = dv / (1 - 2 r); four of these.
    assert found.low == pytest.approx(0.1, abs=4 * 0.002 / 0.8)
    assert found.high == 1 - found.low
    assert (found(bags).counts == 8).all()


@pytest.mark.parametrize("levels", [(0.1, 0.9), (0.05, 0.88)])
def test_stated_levels_that_the_scatter_bears_out_tell_the_share(levels):
    low, high = levels
    rng = np.random.default_rng(1)
    counts = rng.binomial(8, high, 500) + rng.binomial(2, low, 500)
    bags = bw.Bags.from_sizes(rng.standard_normal((5000, 2)), np.full(500, 10), counts)
    found = steady_totals(bags, levels)
    # The mean share has standard error sqrt(0.1 / 5000); four of these, over high - low.
    assert found is not None and found.share == pytest.approx(0.8, abs=4 * np.sqrt(0.1 / 5000) / (high - low))
    assert steady_totals(bags, (0.3, 0.7)) is None


@pytest.mark.parametrize("count", [np.full(11, 1 / 11), None])
def test_counts_that_vary_with_the_rows_are_left_alone(count):
    rng = np.random.default_rng(2)
    counts = rng.binomial(10, 0.3, 500) if count is None else rng.integers(0, 11, 500)
    bags = bw.Bags.from_sizes(rng.standard_normal((5000, 2)), np.full(500, 10), counts)
    assert steady_totals(bags, None) is None


def test_a_learner_that_may_doubt_labels_learns_from_noise_only_totals_as_from_clean_ones():
    for seed in range(3):
        oracle, bags = flipped(seed=seed)
        with pytest.warns(IdentifiabilityWarning, match=r"taken to have 0\.\d+ positives in truth"):
            model = bw.BagLogisticRegression(label_noise="estimate", random_state=0).fit(bags)
        clean = bw.Bags.from_sizes(bags.X, bags.sizes, np.full(bags.n_bags, 8))
        same = bw.BagLogisticRegression(random_state=0).fit(clean)
        assert_allclose(model.coef_, same.coef_)
        assert error(model, oracle) < 0.01
        assert model.levels_[0] == pytest.approx(0.1, abs=0.03) and model.levels_[1] == 1 - model.levels_[0]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            bw.BagLogisticRegression(random_state=0).fit(bags)
        assert any("vary as if by noise alone" in str(one.message) for one in said)


def test_flips_under_fixed_reported_counts_are_not_touched():
    rng = np.random.default_rng(3)
    oracle = random_oracle(6, size=10, count=8, rng=rng, flip=0.1)
    bags = oracle.sample(1000, rng)
    assert (bags.counts == 8).all()
    model = bw.BagLogisticRegression(label_noise="estimate", random_state=0).fit(bags)
    assert_allclose(model.levels_, [0.308, 0.973], atol=0.05)


def test_every_source_of_bags_can_be_seen_with_its_true_counts(tmp_path):
    pytest.importorskip("pyarrow")
    _, bags = flipped(m=200)
    steady = Steady(0.8, 0.1, 0.9)
    expected = BagMoments.from_bags(steady(bags)).finalize()
    bw.write_bags(bags, tmp_path / "bags.parquet")
    scan = bw.scan_bags(tmp_path / "bags.parquet", bag="bag", count="positives")
    seen = steadied(scan, steady)
    assert isinstance(seen, Steadied) and seen.n_features == 6
    assert_allclose(seen.reduce(BagMoments.from_bags).finalize().cov_bag, expected.cov_bag)
    parts = seen.split(0.5, np.random.default_rng(0))
    assert sum(part.reduce(lambda part: int(part.counts.sum())) for part in parts) == 1600
    weighted = steadied(WeightedBags(bags, np.ones(200)), steady)
    assert isinstance(weighted, WeightedBags) and (weighted.bags.counts == 8).all()
