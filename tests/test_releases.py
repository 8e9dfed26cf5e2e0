"""Totals released with noise: the sum over true counts against brute force, how they travel, what rounding costs."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import dlaplace, laplace, norm
from sklearn.model_selection import GroupKFold, cross_val_score

import bagwise as bw
from bagwise.errors import FitWarning, IdentifiabilityWarning, InvalidInputError
from bagwise.learn.likelihood import CountModel, LikelihoodTask
from bagwise.releases import LAWS
from bagwise.stats.poisson_binomial import bag_posterior, count_posterior

NOISES = [bw.CountNoise("laplace", 1.5), bw.CountNoise("discrete-laplace", 0.7), bw.CountNoise("gaussian", 2.0)]


def density(noise: bw.CountNoise, x: float) -> float:
    law = {"laplace": laplace(scale=noise.scale), "gaussian": norm(scale=noise.scale)}
    return dlaplace(1 / noise.scale).pmf(round(x)) if noise.law == "discrete-laplace" else law[noise.law].pdf(x)


def by_enumeration(P: np.ndarray, value: float, noise: bw.CountNoise) -> tuple[float, np.ndarray]:
    """Likelihood of a released value, and posterior of the rows, over all labellings."""
    total, labels = 0.0, np.zeros(len(P))
    for y in itertools.product((0, 1), repeat=len(P)):
        weight = np.prod(np.where(y, P, 1 - P)) * density(noise, value - sum(y))
        total += weight
        labels += weight * np.array(y)
    return total, labels / total


def bags_of(log_odds: np.ndarray, value: float, noise: bw.CountNoise) -> bw.Bags:
    return bw.Bags.from_sizes(log_odds[:, None], [len(log_odds)], [value], noise=noise)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.law)
@given(
    log_odds=st.lists(st.floats(-6, 6), min_size=1, max_size=7),
    value=st.integers(-9, 15),
    part=st.sampled_from([0.0, 0.25, 0.8]),
)
def test_the_likelihood_is_the_sum_over_all_labellings(noise, log_odds, value, part) -> None:
    eta = np.array(log_odds)
    value = value + (0.0 if noise.law == "discrete-laplace" else part)
    total, labels = by_enumeration(expit(eta), value, noise)
    found = bag_posterior(eta, bags_of(eta, value, noise))
    assert_allclose(found.loglik, np.log(total), rtol=1e-9, atol=1e-9)
    assert_allclose(found.labels, labels, atol=1e-10)


@pytest.mark.parametrize("size", [30, 400])
def test_little_noise_is_none_and_much_noise_says_nothing(size: int) -> None:
    rng = np.random.default_rng(size)
    eta = 3 * rng.standard_normal(size)
    count = int(expit(eta).sum()) + 2
    exact = count_posterior(eta, np.array([0, size]), np.array([count]))
    quiet = bag_posterior(eta, bags_of(eta, float(count), bw.CountNoise("gaussian", 0.02)))
    assert_allclose(quiet.labels, exact.labels, atol=1e-10)
    assert_allclose(quiet.loglik - norm(scale=0.02).logpdf(0), exact.loglik, atol=1e-9)
    loud = bag_posterior(eta, bags_of(eta, float(count), bw.CountNoise("laplace", 1e7)))
    assert_allclose(loud.labels, expit(eta), atol=1e-5)


def test_values_far_from_all_that_is_likely_stay_exact() -> None:
    # 300 rows that are nearly surely negative, and 250 reported: the probability is about exp(-1500).
    eta = np.linspace(-7, -5, 300)
    found = bag_posterior(eta, bags_of(eta, 250.0, bw.CountNoise("gaussian", 1.0)))
    by_count = [count_posterior(eta, np.array([0, 300]), np.array([k])) for k in range(180, 260)]
    terms = np.array([one.loglik[0] + norm.logpdf(250.0 - k) for k, one in zip(range(180, 260), by_count, strict=True)])
    weights = np.exp(terms - terms.max())
    assert_allclose(found.loglik, terms.max() + np.log(weights.sum()), rtol=1e-10)
    labels = sum(w * one.labels for w, one in zip(weights / weights.sum(), by_count, strict=True))
    assert_allclose(found.labels, labels, atol=1e-8)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.law)
@pytest.mark.parametrize("levels", [(0.0, 1.0), (0.1, 0.8)])
def test_gradients_are_slopes_and_sums_add_up(noise: bw.CountNoise, levels: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    counts = np.round(noise.add(rng.integers(0, 6, 12), rng))
    bags = bw.Bags.from_sizes(X, [5] * 12, counts, noise=noise)
    at = np.array([0.7, -1.1, 0.3, *levels])

    def sums(z: np.ndarray, which: bw.Bags = bags):
        return LikelihoodTask(CountModel(z[:2], z[2], z[3], z[4]), np.zeros(2), curvature=True, scores=True)(which)

    found = sums(at)
    for j in range(3 if levels == (0.0, 1.0) else 5):
        step = 1e-5 * np.eye(5)[j]
        slope = (sums(at + step).loglik - sums(at - step).loglik) / 2e-5
        assert_allclose(found.gradient[j], slope, rtol=1e-6, atol=1e-6)
    both = sums(at, bags[:5]) + sums(at, bags[5:])
    for name in ("loglik", "gradient", "hessian", "outer", "expected", "variance", "excess", "noise"):
        assert_allclose(getattr(found, name), getattr(both, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.law)
def test_noise_has_the_law_and_variance_it_states(noise: bw.CountNoise) -> None:
    added = noise.add(np.zeros(40_000), np.random.default_rng(1))
    variance = bw.Bags.from_sizes(np.zeros((1, 1)), [1], [0], noise=noise).release.variances[0]
    # The variance of a Laplace sample has a relative standard error of sqrt(5 / n) = 0.011, that of the others less.
    assert abs(added.var() / variance - 1) < 0.05 and abs(added.mean()) < 4 * np.sqrt(variance / 40_000)
    if noise.law == "discrete-laplace":
        assert_allclose(np.mean(added == 0), dlaplace(1 / noise.scale).pmf(0), atol=0.01)


# ---------------------------------------------------------------------- how they travel


@pytest.fixture
def ads() -> tuple[bw.Bags, np.ndarray]:
    """Bags of 20 with noisy totals, and their true labels."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300 * 20, 3))
    labels = (X @ [1.0, -2.0, 0.5] + rng.logistic(size=len(X)) / 3 > 0.6).astype(int)
    noise = bw.CountNoise("laplace", 2.0)
    counts = labels.reshape(300, 20).sum(axis=1)
    return bw.Bags.from_sizes(X, [20] * 300, noise.add(counts, rng), noise=noise), labels


