"""The manners of scikit-learn: its own checks of every estimator, and bags in its pipelines, searches and splitters.

Every learner that is exported takes part without being named here.
"""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import bagwise as bw
from bagwise.errors import InvalidInputError

LEARNERS = {name: getattr(bw, name) for name, home in bw._HOME.items() if home.startswith("estimators.")}


def quick_trees() -> Any:
    """The meta-estimator around something fast."""
    tree = DecisionTreeClassifier(min_samples_leaf=3, random_state=0)
    return bw.BagClassifier(tree, start=bw.BagLossRegression(), cv=2, max_rounds=3)


# Checks of scikit-learn that a learner does not pass, with the reason; a learner that begins to pass fails the test.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "BagLogisticRegression": {
        "check_sample_weight_equivalence_on_dense_data": "C is chosen by random splits of the bags, and a repeated row "
        "is another bag, so that the splits differ; with a given C the two agree (test_logistic)"
    }
}


@parametrize_with_checks(
    [learner() if name != "BagClassifier" else quick_trees() for name, learner in LEARNERS.items()],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator).__name__, {}),
)
@pytest.mark.filterwarnings("ignore::bagwise.errors.BagwiseWarning")  # its tables are small, noisy or balanced
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_finds_nothing_to_object_to(estimator: Any, check: Any) -> None:
    check(estimator)


# ---------------------------------------------------------------------- bags that all learners can learn from


@pytest.fixture(scope="module")
def problem() -> bw.BagOracle:
    law = np.array([1, 4, 6, 4, 1]) / 16
    return bw.BagOracle(bw.LTF([1.0, -2.0, 0.5], 0.0), np.zeros(3), np.eye(3), size=4, count=law)


@pytest.fixture(scope="module")
def bags(problem: bw.BagOracle) -> bw.Bags:
    return problem.sample(120, np.random.default_rng(0))


def small(name: str) -> Any:
    """The learner with parameters that keep its fit short."""
    if name == "BagClassifier":
        return quick_trees().set_params(random_state=0)
    learner = LEARNERS[name]()
    short = {"n_candidates": 20, "C": 10.0, "random_state": 0, "n_roundings": 2, "max_iter": 500}
    known = learner.get_params()
    return learner.set_params(**{key: value for key, value in short.items() if key in known})


every_learner = pytest.mark.parametrize("name", LEARNERS)
no_advice = pytest.mark.filterwarnings("ignore::bagwise.errors.BagwiseWarning")


@every_learner
@no_advice
def test_three_ways_to_hand_over_bags_are_one(name: str, bags: bw.Bags) -> None:
    if name == "SDPLTF":
        bags = bags_of(2)
    X, y = bags.as_rows()
    one, two, three = (clone(small(name)) for _ in range(3))
    one.fit(bags)
    two.fit(X, y)
    three.fit(X, dict(zip(bags.ids.tolist(), bags.proportions, strict=True)), bags=y["bag"])
    per_row = clone(small(name)).fit(X, y["count"] / y["size"], bags=y["bag"])
    for other in (two, three, per_row):
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.score(bags) == two.score(X, y) == three.score(X, y["count"] / y["size"], bags=y["bag"])


@every_learner
@no_advice
def test_clone_forgets_the_fit_and_pickle_keeps_it(name: str, bags: bw.Bags) -> None:
    model = small(name).fit(bags_of(2) if name == "SDPLTF" else bags)
    fresh = clone(model)
    assert fresh.get_params().keys() == model.get_params().keys()
    with pytest.raises(NotFittedError):
        fresh.predict(bags.X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(bags.X), model.predict(bags.X))


@every_learner
@no_advice
def test_labels_of_single_rows_may_be_text_or_truth(name: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 2))
    positive = X @ [1.0, 2.0] > 0.1
    for negative_label, positive_label in (("ham", "spam"), (False, True), (-1, 1)):
        y = np.where(positive, positive_label, negative_label)
        model = small(name).fit(X, y)
        assert model.classes_.tolist() == [negative_label, positive_label]
        assert model.predict(X).dtype == y.dtype and set(model.predict(X)) <= {negative_label, positive_label}
        assert model.score(X, y) == np.mean(model.predict(X) == y)
        assert model.score(X, y) > 0.9 or model.__sklearn_tags__().classifier_tags.poor_score


@every_learner
def test_it_shows_itself_as_html_and_text(name: str) -> None:
    assert name in small(name)._repr_html_()
    assert repr(LEARNERS[name]()).startswith(name)


