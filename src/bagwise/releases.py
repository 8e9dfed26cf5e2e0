"""Totals released with noise: of which law, of what scale, and how likely a value is for each true count.

Owns the noise of private totals. A released total is a real number, negative or above the size as it may be; the true
count stays unknown, and whoever can sums over it. Refuses noise of unknown scale: a release states it.
docs/decisions/003-private-totals.md says how it travels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bagwise.arrays import AnyArray, FloatArray
from bagwise.errors import InvalidInputError

__all__ = ["CountNoise", "LAWS", "Release"]

#: The laws of noise; their positions are their numbers in bag targets and kernels. "none": the count is exact.
LAWS = ("none", "laplace", "discrete-laplace", "gaussian")


@dataclass(frozen=True, slots=True)
class CountNoise:
    """Noise that was added to each total before it was released.

    Parameters
    ----------
    law : "laplace", "discrete-laplace" or "gaussian"
    scale : float
        Of a Laplace law its scale b (sensitivity / epsilon), of the discrete one the same (Pr[z] ~ exp(-|z| / b)), of a
        Gaussian its standard deviation.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> noise = bw.CountNoise("laplace", scale=2.0)  # epsilon = 1/2 for a count
    >>> released = {"north": 3.7, "south": -1.2}
    >>> bags = bw.Bags.from_arrays([[0.1], [0.9], [0.3]], ["north", "north", "south"], counts=released, noise=noise)
    >>> bags.release.values, bags.counts  # counts: the nearest possible ones
    (array([ 3.7, -1.2]), array([2, 0]))
    """

    law: str
    scale: float

    def __post_init__(self) -> None:
        if self.law not in LAWS[1:]:
            raise InvalidInputError(f"law must be one of {', '.join(map(repr, LAWS[1:]))}; got {self.law!r}.")
        if not (isinstance(self.scale, (int, float, np.number)) and 0 < self.scale < np.inf):
            raise InvalidInputError(f"scale must be a positive number; got {self.scale!r}. Exact counts need no noise.")

    def add(self, counts: Any, rng: np.random.Generator) -> FloatArray:
        """Counts as such a release would state them: to try out what a scale costs."""
        exact = np.asarray(counts, dtype=np.float64)
        if self.law == "laplace":
            return exact + rng.laplace(scale=self.scale, size=exact.shape)
        if self.law == "gaussian":
            return exact + rng.normal(scale=self.scale, size=exact.shape)
        stop = -np.expm1(-1 / self.scale)  # the difference of two geometric numbers is discrete Laplace
        return exact + rng.geometric(stop, exact.shape) - rng.geometric(stop, exact.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What was released of each bag: values, and the law (see `LAWS`) and scale of the noise in them."""

    values: FloatArray  # (m,)
    laws: AnyArray  # (m,) int64
    scales: FloatArray  # (m,)

    @classmethod
    def of(cls, values: FloatArray, noise: CountNoise) -> "Release":
        """The same noise for all bags; a discrete law must have left integers."""
        if noise.law == "discrete-laplace" and (bad := np.flatnonzero(values != np.rint(values))).size:
            raise InvalidInputError(
                f"totals with discrete noise must be integers; got {values[bad[0]]} in bag number {bad[0]}. "
                'Was the noise "laplace"?'
            )
        m = len(values)
        return cls(values, np.full(m, LAWS.index(noise.law), np.int64), np.full(m, float(noise.scale)))

    @classmethod
    def exact(cls, counts: AnyArray) -> "Release":
        """Counts without noise, to stand beside released ones."""
        return cls(counts.astype(np.float64), np.zeros(len(counts), np.int64), np.zeros(len(counts)))

    def __getitem__(self, chosen: Any) -> "Release":
        return Release(self.values[chosen], self.laws[chosen], self.scales[chosen])

    @property
    def variances(self) -> FloatArray:
        """Of the noise of each bag."""
        b = self.scales
        with np.errstate(divide="ignore", over="ignore"):
            a = np.exp(-1 / np.where(b > 0, b, 1.0))
        found: FloatArray = np.choose(self.laws, [0 * b, 2 * b**2, 2 * a / (1 - a) ** 2, b**2])
        return found
