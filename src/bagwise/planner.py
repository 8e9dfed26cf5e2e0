"""How many bags, and of which kind, for a wanted error.

Owns `plan`: closed forms for the spectral and the mean learner, simulation with the learner itself for the likelihood
learner, the theorems for a guarantee, and the choice of bags for a budget. Refuses to promise: but for the theorem all
numbers are expectations over Gaussian data with a linear threshold.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from typing import Any

import numpy as np
from scipy.stats import chi2

from bagwise.arrays import FloatArray
from bagwise.data.oracles import BagOracle
from bagwise.errors import InvalidInputError
from bagwise.ltf import LTF
from bagwise.theory.asymptotics import expected_instance_error, mean_direction_error, spectral_instance_error
from bagwise.theory.conditions import Count, check_size, count_probabilities
from bagwise.theory.sample_sizes import theorem_2_bags, theorem_3_bags

__all__ = ["Design", "Plan", "best_designs", "plan"]

_LEARNERS = ("logistic", "spectral", "mean", "theorem")
_MOST_BAGS = 10**8
_DELTA = 0.05
_STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the curve, around the wanted bags
_BAND = (0.05, 0.95)
# A simulated error so near to the wanted one (as a logarithm) ends the search.
_NEAR = 0.15
# Rows times features beyond which a simulated data set is not drawn.
_LARGEST = 2e8


@dataclass(frozen=True, slots=True)
class Design:
    """Bags of one kind, and the spectral learner's expected error with as many as a budget allows."""

    size: int
    count: int
    n_bags: int
    error: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"size": self.size, "count": self.count, "n_bags": self.n_bags, "error": self.error}


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Bags that a wanted error needs; see `plan`.

    Attributes
    ----------
    n_bags : mapping from learner to int or None
        None where no number of bags is enough, or more than 1e8 are needed.
    curve : tuple of mappings
        Points with learner, n_bags, error and the band low to high, which holds 90 % of data sets.
    n_features, size : int
    count : int, or probabilities
    error, threshold : float
    reasons : mapping from learner to str
        Why there is no number, or what it rests on.
    """

    n_bags: Mapping[str, int | None]
    curve: tuple[Mapping[str, Any], ...]
    n_features: int
    size: int
    count: Any
    error: float
    threshold: float
    reasons: Mapping[str, str]

    def by_learner(self) -> dict[str, list[Mapping[str, Any]]]:
        """The curve of each learner."""
        return {
            name: points
            for name in self.n_bags
            if (points := [point for point in self.curve if point["learner"] == name])
        }

    def __repr__(self) -> str:
        return f"Plan({', '.join(f'{name} {_number(n)}' for name, n in self.n_bags.items())} bags)"

    def __str__(self) -> str:
        lines = [
            f"Bags of {self.size} rows for an instance error of {100 * self.error:g} %, {self.n_features} features"
        ]
        lines += [f"  {name:10} {_number(n):>12}   {self.reasons[name]}" for name, n in self.n_bags.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        count = self.count if isinstance(self.count, int) else [float(p) for p in self.count]
        return {
            "n_bags": dict(self.n_bags),
            "curve": [dict(point) for point in self.curve],
            "n_features": self.n_features,
            "size": self.size,
            "count": count,
            "error": self.error,
            "threshold": self.threshold,
            "reasons": dict(self.reasons),
        }


def plan(
    n_features: int,
    size: int,
    count: Count,
    error: float,
    *,
    threshold: float = 0.0,
    learners: Sequence[str] = _LEARNERS,
    n_simulations: int = 8,
    random_state: int = 0,
) -> Plan:
    """How many bags an instance error asks for, by learner.

    Parameters
    ----------
    n_features : int
    size : int
        Rows per bag.
    count : int, or probabilities of 0..size
        Positives per bag.
    error : float
        Wanted expected Pr[prediction != label] over the Gaussian.
    threshold : float
        Standard deviations from the mean to the boundary; Pr[label = 1] = Phi(-threshold).
    learners : names
        "logistic" (`BagLogisticRegression`, by simulation with C = 1e5, right for labels without noise), "spectral"
        (`SpectralLTF`) and "mean" (`MeanLTF`) by closed forms, "theorem" (a guarantee with probability 95 %, with the
        constants of `bagwise.theory.sample_sizes`).
    n_simulations, random_state : int
        Data sets per simulated number of bags, and their seed.

    Examples
    --------
    >>> import bagwise as bw
    >>> found = bw.plan(n_features=50, size=10, count=8, error=0.02, learners=["spectral"])
    >>> 20_000 < found.n_bags["spectral"] < 30_000
    True
    """
    d, q = check_size(n_features), check_size(size)
    count_probabilities(q, count)  # refuses what is no law of counts
    if not 0 < error < 0.5:
        raise InvalidInputError(f"error must lie strictly between 0 and 0.5; got {error}. Use 0.02 for 2 %.")
    if strange := [name for name in learners if name not in _LEARNERS]:
        raise InvalidInputError(f"learners must be of {', '.join(_LEARNERS)}; got {strange[0]!r}.")
    n_bags: dict[str, int | None] = {}
    curve: list[dict[str, Any]] = []
    reasons: dict[str, str] = {}
    for name in learners:
        try:
            if name == "theorem":
                n_bags[name] = _guaranteed(d, q, count, error, threshold)
                reasons[name] = "guaranteed with probability 95 %"
                continue
            if name == "logistic":
                wanted: int | None
                wanted, points = _simulated(d, q, count, error, threshold, n_simulations, random_state)
                reasons[name] = f"simulated, {n_simulations} data sets per number of bags"
            else:
                expected = _closed_form(name, d, q, count, threshold)
                wanted = _smallest(expected, error)
                points = [] if wanted is None else _curve(expected, wanted, d)
                reasons[name] = "closed form" if wanted is not None else "more than 1e8 bags"
            n_bags[name] = wanted
            curve += [{"learner": name} | point for point in points]
        except InvalidInputError as refused:
            n_bags[name], reasons[name] = None, str(refused).split(";")[0]
    kept = int(count) if isinstance(count, (int, np.integer)) else tuple(float(p) for p in np.asarray(count))
    return Plan(n_bags, tuple(curve), d, q, kept, float(error), float(threshold), reasons)


def best_designs(
    n_features: int,
    *,
    rows: int | None = None,
    bags: int | None = None,
    threshold: float = 0.0,
    sizes: Sequence[int] = (2, 3, 5, 10, 20, 50, 100),
    n_best: int = 5,
) -> tuple[Design, ...]:
    """Kinds of bag with the least expected error of the spectral learner, for a budget of rows or of bags.

    Counts tried are the tenths of each size; of bags that tell the sign (a count other than half).

    Examples
    --------
    >>> best_designs(10, rows=20_000, n_best=1)[0].size
    3
    """
    if (rows is None) == (bags is None):
        raise InvalidInputError("a budget is one of rows= and bags=; got both or none.")
    found = []
    for q in sizes:
        m = int(bags) if bags is not None else int(rows or 0) // q
        for k in sorted({round(q * tenth / 10) for tenth in range(1, 10)} - {0, q}):
            if 2 * k == q or m < 2:
                continue
            try:
                error = spectral_instance_error(n_features, m, q, k, threshold)
            except InvalidInputError:
                continue
            found.append(Design(q, k, m, error))
    return tuple(sorted(found, key=lambda design: design.error)[:n_best])


# ---------------------------------------------------------------------- closed forms


def _closed_form(name: str, d: int, q: int, count: Count, l: float) -> Callable[[float], float]:
    """Expected instance error against the number of bags."""
    if name == "spectral":
        return lambda m: spectral_instance_error(d, m, q, count, l)
    return lambda m: expected_instance_error(mean_direction_error(d, m, q, count, l), l)


def _smallest(expected: Callable[[float], float], error: float) -> int | None:
    """Fewest bags whose expected error is at most the wanted one, to one in a thousand; None above 1e8."""
    low, high = 2, 4
    while expected(high) > error:
        low, high = high, 2 * high
        if high > _MOST_BAGS:
            return None
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if expected(middle) <= error else (middle, high)
    return high


def _curve(expected: Callable[[float], float], wanted: int, d: int) -> list[dict[str, float]]:
    """Expected errors around the wanted bags; the tangent of the angle varies as chi of d - 1 directions."""
    spread = np.sqrt(chi2.ppf(_BAND, d - 1) / (d - 1)) if d > 1 else np.ones(2)
    return [
        {"n_bags": m, "error": value, "low": value * float(spread[0]), "high": min(1.0, value * float(spread[1]))}
        for m in sorted({max(2, ceil(wanted * step)) for step in _STEPS})
        for value in [float(expected(m))]
    ]


def _guaranteed(d: int, q: int, count: Count, error: float, l: float) -> int:
    """Bags of the theorem that applies."""
    if not isinstance(count, (int, np.integer)):
        raise InvalidInputError("the theorems are of one count; got several.")
    if l == 0:
        return theorem_2_bags(error, _DELTA, n_features=d, size=q, count=int(count)).total
    return theorem_3_bags(error, _DELTA, n_features=d, size=q, count=int(count), threshold=l).total


# ---------------------------------------------------------------------- simulation


def _simulated(
    d: int, q: int, count: Count, error: float, l: float, n_simulations: int, seed: int
) -> tuple[int, list[dict[str, float]]]:
    """Bags for the likelihood learner, whose error is simulated where those known let expect the wanted one."""
    errors: dict[int, FloatArray] = {}

    def run(m: int) -> None:
        if m * q * d > _LARGEST:
            raise InvalidInputError(f"{m} bags of {q} rows are more than can be simulated; ask for a larger error.")
        errors[m] = np.array([_fitted_error(d, q, count, l, m, [seed, m, i]) for i in range(n_simulations)])

    m = max(ceil(1.5 * d / (q * error)), d, 10)
    for _ in range(8):
        run(m)
        if abs(log(max(float(errors[m].mean()), 1e-9) / error)) < _NEAR:
            break
        m = _wanted_bags(errors, error)
        if min(abs(log(m / known)) for known in errors) < _NEAR / 4:
            break
    wanted = _wanted_bags(errors, error)
    points = []
    for n in sorted(errors):
        mean = float(errors[n].mean())
        low, high = np.quantile(errors[n], _BAND)
        points.append({"n_bags": n, "error": mean, "low": float(min(low, mean)), "high": float(max(high, mean))})
    return wanted, points


def _wanted_bags(errors: Mapping[int, FloatArray], wanted: float) -> int:
    """Bags with the wanted error: on the line, in logarithms, between the nearest simulated ones around it, or on from
    the nearest as 1 / m."""
    found = {n: log(max(float(values.mean()), 1e-9) / wanted) for n, values in errors.items()}
    worse = [n for n, excess in found.items() if excess > 0]
    better = [n for n, excess in found.items() if excess <= 0]
    few, many = max(worse, default=None), min(better, default=None)
    if few is not None and many is not None and few < many:
        share = found[few] / (found[few] - found[many])
        return max(2, round(exp(log(few) + share * (log(many) - log(few)))))
    nearest = min(found, key=lambda n: abs(found[n]))
    return max(2, ceil(nearest * exp(min(max(found[nearest], -2.0), 2.0))))


def _fitted_error(d: int, q: int, count: Count, l: float, m: int, seed: list[int]) -> float:
    """Exact instance error of the likelihood learner on one data set; for balanced bags up to complement."""
    import warnings

    from bagwise.errors import BagwiseWarning
    from bagwise.estimators.logistic import BagLogisticRegression

    # The learner scales features and the error is exact, so that N(0, I) stands for every Gaussian.
    normal = np.zeros(d)
    normal[0] = 1.0
    truth = LTF(normal, -l)
    law: Any = int(count) if isinstance(count, (int, np.integer)) else count
    bags = BagOracle(truth, np.zeros(d), np.eye(d), size=q, count=law).sample(m, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BagwiseWarning)
        learner = BagLogisticRegression(C=1e5, random_state=0).fit(bags)
    error = learner.ltf_.disagreement(truth, np.zeros(d), np.eye(d))
    return float(min(error, 1 - error) if bags.balanced else error)


def _number(n: int | None) -> str:
    return "no number" if n is None else f"{n:,}" if n < 10**9 else f"{n:.2g}"
