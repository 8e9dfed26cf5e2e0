"""How good a classifier is, estimated from held-out bags alone.

Owns `assess`: the choice of model for the counts, its fit on both sides of the mirror, and intervals of every figure.
Refuses the model of two rates where the bags contradict it. Bounds that assume less are `bagwise.claims.certificate`'s;
docs/theory/assessment.md derives what is here.

Vocabulary: r(s) = Pr[label = 1 | score s] is one number for each *bin* of scores. A *branch* is the best fit with r
rising or with r falling in the score; counts of one (q, k) may leave open which is right.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit
from scipy.stats import chi2, norm

from bagwise.arrays import BoolArray, FloatArray, IntArray
from bagwise.bags import Bags, BagSource
from bagwise.claims.answers import (
    Answers,
    answers,
    model_answers,
    model_fingerprints,
    sum_of_answers,
    used_in_fit,
)
from bagwise.claims.figures import FIGURES, Figure, FigureFunction, Masses, RocCurve, roc_point, to_plain
from bagwise.claims.probability_model import Order, ProbabilityFit, SmoothFigure, fit_probabilities
from bagwise.errors import BagwiseWarning, IdentifiabilityWarning, InvalidInputError
from bagwise.stats.binned_counts import LEAST, BinnedCounts

__all__ = ["Assessment", "Branch", "Calibration", "Dispersion", "assess", "assessed_accuracy"]

Method = Literal["score", "rates"]
Shape = Literal["monotone", "bins"]
Interval = Literal["profile", "bootstrap"]

# Counts are called over-dispersed when chance gives as much once in a thousand.
_CONTRADICTED = 1e-3
# Scores whose quantiles cut the bins.
_SAMPLED = 1 << 15
# Bags on which large problems are begun; with four times as many the likelihood is its second-order expansion.
_PILOT = 4096
# A branch so much less likely on those is not looked at again; chance gives 50 once in 1e22.
_HOPELESS = 50.0


@dataclass(frozen=True, slots=True)
class Dispersion:
    """Squared residuals of the counts against their model's variance.

    Attributes
    ----------
    ratio : float
        Their sum over its expectation: chi^2 / dof, about 1 where the model holds.
    p_value : float
        Probability of more, under the model.
    """

    ratio: float
    p_value: float

    def to_dict(self) -> dict[str, float]:
        """Plain numbers, for JSON."""
        return {"ratio": self.ratio, "p_value": self.p_value}


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Claimed against found probabilities.

    Attributes
    ----------
    in_the_large : Figure
        Mean claimed probability minus share of positives; 0 is calibrated.
    claimed : array
        Mean claimed probability of each bin of scores.
    found, low, high : arrays
        Pr[label = 1] of each bin, with pointwise intervals.
    """

    in_the_large: Figure
    claimed: FloatArray
    found: FloatArray
    low: FloatArray
    high: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {name: to_plain(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One of the two mirror readings of the counts.

    Attributes
    ----------
    rising : bool
        Higher scores are more often positive.
    deviance : float
        Twice the log-likelihood that it is behind the better one.
    figures : mapping from name to Figure
        As if this branch were known to be right.
    """

    rising: bool
    deviance: float
    figures: Mapping[str, Figure]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"rising": self.rising, "deviance": self.deviance} | {
            name: figure.to_dict() for name, figure in self.figures.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """Figures of a classifier, each an estimate with an interval; see `assess`.

    Attributes
    ----------
    accuracy, balanced_accuracy, tpr, fpr, precision, prevalence, roc_auc : Figure
        ``roc_auc`` is None for ``method="rates"``, which sees labels only.
    roc : RocCurve
    calibration : Calibration or None
        None where the classifier claims no probabilities.
    confidence : float
    method : "score" or "rates"
    at_prevalence : float or None
        The share of positives that figures are meant for; None for the bags' own.
    branches : tuple of Branch
        The readings that the counts do not exclude, the likelier one first. With two, each figure's interval spans
        both.
    dispersion : Dispersion
        Of the counts against the model.
    n_bags, n_rows, n_bins : int
    expected_errors : tuple of two floats
        Misses and false alarms among the held-out rows, by the estimate.
    edges, probabilities : arrays
        Largest score of each bin but the last, and r of each bin (for rates FPR and TPR).
    notes : tuple of str
        What to keep in mind.
    """

    accuracy: Figure
    balanced_accuracy: Figure
    tpr: Figure
    fpr: Figure
    precision: Figure
    prevalence: Figure
    roc_auc: Figure | None
    roc: RocCurve
    calibration: Calibration | None
    confidence: float
    method: Method
    at_prevalence: float | None
    branches: tuple[Branch, ...]
    dispersion: Dispersion
    n_bags: int
    n_rows: int
    n_bins: int
    expected_errors: tuple[float, float]
    edges: FloatArray
    probabilities: FloatArray
    notes: tuple[str, ...] = ()

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures there are, by name."""
        found = {name: getattr(self, name) for name in FIGURES}
        return {name: figure for name, figure in found.items() if figure is not None}

    def __repr__(self) -> str:
        return f"Assessment(accuracy {self.accuracy!r}, {self.n_bags} bags, method {self.method!r})"

    def __str__(self) -> str:
        lines = [
            f"From {self.n_bags:,} bags ({self.n_rows:,} rows), at the "
            + (
                "bags' own share of positives"
                if self.at_prevalence is None
                else f"share of positives {self.at_prevalence:g}"
            )
            + f"; intervals of {100 * self.confidence:g} %"
        ]
        for name, figure in self.figures.items():
            lines.append(f"  {_LABELS[name]:18} {_percent(figure.estimate):>8}   {_between(figure)}")
        if self.calibration is not None:
            large = self.calibration.in_the_large
            lines.append(f"  {'claimed - found':18} {_percent(large.estimate):>8}   {_between(large)}")
        if len(self.branches) > 1:
            for branch in self.branches:
                way = "higher" if branch.rising else "lower"
                lines.append(f"  if {way} scores are positive: accuracy {_between(branch.figures['accuracy'])}")
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {name: to_plain(getattr(self, name)) for name in self.__dataclass_fields__}


_LABELS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "tpr": "TPR (recall)",
    "fpr": "FPR",
    "precision": "precision",
    "prevalence": "prevalence",
    "roc_auc": "ROC AUC",
}


# ---------------------------------------------------------------------- the counts as a function of probabilities


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """Counts of bags as a function of some probabilities r, and the masses of answers that follow.

    ``method="score"``: the bags' counts of positives, r_j the share of positives in bin j of the scores.
    ``method="rates"``: their counts of predicted positives, r = (FPR, TPR), the bins of a bag being its labels.
    """

    data: BinnedCounts
    bags: Bags
    positive: BoolArray  # answers that mean label 1
    several: BoolArray  # answers that stand for several scores
    method: Method
    prevalence: float | None

    @property
    def share(self) -> float:
        """Share of positives in the bags."""
        return float(self.data.weights @ self.bags.counts) / float(self.data.weights @ self.bags.sizes)

    @property
    def widths(self) -> FloatArray:
        """Share of the rows in each bin."""
        widths: FloatArray = self.data.totals / self.data.totals.sum()
        return widths

    def reweighted(self, weights: FloatArray) -> "_View":
        """The same bags, each as often as stated."""
        kept = weights > 0
        return replace(self, data=self.data.reweighted(weights), bags=self.bags[kept])

    def masses(self, r: FloatArray) -> Masses:
        """P and N of each answer."""
        if self.method == "rates":
            pi = self.share
            P, N = pi * np.array([1 - r[1], r[1]]), (1 - pi) * np.array([1 - r[0], r[0]])
        else:
            P, N = self.widths * r, self.widths * (1 - r)
        return Masses(P, N, self.positive, self.prevalence, self.several)

    def of(self, figure: FigureFunction) -> SmoothFigure:
        """The figure as a function of r, with its gradient."""
        pi, widths = self.share, self.widths

        def smooth(r: FloatArray) -> tuple[float, FloatArray]:
            value, gP, gN = figure(self.masses(r))
            if self.method == "rates":
                return value, np.array([(1 - pi) * (gN[1] - gN[0]), pi * (gP[1] - gP[0])])
            return value, widths * (gP - gN)

        return smooth

    def of_rows(self, r: FloatArray, figure: FigureFunction) -> tuple[FloatArray, float]:
        """What the rows that happened to come add to an estimate: per bag (m,), and its variance if rows are drawn one
        by one from each class and the counts are as dispersed as they are."""
        masses = self.masses(r)
        _, gP, gN = figure(masses)
        sizes, counts, weights = self.bags.sizes, self.bags.counts, self.data.weights
        rows, bags, pi = float(weights @ sizes), float(weights.sum()), self.share
        # Change with the share of positives, the answers to positives and to negatives held.
        along = float(gP @ masses.P) / max(pi, 1e-300) - float(gN @ masses.N) / max(1 - pi, 1e-300)
        surplus = (counts - pi * sizes) / rows
        of_share = along**2 * float(weights @ surplus**2) * bags / max(bags - 1, 1)
        if self.method == "rates":
            return along * surplus, of_share
        slope = r * gP + (1 - r) * gN
        centre = float(self.widths @ slope)
        per_bag: FloatArray = (self.data.rows @ slope - centre * sizes) / rows
        drawn = float(self.widths @ (slope - centre) ** 2) / rows
        return per_bag, drawn + of_share - along**2 * pi * (1 - pi) / rows

    def variances(self, fit: ProbabilityFit, figure: FigureFunction) -> tuple[float, float]:
        """Variance of an estimate by the curvature of the likelihood, and its sampling variance over bags.

        The latter is the larger of the model's (rows independent given their labels, counts as dispersed as they are)
        and the sandwich's (bags drawn from any distribution).
        """
        slope, covariance = self.of(figure)(fit.r)[1], fit.covariance()
        curvature = float(slope @ covariance @ slope)
        per_bag, of_rows = self.of_rows(fit.r, figure)
        influences = fit.terms.scores @ (covariance @ slope) + per_bag
        m, free = float(self.data.weights.sum()), fit.free_directions().shape[1]
        sandwich = float(self.data.weights @ influences**2) * m / max(m - free, 1)
        return curvature, max(curvature + of_rows, sandwich)

    def dispersion(self, r: FloatArray) -> Dispersion:
        """Squared residuals over variances; their law by the counts' fourth cumulants."""
        rows, variance = self.data.rows, r * (1 - r)
        of_bag, squares = rows @ variance, (self.data.counts - rows @ r) ** 2
        total = float(of_bag.sum())
        spread = float(np.sum(2 * of_bag**2 + rows @ (variance * (1 - 6 * variance))))
        if not (total > 0 and spread > 0):
            return Dispersion(1.0, 1.0)
        return Dispersion(float(squares.sum()) / total, float(norm.sf((float(squares.sum()) - total) / sqrt(spread))))

    def fits(self, shape: Shape) -> list[ProbabilityFit]:
        """The best fit on each branch, the likelier first."""
        data = self.data
        middle = np.cumsum(data.totals) - data.totals / 2
        share = float(np.clip(data.weights @ data.counts / data.totals.sum(), 1e-3, 1 - 1e-3))
        orders: dict[Order, Order] = {order: order if shape == "monotone" else "free" for order in _BRANCHES}
        starts: dict[Order, FloatArray] = {
            order: expit(logit(share) + sign * 5 * (middle / data.totals.sum() - 0.5))
            for order, sign in _BRANCHES.items()
        }
        if len(data.counts) > 2 * _PILOT:  # begin where a few thousand bags end, and only on branches that they leave
            some = data.part(slice(None, None, len(data.counts) // _PILOT))
            pilots = {order: fit_probabilities(some, orders[order], start) for order, start in starts.items()}
            best = max(pilot.loglik for pilot in pilots.values())
            starts = {order: pilot.r for order, pilot in pilots.items() if pilot.loglik > best - _HOPELESS}
        # A gain of 1e-3 in the log-likelihood is a thirtieth of a standard error.
        enough = 1e-3 if len(data.counts) > 2 * _PILOT else 1e-5
        found = [fit_probabilities(data, orders[order], start, tolerance=enough) for order, start in starts.items()]
        if len(found) == 2 and np.abs(found[0].r - found[1].r).max() < 1e-3:
            found = found[:1]
        return sorted(found, key=lambda fit: -fit.loglik)


_BRANCHES: Mapping[Order, int] = {"rising": 1, "falling": -1}


def _rising(fit: ProbabilityFit, view: _View) -> bool:
    """Whether higher answers are more often positive."""
    value, _, _ = FIGURES["roc_auc"](view.masses(fit.r))
    return bool(value >= 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class _Profile:
    """Estimates, and intervals by the profile likelihood, its curvature scaled to the sampling variance."""

    view: _View
    fits: list[ProbabilityFit]  # those that the counts do not exclude, best first
    level: float  # quantile of chi^2_1

    def on(self, figure: FigureFunction, fit: ProbabilityFit, behind: float = 0.0) -> Figure:
        """On one branch, whose log-likelihood is ``behind`` the best's."""
        smooth = self.view.of(figure)
        value, slope = smooth(fit.r)
        if not np.isfinite(value):
            return Figure(value, 0.0, 1.0)
        curvature, variance = self.view.variances(fit, figure)
        if not slope.any():  # prevalence of the bags, or a stated one
            return _wilson(value, variance, self.level)
        least = 0.25 / self.view.bags.n_rows**2  # half a row, which no bags resolve
        drop = (variance + least) / (curvature + least) * self.level / 2 - behind
        large = self.view.bags.n_bags > 4 * _PILOT
        low, high = (fit.extreme(smooth, sign, drop, fit.expansion() if large else None) for sign in (-1, 1))
        return Figure(value, max(0.0, min(low, value)), min(1.0, max(high, value)))

    def over_all(self, figure: FigureFunction) -> Figure:
        """Estimate of the best branch, interval over all."""
        found = [self.on(figure, fit, self.fits[0].loglik - fit.loglik) for fit in self.fits]
        return Figure(found[0].estimate, min(f.low for f in found), max(f.high for f in found))


@dataclass(frozen=True, slots=True, eq=False)
class _Bootstrap:
    """Estimates, and percentile intervals over bags drawn anew."""

    view: _View
    fits: list[ProbabilityFit]
    confidence: float
    drawn: list[tuple[_View, list[ProbabilityFit]]]

    @classmethod
    def draw(
        cls, view: _View, fits: list[ProbabilityFit], confidence: float, n_draws: int, rng: np.random.Generator
    ) -> "_Bootstrap":
        """Draw bags with replacement and fit each branch again, from where it is."""
        m, drawn = view.bags.n_bags, []
        for _ in range(n_draws):
            again = view.reweighted(rng.multinomial(m, np.full(m, 1 / m)).astype(np.float64))
            drawn.append((again, [fit_probabilities(again.data, fit.order, fit.r) for fit in fits]))
        return cls(view, fits, confidence, drawn)

    def on(self, figure: FigureFunction, fit: ProbabilityFit, behind: float = 0.0) -> Figure:
        """On one branch."""
        which = next(i for i, other in enumerate(self.fits) if other is fit)
        values = np.array([figure(view.masses(fits[which].r))[0] for view, fits in self.drawn])
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(values[np.isfinite(values)], [tail, 1 - tail]) if np.isfinite(values).any() else (0, 1)
        value = figure(self.view.masses(fit.r))[0]
        return Figure(value, min(float(low), value), max(float(high), value))

    def over_all(self, figure: FigureFunction) -> Figure:
        """Estimate of the best branch, interval over all."""
        found = [self.on(figure, fit) for fit in self.fits]
        return Figure(found[0].estimate, min(f.low for f in found), max(f.high for f in found))


def _wilson(value: float, variance: float, level: float) -> Figure:
    """Score interval of a share with this sampling variance."""
    if not variance > 0:
        return Figure(value, value, value)
    rows = value * (1 - value) / variance
    if not rows > 0:
        return Figure(value, value, value)
    centre = (value + level / (2 * rows)) / (1 + level / rows)
    half = sqrt(level * (variance + level / (4 * rows**2))) / (1 + level / rows)
    return Figure(value, max(0.0, min(value, centre - half)), min(1.0, max(value, centre + half)))


# ---------------------------------------------------------------------- from answers to counts


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Bags whose rows are answered, part by part; merges with +."""

    parts: tuple[tuple[Bags, Answers, IntArray | None], ...]

    @classmethod
    def of(cls, bags: Bags, model: Any, threshold: float | None) -> "_Scored":
        """Some bags; in place of the features they keep their scores, nothing else is asked of them any more."""
        found = model_fingerprints(model, bags)
        given = (model_answers if hasattr(model, "predict") else answers)(model, bags, threshold)
        kept = Bags(given.scores[:, None], bags.sizes.copy(), bags.counts.copy(), np.arange(bags.n_bags))
        return cls(((kept, given, found),))

    def __add__(self, other: "_Scored") -> "_Scored":
        return _Scored(self.parts + other.parts)

    def together(self) -> tuple[Bags, Answers, IntArray | None]:
        """All of them as one."""
        if len(self.parts) == 1:
            return self.parts[0]
        bags, given, found = zip(*self.parts, strict=True)
        scores = np.concatenate([one.scores for one in given])
        claimed = [one.probabilities for one in given if one.probabilities is not None]
        prints = [one for one in found if one is not None]
        sizes, counts = (np.concatenate([getattr(one, name) for one in bags]) for name in ("sizes", "counts"))
        positive = np.concatenate([one.positive for one in given])
        return (
            Bags(scores[:, None], sizes, counts, np.arange(len(sizes))),
            Answers(positive, scores, np.concatenate(claimed) if claimed else None),
            np.concatenate(prints) if prints else None,
        )


def _score_bins(given: Answers, n_bins: int) -> tuple[IntArray, BoolArray, FloatArray, BoolArray]:
    """Bin of each row, which bins mean label 1, largest score of each bin but the last, and which hold several scores.

    Bins hold about equal numbers of rows, in ascending order of scores; none straddles the decision.
    """
    scores, positive = given.scores, given.positive
    step = max(1, len(scores) // _SAMPLED)
    tops: list[float] = []
    means: list[bool] = []
    for side in (False, True):
        own = scores[positive == side]
        if len(own) == 0:
            continue
        count = min(max(1, round(n_bins * len(own) / len(scores))), max(n_bins - 1, 1))
        cuts = np.unique(np.quantile(own[::step], np.arange(1, count) / count, method="inverted_cdf"))
        top = float(own.max())
        mine = [*cuts[cuts < top].tolist(), top]
        tops, means = tops + mine, means + [side] * len(mine)
    below = means.count(False)
    if 0 < below < len(means) and scores[~positive].max() >= scores[positive].min():
        # Labels that no threshold of the scores gives: predicted negatives first.
        of_positive = below + np.searchsorted(tops[below:-1], scores)
        codes = np.where(positive, of_positive, np.searchsorted(tops[: below - 1], scores))
    else:
        codes = np.searchsorted(tops[:-1], scores)
    lowest = np.full(len(tops), np.inf)
    np.minimum.at(lowest, codes, scores)
    edges = np.array(tops)
    return codes.astype(np.int64), np.array(means), edges[:-1], lowest < edges


def _score_view(
    given: Answers, bags: Bags, n_bins: int, prevalence: float | None
) -> tuple[_View, FloatArray, IntArray]:
    codes, positive, edges, several = _score_bins(given, n_bins)
    B = len(positive)
    bag = np.repeat(np.arange(bags.n_bags), bags.sizes)
    rows = np.bincount(bag * B + codes, minlength=bags.n_bags * B).reshape(bags.n_bags, B)
    return _View(BinnedCounts(rows, bags.counts), bags, positive, several, "score", prevalence), edges, codes


def _rates_view(given: Answers, bags: Bags, prevalence: float | None) -> _View:
    labels = np.column_stack([bags.sizes - bags.counts, bags.counts])
    two = np.array([False, True])
    return _View(BinnedCounts(labels, given.counts(bags)), bags, two, np.zeros(2, bool), "rates", prevalence)


# ---------------------------------------------------------------------- the public call


def assess(
    model: Any,
    bags: BagSource,
    confidence: float = 0.95,
    *,
    method: Method = "score",
    prevalence: float | None = None,
    threshold: float | None = None,
    shape: Shape = "monotone",
    n_bins: int = 10,
    interval: Interval = "profile",
    n_draws: int = 500,
    random_state: int | np.random.Generator | None = None,
) -> Assessment:
    """How good a classifier is on single rows, from held-out bags of which only the totals are known.

    With ``method="score"`` the probability r(s) = Pr[label = 1 | score s] is fitted to the held-out counts by their
    exact likelihood, and all figures follow from r and the rows. It assumes that bags differ in what the score sees:
    given the score, the label does not depend on the bag. Intervals are those of the profile likelihood, scaled to the
    variation between bags.

    Parameters
    ----------
    model : anything with predict(X), or an array of labels, scores or probabilities, one per row of ``bags.X``
        Any classifier, also one of scikit-learn.
    bags : Bags, or a source of bags (see `scan_bags`)
        Held out: a model looks better on the bags of its fit. Any mix of sizes and counts. A source is read once, part
        by part. Its features need no memory, but the scores do: about 100 bytes per row at the peak, as bins are cut at
        their quantiles. Of more than 65,535 rows the cuts go by a sample, which differs with the order of the rows.
    confidence : float
    method : "score" or "rates"
        "rates" takes one TPR and one FPR in all bags. It needs labels only, but bags that differ in kind (wards, days)
        make it too optimistic, so it is refused when the counts contradict it.
    prevalence : float, optional
        Share of positives in the population that is meant, if it is not that of the bags. TPR, FPR, ROC stay.
    threshold : float, optional
        Scores above it are positive; by default what the model predicts.
    shape : "monotone" or "bins"
        r rises (or falls) with the score, or is free in each bin.
    n_bins : int
        Bins of about equal numbers of rows in which r is constant, 8 to 16.
    interval : "profile" or "bootstrap"
        Bootstrap draws bags with replacement, ``n_draws`` times, from ``random_state``.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), np.zeros(2), np.eye(2), size=8, count=[1 / 9] * 9)
    >>> heldout = oracle.sample(400, np.random.default_rng(0))
    >>> found = bw.assess(bw.LTF([1.0, 0.7]), heldout)  # whose accuracy is 94.4 %
    >>> 0.944 in found.accuracy, found.accuracy.high - found.accuracy.low < 0.05
    (True, True)
    """
    _check_settings(confidence, method, shape, interval, n_bins, prevalence)
    if isinstance(bags, Bags):
        _check_bags(bags)
    task = partial(_Scored.of, model=model, threshold=threshold)
    bags, given, fingerprints = sum_of_answers(model, bags, "assess", task).together()
    _check_bags(bags)
    used = None if fingerprints is None else used_in_fit(model, fingerprints)
    if used is not None and used.any():
        warnings.warn(
            f"bags to assess with should be held out; {int(used.sum())} of {bags.n_bags} were used to fit the model, "
            "which looks better on them than it is. Use bags[~bagwise.bags_used_in_fit(model, bags)].",
            BagwiseWarning,
            stacklevel=2,
        )
    if method == "score":
        view, edges, codes = _score_view(given, bags, n_bins, prevalence)
    else:
        view, edges, codes = _rates_view(given, bags, prevalence), np.zeros(0), None
    level = float(chi2.ppf(confidence, 1))
    fits = view.fits(shape)
    dispersion = view.dispersion(fits[0].r)
    if method == "rates" and dispersion.p_value < _CONTRADICTED:
        raise InvalidInputError(
            "method='rates' needs one TPR and one FPR in all bags; the counts contradict it: their squared residuals "
            f"are {dispersion.ratio:.3g} times what it allows (chi^2 / dof; chance gives as much with probability "
            f"{dispersion.p_value:.1g}). It would be too optimistic: use method='score'."
        )
    behind = level * max(1.0, dispersion.ratio) / 2
    fits = [fit for fit in fits if fits[0].loglik - fit.loglik <= behind]
    intervals: _Profile | _Bootstrap
    if interval == "bootstrap":
        intervals = _Bootstrap.draw(view, fits, confidence, n_draws, np.random.default_rng(random_state))
    else:
        intervals = _Profile(view, fits, level)
    names = [name for name in FIGURES if not (name == "roc_auc" and method == "rates")]
    found = {name: intervals.over_all(FIGURES[name]) for name in names}
    branches = tuple(
        Branch(
            rising=_rising(fit, view),
            deviance=2 * (fits[0].loglik - fit.loglik),
            figures={name: intervals.on(FIGURES[name], fit) for name in names} if len(fits) > 1 else found,
        )
        for fit in fits
    )
    if len(fits) > 1:
        warnings.warn(_TWO_BRANCHES, IdentifiabilityWarning, stacklevel=2)
    masses = view.masses(fits[0].r)
    right = masses.positive
    return Assessment(
        **{name: found.get(name) for name in FIGURES},  # type: ignore[arg-type]
        roc=_roc(view, fits[0], level, edges),
        calibration=_calibration(view, fits[0], level, given, codes),
        confidence=float(confidence),
        method=method,
        at_prevalence=None if prevalence is None else float(prevalence),
        branches=branches,
        dispersion=dispersion,
        n_bags=bags.n_bags,
        n_rows=bags.n_rows,
        n_bins=len(fits[0].r),
        expected_errors=(bags.n_rows * float(masses.P[~right].sum()), bags.n_rows * float(masses.N[right].sum())),
        edges=edges,
        probabilities=np.where(fits[0].r < 2 * LEAST, 0.0, np.where(fits[0].r > 1 - 2 * LEAST, 1.0, fits[0].r)),
        notes=_notes(view, dispersion, len(fits), used, prevalence),
    )


def assessed_accuracy(model: Any, bags: Bags, *, n_bins: int = 10) -> float:
    """The estimate of accuracy alone, for scorers; of two branches that remain, the one in which higher scores are
    more often positive.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), np.zeros(2), np.eye(2), size=8, count=[1 / 9] * 9)
    >>> round(assessed_accuracy(oracle.ltf, oracle.sample(100, np.random.default_rng(0))), 2)
    1.0
    """
    _check_settings(0.95, "score", "monotone", "profile", n_bins, None)
    _check_bags(bags)
    view, _, _ = _score_view(answers(model, bags), bags, n_bins, None)
    fits = view.fits("monotone")
    level = float(chi2.ppf(0.95, 1)) * max(1.0, view.dispersion(fits[0].r).ratio)
    left = [fit for fit in fits if 2 * (fits[0].loglik - fit.loglik) <= level]
    fit = next((fit for fit in left if _rising(fit, view)), left[0])
    return float(FIGURES["accuracy"](view.masses(fit.r))[0])


# ---------------------------------------------------------------------- curves


def _pointwise(view: _View, fit: ProbabilityFit, level: float, figure: FigureFunction) -> Figure:
    """A figure with its interval by the sampling variance, as a share's."""
    value = figure(view.masses(fit.r))[0]
    return _wilson(value, view.variances(fit, figure)[1], level)


