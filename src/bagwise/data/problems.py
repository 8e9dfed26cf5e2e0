"""Random problems: a threshold and a Gaussian to draw bags from.

Owns the one recipe by which the program and the examples make up data, and its form for more rows than memory holds.
Refuses to draw bags itself; that is the oracle's work.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bagwise.data.io import bags_table, write_tables
from bagwise.data.oracles import BagOracle
from bagwise.ltf import LTF

__all__ = ["random_oracle", "write_sample"]

_PART_NUMBERS = 1 << 22  # drawn at a time, and one row group: 32 MiB


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


def write_sample(
    oracle: BagOracle, n_bags: int, rng: np.random.Generator, path: str | os.PathLike[str], *, with_labels: bool = False
) -> None:
    """Bags of the oracle to a file, drawn and written part by part: memory does not grow with their number."""
    d = len(oracle.mean)
    at_once = max(_PART_NUMBERS // (oracle.size * d), 1)

    def tables() -> Iterator[Any]:
        for first in range(0, n_bags, at_once):
            bags, labels = oracle.sample_labelled(min(at_once, n_bags - first), rng)
            yield bags_table(replace(bags, ids=bags.ids + first), labels=labels if with_labels else None)

    write_tables(tables(), path, noise=[f"x{j}" for j in range(d)])
