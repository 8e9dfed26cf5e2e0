"""Bounds on the instance error that hold with a stated confidence, from held-out bags alone.

Owns the step from the number of unsatisfied bags to a bound on the error of rows, and the list of what it rests on.
Refuses bags that the model has learnt from. Estimates with intervals, which are tighter and assume as much, live in
`bagwise.claims.assessment`; docs/theory/assessment.md derives both.

Vocabulary: a = 1 - TPR = Pr[predicted 0 | label 1] and b = FPR = Pr[predicted 1 | label 0]. A bag of k positives and l
negatives is unsatisfied with probability Pr[Bin(k, a) != Bin(l, b)]; (k, l) is its *key*.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv

from bagwise.arrays import AnyArray, FloatArray, IntArray
from bagwise.bags import Bags, BagSource
from bagwise.claims.answers import answers, model_answers, model_fingerprints, sum_of_answers, used_in_fit
from bagwise.errors import InvalidInputError

__all__ = ["Certificate", "certify", "upper_bag_error"]

# From a bag error of one half on, bags are satisfied by chance: Pr[Bin = Bin] above 1/2 is what forces a and b to 0.
_CHANCE = 0.5
_ANGLES, _STEPS = 129, 96


@dataclass(frozen=True, slots=True)
class Certificate:
    """What held-out bags guarantee about the error of single rows.

    Attributes
    ----------
    error_bound : float
        With probability ``confidence`` (over the bags) Pr[prediction != label] is at most this, at ``prevalence``.
    confidence : float
    prevalence : None, float or "bags"
        The share of positives at which the error is meant: any share, this one, or that of the bags.
    any_prevalence, bags_prevalence : float
        The bounds for any share of positives, max(a, b), and for that of the held-out bags.
    miss_bound, false_alarm_bound : float
        Bounds on a = 1 - TPR and on b = FPR.
    bag_error, bag_error_bound : float
        Share of the held-out bags that are unsatisfied, and the Clopper-Pearson upper limit of its expectation.
    n_bags, n_unsatisfied : int
    bags_share : float
        Share of positives in the held-out bags.
    paper_bound, sharp_bound : float or None
        4 U and U with U = ``bag_error_bound``, for any prevalence: the bound printed in [BSR23], which asks for
        U < 1 / (4 q), and the same without the factor, for U < 1 / (q + 1). None where they do not apply.
    up_to_complement : bool
        The bags do not tell the model from its complement: the bound holds for one of the two.
    vacuous : bool
        The bound is no better than one half.
    reuse_checked : bool
        Whether the model knows its bags, so that their absence among the held-out ones was verified.
    assumptions : tuple of str
        What the bound rests on.
    """

    error_bound: float
    confidence: float
    prevalence: float | Literal["bags"] | None
    any_prevalence: float
    bags_prevalence: float
    miss_bound: float
    false_alarm_bound: float
    bag_error: float
    bag_error_bound: float
    n_bags: int
    n_unsatisfied: int
    bags_share: float
    paper_bound: float | None
    sharp_bound: float | None
    up_to_complement: bool
    vacuous: bool
    reuse_checked: bool
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Certificate(error_bound={self.error_bound:.3g}, confidence={self.confidence:g}, "
            f"prevalence={self.prevalence!r}, {self.n_unsatisfied} of {self.n_bags} bags unsatisfied)"
        )

    def __str__(self) -> str:
        lines = [
            f"The error of a row is at most {_percent(self.error_bound)} {_where(self.prevalence)}, "
            f"with confidence {_percent(self.confidence)}"
            + (" (of the model or of its complement)." if self.up_to_complement else "."),
            f"  unsatisfied bags   {self.n_unsatisfied} of {self.n_bags}: bag error {_percent(self.bag_error)}, "
            f"at most {_percent(self.bag_error_bound)}",
            f"  any prevalence     {_percent(self.any_prevalence)}",
            f"  that of the bags   {_percent(self.bags_prevalence)} (share of positives {_percent(self.bags_share)})",
            f"  missed positives   {_percent(self.miss_bound)}",
            f"  false alarms       {_percent(self.false_alarm_bound)}",
            f"  theorem as printed {'does not apply' if self.paper_bound is None else _percent(self.paper_bound)}, "
            f"sharpened {'does not apply' if self.sharp_bound is None else _percent(self.sharp_bound)}",
        ]
        lines += [f"Note: {note}" for note in self.notes]
        lines += ["It assumes:"] + [f"  - {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        names = self.__dataclass_fields__
        return {name: _plain(getattr(self, name)) for name in names}


def certify(
    model: Any,
    bags: BagSource,
    confidence: float = 0.95,
    prevalence: float | Literal["bags"] | None = None,
    *,
    threshold: float | None = None,
) -> Certificate:
    """An upper bound on the instance error of a model, from bags it has not seen.

    The number of unsatisfied bags bounds the probability of one (Clopper-Pearson, exact, and valid for bags of several
    sizes and counts by Hoeffding 1956); that probability is inverted exactly over (a, b) for the sizes and counts
    present.

    Parameters
    ----------
    model : anything with predict(X), or an array of labels, scores or probabilities (see `assess`)
    bags : Bags, or a source of bags (see `scan_bags`)
        Held out: not used in the fit, nor to choose the penalty or the threshold. Learners keep fingerprints of their
        bags and such bags are refused; for other models it is assumed. A source is read once, part by part; memory
        holds 8 bytes per bag, its fingerprint, and nothing of its rows.
    confidence : float
    prevalence : None, a number or "bags"
        Share of positives in the population for which the error is wanted: whatever it is, this number, or the share
        in the bags. Bags of a fixed count say nothing about the population's share.
    threshold : float, optional
        Scores above it are predicted positive; by default what the model predicts.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), np.zeros(2), np.eye(2), size=10, count=8)
    >>> heldout = oracle.sample(500, np.random.default_rng(0))
    >>> certificate = bw.certify(oracle.ltf, heldout)
    >>> f"{certificate.any_prevalence:.3%} {certificate.bags_prevalence:.3%}"
    '0.299% 0.060%'
    >>> f"{bw.certify(oracle.ltf, heldout, prevalence=0.5).error_bound:.3%}"
    '0.150%'
    """
    _check_share("confidence", confidence)
    if isinstance(prevalence, str):
        if prevalence != "bags":
            raise InvalidInputError(f'prevalence must be None, a number in [0, 1] or "bags"; got {prevalence!r}.')
    elif prevalence is not None and not 0 <= float(prevalence) <= 1:
        raise InvalidInputError(f'prevalence must be None, a number in [0, 1] or "bags"; got {prevalence}.')
    held = sum_of_answers(model, bags, "certify", partial(_HeldOut.of, model=model, threshold=threshold))
    used = None if held.fingerprints is None else used_in_fit(model, np.concatenate(held.fingerprints))
    if used is not None and used.any():
        first = advice = ""
        if isinstance(bags, Bags):
            first = f" (the first is bag {int(np.argmax(used))})"
            advice = ", or with those left by bags[~bagwise.bags_used_in_fit(model, bags)]"
        raise InvalidInputError(
            f"bags for a certificate must be held out; {int(used.sum())} of {held.n_bags} were used to fit the model"
            f"{first}. Certify with other bags{advice}."
        )
    unsatisfied, n_bags = held.unsatisfied, held.n_bags
    limit = upper_bag_error(unsatisfied, n_bags, confidence)
    sizes, counts = held.sizes, held.counts
    keys = _Keys(counts, sizes - counts, held.times / n_bags)
    n_rows = int(held.times @ sizes)
    share = float(int(held.times @ counts) / n_rows)
    region = _Region.below(keys, limit)
    miss, alarm = region.largest(lambda a, b: a), region.largest(lambda a, b: b)
    any_bound, bags_bound = max(miss, alarm), region.largest(lambda a, b: share * a + (1 - share) * b)
    if prevalence is None:
        bound = any_bound
    elif isinstance(prevalence, str):
        bound = bags_bound
    else:
        prevalence = pi = float(prevalence)
        bound = region.largest(lambda a, b: pi * a + (1 - pi) * b)
    largest = int(sizes.max())
    mixed = bool(((counts > 0) & (counts < sizes)).all())
    vacuous = bound >= _CHANCE
    return Certificate(
        error_bound=bound,
        confidence=float(confidence),
        prevalence=prevalence,
        any_prevalence=any_bound,
        bags_prevalence=bags_bound,
        miss_bound=miss,
        false_alarm_bound=alarm,
        bag_error=unsatisfied / n_bags,
        bag_error_bound=limit,
        n_bags=n_bags,
        n_unsatisfied=unsatisfied,
        bags_share=share,
        paper_bound=4 * limit if mixed and limit < 1 / (4 * largest) else None,
        sharp_bound=limit if mixed and limit < 1 / (largest + 1) else None,
        up_to_complement=region.complement,
        vacuous=vacuous,
        reuse_checked=used is not None,
        assumptions=_assumptions(used is not None, prevalence),
        notes=_notes(n_rows / n_bags, limit, vacuous, region.complement, share),
    )


def upper_bag_error(unsatisfied: int, n_bags: int, confidence: float) -> float:
    """Clopper-Pearson upper limit of the mean probability that a bag is unsatisfied.

    U solves Pr[Bin(m, U) <= s] = 1 - confidence. For bags of several keys s is a sum of unlike Bernoullis, and by
    Hoeffding (1956) Pr[s' <= s] is at most the binomial's wherever m U >= s + 1, which is why U is at least that.

    Examples
    --------
    >>> round(upper_bag_error(0, 500, 0.95), 6)
    0.005974
    """
    if unsatisfied >= n_bags:
        return 1.0
    limit = float(betaincinv(unsatisfied + 1, n_bags - unsatisfied, confidence))
    return min(1.0, max(limit, (unsatisfied + 1) / n_bags))


@dataclass(frozen=True, slots=True, eq=False)
class _HeldOut:
    """All that a certificate asks of bags: their keys, how many are unsatisfied, their fingerprints. Merges with +."""

    sizes: IntArray  # of the distinct keys, as the next two
    counts: IntArray
    times: IntArray
    unsatisfied: int
    fingerprints: tuple[IntArray, ...] | None  # None where the model keeps none

    @classmethod
    def of(cls, bags: Bags, model: Any, threshold: float | None) -> "_HeldOut":
        """Of some bags."""
        found = model_fingerprints(model, bags)
        given = (model_answers if hasattr(model, "predict") else answers)(model, bags, threshold)
        unsatisfied = int(np.sum(given.counts(bags) != bags.counts))
        once = np.ones(bags.n_bags, np.int64)
        return cls(*_tallied(bags.sizes, bags.counts, once), unsatisfied, None if found is None else (found,))

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return int(self.times.sum())

    def __add__(self, other: "_HeldOut") -> "_HeldOut":
        pairs = ((self.sizes, other.sizes), (self.counts, other.counts), (self.times, other.times))
        keys = _tallied(*(np.concatenate(pair) for pair in pairs))
        both = None
        if self.fingerprints is not None and other.fingerprints is not None:
            both = self.fingerprints + other.fingerprints
        return _HeldOut(*keys, self.unsatisfied + other.unsatisfied, both)


def _tallied(sizes: IntArray, counts: IntArray, times: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct keys in order, and how often each stands."""
    keys, place = np.unique(np.column_stack([sizes, counts]), axis=0, return_inverse=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, place.ravel(), times)
    return np.ascontiguousarray(keys[:, 0]), np.ascontiguousarray(keys[:, 1]), total


# ---------------------------------------------------------------------- the region of (a, b)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The distinct keys of bags and their shares."""

    positives: IntArray
    negatives: IntArray
    weights: FloatArray

    def unsatisfied(self, a: AnyArray, b: AnyArray) -> FloatArray:
        """Mean probability of an unsatisfied bag at each (a, b)."""
        from bagwise.stats.kernels_binomials import mean_satisfied

        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        out = np.empty(a.size)
        mean_satisfied(
            self.positives, self.negatives, self.weights, np.ascontiguousarray(a).ravel(),
            np.ascontiguousarray(b).ravel(), out,
        )  # fmt: skip
        return 1 - out.reshape(a.shape)


@dataclass(frozen=True, slots=True)
class _Region:
    """All (a, b) at which unsatisfied bags are no more probable than ``limit``.

    Below one half it surrounds (0, 0), and (1, 1) where bags are balanced. It is walked along rays from these corners:
    any objective that grows along them is largest where a ray leaves the region.
    """

    keys: _Keys
    limit: float
    complement: bool

    @classmethod
    def below(cls, keys: _Keys, limit: float) -> "_Region":
        region = cls(keys, limit, complement=False)
        if limit >= _CHANCE:
            return cls(keys, limit, complement=False)
        return cls(keys, limit, complement=region._beyond_the_diagonal())

    def largest(self, objective: Callable[[FloatArray, FloatArray], FloatArray]) -> float:
        """Supremum over the region of an objective that grows with a and b; 1 where bags are satisfied by chance."""
        if self.limit >= _CHANCE:
            return 1.0
        found = self._largest_from(objective, mirrored=False)
        if self.complement:
            found = max(found, self._largest_from(objective, mirrored=True))
        return min(1.0, found)

    def _unsatisfied(self, a: FloatArray, b: FloatArray, mirrored: bool) -> FloatArray:
        return self.keys.unsatisfied(1 - a, 1 - b) if mirrored else self.keys.unsatisfied(a, b)

    def _beyond_the_diagonal(self) -> bool:
        """Whether the region has points with a + b > 1, nearer to the complement than to the model.

        Satisfied bags need a k = b l nearly, so it suffices to look near (1, 1) and, coarsely, everywhere.
        """
        fine = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 60)])
        a, b = np.meshgrid(fine, fine)
        inside = a + b < 1
        return bool((self.keys.unsatisfied(1 - a[inside], 1 - b[inside]) <= self.limit).any())

    def _largest_from(self, objective: Callable[[FloatArray, FloatArray], FloatArray], mirrored: bool) -> float:
        """The same from one corner: on a fan of rays, then on ever narrower fans around the best."""
        low, high, found = 0.0, np.pi / 2, 0.0
        for _ in range(5):
            angles = np.linspace(low, high, _ANGLES)
            a, b = self._leaving(angles, mirrored)
            values = objective(a, b)
            best = int(np.argmax(values))
            found = max(found, float(values[best]))
            low, high = angles[max(best - 1, 0)], angles[min(best + 1, _ANGLES - 1)]
        return found

    def _leaving(self, angles: FloatArray, mirrored: bool) -> tuple[FloatArray, FloatArray]:
        """Where rays at these angles leave the region for the last time.

        Angles are in the plane of (a k, b l) with the mean k and l, in which the region is about as wide as high.
        """
        k, l = float(self.keys.weights @ self.keys.positives), float(self.keys.weights @ self.keys.negatives)
        da, db = np.cos(angles) / max(k, 1e-9), np.sin(angles) / max(l, 1e-9)
        with np.errstate(divide="ignore"):
            end = np.minimum(1 / np.maximum(da, 1e-300), 1 / np.maximum(db, 1e-300))  # the edge of the square
        if self.complement:
            end = np.minimum(end, 1 / (da + db))
        # Steps are fine near the corner, where the region is; the last step inside is refined by bisection.
        steps = np.concatenate([[0.0], np.geomspace(1e-7, 1.0, _STEPS)])
        t = end[:, None] * steps
        inside = self._unsatisfied(np.minimum(t * da[:, None], 1), np.minimum(t * db[:, None], 1), mirrored)
        inside_steps = inside <= self.limit
        last = _STEPS - np.argmax(inside_steps[:, ::-1], axis=1)
        never = ~inside_steps.any(axis=1)
        left, right = end * steps[last], end * steps[np.minimum(last + 1, _STEPS)]
        for _ in range(50):
            middle = (left + right) / 2
            within = self._unsatisfied(np.minimum(middle * da, 1), np.minimum(middle * db, 1), mirrored) <= self.limit
            left, right = np.where(within, middle, left), np.where(within, right, middle)
        t_out = np.where(never, 0.0, right)
        return np.minimum(t_out * da, 1), np.minimum(t_out * db, 1)


