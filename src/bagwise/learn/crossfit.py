"""Bags -> any classifier that takes weights, by expectation maximisation with predictions out of fold.

Owns the alternation between posterior labels (given each bag's count, exact) and a classifier fitted to them. The
classifier is a function here: rows and targets in [0, 1] -> a function from rows to log-odds. Refuses to know what it
is.

Why out of fold: a flexible classifier repeats the targets it was given, so that in-sample predictions confirm whatever
the first guess was. Predictions for bags it has not seen do not, and their count likelihood says honestly which round
is best. Why calibrated: forests and boosted trees shrink or exaggerate probabilities, the E-step takes them at their
word, and errors of confidence would grow from round to round; two numbers fitted by the count likelihood undo it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from bagwise.arrays import FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.stats.poisson_binomial import bag_posterior

__all__ = ["Calibration", "CrossFit", "Learn", "bag_folds", "calibration", "cross_fit", "out_of_fold"]

Predict: TypeAlias = Callable[[FloatArray], FloatArray]
Learn: TypeAlias = Callable[[FloatArray, FloatArray], Predict]

# Rounds without a better likelihood after which there is little hope of one.
_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Calibration:
    """Log-odds -> slope · log-odds + shift."""

    slope: float
    shift: float

    def __call__(self, log_odds: FloatArray) -> FloatArray:
        calibrated: FloatArray = self.slope * log_odds + self.shift
        return calibrated


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """The best round: the targets to fit all rows to, what makes predictions calibrated, and the way there.

    ``history`` holds the log-likelihood per row of the counts, by out-of-fold predictions: of the start, then of each
    round. ``best`` is the number of the best round, from 1.
    """

    targets: FloatArray  # (n,)
    calibration: Calibration
    history: tuple[float, ...]
    best: int
    settled: bool


def cross_fit(
    bags: Bags, learn: Learn, start: FloatArray, folds: IntArray, *, max_rounds: int, damping: float
) -> CrossFit:
    """Rounds of E-step and M-step until the likelihood of counts out of fold stops to rise.

    start (n,) holds log-odds of the rows, best out of fold as well; folds (m,) the fold of each bag. Each round fits
    the classifier once per fold. ``damping`` is the weight of the last round's log-odds in the next E-step.
    """
    rows = folds[bags.row_bags()]
    log_odds, found = start, bag_posterior(start, bags)
    history = [float(found.loglik.sum()) / bags.n_rows]
    best: tuple[FloatArray, Calibration] | None = None
    at = 0
    for number in range(1, max_rounds + 1):
        targets = found.labels
        raw = out_of_fold(learn, bags.X, targets, rows)
        calibrated = calibration(raw, bags)
        new = calibrated(raw)
        history.append(float(bag_posterior(new, bags).loglik.sum()) / bags.n_rows)
        if best is None or history[-1] > history[at]:
            best, at = (targets, calibrated), number
        log_odds = damping * log_odds + (1 - damping) * new
        found = bag_posterior(log_odds, bags)
        if number - at >= _PATIENCE or np.abs(found.labels - targets).max() < 1e-3:
            return CrossFit(*best, tuple(history), at, True)
    assert best is not None  # max_rounds is at least 1
    return CrossFit(*best, tuple(history), at, False)


def out_of_fold(learn: Learn, X: FloatArray, targets: FloatArray, folds: IntArray) -> FloatArray:
    """Log-odds of each row by the classifier that was fitted to the other folds; one fold: to all rows."""
    if folds.max() == 0:
        return learn(X, targets)(X)
    log_odds = np.empty(len(X))
    for fold in range(int(folds.max()) + 1):
        out = folds == fold
        log_odds[out] = learn(X[~out], targets[~out])(X[out])
    return log_odds


def calibration(log_odds: FloatArray, bags: Bags) -> Calibration:
    """Slope and shift under which the counts of the bags are likeliest, the slope at least 0.05."""
    scale = max(float(np.abs(log_odds).max()), 1.0)
    z = log_odds / scale

    def value(at: FloatArray) -> tuple[float, FloatArray]:
        eta = at[0] * z + at[1]
        found = bag_posterior(eta, bags)
        pull = found.labels - expit(eta)
        return -float(found.loglik.sum()), np.array([-float(pull @ z), -float(pull.sum())])

    # Bounds for bags of one class, or separated ones, where the likelihood rises without end.
    bounds = [(0.05 * scale, 20.0 * scale), (-50.0, 50.0)]
    slope, shift = minimize(value, [scale, 0.0], jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(float(slope) / scale, float(shift))


def bag_folds(n_bags: int, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Fold of each bag, at random and of about equal size."""
    folds: IntArray = rng.permutation(np.arange(n_bags) % n_folds)
    return folds
