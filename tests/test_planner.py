"""The planner: predicted bags give the wanted error, and what cannot be planned is said."""

import json

import numpy as np
import pytest

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.planner import _fitted_error, best_designs, plan
from bagwise.theory.asymptotics import spectral_instance_error


def spectral_error(d: int, q: int, k: int, m: int, seed: int) -> float:
    truth = bw.LTF(np.eye(d)[0])
    bags = bw.BagOracle(truth, np.zeros(d), np.eye(d), size=q, count=k).sample(m, np.random.default_rng(seed))
    error = bw.SpectralLTF().fit(bags).ltf_.disagreement(truth, np.zeros(d), np.eye(d))
    return min(error, 1 - error) if 2 * k == q else error


@pytest.mark.filterwarnings("ignore::bagwise.errors.IdentifiabilityWarning")
@pytest.mark.parametrize(("d", "size", "count", "error"), [(10, 10, 8, 0.03), (10, 4, 1, 0.05), (10, 10, 5, 0.03)])
def test_the_spectral_learner_has_the_wanted_error_at_the_planned_bags(
    d: int, size: int, count: int, error: float
) -> None:
    wanted = plan(d, size, count, error, learners=["spectral"]).n_bags["spectral"]
    assert wanted is not None
    found = [spectral_error(d, size, count, wanted, seed) for seed in range(40)]
    # Relative spread of one error is about 1 / sqrt(2 (d - 1)) = 0.24, of the mean of 40 0.04: four of them are 15 %.
    assert abs(np.mean(found) / error - 1) < 0.2


@pytest.mark.filterwarnings("ignore::bagwise.errors.IdentifiabilityWarning")
def test_the_likelihood_learner_has_the_wanted_error_at_the_planned_bags() -> None:
    found = plan(10, 4, 1, 0.03, learners=["logistic"], n_simulations=10)
    wanted = found.n_bags["logistic"]
    assert wanted is not None and 20 < wanted < 2000
    errors = [_fitted_error(10, 4, 1, 0.0, wanted, [99, i]) for i in range(30)]
    # 20 % wanted, and two standard errors of either simulation (spread of one error: a third).
    assert abs(np.log(np.mean(errors) / 0.03)) < np.log(1.2) + 2 * 0.33 * np.sqrt(1 / 30 + 1 / 10)


def test_fewer_features_larger_errors_and_the_theorem_order_as_they_must() -> None:
    number = lambda *args: plan(*args, learners=["spectral"]).n_bags["spectral"] or 0
    assert number(10, 10, 8, 0.05) < number(10, 10, 8, 0.02) < number(50, 10, 8, 0.02)
    both = plan(10, 10, 8, 0.05, learners=["spectral", "theorem", "mean"]).n_bags
    assert both["theorem"] > 1000 * both["spectral"] > 0 and both["mean"] > 0
    assert spectral_instance_error(10, number(10, 10, 8, 0.05), 10, 8) <= 0.05


def test_curves_hold_the_wanted_error_in_their_band_and_are_plain_json() -> None:
    found = plan(10, 10, 8, 0.05, learners=["spectral"])
    at = next(point for point in found.curve if point["n_bags"] == found.n_bags["spectral"])
    assert at["low"] < 0.05 < at["high"]
    errors = [point["error"] for point in found.by_learner()["spectral"]]
    assert errors == sorted(errors, reverse=True)
    assert json.loads(json.dumps(found.to_dict()))["n_bags"]["spectral"] == found.n_bags["spectral"]
    assert "closed form" in str(found) and "spectral" in repr(found)


def test_the_best_design_beats_the_others_of_the_same_budget() -> None:
    best = best_designs(20, rows=20_000)
    assert [design.error for design in best] == sorted(design.error for design in best)
    for size, count in ((10, 8), (50, 35), (2, 1)):
        if 2 * count != size:
            assert best[0].error <= spectral_instance_error(20, 20_000 // size, size, count)
    with pytest.raises(InvalidInputError, match="one of rows= and bags="):
        best_designs(20)


def test_what_no_number_of_bags_can_teach_has_no_number_and_a_reason() -> None:
    found = plan(10, 10, 5, 0.05, learners=["mean", "spectral"])
    assert found.n_bags["mean"] is None and "unbalanced" in found.reasons["mean"]
    assert found.n_bags["spectral"] is not None and "no number" in str(found)
    with pytest.raises(InvalidInputError, match="learners must be of"):
        plan(10, 10, 5, 0.05, learners=["guess"])
    with pytest.raises(InvalidInputError, match="error must lie"):
        plan(10, 10, 5, 0.6)
