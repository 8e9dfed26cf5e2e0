"""The conditions under which the theorems speak, checked once, at the door of each public function.

Owns the refusals of `bagwise.theory`; every one says what must hold, what came and what to do. Knows no
formula. Letters: q rows in a bag, k positives among them, p = k / q.
"""

from collections.abc import Sequence
from math import isfinite
from typing import TypeAlias

import numpy as np

from bagwise.arrays import AnyArray, FloatArray
from bagwise.errors import InvalidInputError

__all__ = [
    "Count",
    "check_at_least",
    "check_between",
    "check_eigenvalues",
    "check_finite",
    "check_key",
    "check_size",
    "count_probabilities",
    "proportion_moments",
]

#: The positives of a bag: a number k, or the probabilities of 0..q.
Count: TypeAlias = int | Sequence[float] | AnyArray


def check_between(name: str, value: float, low: float, high: float, *, why: str = "") -> float:
    """``value`` if it lies strictly between ``low`` and ``high``."""
    number = float(value)
    if not low < number < high:
        raise InvalidInputError(f"{name} must lie strictly between {low:g} and {high:g}; got {value}.{why}")
    return number


def check_at_least(name: str, value: float, low: float, *, why: str = "") -> float:
    """``value`` if it is finite and at least ``low``."""
    number = float(value)
    if not (isfinite(number) and number >= low):
        raise InvalidInputError(f"{name} must be finite and at least {low:g}; got {value}.{why}")
    return number


def check_finite(name: str, value: float) -> float:
    """``value`` if it is a finite number."""
    number = float(value)
    if not isfinite(number):
        raise InvalidInputError(f"{name} must be a finite number; got {value}.")
    return number


def check_size(size: int, low: int = 1) -> int:
    """``size`` as an integer of at least ``low``."""
    if isinstance(size, bool) or int(size) != size or size < low:
        raise InvalidInputError(
            f"size must be an integer of at least {low}; got {size}. It is the number of rows of a bag."
        )
    return int(size)


def check_key(size: int, count: int) -> tuple[int, int]:
    """(q, k) of a bag with rows of both classes, as the theorems want it: 1 <= k <= q - 1."""
    q = check_size(size, 2)
    if np.ndim(count) != 0 or isinstance(count, bool) or int(count) != count or not 1 <= count <= q - 1:
        raise InvalidInputError(
            f"count must be an integer in 1..{q - 1} for bags of size {q}; got {count}. Bags of one class "
            "are labelled rows: no theorem on bags is needed for them."
        )
    return q, int(count)


def count_probabilities(size: int, count: Count) -> FloatArray:
    """The probabilities of 0..q positives: those given, or all on one count."""
    q = check_size(size)
    if np.ndim(count) == 0:
        k = int(count)  # type: ignore[arg-type]
        if isinstance(count, bool) or k != count or not 0 <= k <= q:
            raise InvalidInputError(
                f"count must be an integer in 0..{q} for bags of size {q}; got {count}. For a mixture give "
                f"the {q + 1} probabilities of 0..{q}."
            )
        one = np.zeros(q + 1)
        one[k] = 1.0
        return one
    weights = np.asarray(count, dtype=np.float64)
    if weights.shape != (q + 1,):
        raise InvalidInputError(
            f"the probabilities of a mixture must be {q + 1} numbers, of 0..{q} positives; got shape {weights.shape}."
        )
    total = float(weights.sum())
    if not (np.isfinite(weights).all() and (weights >= 0).all() and abs(total - 1) <= 1e-9):
        raise InvalidInputError(
            "the probabilities of a mixture must be non-negative and sum to 1; got a smallest of "
            f"{weights.min():g} and a sum of {total:g}. Divide by their sum."
        )
    return weights / total


def proportion_moments(size: int, count: Count) -> tuple[float, float]:
    """Mean and variance of p = k / q; a variance of exactly 0 for one count."""
    weights = count_probabilities(size, count)
    p = np.arange(len(weights)) / (len(weights) - 1)
    support = np.flatnonzero(weights)
    if len(support) == 1:
        return float(p[support[0]]), 0.0
    pbar = float(weights @ p)
    return pbar, float(weights @ (p - pbar) ** 2)


def check_eigenvalues(lambda_min: float, lambda_max: float) -> tuple[float, float]:
    """Extreme eigenvalues of a positive definite covariance."""
    low = check_between("lambda_min", lambda_min, 0, float("inf"))
    high = check_finite("lambda_max", lambda_max)
    if high < low:
        raise InvalidInputError(
            f"lambda_max must be at least lambda_min; got lambda_max = {lambda_max} and lambda_min = {lambda_min}."
        )
    return low, high