def _roc(view: _View, fit: ProbabilityFit, level: float, edges: FloatArray) -> RocCurve:
    """The curve's corners at the edges of the bins, from the highest threshold down."""
    B = len(view.positive)
    first = np.arange(B - 1, 0, -1)
    points = [[_pointwise(view, fit, level, roc_point(int(i), rate)) for i in first] for rate in ("fpr", "tpr")]
    nothing, all_rows = Figure(0.0, 0.0, 0.0), Figure(1.0, 1.0, 1.0)
    lines = [[nothing, *line, all_rows] for line in points]
    columns = [np.array([getattr(f, part) for f in line]) for part in ("estimate", "low", "high") for line in lines]
    thresholds = edges[first - 1] if len(edges) else np.full(len(first), np.nan)
    return RocCurve(np.concatenate([[np.inf], thresholds, [-np.inf]]), *columns)


def _calibration(
    view: _View, fit: ProbabilityFit, level: float, given: Answers, codes: IntArray | None
) -> Calibration | None:
    """Claimed against found probabilities; the totals alone tell them apart in the large."""
    if given.probabilities is None or codes is None or view.prevalence is not None:
        return None
    bags, P = view.bags, given.probabilities
    surplus = np.add.reduceat(P, bags.starts[:-1]) - bags.counts
    mean = float(surplus.sum()) / bags.n_rows
    m = bags.n_bags
    half = sqrt(level * float(np.sum((surplus - mean * bags.sizes) ** 2)) * m / max(m - 1, 1)) / bags.n_rows
    claimed = np.bincount(codes, P, len(fit.r)) / np.bincount(codes, minlength=len(fit.r))
    spread = np.diag(fit.covariance())
    bins = [_wilson(float(r), float(v), level) for r, v in zip(fit.r, spread, strict=True)]
    low, high = np.array([f.low for f in bins]), np.array([f.high for f in bins])
    return Calibration(Figure(mean, mean - half, mean + half), claimed, fit.r, low, high)


