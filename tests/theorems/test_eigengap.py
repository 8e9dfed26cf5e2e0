"""Lemma B.3: directions that are Sigma_B-orthogonal to the normal have gamma = 0 exactly.

The printed bound gamma <= 1 - (lambda_min / lambda_max)^2 ... is therefore true, and says less than is known. Its proof
starts from Var[r.Z_B] = 1 - kappa1 for every r with |Sigma^(1/2) r| = 1; that holds for the normal only.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bagwise.theory.kappas import bag_profile, gamma
from bagwise.theory.population import population_moments
from gaussian_problems import problems


@given(problems(), st.integers(0, 2**32 - 1))
def test_lemma_b3_holds_with_gamma_zero(problem, seed):
    d = len(problem.mean)
    assume(d > 1)
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    normal = problem.ltf.normal
    r = np.random.default_rng(seed).standard_normal(d)
    r -= normal * (r @ exact.cov_bag @ normal) / (normal @ exact.cov_bag @ normal)
    profile = bag_profile(problem.size, problem.count, problem.threshold)
    found = gamma(r, normal, problem.cov)
    assert abs(found) < 1e-7
    values = np.linalg.eigvalsh(problem.cov)
    slack = (1 - max(0, profile.kappa1)) / (1 - min(0, profile.kappa1))
    assert abs(found) <= 1 - (values[0] / values[-1]) ** 2 * slack + 1e-7


@given(problems())
def test_the_extreme_eigenvalues_of_cov_bag_obey_the_bounds_of_the_proof(problem):
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    kappa1 = bag_profile(problem.size, problem.count, problem.threshold).kappa1
    bag, plain = np.linalg.eigvalsh(exact.cov_bag), np.linalg.eigvalsh(problem.cov)
    assert bag[0] >= (1 - max(0, kappa1)) * plain[0] * (1 - 1e-9)
    assert bag[-1] <= (1 - min(0, kappa1)) * plain[-1] * (1 + 1e-9)


def test_the_variance_of_a_direction_depends_on_its_cosine():
    profile = bag_profile(10, 8)
    across = 1 - 0.0**2 * profile.kappa1
    assert across == 1.0 != pytest.approx(1 - profile.kappa1)
