"""Counts of binned rows: equal to those of the rows one by one, with derivatives that differences confirm."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bagwise.stats.binned_counts import LEAST, BinnedCounts
from bagwise.stats.poisson_binomial import count_posterior, log_odds


def drawn(q: int, m: int, r: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = rng.multinomial(q, np.full(len(r), 1 / len(r)), size=m)
    return rows, rng.binomial(rows, r).sum(axis=1)


@pytest.mark.parametrize("q", [1, 2, 3, 10, 64, 300])
def test_likelihood_is_that_of_the_rows_one_by_one(q: int) -> None:
    rng, m = np.random.default_rng(q), 60
    r = np.sort(rng.beta(0.3, 0.3, 7)).clip(1e-6, 1 - 1e-6)
    rows, counts = drawn(q, m, r, rng)
    counts[:15] = rng.integers(0, q + 1, 15)  # also counts far out
    terms = BinnedCounts(rows, counts).at(r)
    bins = np.concatenate([np.repeat(np.arange(7), bag) for bag in rows])
    exact = count_posterior(log_odds(r)[bins], np.arange(m + 1) * q, counts)
    assert_allclose(terms.loglik, exact.loglik.sum(), rtol=1e-7)
    posterior = np.zeros((m, 7))
    np.add.at(posterior, (np.repeat(np.arange(m), q), bins), exact.labels)
    assert_allclose(terms.scores * r * (1 - r), posterior - rows * r, atol=1e-6)


@pytest.mark.parametrize("q", [2, 9, 40])
def test_derivatives_are_those_of_differences(q: int) -> None:
    rng = np.random.default_rng(q)
    r = np.array([0.03, 0.2, 0.6, 0.9])
    rows, counts = drawn(q, 50, r, rng)
    data = BinnedCounts(rows, counts, rng.integers(0, 3, 50).astype(float))
    e, unit, here = 1e-5, np.eye(4), data.at(r)
    slopes = [(data.at(r + e * u).loglik - data.at(r - e * u).loglik) / (2 * e) for u in unit]
    assert_allclose(here.gradient, slopes, rtol=1e-5, atol=1e-4)
    bends = [(data.at(r - e * u).gradient - data.at(r + e * u).gradient) / (2 * e) for u in unit]
    assert_allclose(here.information, bends, rtol=1e-5, atol=1e-3)
    assert_allclose(here.gradient, data.weights @ here.scores)


def test_ragged_bags_and_certain_rows_are_no_special_case() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 3, 40, 700, 5])
    rows = np.array([rng.multinomial(q, [0.3, 0.4, 0.3]) for q in sizes])
    r = np.array([LEAST, 0.5, 1 - LEAST])
    counts = rng.binomial(rows, r).sum(axis=1)
    whole = BinnedCounts(rows, counts).at(r)
    apart = [BinnedCounts(rows[b : b + 1], counts[b : b + 1]).at(r) for b in range(6)]
    assert_allclose(whole.loglik, sum(bag.loglik for bag in apart))
    assert_allclose(whole.information, sum(bag.information for bag in apart), rtol=1e-7)
    assert np.isfinite(whole.information).all()
