"""Sums over rows: all that the spectral and mean learners know of the bags.

`BagMoments` is the state: two O(d^2) matrices whatever the number of bags, sizes and counts, merged with ``+``.
Finished, it is `Moments`: covariances, in the paper's and in the regression form. Population moments are `Moments`
too, so that learners run on exact theory unchanged.

Owns every sum over rows, none of what is concluded from it. Letters: d features, m bags, n rows; of a bag q rows,
k positives, p = k / q.

The identities behind it, for all pairs of every bag and no pair loop:

- the mean of (x_i - x_j)(x_i - x_j)^T over the pairs i != j of a bag is 2 / (q - 1) times the scatter of its rows;
- total scatter = within-bag scatter + size-weighted scatter of the bag means;
- E[bag mean | p] is linear in p for any distribution, so the regression of the bag means on p splits the latter
  into slope and residual.
"""

from dataclasses import dataclass

import numpy as np

from bagwise.arrays import FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.errors import InvalidInputError
from bagwise.stats.parallel import bag_parts

__all__ = ["BagMoments", "Moments", "key_moments", "one_draw_moments"]

# Numbers per block of rows: few enough to stay in a cache between the passes, enough for threads of the product.
_BLOCK_ELEMENTS = 1 << 18
# What the quick within-bag scatter must keep of a sum of squares; with less, the careful way is taken. Three digits
# lost leave an error of 1e-13, far below what `linalg` takes for a dimension (1e-11).
_CANCELLATION = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Means and covariances of bags, estimated or exact.

    Attributes
    ----------
    n_bags, n_rows : float
        What the figures stand for; exact ones are per bag (``n_bags`` = 1).
    mean : array of shape (d,)
        mu_B, of a row of a random bag.
    proportion : float
        Share of positives among all rows.
    cov_bag : array of shape (d, d)
        Sigma_B, the covariance of a row of a random bag.
    cov_diff : array of shape (d, d)
        Sigma_D, the covariance of the difference of two distinct rows of a bag; zeros if all bags are rows.
    slope : array of shape (d,)
        Change of a bag's mean from p = 0 to p = 1: the difference of the class means. Zeros if p does not vary.
    count_scatter : float
        Sum over bags of q (p - pbar)^2: how much the proportions vary.
    pair_weight : float
        Sum over bags of q p (1 - p) over (n_rows - n_bags): how much of the slope's square is inside of bags.
    size, count : int or None
        Of each bag, if all bags agree.
    """

    n_bags: float
    n_rows: float
    mean: FloatArray
    proportion: float
    cov_bag: FloatArray
    cov_diff: FloatArray
    slope: FloatArray
    count_scatter: float
    pair_weight: float
    size: int | None = None
    count: int | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.mean)

    @property
    def n_pairs(self) -> float:
        """Degrees of freedom within bags, n_rows - n_bags."""
        return self.n_rows - self.n_bags

    @property
    def dispersion(self) -> float:
        """Variance of the proportions over that of bags formed at random: 0 all alike, 1 as by chance."""
        chance = self.n_bags * self.proportion * (1 - self.proportion)
        return self.count_scatter / chance if chance > 0 else 0.0

    @property
    def cov_given_count(self) -> FloatArray:
        """Sigma_B without what the variation of p adds to it; Sigma_B itself if all bags share p."""
        return self.cov_bag - (self.count_scatter / self.n_rows) * np.outer(self.slope, self.slope)

    @property
    def cov_within(self) -> FloatArray:
        """Covariance of a row around the mean of its bag, unbiased: half of Sigma_D."""
        return self.cov_diff / 2

    @property
    def cov_residual(self) -> FloatArray:
        """Covariance of a bag's mean around its regression on p, times q: what rows of one class would have."""
        within = self.n_pairs * self.cov_within
        return (self.n_rows * self.cov_given_count - within) / self.n_residuals

    @property
    def n_residuals(self) -> float:
        """Degrees of freedom of ``cov_residual``: bags less the fitted coefficients (exact moments have no loss)."""
        if self.n_bags <= 1:
            return self.n_bags
        return max(self.n_bags - (2.0 if self.count_scatter > 0 else 1.0), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class BagMoments:
    """Sums over bags that merge with ``+``: associative, commutative, `empty` neutral.

    Examples
    --------
    >>> import bagwise as bw
    >>> bags = bw.Bags.from_sizes([[0.0], [2.0], [1.0], [5.0]], sizes=[2, 2], counts=[1, 1])
    >>> both = bw.BagMoments.from_bags(bags[:1]) + bw.BagMoments.from_bags(bags[1:])
    >>> both.finalize().cov_diff  # ((2 - 0)^2 + (5 - 1)^2) / 2
    array([[10.]])
    """

    n_bags: int
    n_rows: int
    centre: FloatArray  # (1 + d,) row-weighted mean of (p, bag mean)
    between: FloatArray  # (1 + d, 1 + d) row-weighted scatter of (p, bag mean) around it
    within: FloatArray  # (d, d) scatter of rows around the mean of their bag
    sizes: tuple[int, int]  # smallest and largest
    counts: tuple[int, int]

    @classmethod
    def empty(cls, n_features: int) -> "BagMoments":
        """The sums over no bags."""
        d, nothing = n_features, (int(np.iinfo(np.int64).max), -1)
        return cls(0, 0, np.zeros(1 + d), np.zeros((1 + d, 1 + d)), np.zeros((d, d)), nothing, nothing)

    @classmethod
    def from_bags(cls, bags: Bags) -> "BagMoments":
        """The sums over all rows of the bags, in one pass and without reordering or copying them."""
        if bags.n_bags == 0:
            return cls.empty(bags.n_features)
        n = bags.n_rows
        # A row, not a mean: a constant column then is 0 to the last bit, and stays so when sums are merged.
        origin = bags.X[0].astype(np.float64)
        gram, squares = _grams(bags, origin)
        centre: FloatArray = gram[0, 1:] / n
        between = gram[1:, 1:] - n * np.outer(centre, centre)
        # Of sum (x - o)(x - o)^T only sum x x^T needs the rows; the means' Gram matrix knows the rest.
        shift = np.outer(origin, gram[0, 2:] + n * origin / 2)
        within: FloatArray = squares - shift - shift.T - gram[2:, 2:]
        # Where most of a sum of squares has cancelled, digits are lost: then sum squared deviations instead.
        if (np.diag(within) < _CANCELLATION * np.diag(squares)).any():
            within = _careful_within(bags)
        return cls(
            bags.n_bags,
            n,
            centre + np.append(0.0, origin),
            between,
            within,
            (int(bags.sizes.min()), int(bags.sizes.max())),
            (int(bags.counts.min()), int(bags.counts.max())),
        )

    def __add__(self, other: "BagMoments") -> "BagMoments":
        if not isinstance(other, BagMoments):
            return NotImplemented
        if len(self.centre) != len(other.centre):
            raise InvalidInputError(
                f"moments to be added must have the same features; got {len(self.within)} and {len(other.within)}."
            )
        n = self.n_rows + other.n_rows
        if n == 0:
            return self
        # Chan, Golub and LeVeque's update: stable, and symmetric in its two sides to the last bit.
        delta = other.centre - self.centre if self.n_rows and other.n_rows else np.zeros_like(self.centre)
        weight = self.n_rows * other.n_rows / n
        centre = (self.n_rows * self.centre + other.n_rows * other.centre) / n
        return BagMoments(
            self.n_bags + other.n_bags,
            n,
            np.where(delta == 0, self.centre if self.n_rows else other.centre, centre),  # equal ones do not move
            self.between + other.between + weight * np.outer(delta, delta),
            self.within + other.within,
            (min(self.sizes[0], other.sizes[0]), max(self.sizes[1], other.sizes[1])),
            (min(self.counts[0], other.counts[0]), max(self.counts[1], other.counts[1])),
        )

    def finalize(self) -> Moments:
        """The moments that the sums stand for."""
        if self.n_bags == 0:
            raise InvalidInputError("moments need at least one bag; got none.")
        n, pairs = self.n_rows, self.n_rows - self.n_bags
        p = float(self.centre[0])
        # p varies or not by the integers, never by a rounded scatter.
        one_size, one_count = self.sizes[0] == self.sizes[1], self.counts[0] == self.counts[1]
        scatter = 0.0 if one_size and one_count else float(self.between[0, 0])
        if scatter <= 1e-12 * n:
            scatter = 0.0
        mixed = n * p * (1 - p) - scatter  # sum of q p (1 - p)
        return Moments(
            n_bags=self.n_bags,
            n_rows=n,
            mean=self.centre[1:],
            proportion=p,
            cov_bag=(self.within + self.between[1:, 1:]) / n,
            cov_diff=2 * self.within / pairs if pairs else np.zeros_like(self.within),
            slope=self.between[0, 1:] / scatter if scatter else np.zeros(len(self.within)),
            count_scatter=scatter,
            pair_weight=max(mixed, 0.0) / pairs if pairs else 0.0,
            size=self.sizes[0] if one_size else None,
            count=self.counts[0] if one_count else None,
        )


def key_moments(bags: Bags) -> dict[tuple[int, int], BagMoments]:
    """The sums of each (size, count) apart, most bags first."""
    keys, index, n = np.unique(
        np.stack([bags.sizes, bags.counts], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return {
        (int(keys[i, 0]), int(keys[i, 1])): BagMoments.from_bags(bags[np.flatnonzero(index.ravel() == i)])
        for i in np.argsort(-n, kind="stable")
    }


def one_draw_moments(bags: Bags, rng: np.random.Generator, *, fresh: bool = False) -> Moments:
    """Moments by Algorithm 1 to the letter: one row per bag for Sigma_B, one pair per bag for Sigma_D.

    All bags must share one (size, count). With ``fresh``, rows come from the first half of the bags and pairs from the
    second. Unlike the all-pairs estimate it throws most of a bag away; it is here for fidelity and comparison.
    """
    if bags.key is None or bags.key[0] < 2:
        raise InvalidInputError(
            "one draw per bag needs bags of one (size, count) with at least two rows; "
            f"got sizes {bags.sizes.min()}..{bags.sizes.max()}, counts {bags.counts.min()}..{bags.counts.max()}. "
            "Use the moments of all pairs, or select the bags of one key."
        )
    q, k = bags.key
    m = bags.n_bags
    half = m // 2 if fresh else m
    if half < 2 or m - (half if fresh else 0) < 1:
        raise InvalidInputError(f"one draw per bag needs at least {4 if fresh else 2} bags; got {m}.")
    starts = bags.starts[:-1]
    drawn = bags.X[starts[:half] + rng.integers(q, size=half)].astype(np.float64)
    of_pairs = starts[half:] if fresh else starts
    first = rng.integers(q, size=len(of_pairs))
    second = (first + rng.integers(1, q, size=len(of_pairs))) % q
    difference = bags.X[of_pairs + first].astype(np.float64) - bags.X[of_pairs + second]
    mean = drawn.mean(axis=0)
    return Moments(
        n_bags=m,
        n_rows=m * q,
        mean=mean,
        proportion=k / q,
        cov_bag=(drawn - mean).T @ (drawn - mean) / half,
        cov_diff=difference.T @ difference / len(difference),
        slope=np.zeros(bags.n_features),
        count_scatter=0.0,
        pair_weight=q / (q - 1) * (k / q) * (1 - k / q),
        size=q,
        count=k,
    )


# ---------------------------------------------------------------------- sums over blocks


def _blocks(starts: IntArray, n_features: int) -> list[slice]:
    """Slices of bags whose rows fill about one cache-sized block; never less than one bag."""
    return bag_parts(starts, max(_BLOCK_ELEMENTS // n_features, 1))


def _grams(bags: Bags, origin: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Size-weighted Gram matrix of (1, p, bag mean - origin), and Gram matrix of the rows as they are."""
    from bagwise.stats.kernels import weighted_bag_means

    d = bags.n_features
    starts = bags.starts
    gram, squares = np.zeros((d + 2, d + 2)), np.zeros((d, d))
    blocks = _blocks(starts, d)
    buffer = np.empty((max(chosen.stop - chosen.start for chosen in blocks), d + 2))  # fresh pages cost as much as sums
    for chosen in blocks:
        rows = bags.X[starts[chosen.start] : starts[chosen.stop]]
        means = buffer[: chosen.stop - chosen.start]
        weighted_bag_means(rows, starts[chosen.start : chosen.stop + 1], bags.counts[chosen], origin, means)
        rows = rows.astype(np.float64, copy=False)
        gram += means.T @ means
        squares += rows.T @ rows
    return gram, squares


def _careful_within(bags: Bags) -> FloatArray:
    """Within-bag scatter from rows centred bag by bag: exact wherever the data lie, for writing them once."""
    from bagwise.stats.kernels import centred_rows

    starts = bags.starts
    within = np.zeros((bags.n_features, bags.n_features))
    for chosen in _blocks(starts, bags.n_features):
        rows = bags.X[starts[chosen.start] : starts[chosen.stop]]
        centred = np.empty(rows.shape)
        centred_rows(rows, starts[chosen.start : chosen.stop + 1], centred)
        within += centred.T @ centred
    return within
