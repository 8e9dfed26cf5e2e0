"""What is drawn is what the data say, on the axes that were given."""

import subprocess
import sys
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise as bw
from bagwise import plots
from bagwise.errors import InvalidInputError

COUNTS = [0.1, 0.2, 0.3, 0.2, 0.1, 0.1]
ORACLE = bw.BagOracle(bw.LTF([1.0, -2.0, 0.0], 0.4), np.zeros(3), np.eye(3), size=5, count=COUNTS)


@pytest.fixture(autouse=True)
def no_other_figures() -> Any:
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def bags() -> bw.Bags:
    return ORACLE.sample(300, np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(bags: bw.Bags) -> Any:
    return bw.BagLogisticRegression(C=1.0).fit(bags)


@pytest.mark.parametrize("name", ["bag_residuals", "coefficients", "projection", "roc"])
def test_a_display_draws_on_the_axes_it_is_given_and_again_on_others(name: str, model: Any, bags: bw.Bags) -> None:
    _, (one, two) = plt.subplots(1, 2)
    options = {"n_resamples": 3} if name == "coefficients" else {}
    if name == "roc":
        bags = ORACLE.sample(300, np.random.default_rng(9))  # held out, as its curve is a claim
    display = getattr(plots, name)(model, bags, ax=one, **options)
    assert display.ax_ is one and display.figure_ is one.figure and one.get_title()
    assert display.plot(two) is display and display.ax_ is two
    assert two.get_xlabel() == one.get_xlabel() and two.get_title() == one.get_title()
    assert len(plt.get_fignums()) == 1, "no figure of its own"
    display.plot()
    assert len(plt.get_fignums()) == 2
    display.figure_.canvas.draw()


def test_residuals_of_the_true_model_are_standard(bags: bw.Bags) -> None:
    """At the true probabilities of a logistic world, residuals have mean 0 and variance 1."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 3))
    truth = LogisticRegression()
    truth.classes_, truth.coef_, truth.intercept_ = np.array([0, 1]), np.array([[1.0, -1.0, 0.5]]), np.array([0.3])
    y = rng.random(len(X)) < truth.predict_proba(X)[:, 1]
    drawn = bw.Bags.from_sizes(X, np.full(2000, 10), y.reshape(2000, 10).sum(axis=1))
    display = plots.bag_residuals(truth, drawn)
    # Means of 2,000 residuals, and of their squares (variance below 3 each); 4 standard errors, wrong once in 10^4.
    assert abs(display.residuals.mean()) < 4 / np.sqrt(2000)
    assert abs((display.residuals**2).mean() - 1) < 4 * np.sqrt(3 / 2000)
    points = display.ax_.collections[0].get_offsets()
    assert_allclose(points, np.column_stack([display.expected, display.residuals]))


def test_residuals_of_reported_labels_expect_reported_counts() -> None:
    oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), np.zeros(2), np.eye(2), 5, COUNTS, flip=0.2, count_is="true")
    bags = oracle.sample(500, np.random.default_rng(0))
    model = bw.BagLogisticRegression(C=1.0, label_noise=0.2).fit(bags)
    reported = model.predict_reported_proba(bags)[:, 1]
    assert_allclose(plots.bag_residuals(model, bags).expected, reported.reshape(-1, 5).mean(axis=1))


def test_without_probabilities_residuals_are_proportions(bags: bw.Bags) -> None:
    display = plots.bag_residuals(ORACLE.ltf, bags)
    assert_array_equal(display.residuals, 0)
    assert "0 % of the bags missed" in display.ax_.get_title() and not display.standardised


def test_coefficients_are_shown_largest_on_top_with_their_names(model: Any, bags: bw.Bags) -> None:
    named = bw.Bags.from_sizes(bags.X * [1.0, 1.0, 1e-3], bags.sizes, bags.counts, feature_names=["a", "b", "c"])
    fitted = bw.SpectralLTF().fit(named)
    display = plots.coefficients(fitted, named, n_resamples=30, random_state=0)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["c", "a", "b"]
    assert_allclose(display.coef, fitted.coef_[0] * named.X.std(axis=0))
    assert display.low is not None and display.high is not None
    assert (display.low < display.coef).all() and (display.coef < display.high).all()
    assert display.low[2] < 0 < display.high[2], "the third feature has no effect"
    raw = plots.coefficients(fitted, max_shown=2)
    assert_allclose(raw.coef, fitted.coef_[0])
    assert raw.low is None and "largest 2 of 3" in raw.ax_.get_title()


def test_intervals_of_coefficients_hold_the_truth() -> None:
    """One sample; the 99.9 % intervals of 3 coefficients all hold with at least 99.7 %, less for the bootstrap."""
    rng = np.random.default_rng(3)
    X, coef = rng.standard_normal((4000, 3)), np.array([1.0, -1.0, 0.0])
    y = rng.random(len(X)) < 1 / (1 + np.exp(-X @ coef))
    bags = bw.Bags.from_sizes(X, np.full(800, 5), y.reshape(-1, 5).sum(axis=1))
    model = bw.BagLogisticRegression(C=1e6).fit(bags)
    display = plots.coefficients(model, bags, per_sd=False, confidence=0.999, n_resamples=60, random_state=0)
    assert display.low is not None and display.high is not None
    assert (display.low < coef).all() and (coef < display.high).all()
    assert (display.high - display.low < 1).all(), "and are not idle"


def test_projection_groups_bags_by_their_proportions(bags: bw.Bags) -> None:
    display = plots.projection(ORACLE.ltf, bags, groups=3)
    assert len(display.scores) == 3
    assert sum(len(scores) for scores in display.scores) == bags.n_rows
    positive = [float((scores > 0).mean()) for scores in display.scores]
    assert positive == sorted(positive)
    assert len(plots.projection(ORACLE.ltf, bags, groups=10).scores) == len(np.unique(bags.proportions))
    alike = bags[bags.counts == 2]
    assert plots.projection(ORACLE.ltf, alike).labels == [f"0.4 ({alike.n_bags} bags)"]


def test_the_roc_of_totals_is_the_assessed_one_and_near_that_of_labels(bags: bw.Bags) -> None:
    from sklearn.metrics import roc_auc_score

    blurred = bw.LTF([1.0, -1.0, 1.0], 0.4)
    heldout, labels = ORACLE.sample_labelled(600, np.random.default_rng(5))
    display = plots.roc(blurred, heldout)
    assert display.auc == bw.assess(blurred, heldout).roc_auc
    assert display.auc.low <= roc_auc_score(labels, blurred.scores(heldout.X)) <= display.auc.high
    assert (np.diff(display.tpr) >= 0).all() and display.fpr[0] == 0 and display.tpr[-1] == 1


def test_pipelines_and_other_libraries_are_drawn_too(bags: bw.Bags) -> None:
    X, y = bags.as_rows()
    pipeline = make_pipeline(StandardScaler(), bw.BagLogisticRegression(C=1.0)).fit(X, y)
    assert plots.bag_residuals(pipeline, bags).name == "BagLogisticRegression"
    assert plots.projection(pipeline, bags).ax_.get_legend() is not None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda model, bags: plots.bag_residuals(model, bags.X), "what is drawn must be Bags; got ndarray"),
        (lambda model, bags: plots.projection(model, bags[:0]), "at least one bag; got none"),
        (lambda model, bags: plots.projection(model, bags, groups=0), "groups and bins must be at least 1; got 0"),
        (lambda model, bags: plots.coefficients(model, per_sd=True), "per_sd needs bags"),
        (lambda model, bags: plots.coefficients(model, confidence=95), "strictly between 0 and 1; got 95"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: Any, sentence: str, model: Any, bags: bw.Bags) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        call(model, bags)


def test_matplotlib_is_loaded_on_use_and_named_where_it_is_missing() -> None:
    code = """
import sys, numpy as np, bagwise as bw
from bagwise import plots
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
try:
    plots.projection(bw.LTF([1.0]), bw.Bags.from_sizes(np.zeros((2, 1)), [2], [1]))
except ImportError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "drawing needs matplotlib, which is not installed; run: pip install 'bagwise[plot]'\n"
