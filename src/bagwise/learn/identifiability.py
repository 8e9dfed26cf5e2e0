"""What the bags leave open, in sentences with the numbers.

Owns the diagnoses that a user must hear before trusting a fit. Each function returns what is to be said; estimators say
it as warnings. What cannot be learnt at all is a NotIdentifiableError, raised where the attempt is made.
"""

from typing import Protocol

import numpy as np

from bagwise.learn.directions import Direction
from bagwise.stats.moments import Moments

__all__ = [
    "balance_finding",
    "direction_findings",
    "dispersion_finding",
    "gain_finding",
    "steady_finding",
    "trap_finding",
]

# A deviation of the counts that is worth a word: in standard errors, and as a ratio.
_SURE, _MATTERS = 5.0, 1.3
# Held-out log-likelihood over that of a constant below which there may be nothing: a factor of seven.
_NOTHING = 2.0


class Counted(Protocol):
    """Bags, or whatever knows as much of their counts."""

    @property
    def n_bags(self) -> int: ...

    @property
    def balanced(self) -> bool: ...


def balance_finding(bags: Counted) -> list[str]:
    """Balanced bags fit an LTF and its complement equally well."""
    if not bags.balanced:
        return []
    return [
        f"all {bags.n_bags} bags are balanced (k = q/2), so that a boundary and its complement satisfy the same bags: "
        f"the "
        "sign of the answer is a guess (ambiguous_ is True). One unbalanced bag or labelled row settles it."
    ]


def direction_findings(moments: Moments, direction: Direction, *, noise_is_modelled: bool = False) -> list[str]:
    """What makes a direction doubtful: too few bags, lost dimensions, no signal, totals that contradict the pairs."""
    found = []
    if direction.rank < moments.n_features:
        found.append(
            f"the features span {direction.rank} of {moments.n_features} dimensions (constant or collinear columns, "
            f"or fewer "
            "rows than features); the normal is zero along the others."
        )
    if moments.n_bags <= direction.rank and direction.source != "means":
        found.append(
            f"{moments.n_bags:g} bags are fewer than the {direction.rank + 1} needed to see {direction.rank} "
            f"dimensions "
            "between bags; the direction is mostly chance. Collect more bags or drop features."
        )
    elif not direction.sine < 0.9:
        sine = "unknown" if np.isnan(direction.sine) else f"{direction.sine:.2f}"
        found.append(
            f"{moments.n_bags:g} bags show hardly any direction (expected sine of the angle to the true normal: "
            f"{sine}; "
            f"variance of the proportions over that of random bags: {moments.dispersion:.2f}). Collect more bags."
        )
    if direction.contradiction is not None and not noise_is_modelled:
        found.append(
            "the reported totals vary as if by noise alone: pairs of rows put the class means "
            f"{direction.contradiction[0]:.2f} standard deviations apart, the regression on the totals only "
            f"{direction.contradiction[1]:.2f}. The direction is taken from the pairs; use "
            'BagLogisticRegression(label_noise="estimate").'
        )
    return found


def trap_finding(C: float, bound: float) -> list[str]:
    """Below the bound coef = 0 is a local maximum of the penalised likelihood."""
    if C >= bound:
        return []
    return [
        f"C = {C:g} is below {bound:.3g}, where the penalty makes coef = 0 a local maximum for bags that all share one "
        'proportion: the fit may collapse to it. Raise C, or leave it at "auto".'
    ]


def dispersion_finding(ratio: float, z: float) -> list[str]:
    """Counts that scatter more than the model allows."""
    if z < _SURE or ratio < _MATTERS:
        return []
    return [
        f"the counts are over-dispersed against the model: their squared deviations are {ratio:.2f} times what it "
        f"expects ({z:.1f} standard errors above 1). Labels may be noisy, or bags differ by more than the features "
        'say; try label_noise="estimate", and trust probabilities less.'
    ]


def gain_finding(gain: float) -> list[str]:
    """A model that tells held-out totals no better than a constant does."""
    if gain >= _NOTHING:
        return []
    return [
        "held-out totals are hardly likelier under the model than if all rows had one probability (log-likelihood "
        f"gained: {gain:.1f}): what was learnt may be chance. Collect more bags, or drop features."
    ]


def steady_finding(share: float, low: float, high: float) -> list[str]:
    """Totals that were put back to the share that all bags have in truth."""
    return [
        f"the reported totals scatter as flips of labels alone make them (shares of reported positives {low:.3f} among "
        f"negatives, {high:.3f} among positives): all bags are taken to have {share:.3f} positives in truth. If their "
        "true shares differ, say label_noise=False."
    ]
