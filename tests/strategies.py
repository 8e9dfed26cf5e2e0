"""Hypothesis strategies: random LTFs, Gaussian problems and bags."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import bagwise as bw


@dataclass(frozen=True)
class Gaussian:
    """N(mean, cov), with generators of further vectors and matrices of its width."""

    mean: np.ndarray
    cov: np.ndarray
    rng: np.random.Generator

    @property
    def d(self) -> int:
        return len(self.mean)

    def ltf(self, threshold: float) -> bw.LTF:
        """A random LTF whose hyperplane lies that many standard deviations from the mean."""
        normal = self.rng.standard_normal(self.d)
        return bw.LTF(normal, -normal @ self.mean - threshold * np.sqrt(normal @ self.cov @ normal))

    def neighbour(self, ltf: bw.LTF, angle: float, gap: float) -> bw.LTF:
        """An LTF at about that angle and offset gap (in standard deviations) from another."""
        turned = ltf.normal / np.linalg.norm(ltf.normal) + np.tan(angle) * self.rng.standard_normal(self.d)
        l = -(ltf.offset + ltf.normal @ self.mean) / np.sqrt(ltf.normal @ self.cov @ ltf.normal)
        return bw.LTF(turned, -turned @ self.mean - (l + gap) * np.sqrt(turned @ self.cov @ turned))


@st.composite
def gaussians(draw: st.DrawFn, max_features: int = 5) -> Gaussian:
    """Well-conditioned Gaussians of 1 to max_features features."""
    d = draw(st.integers(1, max_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    root = rng.standard_normal((d, d))
    cov = draw(st.sampled_from([1e-3, 1.0, 1e3])) * (root @ root.T / d + 0.2 * np.eye(d))
    return Gaussian(draw(st.sampled_from([0.0, 1.0])) * rng.standard_normal(d), cov, rng)


thresholds = st.floats(-6, 6, allow_subnormal=False)
angles = st.sampled_from([1e-7, 1e-4, 0.1, 0.7, 1.4])
gaps = st.sampled_from([0.0, 1e-8, -1e-3, 0.5, -2.0])


@st.composite
def ltf_pairs(draw: st.DrawFn, max_features: int = 5) -> tuple[Gaussian, bw.LTF, bw.LTF]:
    """A Gaussian and two LTFs, anything from nearly equal to unrelated."""
    gaussian = draw(gaussians(max_features))
    first = gaussian.ltf(draw(thresholds))
    second = gaussian.neighbour(first, draw(angles), draw(gaps))
    return gaussian, first, second.flipped() if draw(st.booleans()) else second


@st.composite
def count_laws(draw: st.DrawFn, size: int) -> int | list[float]:
    """A count, or the probabilities of 0..size."""
    if draw(st.booleans()):
        return draw(st.integers(0, size))
    weights = draw(st.lists(st.integers(0, 3), min_size=size + 1, max_size=size + 1).filter(any))
    return [weight / sum(weights) for weight in weights]


@st.composite
def oracles(draw: st.DrawFn, max_features: int = 4, max_size: int = 7) -> tuple[bw.BagOracle, bw.LTF]:
    """An oracle of either count and any flip, and an LTF to be judged by it."""
    gaussian, truth, other = draw(ltf_pairs(max_features))
    size = draw(st.integers(1, max_size))
    oracle = bw.BagOracle(
        truth,
        gaussian.mean,
        gaussian.cov,
        size,
        draw(count_laws(size)),
        flip=draw(st.sampled_from([0.0, 0.0, 0.1, 0.5])),
        count_is=draw(st.sampled_from(["reported", "true"])),
    )
    return oracle, other


@st.composite
def bags(draw: st.DrawFn, max_bags: int = 6, max_size: int = 5, max_features: int = 3) -> bw.Bags:
    """Ragged bags of integers (exact sums), any counts."""
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_bags))
    counts = [draw(st.integers(0, size)) for size in sizes]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(-4, 5, (sum(sizes), draw(st.integers(1, max_features)))).astype(float)
    return bw.Bags.from_sizes(X, sizes, counts)
