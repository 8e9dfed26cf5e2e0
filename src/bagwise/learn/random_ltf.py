"""Linear thresholds by chance: the best of random ones, and the one that matches a single total.

Owns the baselines that need no statistics: the paper's random LTF (R) and its class-ratio learner, which answers a
single bag and promises nothing of single rows.
"""

from dataclasses import dataclass

import numpy as np

from bagwise.arrays import FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.learn.offsets import best_threshold, matching_threshold, scores_along
from bagwise.ltf import LTF

__all__ = ["BestOfRandom", "best_random_ltf", "class_ratio_ltf"]


@dataclass(frozen=True, slots=True)
class BestOfRandom:
    """The candidate that satisfied most bags, and how many it satisfied."""

    ltf: LTF
    satisfied: int


def best_random_ltf(bags: Bags, n_candidates: int, rng: np.random.Generator, *, with_offset: bool) -> BestOfRandom:
    """Of random normals the one that satisfies most bags [BSR23, column R].

    Homogeneous candidates are taken as they are drawn, and cost one product with the rows; with an offset, sign and
    offset of each are swept exactly. Of equal candidates the first wins.
    """
    normals = rng.standard_normal((n_candidates, bags.n_features))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    if with_offset:
        return max((_swept(bags, normal) for normal in normals), key=lambda found: found.satisfied)
    satisfied = _satisfied_as_drawn(bags, normals)
    best = int(satisfied.argmax())
    return BestOfRandom(LTF(normals[best], 0.0), int(satisfied[best]))


def class_ratio_ltf(bags: Bags, rng: np.random.Generator) -> LTF:
    """A random normal with the offset that predicts the total number of positives [BSR23, appendix on class ratios]."""
    normal = rng.standard_normal(bags.n_features)
    normal /= np.linalg.norm(normal)
    return LTF(normal, -matching_threshold(scores_along(normal, bags), int(bags.counts.sum())))


def _satisfied_as_drawn(bags: Bags, normals: FloatArray) -> IntArray:
    """Bags that each homogeneous candidate satisfies; as many scores at a time as the rows have numbers."""
    satisfied = np.empty(len(normals), np.int64)
    for start in range(0, len(normals), bags.n_features):
        some = slice(start, start + bags.n_features)
        predicted = np.add.reduceat(bags.X @ normals[some].T > 0, bags.starts[:-1], axis=0, dtype=np.int64)
        satisfied[some] = (predicted == bags.counts[:, None]).sum(axis=0)
    return satisfied


def _swept(bags: Bags, normal: FloatArray) -> BestOfRandom:
    found = best_threshold(scores_along(normal, bags), bags)
    return BestOfRandom(LTF(found.sign * normal, -found.threshold), found.satisfied)
