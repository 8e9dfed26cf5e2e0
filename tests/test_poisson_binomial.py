"""The Poisson-binomial count against exact fractions, a plain recursion in logarithms, and the limits of float64."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bagwise.stats.parallel import bag_parts, in_threads
from bagwise.stats.poisson_binomial import count_posterior, log_odds


def exact(exponents, k, rows):
    """Log-likelihood, and posteriors of some rows, for odds 2^exponent: in integers, a common factor taken out."""
    lowest = int(exponents.min())
    odds = [1 << (int(e) - lowest) for e in exponents]

    def symmetric(values):
        e = [1] + [0] * k
        for o in values:
            for j in range(k, 0, -1):
                e[j] += o * e[j - 1]
        return e

    whole = symmetric(odds)[k]
    log_nothing = sum(np.logaddexp(0, e * log(2)) for e in exponents)
    posterior = [
        float(Fraction(odds[i] * symmetric(odds[:i] + odds[i + 1 :])[k - 1], whole)) if k else 0.0 for i in rows
    ]
    return log(whole) + lowest * k * log(2) - log_nothing, np.array(posterior)


def one(eta, k):
    found = count_posterior(np.asarray(eta, float), np.array([0, len(eta)]), np.array([k]))
    return found.loglik[0], found.labels


@pytest.mark.parametrize("spread", [1, 3, 30, 300, 1000])
@pytest.mark.parametrize("q", [1, 2, 3, 10, 33, 70])
def test_counts_agree_with_exact_fractions_however_unlikely(q, spread):
    rng = np.random.default_rng([q, spread])
    for k in {0, 1, q // 3, q // 2, q - 1, q}:
        exponents = rng.integers(-spread, spread + 1, q) + rng.integers(-spread, spread + 1)
        rows = range(0, q, 1 + q // 5)
        loglik, posterior = exact(exponents, k, rows)
        found = one(exponents * np.log(2), k)
        # eta itself is rounded to 2^-53 relative, which moves the log-likelihood by up to sum |eta| 2^-53
        assert_allclose(found[0], loglik, rtol=0, atol=1e-14 * (1 + q * spread))
        assert_allclose(found[1][list(rows)], posterior, rtol=0, atol=1e-13 * (1 + spread))


def recursion(eta, k):
    """Log-likelihood by the plain recursion over rows, in logarithms: slow, and cannot underflow."""
    log_p, log_q = -np.logaddexp(0, -eta), -np.logaddexp(0, eta)
    states = np.full(k + 1, -np.inf)
    states[0] = 0.0
    for p, o in zip(log_p, log_q, strict=True):
        states[1:] = np.logaddexp(states[1:] + o, states[:-1] + p)
        states[0] += o
    return states[k]


@pytest.mark.parametrize("q", [100, 1000, 4000])
def test_large_bags_agree_with_the_plain_recursion(q):
    rng = np.random.default_rng(q)
    for centre, spread in [(0, 1), (-4, 2), (0, 20), (2, 0.1)]:
        eta = centre + spread * rng.standard_normal(q)
        mean = (1 / (1 + np.exp(-eta))).sum()
        for k in {1, int(mean), int(mean + 0.1 * (q - mean)), q - 2}:
            loglik, posterior = one(eta, k)
            # the recursion adds q rounding errors of its own
            assert_allclose(loglik, recursion(eta, k), rtol=2e-16 * q, atol=2e-16 * q)
            assert_allclose(posterior.sum(), k, rtol=1e-12)


def test_a_hundred_thousand_rows_are_one_bag_like_any_other():
    # equal rows have a closed form: the binomial
    from scipy.stats import binom

    q, k, p = 100_000, 30_100, 0.3
    loglik, posterior = one(np.full(q, log(p / (1 - p))), k)
    assert_allclose(loglik, binom.logpmf(k, q, p), rtol=1e-9)
    assert_allclose(posterior, k / q, rtol=1e-9)


@pytest.mark.parametrize("q", [2, 7, 40, 300])
def test_posterior_minus_probability_is_the_gradient(q):
    rng = np.random.default_rng(q)
    eta, k = rng.standard_normal(q), q // 3
    step = 1e-4
    slope = [(one(eta + h, k)[0] - one(eta - h, k)[0]) / (2 * step) for h in step * np.eye(q)[:10]]
    gradient = one(eta, k)[1] - 1 / (1 + np.exp(-eta))
    assert_allclose(gradient[:10], slope, atol=1e-7)  # step^2 / 6 times a third derivative below 1


def test_certain_rows_are_taken_at_their_word():
    inf = np.inf
    loglik, posterior = one([inf, -inf, 0.0, 0.0], 2)
    assert loglik == pytest.approx(log(0.5))
    assert_allclose(posterior, [1, 0, 0.5, 0.5])
    assert one([inf, inf], 1)[0] == -inf
    assert one([inf, inf], 2)[0] == 0.0
    assert_allclose(log_odds(np.array([0.0, 0.5, 1.0])), [-inf, 0, inf])


def test_nearly_certain_rows_that_the_count_contradicts_are_weighed_not_dropped():
    loglik, posterior = one([700.0, 800.0, 900.0], 1)
    assert loglik == pytest.approx(-1500.0)
    assert_allclose(posterior, [np.exp(-200), np.exp(-100), 1], atol=1e-15)


def test_many_bags_in_one_call_are_the_bags_one_by_one():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, 500)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    counts = rng.integers(0, sizes + 1)
    eta = 3 * rng.standard_normal(starts[-1])
    together = count_posterior(eta, starts, counts)
    for b in range(len(sizes)):
        rows = slice(starts[b], starts[b + 1])
        loglik, posterior = one(eta[rows], counts[b])
        assert loglik == together.loglik[b]
        assert_allclose(posterior, together.labels[rows], rtol=0, atol=0)


def test_threads_give_the_same_bits(monkeypatch):
    import bagwise.stats.poisson_binomial as room

    rng = np.random.default_rng(1)
    eta, counts = rng.standard_normal(60_000), rng.integers(0, 31, 2000)
    starts = np.arange(2001) * 30
    alone = count_posterior(eta, starts, counts)
    monkeypatch.setattr(room, "n_threads", lambda work: 2)
    monkeypatch.setattr(room, "_PART_ROWS", 1000)
    both = count_posterior(eta, starts, counts)
    assert (alone.loglik == both.loglik).all() and (alone.labels == both.labels).all()


def test_parts_cover_all_bags_once_and_in_order():
    sizes = np.random.default_rng(2).integers(1, 100, 300)
    parts = bag_parts(np.append(0, np.cumsum(sizes)), 150)
    assert [b for part in parts for b in range(part.start, part.stop)] == list(range(300))
    assert all(sizes[part].sum() <= 150 for part in parts)
    assert in_threads(lambda part: part.start, parts, 2) == [part.start for part in parts]
