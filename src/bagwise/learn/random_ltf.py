"""Linear thresholds by chance: the best of random ones, and the one that matches a single total.

Owns the baselines that need no statistics: the paper's random LTF (R) and its class-ratio learner, which answers a
single bag and promises nothing of single rows.
"""

from dataclasses import dataclass

import numpy as np

from bagwise.arrays import FloatArray
from bagwise.bags import Bags
from bagwise.learn.offsets import best_threshold, matching_threshold, satisfied_intervals
from bagwise.ltf import LTF

__all__ = ["BestOfRandom", "best_random_ltf", "class_ratio_ltf"]


@dataclass(frozen=True, slots=True)
class BestOfRandom:
    """The candidate that satisfied most bags, and how many it satisfied."""

    ltf: LTF
    satisfied: int


def best_random_ltf(bags: Bags, n_candidates: int, rng: np.random.Generator, *, with_offset: bool) -> BestOfRandom:
    """Of random normals the one that satisfies most bags [BSR23, column R].

    Homogeneous candidates are taken as they are drawn; with an offset, sign and offset of each are swept exactly.
    Costs one product of the rows with the candidates.
    """
    normals = rng.standard_normal((n_candidates, bags.n_features))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    best: BestOfRandom | None = None
    for normal in normals:
        found = _swept(bags, normal) if with_offset else _as_drawn(bags, normal)
        if best is None or found.satisfied > best.satisfied:
            best = found
    assert best is not None  # n_candidates >= 1 is checked at the door
    return best


def class_ratio_ltf(bags: Bags, rng: np.random.Generator) -> LTF:
    """A random normal with the offset that predicts the total number of positives [BSR23, appendix on class ratios]."""
    normal = rng.standard_normal(bags.n_features)
    normal /= np.linalg.norm(normal)
    return LTF(normal, -matching_threshold(bags.X @ normal, int(bags.counts.sum())))


def _as_drawn(bags: Bags, normal: FloatArray) -> BestOfRandom:
    low, high = satisfied_intervals(bags.X @ normal, bags)
    return BestOfRandom(LTF(normal, 0.0), int(((low[0] <= 0) & (high[0] > 0)).sum()))


def _swept(bags: Bags, normal: FloatArray) -> BestOfRandom:
    found = best_threshold(bags.X @ normal, bags)
    return BestOfRandom(LTF(found.sign * normal, -found.threshold), found.satisfied)
