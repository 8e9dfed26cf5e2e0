"""Hypothesis strategies for Gaussian bag problems, and a plain oracle to check closed forms against."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtri_exp

import bagwise as bw
from bagwise.theory.conditions import count_probabilities
from bagwise.theory.gaussian import normalise


@dataclass(frozen=True)
class Problem:
    """An LTF over N(mean, cov), and bags of `size` rows with `count` (a number or probabilities)
    positives."""

    ltf: bw.LTF
    mean: np.ndarray
    cov: np.ndarray
    size: int
    count: object

    @property
    def threshold(self) -> float:
        return normalise(self.ltf, self.mean, self.cov).threshold


@st.composite
def keys(draw, max_size=12, mixed_classes=True):
    """(q, k), both classes present if `mixed_classes`."""
    q = draw(st.integers(2, max_size))
    return q, draw(st.integers(1, q - 1) if mixed_classes else st.integers(0, q))


@st.composite
def count_laws(draw, size):
    """Probabilities of 0..size positives, some of them zero."""
    weights = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=size + 1, max_size=size + 1))
    if sum(weights) == 0:
        weights[draw(st.integers(0, size))] = 1.0
    return np.array(weights) / sum(weights)


@st.composite
def problems(draw, max_dimension=5, max_size=12, threshold=None, mixtures=False):
    """Problems with a well-conditioned covariance and a normalised threshold in [-3, 3] (or the given
    one)."""
    d = draw(st.integers(1, max_dimension))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = rng.standard_normal((d, d))
    cov = A @ A.T / d + draw(st.sampled_from([0.1, 1.0])) * np.eye(d)
    mean = draw(st.sampled_from([0.0, 1.0, 10.0])) * rng.standard_normal(d)
    normal = rng.standard_normal(d)
    l = draw(st.floats(-3, 3)) if threshold is None else threshold
    offset = -l * np.sqrt(normal @ cov @ normal) - normal @ mean
    q, k = draw(keys(max_size))
    count = draw(count_laws(q)) if mixtures else k
    return Problem(bw.LTF(normal, offset), mean, cov, q, count)


def standard_normal_above(l, n, rng):
    """n draws of a standard normal given that it exceeds l, sound for any l."""
    return -ndtri_exp(log_ndtr(-l) + np.log1p(-rng.random(n)))


def sample_bags(problem, n_bags, rng):
    """(rows (m, q, d), counts) of the oracle, by inverting the distribution function along the normal."""
    q = problem.size
    counts = rng.choice(q + 1, size=n_bags, p=count_probabilities(q, problem.count))
    positive = np.arange(q) < counts[:, None]
    normalised = normalise(problem.ltf, problem.mean, problem.cov)
    l = normalised.threshold
    g = np.where(
        positive,
        standard_normal_above(l, (n_bags, q), rng),
        -standard_normal_above(-l, (n_bags, q), rng),
    )
    x = rng.multivariate_normal(problem.mean, problem.cov, size=(n_bags, q), method="cholesky")
    normal = problem.ltf.normal
    deviation = np.sqrt(normal @ problem.cov @ normal)
    # Replace the coordinate along the image of u; what is left of x is independent of it.
    along = (x - problem.mean) @ normal / deviation
    return x + (g - along)[..., None] * normalised.image, counts