# ---------------------------------------------------------------------- words

_TWO_BRANCHES = (
    "the counts fit two mirror readings of the scores (higher scores more, or less, often positive); intervals span "
    "both. A few bags of another share of positives would tell."
)


def _notes(
    view: _View,
    dispersion: Dispersion,
    n_branches: int,
    used: BoolArray | None,
    prevalence: float | None,
) -> tuple[str, ...]:
    notes = []
    if n_branches > 1:
        notes.append(_TWO_BRANCHES)
    if dispersion.p_value < _CONTRADICTED:
        notes.append(
            f"counts vary {dispersion.ratio:.3g} times as much as the score explains: bags were chosen by their "
            "totals, which does no harm, or they differ in what the score does not see, and then estimates may be "
            "off by more than the intervals say (see 'When totals mislead')."
        )
    if used is not None and used.any():
        notes.append(f"{int(used.sum())} of the bags were used to fit the model, which looks better on them.")
    if prevalence is None and view.bags.n_bags > 1 and len(np.unique(view.bags.counts / view.bags.sizes)) == 1:
        notes.append(
            "all bags have the same share of positives, as if drawn to have it: accuracy, precision and prevalence are "
            "meant at that share. For another, pass prevalence=."
        )
    return tuple(notes)


def _percent(value: float) -> str:
    return "unknown" if not np.isfinite(value) else f"{100 * value:.1f} %"


