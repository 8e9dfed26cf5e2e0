"""How much to penalise: the C under which held-out bags are likeliest.

Owns the grid, the splits by bags and the choice. A heavy penalty costs several points of accuracy on clean totals, a
light one as much on noisy ones, so that no fixed C will do. Where bags say little, one split would be luck: splits go
on while the choice is open (docs/decisions/002-likelihood-search.md holds the figures).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit

from bagwise.arrays import FloatArray
from bagwise.bags import Bags, BagSource
from bagwise.learn.likelihood import CountModel, LikelihoodTask
from bagwise.learn.starts import Search, cosine
from bagwise.stats.moments import BagMoments

__all__ = ["GRID", "Choice", "chosen_penalty"]

GRID = tuple(10.0**e for e in range(-2, 6))

_TRAIN = 0.8
_FEWEST_BAGS = 8
# The choice is open while fewer bags than these were held out in all, or while a rival of the best C, below it by at
# most so much log-likelihood, has a normal that far away (the sine of the angle).
_ENOUGH_BAGS, _RIVAL, _ELSEWHERE = 40, 4.0, 0.1
# At most so many splits, and so many of data of more than that many numbers.
_MOST_SPLITS, _LARGE, _MOST_OF_LARGE = 8, 1 << 20, 3
# A C that far below the best is not tried again.
_HOPELESS = 15.0
# Gain over a constant below which a fit is (nearly) trapped at coef = 0, see `bagwise.learn.starts.trap_bound`.
_TRAPPED = 2.0
# log-likelihood that the fits of a split may miss.
_COARSE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The chosen C, a model fitted with it to a part of the bags, and what held-out bags say.

    ``scores`` are their log-likelihoods per bag; ``gain`` is how much likelier all their counts together are at the
    chosen C than if every row had the same probability.
    """

    C: float
    near: CountModel | None
    scores: dict[float, float]
    gain: float


def chosen_penalty(search: Search, rng: np.random.Generator) -> Choice:
    """The C of the grid with the largest held-out log-likelihood; 1 where bags are too few to hold some out."""
    totals, held_bags = dict.fromkeys(GRID, 0.0), dict.fromkeys(GRID, 0)
    gains = dict.fromkeys(GRID, 0.0)
    models: dict[float, CountModel] = {}
    running = list(GRID)
    large = search.moments.n_rows * search.moments.n_features > _LARGE
    n_splits = _MOST_OF_LARGE if large else _MOST_SPLITS
    for _ in range(n_splits if search.moments.n_bags >= _FEWEST_BAGS else 0):
        train, held = search.source.split(_TRAIN, rng)
        moments = train.reduce(BagMoments.from_bags).finalize()
        if not 0 < moments.proportion < 1 or (moments.count_scatter <= 0 and moments.pair_weight <= 0):
            continue
        split = replace(search, source=train, moments=moments, tol=_COARSE)
        fits = split.path(running, rng).fits
        models |= {C: fit.model for C, fit in fits.items()}
        null = _loglik(held, CountModel(np.zeros(moments.n_features), float(logit(moments.proportion))))
        n_held = held.reduce(_n_bags)
        for C in running:
            score = _loglik(held, models[C])
            totals[C] += score
            gains[C] += score - null
            held_bags[C] += n_held
        # A trapped fit is a constant: likely enough where bags say little, but no answer.
        running = [C for C in running if split.gain(fits[C]) > _TRAPPED] or running
        best = max(running, key=lambda C: totals[C])
        running = [C for C in running if totals[best] - totals[C] < _HOPELESS]
        rivals = [models[C].coef for C in running if totals[best] - totals[C] < _RIVAL]
        if held_bags[best] >= _ENOUGH_BAGS and not _elsewhere(models[best].coef, rivals, moments.cov_bag):
            break
    if not any(held_bags.values()):
        return Choice(1.0, None, {}, np.inf)
    best = max(running, key=totals.__getitem__)
    return Choice(best, models[best], {C: totals[C] / held_bags[C] for C in GRID}, gains[best])


def _elsewhere(normal: FloatArray, others: Iterable[FloatArray], cov: FloatArray) -> bool:
    """Whether one of the others points elsewhere, or the opposite way."""
    near = (1 - _ELSEWHERE**2) ** 0.5
    return any(cosine(normal, other, cov) < near for other in others)


def _loglik(bags: BagSource, model: CountModel) -> float:
    return bags.reduce(LikelihoodTask(model, np.zeros(len(model.coef)))).loglik


def _n_bags(bags: Bags) -> int:
    return bags.n_bags
