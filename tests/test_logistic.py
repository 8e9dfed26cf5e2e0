"""BagLogisticRegression: what it reaches, what it equals, what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.errors import IdentifiabilityWarning, InvalidInputError, NotIdentifiableError
from bagwise.learn.likelihood import CountModel, LikelihoodTask


def drawn(d, q, k, m, seed=0, **more):
    rng = np.random.default_rng(seed)
    oracle = random_oracle(d, size=q, count=k, rng=rng, **more)
    bags, labels = oracle.sample_labelled(m, rng)
    return oracle, bags, labels


def error(model, oracle):
    return bw.instance_error(model.ltf_, oracle.ltf, oracle.mean, oracle.cov)


@pytest.mark.parametrize(("d", "q", "k", "m"), [(10, 10, 8, 500), (10, 3, 1, 1000), (20, 50, 35, 400)])
def test_totals_learn_as_well_as_labels(d, q, k, m):
    oracle, bags, labels = drawn(d, q, k, m, random_mean=True, offset=0.3)
    model = bw.BagLogisticRegression(C=1000.0).fit(bags)
    told = LogisticRegression(C=1000.0, max_iter=1000).fit(bags.X, labels)
    ltf = bw.LTF(told.coef_[0], told.intercept_[0])
    # Either error varies by about a third of itself from data set to data set; they share the data.
    assert error(model, oracle) < 2 * bw.instance_error(ltf, oracle.ltf, oracle.mean, oracle.cov) < 0.02
    assert model.converged_


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_single_rows_are_logistic_regression(C, fit_intercept):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 1]
    y = (X @ [1.0, -0.2, 2.0, 0.0] + rng.logistic(size=300) > 0.3).astype(int)
    ours = bw.BagLogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-8).fit(X, y)
    theirs = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, rtol=2e-4, atol=2e-4)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=2e-4, atol=2e-4)


def test_levels_absorb_flipped_labels():
    oracle, bags, _ = drawn(10, 10, 8, 2000, flip=0.1)
    model = bw.BagLogisticRegression(C=100.0, label_noise="estimate").fit(bags)
    # Reported k fixed: 0.8 * 0.1 / (0.8 * 0.1 + 0.2 * 0.9) and 0.8 * 0.9 / (0.8 * 0.9 + 0.2 * 0.1)
    assert_allclose(model.levels_, [0.308, 0.973], atol=0.03)
    assert error(model, oracle) < 0.01


def test_probabilities_shift_with_the_prevalence():
    _, bags, _ = drawn(3, 10, 8, 300)
    model = bw.BagLogisticRegression(C=1.0).fit(bags)
    assert_allclose(model.prevalence_, 0.8, atol=1e-3)  # the intercept's score equation
    assert_allclose(model.predict_proba(bags), model.predict_proba(bags, prevalence=model.prevalence_))
    odds = [np.divide(*model.predict_proba(bags.X, prevalence=p).T) for p in (0.5, 0.2)]
    assert_allclose(odds[1] / odds[0], 4.0, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="prevalence must lie strictly"):
        model.predict_proba(bags, prevalence=1.0)


def test_balanced_bags_leave_the_sign_open():
    _, bags, _ = drawn(3, 4, 2, 300)
    with pytest.warns(IdentifiabilityWarning, match="balanced"):
        assert bw.BagLogisticRegression(C=1.0).fit(bags).ambiguous_


def test_bags_of_one_class_are_refused():
    bags = bw.Bags.from_sizes(np.arange(6.0).reshape(-1, 1), [3, 3], [3, 3])
    with pytest.raises(NotIdentifiableError, match="all rows are of one class"):
        bw.BagLogisticRegression().fit(bags)


@pytest.mark.parametrize(("setting", "value"), [("C", -1.0), ("C", "best"), ("label_noise", 0.6), ("label_noise", "x")])
def test_settings_are_checked(setting, value):
    _, bags, _ = drawn(3, 4, 1, 30)
    with pytest.raises(InvalidInputError, match=setting):
        bw.BagLogisticRegression(**{setting: value}).fit(bags)


def test_a_weight_is_a_repetition_and_no_weight_is_absence():
    _, bags, _ = drawn(4, 6, 2, 200, offset=0.2)
    weights = np.random.default_rng(0).integers(0, 4, 200)
    repeated = bw.Bags.from_sizes(
        np.concatenate([bags[i].X for i in np.repeat(np.arange(200), weights)]),
        np.full(weights.sum(), 6),
        np.repeat(bags.counts, weights),
    )
    model = bw.BagLogisticRegression(C=1.0, tol=1e-10)
    weighted = model.fit(bags, sample_weight=weights).coef_
    assert_allclose(weighted, model.fit(repeated).coef_, rtol=1e-4)
    X, y = bags.as_rows()
    by_rows = model.fit(X, y, sample_weight=np.repeat(weights, 6)).coef_
    assert_allclose(by_rows, weighted, rtol=1e-6)
    with pytest.raises(InvalidInputError, match="same in all rows of a bag"):
        model.fit(X, y, sample_weight=np.arange(1200))
    with pytest.raises(InvalidInputError, match="one number of at least 0 per bag, 200"):
        model.fit(bags, sample_weight=-weights)


def test_the_hessian_is_the_slope_of_the_gradient():
    rng = np.random.default_rng(5)
    for q, k, slope, low, high in [(4, 2, 1, 0, 1), (10, 8, 3, 0, 1), (10, 8, 3, 0.1, 0.9), (60, 20, 5, 0.05, 0.97)]:
        bags = bw.Bags.from_sizes(rng.standard_normal((20 * q, 3)), np.full(20, q), np.full(20, k))
        theta = np.concatenate([slope * rng.standard_normal(3), [0.3, low, high]])

        def sums(at, curvature=False, bags=bags):
            model = CountModel(at[:3], at[3], at[4], at[5])
            return bags.reduce(LikelihoodTask(model, np.zeros(3), curvature))

        H = sums(theta, True).hessian
        free = 6 if low else 4
        step = 1e-5
        slopes = [(sums(theta + e).gradient - sums(theta - e).gradient) / (2 * step) for e in step * np.eye(6)[:free]]
        # step^2 / 6 times a third derivative of the size of the Hessian times slope^2
        assert_allclose(H[:free, :free], np.array(slopes)[:, :free], atol=1e-6 * np.abs(H).max())
