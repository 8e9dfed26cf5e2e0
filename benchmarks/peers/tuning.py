"""The one way in which all methods are tuned: by totals, with the same budget.

A quarter of the bags is held out; the value whose predictions miss the held-out proportions least (mean absolute
error, the criterion that llp-learn documents) is fitted again to all bags. No instance label is looked at. Runs in the
peers' environments too, so it knows numpy only.
"""

import numpy as np

#: Values of C, or of 1 / lambda: the budget of every method that has such a parameter.
GRID = tuple(10.0**e for e in range(-3, 5))


def tuned(fit, X, sizes, counts, seed, grid=GRID):
    """(model, value) of the best value; ``fit(X, sizes, counts, value)`` returns a function rows -> scores > 0."""
    if len(sizes) < 4:
        return fit(X, sizes, counts, 1.0), 1.0
    held = np.zeros(len(sizes), bool)
    held[np.random.default_rng(seed).permutation(len(sizes))[: max(len(sizes) // 4, 1)]] = True
    rows = np.repeat(held, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes[held])[:-1]])
    losses, failure = [], None
    for value in grid:
        try:
            positive = fit(X[~rows], sizes[~held], counts[~held], value)(X[rows]) > 0
        except Exception as error:  # the failure is a measurement, if all values fail
            losses.append(np.inf)
            failure = error
            continue
        predicted = np.add.reduceat(positive.astype(float), starts) / sizes[held]
        losses.append(np.abs(predicted - counts[held] / sizes[held]).mean())
    if not np.isfinite(losses).any():
        raise failure
    best = grid[int(np.argmin(losses))]
    return fit(X, sizes, counts, best), best
