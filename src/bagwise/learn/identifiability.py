"""What the bags leave open, in sentences with the numbers.

Owns the diagnoses that a user must hear before trusting a fit. Each function returns what is to be said; estimators say
it as warnings. What cannot be learnt at all is a NotIdentifiableError, raised where the attempt is made.
"""

import numpy as np

from bagwise.bags import Bags
from bagwise.learn.directions import Direction
from bagwise.learn.offsets import Threshold
from bagwise.stats.moments import Moments

__all__ = ["balance_finding", "direction_findings"]


def balance_finding(bags: Bags | Threshold) -> list[str]:
    """Balanced bags fit an LTF and its complement equally well."""
    if not bags.balanced:
        return []
    return [
        f"all {bags.n_bags} bags are balanced (k = q/2), so that a boundary and its complement satisfy the same bags: "
        f"the "
        "sign of the answer is a guess (ambiguous_ is True). One unbalanced bag or labelled row settles it."
    ]


def direction_findings(moments: Moments, direction: Direction) -> list[str]:
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
    if direction.contradiction is not None:
        found.append(
            "the reported totals vary as if by noise alone: pairs of rows put the class means "
            f"{direction.contradiction[0]:.2f} standard deviations apart, the regression on the totals only "
            f"{direction.contradiction[1]:.2f}. The direction is taken from the pairs; use "
            'BagLogisticRegression(label_noise="estimate").'
        )
    return found