@every_learner
@no_advice
def test_names_of_columns_are_kept_and_compared(name: str, bags: bw.Bags) -> None:
    if name == "SDPLTF":
        bags = bags_of(2)
    X, y = bags.as_rows()
    frame = pd.DataFrame(X, columns=["age", "dose", "days"])
    model = small(name).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["age", "dose", "days"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["dose", "age", "days"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def bags_of(size: int) -> bw.Bags:
    """Bags of the same problem with another size."""
    law = np.polynomial.polynomial.polypow([0.5, 0.5], size)
    oracle = bw.BagOracle(bw.LTF([1.0, -2.0, 0.5], 0.0), np.zeros(3), np.eye(3), size=size, count=law)
    return oracle.sample(60, np.random.default_rng(0))


# ---------------------------------------------------------------------- pipelines: boundaries that are not linear


def circle(n_bags: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that are positive inside of a circle, in bags of 4 in random order: X, bag target, labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4 * n_bags, 2))
    labels = ((X**2).sum(axis=1) < 1.4).astype(int)
    ids = rng.permutation(np.repeat(np.arange(n_bags), 4))
    return X, bw.bag_target(ids, counts=np.bincount(ids, weights=labels)), labels


@pytest.mark.parametrize(
    "features", [PolynomialFeatures(2, include_bias=False), Nystroem(gamma=0.3, n_components=40, random_state=0)]
)
def test_features_before_a_learner_bend_its_boundary(features: Any) -> None:
    X, y, _ = circle(500, seed=0)
    straight = bw.BagLossRegression(C=10.0).fit(X, y)
    bent = make_pipeline(StandardScaler(), features, bw.BagLossRegression(C=10.0)).fit(X, y)
    fresh, _, truth = circle(1000, seed=1)
    # No line tells inside from outside of a centred circle: the better class has half, give or take (se 0.008).
    assert np.mean(straight.predict(fresh) == truth) < 0.6
    assert np.mean(bent.predict(fresh) == truth) > 0.9
    assert bent.score(X, y) > straight.score(X, y)


def test_columns_of_several_kinds_go_through_a_column_transformer() -> None:
    rng = np.random.default_rng(3)
    n = 1200
    frame = pd.DataFrame({"age": rng.normal(50, 10, n), "city": rng.choice(["Bonn", "Köln", "Ulm"], n)})
    labels = (frame["age"] / 10 + 2 * (frame["city"] == "Ulm") > 5.6).to_numpy()
    ids = np.repeat(np.arange(n // 4), 4)
    y = bw.bag_target(ids, counts=np.bincount(ids, weights=labels))
    encode = ColumnTransformer([("n", StandardScaler(), ["age"]), ("t", OneHotEncoder(sparse_output=False), ["city"])])
    model = make_pipeline(encode, bw.BagLossRegression(C=100.0)).set_output(transform="pandas").fit(frame, y)
    assert model[-1].feature_names_in_.tolist() == ["n__age", "t__city_Bonn", "t__city_Köln", "t__city_Ulm"]
    assert np.mean(model.predict(frame) == labels) > 0.95
    assert "BagLossRegression" in model._repr_html_()


# ---------------------------------------------------------------------- searches: bags in y, or beside it


def test_a_search_needs_nothing_but_the_bag_target(bags: bw.Bags) -> None:
    X, y = bags.as_rows()
    pipeline = make_pipeline(StandardScaler(), bw.BagLossRegression())
    search = GridSearchCV(pipeline, {"baglossregression__C": [1e-4, 1.0, 100.0]}, cv=GroupKFold(4), error_score="raise")
    search.fit(X, y, groups=y["bag"])
    assert search.best_params_["baglossregression__C"] > 1e-4
    predicted = cross_val_predict(pipeline, X, y, cv=GroupKFold(4), groups=y["bag"])
    truth = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
    assert np.mean(predicted == truth) > 0.85


@pytest.mark.parametrize("ids", ["text", "tuples", "integers"])
def test_a_search_takes_bags_of_any_name(bags: bw.Bags, ids: str) -> None:
    name = {"text": "ward {}".format, "tuples": lambda b: ("ward", b), "integers": int}[ids]
    names = [name(b) for b in bags.row_bags()]
    y = bw.bag_target(names, counts={name(b): k for b, k in enumerate(bags.counts)})
    search = GridSearchCV(bw.BagLossRegression(), {"C": [1.0, 10.0]}, cv=GroupKFold(3), error_score="raise")
    assert search.fit(bags.X, y, groups=bags.row_bags()).best_score_ > 0.3


@pytest.mark.parametrize("cv", [2, 4, KFold(5)])
def test_a_splitter_that_cuts_bags_is_refused_with_the_remedy(cv: Any) -> None:
    X, y, _ = circle(60, seed=4)  # rows of a bag lie apart
    search = GridSearchCV(bw.BagLossRegression(), {"C": [1.0]}, cv=cv)
    with pytest.raises(ValueError, match=r"all rows of a bag must stay together.*BagKFold"):
        search.fit(X, y)
    with pytest.raises(ValueError, match="BagKFold or BagShuffleSplit"):
        cross_validate(bw.BagLossRegression(), X, y, cv=cv)


def test_more_folds_than_rows_in_a_bag_fail_before_a_learner_is_asked() -> None:
    # scikit-learn takes each record of a bag target for a class, and an integer cv is stratified by class.
    X, y, _ = circle(60, seed=4)
    with pytest.raises(ValueError, match="n_splits=5 cannot be greater than the number of members in each class"):
        cross_validate(bw.BagLossRegression(), X, y, cv=5)


def test_bags_beside_y_reach_fit_but_a_search_without_routing_says_what_score_lacks(bags: bw.Bags) -> None:
    X, y = bags.as_rows()
    search = GridSearchCV(bw.BagLossRegression(), {"C": [1.0]}, cv=GroupKFold(3), error_score="raise")
    with pytest.raises(InvalidInputError, match=r"labels.*bag target"):
        search.fit(X, y["count"] / y["size"], bags=y["bag"], groups=y["bag"])


@pytest.mark.parametrize("name", ["bags", "groups"])
def test_with_routing_bags_beside_y_reach_both(bags: bw.Bags, name: str) -> None:
    X, y = bags.as_rows()
    with sklearn.config_context(enable_metadata_routing=True):
        asks = True if name == "bags" else "groups"  # an alias: one array for the splitter and the learner
        learner = bw.BagLossRegression().set_fit_request(bags=asks).set_score_request(bags=asks)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), learner),
            {"baglossregression__C": [1e-4, 10.0]},
            cv=GroupKFold(3),
            error_score="raise",
        )
        search.fit(X, y["count"] / y["size"], **{"groups": y["bag"], name: y["bag"]})
        scores = cross_validate(
            learner,
            X,
            y["count"] / y["size"],
            cv=GroupKFold(3),
            params={"groups": y["bag"], name: y["bag"]},
            error_score="raise",
        )
    assert search.best_params_["baglossregression__C"] == 10.0
    folds = list(GroupKFold(3).split(X, groups=y["bag"]))
    by_target = cross_validate(bw.BagLossRegression(), X, y, cv=folds)
    np.testing.assert_allclose(scores["test_score"], by_target["test_score"])


