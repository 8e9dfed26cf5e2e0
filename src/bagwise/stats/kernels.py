"""Compiled loops over the rows of bags.

Owns the loops that numpy cannot express without a temporary as large as the data. Each takes float64 or float32 rows,
reads them once and writes into buffers of the caller; sums are float64 throughout. Imported on first use only, as
numba takes a second to load.
"""

from typing import Any

import numba
import numpy as np

__all__ = [
    "EIGHT",
    "centred_rows",
    "cut_scores",
    "deviations",
    "eight_columns",
    "most_covered",
    "projections",
    "weighted_bag_means",
]

# Rows may be memory-mapped or shared read-only; a writable array passes as a read-only one, not the other way round.
_ROWS = [numba.types.Array(number, 2, "C", readonly=True) for number in (numba.float64, numba.float32)]
_NUMBERS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_OUT = numba.float64[:, ::1]
_STRETCH = numba.types.Tuple((numba.int64, numba.float64, numba.float64))  # type: ignore[no-untyped-call]
_PAIR = numba.types.Tuple((numba.int64, numba.int64))  # type: ignore[no-untyped-call]
_FEW = 20  # numbers that are sorted rather than divided
#: Columns that `eight_columns` writes at a time: eight numbers of 8 bytes are one line of the cache.
EIGHT = 8


@numba.njit(
    [numba.void(rows, _INTEGERS, _INTEGERS, _NUMBERS, _OUT) for rows in _ROWS],
    cache=True,
    nogil=True,
    fastmath={"contract", "nsz"},  # not "reassoc": it would pull the origin out of the sums
)
def weighted_bag_means(X: Any, starts: Any, counts: Any, origin: Any, out: Any) -> None:
    """sqrt(q) (1, p, mean - origin) of each bag: rows whose Gram matrix is the size-weighted one of (1, p, mean).

    X (n, d) holds the rows of some bags, starts (m + 1,) where they begin (from any offset), out (m, d + 2).
    """
    d = X.shape[1]
    offset = starts[0]
    size, root, share = 0, 0.0, 0.0
    for b in range(len(starts) - 1):
        first, stop = starts[b] - offset, starts[b + 1] - offset
        if stop - first != size:  # a root and a division cost as much as a small bag
            size = stop - first
            root = np.sqrt(np.float64(size))
            share = 1.0 / root
        total = out[b, 2:]
        for j in range(d):
            total[j] = X[first, j] - origin[j]
        for i in range(first + 1, stop):
            for j in range(d):
                total[j] += X[i, j] - origin[j]
        for j in range(d):
            total[j] *= share
        out[b, 0] = root
        out[b, 1] = counts[b] * share


@numba.njit([numba.void(rows, _INTEGERS, _OUT) for rows in _ROWS], cache=True, nogil=True)
def centred_rows(X: Any, starts: Any, out: Any) -> None:
    """Rows minus the mean of their bag; sums start from the bag's first row, so that no digit is lost to the origin."""
    d = X.shape[1]
    offset = starts[0]
    mean = np.empty(d)
    for b in range(len(starts) - 1):
        first, stop = starts[b] - offset, starts[b + 1] - offset
        mean[:] = 0.0
        for i in range(first + 1, stop):
            for j in range(d):
                mean[j] += np.float64(X[i, j]) - np.float64(X[first, j])
        mean /= stop - first
        for i in range(first, stop):
            for j in range(d):
                out[i, j] = (np.float64(X[i, j]) - np.float64(X[first, j])) - mean[j]


# ---------------------------------------------------------------------- rows from columns

_EIGHTS = [
    (numba.types.UniTuple(numba.types.Array(number, 1, "C", readonly=True), EIGHT), number[:, ::1])  # type: ignore[no-untyped-call]
    for number in (numba.float64, numba.float32)
]


@numba.njit(
    [numba.float64(columns, numba.int64, numba.int64, rows, numba.int64) for columns, rows in _EIGHTS],
    cache=True,
    nogil=True,
    fastmath={"contract", "nsz", "reassoc"},
)
def eight_columns(columns: Any, first: Any, stop: Any, X: Any, j: Any) -> Any:
    """X[:, j : j + 8] = the numbers first:stop of eight columns; returns their sum, which is finite if all are.

    Whole lines of the cache are written at a time, where a column by itself would touch each line eight times.
    """
    a, b, c, d, e, f, g, h = columns
    total = 0.0
    for i in range(first, stop):
        row = X[i - first]
        row[j], row[j + 1], row[j + 2], row[j + 3] = a[i], b[i], c[i], d[i]
        row[j + 4], row[j + 5], row[j + 6], row[j + 7] = e[i], f[i], g[i], h[i]
        total += (
            (np.float64(a[i]) + np.float64(b[i]))
            + (np.float64(c[i]) + np.float64(d[i]))
            + (np.float64(e[i]) + np.float64(f[i]))
            + (np.float64(g[i]) + np.float64(h[i]))
        )
    return total


# ---------------------------------------------------------------------- scores of bags


@numba.njit(
    [numba.void(rows, _NUMBERS, numba.float64[::1]) for rows in _ROWS],
    cache=True,
    nogil=True,
    fastmath={"contract", "nsz", "reassoc"},
)
def projections(X: Any, normal: Any, out: Any) -> None:
    """X @ normal: twice as fast as a product of matrices where rows are short, and rows in float32 are not copied.

    Equal rows get equal scores wherever they lie, which linear algebra in blocks does not promise.
    """
    for i in range(len(X)):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * normal[j]
        out[i] = total


