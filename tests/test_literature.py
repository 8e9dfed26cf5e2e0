"""The methods of the literature: each against its definition, and against what it becomes in a special case."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import bagwise as bw
from bagwise.errors import FitWarning, IdentifiabilityWarning, NotIdentifiableError
from bagwise.learn.alternating import alternate, top_labels
from bagwise.learn.bag_loss import bag_loss_logistic
from bagwise.learn.debiased import debiased_targets
from bagwise.learn.soft_labels import soft_logistic


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * [1, 5, 0.2, 1] + [0, 3, 0, -1]
    y = (X @ [1.0, -0.2, 2.0, 0.0] + rng.logistic(size=300) > 0.3).astype(float)
    return X, y


@pytest.fixture
def random_bags():
    law = np.array([1, 4, 6, 4, 1]) / 16
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0, 0.0], 0.0), np.zeros(3), np.eye(3), size=4, count=law)
    return oracle.sample(400, np.random.default_rng(1))


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_on_labels_the_soft_problem_is_logistic_regression(rows, C, fit_intercept):
    X, y = rows
    ours = soft_logistic(X, y, C, fit_intercept=fit_intercept)
    theirs = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    assert ours.converged
    assert_allclose(ours.coef, theirs.coef_[0], rtol=1e-4, atol=1e-6)
    assert_allclose(ours.intercept, theirs.intercept_[0] if fit_intercept else 0.0, rtol=1e-4, atol=1e-6)


def test_targets_beyond_labels_still_have_a_stationary_minimum(rows):
    X, y = rows
    targets = 1.4 * y - 0.2
    found = soft_logistic(X, targets, 10.0, fit_intercept=True)
    pull = expit(X @ found.coef + found.intercept) - targets
    # The stop rule is on the decrease: half the squared gradient in the metric of the Hessian, relative to the value.
    assert_allclose(X.T @ pull + found.coef / 10.0, 0, atol=1e-3)
    assert abs(pull.sum()) < 1e-3


def test_separable_rows_end_finite():
    X = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    found = soft_logistic(X, np.array([0.0, 0, 1, 1]), 1e6, fit_intercept=True)
    assert np.isfinite(found.coef).all() and found.coef[0] > 1


def test_debiased_targets_are_unbiased_over_all_ways_to_fill_a_bag():
    # A row with label y shares its bag with q - 1 rows of prevalence pi: the mean target must be y.
    q, n, positives = 4, 12, 5
    labels = np.repeat([1, 0], [positives, n - positives])
    pi = positives / n
    for y in (0, 1):
        others = np.delete(labels, np.flatnonzero(labels == y)[0])
        # Rows of other bags are drawn with replacement in the paper: average over independent labels.
        law = [(pi if label else 1 - pi) for label in (0, 1)]
        expected = sum(
            np.prod([law[label] for label in rest]) * ((y + sum(rest)) - (q - 1) * pi)
            for rest in itertools.product((0, 1), repeat=q - 1)
        )
        assert_allclose(expected, y, atol=1e-12)
        assert len(others) == n - 1
    bags = bw.Bags.from_sizes(np.zeros((8, 1)), [4, 4], [3, 1])
    assert_allclose(debiased_targets(bags), np.repeat([3 - 3 * 0.5, 1 - 3 * 0.5], 4))


def test_top_labels_are_the_cheapest_with_the_totals():
    rng = np.random.default_rng(2)
    bags = bw.Bags.from_sizes(np.zeros((9, 1)), [2, 4, 3], [1, 2, 0])
    scores = rng.standard_normal(9)
    chosen = top_labels(scores, bags)
    assert np.add.reduceat(chosen, bags.starts[:-1]).tolist() == bags.counts.tolist()

    def loss(labels):
        return (np.logaddexp(0, scores) - labels * scores).sum()

    by_bag = [
        [np.isin(np.arange(q), positive) for positive in itertools.combinations(range(q), k)]
        for q, k in zip(bags.sizes, bags.counts, strict=True)
    ]
    best = min(loss(np.concatenate(labels).astype(float)) for labels in itertools.product(*by_bag))
    assert_allclose(loss(chosen), best)


def test_the_alternation_descends_to_labels_that_repeat(random_bags):
    found = alternate(random_bags, np.array([1.0, 0.0, 1.0]), 10.0, fit_intercept=True, max_rounds=100)
    assert found.settled
    labels = top_labels(random_bags.X @ found.fit.coef, random_bags)
    again = soft_logistic(random_bags.X, labels, 10.0, fit_intercept=True)
    assert_allclose(again.coef, found.fit.coef, rtol=1e-3)


@pytest.mark.parametrize("size_one", [bw.AlternatingMeanMap, bw.EasyLLP, bw.BagLossRegression])
def test_single_rows_make_each_of_them_logistic_regression(rows, size_one):
    X, y = rows
    ours = size_one(C=2.0).fit(X, y)
    theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=2e-3, atol=2e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=2e-3, atol=2e-3)


def test_bag_loss_has_the_gradient_of_its_definition(random_bags):
    found = bag_loss_logistic(random_bags, 5.0, fit_intercept=True, max_steps=2000)

    def loss(z):
        s = random_bags.X @ z[:3] + z[3]
        m = np.add.reduceat(1 / (1 + np.exp(-s)), random_bags.starts[:-1]) / random_bags.sizes
        p = random_bags.proportions
        return -(p * np.log(m) + (1 - p) * np.log(1 - m)).sum() + z[:3] @ z[:3] / 10.0

    at = np.append(found.coef, found.intercept)
    assert_allclose(loss(at), found.objective, rtol=1e-10)
    for j in range(4):
        step = np.zeros(4)
        step[j] = 1e-4
        slope = (loss(at + step) - loss(at - step)) / 2e-4
        assert abs(slope) < 1e-2  # rounding of the difference alone is 1e-16 * 300 / 1e-4


@pytest.mark.parametrize("learner", [bw.EasyLLP(), bw.BagLossRegression()])
def test_one_proportion_teaches_nothing_and_is_refused(learner):
    bags = bw.Bags.from_sizes(np.arange(8.0).reshape(8, 1), [2, 2, 2, 2], [1, 1, 1, 1])
    with pytest.raises(NotIdentifiableError, match=r"got (proportion )?0\.5 in all bags"):
        learner.fit(bags)


def test_alternation_works_where_all_bags_share_one_proportion():
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0, 0.0], 0.7), np.zeros(3), np.eye(3), size=10, count=7)
    model = bw.AlternatingMeanMap(C=100.0).fit(oracle.sample(400, np.random.default_rng(5)))
    assert bw.instance_error(model.ltf_, oracle.ltf, oracle.mean, oracle.cov) < 0.02


def test_balanced_bags_and_hasty_ends_are_said(random_bags):
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0], 0.0), np.zeros(2), np.eye(2), size=4, count=2)
    with pytest.warns(IdentifiabilityWarning, match="balanced"):
        assert bw.AlternatingMeanMap().fit(oracle.sample(100, np.random.default_rng(0))).ambiguous_
    with pytest.warns(FitWarning, match="max_iter=1 steps"):
        bw.BagLossRegression(max_iter=1).fit(random_bags)
    with pytest.raises(ValueError, match="C of EasyLLP must be a positive number; got 0"):
        bw.EasyLLP(C=0).fit(random_bags)
