"""Moments -> normal: true on exact moments, weighed by noise on drawn ones, robust on poor columns, frank when lost."""

import numpy as np
import pytest
from hypothesis import assume, given
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import bagwise as bw
from bagwise.errors import NotIdentifiableError
from bagwise.learn.directions import (
    combined_direction,
    fisher_ltf,
    mean_direction,
    one_row_mean_direction,
    slope_direction,
    spectral_direction,
)
from bagwise.theory.asymptotics import combined_direction_error
from bagwise.theory.kappas import gamma
from bagwise.theory.population import population_moments
from gaussian_problems import problems


def moments(bags):
    return bw.BagMoments.from_bags(bags).finalize()


def exact(problem):
    return population_moments(problem.ltf, problem.mean, problem.cov, problem.size, problem.count)


def cosine(found, problem):
    return gamma(found, problem.ltf.normal, problem.cov)


# ---------------------------------------------------------------------- on exact moments


@given(problems())
def test_bags_of_one_key_show_the_normal_exactly(problem):
    found = spectral_direction(exact(problem))
    assert_allclose(abs(cosine(found.normal, problem)), 1, atol=1e-7)
    assert_allclose(found.ratios[:-1], 2, rtol=1e-7)
    assert_allclose(combined_direction(exact(problem)).normal, found.normal)


@given(problems(mixtures=True))
def test_bags_of_any_counts_show_the_normal_exactly(problem):
    known = exact(problem)
    assume(known.pair_weight > 1e-3 or known.count_scatter > 1e-3)
    assert_allclose(abs(cosine(combined_direction(known).normal, problem)), 1, atol=1e-6)
    if known.count_scatter > 1e-3:
        assert_allclose(cosine(slope_direction(known).normal, problem), 1, atol=1e-7)


@given(problems(threshold=0.0))
def test_the_mean_of_unbalanced_bags_shows_the_normal_of_a_standard_gaussian(problem):
    assume(2 * problem.count != problem.size)
    d = len(problem.mean)
    normal = problem.ltf.normal / np.linalg.norm(problem.ltf.normal)
    known = population_moments(bw.LTF(normal, 0.0), np.zeros(d), np.eye(d), problem.size, problem.count)
    assert_allclose(mean_direction(known), normal, atol=1e-9)


# ---------------------------------------------------------------------- on single rows: discriminant analysis


def test_single_rows_make_it_discriminant_analysis():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.standard_normal(200) > 0.4).astype(int)
    bags = bw.Bags.from_sizes(X, np.ones(200, int), y)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    expected = lda.coef_[0] / np.linalg.norm(lda.coef_[0])
    assert_allclose(combined_direction(moments(bags)).normal, expected, atol=1e-9)
    assert_allclose(slope_direction(moments(bags)).normal, expected, atol=1e-9)
    ltf = fisher_ltf(moments(bags))
    # The same up to degrees of freedom, 198 here and 200 there.
    assert_allclose(ltf.normal, lda.coef_[0] * 198 / 200, rtol=1e-9)
    middle = lda.means_.mean(axis=0)
    assert_allclose(ltf.offset, np.log(y.mean() / (1 - y.mean())) - ltf.normal @ middle, rtol=1e-9)


# ---------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "law", [binom.pmf(np.arange(11), 10, 0.7), np.full(11, 1 / 11), [0, 0, 0, 0, 0, 0, 0, 0.3, 0.4, 0.3, 0]]
)
def test_pairs_and_means_together_err_as_the_weights_promise(law):
    d, m, runs = 5, 400, 150
    law = np.asarray(law) / np.sum(law)
    oracle = bw.BagOracle(bw.LTF([1.0, 0, 0, 0, 0], -0.3), np.zeros(d), np.eye(d), size=10, count=law)
    rng = np.random.default_rng(1)
    sines, promised, alone = [], [], []
    for _ in range(runs):
        known = moments(oracle.sample(m, rng))
        found = combined_direction(known)
        sines.append(np.sin(found_angle(found.normal)) ** 2)
        promised.append(found.sine**2)
        alone.append([np.sin(found_angle(one(known).normal)) ** 2 for one in (spectral_direction, slope_direction)])
    expected = combined_direction_error(d, m, 10, law, 0.3).sin2
    # sin^2 is T chi^2_4 / 4: relative standard error sqrt(2 / 4 / 150) = 0.058; four of them and the first order's 5 %.
    assert abs(np.mean(sines) / expected - 1) < 0.28
    # Promised in the metric of a class, which along the normal is shorter by sqrt(c): equal to a factor of 1 / c <= 3.
    assert 0.5 < np.mean(promised) / np.mean(sines) < 3
    assert np.mean(sines) < 1.1 * np.min(np.mean(alone, axis=0))


