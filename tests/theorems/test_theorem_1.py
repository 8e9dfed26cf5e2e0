"""Theorem 1 (1.3) and Lemma A.1: the mean of bags over N(0, I).

The proof takes m = O(eta^2 (d / eps^2) log(d / delta)) and drops eta^2 <= 1; a relative error of eps in a mean of
length |eta| needs 1 / eta^2, which is up to pi q^2 / 2. The overview prints r = q / 2 for k = q / 2, Algorithm 3 h for
its normal vector.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bagwise.errors import InvalidInputError
from bagwise.theory.kappas import bag_profile
from bagwise.theory.sample_sizes import mean_direction_bags, theorem_1_bags
from gaussian_problems import keys, standard_normal_above


@given(keys(80))
def test_the_mean_has_length_eta_and_is_at_least_one_over_q(key):
    q, k = key
    assume(2 * k != q)
    eta = (2 * k / q - 1) * np.sqrt(2 / np.pi)
    assert bag_profile(q, k).shift == pytest.approx(eta)
    assert 1 / eta**2 <= np.pi / 2 * q**2 * (1 + 1e-12)


@given(st.integers(1, 6), st.floats(1e-3, 2), st.integers(0, 2**32 - 1))
def test_a_relative_error_of_a_quarter_of_eps_keeps_the_direction_within_eps(d, eps, seed):
    mean, step = np.random.default_rng(seed).standard_normal((2, d))
    found = mean + step / np.linalg.norm(step) * eps / 4 * np.linalg.norm(mean)
    distance = np.linalg.norm(found / np.linalg.norm(found) - mean / np.linalg.norm(mean))
    assert distance <= 2 * eps / (4 - eps) + 1e-12
    assert 2 * eps / (4 - eps) <= eps + 1e-12


def distances(q, k, d, m, runs, rng):
    """Errors of the direction of m single rows of bags, in whitened coordinates."""
    labels = rng.random((runs, m)) < k / q
    along = np.where(labels, 1, -1) * standard_normal_above(0, (runs, m), rng)
    mean = np.column_stack([along.mean(axis=1), rng.standard_normal((runs, d - 1)) / np.sqrt(m)])
    mean *= np.sign(2 * k - q)
    unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    return np.sqrt(np.maximum(0.0, 2 - 2 * unit[:, 0]))


def test_without_one_over_eta_squared_the_lemma_is_false():
    # At (40, 21), eta^2 = 1/628: bags that suffice at (40, 39) leave the direction almost at random.
    q, d, eps, delta, rng = 40, 5, 0.5, 0.2, np.random.default_rng(0)
    m = mean_direction_bags(eps, delta, n_features=d, size=q, count=39)
    # Failures among 300 data sets; at most delta + 4 sqrt(delta / 300) < 0.3 where the lemma holds.
    assert (distances(q, 39, d, m, 300, rng) > eps).mean() <= 0.3
    assert (distances(q, 21, d, m, 300, rng) > eps).mean() > 0.9
    enough = mean_direction_bags(eps, delta, n_features=d, size=q, count=21)
    assert (distances(q, 21, d, enough, 20, rng) > eps).mean() <= 0.5  # delta + 3 sqrt(delta / 20)


def test_theorem_1_meets_its_error_at_its_calibrated_size():
    q, k, d, eps, delta, rng = 10, 8, 10, 0.1, 0.2, np.random.default_rng(1)
    bags = theorem_1_bags(eps, delta, n_features=d, size=q, count=k)
    assert (bags.selection, bags.total) == (0, bags.estimation)
    angle = 2 * np.arcsin(distances(q, k, d, bags.estimation, 300, rng) / 2)
    assert (angle / np.pi > eps).mean() <= delta + 4 * np.sqrt(delta / 300)


@pytest.mark.parametrize(
    ("size", "count", "message"),
    [(2, 1, "at least 3"), (4, 2, "half of size"), (4, 4, r"in 1\.\.3"), (4, 0, r"in 1\.\.3"), (4, 1.5, r"in 1\.\.3")],
)
def test_bags_outside_of_theorem_1_are_refused(size, count, message):
    with pytest.raises(InvalidInputError, match=message):
        theorem_1_bags(0.1, 0.1, n_features=3, size=size, count=count)