def test_releases_travel_through_every_door(ads: tuple[bw.Bags, np.ndarray]) -> None:
    bags, _ = ads
    X, y = bags.as_rows()
    again = bw.Bags.from_target(X, y)
    assert_array_equal(again.release.values, bags.release.values)
    assert_array_equal(bags[[7, 3]].release.values, bags.release.values[[7, 3]])
    target = bw.bag_target(y["bag"], counts=dict(enumerate(bags.release.values)), noise=bw.CountNoise("laplace", 2.0))
    assert_array_equal(target, y)
    assert_array_equal(pickle.loads(pickle.dumps(bags)).release.values, bags.release.values)
    exact = bw.Bags.from_sizes([[0.0, 0.0, 0.0]], [1], [1], ids=["x"])
    mixed = bw.Bags.concat([bags, exact])
    assert mixed.release.laws[-1] == LAWS.index("none") and mixed.release.values[-1] == 1
    assert bw.Bags.concat([exact]).release is None


def test_exact_bags_beside_released_ones_keep_their_likelihood(ads: tuple[bw.Bags, np.ndarray]) -> None:
    bags, labels = ads
    exact = bw.Bags.from_sizes(
        bags.X, bags.sizes, labels.reshape(300, 20).sum(axis=1), ids=[f"e{i}" for i in range(300)]
    )
    eta = bags.X @ [1.0, -2.0, 0.5]
    both = bag_posterior(np.tile(eta, 2), bw.Bags.concat([bags, exact]))
    assert_allclose(both.loglik[300:], count_posterior(eta, exact.starts, exact.counts).loglik, rtol=1e-9)
    assert_allclose(both.labels[6000:], count_posterior(eta, exact.starts, exact.counts).labels, atol=1e-9)


