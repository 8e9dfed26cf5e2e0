"""Lemma 2.3: the instance error between two LTFs of near normals and the same offset.

The proof takes |Sigma^(1/2) r| = |Sigma^(1/2) r-hat| when it compares the two thresholds, and an angle of pi times the
chord where pi / 2 holds. The printed constants survive: c0 = sqrt(1/4 + phi(1)^2) = 0.56 is proven in
docs/theory/generalisation.md, so c0 = 2 holds.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.theory.generalisation import classification_error_bound, sharp_classification_error_bound


@given(
    st.integers(1, 5),
    st.sampled_from([1.0, 0.3, 0.05]),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.floats(-3, 3),
    st.floats(1e-3, 2),
    st.integers(0, 2**32 - 1),
)
def test_lemma_2_3_bounds_the_exact_error(d, conditioning, spread, level, turn, seed):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    cov = (Q * np.linspace(conditioning, 1, d)) @ Q.T
    cov = (cov + cov.T) / 2
    mean = spread * rng.standard_normal(d)
    r, step = rng.standard_normal((2, d))
    r /= np.linalg.norm(r)
    s = r + turn * step
    s /= np.linalg.norm(s)
    offset = level * np.sqrt(r @ cov @ r) - r @ mean
    error = bw.instance_error(bw.LTF(s, offset), bw.LTF(r, offset), mean, cov)
    geometry = {
        "lambda_min": np.linalg.eigvalsh(cov)[0],
        "lambda_max": np.linalg.eigvalsh(cov)[-1],
        "mean_norm": float(np.linalg.norm(mean)),
    }
    distance = min(2.0, float(np.linalg.norm(r - s)))
    # 1e-8: the accuracy of the bivariate normal probability.
    assert error <= sharp_classification_error_bound(distance, **geometry) + 1e-8
    assert sharp_classification_error_bound(distance, **geometry) <= classification_error_bound(distance, **geometry)


def test_the_step_that_compares_thresholds_is_false_as_printed():
    # Centred, so the printed first term is 0; but the threshold in standard deviations moves with |Sigma^(1/2) r|.
    cov = np.diag([1.0, 25.0])
    r, s = np.array([1.0, 0.0]), np.array([np.cos(0.3), np.sin(0.3)])
    offset = -1.0
    zeta, zeta_hat = (offset / np.sqrt(v @ cov @ v) for v in (r, s))
    assert abs(norm.cdf(zeta) - norm.cdf(zeta_hat)) > 0.1


def test_no_constant_below_one_half_would_do():
    # Spherical, through the mean: error = angle / pi, distance = 2 sin(angle / 2), ratio 1 / 2 at opposite normals.
    r = np.array([1.0, 0.0])
    error = bw.instance_error(bw.LTF(-r, 0.0), bw.LTF(r, 0.0), np.zeros(2), np.eye(2))
    assert error == pytest.approx(1.0)
    assert classification_error_bound(2.0, c0=0.5) == 1.0
    assert classification_error_bound(2.0, c0=0.49) < error


def test_what_is_no_distance_of_unit_vectors_is_refused():
    with pytest.raises(InvalidInputError, match="distance must lie in"):
        classification_error_bound(2.5)
    with pytest.raises(InvalidInputError, match="mean_norm must be finite"):
        classification_error_bound(0.1, mean_norm=-1.0)
