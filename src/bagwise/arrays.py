"""What the whole house means by an array, and the one check that every matrix passes at the door.

Owns the array types of the annotations and ``as_matrix``. Refuses what is not a finite, numeric, two-dimensional
table. Knows nothing of bags.
"""

from datetime import date, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bagwise.errors import InvalidInputError, one_line

__all__ = ["AnyArray", "BoolArray", "FloatArray", "IntArray", "as_array", "as_matrix", "first_non_number"]

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]


def as_array(values: Any, what: str) -> AnyArray:
    """Values as numpy has them; refused where it makes nothing of them, such as lists of several lengths."""
    try:
        return np.asarray(values)
    except Exception as error:  # whatever the __array__ of someone's type raises
        raise InvalidInputError(
            f"{what} must be an array or lists of equal lengths; numpy says: {one_line(str(error))}."
        ) from None


def as_matrix(X: Any, *, what: str = "X", column_names: tuple[str, ...] | None = None) -> FloatArray:
    """X as a finite C-ordered float matrix; float32 and float64 are kept and not copied.

    Raises InvalidInputError that names the first offending row and column.
    """
    if hasattr(X, "toarray") and hasattr(X, "tocsr"):
        raise InvalidInputError(
            f"{what} must be a dense matrix; got a sparse {type(X).__name__}. Pass {what}.toarray()."
        )
    matrix = as_array(X, what)
    if matrix.dtype.kind in "US" and not isinstance(X, np.ndarray):
        matrix = np.asarray(X, dtype=object)  # one text among numbers made all of them text
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
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        at = tuple(np.argwhere(np.ma.getmaskarray(X))[0])
        raise InvalidInputError(
            f"{what} must have no masked entries; got one in {_place(at, column_names)}. Fill them."
        )
    if (text := first_non_number(matrix)) is not None:
        raise InvalidInputError(
            f"{what} must be numeric; got {str(matrix[text])!r} in {_place(text, column_names)}. "
            "Encode text, categories and dates as numbers first."
        )
    if matrix.dtype not in (np.float32, np.float64):
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"{what} must be numeric; got dtype {matrix.dtype} ({one_line(str(error))}). "
                "Encode it as numbers first."
            ) from None
    matrix = np.ascontiguousarray(matrix)
    # A sum is one pass without a temporary; only a suspicious one pays for the search.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(matrix.sum(dtype=np.float64))
    if suspicious and not (finite := np.isfinite(matrix)).all():
        at = tuple(np.argwhere(~finite)[0])
        raise InvalidInputError(
            f"{what} must be finite; got {matrix[at]} in {_place(at, column_names)}. "
            "Impute or drop such rows (then correct the counts of their bags)."
        )
    return matrix


def first_non_number(values: AnyArray) -> tuple[int, ...] | None:
    """Position of the first text, date or other non-number, None if there is none.

    numpy would read "1" as 1, and a date as its days since 1970. Missing values count as numbers.
    """
    if values.dtype.kind in "biuf" or values.size == 0:
        return None
    if values.dtype.kind != "O":
        return (0,) * values.ndim
    others = (str, bytes, date, timedelta, np.datetime64, np.timedelta64)
    return next((at for at, value in np.ndenumerate(values) if isinstance(value, others)), None)


def _place(at: tuple[int, ...], names: tuple[str, ...] | None) -> str:
    row, column = at
    return f"row {row}, column {column}" + (f" ({names[column]!r})" if names else "")
