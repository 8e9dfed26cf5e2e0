"""BagClassifier: what it is on labels, that it bends boundaries, keeps the best round, refuses what it cannot use."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import bagwise as bw
from bagwise.errors import FitWarning, InvalidInputError
from bagwise.learn.crossfit import bag_folds, calibration, cross_fit, out_of_fold
from bagwise.stats.poisson_binomial import count_posterior

FOREST = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)


def moons(n_bags: int, size: int, seed: int = 0) -> tuple[bw.Bags, np.ndarray]:
    X, labels = make_moons(n_bags * size, noise=0.15, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    X, labels = X[order], labels[order]
    return bw.Bags.from_sizes(X, [size] * n_bags, labels.reshape(n_bags, size).sum(axis=1)), labels


@pytest.fixture(scope="module")
def bent() -> tuple[bw.Bags, bw.BagClassifier]:
    bags, _ = moons(250, 6)
    return bags, bw.BagClassifier(FOREST, random_state=0).fit(bags)


def test_a_forest_learns_from_totals_what_no_line_can(bent: tuple[bw.Bags, bw.BagClassifier]) -> None:
    bags, model = bent
    fresh, truth = moons(400, 6, seed=1)
    share = lambda found: np.mean(found.predict(fresh.X) == truth)
    line, told = bw.BagLogisticRegression(random_state=0).fit(bags), FOREST.fit(bags.X, moons(250, 6)[1])
    # 2,400 fresh rows: a share of 0.97 has a standard error of 0.0035, one of 0.88 of 0.0066.
    assert share(line) < 0.92
    assert share(model) > share(line) + 0.05
    assert share(model) > share(told) - 0.02


def test_probabilities_are_calibrated_by_the_counts(bent: tuple[bw.Bags, bw.BagClassifier]) -> None:
    _, model = bent
    fresh, truth = moons(400, 6, seed=2)
    probability = model.predict_proba(fresh)[:, 1]
    for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.0)):
        there = (probability >= low) & (probability <= high)
        error = 4 * np.sqrt(0.25 / max(there.sum(), 1)) + 0.1  # of the share, and of a forest of 1,500 rows
        assert abs(truth[there].mean() - probability[there].mean()) < error
    assert model.predict(fresh.X).tolist() == (probability > 0.5).astype(int).tolist()


def test_the_kept_round_is_the_likeliest_out_of_fold(bent: tuple[bw.Bags, bw.BagClassifier]) -> None:
    _, model = bent
    assert model.history_[model.n_iter_] == max(model.history_[1:])
    assert model.history_[model.n_iter_] > model.history_[0]
    # Out of fold, the likelihood is that of bags never seen, within the spread between bags.
    fresh, _ = moons(400, 6, seed=3)
    found = count_posterior(model.decision_function(fresh), fresh.starts, fresh.counts).loglik
    error = np.std(found) * np.sqrt(1 / 400 + 1 / 250) / 6  # of two means over bags of six rows
    assert abs(model.score(fresh) - model.history_[model.n_iter_]) < 4 * error


def test_on_labels_it_is_the_classifier() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.where(X @ [1.0, 2.0, 0.0] + rng.logistic(size=200) > 0, "yes", "no")
    model = bw.BagClassifier(LogisticRegression(C=2.0), random_state=0).fit(X, y)
    theirs = LogisticRegression(C=2.0).fit(X, y)
    np.testing.assert_allclose(model.estimator_.coef_, theirs.coef_, rtol=1e-3)
    assert model.n_iter_ == 1 and model.classes_.tolist() == ["no", "yes"]
    assert 0.6 < model.calibration_.slope < 1.4  # nothing to correct but what 200 labels leave open


def test_pipelines_take_the_weights_and_a_start_may_bend() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1600, 2))
    inside = ((X**2).sum(axis=1) < 1.4).astype(int)
    bags = bw.Bags.from_sizes(X, [4] * 400, inside.reshape(400, 4).sum(axis=1))
    features = make_pipeline(StandardScaler(), Nystroem(gamma=0.3, n_components=30, random_state=0))
    start = make_pipeline(PolynomialFeatures(2, include_bias=False), bw.BagLogisticRegression(C=10.0))
    model = bw.BagClassifier(
        make_pipeline(features, LogisticRegression(C=10.0)), start=start, cv=3, max_rounds=4, random_state=0
    )
    with pytest.warns(FitWarning):  # the quadratic start is the truth itself; kernels cannot be likelier
        model.fit(bags)
    assert np.mean(model.predict(X) == inside) > 0.95


def test_predictions_out_of_fold_have_not_seen_their_fold() -> None:
    X = np.arange(12.0)[:, None]
    folds = np.repeat([0, 1, 2], 4)
    seen: list[set[float]] = []

    def learn(rows, targets):
        seen.append(set(rows.ravel()))
        assert len(rows) == len(targets) == 8
        return lambda asked: np.array([float(x in seen[-1]) for x in asked.ravel()])

    assert out_of_fold(learn, X, np.zeros(12), folds).tolist() == [0.0] * 12
    assert sorted(np.bincount(bag_folds(11, 3, np.random.default_rng(0)))) == [3, 4, 4]


def test_calibration_undoes_slope_and_shift() -> None:
    rng = np.random.default_rng(4)
    eta = 2 * rng.standard_normal(6000)
    labels = rng.random(6000) < 1 / (1 + np.exp(-eta))
    bags = bw.Bags.from_sizes(np.zeros((6000, 1)), [3] * 2000, labels.reshape(2000, 3).sum(axis=1))
    found = calibration((eta - 0.7) / 2.5, bags)
    # Standard errors of about 0.05 (slope 1 of eta) and 0.04, times the scale: five of them.
    assert abs(found.slope - 2.5) < 0.6 and abs(found.shift - 0.7) < 0.25


def test_a_classifier_that_learns_nothing_new_settles_in_its_second_round() -> None:
    bags, _ = moons(30, 4)
    learn = lambda rows, targets: lambda asked: 3 * asked[:, 0]
    folds = bag_folds(30, 3, np.random.default_rng(0))
    found = cross_fit(bags, learn, np.zeros(bags.n_rows), folds, max_rounds=9, damping=0.0)
    calibrated = found.calibration(3 * bags.X[:, 0])
    np.testing.assert_allclose(found.history[1:], [found.history[1]] * 2)
    again = count_posterior(calibrated, bags.starts, bags.counts).loglik.sum() / bags.n_rows
    np.testing.assert_allclose(again, found.history[1])
    # The first targets are those of the start, which knows no row from another.
    np.testing.assert_allclose(found.targets, np.repeat(bags.proportions, 4))


NO_USE = [RidgeClassifier(), KNeighborsClassifier(), make_pipeline(KNeighborsClassifier())]


@pytest.mark.parametrize("estimator", NO_USE)
def test_what_takes_no_weights_or_has_no_probabilities_is_refused(estimator: object) -> None:
    bags, _ = moons(10, 3)
    with pytest.raises(InvalidInputError, match="must have predict_proba and take sample_weight"):
        bw.BagClassifier(estimator).fit(bags)


def test_bad_parameters_and_an_end_too_soon_are_said() -> None:
    bags, _ = moons(60, 4)
    with pytest.raises(InvalidInputError, match=r"damping of BagClassifier must lie in \[0, 1\); got 1"):
        bw.BagClassifier(FOREST, damping=1).fit(bags)
    with pytest.raises(InvalidInputError, match="cv of BagClassifier must be a positive number; got 0"):
        bw.BagClassifier(FOREST, cv=0).fit(bags)
    with pytest.warns(FitWarning, match="max_rounds=1"):
        bw.BagClassifier(GaussianNB(), max_rounds=1, random_state=0).fit(bags)


def test_it_repeats_for_a_seed() -> None:
    bags, _ = moons(40, 4)
    first, second = (bw.BagClassifier(FOREST, cv=2, max_rounds=2, random_state=3) for _ in range(2))
    with pytest.warns(FitWarning):
        first.fit(bags)
        second.fit(bags)
    assert first.predict_proba(bags).tolist() == second.predict_proba(bags).tolist()


def test_it_is_not_saved_as_json(tmp_path) -> None:
    bags, _ = moons(40, 4)
    with pytest.warns(FitWarning):
        model = bw.BagClassifier(GaussianNB(), max_rounds=1, cv=2).fit(bags)
    with pytest.raises(InvalidInputError, match="joblib"):
        bw.save(model, tmp_path / "m.json")
