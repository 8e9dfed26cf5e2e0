"""Lemma 2.1: normalised images of near unit vectors under near matrices are near.

Holds as printed, and with 2 for 4 and without its condition: |x/|x| - y/|y|| <= 2 |x - y| / max(|x|, |y|).
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st


@given(
    st.integers(1, 6),
    st.floats(0.01, 1),
    st.floats(0, 0.3),
    st.floats(0, 1),
    st.integers(0, 2**32 - 1),
)
def test_lemma_2_1_holds_and_so_does_half_of_it_without_the_condition(d, conditioning, spread, turn, seed):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = (Q * np.linspace(conditioning, 1, d)) @ Q.T
    E = rng.standard_normal((d, d))
    E = (E + E.T) / np.linalg.norm(E + E.T, 2)
    B = A + spread * np.linalg.eigvalsh(A)[0] * E  # positive definite still
    r1, step = rng.standard_normal((2, d))
    r1 /= np.linalg.norm(r1)
    r2 = r1 + turn * step
    r2 /= np.linalg.norm(r2)

    values = np.linalg.eigvalsh(A)
    eps1 = np.linalg.norm(A - B, 2) / values[-1]
    eps2 = np.linalg.norm(r1 - r2)
    x, y = A @ r1, B @ r2
    distance = np.linalg.norm(x / np.linalg.norm(x) - y / np.linalg.norm(y))
    reach = values[-1] / values[0] * (eps1 + eps2)
    assert distance <= 2 * reach + 1e-12
    if reach <= 1 / 2:
        assert distance <= 4 * reach + 1e-12
