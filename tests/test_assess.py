"""Assessment from totals: the fit and its intervals against other solvers, the mirror, what is said and refused."""

import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import binom, chi2
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import bagwise as bw
from bagwise.claims.answers import answers
from bagwise.claims.assessment import _score_view, assess
from bagwise.claims.figures import FIGURES, Masses, roc_point
from bagwise.claims.probability_model import fit_probabilities
from bagwise.errors import BagwiseWarning, IdentifiabilityWarning, InvalidInputError
from bagwise.ltf import error_rates
from bagwise.stats.binned_counts import LEAST, BinnedCounts


def oracle(size: int, count: object, offset: float = 0.0) -> bw.BagOracle:
    return bw.BagOracle(bw.LTF([1.0, 0.0], offset), np.zeros(2), np.eye(2), size=size, count=count)


def by_chance(size: int) -> np.ndarray:
    return binom.pmf(np.arange(size + 1), size, 0.5)


def turned(angle: float) -> bw.LTF:
    return bw.LTF([np.cos(angle), np.sin(angle)])


# ---------------------------------------------------------------------- figures


@pytest.mark.parametrize("prevalence", [None, 0.2])
@pytest.mark.parametrize("name", [*FIGURES, "point"])
def test_gradients_of_figures_are_those_of_differences(name: str, prevalence: float | None) -> None:
    rng = np.random.default_rng(0)
    masses = rng.dirichlet(np.ones(12))
    figure = roc_point(2, "fpr") if name == "point" else FIGURES[name]
    positive, several = np.arange(6) >= 3, np.array([True] * 5 + [False])
    at = lambda x: figure(Masses(x[:6], x[6:], positive, prevalence, several))
    _, gP, gN = at(masses)
    # Along changes that keep the rows of each bin, as probabilities change.
    for _ in range(5):
        step = rng.standard_normal(6)
        step = np.concatenate([step, -step])
        change = (at(masses + 1e-6 * step)[0] - at(masses - 1e-6 * step)[0]) / 2e-6
        assert_allclose(np.concatenate([gP, gN]) @ step, change, atol=1e-6)


def test_area_under_the_curve_of_bins_is_near_that_of_the_scores() -> None:
    rng = np.random.default_rng(1)
    scores = rng.standard_normal(200_000)
    labels = rng.random(200_000) < 1 / (1 + np.exp(-2 * scores))
    bins = np.searchsorted(np.quantile(scores, np.arange(1, 10) / 10), scores)
    shares = [np.bincount(bins[labels == side], minlength=10) / len(scores) for side in (True, False)]
    masses = Masses(*shares, np.arange(10) >= 5, several=np.ones(10, bool))
    hidden = roc_auc_score(labels, bins) - roc_auc_score(labels, scores)
    assert abs(FIGURES["roc_auc"](masses)[0] - roc_auc_score(labels, scores)) < abs(hidden) / 4


# ---------------------------------------------------------------------- the fit


def general_maximum(data: BinnedCounts, start: np.ndarray, sign: int = 0, figure=None, least: float = 0.0):
    """By a general solver: the rising maximum, or the extreme of a figure at log-likelihoods of at least ``least``."""
    inside = lambda r: np.clip(r, LEAST, 1 - LEAST)
    rising = {"type": "ineq", "fun": np.diff, "jac": lambda r: np.diff(np.eye(len(r)), axis=0)}
    if figure is None:
        target, limits = (lambda r: (-data.at(inside(r)).loglik, -data.at(inside(r)).gradient)), [rising]
    else:
        target = lambda r: (-sign * figure(r)[0], -sign * figure(r)[1])
        likely = {
            "type": "ineq",
            "fun": lambda r: data.at(inside(r)).loglik - least,
            "jac": lambda r: data.at(inside(r)).gradient,
        }
        limits = [rising, likely]
    bounds = [(1e-6, 1 - 1e-6)] * len(start)
    return minimize(
        target, start, jac=True, method="SLSQP", bounds=bounds, constraints=limits, options={"maxiter": 300}
    )


@pytest.mark.parametrize(("size", "count"), [(4, None), (16, 12)])
def test_fit_and_profile_ends_are_those_of_a_general_solver(size: int, count: int | None) -> None:
    bags = oracle(size, by_chance(size) if count is None else count).sample(300, np.random.default_rng(size))
    view, _, _ = _score_view(answers(turned(0.3), bags), bags, 6, None)
    fit = fit_probabilities(view.data, "rising", np.linspace(0.2, 0.8, 6))
    found = general_maximum(view.data, np.linspace(0.2, 0.8, 6))
    assert fit.loglik >= -found.fun - 1e-3
    drop = chi2.ppf(0.95, 1) / 2
    for name in ("accuracy", "tpr", "precision"):
        smooth = view.of(FIGURES[name])
        for sign in (-1, 1):
            end = fit.extreme(smooth, sign, drop)
            general = general_maximum(view.data, np.clip(fit.r, 1e-3, 0.999), sign, smooth, fit.loglik - drop)
            assert abs(end - sign * -general.fun) < 0.03 * abs(end - smooth(fit.r)[0]), (name, sign)


