"""Bags drawn exactly from a Gaussian whose labels an LTF gives.

Owns the bag oracle Ex(f, N(mean, cov), q, k): k rows given f = 1 and q - k given f = 0, in random order. Nothing is
rejected: only the component of a row along the normal knows the label, so it alone is drawn from a truncated
normal; the rest is free. Refuses Gaussians under which f gives one label only, as the other cannot be drawn.

Vocabulary: the *true* label of a row is f(x), the *reported* one is flipped with probability ``flip``, independently
of everything else; a bag's *count* is the number of its reported positives. Which of the two the oracle holds fixed
is ``count_is``.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bagwise.arrays import BoolArray, FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.errors import InvalidInputError
from bagwise.ltf import LTF, as_gaussian, threshold

__all__ = ["BagOracle"]

# Beyond so many standard deviations a row cannot be placed on its side of the hyperplane: the distance to it,
# about 1/l, drowns in the rounding of l.
_FARTHEST = 1000.0
# Up to here the tail probability times a uniform is far above the smallest float64; beyond, logarithms are used.
_LOG_TAIL = 25.0
# Rows are drawn and rotated in blocks that stay in cache.
_BLOCK_NUMBERS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BagOracle:
    """Draws bags of ``size`` rows of N(mean, cov) with a given number of positives of an LTF.

    With ``flip`` > 0 the labels that are counted are noisy copies of the true ones, in one of two ways.

    ``count_is="reported"``
        The bag is a sample of (x, reported label) with exactly k reported positives, so its number of true
        positives is random. By Bayes' rule under the Gaussian's own prevalence pi = Pr[f = 1], each row that is
        reported 1 has true label 1 with probability pi (1 - flip) / (pi (1 - flip) + (1 - pi) flip), and each
        that is reported 0 with probability pi flip / (pi flip + (1 - pi)(1 - flip)). This is the model of the
        paper's tables with label noise; there pi = 1/2 in the centred case, and the two are 1 - flip and flip.
    ``count_is="true"``
        The bag has exactly k true positives; its labels are then flipped one by one and counted, so the
        reported count is random.

    Without flips the two are the same.

    Parameters
    ----------
    ltf : LTF
        Its normal must have variance under cov.
    mean : vector of shape (n_features,)
    cov : matrix of shape (n_features, n_features)
        May be singular.
    size : int
        Rows of each bag, q.
    count : int, or q + 1 probabilities
        Positives of each bag, k; or the probabilities of k = 0..q, from which each bag draws its own.
    flip : float
        Probability that a label is reported wrongly.
    count_is : "reported" or "true"
        Which labels ``count`` counts.

    Examples
    --------
    >>> import bagwise as bw, numpy as np
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 1.0]), mean=[0.0, 0.0], cov=np.eye(2), size=10, count=8)
    >>> oracle.sample(500, np.random.default_rng(0))
    Bags(500 bags, 5,000 rows, 2 features; size 10, 80.0 % positive)
    """

    ltf: LTF
    mean: FloatArray
    cov: FloatArray
    size: int
    count: Any
    flip: float = 0.0
    count_is: Literal["reported", "true"] = "reported"
    threshold: float = field(init=False)  # sd from the mean to the hyperplane; Pr[f = 1] = 1 - Phi(threshold)
    count_probabilities: FloatArray = field(init=False)  # (size + 1,)
    _factor: FloatArray = field(init=False)  # (d, d): cov = factor @ factor.T, first column along the normal

    def __post_init__(self) -> None:
        if not isinstance(self.ltf, LTF):
            raise InvalidInputError(
                f"ltf must be an LTF; got {type(self.ltf).__name__}. Pass bagwise.LTF(normal, offset)."
            )
        mean, cov = (a.copy() for a in as_gaussian(self.mean, self.cov, n_features=self.ltf.n_features))
        size = _checked_size(self.size)
        flip = float(self.flip)
        if not 0 <= flip <= 1:
            raise InvalidInputError(f"flip must be a probability in [0, 1]; got {flip}. Use 0.1 for 10 %.")
        if self.count_is not in ("reported", "true"):
            raise InvalidInputError(
                f"count_is must be 'reported' or 'true'; got {self.count_is!r}. It says which labels count counts."
            )
        distance = threshold(self.ltf, mean, cov)
        if not np.isfinite(distance):
            raise InvalidInputError(
                "the normal must have variance under cov, else all rows get the same label; got none. "
                "Use a normal that cov does not annihilate."
            )
        if abs(distance) > _FARTHEST:
            raise InvalidInputError(
                f"the hyperplane must lie within {_FARTHEST:.0f} standard deviations of the mean; got "
                f"{abs(distance):.4g}. Move mean or offset: float64 cannot tell the sides apart so far out."
            )
        probabilities = _count_probabilities(self.count, size)
        count = int(self.count) if _is_integer(self.count) else probabilities
        factor = _factor_along(self.ltf.normal, cov)
        for array in (mean, cov, probabilities, factor):
            array.setflags(write=False)
        values = {
            "mean": mean, "cov": cov, "size": size, "count": count, "flip": flip,
            "threshold": distance, "count_probabilities": probabilities, "_factor": factor,
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        count = self.count if isinstance(self.count, int) else "mixed"
        noise = f", flip {self.flip:g} (count is {self.count_is})" if self.flip else ""
        return (
            f"BagOracle({self.mean.size} features, size {self.size}, count {count}, "
            f"{100 * self.prevalence:.3g} % positive in the population{noise})"
        )

    @property
    def prevalence(self) -> float:
        """Pr[f = 1] in the population (not in the bags)."""
        from scipy.special import ndtr

        return float(ndtr(-self.threshold))

    @property
    def true_given_reported(self) -> tuple[float, float]:
        """Pr[true label 1 | reported 0] and Pr[true label 1 | reported 1] of a row drawn from the population.

        In log-odds, as the prevalence may be too small to write: logit(pi) -/+ logit(1 - flip).
        """
        from scipy.special import expit, log_ndtr, logit

        if self.flip in (0.0, 1.0):
            return self.flip, 1 - self.flip
        prior = log_ndtr(-self.threshold) - log_ndtr(self.threshold)
        evidence = logit(1 - self.flip)
        return float(expit(prior - evidence)), float(expit(prior + evidence))

    @property
    def levels(self) -> tuple[float, float]:
        """Pr[reported 1 | true 0] and Pr[reported 1 | true 1] of a row of the bags; nan where no row has the label.

        With ``count_is="true"`` these are flip and 1 - flip. With "reported" the fixed counts shift them: a bag
        of many reported positives has more of the false ones.

        Examples
        --------
        >>> import bagwise as bw
        >>> noisy = bw.BagOracle(bw.LTF([1.0]), mean=[0.0], cov=[[1.0]], size=10, count=8, flip=0.1)
        >>> [round(level, 4) for level in noisy.levels]
        [0.3077, 0.973]
        """
        if self.count_is == "true":
            return self.flip, 1 - self.flip
        ones = float(self.count_probabilities @ np.arange(self.size + 1))
        zeros = self.size - ones
        true_given_0, true_given_1 = self.true_given_reported
        wrong, right = ones * (1 - true_given_1), ones * true_given_1
        negatives, positives = wrong + zeros * (1 - true_given_0), right + zeros * true_given_0
        return (
            wrong / negatives if negatives > 0 else float("nan"),
            right / positives if positives > 0 else float("nan"),
        )

    def sample(self, n_bags: int, rng: np.random.Generator) -> Bags:
        """That many independent bags, with ids 0, 1, 2 …

        Examples
        --------
        >>> import bagwise as bw, numpy as np
        >>> oracle = bw.BagOracle(bw.LTF([1.0]), [0.0], [[1.0]], size=3, count=[0.25, 0.25, 0.25, 0.25])
        >>> oracle.sample(6, np.random.default_rng(0)).counts
        array([2, 1, 0, 0, 3, 3])
        """
        return self.sample_labelled(n_bags, rng)[0]

    def sample_labelled(self, n_bags: int, rng: np.random.Generator) -> tuple[Bags, IntArray]:
        """The same bags as `sample`, and the true label f(x) of each of their rows, which a learner never sees.

        Examples
        --------
        >>> import bagwise as bw, numpy as np
        >>> oracle = bw.BagOracle(bw.LTF([1.0]), [0.0], [[1.0]], size=3, count=2)
        >>> bags, labels = oracle.sample_labelled(2, np.random.default_rng(0))
        >>> labels.reshape(2, 3).sum(axis=1), bool((labels == oracle.ltf.predict(bags.X)).all())
        (array([2, 2]), True)
        """
        if not _is_integer(n_bags) or n_bags < 1:
            raise InvalidInputError(f"n_bags must be an integer of at least 1; got {n_bags!r}.")
        n_bags = int(n_bags)
        counts, labels = self._counts_and_labels(n_bags, rng)
        X = self._rows(_truncated_normals(labels, self.threshold, rng), rng)
        sizes = np.full(n_bags, self.size, dtype=np.int64)
        return Bags(X, sizes, counts, np.arange(n_bags)), labels

    def sample_instances(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """n rows of N(mean, cov) itself, not of bags, and their true labels.

        Examples
        --------
        >>> import bagwise as bw, numpy as np
        >>> oracle = bw.BagOracle(bw.LTF([1.0], -1.0), [0.0], [[1.0]], size=3, count=2)
        >>> X, y = oracle.sample_instances(10_000, np.random.default_rng(0))
        >>> round(float(y.mean()), 2), round(oracle.prevalence, 2)
        (0.16, 0.16)
        """
        if not _is_integer(n) or n < 1:
            raise InvalidInputError(f"n must be an integer of at least 1; got {n!r}.")
        along = rng.standard_normal(int(n))
        return self._rows(along, rng), (along > self.threshold).astype(np.int64)

    def _counts_and_labels(self, m: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Reported counts (m,) and true labels (m * size,), bag by bag."""
        q = self.size
        counts: IntArray
        if isinstance(self.count, int):
            counts = np.full(m, self.count, dtype=np.int64)
        else:
            counts = rng.choice(q + 1, size=m, p=self.count_probabilities).astype(np.int64)
        # Positives first, then each bag shuffled: a fixed place would tell the label.
        counted = rng.permuted((np.arange(q) < counts[:, None]).astype(np.int64), axis=1)
        if self.flip == 0:
            return counts, counted.ravel()
        uniforms = rng.random((m, q))
        if self.count_is == "true":
            reported = counted ^ (uniforms < self.flip)
            return reported.sum(axis=1), counted.ravel()
        labels = uniforms < np.asarray(self.true_given_reported)[counted]
        return counts, labels.ravel().astype(np.int64)

    def _rows(self, along: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Rows (n, d) whose standardised score is ``along`` (n,), all else free."""
        n, d = along.size, self.mean.size
        rows = np.empty((n, d))
        step = max(1, _BLOCK_NUMBERS // d)
        for start in range(0, n, step):
            block = rows[start : start + step]
            rng.standard_normal(out=block)
            block[:, 0] = along[start : start + step]
            np.add(block @ self._factor.T, self.mean, out=block)
        return rows


def _truncated_normals(labels: IntArray | BoolArray, l: float, rng: np.random.Generator) -> FloatArray:
    """Standard normals above l where the label is 1, and at most l where it is 0.

    By the inverse cdf from the outer end of each side, Phi^-1(V Pr[side]) with V uniform on (0, 1] and the sign
    turned for label 1: that end is where float64 has digits to spare, so that l = 8 or 30 neither rounds to 1 nor
    gives an infinity.
    """
    from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

    uniforms = 1 - rng.random(labels.size)
    if abs(l) <= _LOG_TAIL:
        outward = ndtri(uniforms * np.array([ndtr(l), ndtr(-l)])[labels])
    else:
        outward = ndtri_exp(np.log(uniforms) + np.array([log_ndtr(l), log_ndtr(-l)])[labels])
    normals: FloatArray = np.where(labels == 1, -outward, outward)
    return normals


def _factor_along(normal: FloatArray, cov: FloatArray) -> FloatArray:
    """A with A A^T = cov and normal · A = sd of the score times the first unit vector.

    The symmetric root of cov (unique, so that draws do not hang on how LAPACK chooses signs), turned by the
    Householder reflection that takes the whitened normal to the first axis. Its first column is cov normal / sd.
    """
    values, vectors = np.linalg.eigh(cov)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    largest = np.abs(normal).max()  # the scale of the normal is arbitrary; its square may overflow
    direction = root @ (normal / largest)
    direction /= np.linalg.norm(direction)
    mirror = direction.copy()
    mirror[0] += np.copysign(1.0, direction[0])
    factor: FloatArray = root - np.outer(root @ mirror, mirror) * (2 / (mirror @ mirror))
    factor[:, 0] = root @ direction
    return factor


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _checked_size(size: Any) -> int:
    if not _is_integer(size) or size < 1:
        raise InvalidInputError(
            f"size must be an integer of at least 1, the rows of each bag; got {size!r}. Use one row for plain labels."
        )
    return int(size)


def _count_probabilities(count: Any, size: int) -> FloatArray:
    """Probabilities of the counts 0..size, from one count or from themselves."""
    if _is_integer(count):
        if not 0 <= count <= size:
            raise InvalidInputError(
                f"count must lie in 0..size; got {count} for size {size}. It is the number of positives of each bag."
            )
        return np.where(np.arange(size + 1) == int(count), 1.0, 0.0)
    if np.ndim(count) == 0:
        raise InvalidInputError(
            f"count must be an integer, or the probabilities of 0..{size}; got {count!r}. "
            "For a proportion pass round(proportion * size)."
        )
    probabilities = np.array(count, dtype=np.float64)
    if probabilities.shape != (size + 1,):
        raise InvalidInputError(
            f"count must be an integer, or one probability for each of 0..{size}; got shape {probabilities.shape}. "
            f"Pass {size + 1} numbers."
        )
    if not (np.isfinite(probabilities).all() and (probabilities >= 0).all()):
        raise InvalidInputError(
            "probabilities of counts must be finite and not negative; got "
            f"{probabilities[np.argmin(np.where(np.isfinite(probabilities), probabilities, -np.inf))]}. Correct it."
        )
    total = float(probabilities.sum())
    if abs(total - 1) > 1e-8:
        raise InvalidInputError(
            f"probabilities of counts must add up to 1; got {total:.10g}. Divide them by their sum if that is meant."
        )
    shares: FloatArray = probabilities / total
    return shares
