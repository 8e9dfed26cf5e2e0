"""Maximum likelihood of the probability of a label by bin, and how far the likelihood lets any figure go.

Owns the fit under an order of the bins, the extreme of a smooth figure where the likelihood is not much lower, and the
directions in which the fit is free. Knows nothing of models or of what figures mean. docs/theory/assessment.md derives
it.

Newton steps throughout; the quadratic programme of each, under the order, is one of non-negative least squares in the
increments from bin to bin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import lsq_linear, nnls

from bagwise.arrays import FloatArray
from bagwise.stats.binned_counts import LEAST, BinnedCounts, CountTerms

__all__ = ["Order", "ProbabilityFit", "SmoothFigure", "fit_probabilities"]

Order = Literal["rising", "falling", "free"]

#: A figure of the probabilities by bin: its value and gradient.
SmoothFigure = Callable[[FloatArray], tuple[float, FloatArray]]

_MOST = 1 - LEAST
_STEPS = 40


@dataclass(frozen=True, slots=True, eq=False)
class ProbabilityFit:
    """The most likely probabilities by bin under an order.

    Attributes
    ----------
    data : BinnedCounts
    order : "rising", "falling" or "free"
    r : array of shape (B,)
    terms : CountTerms
        The likelihood there.
    """

    data: BinnedCounts
    order: Order
    r: FloatArray
    terms: CountTerms

    @property
    def loglik(self) -> float:
        """The log-likelihood at the maximum."""
        return self.terms.loglik

    def free_directions(self) -> FloatArray:
        """Basis (B, f) of the changes that leave active bounds alone: one for each run of equal, uncertain bins."""
        equal = np.diff(self.r) == 0 if self.order != "free" else np.zeros(len(self.r) - 1, bool)
        run = np.concatenate([[0], np.cumsum(~equal)])
        inside = (self.r > 2 * LEAST) & (self.r < 1 - 2 * LEAST)
        basis = ((run[:, None] == np.arange(run[-1] + 1)) & inside[:, None]).astype(np.float64)
        kept: FloatArray = basis[:, basis.any(axis=0)]
        return kept

    def covariance(self) -> FloatArray:
        """Inverse information along the free directions (B, B)."""
        Z = self.free_directions()
        if Z.shape[1] == 0:
            return np.zeros_like(self.terms.information)
        covariance: FloatArray = Z @ np.linalg.solve(_positive_definite(Z.T @ self.terms.information @ Z), Z.T)
        return covariance

    def expansion(self) -> Callable[..., CountTerms]:
        """The second-order expansion of the log-likelihood around its maximum, in place of ``data.at``."""
        H, here = _positive_definite(self.terms.information), self.terms

        def at(r: FloatArray, *, curvature: bool = True) -> CountTerms:
            step = r - self.r
            value = here.loglik + float(here.gradient @ step - step @ H @ step / 2)
            return CountTerms(value, here.gradient - H @ step, here.scores, H)

        return at

    def extreme(
        self, figure: SmoothFigure, sign: int, drop: float, likelihood: Callable[..., CountTerms] | None = None
    ) -> float:
        """Largest (sign 1) or smallest (-1) value of a figure where the log-likelihood is at most ``drop`` lower.

        Sequential quadratic programming: the figure's tangent is followed as far as the second-order expansion of the
        likelihood allows, and both are expanded anew there. A multiplier on the exact likelihood would not do: bins
        without an event have a straight likelihood, on which it jumps.
        """
        at = self.data.at if likelihood is None else likelihood
        r, terms, value = self.r, self.terms, figure(self.r)[0]
        if drop <= 0:
            return value
        goal, pull, best = self.loglik - drop, 0.0, sign * value
        for _ in range(_STEPS):
            slope: FloatArray = sign * figure(r)[1]
            H = _positive_definite(terms.information)
            proposal, pull = _furthest(self.order, H, r, terms.gradient, slope, terms.loglik - goal, drop, pull)
            there, reach = at(proposal), 1.0
            while there.loglik < goal - 0.5 * drop and reach > 1e-3:  # the expansion was trusted too far
                reach /= 2
                there = at(r + reach * (proposal - r))
            r, terms = (proposal if reach == 1 else r + reach * (proposal - r)), there
            # What is left to the goal, or is too much, moves the figure by 1 / pull at the extreme.
            here = sign * figure(r)[0]
            near = 0.25 * abs(here - sign * value)
            reached = here + float(np.clip((terms.loglik - goal) / pull, -near, near))
            moved, best = abs(reached - best), reached
            if reach == 1 and abs(terms.loglik - goal) < 0.1 * drop and moved < 0.02 * abs(reached - sign * value):
                break
        return float(sign * max(best, sign * value))


def fit_probabilities(
    data: BinnedCounts, order: Order, start: FloatArray, *, tolerance: float = 1e-5, max_steps: int = 100
) -> ProbabilityFit:
    """Newton steps under the order, damped by the information of known labels until the likelihood grows."""
    r = _clipped(order, start)
    terms, damping = data.at(r), 0.0
    for _ in range(max_steps):
        H = _positive_definite(terms.information + damping * np.diag(data.totals / (r * (1 - r))))
        proposal = _quadratic(order, H, terms.gradient + H @ r)
        gain = float(terms.gradient @ (proposal - r))
        if gain < tolerance:
            break
        tried = data.at(proposal)
        if tried.loglik < terms.loglik + 1e-4 * gain - 1e-10 * abs(terms.loglik):
            damping = max(4 * damping, 0.02)
            if damping > 1e4:
                break
            continue
        r, terms, damping = proposal, tried, damping / 8 if damping > 0.02 else 0.0
    return ProbabilityFit(data, order, r, terms)


def _furthest(
    order: Order,
    H: FloatArray,
    r: FloatArray,
    gradient: FloatArray,
    slope: FloatArray,
    slack: float,
    drop: float,
    pull: float,
) -> tuple[FloatArray, float]:
    """The probabilities furthest along ``slope`` where gradient·step - step H step / 2 >= -slack, to 2 % of ``drop``,
    and the multiplier; searched from ``pull``."""
    if pull <= 0:
        pull = float(np.sqrt(2 * drop / max(float(slope @ np.linalg.solve(H, slope)), 1e-300)))
    low, high = 0.0, np.inf
    linear = gradient + H @ r
    for _ in range(40):
        found = _quadratic(order, H, linear + pull * slope)
        step = found - r
        left = float(gradient @ step - step @ H @ step / 2) + slack
        if abs(left) < 0.02 * drop or pull > 1e15:
            break
        low, high = (pull, high) if left > 0 else (low, pull)
        # The likelihood lost goes with the square of the pull.
        guess = pull * float(np.sqrt(drop / max(drop - left, 0.05 * drop)))
        pull = guess if low < guess < high else 3 * pull if np.isinf(high) else (low + high) / 2
        if high - low < 1e-9 * high:
            break
    return found, pull


def _positive_definite(H: FloatArray) -> FloatArray:
    """H with its eigenvalues, on the scale of its diagonal, made positive: absolute values, no less than 1e-6."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-12))
    values, vectors = np.linalg.eigh(H / np.outer(scale, scale))
    if values[0] > 1e-6:
        return H
    fixed: FloatArray = (vectors * np.maximum(np.abs(values), 1e-6)) @ vectors.T * np.outer(scale, scale)
    return fixed


