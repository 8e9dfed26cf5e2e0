"""Lemma B.4: covariance errors of eps lambda_max move every variance ratio by at most a factor of 1 +- theta eps.

The lemma prints E = Sigma-hat - Sigma-hat, b / f for f / b, and (with the proofs of 4.6 and C.5) rho-hat as
r' Sigma_B-hat r / r' Sigma_D-hat r, the inverse. The condition on eps is part of the proof, not of the statement;
without it the statement is false.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bagwise.theory.kappas import bag_profile, theta
from bagwise.theory.population import population_moments
from gaussian_problems import problems


def symmetric(rng, d):
    """A random symmetric matrix of operator norm 1."""
    A = rng.standard_normal((d, d))
    A = A + A.T
    return A / np.linalg.norm(A, 2)


@given(problems(), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_lemma_b4_bounds_the_relative_error_of_every_ratio(problem, share, seed):
    rng, d = np.random.default_rng(seed), len(problem.mean)
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    low, *_, high = np.linalg.eigvalsh(problem.cov) if d > 1 else [problem.cov[0, 0]] * 2
    profile = bag_profile(problem.size, problem.count, problem.threshold)
    eps = share * (1 - max(0, profile.kappa1)) / 2 * low / high
    E_B, E_D = (eps * high * symmetric(rng, d) for _ in range(2))
    bound = theta(problem.size, problem.count, problem.threshold, lambda_min=low, lambda_max=high) * eps
    for r in rng.standard_normal((20, d)):
        ratio = (r @ exact.cov_diff @ r) / (r @ exact.cov_bag @ r)
        moved = (r @ (exact.cov_diff + E_D) @ r) / (r @ (exact.cov_bag + E_B) @ r)
        assert abs(moved / ratio - 1) <= bound * (1 + 1e-9) + 1e-12


def test_without_the_condition_on_eps_it_is_false():
    # One feature, q = 2, k = 1, l = 0: Sigma_B = 1, Sigma_D = 2 + 4 / pi, theta = 3 (kappa1 = 0).
    eps, rho = 0.95, 2 + 4 / np.pi
    moved = (rho + eps) / (1 - eps)
    assert abs(moved / rho - 1) > theta(2, 1) * eps
    assert eps > 1 / 2