def _between(figure: Figure) -> str:
    return f"{100 * figure.low:.1f} to {100 * figure.high:.1f} %"


def _check_settings(
    confidence: float, method: str, shape: str, interval: str, n_bins: int, prevalence: float | None
) -> None:
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie strictly between 0 and 1; got {confidence}. Use 0.95 for 95 %.")
    for name, value, choices in (
        ("method", method, ("score", "rates")),
        ("shape", shape, ("monotone", "bins")),
        ("interval", interval, ("profile", "bootstrap")),
    ):
        if value not in choices:
            raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    if not (isinstance(n_bins, (int, np.integer)) and 2 <= n_bins <= 64):
        raise InvalidInputError(f"n_bins must be an integer in 2..64; got {n_bins!r}. Ten serve most bags.")
    if prevalence is not None and not 0 < prevalence < 1:
        raise InvalidInputError(f"prevalence must lie strictly between 0 and 1; got {prevalence}. Use 0.2 for 20 %.")


def _check_bags(bags: Bags) -> None:
    if bags.n_bags < 2:
        raise InvalidInputError(f"an assessment needs at least two bags; got {bags.n_bags}. Hold out more.")
    if bags.counts.sum() in (0, bags.sizes.sum()):
        raise InvalidInputError("bags to assess with must hold both classes; all rows are of one. Hold out other bags.")
