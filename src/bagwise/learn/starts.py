"""Where the search for maximum likelihood begins, and how it goes from one penalty to the next.

Owns the starting models, their ranking by likelihood, and the path over several C. The likelihood of totals is not
concave. Strong bags settle it: from the spectral direction, with the better sign, the search ends in the global
maximum. Weak ones (few bags per feature) have many local maxima, fewest under a heavy penalty, so that several starts
are run just above the penalty at which all would collapse, and the best of them are followed while it is relaxed
(docs/decisions/002-likelihood-search.md holds the figures).

Vocabulary: a start is *sloped* along a normal if its log-odds vary by 3 among all rows; it is *trapped* where the
penalty is so heavy that coef = 0 is a local maximum, see `trap_bound`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit, ndtri

from bagwise.arrays import FloatArray
from bagwise.bags import BagSource
from bagwise.errors import NotIdentifiableError
from bagwise.learn.directions import combined_direction, slope_direction
from bagwise.learn.levels import CLEAN, Levels
from bagwise.learn.likelihood import CountModel, Fit, LikelihoodTask, Problem, maximise
from bagwise.stats.linalg import whitener
from bagwise.stats.moments import Moments

__all__ = ["Path", "Search", "cosine", "sloped", "trap_bound"]

_SLOPE = 3.0
# Expected sine of the spectral direction beyond which it alone may lead astray, and beyond which it often does, with
# the number of random starts that then come along (docs/decisions/002-likelihood-search.md).
_DOUBTFUL, _FEW = 0.55, 4
_WEAK, _MANY = 0.6, 24
# In large data further starts cost many fits with labels: there only where one start would be luck.
_LARGE, _DOUBTFUL_IN_LARGE = 1 << 22, 0.8
# Log-likelihood over that of a constant, beside 1 for each feature, below which a maximum may be one of noise.
_LITTLE = 10.0
# Numbers beyond which many starts take longer than anybody waits.
_MIDDLING = 1 << 20
# How many of them are followed to the end, and after that from C to C.
_FINALISTS, _FOLLOWED = 8, 3
_SHORT = 8
# Log-likelihood below the best beyond which a maximum is not followed from C to C.
_OUT_OF_REACH = 20.0
# Numbers in the part of the bags on which starts are compared, if the bags are not weak.
_SAMPLE = 1 << 21
# Numbers up to which several starts are followed to the end in any case.
_SMALL = 1 << 18
# C of the first search over the bound of the trap.
_ABOVE_TRAP = 4.0
# C of the first search, in features of unit variance, where one start is enough.
_MODERATE = 10.0
_FACTOR = 10.0
# log-likelihood that a start may miss while starts are compared.
_COARSE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The best fit at each C, and how many starts were tried."""

    fits: dict[float, Fit]
    n_starts: int
    n_evaluations: int


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Everything of a problem but C; ``unit`` (d,) is the ridge on coef_j^2 / 2 at C = 1."""

    source: BagSource
    moments: Moments
    unit: FloatArray
    fit_intercept: bool = True
    levels: Levels = CLEAN
    tol: float = 1e-4
    max_steps: int = 200

    def problem(self, C: float) -> Problem:
        """The problem at one C."""
        return Problem(self.source, self.moments, self.unit / C, self.fit_intercept, self.levels)

    def maximise(self, C: float, start: CountModel, *, near: bool = False, tol: float | None = None) -> Fit:
        """The maximum at C that the start leads to."""
        return maximise(self.problem(C), start, tol=tol or self.tol, max_steps=self.max_steps, near=near)

    @property
    def weak(self) -> bool:
        """Whether one start may lead astray, there being too little in the bags; labels in hand are a concave case."""
        large = self.moments.n_rows * self.moments.n_features > _LARGE
        doubtful = _DOUBTFUL_IN_LARGE if large else _DOUBTFUL
        return not self.concave and not combined_direction(self.moments).sine <= doubtful

    @property
    def concave(self) -> bool:
        """Whether there is one maximum only: labels in hand."""
        return self.moments.n_pairs <= 0 and not self.levels.n_free

    @property
    def small(self) -> bool:
        """Whether following a second start costs next to nothing."""
        return self.moments.n_rows * self.moments.n_features <= _SMALL

    def path(self, Cs: Sequence[float], rng: np.random.Generator) -> Path:
        """The best fit at each C, from starts of their own: up from the first C, then down from it."""
        Cs = sorted(Cs)
        direction = combined_direction(self.moments)
        weak = self.weak
        starts = self._starts(direction.normal, direction.sine, rng, weak)
        safe = _ABOVE_TRAP * trap_bound(self.moments, self.unit)
        if weak and not self.levels.n_free:
            first = min(safe or 1.0, Cs[-1])
        else:  # free levels compete with coef for the blame, the more so the heavier its penalty
            least = max(safe, _MODERATE)
            first = next((C for C in Cs if least <= C), Cs[-1])
        leaders = _in_reach(self._best(first, starts, weak))
        if not weak and not self.concave and self.gain(leaders[0]) < _LITTLE + self.moments.n_features:
            starts = self._starts(direction.normal, np.nan, rng, True)
            leaders = _in_reach(self._best(first, starts, True))
        evaluations = sum(fit.n_evaluations for fit in leaders)
        fits: dict[float, Fit] = {first: leaders[0]} if first in Cs else {}
        followed = leaders
        for C in _ladder(first, [C for C in Cs if first < C]):
            tol = None if C == Cs[-1] else _COARSE
            followed = _in_reach([self.maximise(C, fit.model, near=True, tol=tol) for fit in followed])
            evaluations += sum(fit.n_evaluations for fit in followed)
            fits[C] = followed[0]
        followed = leaders
        for C in [C for C in reversed(Cs) if C < first]:
            followed = _in_reach([self.maximise(C, fit.model, near=True) for fit in followed])
            evaluations += sum(fit.n_evaluations for fit in followed)
            fits[C] = followed[0]
        return Path({C: fits[C] for C in Cs}, len(starts), evaluations)

    def gain(self, fit: Fit) -> float:
        """The objective over that of the model that gives all rows one probability."""
        constant = CountModel(np.zeros(self.moments.n_features), float(logit(self.moments.proportion)))
        return fit.objective - self.source.reduce(LikelihoodTask(constant, self.moments.mean)).loglik

    def _starts(self, normal: FloatArray, sine: float, rng: np.random.Generator, weak: bool) -> list[CountModel]:
        """Both signs of the spectral direction, of the class means where these disagree, and random directions."""
        moments = self.moments
        normals = [normal]
        if moments.count_scatter > 0:
            try:
                means = slope_direction(moments).normal
                if abs(cosine(means, normal, moments.cov_bag)) < 0.95:
                    normals.append(means)
            except NotIdentifiableError:
                pass
        many = not sine <= _WEAK and moments.n_rows * moments.n_features <= _MIDDLING
        n_random = 0 if not weak else _MANY if many else _FEW
        if n_random:
            W = whitener(moments.cov_bag)
            known = np.linalg.lstsq(W.matrix, normal, rcond=None)[0]
            known = known / np.linalg.norm(known)
            for i in range(n_random):
                g = rng.standard_normal(W.rank)
                g /= np.linalg.norm(g)
                # Half of them anywhere, half of them halfway to what the moments suggest.
                normals.append(W.normal(g if i % 2 else known + g))
        levels = self._starting_levels()
        return [sloped(moments, sign * one, self.fit_intercept, levels) for one in normals for sign in (1, -1)]

    def _starting_levels(self) -> tuple[float, float]:
        """The given levels; free ones, if all bags share one proportion, as flips look after counts were chosen.

        Choosing bags by their reported counts multiplies the odds of a reported positive by a constant, on either side
        of the boundary: by the odds of the bags' proportion if half of all reported labels are positive.
        """
        if not self.levels.n_free or self.moments.count_scatter > 0:
            return self.levels.low, self.levels.high
        return self.levels.shifted(float(logit(np.clip(self.moments.proportion, 0.01, 0.99))))

    def _best(self, C: float, starts: list[CountModel], weak: bool) -> list[Fit]:
        """The best fits at C, best first: one if the bags are strong."""
        compared = self if weak or self.levels.n_free else self._smaller()  # levels may run away on a part
        short = sorted(
            (
                maximise(compared.problem(C), start, tol=_COARSE, max_steps=_SHORT, first_phase_only=True)
                for start in starts
            ),
            key=lambda fit: -fit.objective,
        )
        if not weak and not self.levels.n_free and (len(short) == 1 or not self.small):
            best, whole = short[0], compared is self
            if not whole:
                # The part's own maximum is near that of all, whose passes are dear.
                best, whole = compared.maximise(C, best.model), True
            return [self.maximise(C, best.model, near=whole)]
        fits = sorted(
            (self.maximise(C, fit.model, tol=_COARSE) for fit in short[:_FINALISTS]), key=lambda fit: -fit.objective
        )
        kept: list[Fit] = []
        for fit in fits:
            if all(fit.objective < other.objective - 2 * _COARSE for other in kept):
                kept.append(fit)
        best = self.maximise(C, kept[0].model, near=True)
        return [best, *kept[1 : _FOLLOWED if weak or self.levels.n_free else 1]]

    def _smaller(self) -> "Search":
        """The same on a part of the bags, if there are many."""
        moments = self.moments
        size = moments.n_rows * moments.n_features
        if size <= 2 * _SAMPLE or moments.n_bags < 4 * moments.n_features:
            return self
        fraction = max(_SAMPLE / size, 2 * moments.n_features / moments.n_bags)
        if fraction > 0.5:
            return self
        part, _ = self.source.split(fraction, np.random.default_rng(0))
        share = fraction
        smaller = replace(moments, n_rows=share * moments.n_rows, n_bags=share * moments.n_bags)
        return replace(self, source=part, moments=smaller, unit=self.unit * share)


def sloped(
    moments: Moments,
    normal: FloatArray,
    fit_intercept: bool = True,
    levels: tuple[float, float] = (0.0, 1.0),
) -> CountModel:
    """The model along a normal whose log-odds have standard deviation 3, at the bags' share of positives."""
    spread = float(np.sqrt(max(float(normal @ moments.cov_bag @ normal), 0.0)))
    coef = normal * (_SLOPE / spread if spread > 0 else 0.0)
    if not fit_intercept:
        return CountModel(coef, 0.0, *levels)
    low, high = levels
    p = float(np.clip((moments.proportion - low) / (high - low), 0.02, 0.98))
    # E sigmoid(z) of a normal z is about Phi(mean / sqrt(var + 1.7^2)).
    middle = float(np.asarray(ndtri(p))) * np.sqrt(_SLOPE**2 + 1.7**2)
    return CountModel(coef, float(middle - coef @ moments.mean), *levels)