def test_with_routing_and_no_request_scikit_learn_asks_for_one(bags: bw.Bags) -> None:
    X, y = bags.as_rows()
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match="set_fit_request"):
        cross_validate(
            bw.BagLossRegression(),
            X,
            y["count"] / y["size"],
            cv=GroupKFold(3),
            params={"groups": y["bag"], "bags": y["bag"]},
        )


def test_bags_cut_beside_y_are_refused_where_their_proportion_betrays_them(bags: bw.Bags) -> None:
    X, y = bags.as_rows()
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match="BagKFold"):
        learner = bw.BagLossRegression().set_fit_request(bags=True).set_score_request(bags=True)
        shuffled = np.random.default_rng(0).permutation(len(X))
        cross_validate(
            learner, X[shuffled], (y["count"] / y["size"])[shuffled], cv=3, params={"bags": y["bag"][shuffled]}
        )


# ---------------------------------------------------------------------- calibration


def test_a_few_labelled_rows_calibrate_a_model_of_bags(bags: bw.Bags, problem: bw.BagOracle) -> None:
    X, labels = problem.sample_instances(400, np.random.default_rng(5))
    calibrated = CalibratedClassifierCV(FrozenEstimator(bw.MeanMap().fit(bags))).fit(X, labels)
    fresh, truth = problem.sample_instances(4000, np.random.default_rng(6))
    probability = calibrated.predict_proba(fresh)[:, 1]
    told = LogisticRegression().fit(X, labels).predict_proba(fresh)[:, 1]
    brier = lambda p: np.mean((p - truth) ** 2)
    assert brier(probability) < 0.1  # a coin has 0.25; the margin is that of 120 bags
    assert abs(probability.mean() - truth.mean()) < 0.05 and abs(told.mean() - truth.mean()) < 0.05


def test_single_labelled_rows_calibrate_by_cross_validation() -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 2))
    y = np.where(X @ [1.0, 1.0] + 0.3 * rng.standard_normal(300) > 0, "yes", "no")
    calibrated = CalibratedClassifierCV(bw.SpectralLTF(), cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.85
    assert calibrated.predict_proba(X).shape == (300, 2)
