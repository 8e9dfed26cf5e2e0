"""Lemma B.2: Sigma_D = 2 Sigma_B + 2 / (q - 1) p (1 - p) D D', for any two classes of finite variance."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gaussian_problems import keys


@given(keys(max_size=7), st.integers(0, 2**32 - 1))
def test_lemma_b2_relates_pairs_to_rows_for_any_classes(key, seed):
    (q, k), rng = key, np.random.default_rng(seed)
    # Two classes on four atoms each: nothing Gaussian about them.
    atoms = rng.standard_exponential((2, 4, 3))
    weights = rng.dirichlet(np.ones(4), size=2)
    means = np.einsum("ca,cad->cd", weights, atoms)
    squares = np.einsum("ca,cad,cae->cde", weights, atoms, atoms)
    labels = np.arange(q) < k

    p = k / q
    mean = p * means[1] + (1 - p) * means[0]
    cov_bag = p * squares[1] + (1 - p) * squares[0] - np.outer(mean, mean)
    pairs = list(permutations(range(q), 2))
    cov_diff = np.zeros((3, 3))
    for i, j in pairs:
        a, b = int(labels[i]), int(labels[j])
        cross = np.outer(means[a], means[b])
        cov_diff += (squares[a] + squares[b] - cross - cross.T) / len(pairs)

    D = means[1] - means[0]
    assert_allclose(cov_diff, 2 * cov_bag + 2 / (q - 1) * p * (1 - p) * np.outer(D, D), rtol=1e-10, atol=1e-12)
