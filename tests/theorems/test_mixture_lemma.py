"""Appendix H: mixtures of label sums.

Printed: Sigma_B = sum p_k^2 Sigma_Bk, Sigma_D = sum p_k^2 Sigma_Dk, and the ratio "maximised at +-r*". The weights must
be p_k (with squares, two equal components would halve every variance), and Sigma_B also gets the covariance of the
means of bags of different counts. Then rho(r*) - 2 has the sign of pbar (1 - pbar) - q Var p: r* is the maximiser, no
direction at all, or the minimiser.
"""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.theory.gaussian import normalise
from bagwise.theory.kappas import bag_profile, gamma, kappa2, kappa3, rho
from bagwise.theory.population import population_moments
from bagwise.theory.sample_sizes import direction_bags, mixture_direction_bags
from gaussian_problems import Problem, problems, sample_bags

CHANCE = np.array([comb(4, k) for k in range(5)]) / 16
EXTREME = np.array([0.5, 0, 0, 0, 0.5])


@given(problems(mixtures=True))
def test_covariances_of_a_mixture_have_weights_p_and_the_covariance_of_the_means(problem):
    weights = problem.count
    parts = [
        population_moments(problem.ltf, problem.mean, problem.cov, problem.size, k) for k in range(problem.size + 1)
    ]
    whole = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, weights)
    means = np.array([part.mean for part in parts])
    centred = means - weights @ means
    cov_bag = np.einsum("k,kij->ij", weights, np.array([part.cov_bag for part in parts]))
    between = np.einsum("k,ki,kj->ij", weights, centred, centred)
    atol = 1e-9 * (1 + np.abs(problem.cov).max())
    assert_allclose(whole.cov_bag, cov_bag + between, atol=atol)
    cov_diff = np.einsum("k,kij->ij", weights, np.array([part.cov_diff for part in parts]))
    assert_allclose(whole.cov_diff, cov_diff, atol=atol)


def test_the_printed_weights_are_refuted_by_any_direction_across_the_normal():
    # Across the normal rows are N(0, 1) whatever their bag; sum p_k^2 of (1/2, 1/2) is 1/2.
    weights = np.array([0.5, 0.5, 0.0])
    assert rho(0.0, 2, weights) == 2.0
    exact = population_moments_at_identity(2, weights)
    assert exact.cov_bag[1, 1] == 1.0 != (weights**2).sum()


def population_moments_at_identity(size, weights):
    return population_moments(bw.LTF([1.0, 0.0], 0.0), np.zeros(2), np.eye(2), size, weights)


@pytest.mark.parametrize(
    ("weights", "sign"), [(CHANCE, 0), (EXTREME, -1), (0.5 * CHANCE + 0.5 * np.array([0, 0, 1, 0, 0]), 1)]
)
def test_the_ratio_is_maximised_at_the_normal_only_below_chance(weights, sign):
    excess = rho(1.0, 4, weights) - 2
    assert np.sign(round(excess, 12)) == sign
    exact = population_moments_at_identity(4, weights)
    values, vectors = np.linalg.eig(np.linalg.solve(exact.cov_bag, exact.cov_diff))
    best = vectors[:, int(np.argmax(values.real))].real
    if sign:
        assert abs(gamma(best, [1.0, 0.0], np.eye(2))) == pytest.approx(float(sign > 0), abs=1e-9)


@given(problems(mixtures=True))
def test_kappa2_of_a_mixture_is_chance_less_what_was_seen(problem):
    q, weights = problem.size, problem.count
    p = np.arange(q + 1) / q
    pbar = weights @ p
    variance = weights @ (p - pbar) ** 2
    l = normalise(problem.ltf, problem.mean, problem.cov).threshold
    t = bag_profile(q, 1, l).separation
    expected = 2 * t**2 / (q - 1) * (pbar * (1 - pbar) - q * variance)
    assert_allclose(bag_profile(q, weights, l).kappa2, expected, atol=1e-12 * t**2)


def test_simulated_over_dispersed_bags_turn_the_spectral_direction_around():
    problem = Problem(bw.LTF([1.0, 0.0, 0.0], 0.0), np.zeros(3), np.eye(3), 4, EXTREME)
    x, _ = sample_bags(problem, 20_000, np.random.default_rng(0))
    within = (x - x.mean(axis=1, keepdims=True)).reshape(-1, 3)
    total = x.reshape(-1, 3) - x.mean(axis=(0, 1))
    ratio = np.linalg.solve(total.T @ total / len(total), 2 * within.T @ within / (3 * len(x)))
    values, vectors = np.linalg.eig(ratio)
    # rho(r*) = 2 (1 - 2 / pi) / 1 = 0.73 against 2: sampling moves neither by 0.1 (20,000 bags).
    assert abs(vectors[0, int(np.argmin(values.real))].real) > 0.99
    assert abs(vectors[0, int(np.argmax(values.real))].real) < 0.2


@given(problems(mixtures=True, threshold=0.0))
def test_centred_per_count_the_lemma_holds_with_the_share_of_mixed_bags(problem):
    q, weights = problem.size, problem.count
    mixed = weights[1:-1].sum()
    if mixed < 1e-6:
        return
    arguments = dict(n_features=7, size=q, constant=1e6)
    found = mixture_direction_bags(0.1, 0.1, count=weights, per_count=True, **arguments)
    assert found <= direction_bags(0.1, 0.1, **arguments) / mixed**2 * (1 + 1e-6)
    # The per-count signal of the proof: sum p_k kappa2(k) >= 16 / (pi q^2) sum of mixed p_k.
    assert sum(w * kappa2(q, k) for k, w in enumerate(weights)) >= 16 / (np.pi * q**2) * mixed * (1 - 1e-9)


def test_one_count_is_the_direction_lemma():
    for q in (2, 5, 9):
        one = np.zeros(q + 1)
        one[1] = 1.0
        arguments = dict(n_features=3, size=q)
        assert mixture_direction_bags(0.2, 0.1, count=one, **arguments) == direction_bags(0.2, 0.1, **arguments)
        assert kappa3(q, one) == kappa3(q, 1)


@pytest.mark.parametrize("weights", [CHANCE, EXTREME])
def test_pooled_bags_as_variable_as_chance_are_refused(weights):
    with pytest.raises(InvalidInputError, match="vary less than chance"):
        mixture_direction_bags(0.1, 0.1, n_features=3, size=4, count=weights)


def test_bags_of_one_class_are_refused_even_per_count():
    with pytest.raises(InvalidInputError, match="kappa2"):
        mixture_direction_bags(0.1, 0.1, n_features=3, size=4, count=EXTREME, per_count=True)
