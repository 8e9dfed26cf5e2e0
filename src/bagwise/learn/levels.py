"""What is known of the levels: the shares of reported positives among clean negatives and among clean positives.

Owns the three ways of knowing them, and the coordinates in which the search moves what is not known:

- *none* is free: labels are clean (0, 1), or wrong at stated rates.
- the *shift* is free: rates are stated, but bags were chosen by their reported counts. That multiplies the odds of a
  reported positive by one constant on both sides of the boundary, low = sigmoid(logit r0 + s), high = sigmoid(logit
  (1 - r1) + s). No data tell s beforehand: it compares the bags with the population that they were chosen from.
- *both* are free: low = sigmoid(alpha), high = low + (1 - low) sigmoid(beta), so that low < high everywhere.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, logit

from bagwise.arrays import FloatArray

__all__ = ["CLEAN", "Levels"]

# Pseudo-rows at even odds that keep a free coordinate finite.
_PRIOR = 0.5
# Free levels stay off 0 and 1: at them a row on the wrong side is impossible, and curvatures overflow.
_EDGE = 1e-13


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels as stated, or to begin with, and what of them is free. Coordinates are arrays of shape (n_free,)."""

    low: float = 0.0
    high: float = 1.0
    free: Literal["none", "shift", "both"] = "none"

    @property
    def n_free(self) -> int:
        """How many coordinates are searched."""
        return ("none", "shift", "both").index(self.free)

    def shifted(self, s: float) -> tuple[float, float]:
        """Both levels with their odds multiplied by exp(s)."""
        with np.errstate(divide="ignore"):
            low, high = expit(logit(np.array([self.low, self.high])) + s)
        return float(low), float(high)

    def coordinates(self, low: float, high: float) -> FloatArray:
        """Where given levels are, or nearly, if they are not among those allowed."""
        low, high = (float(np.clip(level, 1e-9, 1 - 1e-9)) for level in (low, high))
        if self.free == "both":
            return np.asarray(logit([low, (high - low) / (1 - low)]))
        if self.free == "shift":
            stated = [level for level in (self.low, self.high) if 0 < level < 1]
            found = [given for given, level in zip((low, high), (self.low, self.high), strict=True) if 0 < level < 1]
            return np.array([np.mean(logit(found) - logit(stated))])
        return np.zeros(0)

    def at(self, z: FloatArray) -> tuple[float, float]:
        """The levels at given coordinates."""
        if self.free == "both":
            low, share = np.clip(expit(z), _EDGE, 1 - _EDGE).tolist()
            return low, low + (1 - low) * share
        return self.shifted(float(z[0])) if self.free == "shift" else (self.low, self.high)

    def slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Jacobian (2, n_free) of the levels in the coordinates, and their second derivatives (2, n_free, n_free)."""
        if self.free == "both":
            low, share = (float(s) for s in expit(z))
            dlow, dshare = low * (1 - low), share * (1 - share)
            bent = dlow * (1 - 2 * low)
            J = np.array([[dlow, 0.0], [dlow * (1 - share), (1 - low) * dshare]])
            of_low = [[bent, 0.0], [0.0, 0.0]]
            of_high = [
                [bent * (1 - share), -dlow * dshare],
                [-dlow * dshare, (1 - low) * dshare * (1 - 2 * share)],
            ]
            return J, np.array([of_low, of_high])
        levels = np.array(self.at(z))
        first = levels * (1 - levels)
        n = self.n_free
        return np.repeat(first, n).reshape(2, n), np.repeat(first * (1 - 2 * levels), n * n).reshape(2, n, n)

    def prior(self, z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """What keeps the coordinates finite: its value, gradient (n_free,) and second derivatives (n_free,)."""
        s = expit(z)
        value = float(np.logaddexp(0, z).sum() + np.logaddexp(0, -z).sum())
        return _PRIOR * value, _PRIOR * (2 * s - 1), 2 * _PRIOR * s * (1 - s)

    def directions(self, low: float, high: float) -> FloatArray:
        """Along what a fit at given levels may still move, as columns in (low, high); none at 0 or 1 to rounding."""
        if self.free == "both":
            inside = [1e-4 < low, high < 1 - 1e-4]
            return np.eye(2)[:, inside]
        return np.array([[low * (1 - low)], [high * (1 - high)]])[:, : self.n_free]


CLEAN = Levels()
