"""Fit the mean predicted probability of each bag to its proportion [AC17].

Minimises sum_b -p log m_b - (1 - p) log(1 - m_b) + |w|^2 / (2 C), where m_b is the mean of sigmoid(x w + b) over a bag:
the loss that most LLP networks use, here with a linear model. It looks at means only, so a constant fits bags of one
proportion perfectly and nothing is learnt from them.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.errors import NotIdentifiableError
from bagwise.learn.soft_labels import SoftLogistic

__all__ = ["bag_loss_logistic"]


def bag_loss_logistic(bags: Bags, C: float, *, fit_intercept: bool, max_steps: int) -> SoftLogistic:
    """The minimiser from w = 0 by L-BFGS; a local one, as the loss is not convex for bags of several rows."""
    p = bags.proportions
    if np.ptp(p) == 0:
        raise NotIdentifiableError(
            f"the bag loss learns from the variation of the proportions; got {p[0]:g} in all bags, "
            "which a constant fits. Use BagLogisticRegression or SpectralLTF."
        )
    d = bags.n_features
    # Centred, scaled columns: L-BFGS then takes few steps; the penalty stays that of the columns as given.
    X = bags.X.astype(np.float64)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    shift = centre if fit_intercept else np.zeros(d)
    X -= shift
    X /= scale
    starts, sizes = bags.starts[:-1], bags.sizes
    tiny = 1e-12

    def loss(z: FloatArray) -> tuple[float, FloatArray]:
        w = z[:d] / scale
        probability = expit(X @ z[:d] + z[d])
        m = np.clip(np.add.reduceat(probability, starts) / sizes, tiny, 1 - tiny)
        value = -(p @ np.log(m) + (1 - p) @ np.log1p(-m)) + w @ w / (2 * C)
        pull = np.repeat((m - p) / (m * (1 - m)) / sizes, sizes) * probability * (1 - probability)
        return float(value), np.append(X.T @ pull + w / scale / C, pull.sum() if fit_intercept else 0.0)

    share = float(np.clip(bags.counts.sum() / bags.n_rows, 1e-6, 1 - 1e-6))
    start = np.append(np.zeros(d), logit(share) if fit_intercept else 0.0)
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_steps, "ftol": 1e-12, "gtol": 1e-7}
    )
    coef = found.x[:d] / scale
    return SoftLogistic(coef, float(found.x[d] - coef @ shift), float(found.fun), int(found.nit), bool(found.success))
