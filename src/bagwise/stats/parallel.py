"""Work on bags in several threads: how many, and which bags each takes.

Owns the rule for the number of threads and the cut of a list of bags into parts of about equal rows. The loops it runs
release the interpreter's lock; results come back in the order of the parts, so that sums do not depend on timing.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from bagwise.arrays import IntArray

__all__ = ["bag_parts", "in_threads", "n_threads"]

# Below so many numbers one pass costs about as much as waking threads up.
_SMALL = 1 << 20

T = TypeVar("T")


def n_threads(work: int) -> int:
    """Threads for that many numbers to read: one for small data, else as many as processors we may use.

    OMP_NUM_THREADS, where set, is the upper limit, as for the linear algebra beneath.

    >>> n_threads(1000)
    1
    """
    if work < _SMALL:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    available = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(available, int(limit))) if limit.isdecimal() else available


def bag_parts(starts: IntArray, max_rows: int) -> list[slice]:
    """Consecutive bags in parts of at most max_rows rows, by where they start; a larger bag is a part of its own.

    >>> bag_parts(np.array([0, 3, 6, 15, 16]), 6)
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    parts, first, n_bags = [], 0, len(starts) - 1
    while first < n_bags:
        stop = int(np.searchsorted(starts, starts[first] + max_rows, side="right")) - 1
        stop = min(max(stop, first + 1), n_bags)
        parts.append(slice(first, stop))
        first = stop
    return parts


def in_threads(task: Callable[[slice], T], parts: list[slice], threads: int) -> list[T]:
    """task of each part, in order."""
    if threads == 1 or len(parts) == 1:
        return [task(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(task, parts))
