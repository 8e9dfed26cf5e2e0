"""The levels of reported labels: coordinates, slopes, and what stated rates mean in bags chosen by their counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.learn.levels import CLEAN, Levels

KINDS = [Levels(0.1, 0.9, "both"), Levels(0.1, 0.8, "shift"), Levels(0.0, 0.8, "shift"), CLEAN]


@given(st.sampled_from(KINDS), st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_coordinates_and_slopes_are_those_of_the_levels(levels, z):
    z = np.array(z[: levels.n_free])
    low, high = levels.at(z)
    assert 0 <= low < high <= 1
    assert_allclose(levels.coordinates(low, high), z, atol=1e-6)
    J, second = levels.slopes(z)
    _, gradient, curvature = levels.prior(z)
    step = 1e-5
    for j, e in enumerate(step * np.eye(levels.n_free)):
        up, down = np.array(levels.at(z + e)), np.array(levels.at(z - e))
        # Third derivatives of a sigmoid are below 1/8, so differences are off by less than 1e-10 / 48 + rounding.
        assert_allclose(J[:, j], (up - down) / (2 * step), atol=1e-9)
        assert_allclose(second[:, :, j], (levels.slopes(z + e)[0] - levels.slopes(z - e)[0]) / (2 * step), atol=1e-9)
        ahead, behind = levels.prior(z + e), levels.prior(z - e)
        assert gradient[j] == pytest.approx((ahead[0] - behind[0]) / (2 * step), abs=1e-8)
        assert curvature[j] == pytest.approx((ahead[1][j] - behind[1][j]) / (2 * step), abs=1e-8)


def test_choosing_bags_by_their_reported_count_multiplies_the_odds_of_both_levels():
    rng = np.random.default_rng(0)
    rate, count = 0.1, 8
    clean = rng.random((200_000, 10)) < 0.3
    reported = clean ^ (rng.random(clean.shape) < rate)
    chosen = reported.sum(axis=1) == count
    low, high = reported[chosen][~clean[chosen]].mean(), reported[chosen][clean[chosen]].mean()
    share = 0.3 * (1 - rate) + 0.7 * rate
    expected = Levels(rate, 1 - rate).shifted(np.log(count / (10 - count)) - np.log(share / (1 - share)))
    for found, level, n in zip((low, high), expected, ((~clean[chosen]).sum(), clean[chosen].sum()), strict=True):
        # Labels of a bag are negatively correlated: four binomial standard errors are more than enough.
        assert found == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / n))


def test_a_stated_rate_leads_to_the_levels_of_bags_chosen_for_their_count():
    rng = np.random.default_rng(1)
    oracle = random_oracle(5, size=10, count=8, rng=rng, flip=0.1)
    bags = oracle.sample(1000, rng)
    model = bw.BagLogisticRegression(C=100.0, label_noise=0.1).fit(bags)
    # Half of the population is positive, so that the odds are those of 8 to 2: 0.308 and 0.973.
    assert_allclose(model.levels_, [0.308, 0.973], atol=0.03)
    assert bw.instance_error(model.ltf_, oracle.ltf, oracle.mean, oracle.cov) < 0.02
    assert np.isfinite(model.coef_standard_errors_).all()
    odds = model.levels_ / (1 - model.levels_)
    assert odds[1] / odds[0] == pytest.approx(81.0)  # the stated (0.9 / 0.1)^2, whatever the shift
