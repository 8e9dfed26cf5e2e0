"""Random problems: a threshold and a Gaussian to draw bags from.

Owns the one recipe by which the program and the examples make up data. Refuses to draw bags itself; that is the
oracle's work.
"""

from typing import Any

import numpy as np

from bagwise.data.oracles import BagOracle
from bagwise.ltf import LTF

__all__ = ["random_oracle"]


def random_oracle(
    n_features: int,
    *,
    size: int,
    count: Any,
    rng: np.random.Generator,
    offset: float = 0.0,
    random_mean: bool = False,
    flip: float = 0.0,
    mean_scale: float = 1.0,
    cov_ridge: float = 1.0,
) -> BagOracle:
    """An oracle with a uniform normal of length 1 and covariance A A^T / d + cov_ridge I, A standard normal.

    With a ridge of 1 the published accuracies of the random baseline come out. The mean is 0, or mean_scale times
    standard normal.
    """
    normal = rng.standard_normal(n_features)
    factor = rng.standard_normal((n_features, n_features))
    cov = factor @ factor.T / n_features + cov_ridge * np.eye(n_features)
    mean = mean_scale * rng.standard_normal(n_features) if random_mean else np.zeros(n_features)
    return BagOracle(LTF(normal / np.linalg.norm(normal), offset), mean, cov, size=size, count=count, flip=flip)
