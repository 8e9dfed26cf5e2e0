"""Linear algebra that survives real columns: collinear, constant, or a million times larger than their neighbours.

Owns whitening with a stated rank rule and the generalised eigenpairs built on it. Everything happens after scaling each
feature to unit variance, so that the units of a column never decide what counts as zero.
"""

from dataclasses import dataclass

import numpy as np

from bagwise.arrays import FloatArray

__all__ = ["Whitener", "eigenpairs", "whitener"]

# Of the correlation matrix: a direction with less variance than this, relative to the largest, is constant to rounding.
_RANK_TOLERANCE = 1e-11


@dataclass(frozen=True, slots=True, eq=False)
class Whitener:
    """W (d, rank) with W^T C W = I for the covariance C it was made from."""

    matrix: FloatArray

    @property
    def n_features(self) -> int:
        """Dimension of the features."""
        return int(self.matrix.shape[0])

    @property
    def rank(self) -> int:
        """Dimension that the features really span."""
        return int(self.matrix.shape[1])

    def covariance(self, C: FloatArray) -> FloatArray:
        """W^T C W: a covariance in whitened coordinates."""
        S: FloatArray = self.matrix.T @ C @ self.matrix
        return (S + S.T) / 2

    def vector(self, v: FloatArray) -> FloatArray:
        """W^T v: a vector of the feature space in whitened coordinates."""
        return self.matrix.T @ v

    def normal(self, u: FloatArray) -> FloatArray:
        """W u: the normal in the feature space of one in whitened coordinates."""
        return self.matrix @ u


def whitener(C: FloatArray) -> Whitener:
    """Whitening of the directions in which the covariance C is not zero to rounding; the others are left out.

    On the left-out directions a normal built with it is zero, as with the pseudo-inverse.
    """
    variances = np.diag(C)
    alive = variances > 0
    scale = np.where(alive, 1 / np.sqrt(np.where(alive, variances, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(C * np.outer(scale, scale))
    kept = values > _RANK_TOLERANCE * max(values[-1], np.finfo(float).tiny) if len(values) else values > 0
    return Whitener(scale[:, None] * vectors[:, kept] / np.sqrt(values[kept]))


def eigenpairs(A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solutions of A v = rho B v, rho ascending, on the directions where B is not zero; columns have v^T B v = 1."""
    W = whitener(B)
    values, vectors = np.linalg.eigh(W.covariance(A))
    return values, W.matrix @ vectors
