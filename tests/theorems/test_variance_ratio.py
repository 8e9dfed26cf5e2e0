"""Lemmas 4.4 and C.4 (rho), Definitions 4.3 and C.3 (kappa, theta) and the bounds that they print.

Definition C.3 prints kappa3 with max(0, kappa1). With it rho(r*) - rho(r) >= kappa3 eps^2 / 2 is false for kappa1 < 0;
with min it holds. Its lower bound on kappa3 then has the square of 1 + l^2 / 4.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from bagwise.theory.kappas import bag_profile, kappa3, rho, theta
from bagwise.theory.population import population_moments
from gaussian_problems import keys, problems

thresholds = st.floats(-12, 12)
cosines = st.floats(-1, 1)


@given(problems())
def test_only_the_normal_has_a_variance_ratio_above_two(problem):
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    values = np.linalg.eigvals(np.linalg.solve(exact.cov_bag, exact.cov_diff)).real
    values.sort()
    assert_allclose(values[:-1], 2, rtol=1e-7)
    assert_allclose(values[-1], rho(1.0, problem.size, problem.count, problem.threshold), rtol=1e-7)
    assert values[-1] > 2


@given(keys(60), thresholds, cosines)
def test_rho_grows_with_the_square_of_the_cosine(key, l, cosine):
    assert 2 <= rho(cosine, *key, l) <= rho(1.0, *key, l) * (1 + 1e-14)
    assert rho(cosine, *key, l) == rho(-cosine, *key, l)


@given(keys(60), thresholds)
def test_definition_c3_bounds_kappa1_and_kappa2(key, l):
    (q, _), profile = key, bag_profile(*key, l)
    assert -(l**2) / 4 - 1e-9 * (1 + l**2) <= profile.kappa1 < 1
    # 1 <= k <= q - 1 gives p (1 - p) >= (q - 1) / q^2, and t >= max(|l|, sqrt(8 / pi)).
    assert profile.kappa2 >= 2 * max(l**2, 8 / np.pi) / q**2 * (1 - 1e-12)
    # v >= p (1 - p) t^2, so the ratio along the normal is at most 2 q / (q - 1).
    assert profile.excess <= 2 / (q - 1) * (1 + 1e-12)


@given(keys(60))
def test_definition_4_3_bounds_at_the_origin(key):
    (q, _), profile = key, bag_profile(*key)
    assert -1e-15 <= profile.kappa1 <= 2 / np.pi
    assert 16 / (np.pi * q**2) * (1 - 1e-12) <= profile.kappa2 <= 4 / (np.pi * (q - 1)) * (1 + 1e-12)
    assert 16 / (np.pi * q**2) * (1 - 1e-12) <= profile.kappa3 <= 4 / ((np.pi - 2) * (q - 1)) * (1 + 1e-12)
    assert 3 - 1e-12 <= theta(*key) <= 3 / (1 - 2 / np.pi) * (1 + 1e-12)


@given(keys(60), thresholds, st.floats(1e-3, np.sqrt(2)))
def test_with_min_kappa3_bounds_the_loss_of_ratio_by_a_direction_off_by_eps(key, l, eps):
    cosine = 1 - eps**2 / 2
    loss = rho(1.0, *key, l) - rho(cosine, *key, l)
    assert loss >= kappa3(*key, l) * eps**2 / 2 * (1 - 1e-9) - 1e-12


def test_with_max_as_printed_it_does_not():
    q, k, l, eps = 2, 1, 8.0, 0.5
    profile = bag_profile(q, k, l)
    printed = profile.kappa2 / ((1 - profile.kappa1) * (1 - max(0.0, profile.kappa1)))
    loss = rho(1.0, q, k, l) - rho(1 - eps**2 / 2, q, k, l)
    assert profile.kappa1 < 0
    assert loss < 0.2 * printed * eps**2 / 2
    assert loss >= profile.kappa3 * eps**2 / 2


@given(keys(60), st.floats(1, 30))
def test_the_bound_on_kappa3_needs_the_square_of_its_denominator(key, l):
    q, _ = key
    assert kappa3(*key, l) >= 2 * l**2 / (q**2 * (1 + l**2 / 4) ** 2) * (1 - 1e-9)


def test_without_the_square_it_is_false():
    # For l >> q the printed bound tends to 8 / q^2 while kappa3 tends to 0.
    q, k, l = 2, 1, 30.0
    assert kappa3(q, k, l) < 0.05 * 2 * l**2 / (q**2 * (1 + l**2 / 4))


@pytest.mark.parametrize("q", [100, 10_000, 1_000_000])
def test_theta_has_no_bound_that_is_free_of_q(q):
    # Definition C.3 bounds theta by a "finite function of K" that it does not define. At k = q - 1 and l^2 = sqrt(q)
    # the variance along the normal is of order 1 / sqrt(q), so theta is of order sqrt(q).
    l = q**0.25
    assert theta(q, q - 1, l) > 0.4 * q**0.5
