"""BagLogisticRegression: what it reaches, what it equals, what it refuses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.errors import IdentifiabilityWarning, InvalidInputError, NotIdentifiableError


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