def test_learners_that_read_releases_beat_rounding(ads: tuple[bw.Bags, np.ndarray]) -> None:
    bags, labels = ads
    rounded = bw.Bags.from_sizes(bags.X, bags.sizes, bags.counts)
    cosine = lambda model: model.coef_[0] @ [1.0, -2.0, 0.5] / np.linalg.norm(model.coef_) / np.sqrt(5.25)
    ours = bw.BagLogisticRegression(C=10.0, random_state=0).fit(bags)
    with pytest.warns(IdentifiabilityWarning, match="over-dispersed"):  # what the noise is, if taken for exact
        naive = bw.BagLogisticRegression(C=10.0, random_state=0).fit(rounded)
    assert cosine(ours) > 0.97 and cosine(ours) > cosine(naive)
    share = lambda model: np.mean(model.predict(bags.X) == labels)
    assert share(ours) > share(naive)
    assert ours.score(bags) > bw.BagLogisticRegression(C=1e-4, random_state=0).fit(bags).score(bags)


def test_label_noise_and_count_noise_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600 * 8, 2))
    clean = X @ [2.0, 1.0] > 0.5
    reported = np.where(rng.random(len(X)) < 0.15, ~clean, clean)
    noise = bw.CountNoise("gaussian", 0.7)
    totals = noise.add(reported.reshape(600, 8).sum(axis=1), rng)
    bags = bw.Bags.from_sizes(X, [8] * 600, totals, noise=noise)
    model = bw.BagLogisticRegression(label_noise="estimate", random_state=0).fit(bags)
    # 4,800 flips leave a level with a standard error of at least sqrt(0.15 * 0.85 / 2400) = 0.007; bags hide most.
    assert_allclose(model.levels_, [0.15, 0.85], atol=0.08)
    assert np.mean(model.predict(X) == clean) > 0.96


@pytest.mark.filterwarnings("ignore:the posterior labels had to settle")  # four rounds are for speed
def test_searches_and_trees_take_releases(ads: tuple[bw.Bags, np.ndarray]) -> None:
    from sklearn.tree import DecisionTreeClassifier

    bags, labels = ads
    X, y = bags.as_rows()
    scores = cross_val_score(bw.BagLogisticRegression(C=1.0), X, y, cv=GroupKFold(3), groups=y["bag"])
    assert np.isfinite(scores).all()
    tree = bw.BagClassifier(DecisionTreeClassifier(min_samples_leaf=100), cv=2, max_rounds=4, random_state=0).fit(bags)
    assert np.mean(tree.predict(X) == labels) > 0.75  # 0.5 and better is what a coin and the majority have


# ---------------------------------------------------------------------- refusals


def test_who_takes_totals_for_exact_says_so_or_refuses(ads: tuple[bw.Bags, np.ndarray], tmp_path) -> None:
    bags, _ = ads
    with pytest.warns(FitWarning, match="MeanMap takes totals for exact"):
        model = bw.MeanMap().fit(bags)
    for attempt in (
        lambda: bw.bag_error(model, bags),
        lambda: bw.certify(model, bags),
        lambda: bw.assess(model, bags),
        lambda: bw.write_bags(bags, tmp_path / "bags.csv"),
    ):
        with pytest.raises(InvalidInputError, match="needs exact totals; these were released with noise"):
            attempt()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: bw.CountNoise("cauchy", 1.0),
            "law must be one of 'laplace', 'discrete-laplace', 'gaussian'; got 'cau",
        ),
        (lambda: bw.CountNoise("laplace", 0), "scale must be a positive number; got 0"),
        (lambda: bags_of(np.zeros(2), np.nan, NOISES[0]), "released counts must be finite; got nan in bag 0"),
        (lambda: bags_of(np.zeros(2), 0.5, NOISES[1]), "totals with discrete noise must be integers; got 0.5"),
        (
            lambda: bw.Bags.from_arrays([[0.0]], [1], proportions=[1.0], noise=NOISES[0]),
            "noise= goes with counts=; got proportions",
        ),
        (lambda: bw.Bags.from_sizes([[0.0]], [1], [0.5]), "counts must be integers"),
    ],
)
def test_refusals_say_what_must_hold(make, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make()