def _in_reach(fits: list[Fit]) -> list[Fit]:
    """The fits, best first, without those so far below the best that another C will not bring them back."""
    fits = sorted(fits, key=lambda fit: -fit.objective)
    return [fit for fit in fits if fit.objective > fits[0].objective - _OUT_OF_REACH]


def trap_bound(moments: Moments, unit: FloatArray) -> float:
    """The C below which coef = 0 is a local maximum, if all bags share one proportion.

    There the Hessian of the log-likelihood is 1/2 sum q p (1 - p) (Sigma_D - 2 Sigma_B); the bound is 1 over its
    largest eigenvalue in units of the penalty. Where proportions vary, coef = 0 is not even stationary, and the bound
    only says how strong the pairs are. 0 where they tell nothing.
    """
    mixed = moments.pair_weight * moments.n_pairs
    scale = 1 / np.sqrt(unit)
    H = 0.5 * mixed * (moments.cov_diff - 2 * moments.cov_given_count) * np.outer(scale, scale)
    top = float(np.linalg.eigvalsh((H + H.T) / 2)[-1])
    return 1 / top if top > 0 else 0.0


def _ladder(first: float, Cs: list[float]) -> list[float]:
    """The Cs with steps between them (and the first) of a factor of at most 10."""
    rungs: list[float] = []
    at = first
    for C in Cs:
        while C > _FACTOR * 1.001 * at:
            at *= _FACTOR
            rungs.append(at)
        if not rungs or rungs[-1] != C:
            rungs.append(C)
        at = C
    return rungs


def cosine(a: FloatArray, b: FloatArray, cov: FloatArray) -> float:
    """Cosine of two normals in the metric of a covariance; 0 where a normal is."""
    size = float(np.sqrt((a @ cov @ a) * (b @ cov @ b)))
    return float(a @ cov @ b) / size if size > 0 else 0.0
