"""The bag oracle draws from the law that it states, and its bag error is the closed form: by simulation.

Each check fails a correct implementation with the false-alarm rate written beside it, under fixed seeds.
"""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, chi2, kstest, norm

import bagwise as bw
from bagwise.ltf import error_rates

# z for |estimate - truth| / standard error: a false alarm of 6e-7 per comparison, 1e-3 over all of this file.
Z = 5.0
RARE = 1e-6  # the same as a p-value

LTF = bw.LTF([1.0, -2.0, 0.5], 0.3)
MEAN = np.array([0.5, 0.0, -1.0])
COV = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.5]])
SD = float(np.sqrt(LTF.normal @ COV @ LTF.normal))
GUESS = bw.LTF([1.0, -1.4, 0.8], 0.1)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def at_threshold(l: float, size: int, count, **kwargs) -> bw.BagOracle:
    return bw.BagOracle(bw.LTF(LTF.normal, -LTF.normal @ MEAN - l * SD), MEAN, COV, size, count, **kwargs)


def assert_counts_follow(observed: np.ndarray, probabilities: np.ndarray) -> None:
    """Pearson's chi-square of observed values 0..q against their probabilities; rare values are pooled."""
    expected = probabilities * observed.size
    seen = np.bincount(observed, minlength=len(expected))
    assert seen[expected == 0].sum() == 0
    common = expected >= 10
    seen_pooled = np.append(seen[common], seen[~common].sum())
    expected_pooled = np.append(expected[common], expected[~common].sum())
    keep = expected_pooled > 0
    statistic = np.sum((seen_pooled[keep] - expected_pooled[keep]) ** 2 / expected_pooled[keep])
    assert chi2.sf(statistic, max(1, keep.sum() - 1)) > RARE


# ---------------------------------------------------------------------- Ex(f, N(mean, cov), q, k)


@pytest.mark.parametrize("l", [-3.0, 0.0, 1.0, 8.0, 24.0, 30.0])
def test_scores_are_truncated_normals(l: float) -> None:
    source = at_threshold(l, size=4, count=2)
    bags, labels = source.sample_labelled(5000, rng())
    u = (bags.X - MEAN) @ LTF.normal / SD
    log_tail, log_rest = norm.logsf(l), norm.logcdf(l)
    # Both transforms are uniform on (0, 1) by the probability integral; p-values below RARE are false alarms.
    assert kstest(np.exp(norm.logsf(u[labels == 1]) - log_tail), "uniform").pvalue > RARE
    assert kstest(np.exp(norm.logcdf(u[labels == 0]) - log_rest), "uniform").pvalue > RARE


@pytest.mark.parametrize("l", [0.0, 1.0, -2.0])
def test_rows_of_each_class_have_the_moments_of_a_truncated_gaussian(l: float) -> None:
    source = at_threshold(l, size=5, count=2)
    bags, labels = source.sample_labelled(40_000, rng())
    g = COV @ LTF.normal / SD
    for label, sign in ((1, 1.0), (0, -1.0)):
        X = bags.X[labels == label]
        hazard = norm.pdf(l) / norm.cdf(-sign * l)
        mean = MEAN + sign * hazard * g
        shrink = hazard * (hazard - sign * l)  # 1 - Var[u | side]
        cov = COV - shrink * np.outer(g, g)
        centred = X - mean
        assert (np.abs(centred.mean(axis=0)) < Z * np.sqrt(np.diag(cov) / len(X))).all()
        products = centred[:, :, None] * centred[:, None, :]
        assert (np.abs(products.mean(axis=0) - cov) < Z * products.std(axis=0) / np.sqrt(len(X))).all()


def test_rows_of_a_bag_are_independent_given_their_labels() -> None:
    source = at_threshold(0.5, size=2, count=2)
    bags = source.sample(50_000, rng())
    pairs = bags.X.reshape(-1, 2, 3)
    centred = pairs - bags.X.mean(axis=0)
    products = centred[:, 0, :, None] * centred[:, 1, None, :]
    assert (np.abs(products.mean(axis=0)) < Z * products.std(axis=0) / np.sqrt(len(products))).all()


def test_each_set_of_places_is_equally_likely_for_the_positives() -> None:
    m = 60_000
    _, labels = at_threshold(1.0, size=5, count=2).sample_labelled(m, rng())
    codes = labels.reshape(m, 5) @ (2 ** np.arange(5))
    two_of_five = np.array([bin(code).count("1") == 2 for code in range(32)])
    assert_counts_follow(codes, two_of_five / 10)


def test_a_mixture_draws_its_counts_from_the_given_probabilities() -> None:
    law = np.array([0.05, 0.0, 0.5, 0.15, 0.3])
    bags = at_threshold(1.0, size=4, count=law).sample(50_000, rng())
    assert_counts_follow(bags.counts, law)


def test_the_mixture_over_a_binomial_is_the_population() -> None:
    # Random bags of the population have k ~ Bin(q, prevalence): the oracle then returns N(mean, cov) itself.
    l = 0.7
    source = at_threshold(l, size=3, count=binom.pmf(np.arange(4), 3, ndtr(-l)))
    X = source.sample(40_000, rng()).X
    assert (np.abs(X.mean(axis=0) - MEAN) < Z * np.sqrt(np.diag(COV) / len(X))).all()
    for j in range(3):
        assert kstest((X[:, j] - MEAN[j]) / np.sqrt(COV[j, j]), "norm").pvalue > RARE


