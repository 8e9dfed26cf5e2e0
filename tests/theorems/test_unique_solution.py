"""Lemmas 4.2 and C.2: satisfied bags tell the normal from its opposite and place the offset.

Their constants, 16 c0 q and 8 q / (Phi (1 - Phi)), hold where the bag error behind them is below 1 / (4 q), a condition
that neither lemma prints. Lemma C.2 has Pr[f = 1] = Phi(l), which is 1 - Phi(l) for the l of Theorem 3; its bound is
the same either way. The printed h_j = pos(r.x + r.x_j^(k)) must read minus, and loses its own bag.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.theory.generalisation import class_error_bounds, classification_error_bound
from bagwise.theory.sample_sizes import offset_bags, offset_error_bound, sign_bags, sign_error_bound
from gaussian_problems import keys, standard_normal_above


def tilted(distance):
    """A unit normal at this distance from the first axis."""
    angle = 2 * np.arcsin(distance / 2)
    return np.array([np.cos(angle), np.sin(angle)])


def class_errors(l, s):
    """Pr[h = 0 | f = 1] and Pr[h = 1 | f = 0] over N(0, I) of normals e1 and s with the threshold l."""
    # Equal normals' shares: the two kinds of disagreement have the same probability, half of it each.
    half = bw.instance_error(bw.LTF(s, -l), bw.LTF([1.0, 0.0], -l), np.zeros(2), np.eye(2)) / 2
    return half / ndtr(-l), half / ndtr(l)


@given(keys(20), st.floats(1e-5, 0.5), st.floats(-2.5, 2.5))
def test_the_chain_of_lemma_c2_from_direction_to_instances(key, distance, l):
    q, k = key
    lost, taken = class_errors(l, tilted(distance))
    bag_error = 1 - (1 - lost) ** k * (1 - taken) ** (q - k)  # a bag holds a row on which they disagree
    eps1 = classification_error_bound(distance)
    tails = ndtr(l) * ndtr(-l)
    assert bag_error <= q * eps1 / tails + 1e-12
    if 2 * bag_error < 1 / (4 * q):
        # The best offset satisfies at least as many bags; doubled by Chernoff, doubled by the gap, then class by class.
        assert class_error_bounds(4 * bag_error if 4 * bag_error < 0.5 else 0.0, q, k).instance <= 8 * q * eps1 / tails


@given(st.integers(2, 30), st.floats(1e-8, 1e-3), st.floats(1, 10), st.floats(1, 10))
def test_the_sign_error_is_sixteen_c0_q_eps(q, eps, low, stretch):
    high = low * stretch
    expected = 16 * 2 * q * eps * np.sqrt(stretch)
    if expected * q < 1:
        found = sign_error_bound(eps, size=q, lambda_min=low, lambda_max=high)
        assert found == pytest.approx(expected)
        # At l = 0 the general lemma gives twice that: 8 / (1/4) for 16.
        if 2 * expected * q < 1:
            general = offset_error_bound(eps, size=q, lambda_min=low, lambda_max=high)
            assert general == pytest.approx(2 * found)
    else:
        with pytest.raises(InvalidInputError, match="below 1 / q"):
            sign_error_bound(eps, size=q, lambda_min=low, lambda_max=high)


@pytest.mark.parametrize(("q", "k"), [(3, 1), (10, 8), (10, 6)])
def test_lemma_4_2_chooses_the_sign_with_far_fewer_bags_than_its_s(q, k):
    eps, runs, rng = 1e-3, 200, np.random.default_rng(0)
    assert sign_bags(eps, 0.1, n_features=2, size=q, count=k) > 10**6
    s = tilted(eps)
    for _ in range(runs):
        z = rng.standard_normal((100, q, 2))
        z[:, :k, 0] = standard_normal_above(0, (100, k), rng)
        z[:, k:, 0] = -standard_normal_above(0, (100, q - k), rng)
        positives = (z @ s > 0).sum(axis=1)
        # Right: about q eps / pi of bags missed; wrong: satisfied only by those.
        assert (positives != k).mean() < (positives != q - k).mean()


def test_balanced_bags_have_no_sign():
    with pytest.raises(InvalidInputError, match="half of size"):
        sign_bags(0.1, 0.1, n_features=2, size=4, count=2)


@given(st.floats(1e-3, 0.9), st.floats(1e-3, 0.9), st.integers(1, 50), st.integers(2, 50))
def test_both_s_go_with_d_log_q_and_the_square_of_eps(eps, delta, d, q):
    s = offset_bags(eps, delta, n_features=d, size=q)
    exact = 1000 / 64 * d * (np.log(q) + np.log(1 / delta)) / eps**2
    assert exact <= s <= exact * (1 + 1e-9) + 1
    if q > 2:
        assert sign_bags(eps, delta, n_features=d, size=q, count=1) == s


def test_the_printed_candidates_of_algorithm_4_miss():
    # Three positives of five along r, threshold 0: scores of one bag in descending order.
    scores = np.array([2.0, 1.5, 0.4, -0.3, -1.0])
    k = 3
    printed, negated, inside = scores[k - 1], -scores[k - 1], -(scores[k - 1] + scores[k]) / 2
    positives = lambda c: int((scores + c > 0).sum())
    assert positives(printed) != k  # r.x + r.x^(k): the wrong sign
    assert positives(negated) == k - 1  # r.x - r.x^(k): its own bag lacks the k-th row
    assert positives(inside) == k
