"""A number per bag by which it is known again.

Owns the hash that models keep of the bags they learnt from, so that a certificate can refuse them. It depends on a
bag's rows (in any order, float32 or float64) and its count, not on its id or place. Refuses to be a secret: who has a
row can recognise it. Owns the hash of an id, too, the same on every machine, by which bags are dealt out at random.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from bagwise.arrays import AnyArray, IntArray
from bagwise.bags import Bags
from bagwise.stats.parallel import bag_parts, in_threads, n_threads

__all__ = ["MOST_KEPT", "KeptFingerprints", "bag_fingerprints", "id_hashes", "kept_fingerprints"]

#: A model keeps the smallest ones up to this number: of more bags a random sample, by which reuse is still noticed.
MOST_KEPT = 1 << 17

# 52 bits: exact as a JSON number, and 10^5 against 10^5 different bags collide with probability 2e-6.
_BITS = 52
_BLOCK = 1 << 18  # numbers hashed at a time


def bag_fingerprints(bags: Bags) -> IntArray:
    """One 52-bit hash per bag (m,): sum over rows of mix(bits of the row . odd multipliers), mixed with size and count.

    A sum does not know the order of the rows; the mixing between keeps it from knowing only the bag's mean.
    """
    from bagwise.stats.kernels_fingerprints import bag_hashes

    multipliers = _mix(np.arange(1, bags.n_features + 1, dtype=np.uint64)) | np.uint64(1)
    starts, hashes = bags.starts, np.empty(bags.n_bags, np.uint64)

    def fill(part: slice) -> None:
        rows = bags.X[starts[part.start] : starts[part.stop]].astype(np.float64, copy=False)
        bag_hashes(
            rows.view(np.uint64), starts[part.start : part.stop + 1], bags.counts[part], multipliers, hashes[part]
        )

    in_threads(fill, bag_parts(starts, max(1, _BLOCK // bags.n_features)), n_threads(bags.X.size))
    fingerprints: IntArray = (hashes >> np.uint64(64 - _BITS)).view(np.int64)
    return fingerprints


def kept_fingerprints(bags: Bags) -> IntArray:
    """What a model keeps of its bags: their fingerprints, sorted, at most the `MOST_KEPT` smallest."""
    fingerprints = bag_fingerprints(bags)
    if len(fingerprints) > MOST_KEPT:
        fingerprints = np.partition(fingerprints, MOST_KEPT)[:MOST_KEPT]
    return np.sort(fingerprints)


@dataclass(frozen=True, slots=True, eq=False)
class KeptFingerprints:
    """`kept_fingerprints` of bags in parts: merges with ``+``."""

    values: IntArray

    def __add__(self, other: "KeptFingerprints") -> "KeptFingerprints":
        return KeptFingerprints(np.sort(np.concatenate([self.values, other.values]))[:MOST_KEPT])


def id_hashes(ids: AnyArray, salt: int = 0) -> AnyArray:
    """A 64-bit hash of each id, the same in every process: of numbers by their bits, of anything else by its text.

    >>> len(set(id_hashes(np.arange(1000)).tolist()))
    1000
    """
    if ids.dtype.kind in "iub":
        bits = ids.astype(np.uint64)
    elif ids.dtype.kind == "f":
        bits = ids.astype(np.float64).view(np.uint64)
    elif ids.dtype.kind in "mM":
        bits = ids.astype(np.int64).view(np.uint64)
    else:
        digests = (hashlib.blake2b(str(value).encode(), digest_size=8).digest() for value in ids.tolist())
        bits = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return _mix(_mix(bits) + _mix(np.array([salt], dtype=np.uint64)))


def _mix(values: AnyArray) -> AnyArray:
    """The finaliser of splitmix64: each bit of the output depends on each of the input."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: AnyArray = z ^ (z >> np.uint64(31))
    return mixed
