"""How much to penalise: the C under which held-out bags are likeliest.

Owns the grid, the splits by bags and the choice. A heavy penalty costs several points of accuracy on clean totals, a
light one as much on noisy ones, so that no fixed C will do.
"""

from dataclasses import dataclass, replace

import numpy as np

from bagwise.bags import Bags
from bagwise.learn.likelihood import CountModel, LikelihoodTask
from bagwise.learn.starts import Search
from bagwise.stats.moments import BagMoments

__all__ = ["GRID", "Choice", "chosen_penalty"]

GRID = tuple(10.0**e for e in range(-2, 6))

_TRAIN = 0.75
# Held-out bags that all splits together should have, and the most splits.
_HELD_BAGS, _MOST_SPLITS = 250, 3
_FEWEST_BAGS = 8
# log-likelihood that the fits of a split may miss.
_COARSE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The chosen C, a model fitted with it to a part of the bags, and held-out log-likelihood per bag at each C."""

    C: float
    near: CountModel | None
    scores: dict[float, float]


def chosen_penalty(search: Search, rng: np.random.Generator) -> Choice:
    """The C of the grid with the largest held-out log-likelihood; 1 where bags are too few to hold some out."""
    n_bags = int(search.moments.n_bags)
    splits = int(np.clip(np.ceil(_HELD_BAGS / max((1 - _TRAIN) * n_bags, 1)), 1, _MOST_SPLITS))
    scores = dict.fromkeys(GRID, 0.0)
    held_bags = 0
    models: dict[float, CountModel] = {}
    for _ in range(splits if n_bags >= _FEWEST_BAGS else 0):
        train, held = search.source.split(_TRAIN, rng)
        moments = train.reduce(BagMoments.from_bags).finalize()
        if not 0 < moments.proportion < 1 or (moments.count_scatter <= 0 and moments.pair_weight <= 0):
            continue
        fits = replace(search, source=train, moments=moments, tol=_COARSE).path(GRID, rng).fits
        for C, fit in fits.items():
            scores[C] += held.reduce(LikelihoodTask(fit.model, moments.mean)).loglik
        models = {C: fit.model for C, fit in fits.items()}
        held_bags += held.reduce(_n_bags)
    if not held_bags:
        return Choice(1.0, None, {})
    best = max(GRID, key=lambda C: scores[C])
    return Choice(best, models[best], {C: score / held_bags for C, score in scores.items()})


def _n_bags(bags: Bags) -> int:
    return bags.n_bags
