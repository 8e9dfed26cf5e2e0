"""Theorem B.5 and Lemma 4.5: maximising a ratio of quadratic forms is a principal eigenvector problem."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from bagwise.theory.kappas import gamma
from bagwise.theory.population import population_moments
from gaussian_problems import problems


def inverse_root(B):
    values, vectors = np.linalg.eigh(B)
    return (vectors / np.sqrt(values)) @ vectors.T


def principal(A):
    return np.linalg.eigh(A)[1][:, -1]


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_theorem_b5_turns_the_ratio_into_an_eigenvector(d, seed):
    rng = np.random.default_rng(seed)
    A, B = (M @ M.T + 0.1 * np.eye(d) for M in rng.standard_normal((2, d, d)))
    W = inverse_root(B)
    r = rng.standard_normal((200, d))
    ratios = np.einsum("nd,de,ne->n", r, A, r) / np.einsum("nd,de,ne->n", r, B, r)
    whitened = r @ np.linalg.inv(W)
    whitened /= np.linalg.norm(whitened, axis=1, keepdims=True)
    assert_allclose(ratios, np.einsum("nd,de,ne->n", whitened, W @ A @ W, whitened), rtol=1e-7)
    best = W @ principal(W @ A @ W)
    assert (ratios <= best @ A @ best / (best @ B @ best) * (1 + 1e-9)).all()


@given(problems())
def test_lemma_4_5_finds_the_normal_from_exact_moments(problem):
    exact = population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)
    W = inverse_root(exact.cov_bag)
    found = W @ principal(W @ exact.cov_diff @ W)
    # The gap is at least 2 / (q^2 + 1): far above rounding.
    assert_allclose(abs(gamma(found, problem.ltf.normal, problem.cov)), 1, atol=1e-7)
