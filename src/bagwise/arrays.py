"""What the whole house means by an array, and the one check that every matrix passes at the door.

Owns the array types of the annotations and ``as_matrix``. Refuses what is not a finite, numeric,
two-dimensional
table. Knows nothing of bags.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bagwise.errors import InvalidInputError

__all__ = ["AnyArray", "BoolArray", "FloatArray", "IntArray", "as_matrix"]

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]


def as_matrix(X: Any, *, what: str = "X", column_names: tuple[str, ...] | None = None) -> FloatArray:
    """X as a finite C-ordered float matrix; float32 and float64 are kept and not copied.

    Raises InvalidInputError that names the first offending row and column.
    """
    if hasattr(X, "toarray") and hasattr(X, "tocsr"):
        raise InvalidInputError(
            f"{what} must be a dense matrix; got a sparse {type(X).__name__}. Pass {what}.toarray()."
        )
    matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise InvalidInputError(
            f"{what} must have two dimensions (rows, features); got {matrix.ndim} of shape {matrix.shape}. "
            "For one feature use X.reshape(-1, 1)."
        )
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InvalidInputError(f"{what} must have at least one row and one feature; got shape {matrix.shape}.")
    if matrix.dtype.kind == "c":
        raise InvalidInputError(
            f"{what} must be real; got complex numbers. Pass real and imaginary parts as two columns."
        )
    if matrix.dtype not in (np.float32, np.float64):
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{what} must be numeric; got dtype {matrix.dtype} ({error}). Encode text and categories as "
                "numbers first."
            ) from None
    matrix = np.ascontiguousarray(matrix)
    # A sum is one pass without a temporary; only a suspicious one pays for the search.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(matrix.sum(dtype=np.float64))
    if suspicious and not (finite := np.isfinite(matrix)).all():
        row, column = np.argwhere(~finite)[0]
        name = f" ({column_names[column]!r})" if column_names else ""
        raise InvalidInputError(
            f"{what} must be finite; got {matrix[row, column]} in row {row}, column {column}{name}. "
            "Impute or drop such rows (then correct the counts of their bags)."
        )
    return matrix