def test_two_rates_have_the_likelihood_of_two_binomials() -> None:
    bags = oracle(6, by_chance(6)).sample(150, np.random.default_rng(3))
    found = assess(turned(0.4), bags, method="rates")
    predicted = answers(turned(0.4), bags).counts(bags)

    def loglik(t: float, f: float) -> float:
        total = 0.0
        for k, c in zip(bags.counts, predicted, strict=True):
            j = np.arange(c + 1)
            total += np.log(binom.pmf(j, k, t) @ binom.pmf(c - j, 6 - k, f))
        return total

    best = minimize(lambda x: -loglik(*x), [0.8, 0.2], bounds=[(0.01, 0.99)] * 2)
    assert_allclose([found.tpr.estimate, found.fpr.estimate], best.x, atol=2e-3)


# ---------------------------------------------------------------------- what it finds


@pytest.mark.parametrize(("size", "count"), [(2, None), (4, 3), (16, None), (64, 48)])
def test_the_truth_is_covered_and_the_estimate_is_near(size: int, count: int | None) -> None:
    truth = oracle(size, by_chance(size) if count is None else count)
    model = turned(0.3)
    missed, false = error_rates(model, truth.ltf, truth.mean, truth.cov)
    share = 0.5 if count is None else count / size
    accuracy = share * (1 - missed) + (1 - share) * (1 - false)
    found = assess(model, truth.sample(600, np.random.default_rng(size)), confidence=0.9999)
    # Covered but once in 10,000; the half-width is 3.9 standard errors.
    assert accuracy in found.accuracy and 1 - missed in found.tpr and false in found.fpr
    assert found.accuracy.high - found.accuracy.low < 0.12
    assert found.roc.tpr[0] == 0 and (np.diff(found.roc.tpr) >= 0).all() and (np.diff(found.roc.fpr) >= 0).all()


@pytest.mark.parametrize("method", ["score", "rates"])
def test_one_half_everywhere_leaves_the_mirror_open_and_it_is_said(method: str) -> None:
    bags = oracle(10, 5).sample(200, np.random.default_rng(4))
    with pytest.warns(IdentifiabilityWarning, match="two mirror readings"):
        found = assess(turned(0.2), bags, method=method)
    assert len(found.branches) == 2
    high, low = sorted((branch.figures["accuracy"] for branch in found.branches), key=lambda f: -f.estimate)
    assert_allclose(high.estimate + low.estimate, 1, atol=1e-3)
    assert found.accuracy.low <= low.low + 1e-6 and found.accuracy.high >= high.high - 1e-6
    assert found.branches[1].deviance < 1e-3 and any("mirror" in note for note in found.notes)


def test_a_direction_that_the_counts_exclude_is_not_reported() -> None:
    found = assess(turned(0.2), oracle(10, by_chance(10)).sample(200, np.random.default_rng(5)))
    assert len(found.branches) == 1 and found.branches[0].rising
    mirrored = assess(turned(0.2).flipped(), oracle(10, by_chance(10)).sample(200, np.random.default_rng(5)))
    assert len(mirrored.branches) == 1 and not mirrored.branches[0].rising
    assert_allclose(mirrored.accuracy.estimate, 1 - found.accuracy.estimate, atol=1e-3)


def test_the_same_answers_give_the_same_assessment_in_any_order_and_from_any_library() -> None:
    truth = oracle(5, by_chance(5))
    bags = truth.sample(150, np.random.default_rng(6))
    X, y = truth.sample_instances(300, np.random.default_rng(7))
    model = LogisticRegression().fit(X, y)
    found = assess(model, bags)
    assert found.calibration is not None and found.calibration.in_the_large.low < 0.1
    order = np.random.default_rng(8).permutation(150)
    shuffled = assess(model, bags[order])
    of_array = assess(model.predict_proba(bags.X)[:, 1], bags)
    assert_allclose(shuffled.accuracy.low, found.accuracy.low, atol=1e-4)
    assert_allclose(of_array.accuracy.high, found.accuracy.high, atol=1e-9)
    # A monotone change of the scores is no change.
    cubed = assess(model.decision_function(bags.X) ** 3, bags)
    assert_allclose(cubed.roc_auc.estimate, found.roc_auc.estimate, atol=1e-6)


def test_another_prevalence_keeps_the_rates_and_moves_the_rest() -> None:
    bags = oracle(8, by_chance(8)).sample(300, np.random.default_rng(9))
    own, other = assess(turned(0.3), bags), assess(turned(0.3), bags, prevalence=0.1)
    assert_allclose([other.tpr.low, other.fpr.high], [own.tpr.low, own.fpr.high], rtol=1e-6)
    t, f = other.tpr.estimate, other.fpr.estimate
    assert_allclose(other.accuracy.estimate, 0.1 * t + 0.9 * (1 - f))
    assert_allclose(other.precision.estimate, 0.1 * t / (0.1 * t + 0.9 * f))
    assert other.prevalence.estimate == other.prevalence.low == 0.1