def found_angle(normal):
    return np.arccos(min(1.0, abs(float(normal[0]))))


# ---------------------------------------------------------------------- poor columns


@pytest.fixture
def bags():
    cov = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, 0.3], [0.0, 0.3, 1.5]])
    oracle = bw.BagOracle(bw.LTF([1.0, -0.5, 2.0], 0.4), np.zeros(3), cov, size=6, count=4)
    return oracle.sample(300, np.random.default_rng(2))


def with_columns(bags, X):
    return bw.Bags.from_sizes(X, bags.sizes, bags.counts)


def test_constant_and_collinear_columns_change_no_score(bags):
    X = np.column_stack([bags.X, np.full(bags.n_rows, 7.25), bags.X @ [1.0, 2.0, -1.0], bags.X[:, 0]])
    plain, rich = spectral_direction(moments(bags)), spectral_direction(moments(with_columns(bags, X)))
    assert rich.rank == 3 and rich.normal[3] == 0
    scores, expected = X @ rich.normal, bags.X @ plain.normal
    assert_allclose(scores / scores.std(), expected / expected.std() * np.sign(scores @ expected), atol=1e-6)


def test_columns_of_a_million_units_change_no_score(bags):
    scale = np.array([1e6, 1.0, 1e-6])
    found = spectral_direction(moments(with_columns(bags, bags.X * scale))).normal * scale
    plain = spectral_direction(moments(bags)).normal
    found /= np.linalg.norm(found)
    assert_allclose(found * np.sign(found @ plain), plain, atol=1e-7)


def test_fewer_rows_than_features_still_give_a_direction():
    rng = np.random.default_rng(3)
    bags = bw.Bags.from_sizes(rng.standard_normal((12, 30)), [3, 4, 5], [1, 2, 3])
    found = combined_direction(moments(bags))
    # 9 dimensions within the bags, and 1 of the 3 means once a mean and a slope are fitted to them.
    assert found.rank == 10 and np.isfinite(found.normal).all()


# ---------------------------------------------------------------------- what cannot be learnt


def of_counts(sizes, counts, seed=0):
    return moments(bw.Bags.from_sizes(np.random.default_rng(seed).standard_normal((sum(sizes), 2)), sizes, counts))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spectral_direction(of_counts([2, 3], [0, 3])), r"got 2 bags of 5 rows without one"),
        (lambda: slope_direction(of_counts([2, 4], [1, 2])), r"got 0\.5 in all bags"),
        (lambda: fisher_ltf(of_counts([2, 4], [1, 2])), r"got 0\.5 in all bags"),
        (lambda: combined_direction(of_counts([2, 3], [2, 3])), r"one share of positives \(1\)"),
        (lambda: mean_direction(of_counts([2, 4], [1, 2])), r"k = q/2 in all bags"),
        (
            lambda: one_row_mean_direction(
                bw.Bags.from_sizes(np.ones((4, 1)), [2, 2], [1, 1]), np.random.default_rng(0)
            ),
            r"k = q/2 in all bags",
        ),
        (
            lambda: mean_direction(moments(bw.Bags.from_sizes(np.zeros((4, 2)), [2, 2], [2, 2]))),
            "all features are constant",
        ),
    ],
)
def test_what_shows_no_direction_is_refused(call, message):
    with pytest.raises(NotIdentifiableError, match=message):
        call()


def test_bags_of_one_class_and_single_rows_add_what_they_know():
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.3), np.zeros(2), np.eye(2), size=5, count=3)
    rng = np.random.default_rng(4)
    X, y = oracle.sample_instances(2000, rng)
    single = bw.Bags.from_sizes(X, np.ones(len(X), int), y, ids=np.arange(10_000, 12_000))
    mixed = oracle.sample(30, rng)
    errors = [
        np.sin(combined_direction(moments(part)).normal @ np.array([-2.0, 1.0]) / np.sqrt(5)) ** 2
        for part in (mixed, bw.Bags.concat([mixed, single]))
    ]
    assert errors[1] < errors[0] / 3 and errors[1] < 0.01
    pure = bw.Bags.from_sizes(np.vstack([X[y == 1][:400], X[y == 0][:400]]), [2] * 400, [2] * 200 + [0] * 200)
    assert abs(combined_direction(moments(pure)).normal @ [1.0, 2.0]) / np.sqrt(5) > 0.99