def test_instances_are_the_population() -> None:
    source = at_threshold(1.0, size=3, count=2)
    X, y = source.sample_instances(100_000, rng())
    assert abs(y.mean() - source.prevalence) < Z * np.sqrt(source.prevalence * (1 - source.prevalence) / len(y))
    centred = X - MEAN
    assert (np.abs(centred.mean(axis=0)) < Z * np.sqrt(np.diag(COV) / len(X))).all()
    products = centred[:, :, None] * centred[:, None, :]
    assert (np.abs(products.mean(axis=0) - COV) < Z * products.std(axis=0) / np.sqrt(len(X))).all()


# ---------------------------------------------------------------------- flips


@pytest.mark.parametrize("l", [0.0, 1.0])
def test_reported_counts_are_those_of_rejecting_bags_with_another_reported_count(l: float) -> None:
    # The definition itself: label rows of N(mean, cov), flip, keep the bags with exactly k reported positives.
    q, k, flip = 4, 3, 0.2
    source = at_threshold(l, size=q, count=k, flip=flip)
    true_0, true_1 = source.true_given_reported
    draws = rng(1)
    X, y = source.sample_instances(400_000 * q, draws)
    truth = y.reshape(-1, q)
    reported = truth ^ (draws.random(truth.shape) < flip)
    kept = reported.sum(axis=1) == k
    law = np.convolve(binom.pmf(np.arange(k + 1), k, true_1), binom.pmf(np.arange(q - k + 1), q - k, true_0))
    assert_counts_follow(truth[kept].sum(axis=1), law)
    bags, labels = source.sample_labelled(20_000, rng(2))
    assert (bags.counts == k).all()
    assert_counts_follow(labels.reshape(-1, q).sum(axis=1), law)
    # The rows themselves, too: means of all rows of the bags kept and of the oracle's own.
    by_rejection, own = X.reshape(-1, q, 3)[kept].reshape(-1, 3), bags.X
    error = np.sqrt(by_rejection.var(axis=0) / len(by_rejection) + own.var(axis=0) / len(own))
    assert (np.abs(by_rejection.mean(axis=0) - own.mean(axis=0)) < Z * error).all()


@pytest.mark.parametrize("count_is", ["reported", "true"])
@pytest.mark.parametrize(("l", "q", "k", "flip"), [(0.0, 10, 8, 0.1), (1.0, 10, 8, 0.1), (-0.5, 3, 1, 0.3)])
def test_levels_are_the_shares_of_reported_positives_in_each_class(count_is, l, q, k, flip) -> None:
    m = 60_000
    source = at_threshold(l, size=q, count=k, flip=flip, count_is=count_is)
    bags, labels = source.sample_labelled(m, rng())
    per_bag = labels.reshape(m, q).sum(axis=1)
    low, high = source.levels
    # E[reported] = low E[true 0] + high E[true 1], whichever of the two numbers is fixed.
    residual = bags.counts - low * (q - per_bag) - high * per_bag
    assert abs(residual.mean()) < Z * residual.std() / np.sqrt(m)
    if count_is == "true":
        law = np.convolve(binom.pmf(np.arange(k + 1), k, 1 - flip), binom.pmf(np.arange(q - k + 1), q - k, flip))
        assert_counts_follow(bags.counts, law)
    else:
        true_0, true_1 = source.true_given_reported
        expected = k * true_1 + (q - k) * true_0
        assert abs(per_bag.mean() - expected) < Z * per_bag.std() / np.sqrt(m)
        assert high == pytest.approx(k * true_1 / expected, rel=1e-12)


# ---------------------------------------------------------------------- errors of one LTF against another


@pytest.mark.parametrize("l", [0.0, 1.0, -1.5])
def test_exact_error_rates_are_those_of_a_simulation(l: float) -> None:
    source = at_threshold(l, size=2, count=1)
    guess = bw.LTF(GUESS.normal, source.ltf.offset + 0.4)
    X, y = source.sample_instances(400_000, rng())
    wrong = guess.predict(X) != y
    missed, false = error_rates(guess, source.ltf, MEAN, COV)
    exact = bw.instance_error(guess, source.ltf, MEAN, COV)
    for simulated, p in ((wrong[y == 1], missed), (wrong[y == 0], false), (wrong, exact)):
        assert abs(simulated.mean() - p) < Z * np.sqrt(p * (1 - p) / simulated.size)


@pytest.mark.parametrize("count", [3, 0, [0.1, 0.2, 0.0, 0.3, 0.2, 0.2]])
@pytest.mark.parametrize(("flip", "count_is"), [(0.0, "true"), (0.15, "reported"), (0.15, "true"), (1.0, "true")])
def test_the_bag_error_under_an_oracle_is_that_of_its_bags(count, flip: float, count_is) -> None:
    m = 60_000
    source = at_threshold(0.4, size=5, count=count, flip=flip, count_is=count_is)
    guess = bw.LTF(GUESS.normal, source.ltf.offset + 0.4)
    exact = bw.oracle_bag_error(guess, source)
    simulated = bw.bag_error(guess, source.sample(m, rng()))
    assert 0.05 < exact <= 1
    assert abs(simulated - exact) <= Z * np.sqrt(exact * (1 - exact) / m) + 1e-12