def test_bootstrap_and_profile_agree_where_bags_are_many() -> None:
    bags = oracle(6, by_chance(6)).sample(400, np.random.default_rng(10))
    profile = assess(turned(0.4), bags).accuracy
    drawn = assess(turned(0.4), bags, interval="bootstrap", n_draws=200, random_state=0).accuracy
    width = profile.high - profile.low
    # The bootstrap's own noise at 200 draws is about a tenth of the width at each end.
    assert abs(drawn.low - profile.low) < 0.35 * width and abs(drawn.high - profile.high) < 0.35 * width


def test_the_large_path_agrees_with_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bags = oracle(4, by_chance(4)).sample(6000, np.random.default_rng(11))
    exact = assess(turned(0.3), bags)
    monkeypatch.setattr("bagwise.claims.assessment._PILOT", 1000)
    quick = assess(turned(0.3), bags)
    for name, figure in exact.figures.items():
        width = figure.high - figure.low
        assert_allclose(quick.figures[name].estimate, figure.estimate, atol=1e-2 * width + 1e-9)
        assert_allclose(
            [quick.figures[name].low, quick.figures[name].high], [figure.low, figure.high], atol=0.06 * width
        )


# ---------------------------------------------------------------------- bags that mislead


def sorted_bags(rng: np.random.Generator) -> tuple[bw.Bags, np.ndarray, np.ndarray]:
    """Bags that are runs of the rows in the order of a feature, which the score sees."""
    X = rng.standard_normal((6000, 2))
    chance = 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))
    y = (rng.random(6000) < chance).astype(int)
    order = np.argsort(X[:, 0] + 0.5 * rng.standard_normal(6000))
    return (
        bw.Bags.from_sizes(X[order], np.full(600, 10), y[order].reshape(600, 10).sum(axis=1)),
        y[order],
        chance[order],
    )


def test_natural_bags_are_assessed_by_score_and_refused_by_rates() -> None:
    bags, y, chance = sorted_bags(np.random.default_rng(12))
    accuracy = np.mean((chance > 0.5) == y)
    found = assess(chance, bags)
    # Population's accuracy differs from that of these rows by 0.005 (one standard error of 6,000 rows).
    assert abs(found.accuracy.estimate - accuracy) < 0.03
    with pytest.raises(InvalidInputError, match=r"counts contradict it: .*\(chi\^2 / dof"):
        assess(chance, bags, method="rates")


def test_counts_beyond_what_the_score_explains_are_noted() -> None:
    bags, _, _ = sorted_bags(np.random.default_rng(13))
    found = assess(bags.X[:, 1], bags)  # a score that does not see what the bags differ in
    assert found.dispersion.ratio > 1.5 and any("does not see" in note for note in found.notes)


# ---------------------------------------------------------------------- words


def test_an_assessment_is_plain_json_and_a_table() -> None:
    bags = oracle(4, by_chance(4)).sample(60, np.random.default_rng(14))
    found = assess(turned(0.3), bags)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["accuracy"] == {
        "estimate": found.accuracy.estimate,
        "low": found.accuracy.low,
        "high": found.accuracy.high,
    }
    assert "ROC AUC" in str(found) and "60 bags" in repr(found)


def test_bags_of_the_fit_are_noticed() -> None:
    bags = oracle(6, by_chance(6)).sample(80, np.random.default_rng(15))
    model = bw.SpectralLTF().fit(bags)
    with pytest.warns(BagwiseWarning, match="80 of 80 were used to fit"):
        assess(model, bags)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"method": "guess"}, "method"),
        ({"shape": "round"}, "shape"),
        ({"interval": "none"}, "interval"),
        ({"n_bins": 1}, "n_bins"),
        ({"prevalence": 0}, "prevalence"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object], words: str) -> None:
    bags = oracle(4, by_chance(4)).sample(5, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match=words):
        assess(turned(0.3), bags, **wrong)  # type: ignore[arg-type]


def test_bags_that_cannot_tell_are_refused() -> None:
    bags = oracle(4, 4).sample(5, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="both classes"):
        assess(turned(0.3), bags)
    with pytest.raises(InvalidInputError, match="two bags"):
        assess(turned(0.3), bags[:1])


def test_classifiers_of_one_answer_and_of_hard_labels_are_assessed_without_warnings() -> None:
    bags = oracle(4, by_chance(4)).sample(100, np.random.default_rng(16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        constant = assess(np.zeros(bags.n_rows), bags)
        labels = assess(turned(0.3).predict(bags.X), bags)
    assert constant.tpr.estimate == 0 and np.isnan(constant.precision.estimate)
    assert_allclose(constant.accuracy.estimate, 1 - bags.counts.sum() / bags.n_rows)
    assert labels.n_bins == 2 and labels.accuracy.estimate > 0.8
