"""Figures of a classifier as smooth functions of how many positives and negatives get each answer.

Owns TPR, FPR, accuracy, balanced accuracy, precision, prevalence, the area under the ROC curve and the points of that
curve, each with its gradient; and the value types in which they are reported. Refuses to estimate anything.

Vocabulary: P_j and N_j are the shares of positive and of negative rows among all rows that have answer j; answers are
in ascending order. ``positive`` marks the answers that mean label 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise.arrays import BoolArray, FloatArray

__all__ = ["FIGURES", "Figure", "FigureFunction", "Masses", "RocCurve", "roc_point"]


@dataclass(frozen=True, slots=True)
class Figure:
    """An estimate with its confidence interval.

    Examples
    --------
    >>> figure = Figure(0.9, 0.85, 0.94)
    >>> figure
    0.900 [0.850, 0.940]
    >>> 0.86 in figure, float(figure)
    (True, 0.9)
    """

    estimate: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def __float__(self) -> float:
        return self.estimate

    def __contains__(self, value: float) -> bool:
        """Whether the interval covers a value."""
        return bool(self.low <= value <= self.high)

    def to_dict(self) -> dict[str, float]:
        """Plain numbers, for JSON."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve:
    """Points of a ROC curve from (0, 0) to (1, 1), each with pointwise intervals of both coordinates.

    Attributes
    ----------
    thresholds : array
        Scores above the threshold are called positive.
    fpr, tpr : arrays
    fpr_low, fpr_high, tpr_low, tpr_high : arrays
    """

    thresholds: FloatArray
    fpr: FloatArray
    tpr: FloatArray
    fpr_low: FloatArray
    fpr_high: FloatArray
    tpr_low: FloatArray
    tpr_high: FloatArray

    def to_dict(self) -> dict[str, list[float | None]]:
        """Plain numbers, for JSON; thresholds at infinity are None."""
        return {
            name: [float(value) if np.isfinite(value) else None for value in getattr(self, name)]
            for name in self.__dataclass_fields__
        }


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """P and N of each answer, with what figures need besides.

    Attributes
    ----------
    P, N : arrays of shape (B,)
        Shares of all rows; they sum to 1 together.
    positive : bool array of shape (B,)
    prevalence : float or None
        Share of positives in the population that figures are meant for; None for that of the masses.
    several : bool array of shape (B,) or None
        Answers that stand for several scores, and so hide an order of their rows.
    """

    P: FloatArray
    N: FloatArray
    positive: BoolArray
    prevalence: float | None = None
    several: BoolArray | None = None


#: Value of a figure and its gradients in P and in N.
FigureFunction = Callable[[Masses], tuple[float, FloatArray, FloatArray]]


