"""Algebra of LTFs under a Gaussian: symmetry, scale, affine maps, the triangle."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import bagwise as bw
from bagwise.ltf import error_rates, threshold
from strategies import angles, gaps, gaussians, ltf_pairs, thresholds

# Two ways to the same probability differ by the rounding of their inputs: thresholds of order 10, whose rounding
# is 1e-15, move a probability by less than 1e-14, and angles from a quadratic form by 1e-14 of their scale.
CLOSE = {"rtol": 1e-9, "atol": 1e-13}


@given(ltf_pairs())
def test_disagreement_is_symmetric(pair) -> None:
    g, f, h = pair
    assert_allclose(f.disagreement(h, g.mean, g.cov), h.disagreement(f, g.mean, g.cov), **CLOSE)


@given(ltf_pairs(), st.sampled_from([1e-6, 0.3, 7.0, 1e8]))
def test_the_length_of_a_normal_does_not_matter(pair, scale: float) -> None:
    g, f, h = pair
    longer = bw.LTF(scale * f.normal, scale * f.offset)
    assert_allclose(longer.disagreement(h, g.mean, g.cov), f.disagreement(h, g.mean, g.cov), **CLOSE)
    assert_allclose(longer.angle(h, g.cov), f.angle(h, g.cov), rtol=1e-9, atol=1e-12)


@given(ltf_pairs())
def test_the_complement_of_one_takes_the_disagreement_to_the_rest(pair) -> None:
    g, f, h = pair
    apart = f.disagreement(h, g.mean, g.cov)
    assert_allclose(f.flipped().disagreement(h.flipped(), g.mean, g.cov), apart, **CLOSE)
    assert_allclose(f.flipped().disagreement(h, g.mean, g.cov) + apart, 1, rtol=1e-12)
    assert_allclose(f.angle(h, g.cov) + f.angle(h.flipped(), g.cov), np.pi, rtol=1e-12)


@given(ltf_pairs())
def test_error_rates_add_up_to_the_disagreement(pair) -> None:
    from scipy.special import ndtr

    g, f, h = pair
    l = threshold(f, g.mean, g.cov)
    missed, false = error_rates(h, f, g.mean, g.cov)
    assert_allclose(ndtr(-l) * missed + ndtr(l) * false, f.disagreement(h, g.mean, g.cov), rtol=1e-12)
    assert_allclose(error_rates(h.flipped(), f.flipped(), g.mean, g.cov), (false, missed), rtol=1e-9, atol=1e-300)


@given(ltf_pairs(), st.integers(0, 2**32 - 1))
def test_an_affine_map_of_the_features_changes_nothing(pair, seed: int) -> None:
    g, f, h = pair
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((g.d, g.d)) + 3 * np.eye(g.d)
    b = rng.standard_normal(g.d)
    moved = [bw.LTF(np.linalg.solve(A.T, t.normal), t.offset - b @ np.linalg.solve(A.T, t.normal)) for t in (f, h)]
    after = moved[0].disagreement(moved[1], A @ g.mean + b, A @ g.cov @ A.T)
    # Offsets of |b||normal| against spreads of sqrt(1e-3): the map itself rounds thresholds by about 1e-12.
    assert_allclose(after, f.disagreement(h, g.mean, g.cov), rtol=1e-7, atol=1e-11)


@given(gaussians(), thresholds, st.tuples(angles, angles), st.tuples(gaps, gaps))
def test_disagreement_obeys_the_triangle_inequality(g, l: float, turns, shifts) -> None:
    f = g.ltf(l)
    h = g.neighbour(f, turns[0], shifts[0])
    k = g.neighbour(h, turns[1], shifts[1])
    fh, hk, fk = (a.disagreement(b, g.mean, g.cov) for a, b in ((f, h), (h, k), (f, k)))
    assert fk <= (fh + hk) * (1 + 1e-9) + 1e-15


@given(gaussians(), st.sampled_from([0.0, 1.0]))
def test_without_offsets_from_the_mean_the_disagreement_is_the_angle_over_pi(g, shift: float) -> None:
    f = g.ltf(0.0)
    h = g.neighbour(f, shift, 0.0)
    # The thresholds are 0 up to rounding, which enters by its square and by its difference / sqrt(2 pi).
    assert_allclose(f.disagreement(h, g.mean, g.cov), f.angle(h, g.cov) / np.pi, rtol=1e-9, atol=1e-12)


@given(ltf_pairs())
def test_more_distance_between_parallel_hyperplanes_means_more_disagreement(pair) -> None:
    g, f, _ = pair
    s = np.sqrt(f.normal @ g.cov @ f.normal)
    apart = [f.disagreement(bw.LTF(f.normal, f.offset + s * t), g.mean, g.cov) for t in (0.0, 1e-9, 1e-3, 0.5, 3.0)]
    assert apart == sorted(apart) and apart[0] == 0
