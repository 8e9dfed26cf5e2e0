"""Logistic regression on targets that need not be labels: the one convex problem that several learners share.

Owns the minimum of sum_i softplus(s_i) - t_i s_i + |w|^2 / (2 C) with s = X w + b, for any real targets t: for t in
{0, 1} it is ridge logistic regression, for posterior probabilities the M-step of EM, for debiased targets EasyLLP.
The intercept is not penalised.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from bagwise.arrays import FloatArray

__all__ = ["SoftLogistic", "soft_logistic"]

_MAX_STEPS = 100


@dataclass(frozen=True, slots=True, eq=False)
class SoftLogistic:
    """Coefficients, the objective they attain, steps taken, and whether these came to rest."""

    coef: FloatArray  # (d,)
    intercept: float
    objective: float
    n_steps: int
    converged: bool


def soft_logistic(
    X: FloatArray, targets: FloatArray, C: float, *, fit_intercept: bool, start: FloatArray | None = None
) -> SoftLogistic:
    """The minimiser, by Newton's method with step halving.

    X (n, d) float64, targets (n,); start (d + 1,) holds coefficients and intercept. Each step costs one Gram matrix.
    The objective is convex whatever the targets, and 1 / C > 0 keeps the coefficients finite; an intercept is finite if
    the mean target lies inside (0, 1).
    """
    d = X.shape[1]
    ridge = np.append(np.full(d, 1.0 / C), 0.0)
    z = np.zeros(d + 1) if start is None else start.astype(np.float64).copy()
    if not fit_intercept:
        z[d] = 0.0

    def objective(z: FloatArray, s: FloatArray) -> float:
        return float(np.logaddexp(0, s).sum() - targets @ s + 0.5 * ridge @ z**2)

    s = X @ z[:d] + z[d]
    value = objective(z, s)
    for step_number in range(_MAX_STEPS):
        probability = expit(s)
        gradient = np.append(X.T @ (probability - targets), (probability - targets).sum()) + ridge * z
        curvature = probability * (1 - probability)
        H = np.empty((d + 1, d + 1))
        H[:d, :d] = X.T @ (X * curvature[:, None])
        H[:d, d] = H[d, :d] = X.T @ curvature
        H[d, d] = curvature.sum()
        H[np.diag_indices(d + 1)] += ridge
        if not fit_intercept:
            gradient[d], H[d, :], H[:, d], H[d, d] = 0.0, 0.0, 0.0, 1.0
        # A breath of damping where saturated rows leave the Hessian singular.
        H[np.diag_indices(d + 1)] += 1e-12 * max(float(np.trace(H)) / (d + 1), 1e-300)
        step = np.linalg.solve(H, gradient)
        decrease = float(gradient @ step)
        if decrease <= 1e-10 * max(abs(value), 1.0):
            return SoftLogistic(z[:d], float(z[d]), value, step_number, True)
        moved, length = X @ step[:d] + step[d], 1.0
        while True:
            trial, at = z - length * step, s - length * moved
            reached = objective(trial, at)
            if reached <= value - 1e-4 * length * decrease:
                break
            length /= 2
            if length < 1e-10:  # rounding ends the descent
                return SoftLogistic(z[:d], float(z[d]), value, step_number, True)
        z, s, value = trial, at, reached
    return SoftLogistic(z[:d], float(z[d]), value, _MAX_STEPS, False)
