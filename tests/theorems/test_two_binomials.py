"""Lemma D.3: two independent binomials differ with probability at least 1 - sqrt(p*).

p* = min(max(p1, 1 - p1), max(p2, 1 - p2)), each of at least one trial. It holds with p* for sqrt(p*), because the
largest atom of a binomial is at most max(p, 1 - p). The proof prints (1 - p)^(1 - r) for (1 - p)^(n - r), and u for v
in the second sum.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

trials = st.integers(1, 30)
probabilities = st.floats(0, 1).map(lambda x: 0.0 if x < 1e-150 else x)


def equal(u, p1, v, p2):
    r = np.arange(min(u, v) + 1)
    return float(binom.pmf(r, u, p1) @ binom.pmf(r, v, p2))


@given(trials, probabilities, trials, probabilities)
def test_lemma_d3_holds_without_its_square_root(u, p1, v, p2):
    star = min(max(p1, 1 - p1), max(p2, 1 - p2))
    atoms = min(binom.pmf(np.arange(u + 1), u, p1).max(), binom.pmf(np.arange(v + 1), v, p2).max())
    found = equal(u, p1, v, p2)
    assert found <= atoms + 1e-12
    assert atoms <= star + 1e-12
    assert 1 - found >= 1 - np.sqrt(star) - 1e-12


@given(trials, probabilities)
def test_each_atom_is_bounded_by_its_neighbours(n, p):
    if 1e-150 < p < 1:
        pmf = np.concatenate([[0], binom.pmf(np.arange(n + 1), n, p), [0]])
        odds = max(p / (1 - p), (1 - p) / p)
        if odds < 1e12:
            assert (pmf[1:-1] <= odds * (pmf[:-2] + pmf[2:]) * (1 + 1e-9) + 1e-15).all()


def test_no_power_of_p_star_below_the_first_would_do():
    # Bernoulli against a certain 1: Pr[X1 = X2] = p1 = p*.
    assert equal(1, 0.9, 1, 1.0) == 0.9


def test_at_least_one_trial_is_needed():
    # k = q: no negative rows, X2 = 0 whatever p2, and the binomials agree with certainty.
    assert equal(5, 0.0, 0, 0.5) == 1.0
