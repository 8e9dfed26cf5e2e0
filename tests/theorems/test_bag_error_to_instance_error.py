"""Theorem D.2: an LTF with a small oracle bag error has small class errors (up to complement when balanced).

Printed: bag "accuracy" (for error) 0 < e < 1 / (4 q), k in 1..q, instance error at most 4 e. False at k = q, needlessly
strict at e = 0. Holds for all e < 1/2 with e for 4 e, class by class: 1 - TPR <= 1 - (1 - e)^(1/k) and
FPR <= 1 - (1 - e)^(1/(q - k)); false at e = 1/2.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom

from bagwise.errors import InvalidInputError
from bagwise.theory.generalisation import class_error_bounds, instance_error_bound
from gaussian_problems import keys

# scipy's binomial overflows at subnormal probabilities.
rates = st.floats(0, 1).map(lambda x: 0.0 if x < 1e-150 else x)


def bag_error(q, k, a, b):
    """Pr[Bin(k, a) != Bin(q - k, b)] for arrays a, b."""
    r = np.arange(min(k, q - k) + 1)
    return 1 - (binom.pmf(r, k, np.asarray(a)[..., None]) * binom.pmf(r, q - k, np.asarray(b)[..., None])).sum(-1)


def within(a, b, limits, slack=1e-9):
    return (a <= limits.false_negative + slack) & (b <= limits.false_positive + slack)


@given(keys(40), rates, rates, rates)
def test_theorem_d2_holds_below_one_half_and_class_by_class(key, a, b, shrink):
    q, k = key
    # Shrunk towards the corners, where small bag errors live.
    for x, y in ((a, b), (a * shrink / q, b * shrink / q), (1 - a * shrink / q, 1 - b * shrink / q)):
        e = float(bag_error(q, k, x, y))
        if not 0 <= e < 0.5:
            continue
        limits = class_error_bounds(e, q, k)
        assert limits.instance <= e + 1e-12
        complement = limits.up_to_complement and within(1 - x, 1 - y, limits)
        assert within(x, y, limits) or complement
        if e < 1 / (4 * q):
            worst = max(x, y) if within(x, y, limits) else max(1 - x, 1 - y)
            assert worst <= instance_error_bound(e, q, k) + 1e-9


@pytest.mark.parametrize("q", [2, 3, 4, 5, 8, 13])
def test_no_pair_of_class_errors_on_a_grid_escapes(q):
    grid = np.linspace(0, 1, 81)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    for k in range(1, q):
        e = bag_error(q, k, a, b)
        satisfied = np.clip(1 - e, 0, 1)
        fine = (1 - a) ** k >= satisfied - 1e-9
        fine &= (1 - b) ** (q - k) >= satisfied - 1e-9
        if 2 * k == q:
            fine |= (a**k >= satisfied - 1e-9) & (b ** (q - k) >= satisfied - 1e-9)
        assert fine[e < 0.5 - 1e-9].all()


def test_one_half_is_the_end_of_the_road():
    # (3, 1): every positive lost, every negative a coin flip; half of the bags are satisfied by chance.
    assert_allclose(bag_error(3, 1, 1.0, 0.5), 0.5)
    with pytest.raises(InvalidInputError, match=r"must lie in \[0, 1/2\)"):
        class_error_bounds(0.5, 3, 1)


def test_the_class_bounds_are_attained():
    # Only positives are lost: then the bag error is 1 - (1 - a)^k exactly.
    for q, k in ((2, 1), (10, 8), (50, 35)):
        limits = class_error_bounds(float(bag_error(q, k, 0.003, 0.0)), q, k)
        assert_allclose(limits.false_negative, 0.003, rtol=1e-6)


def test_bags_of_positives_only_say_nothing_about_negatives():
    # The theorem as printed admits k = q: there h = 1 satisfies every bag, whatever the share of negatives.
    assert bag_error(5, 5, 0.0, 1.0) == 0.0
    with pytest.raises(InvalidInputError, match=r"count must be an integer in 1\.\.4"):
        instance_error_bound(0.01, 5, 5)


def test_the_printed_condition_is_kept_by_the_printed_bound():
    with pytest.raises(InvalidInputError, match=r"below 1 / \(4 q\)"):
        instance_error_bound(0.025, 10, 8)
    assert class_error_bounds(0.025, 10, 8).instance < 0.025
