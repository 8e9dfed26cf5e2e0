"""Bags -> logistic model by exact maximum likelihood of the counts.

Owns the likelihood of bags under Pr[label = 1 | x] = low + (high - low) sigmoid(coef·x + intercept), its sums over
bags, and the local maximum that a start leads to, under a ridge penalty. Where to start is the affair of
`bagwise.learn.starts`, how much to penalise that of `bagwise.learn.penalty`. The count of a bag is Poisson-binomial;
`bagwise.stats.poisson_binomial` holds that distribution, docs/theory/likelihood.md the derivations.

Data are seen through `BagSource.reduce` only: an evaluation is one sum over bags, exact second derivatives are sums as
well, so that the same code fits bags in memory, in files and on a cluster, in a few dozen passes.

Vocabulary: the *levels* (low, high) are the shares of reported positives among clean negatives and clean positives;
(0, 1) without label noise. Gradients are in (coef, intercept, low, high).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np

from bagwise.arrays import FloatArray
from bagwise.bags import Bags, BagSource
from bagwise.learn.levels import CLEAN, Levels
from bagwise.learn.released import released_sums
from bagwise.stats.moments import Moments
from bagwise.stats.parallel import bag_parts, in_threads, n_threads

__all__ = ["CountModel", "Fit", "LikelihoodSums", "LikelihoodTask", "Problem", "WeightedBags", "maximise"]

T = TypeVar("T")

_PART_ROWS = 1 << 13
# Beyond so many features one exact Hessian costs more than the quasi-Newton steps that it saves.
_WIDE = 256
# Steps before the first exact Hessian (far from the maximum it is not worth its price), and between later ones.
_FAR, _NEAR = 8, 8
_MEMORY = 20


@dataclass(frozen=True, slots=True, eq=False)
class CountModel:
    """Pr[label = 1 | x] = low + (high - low) sigmoid(coef·x + intercept)."""

    coef: FloatArray  # (d,)
    intercept: float
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodSums:
    """Sums over bags at one model; the matrices where asked for, else of size 0."""

    loglik: float
    gradient: FloatArray  # (d + 3,)
    hessian: FloatArray  # (d + 3, d + 3)
    outer: FloatArray  # (d + 3, d + 3): of the squares of the bags' gradients
    n_rows: float
    expected: float  # of the counts
    variance: float  # of the counts
    excess: float  # of (count - expected)^2 - variance
    noise: float  # variance of excess

    def __add__(self, other: "LikelihoodSums") -> "LikelihoodSums":
        return LikelihoodSums(
            self.loglik + other.loglik,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.outer + other.outer,
            self.n_rows + other.n_rows,
            self.expected + other.expected,
            self.variance + other.variance,
            self.excess + other.excess,
            self.noise + other.noise,
        )


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodTask:
    """Bags -> `LikelihoodSums` at a model: what `BagSource.reduce` is asked.

    Gradients are those of a model whose intercept belongs to rows relative to ``centre``: nearly uncorrelated with
    coef, and free of cancellation where features lie far from 0.
    """

    model: CountModel
    centre: FloatArray
    curvature: bool = False
    scores: bool = False

    def __call__(self, bags: Bags) -> LikelihoodSums:
        return self.weighted(bags, np.ones(bags.n_bags))

    def weighted(self, bags: Bags, weights: FloatArray) -> LikelihoodSums:
        """The sums with bag b counted weights_b times."""
        if bags.release is not None:
            return self._released(bags, weights)
        from bagwise.stats.kernels_counts import bag_curvature, bag_sums

        model, d = self.model, bags.n_features
        X = np.ascontiguousarray(bags.X)
        starts, sizes, counts = bags.starts, bags.sizes, bags.counts
        levels = (model.intercept + float(model.coef @ self.centre), model.low, model.high)

        def of(part: slice) -> LikelihoodSums:
            m, w = part.stop - part.start, weights[part]
            inputs = (X, starts[part], sizes[part], counts[part], w, self.centre, model.coef, *levels)
            terms, gradient = np.empty((m, 4)), np.zeros(d + 3)
            scores = np.empty((m if self.scores else 0, d + 3))
            bag_sums(*inputs, terms, gradient, scores)
            hessian = np.zeros((d + 3, d + 3) if self.curvature else (0, 0))
            if self.curvature:
                bag_curvature(*inputs, hessian)
            scores *= w[: len(scores), None]
            loglik, mean, var, fourth = terms.T
            return LikelihoodSums(
                float(w @ loglik),
                gradient,
                hessian,
                scores.T @ scores if self.scores else np.zeros((0, 0)),
                float(w @ sizes[part]),
                float(w @ mean),
                float(w @ var),
                float(w @ ((counts[part] - mean) ** 2 - var)),
                float(w**2 @ (2 * var**2 + fourth)),
            )

        found = in_threads(of, bag_parts(starts, _PART_ROWS), n_threads(X.size))
        total = found[0]
        for part in found[1:]:
            total = total + part
        return total

    def _released(self, bags: Bags, weights: FloatArray) -> LikelihoodSums:
        """The sums for bags whose totals were released with noise; curvature by the squares of their gradients."""
        assert bags.release is not None
        model = self.model
        levels = (model.intercept + float(model.coef @ self.centre), model.low, model.high)
        terms, scores = released_sums(bags, weights, self.centre, model.coef, *levels)
        loglik, mean, var, fourth = terms.T
        nothing = np.zeros((0, 0))
        squares = scores.T @ (scores / np.maximum(weights, 1e-300)[:, None]) if self.curvature else nothing
        return LikelihoodSums(
            float(weights @ loglik),
            scores.sum(axis=0),
            -squares,
            scores.T @ scores if self.scores else nothing,
            float(weights @ bags.sizes),
            float(weights @ mean),
            float(weights @ var),
            float(weights @ ((bags.release.values - mean) ** 2 - var)),
            float(weights**2 @ (2 * var**2 + fourth)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class WeightedBags:
    """Bags in memory, each counted ``weights`` times in the likelihood; in all else they are the bags."""

    bags: Bags
    weights: FloatArray

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self.bags.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        return self.bags.feature_names

    def reduce(self, task: Callable[[Bags], T]) -> T:
        """What the task makes of all bags."""
        if isinstance(task, LikelihoodTask):
            return cast(T, task.weighted(self.bags, self.weights))
        return task(self.bags)

    def split(self, fraction: float, rng: np.random.Generator) -> tuple["WeightedBags", "WeightedBags"]:
        """Two random parts by bags."""
        numbers = replace(self.bags, ids=np.arange(self.bags.n_bags))
        first, second = numbers.split(fraction, rng)
        return self[first.ids], self[second.ids]

    def __getitem__(self, chosen: Any) -> "WeightedBags":
        return WeightedBags(self.bags[chosen], self.weights[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is maximised: loglik - sum_j ridge_j coef_j^2 / 2, over coef, and intercept and levels if free."""

    source: BagSource
    moments: Moments
    ridge: FloatArray  # (d,)
    fit_intercept: bool = True
    levels: Levels = CLEAN

    @property
    def centre(self) -> FloatArray:
        """The point that the intercept belongs to during the search."""
        return self.moments.mean if self.fit_intercept else np.zeros(self.moments.n_features)

    def jacobian(self, of_levels: FloatArray) -> FloatArray:
        """Derivatives (d + 3, …) of (coef, intercept, low, high) in what is free, given those of the levels (2, …)."""
        d = self.moments.n_features
        known = d + int(self.fit_intercept)
        K = np.zeros((d + 3, known + of_levels.shape[1]))
        K[:known, :known] = np.eye(known)
        K[d + 1 :, known:] = of_levels
        return K


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A model, the objective and log-likelihood it attains, and how the search ended."""

    model: CountModel
    objective: float
    loglik: float
    n_evaluations: int
    converged: bool
    reason: str


def maximise(
    problem: Problem,
    start: CountModel,
    *,
    tol: float = 1e-4,
    max_steps: int = 200,
    near: bool = False,
    first_phase_only: bool = False,
) -> Fit:
    """The local maximum that the start leads to.

    Quasi-Newton steps (L-BFGS) in coordinates of curvature about 1: at first those of the features' covariance, then
    those of the exact Hessian, renewed now and then. With the Hessian's coordinates half the squared gradient is the
    gain in log-likelihood still to be had; the search ends when that is below tol. A start that is ``near`` skips the
    first phase; to compare starts it may be all there is.
    """
    surface = _Surface(problem, start)
    at = surface.origin
    wide = len(at) > _WIDE
    coordinates = _first_coordinates(problem)
    if near and not wide:
        coordinates = surface.coordinates(at, coordinates)
    exact = near and not wide
    steps = 0
    while True:
        # Without the Hessian the gain still to be had is known to about a hundred.
        bound = np.sqrt(2 * tol) if exact else np.sqrt(2e-2 * tol)
        allowed = max_steps if wide else min(_NEAR if exact else _FAR, max_steps - steps)
        at, taken, ended = _descend(surface, at, coordinates, bound, allowed)
        steps += taken
        if first_phase_only:
            return surface.fit(at, False, "only the first phase was asked for")
        if ended == "flat" and (exact or wide):
            return surface.fit(at, True, "the gain in log-likelihood still to be had is below tol")
        if steps >= max_steps:
            return surface.fit(at, False, f"max_iter, {max_steps} steps, was reached")
        if ended == "stuck" and (exact or wide):
            return surface.fit(at, True, "rounding allows no further gain")
        coordinates, exact = surface.coordinates(at, coordinates), True


# ---------------------------------------------------------------------- the surface


@dataclass(slots=True)
class _Surface:
    """The penalised negative log-likelihood over what is free: coef, the intercept, coordinates of the levels."""

    problem: Problem
    start: CountModel
    n_evaluations: int = field(default=0)
    latest: tuple[FloatArray, LikelihoodSums] | None = field(default=None)

    @property
    def origin(self) -> FloatArray:
        start, problem = self.start, self.problem
        intercept = [start.intercept + float(start.coef @ problem.centre)] if problem.fit_intercept else []
        return np.concatenate([start.coef, intercept, problem.levels.coordinates(start.low, start.high)])

    def parts(self, at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """coef (d,), the intercept of centred rows (1,) or nothing (0,), and coordinates of the levels."""
        d = self.problem.moments.n_features
        known = d + int(self.problem.fit_intercept)
        return at[:d], at[d:known], at[known:]

    def model(self, at: FloatArray) -> CountModel:
        coef, intercept, z = self.parts(at)
        shift = float(intercept[0] - coef @ self.problem.centre) if len(intercept) else 0.0
        return CountModel(coef, shift, *self.problem.levels.at(z))

    def sums(self, at: FloatArray, curvature: bool = False) -> LikelihoodSums:
        if self.latest is not None and not curvature and np.array_equal(self.latest[0], at):
            return self.latest[1]  # a Hessian brought them along, or the last step
        self.n_evaluations += 1
        found = self.problem.source.reduce(LikelihoodTask(self.model(at), self.problem.centre, curvature))
        self.latest = at, found
        return found

    def value(self, at: FloatArray) -> tuple[float, FloatArray]:
        """The objective to be minimised, and its gradient."""
        coef, intercept, z = self.parts(at)
        d, ridge, levels = len(coef), self.problem.ridge, self.problem.levels
        sums = self.sums(at)
        J, _ = levels.slopes(z)
        prior, pull, _ = levels.prior(z)
        of_coef = ridge * coef - sums.gradient[:d]
        of_intercept = -sums.gradient[d : d + len(intercept)]
        gradient = np.concatenate([of_coef, of_intercept, pull - J.T @ sums.gradient[d + 1 :]])
        return 0.5 * float(ridge @ coef**2) + prior - sums.loglik, gradient

    def hessian(self, at: FloatArray) -> FloatArray:
        coef, intercept, z = self.parts(at)
        d, levels = len(coef), self.problem.levels
        sums = self.sums(at, curvature=True)
        J, second = levels.slopes(z)
        K = self.problem.jacobian(J)
        H: FloatArray = -K.T @ sums.hessian @ K
        H[np.arange(d), np.arange(d)] += self.problem.ridge
        known = d + len(intercept)
        H[known:, known:] += np.diag(levels.prior(z)[2]) - np.tensordot(sums.gradient[d + 1 :], second, 1)
        return H

    def coordinates(self, at: FloatArray, before: FloatArray) -> FloatArray:
        """T such that the Hessian at a point is 1 in all directions of z, at = … + T z; negative curvature turned up.

        Relative to coordinates in which it was about 1 before, so that units of features do not matter.
        """
        A = before.T @ self.hessian(at) @ before
        values, vectors = np.linalg.eigh((A + A.T) / 2)
        size = np.abs(values)
        T: FloatArray = before @ (vectors / np.sqrt(np.maximum(size, 1e-10 * size.max())))
        return T

    def fit(self, at: FloatArray, converged: bool, reason: str) -> Fit:
        coef, _, z = self.parts(at)
        value, _ = self.value(at)
        penalty = 0.5 * float(self.problem.ridge @ coef**2) + self.problem.levels.prior(z)[0]
        return Fit(self.model(at), -value, penalty - value, self.n_evaluations, converged, reason)


def _first_coordinates(problem: Problem) -> FloatArray:
    """As `_Surface.coordinates`, for the curvature that labels in hand would have."""
    moments, d = problem.moments, problem.moments.n_features
    information = max(moments.n_rows * moments.proportion * (1 - moments.proportion), 1.0)
    cov = moments.cov_bag if problem.fit_intercept else moments.cov_bag + np.outer(moments.mean, moments.mean)
    A = information * cov + np.diag(problem.ridge)
    scale = 1 / np.sqrt(np.diag(A))
    values, vectors = np.linalg.eigh(A * np.outer(scale, scale))
    by_rows = 1 / np.sqrt(information)
    others = [by_rows] * problem.fit_intercept + [5 * by_rows] * problem.levels.n_free
    T = np.diag(np.concatenate([np.zeros(d), others]))
    T[:d, :d] = scale[:, None] * vectors / np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    return T


# ---------------------------------------------------------------------- the descent


def _descend(
    surface: _Surface, at: FloatArray, T: FloatArray, bound: float, max_steps: int
) -> tuple[FloatArray, int, str]:
    """L-BFGS in the coordinates z of at + T z, until the gradient is below the bound, or no step gains.

    Returns where it ended, the steps taken, and "flat", "stuck" or "steps".
    """
    value, gradient = surface.value(at)
    g = T.T @ gradient
    pairs: list[tuple[FloatArray, FloatArray, float]] = []
    for step_number in range(max_steps):
        if np.sqrt(g @ g) <= bound:
            return at, step_number, "flat"
        direction = -_inverse_times(g, pairs)
        slope = float(g @ direction)
        if not slope < 0:
            direction, slope, pairs = -g, -float(g @ g), []
        length, lower, upper = 1.0, 0.0, np.inf
        # The first step has nothing to go by but the coordinates; a tenth of the way from the origin is far enough.
        if not pairs:
            length = min(1.0, max(0.1 * _size(at, T), 1.0) / float(np.linalg.norm(direction)))
        for _ in range(40):  # bisection to the weak Wolfe conditions
            trial = at + length * (T @ direction)
            new_value, gradient = surface.value(trial)
            new_g = T.T @ gradient
            if not new_value <= value + 1e-4 * length * slope:
                upper = length
            elif float(new_g @ direction) < 0.9 * slope:
                lower = length
            else:
                break
            length = (lower + upper) / 2 if np.isfinite(upper) else 2 * lower
        else:
            if not new_value < value:
                return at, step_number, "stuck"
        s, y = length * direction, new_g - g
        if (sy := float(s @ y)) > 1e-12 * float(y @ y):
            pairs = [*pairs[-_MEMORY + 1 :], (s, y, sy)]
        at, value, g = trial, new_value, new_g
    return at, max_steps, "flat" if np.sqrt(g @ g) <= bound else "steps"


def _inverse_times(g: FloatArray, pairs: list[tuple[FloatArray, FloatArray, float]]) -> FloatArray:
    """The two-loop recursion, from the identity: the coordinates have the scale right."""
    q = g.copy()
    shares = []
    for s, y, sy in reversed(pairs):
        shares.append(float(s @ q) / sy)
        q -= shares[-1] * y
    for (s, y, sy), share in zip(pairs, reversed(shares), strict=True):
        q += (share - float(y @ q) / sy) * s
    return q


def _size(at: FloatArray, T: FloatArray) -> float:
    """Length of a point in the coordinates."""
    return float(np.linalg.norm(np.linalg.lstsq(T, at, rcond=None)[0]))