# ---------------------------------------------------------------------- under an order


def _clipped(order: Order, r: FloatArray) -> FloatArray:
    """Probabilities near the order, made to keep it."""
    r = np.clip(r, LEAST, _MOST)
    if order == "rising":
        r = np.maximum.accumulate(r)
    elif order == "falling":
        r = np.maximum.accumulate(r[::-1])[::-1].copy()
    return r


def _quadratic(order: Order, H: FloatArray, linear: FloatArray) -> FloatArray:
    """argmax linear·r - r H r / 2 over probabilities in order."""
    if order == "falling":
        return _quadratic("rising", H[::-1, ::-1], linear[::-1])[::-1].copy()
    scale = 1 / np.sqrt(np.diag(H))
    R = np.linalg.cholesky(H * np.outer(scale, scale)).T / scale  # H = R' R
    goal = solve_triangular(R, linear, trans="T", check_finite=False)
    if order == "free":
        return np.clip(lsq_linear(R, goal, (LEAST, _MOST), method="bvls").x, LEAST, _MOST)
    # r = LEAST + cumulated increments; increments, and the slack that is left to the top, are not negative.
    B = len(linear)
    heavy = 1e3 * float(np.abs(R).max())
    A = np.zeros((B + 1, B + 1))
    A[:B, :B] = np.cumsum(R[:, ::-1], axis=1)[:, ::-1]
    A[B] = heavy
    increments, _ = nnls(A, np.concatenate([goal - LEAST * A[:B, 0], [heavy * (_MOST - LEAST)]]))
    r: FloatArray = np.minimum(LEAST + np.cumsum(increments[:B]), _MOST)
    return r
