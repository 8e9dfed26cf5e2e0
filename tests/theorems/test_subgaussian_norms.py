"""Lemmas E.3 to E.6: tails, norms and means of thresholded Gaussians, their mixtures and their differences.

True as stated but for: O(|l|), which must be O(max(1, |l|)) (at l = 0 the norm is that of a half normal, not 0); 2 l in
the bound on the mean, which must be 2 |l|; and the step from tails to centred tails, which needs
K2 = max(2 K1, sqrt(8) gamma_l) where sqrt(2) gamma_l is printed (2 K1 is the larger one all the same).
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr
from scipy.stats import norm

from bagwise.theory.gaussian import inverse_mills_ratio, thresholded_gaussian

thresholds = st.floats(-15, 15)
tails = st.floats(1e-3, 60)
shares = st.floats(0.01, 0.99)
# Where 2 l overtakes the inverse Mills ratio: the least gamma_0 of Lemma E.6.
CROSSING = brentq(lambda l: inverse_mills_ratio(l) - 2 * l, 0, 2)
GAMMA_0 = 2 * CROSSING


def k1(l):
    return max(np.sqrt(20), abs(l) * np.sqrt(10))


def log_between(a, b):
    """log Pr[a < X <= b] of a standard normal X, from the tail in which the interval is not lost."""
    if not a < b:
        return -np.inf
    outer, inner = (log_ndtr(b), log_ndtr(a)) if a + b < 0 else (log_ndtr(-a), log_ndtr(-b))
    return outer + np.log(-np.expm1(min(inner - outer, -1e-300)))


def log_outside(l, centre, t):
    """log Pr[|X - centre| > t | X > l] of a standard normal X."""
    right = log_ndtr(-max(centre + t, l))
    return np.logaddexp(right, log_between(l, centre - t)) - log_ndtr(-l)


def log_two_sided_tail(l, t):
    """log Pr[|X| > t | X > l] of a standard normal X."""
    return log_outside(l, 0.0, t)


@given(st.floats(-15, 0), tails)
def test_lemma_e3_thresholds_below_zero_keep_the_tail(l, t):
    assert log_two_sided_tail(l, t) <= np.log(2) - t**2 / 2 + 1e-9


@given(st.floats(1e-6, 15), tails)
def test_lemma_e4_thresholds_above_zero_widen_it(l, t):
    assert log_two_sided_tail(l, t) <= np.log(2) - t**2 / k1(l) ** 2 + 1e-9


@given(thresholds, tails, shares)
def test_lemma_e5_mixtures_keep_the_wider_tail(l, t, p):
    mixture = np.logaddexp(np.log(p) + log_two_sided_tail(l, t), np.log1p(-p) + log_two_sided_tail(-l, t))
    assert mixture <= np.log(2) - t**2 / k1(l) ** 2 + 1e-9


def test_its_norm_is_not_proportional_to_the_threshold():
    # E exp(X^2 / s^2) of a half normal is that of a normal: 1 / sqrt(1 - 2 / s^2) = 2 at s^2 = 8 / 3, for l = 0.
    s = np.sqrt(8 / 3)
    expectation = quad(lambda x: np.exp(x**2 / s**2 - x**2 / 2) * np.sqrt(2 / np.pi), 0, np.inf)[0]
    assert abs(expectation - 2) < 1e-9
    assert s < 2  # the paper's bound on the norm of a standard normal


@given(thresholds, shares)
def test_lemma_e6_bounds_the_mean_by_twice_the_threshold_in_absolute_value(l, p):
    truncated = thresholded_gaussian(l)
    mean = p * truncated.mean_above + (1 - p) * truncated.mean_below
    assert abs(mean) <= max(GAMMA_0, 2 * abs(l)) * (1 + 1e-12)


def test_with_twice_a_negative_threshold_it_is_false():
    truncated = thresholded_gaussian(-5.0)
    mean = 0.1 * truncated.mean_above + 0.9 * truncated.mean_below
    assert abs(mean) > max(GAMMA_0, 2 * -5.0)


@given(thresholds, st.floats(1e-3, 80), shares)
def test_centred_mixtures_have_tails_of_twice_the_width(l, t, p):
    truncated = thresholded_gaussian(l)
    mean = p * truncated.mean_above + (1 - p) * truncated.mean_below
    # The part below l is the mirror image of a part above -l.
    parts = np.log(p) + log_outside(l, mean, t), np.log1p(-p) + log_outside(-l, -mean, t)
    assert np.logaddexp(*parts) <= np.log(2) - t**2 / (2 * k1(l)) ** 2 + 1e-9


def test_the_step_for_small_deviations_needs_a_wider_scale():
    # Below 2 gamma the printed scale sqrt(2) gamma leaves 2 exp(-2) < 1, which bounds no probability; sqrt(8) gamma
    # does.
    gamma = 3.0
    t = 2 * gamma * (1 - 1e-9)
    assert 2 * np.exp(-(t**2) / (np.sqrt(2) * gamma) ** 2) < 1
    assert 2 * np.exp(-(t**2) / (np.sqrt(8) * gamma) ** 2) > 1


@given(thresholds)
def test_twice_k1_is_wide_enough_for_that_step(l):
    assert 2 * k1(l) >= np.sqrt(8) * max(GAMMA_0, 2 * abs(l))


@given(st.floats(0.1, 10), st.floats(1e-3, 100))
def test_differences_have_four_times_the_width(k, t):
    # From 4 exp(-t^2 / (2 k)^2) to 2 exp(-t^2 / (4 k)^2), or a bound above 1.
    ours = 2 * np.exp(-(t**2) / (4 * k) ** 2)
    assert ours > 1 or 4 * np.exp(-(t**2) / (2 * k) ** 2) <= ours * (1 + 1e-12)


def test_the_constants_of_the_proof_of_lemma_e4():
    assert norm.sf(2) > 1 / 50
    assert (1 / 2 - 1 / 8) * norm.pdf(2) > 1 / 50
    l = np.linspace(2, 30, 1000)
    assert (1 / l - 1 / l**3 >= 1 / (2 * l)).all()
    assert (-3 * l**2 / 2 <= -np.log(2 * l * np.sqrt(2 * np.pi))).all()
    assert (erfcx(l / np.sqrt(2)) / 2 >= np.exp(-3 * l**2 / 2)).all()  # 1 - Phi >= exp(-2 l^2)
