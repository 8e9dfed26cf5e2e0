"""What all learners share: symmetries, the doors, copies."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import bagwise as bw
from bagwise.bags import Bags
from learners import LEARNERS, N_FEATURES, Row

every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


def bags_of(learner: Row) -> Bags:
    return learner.draw(np.random.default_rng(7))


def scores(learner: Row, bags: Bags, X: np.ndarray) -> np.ndarray:
    """Scores at X of the learner fitted on bags, per standard deviation: a positive factor means nothing."""
    found = clone(learner.model).fit(bags).decision_function(X)
    return found / found.std()


def points(n: int = 50) -> np.ndarray:
    return np.random.default_rng(11).standard_normal((n, N_FEATURES))


def maps(keeps: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Some maps (A, b) of the named group."""
    rng = np.random.default_rng(3)
    any_matrix = rng.standard_normal((N_FEATURES, N_FEATURES)) * [[1.0], [30.0], [0.1]]
    rotation = np.linalg.qr(rng.standard_normal((N_FEATURES, N_FEATURES)))[0]
    shift, nothing = np.array([5.0, -40.0, 0.3]), np.zeros(N_FEATURES)
    return {
        "affine": [(any_matrix, shift), (rotation, shift)],
        "linear": [(any_matrix, nothing)],
        "rigid": [(rotation, shift)],
        "rotations": [(rotation, nothing)],
        "scalings": [(8.0 * np.eye(N_FEATURES), nothing), (0.125 * np.eye(N_FEATURES), nothing)],
    }[keeps]


# Sums in another order differ by rounding, and iterations stop within a tolerance of 1e-4 or less of the optimum.
def tolerance(learner: Row) -> float:
    return 2e-3 if hasattr(learner.model, "max_iter") or hasattr(learner.model, "C") else 1e-7


def test_every_exported_learner_has_a_row() -> None:
    # BagClassifier makes a learner of another library's classifier, linear or not: test_meta.py.
    exported = {name for name, home in bw._HOME.items() if home.startswith("estimators.")} - {"BagClassifier"}
    assert exported == {type(learner.model).__name__ for learner in LEARNERS.values()}


# ---------------------------------------------------------------------- symmetries


@every_learner
def test_a_map_of_the_features_maps_the_threshold(learner: Row) -> None:
    bags, X = bags_of(learner), points()
    expected = scores(learner, bags, X)
    for A, b in maps(learner.keeps):
        moved = Bags.from_sizes(bags.X @ A.T + b, bags.sizes, bags.counts, ids=bags.ids)
        assert_allclose(scores(learner, moved, X @ A.T + b), expected, atol=tolerance(learner))


@every_learner
def test_the_order_of_rows_and_of_bags_is_irrelevant(learner: Row) -> None:
    if learner.ordered:
        pytest.skip("draws rows by their place")
    bags, X, rng = bags_of(learner), points(), np.random.default_rng(5)
    order = rng.permutation(bags.n_rows)
    shuffled = Bags.from_arrays(
        bags.X[order], bags.ids[bags.row_bags()][order], counts=dict(zip(bags.ids, bags.counts, strict=True))
    )
    assert shuffled.ids.tolist() != bags.ids.tolist() or bags.n_bags == 1
    assert_allclose(scores(learner, shuffled, X), scores(learner, bags, X), atol=tolerance(learner))


@every_learner
def test_counting_the_other_class_turns_the_threshold_round(learner: Row) -> None:
    if not learner.mirrors:
        pytest.skip("draws candidates of one sign")
    bags, X = bags_of(learner), points()
    mirrored = Bags.from_sizes(bags.X, bags.sizes, bags.sizes - bags.counts, ids=bags.ids)
    assert_allclose(scores(learner, mirrored, X), -scores(learner, bags, X), atol=tolerance(learner))


# ---------------------------------------------------------------------- the doors


@every_learner
def test_the_class_is_the_function(learner: Row) -> None:
    bags = bags_of(learner)
    found, expected = clone(learner.model).fit(bags), learner.function(bags)
    assert_array_equal(found.coef_[0], expected.normal)
    assert found.intercept_[0] == expected.offset
    assert found.ltf_ == expected


@every_learner
def test_bags_a_bag_target_and_proportions_with_ids_are_one(learner: Row) -> None:
    bags = bags_of(learner)
    X, y = bags.as_rows()
    of_rows, ids = bags.proportions[bags.row_bags()], bags.ids[bags.row_bags()]
    expected = clone(learner.model).fit(bags).ltf_
    assert clone(learner.model).fit(X, y).ltf_ == expected
    assert clone(learner.model).fit(X, of_rows, bags=ids).ltf_ == expected
    by_id = dict(zip(bags.ids.tolist(), bags.proportions, strict=True))
    assert clone(learner.model).fit(X, by_id, bags=ids).ltf_ == expected


@every_learner
def test_a_second_fit_forgets_the_first(learner: Row) -> None:
    model = clone(learner.model).fit(learner.draw(np.random.default_rng(8)))
    assert model.fit(bags_of(learner)).ltf_ == clone(learner.model).fit(bags_of(learner)).ltf_


@every_learner
def test_predictions_follow_from_the_threshold(learner: Row) -> None:
    model, X = clone(learner.model).fit(bags_of(learner)), points()
    assert_array_equal(model.predict(X), model.ltf_.predict(X))
    assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])
    if hasattr(model, "predict_proba"):
        probability = model.predict_proba(X)
        assert_allclose(probability.sum(axis=1), 1)
        assert (np.diff(probability[np.argsort(model.decision_function(X)), 1]) >= 0).all()


# ---------------------------------------------------------------------- copies


@every_learner
def test_copies_are_equal(learner: Row, tmp_path: Path) -> None:
    bags, X = bags_of(learner), points()
    assert clone(learner.model).get_params() == learner.model.get_params()
    model = clone(learner.model).fit(bags)
    bw.save(model, tmp_path / "model.json")
    for copy in (pickle.loads(pickle.dumps(model)), bw.load(tmp_path / "model.json")):
        assert type(copy) is type(model)
        assert copy.get_params() == model.get_params()
        assert copy.ltf_ == model.ltf_
        assert copy.ambiguous_ == model.ambiguous_
        assert_array_equal(copy.predict(X), model.predict(X))
    assert not hasattr(clone(model), "ltf_")