# ---------------------------------------------------------------------- words


def _assumptions(checked: bool, prevalence: float | str | None) -> tuple[str, ...]:
    reuse = (
        "the bags were not used for the fit, the penalty or the threshold (checked for the fit by fingerprints)"
        if checked
        else "the bags were not used for the fit, the penalty or the threshold (not checked: the model keeps no record)"
    )
    return (
        "the model was fixed before these bags were looked at",
        reuse,
        "rows are independent given their labels",
        "one miss rate and one false alarm rate in all bags and in the population",
        "reported counts are right",
        f"the bound is meant {_where(prevalence)}",
    )


def _where(prevalence: float | str | None) -> str:
    """At which share of positives a bound is meant."""
    if prevalence is None:
        return "at any share of positives"
    return (
        "at the bags' share of positives"
        if isinstance(prevalence, str)
        else f"at a share of positives of {prevalence:g}"
    )


def _notes(size: float, limit: float, vacuous: bool, complement: bool, share: float) -> tuple[str, ...]:
    notes = []
    if limit >= _CHANCE:
        notes.append(
            f"the bound is vacuous: up to {_percent(limit)} of the bags may be unsatisfied, and from one half on bags "
            f"are satisfied by chance. Bags of {size:.3g} rows can only certify errors well below 1 / {size:.3g} = "
            f"{_percent(1 / size)}: use smaller bags, or assess for an estimate."
        )
    elif vacuous:
        notes.append("the bound is vacuous: it is no better than guessing. Use more bags, or assess for an estimate.")
    if complement:
        notes.append(
            "balanced bags are satisfied by a model and by its complement alike: the bound holds for one of the two. "
            "A few unbalanced bags would break the tie."
        )
    if limit < _CHANCE and (share in (0.0, 1.0)):
        notes.append("all bags are of one class and say nothing about errors on the other.")
    return tuple(notes)


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value.item() if isinstance(value, np.generic) else value


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise InvalidInputError(f"{name} must lie strictly between 0 and 1; got {value}.")