@numba.njit(inline="always")
def _gathered(a: Any, low: Any, high: Any, pivot: Any, closed: Any) -> Any:
    """Bring what is below the pivot (closed: or equal) to the front of a[low:high]; where the rest begins."""
    store = low
    for i in range(low, high):
        x = a[i]
        a[i] = a[store]
        a[store] = x
        store += x <= pivot if closed else x < pivot  # no branch to mispredict
    return store


@numba.njit(nogil=True)
def _sort(a: Any, low: Any, high: Any) -> None:
    """Sort a[low:high] in place; for a few numbers. Each is carried past all before it: no branch to mispredict."""
    for i in range(low + 1, high):
        x = a[i]
        for j in range(low, i):
            y = a[j]
            a[j] = x if x < y else y
            x = y if x < y else x
        a[i] = x


@numba.njit(nogil=True)
def _place(a: Any, low: Any, high: Any, k: Any) -> Any:
    """Reorder a[low:high] so that a[k] is what sorting would put there: nothing larger before, nothing smaller after.

    Returns from where on up to k all are in their place.
    """
    while high - low > _FEW:
        x, y, z = a[low], a[(low + high) // 2], a[high - 1]
        pivot = max(min(x, y), min(max(x, y), z))
        cut = _gathered(a, low, high, pivot, False)
        if k < cut:
            high = cut
        elif cut > low:
            low = cut
        else:  # the pivot is the smallest there is, perhaps many times
            above = _gathered(a, low, high, pivot, True)
            if k < above:
                return low
            low = above
    _sort(a, low, high)
    return low


@numba.njit(nogil=True)
def _place_cut(a: Any, low: Any, high: Any, k: Any) -> None:
    """Reorder a[low:high] so that a[k] and a[k + 1] are in their place, as far as they lie inside."""
    if low <= k + 1 < high:
        ordered = _place(a, low, high, k + 1)
        if low <= k < ordered:  # somewhere before, the largest
            at = low
            for i in range(low + 1, k + 1):
                at = i if a[i] > a[at] else at
            a[at], a[k] = a[k], a[at]
    elif low <= k < high:
        _place(a, low, high, k)


@numba.njit([numba.void(_NUMBERS, _INTEGERS, _INTEGERS, _OUT, _OUT)], cache=True, nogil=True)
def cut_scores(scores: Any, sizes: Any, counts: Any, low: Any, high: Any) -> None:
    """Bounds of the thresholds that leave exactly counts[b] of a bag's scores above, for scores and their negatives.

    low and high (1 or 2, m); row 0 for the scores, row 1, if there is one, for their negatives. See
    ``bagwise.learn.offsets``.
    """
    largest = 0
    for b in range(len(sizes)):
        largest = max(largest, sizes[b])
    bag = np.empty(largest + 2)  # the scores s_(q) .. s_(1) of a bag in 1..q, between infinite ones
    bag[0] = -np.inf
    first = 0
    for b in range(len(sizes)):
        q, k = sizes[b], counts[b]
        for i in range(q):
            bag[i + 1] = scores[first + i]
        bag[q + 1] = np.inf
        first += q
        if q <= _FEW:
            _sort(bag, 1, q + 1)
        else:
            _place_cut(bag, 1, q + 1, q - k)
        low[0, b], high[0, b] = bag[q - k], bag[q - k + 1]
        if len(low) == 1:
            continue
        if q > _FEW and k < q - k:  # the first cut has parted the bag
            _place_cut(bag, 1, q - k + 1, k)
        elif q > _FEW and k > q - k:
            _place_cut(bag, q - k + 1, q + 1, k)
        low[1, b], high[1, b] = -bag[k + 1], -bag[k]


@numba.njit([_PAIR(_NUMBERS, _INTEGERS, _INTEGERS, numba.float64, numba.float64)], cache=True, nogil=True)
def deviations(scores: Any, sizes: Any, counts: Any, at_plus: Any, at_minus: Any) -> Any:
    """Sum over bags of |number of scores above a threshold - counts[b]|, for the scores and for their negatives."""
    first = by_plus = by_minus = 0
    for b in range(len(sizes)):
        plus = minus = -counts[b]
        for i in range(first, first + sizes[b]):
            plus += scores[i] > at_plus
            minus += -scores[i] > at_minus
        first += sizes[b]
        by_plus += abs(plus)
        by_minus += abs(minus)
    return by_plus, by_minus


@numba.njit([_STRETCH(_NUMBERS, _NUMBERS)], cache=True, nogil=True)
def most_covered(low: Any, high: Any) -> Any:
    """How many of the intervals [low, high) the most covered points lie in, and the ends of the widest finite stretch
    of such points (the first of equals); of an infinite one, where there is no finite.

    low and high are sorted, each by itself: a merge of both knows how many are open, not which.
    """
    n = len(low)
    i = j = 0
    while i < n and low[i] == -np.inf:
        i += 1
    after = min(low[i] if i < n else np.inf, high[0] if n else np.inf)
    most, left, right, width = i, -np.inf, after, -1.0
    level = i
    while after < np.inf:
        at = after
        while i < n and low[i] == at:
            i += 1
            level += 1
        while j < n and high[j] == at:
            j += 1
            level -= 1
        after = min(low[i] if i < n else np.inf, high[j] if j < n else np.inf)
        if level > most or (level == most and width < after - at < np.inf):
            most, left, right = level, at, after
            width = after - at if after < np.inf else -1.0
    return most, left, right