def tpr(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
    """Pr[answer 1 | label 1]."""
    return _share_of(masses.P, masses.positive, masses.N, swap=False)


def fpr(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
    """Pr[answer 1 | label 0]."""
    return _share_of(masses.N, masses.positive, masses.P, swap=True)


def roc_point(first: int, rate: str) -> FigureFunction:
    """TPR or FPR if the answers from ``first`` on meant label 1."""

    def point(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
        above = np.arange(len(masses.P)) >= first
        if rate == "tpr":
            return _share_of(masses.P, above, masses.N, swap=False)
        return _share_of(masses.N, above, masses.P, swap=True)

    return point


def prevalence(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
    """Pr[label 1]."""
    ones, zeros = np.ones_like(masses.P), np.zeros_like(masses.P)
    if masses.prevalence is not None:
        return masses.prevalence, zeros, zeros
    return float(masses.P.sum()), ones, zeros


def accuracy(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
    """Pr[answer = label]."""
    if masses.prevalence is None:
        right_1, right_0 = masses.positive.astype(float), (~masses.positive).astype(float)
        return float(masses.P @ right_1 + masses.N @ right_0), right_1, right_0
    pi = masses.prevalence
    return _combined(masses, pi, 1 - pi)


def balanced_accuracy(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
    """(TPR + 1 - FPR) / 2."""
    return _combined(masses, 0.5, 0.5)


def precision(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
    """Pr[label 1 | answer 1]; not a number where nothing is called positive."""
    (t, tP, _), (f, _, fN) = tpr(masses), fpr(masses)
    pi, zeros = masses.prevalence, np.zeros_like(masses.P)
    if pi is None:
        above = masses.positive.astype(float)
        taken, total = float(masses.P @ above), float((masses.P + masses.N) @ above)
        if not total > 0:
            return float("nan"), zeros, zeros
        value = taken / total
        return value, above * (1 - value) / total, -above * value / total
    total = pi * t + (1 - pi) * f
    if not total > 0:
        return float("nan"), zeros, zeros
    value = pi * t / total
    return value, pi * tP * (1 - value) / total, -(1 - pi) * fN * value / total


def roc_auc(masses: Masses) -> tuple[float, FloatArray, FloatArray]:
    """Pr[score of a positive > score of a negative], ties counted half.

    Within answers that stand for several scores the share of positives is taken as linear in the rank.
    """
    P, N = masses.P, masses.N
    ones, zeros = float(P.sum()), float(N.sum())
    if not (ones > 0 and zeros > 0):
        return float("nan"), np.zeros_like(P), np.zeros_like(N)
    below, above = np.cumsum(N) - N / 2, ones - np.cumsum(P) + P / 2
    pairs = float(P @ below)
    if masses.several is not None and len(P) > 2:
        hidden, hP, hN = _hidden_pairs(P, N, masses.several)
        pairs, below, above = pairs + hidden, below + hP, above + hN
    value = pairs / (ones * zeros)
    return value, below / (ones * zeros) - value / ones, above / (ones * zeros) - value / zeros


def _hidden_pairs(P: FloatArray, N: FloatArray, several: BoolArray) -> tuple[float, FloatArray, FloatArray]:
    """Pairs of a negative below a positive within bins, beyond the half of chance: sum w^2 slope / 12, with gradients
    at fixed widths w.

    The slope of r over a bin is that of its neighbours, bent to stay below 4 r (1 - r): 6 r (1 - r) would be a bin in
    perfect order.
    """
    w = np.maximum(P + N, 1e-300)
    r, at = P / w, np.arange(len(P))
    left, right = np.maximum(at - 1, 0), np.minimum(at + 1, len(r) - 1)
    apart = w + np.where(left < at, w[left], 0) / 2 + np.where(right > at, w[right], 0) / 2
    rise, cap = w / apart * (r[right] - r[left]), np.maximum(4 * r * (1 - r), 1e-12)
    bent = np.tanh(rise / cap)
    share = np.where(several, w**2 / 12, 0)
    d_rise, d_cap = share * (1 - bent**2), share * (bent - rise / cap * (1 - bent**2))
    d_r = d_cap * 4 * (1 - 2 * r)
    np.add.at(d_r, right, d_rise * w / apart)
    np.add.at(d_r, left, -d_rise * w / apart)
    return float(np.sum(share * cap * bent)), d_r * (1 - r) / w, -d_r * r / w


def _share_of(
    masses: FloatArray, above: BoolArray, others: FloatArray, *, swap: bool
) -> tuple[float, FloatArray, FloatArray]:
    """Share of the masses that lie above, with gradients in the masses and the others."""
    total, zeros = float(masses.sum()), np.zeros_like(others)
    if not total > 0:
        return float("nan"), zeros, zeros
    value = float(masses[above].sum()) / total
    gradient = (above - value) / total
    return (value, zeros, gradient) if swap else (value, gradient, zeros)


def _combined(masses: Masses, of_positives: float, of_negatives: float) -> tuple[float, FloatArray, FloatArray]:
    """of_positives TPR + of_negatives (1 - FPR)."""
    (t, tP, _), (f, _, fN) = tpr(masses), fpr(masses)
    return of_positives * t + of_negatives * (1 - f), of_positives * tP, -of_negatives * fN


FIGURES: Mapping[str, FigureFunction] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "tpr": tpr,
    "fpr": fpr,
    "precision": precision,
    "prevalence": prevalence,
    "roc_auc": roc_auc,
}


def to_plain(value: Any) -> Any:
    """Figures, curves and arrays as JSON takes them."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
