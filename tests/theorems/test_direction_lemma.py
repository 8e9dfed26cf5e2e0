"""Lemmas 4.1 and C.1 (Theorems 4.6 and C.5): a close pair of covariances gives a close normal.

Proof steps: printed with 2 for 4 in C.5's choice of eps1, with the false max in kappa3, and from Lemma 3.1, which is
false for covariances. The step that holds for all l: eps1 < kappa2 eps2^2 / (40 (1 + max(0, -kappa1))), in whitened
coordinates; and by Davis and Kahan an error of 4 eps1 (1 + rho) / excess, linear in eps1, which turns 1 / eps^4 into
1 / eps^2. Derived in docs/theory/direction.md.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigh

from bagwise.errors import InvalidInputError
from bagwise.theory.asymptotics import spectral_direction_error
from bagwise.theory.kappas import bag_profile, kappa2, kappa3, theta
from bagwise.theory.sample_sizes import direction_bags
from gaussian_problems import keys

thresholds = st.floats(-6, 6)


def whitened(profile, d):
    """Exact Sigma_B and Sigma_D in whitened coordinates, the normal first."""
    SB, SD = np.eye(d), 2 * np.eye(d)
    SB[0, 0], SD[0, 0] = profile.variance, 2 * profile.variance + profile.kappa2
    return SB, SD


def distance_after(SB, SD, rng, eps1):
    """min |u - e1|, |u + e1| of the generalised eigenvector after perturbations of operator norm eps1."""
    d = len(SB)
    E = rng.standard_normal((2, d, d))
    E = E + E.transpose(0, 2, 1)
    E *= eps1 / np.linalg.norm(E, 2, axis=(1, 2))[:, None, None]
    u = eigh(SD + E[1], SB + E[0])[1][:, -1]
    return float(np.sqrt(max(0.0, 2 - 2 * abs(u[0]) / np.linalg.norm(u))))


@given(keys(20), thresholds, st.floats(0.01, 1.4), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_errors_of_kappa2_eps_squared_keep_the_normal_within_eps(key, l, eps, d, seed):
    profile = bag_profile(*key, l)
    eps1 = profile.kappa2 * eps**2 / (40 * (1 + max(0.0, -profile.kappa1)))
    assert distance_after(*whitened(profile, d), np.random.default_rng(seed), 0.999 * eps1) <= eps


@given(keys(20), st.floats(0.01, 1.4), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_the_choice_printed_for_the_origin_does_too(key, eps, d, seed):
    profile = bag_profile(*key)
    eps1 = kappa3(*key) * eps**2 / (4 * theta(*key) * (2 + kappa3(*key)))
    assert eps1 <= (1 - profile.kappa1) / 2
    assert distance_after(*whitened(profile, d), np.random.default_rng(seed), 0.999 * eps1) <= eps


@given(keys(30), st.floats(0.01, 1.4), thresholds)
def test_the_comparison_of_ratios_needs_four_where_c5_prints_two(key, eps, l):
    # rho* (1 - theta eps1) > rho (1 + theta eps1) for all rho <= rho* - kappa3 eps^2 / 2.
    top = bag_profile(*key, l).excess + 2
    gap = kappa3(*key, l) * eps**2 / 2
    fine = 0.999 * gap / (2 * top)  # theta eps1 = kappa3 eps^2 / (4 rho*)
    printed = 0.999 * gap / top  # theta eps1 = kappa3 eps^2 / (2 rho*)
    assert top * (1 - fine) > (top - gap) * (1 + fine)
    assert top * (1 - printed) < (top - gap) * (1 + printed)


@given(keys(40), st.floats(-50, 50))
def test_the_signal_is_at_least_three_over_q_squared_for_every_threshold(key, l):
    profile = bag_profile(*key, l)
    assert profile.kappa2 / (1 + max(0.0, -profile.kappa1)) >= 3.1 / key[0] ** 2


@given(keys(20), thresholds, st.floats(1e-4, 0.1), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_the_error_is_linear_in_the_errors_of_the_covariances(key, l, share, d, seed):
    # Davis and Kahan in the metric of Sigma_B: |A^ - A| <= 2 eps1 (1 + rho) for Sigma_B = I, sin <= 2 |A^ - A| /
    # excess.
    profile = bag_profile(*key, l)
    SB, SD = whitened(profile, d)
    root = np.sqrt(np.diag(SB))
    eps1 = share * profile.excess
    rng = np.random.default_rng(seed)
    chord = distance_after(np.eye(d), SD / np.outer(root, root), rng, eps1)
    sine = chord * np.sqrt(max(0.0, 1 - chord**2 / 4))
    assert sine <= 4 * eps1 * (3 + profile.excess) / profile.excess


@given(st.integers(2, 60), st.integers(1, 59), st.floats(-20, 20))
def test_squared_norm_over_signal_is_at_most_q_squared(q, k, l):
    # In the metric of Sigma_B the squared subgaussian norm is of order max(1, l^2) / v; over the excess that is at most
    # of order q / (p (1 - p)) <= 2 q^2, whatever l: why l^2, not l^4, remains in the direction lemmas.
    if k < q:
        profile = bag_profile(q, k, l)
        p = k / q
        assert max(1.0, l**2) / profile.variance / profile.excess <= 3 * q / (p * (1 - p))


@given(keys(60), st.floats(-10, 10))
def test_asymptotic_needs_stay_below_the_lemma(key, l):
    # First-order bags of the literal algorithm for eps^2 = 1 against the formula of the lemma, both without constants.
    q, k = key
    needed = spectral_direction_error(2, 1, q, k, l, pairs="one", fresh=True).leading
    assert needed <= 1.3 * max(1.0, l**2) * q**4


@pytest.mark.parametrize(("q", "k", "l"), [(2, 1, 0.0), (3, 1, 1.0), (3, 2, 2.0)])
def test_lemma_c1_holds_at_its_calibrated_size(q, k, l):
    d, eps, delta, runs, rng = 5, 0.9, 0.8, 20, np.random.default_rng(0)
    m = direction_bags(eps, delta, n_features=d, size=q, threshold=l)
    error = spectral_direction_error(d, m, q, k, l, pairs="one", fresh=True)
    # Simulated through the two exact scatter matrices would repeat the calibration; here the asymptotic share:
    # distances squared are T chi^2_(d - 1) / (d - 1), and 1 - delta / 2 of them must lie below eps^2.
    chi = rng.chisquare(d - 1, size=1000 * runs) / (d - 1)
    assert np.quantile(np.sqrt(error.tan2 * chi), 1 - delta / 2) <= eps


def test_kappa2_is_what_the_lemma_rests_on():
    assert kappa2(2, 1) == pytest.approx(4 / np.pi)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eps": 0.0}, "eps must lie"),
        ({"eps": 1.0}, "eps must lie"),
        ({"delta": 0.0}, "delta must lie"),
        ({"size": 1}, "size must be an integer of at least 2"),
        ({"n_features": 0}, "at least 1"),
        ({"lambda_min": 2.0}, "lambda_max must be at least"),
        ({"constant": -1.0}, "constant must lie"),
        ({"threshold": float("inf")}, "threshold must be a finite number"),
        ({"lambda_max": 1e80}, "below 1e304 bags"),
    ],
)
def test_arguments_outside_the_lemma_are_refused(change, message):
    arguments = {"eps": 0.1, "delta": 0.1, "n_features": 5, "size": 4} | change
    with pytest.raises(InvalidInputError, match=message):
        direction_bags(arguments.pop("eps"), arguments.pop("delta"), **arguments)
