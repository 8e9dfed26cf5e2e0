"""Theorem B.1 (Chernoff) and Proposition E.2 (Mills ratio), the tools of the appendix.

Appendix E declares Phi(t) := Pr[X >= t] in its first line, and its complement 1 - Phi(t) := Pr[X > t]; everywhere else,
and in the definition of l's bounds, Phi is the distribution function.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm


@given(st.integers(1, 2000), st.floats(1e-6, 1), st.floats(1e-3, 50))
def test_theorem_b1_bounds_the_upper_tail_of_a_binomial(n, p, excess):
    mean = n * p
    tail = binom.sf(np.ceil((1 + excess) * mean - 1e-9) - 1, n, p)
    assert tail <= np.exp(-(excess**2) * mean / (2 + excess)) * (1 + 1e-9)


@given(st.floats(1e-3, 37))
def test_proposition_e2_brackets_the_normal_tail(t):
    log_tail, log_density = norm.logsf(t), norm.logpdf(t)
    assert log_tail <= log_density - np.log(t) + 1e-12 * t**2
    if t > 1:
        assert log_tail >= log_density + np.log(1 / t - 1 / t**3) - 1e-12 * t**2
    if t >= 1:
        assert log_tail <= log_density
        # Consequence used for both tails together.
        assert np.log(2) + log_tail <= np.log(2) - t**2 / 2
