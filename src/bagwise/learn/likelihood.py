"""Bags -> logistic model by exact maximum likelihood of the counts.

Owns the likelihood of bags under Pr[label = 1 | x] = low + (high - low) sigmoid(coef·x + intercept), its sums over bags
and its maximisation under a ridge penalty. The count of a bag is Poisson-binomial; `bagwise.stats.poisson_binomial`
holds that distribution, docs/theory/likelihood.md the derivations.

Data are seen through `BagSource.reduce` only: each evaluation is one sum over bags, so that the same code fits bags in
memory, in files and on a cluster.

Vocabulary: the *levels* (low, high) are the shares of reported positives among clean negatives and clean positives;
(0, 1) without label noise.
"""

from dataclasses import dataclass, replace

import numpy as np

from bagwise.arrays import FloatArray
from bagwise.bags import Bags, BagSource
from bagwise.stats.moments import Moments
from bagwise.stats.parallel import bag_parts, in_threads, n_threads

__all__ = ["CountModel", "Fit", "LikelihoodSums", "Problem", "flipped", "likelihood_sums", "maximise", "sloped"]

_PART_ROWS = 1 << 15
# Levels closer than this cannot be told from no dependence on x at all.
_LEAST_CONTRAST = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class CountModel:
    """Pr[label = 1 | x] = low + (high - low) sigmoid(coef·x + intercept)."""

    coef: FloatArray  # (d,)
    intercept: float
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodSums:
    """Sums over bags at one model. Gradients are in (coef, intercept, low, high): shape (d + 3,)."""

    n_bags: int
    loglik: float
    gradient: FloatArray

    def __add__(self, other: "LikelihoodSums") -> "LikelihoodSums":
        return LikelihoodSums(self.n_bags + other.n_bags, self.loglik + other.loglik, self.gradient + other.gradient)


@dataclass(frozen=True, slots=True, eq=False)
class likelihood_sums:
    """Bags -> `LikelihoodSums` at a model: a task for `BagSource.reduce`.

    Rows are taken relative to ``centre``; the intercept's entry of the gradient belongs to the centred rows.
    """

    model: CountModel
    centre: FloatArray

    def __call__(self, bags: Bags) -> LikelihoodSums:
        from bagwise.stats.kernels_counts import bag_sums

        model, d = self.model, bags.n_features
        X = np.ascontiguousarray(bags.X)
        starts, intercept = bags.starts, model.intercept + float(model.coef @ self.centre)

        def of(part: slice) -> LikelihoodSums:
            m = part.stop - part.start
            terms, scores = np.empty((m, 3)), np.empty((m, d + 3))
            bag_sums(
                X, starts[part], bags.sizes[part], bags.counts[part], self.centre, model.coef, intercept,
                model.low, model.high, False, terms, scores, scores,
            )  # fmt: skip
            return LikelihoodSums(m, float(terms[:, 0].sum()), scores.sum(axis=0))

        parts = bag_parts(bags.sizes, _PART_ROWS)
        found = in_threads(of, parts, n_threads(X.size))
        total = found[0]
        for part in found[1:]:
            total = total + part
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is maximised: loglik - sum_j ridge_j coef_j^2 / 2, over coef, and intercept and levels if free."""

    source: BagSource
    moments: Moments
    ridge: FloatArray  # (d,)
    fit_intercept: bool = True
    free_levels: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A model, the objective and log-likelihood it attains, and how the search ended."""

    model: CountModel
    objective: float
    loglik: float
    n_steps: int
    converged: bool
    reason: str


def maximise(problem: Problem, start: CountModel, *, max_steps: int = 500, tol: float = 1e-5) -> Fit:
    """The local maximum that the start leads to, by L-BFGS in coordinates in which the curvature is about 1."""
    from scipy.optimize import minimize

    d, moments = problem.moments.n_features, problem.moments
    centre = moments.mean if problem.fit_intercept else np.zeros(d)
    T = _coordinates(problem)
    inverse = np.linalg.pinv(T)
    unit = 1 / np.sqrt(max(moments.n_rows * moments.proportion * (1 - moments.proportion), 1.0))

    def model_at(z: FloatArray) -> CountModel:
        coef = T @ z[:d]
        intercept = z[d] * unit - float(coef @ centre) if problem.fit_intercept else 0.0
        levels = (float(z[d + 1]), float(z[d + 2])) if problem.free_levels else (start.low, start.high)
        return CountModel(coef, float(intercept), *levels)

    def value(z: FloatArray) -> tuple[float, FloatArray]:
        model = model_at(z)
        if model.high - model.low < _LEAST_CONTRAST:
            return np.inf, np.zeros_like(z)
        sums = problem.source.reduce(likelihood_sums(model, centre))
        gradient = np.zeros_like(z)
        gradient[:d] = T.T @ (problem.ridge * model.coef - sums.gradient[:d])
        gradient[d] = -sums.gradient[d] * unit if problem.fit_intercept else 0.0
        if problem.free_levels:
            gradient[d + 1 :] = -sums.gradient[d + 1 :]
        return -sums.loglik + 0.5 * float(problem.ridge @ model.coef**2), gradient

    first = np.concatenate(
        [inverse @ start.coef, [(start.intercept + float(start.coef @ centre)) / unit, start.low, start.high]]
    )
    bounds = [(None, None)] * (d + 1) + [(0.0, 1.0 - _LEAST_CONTRAST), (_LEAST_CONTRAST, 1.0)]
    found = minimize(
        value, first, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": max_steps, "maxcor": 20, "gtol": tol * np.sqrt(moments.n_bags) / 10, "ftol": 1e-11},
    )  # fmt: skip
    model = model_at(found.x)
    loglik = -float(found.fun) + 0.5 * float(problem.ridge @ model.coef**2)
    reason = "the gradient vanishes" if found.success else f"stopped after {found.nit} steps"
    return Fit(model, -float(found.fun), loglik, int(found.nit), bool(found.success), reason)


def _coordinates(problem: Problem) -> FloatArray:
    """T (d, d): coef = T z makes the curvature about 1 in all directions of z, collinear features or not."""
    moments = problem.moments
    A = moments.n_rows * moments.proportion * (1 - moments.proportion) * moments.cov_bag + np.diag(problem.ridge)
    scale = 1 / np.sqrt(np.diag(A))
    values, vectors = np.linalg.eigh(A * np.outer(scale, scale))
    T: FloatArray = scale[:, None] * vectors / np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    return T


def sloped(moments: Moments, normal: FloatArray, slope: float = 3.0, low: float = 0.0, high: float = 1.0) -> CountModel:
    """The model along a normal whose log-odds have the given standard deviation, at the bags' share of positives."""
    from scipy.special import ndtri

    spread = float(np.sqrt(normal @ moments.cov_bag @ normal))
    coef = normal * (slope / spread)
    # E sigmoid(z) of a normal z is about Phi(mean / sqrt(var + 1.7^2)).
    p = float(np.clip(moments.proportion, 1e-6, 1 - 1e-6))
    middle = float(ndtri(p)) * np.sqrt(slope**2 + 1.7**2)
    return CountModel(coef, float(middle - coef @ moments.mean), low, high)


def flipped(model: CountModel, moments: Moments) -> CountModel:
    """The start on the opposite side with the same share of positives."""
    middle = model.intercept + float(model.coef @ moments.mean)
    return replace(model, coef=-model.coef, intercept=middle + float(model.coef @ moments.mean))
