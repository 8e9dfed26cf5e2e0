"""Splitters never cut a bag, scorers score bags, and scikit-learn's tools take both."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, cross_validate

import bagwise as bw
from bagwise.errors import BagwiseWarning, InvalidInputError
from bagwise.model_selection import BagKFold, BagShuffleSplit, learning_curve, make_bag_scorer


def some_bags(n: int = 60, size: int = 5) -> bw.Bags:
    law = np.full(size + 1, 1 / (size + 1))
    oracle = bw.BagOracle(bw.LTF([1.0, -1.0, 0.5], 0.2), np.zeros(3), np.eye(3), size=size, count=law)
    return oracle.sample(n, np.random.default_rng(0))


@pytest.mark.parametrize("splitter", [BagKFold(4), BagKFold(4, stratify=False), BagShuffleSplit(3, test_size=0.3)])
def test_no_bag_is_cut_and_rows_agree_with_bags(splitter: BagKFold | BagShuffleSplit) -> None:
    bags = some_bags()
    X, y = bags.as_rows()
    shuffled = np.random.default_rng(1).permutation(len(X))
    for (train, test), (train_bags, test_bags) in zip(
        splitter.split(X[shuffled], y[shuffled]), splitter.split(bags), strict=True
    ):
        assert not set(y["bag"][shuffled][train]) & set(y["bag"][shuffled][test])
        assert len(train) + len(test) == len(X)
        assert set(y["bag"][shuffled][test]) == set(bags.ids[test_bags])
        assert len(train_bags) + len(test_bags) == bags.n_bags
    assert splitter.get_n_splits() == splitter.n_splits


def test_each_bag_is_tested_once_and_folds_are_alike() -> None:
    bags = some_bags(103)
    tests = [test for _, test in BagKFold(5).split(bags)]
    assert sorted(np.concatenate(tests)) == list(range(103))
    assert {len(test) for test in tests} <= {20, 21}
    means = [bags.proportions[test].mean() for test in tests]
    # Folds that take one of each run of five like bags differ by at most 1 / 20 of the range.
    assert max(means) - min(means) <= 0.05 + 0.06
    again = [test for _, test in BagKFold(5).split(bags)]
    assert all((a == b).all() for a, b in zip(tests, again, strict=True))


def test_groups_name_bags_where_the_target_does_not() -> None:
    groups, labels = np.repeat(["a", "b", "c", "d"], 3), np.array(["no", "yes"] * 6)
    for y in (labels, (labels == "yes").astype(int), None):
        for train, test in BagKFold(2).split(np.zeros((12, 1)), y, groups):
            assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize(
    ("splitter", "words"),
    [(BagKFold(1), "n_splits"), (BagKFold(61), r"2\.\.60"), (BagShuffleSplit(test_size=1.5), "both sides")],
)
def test_splits_that_leave_nothing_are_refused(splitter: BagKFold, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        next(iter(splitter.split(some_bags())))


def test_rows_without_bags_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="bag_target"):
        next(iter(BagKFold().split(np.zeros((4, 1)), np.zeros(4))))
    with pytest.raises(InvalidInputError, match="bag target"):
        make_bag_scorer("neg_bag_error")(bw.LTF([1.0]), np.zeros((4, 1)), np.zeros(4))
    with pytest.raises(InvalidInputError, match="neg_bag_error"):
        make_bag_scorer("accuracy")
    with pytest.raises(InvalidInputError, match="predict_proba"):
        make_bag_scorer("bag_log_likelihood")(bw.LTF([1.0, 0.0, 0.0]), some_bags())


def test_scorers_are_the_measures_they_name() -> None:
    bags = some_bags()
    X, y = bags.as_rows()
    model = bw.BagLogisticRegression(C=1.0).fit(bags)
    assert_allclose(make_bag_scorer("neg_bag_error")(model, X, y), -bw.bag_error(model, bags))
    assert_allclose(make_bag_scorer("neg_proportion_error")(model, bags), -bw.proportion_error(model, bags))
    assert_allclose(make_bag_scorer("bag_log_likelihood")(model, X, y), model.score(X, y), rtol=1e-6)
    with pytest.warns(BagwiseWarning, match="held out"):
        assessed = bw.assess(model, bags)
    assert_allclose(make_bag_scorer("assessed_accuracy")(model, X, y), assessed.accuracy.estimate)
    own = make_bag_scorer(lambda model, bags: bags.n_bags, greater_is_better=False)
    assert own(model, bags) == -60
    assert pickle.loads(pickle.dumps(make_bag_scorer("neg_bag_error"))).name == "neg_bag_error"


def test_scikit_learns_validation_takes_both() -> None:
    X, y = some_bags(80).as_rows()
    names = ["neg_bag_error", "bag_log_likelihood", "assessed_accuracy"]
    found = cross_validate(
        bw.BagLogisticRegression(C=1.0), X, y, cv=BagKFold(4), scoring={name: make_bag_scorer(name) for name in names}
    )
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in names)
    assert found["test_assessed_accuracy"].mean() > 0.9


@pytest.mark.filterwarnings("ignore::bagwise.errors.IdentifiabilityWarning")  # 48 bags for 30 features
def test_the_chosen_penalty_is_near_the_choice_by_labels() -> None:
    rng = np.random.default_rng(3)
    table = bw.datasets.load_breast_cancer().standardised()
    order = rng.permutation(569)
    train, rest = table.rows(order[:360]), table.rows(order[360:])
    X, y = train.random_bags(6, rng).as_rows()
    grid = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0]
    search = GridSearchCV(bw.BagLogisticRegression(), {"C": grid}, cv=BagKFold(5), refit=False).fit(X, y)
    right = [bw.BagLogisticRegression(C=C).fit(X, y).score(rest.X, rest.y) for C in grid]
    # One standard error of an accuracy of 0.95 on 209 rows is 0.015.
    assert right[int(search.best_index_)] >= max(right) - 0.02
    assert max(right) - min(right) > 0.02  # so that the choice matters


def test_learning_curves_rise_with_bags() -> None:
    bags = some_bags(300)
    curve = learning_curve(bw.BagLogisticRegression(C=10.0), bags, train_sizes=[10, 240], scoring="bag_log_likelihood")
    assert curve.n_bags.tolist() == [10, 240] and curve.test_scores.shape == (2, 5)
    assert curve.test_scores[1].mean() > curve.test_scores[0].mean()
    shares = learning_curve(bw.MeanMap(), *bags.as_rows(), train_sizes=[0.5, 1.0], cv=BagKFold(3))
    assert shares.n_bags.tolist() == [100, 200]
    with pytest.raises(InvalidInputError, match="train_sizes"):
        learning_curve(bw.MeanMap(), bags, train_sizes=[500])
