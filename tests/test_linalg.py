"""Whitening and generalised eigenpairs on columns as they come: collinear, constant, of any unit."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from bagwise.stats.linalg import eigenpairs, whitener

seeds = st.integers(0, 2**32 - 1)


def covariance(rng: np.random.Generator, d: int, rank: int | None = None) -> np.ndarray:
    A = rng.standard_normal((d, (rank or d) + (0 if rank else 2)))
    return A @ A.T


@given(seeds, st.integers(1, 8), st.sampled_from([0.0, 4.0, 8.0]))
def test_a_whitener_whitens_whatever_the_units(seed, d, orders):
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-orders, orders, d)
    C = covariance(rng, d) * np.outer(units, units)
    W = whitener(C)
    assert (W.rank, W.n_features) == (d, d)
    # The correlation matrix has a condition number below 1e6 or so; rounding times it.
    assert_allclose(W.covariance(C), np.eye(d), atol=1e-9)


@given(seeds, st.integers(2, 8), st.data())
def test_the_rank_is_the_dimension_that_the_features_span(seed, d, data):
    rank = data.draw(st.integers(1, d - 1))
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-4, 4, d)
    C = covariance(rng, d, rank) * np.outer(units, units)
    W = whitener(C)
    assert W.rank == rank
    # W W' is a pseudo-inverse: C (W W') C = C, compared in the units of the columns.
    assert_allclose((C @ W.matrix @ W.matrix.T @ C) / np.outer(units, units), C / np.outer(units, units), atol=1e-7 * d)


def test_constant_columns_have_no_weight():
    C = np.diag([2.0, 0.0, 3.0])
    W = whitener(C)
    assert W.rank == 2 and not W.matrix[1].any()
    u = np.array([0.6, 0.8])
    assert W.normal(u)[1] == 0
    assert_allclose(W.vector(C @ W.normal(u)), u)


def test_no_variance_at_all_spans_nothing():
    W = whitener(np.zeros((2, 2)))
    assert W.rank == 0 and W.matrix.shape == (2, 0)


@given(seeds, st.integers(1, 8))
def test_eigenpairs_are_those_of_scipy(seed, d):
    rng = np.random.default_rng(seed)
    A, B = covariance(rng, d), covariance(rng, d)
    values, vectors = eigenpairs(A, B)
    assert_allclose(values, scipy.linalg.eigh(A, B, eigvals_only=True), rtol=1e-6, atol=1e-9)
    assert_allclose(A @ vectors, B @ vectors * values, atol=1e-6 * np.abs(A @ vectors).max())
    assert_allclose(vectors.T @ B @ vectors, np.eye(d), atol=1e-8)


@given(seeds, st.integers(2, 6))
def test_eigenvalues_do_not_hang_on_units(seed, d):
    rng = np.random.default_rng(seed)
    A, B = covariance(rng, d), covariance(rng, d)
    units = 2.0 ** rng.integers(-30, 30, d)  # powers of two: exact
    scaled = np.outer(units, units)
    assert_array_equal(eigenpairs(A * scaled, B * scaled)[0], eigenpairs(A, B)[0])


@pytest.mark.parametrize("orders", [3.0, 8.0])
def test_eigenpairs_on_a_plane_are_those_of_the_plane(orders):
    rng = np.random.default_rng(0)
    A, B = covariance(rng, 2), covariance(rng, 2)
    spread = rng.standard_normal((4, 2)) * 10.0 ** np.array([[-orders], [0], [0], [orders]])
    values, vectors = eigenpairs(spread @ A @ spread.T, spread @ B @ spread.T)
    assert vectors.shape == (4, 2)
    assert_allclose(values, eigenpairs(A, B)[0], rtol=1e-8)
