"""The columns of the tables: short names of the paper, and the public learners that they stand for.

Owns which estimator with which settings a column means. A learner that this version does not have is no error: its
column is left out. Refuses settings that depend on the outcome; a column is the same learner in every cell but for
what the experiment itself states (offset or none, flipped labels or none).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bagwise.arrays import IntArray
from bagwise.bags import Bags
from bagwise.lab.tables import Cell
from bagwise.ltf import LTF

__all__ = ["LEARNERS", "Learner"]

# The penalty of the ceiling: rows are separable, so a weak one is best (its error is flat from 1e4 to 1e6).
_WEAK = 1e4


@dataclass(frozen=True, slots=True)
class Learner:
    """A column: what it is called, what it is, whose it is, and how it is run.

    ``fit`` takes the cell, the bags, the true labels of their rows (which only the ceiling reads), and a seed.
    """

    label: str
    description: str
    published: bool  # a column of the paper
    home: str  # module that must be there
    fit: Callable[[Cell, Bags, IntArray, int], LTF]

    @property
    def available(self) -> bool:
        """Whether this version of the package has it."""
        return find_spec(self.home) is not None


def _of(room: str, name: str, settings: Callable[[Cell], dict[str, Any]], *, seeded: bool = False) -> Any:
    """home and fit of an estimator of the package."""
    home = f"bagwise.estimators.{room}"

    def fit(cell: Cell, bags: Bags, labels: IntArray, seed: int) -> LTF:
        chance = {"random_state": seed} if seeded else {}
        ltf: LTF = getattr(import_module(home), name)(**settings(cell), **chance).fit(bags).ltf_
        return ltf

    return {"home": home, "fit": fit}


def _ceiling(cell: Cell, bags: Bags, labels: IntArray, seed: int) -> LTF:
    """Logistic regression on the same rows, told the true label of each."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_WEAK, fit_intercept=cell.offset, max_iter=1000).fit(bags.X, labels)
    return LTF(model.coef_[0], float(model.intercept_[0]) if cell.offset else 0.0)


LEARNERS: dict[str, Learner] = {
    "A2": Learner(
        "A2",
        "spectral, through the origin: SpectralLTF(fit_intercept=False)",
        True,
        **_of("spectral", "SpectralLTF", lambda cell: {"fit_intercept": False}),
    ),
    "A3one": Learner(
        "A3 (one row)",
        "mean of one random row per bag, as printed: MeanLTF(pairs='one')",
        True,
        **_of("mean", "MeanLTF", lambda cell: {"pairs": "one"}, seeded=True),
    ),
    "A3": Learner("A3", "mean of all rows: MeanLTF()", True, **_of("mean", "MeanLTF", lambda cell: {})),
    "A4": Learner("A4", "spectral with offset: SpectralLTF()", True, **_of("spectral", "SpectralLTF", lambda cell: {})),
    "R": Learner(
        "R",
        "best of 100 random thresholds; where there is an offset, the best one of each is swept: RandomLTF()",
        True,
        **_of("random", "RandomLTF", lambda cell: {"fit_intercept": cell.offset}, seeded=True),
    ),
    "S": Learner(
        "S",
        "semidefinite relaxation as published: SDPLTF()",
        True,
        **_of("sdp", "SDPLTF", lambda cell: {"fit_intercept": cell.offset}, seeded=True),
    ),
    "S+": Learner(
        "S+",
        "semidefinite relaxation, analytic centre: SDPLTF(variant='S+')",
        False,
        **_of("sdp", "SDPLTF", lambda cell: {"variant": "S+", "fit_intercept": cell.offset}, seeded=True),
    ),
    "MeanMap": Learner(
        "MeanMap",
        "class means from bag means of several proportions: MeanMap()",
        False,
        **_of("mean", "MeanMap", lambda _: {}),
    ),
    "ML": Learner(
        "ML",
        "exact likelihood of the counts: BagLogisticRegression()",
        False,
        **_of(
            "logistic",
            "BagLogisticRegression",
            lambda cell: {"fit_intercept": cell.offset} | ({"label_noise": "estimate"} if cell.flip else {}),
            seeded=True,
        ),
    ),
    "true": Learner(
        "true labels",
        "logistic regression told the true label of every row (C = 10,000): the ceiling",
        False,
        home="sklearn.linear_model",
        fit=_ceiling,
    ),
}
