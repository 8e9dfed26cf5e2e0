"""Theorems 2 (1.4) and 3 (1.5): from directions to classifiers.

Theorem 3 prints (Phi (1 - Phi))^2 where its own proof needs the fourth power: an instance error of eps asks for a
direction within eps Phi (1 - Phi) / q, and bags go with the fourth power of that. Its l^2 must be max(1, l^2): at l = 0
it asks for no bags.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from bagwise.errors import InvalidInputError
from bagwise.theory.asymptotics import expected_instance_error, spectral_direction_error, spectral_instance_error
from bagwise.theory.sample_sizes import direction_bags, theorem_2_bags, theorem_3_bags

COMMON = {"eps": 0.1, "delta": 0.1, "n_features": 10}


def bags(theorem, constant=1e6, **arguments):
    """m of the theorem, with a constant so large that rounding up does not show."""
    merged = COMMON | arguments
    return theorem(merged.pop("eps"), merged.pop("delta"), constant=constant, **merged).estimation


def test_powers_of_theorem_2():
    base = bags(theorem_2_bags, size=5, count=1)
    assert bags(theorem_2_bags, size=10, count=1) / base == pytest.approx(2**8)
    assert bags(theorem_2_bags, size=5, count=1, eps=0.05) / base == pytest.approx(2**4)
    assert bags(theorem_2_bags, size=5, count=1, lambda_max=2.0) / base == pytest.approx(2**6)
    balanced = bags(theorem_2_bags, size=4, count=2)
    assert bags(theorem_2_bags, size=4, count=1) / balanced == pytest.approx(4**4)
    assert bags(theorem_2_bags, size=8, count=4) / balanced == pytest.approx(2**4)


def test_powers_of_theorem_3():
    base = bags(theorem_3_bags, size=5, count=1)
    for l in (-3.0, -0.5, 0.5, 1.0, 4.0):
        tails = 4 * ndtr(l) * ndtr(-l)
        assert bags(theorem_3_bags, size=5, count=1, threshold=l) / base == pytest.approx(max(1, l**2) / tails**4)
    assert bags(theorem_3_bags, size=5, count=1, mean_norm=1.0) / base == pytest.approx(2**4)
    assert bags(theorem_3_bags, size=5, count=1, lambda_max=4.0) / base == pytest.approx(4**4 * 2**4)
    assert bags(theorem_3_bags, size=10, count=5) / base == pytest.approx(2**8)
    # Centred and homogeneous it has Theorem 2's powers.
    assert bags(theorem_3_bags, size=5, count=1, lambda_max=4.0) / base == pytest.approx(
        bags(theorem_2_bags, size=5, count=1, lambda_max=4.0) / bags(theorem_2_bags, size=5, count=1)
    )


@given(st.floats(-4, 4), st.floats(1e-3, 0.3))
def test_the_fourth_power_of_the_tails_is_that_of_the_direction_lemma(l, eps):
    tails = float(ndtr(l) * ndtr(-l))
    lemma = lambda e: direction_bags(e, 0.1, n_features=10, size=5, threshold=l, constant=1e6)
    printed, right = eps**-4 * tails**-2, eps**-4 * tails**-4
    needed = lemma(eps * tails) / lemma(eps) * eps**-4
    assert needed == pytest.approx(right, rel=1e-6)
    assert needed > printed


@given(st.floats(1e-3, 0.99), st.floats(1e-3, 0.99), st.integers(1, 40))
def test_bounds_are_monotone(eps, delta, d):
    for theorem in (theorem_2_bags, theorem_3_bags):
        base = dict(size=5, count=2, n_features=d)
        m = theorem(eps, delta, **base)
        assert theorem(eps / 2, delta, **base).total >= m.total
        assert theorem(eps, delta / 2, **base).total >= m.total
        assert theorem(eps, delta, **(base | {"n_features": d + 1})).total >= m.total
        assert m.total == 2 * m.estimation + m.selection


@pytest.mark.parametrize(("q", "k"), [(2, 1), (3, 1), (5, 4)])
def test_theorem_2_meets_its_error_at_its_calibrated_size(q, k):
    d, eps, delta = 10, 0.3, 0.5
    m = theorem_2_bags(eps, delta, n_features=d, size=q, count=k).estimation
    error = expected_instance_error(spectral_direction_error(d, m, q, k, pairs="one", fresh=True))
    # Markov would allow half of the data sets twice the mean; the mean itself is below eps.
    assert error <= eps


@pytest.mark.parametrize(("q", "k", "l"), [(2, 1, 0.0), (3, 1, 1.0), (3, 2, 2.0)])
def test_theorem_3_meets_its_error_at_its_calibrated_size(q, k, l):
    d, eps, delta = 10, 0.02, 0.2
    m = theorem_3_bags(eps, delta, n_features=d, size=q, count=k, threshold=l).estimation
    assert spectral_instance_error(d, m, q, k, l, pairs="one") <= eps


def test_asymptotic_bags_are_proportional_to_one_over_eps_squared_not_to_its_fourth_power():
    errors = [spectral_instance_error(10, m, 10, 8, pairs="all", offset="known") for m in (10_000, 40_000)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("theorem", [theorem_2_bags, theorem_3_bags])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eps": 1.0}, "eps must lie"),
        ({"delta": 1.0}, "delta must lie"),
        ({"count": 5}, r"count must be an integer in 1\.\.4"),
        ({"lambda_min": -1.0}, "lambda_min must lie"),
        ({"constant": 0.0}, "constant must lie"),
    ],
)
def test_arguments_outside_the_theorems_are_refused(theorem, change, message):
    arguments = COMMON | {"size": 5, "count": 1} | change
    with pytest.raises(InvalidInputError, match=message):
        theorem(arguments.pop("eps"), arguments.pop("delta"), **arguments)


def test_theorem_3_refuses_what_only_it_takes():
    with pytest.raises(InvalidInputError, match="mean_norm must be finite"):
        theorem_3_bags(0.1, 0.1, n_features=2, size=3, count=1, mean_norm=-1.0)
    with pytest.raises(InvalidInputError, match="below 1e304 bags"):
        theorem_3_bags(0.1, 0.1, n_features=2, size=3, count=1, threshold=30.0)
