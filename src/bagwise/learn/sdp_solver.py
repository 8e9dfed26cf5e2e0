"""Semidefinite programs in which every bag contributes a small block of the same shape.

Owns the splitting method that solves them, and the batched projections on small semidefinite cones. Refuses
to know what the blocks mean: the programs, and what is learnt from them, are in `bagwise.learn.sdp`.

Vocabulary. One unknown is shared: a symmetric matrix C (d x d), positive semidefinite, of trace 1. A *kind*
of bag is a constant pattern: with X_b = [x_1 .. x_q] the rows of a bag, its *compression* is
g_b = svec(X_b' C X_b), and the constraint of the bag is

    P g_b + Q h_b  in  (semidefinite q x q)^a x [floor, inf)^r        for some free vector h_b,

with P, Q, a, r the same for all bags of the kind. svec lists the upper triangle row by row with the
off-diagonals times sqrt 2, so that inner products of matrices are those of their lists. In arrays of bag
quantities the bags run along the last axis: shape (entries, bags).

Of all feasible C the method returns either the one of least Frobenius norm (a unique point), or the one that
maximises the sum of the logarithms of the rows marked as *barrier* rows. Derivation: docs/theory/sdp.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from bagwise.arrays import BoolArray, FloatArray

__all__ = ["BagGroup", "BagKind", "Centre", "SDPSolution", "entry", "psd_part", "solve"]

Centre = Literal["least_norm", "log_barrier"]
Status = Literal["solved", "infeasible", "stopped"]

ROOT2 = float(np.sqrt(2.0))
TINY = 1e-300  # keeps 0/0 at 0 where a numerator of 0 is meant to win

# Constants of the method, chosen by iteration counts over sizes 2 to 4, 10 and 50 features, 200 to 2000 bags.
RELAXATION = 1.6
GRAM_ROWS = 4096  # rows of length d(d+1)/2 held at once while the Gram matrix is added up
MEMORY = 10
EXTRAPOLATE_EVERY = 2
ADAPT_EVERY = 15
WEIGHTS = {  # of the bags' constraints beside the d x d matrix: (kinds with free unknowns, kinds without)
    "least_norm": (0.3, 3.0),
    "log_barrier": (1.0, 1.0),
}


# ---------------------------------------------------------------------- the program


def triangle(size: int) -> list[tuple[int, int]]:
    """Entries (i, j), i <= j, in the order of svec."""
    return [(i, j) for i in range(size) for j in range(i, size)]


def entry(size: int, i: int, j: int) -> FloatArray:
    """The vector whose product with svec(A) is A_ij, for i != j."""
    row = np.zeros(size * (size + 1) // 2)
    row[triangle(size).index((min(i, j), max(i, j)))] = 1 / ROOT2
    return row


@dataclass(frozen=True, eq=False)
class BagKind:
    """What the bags of one kind have in common.

    Block k demands that ``gram_blocks[k]`` G_b + sum_l ``free_blocks[k, l]`` H_l be positive semidefinite, H_l
    the free q x q matrices of the bag; linear row i that ``gram_rows[i]`` · svec(G_b) +
    ``free_rows[i]`` · svec(H_1 .. H_f) be at least its floor. The blocks must force 0 <= H_l <= G_b.
    """

    size: int
    gram_blocks: FloatArray  # (a,)
    free_blocks: FloatArray  # (a, f)
    gram_rows: FloatArray  # (r, q(q+1)/2)
    free_rows: FloatArray  # (r, f q(q+1)/2)
    strict: BoolArray  # (r,) whether the floor is the program's slack (else 0)
    barrier: BoolArray  # (r,) whether the logarithmic centre counts the row

    @property
    def n_entries(self) -> int:
        """Entries of svec of a q x q matrix."""
        return self.size * (self.size + 1) // 2

    @property
    def n_blocks(self) -> int:
        """Semidefinite blocks per bag."""
        return len(self.gram_blocks)

    def stacked(self) -> tuple[FloatArray, FloatArray]:
        """P and Q with the rows of all blocks first."""
        eye = np.eye(self.n_entries)
        P = np.vstack([np.kron(self.gram_blocks[:, None], eye), self.gram_rows])
        Q = np.vstack([np.kron(self.free_blocks, eye), self.free_rows])
        return P, Q


@dataclass(frozen=True, eq=False)
class BagGroup:
    """All bags of one kind: ``rows[i]`` holds the i-th row of each, shape (q, m, d), C-contiguous."""

    kind: BagKind
    rows: FloatArray

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return int(self.rows.shape[1])

    @cached_property
    def used(self) -> list[list[tuple[int, int]]]:
        """For each row i the (k, j), j >= i, whose entry k of svec the kind looks at: one for a pair, not three."""
        seen = np.any(self.kind.stacked()[0] != 0, axis=0).tolist()
        entries = list(enumerate(triangle(self.kind.size)))
        return [[(k, j) for k, (at, j) in entries if at == i and seen[k]] for i in range(self.kind.size)]

    def compressions(self, C: FloatArray) -> FloatArray:
        """svec(X_b' C X_b) of each bag, 0 where the kind does not look: K_b svec(C)."""
        g = np.zeros((self.kind.n_entries, self.n_bags))
        for i, partners in enumerate(self.used):
            image = self.rows[i] @ C if partners else self.rows[i]
            for k, j in partners:
                np.einsum("md,md->m", image, self.rows[j], out=g[k])
                if i != j:
                    g[k] *= ROOT2
        return g

    def adjoint(self, w: FloatArray) -> FloatArray:
        """sum_b X_b smat(w_b) X_b', the transpose of `compressions`; entries that the kind does not look at are 0."""
        d = self.rows.shape[2]
        total = np.zeros((d, d))
        for i, partners in enumerate(self.used):
            if partners:
                image = np.zeros((self.n_bags, d))
                for k, j in partners:
                    image += (w[k] * (1.0 if i == j else ROOT2))[:, None] * self.rows[j]
                total += self.rows[i].T @ image
        return (total + total.T) / 2


@dataclass(frozen=True, eq=False)
class SDPSolution:
    """The matrix at which the method stopped, and how it got there.

    Attributes
    ----------
    matrix : array of shape (d, d)
        Positive semidefinite with trace 1, exactly.
    status : {"solved", "infeasible", "stopped"}
        "infeasible": a certificate was found that no matrix meets all constraints; "stopped": max_iter was
        reached first.
    iterations : int
    primal_residual, dual_residual : float
        Relative distance of the point from the constraints, and relative change of the point in the last
        iteration; both are below the tolerance when solved.
    violation : float
        Largest violation of a constraint (entry of a block, or row) for a trace of 1 and rows of length 1.
    """

    matrix: FloatArray
    status: Status
    iterations: int
    primal_residual: float
    dual_residual: float
    violation: float


# ---------------------------------------------------------------------- projections


def psd_part(entries: FloatArray, size: int) -> FloatArray:
    """Nearest positive semidefinite matrices, of svec lists: shape (q(q+1)/2, ...), 3 x 3 or larger.

    3 x 3 by a closed form, larger ones by cyclic Jacobi rotations over the whole batch.
    """
    plain = [a if i == j else a / ROOT2 for a, (i, j) in zip(entries, triangle(size), strict=True)]
    part = _psd_part_3(*plain) if size == 3 else _psd_part_jacobi(plain, size)
    return np.stack([a if i == j else a * ROOT2 for a, (i, j) in zip(part, triangle(size), strict=True)])


def _psd_part_3(
    a00: FloatArray, a01: FloatArray, a02: FloatArray, a11: FloatArray, a12: FloatArray, a22: FloatArray
) -> list[FloatArray]:
    """Positive part of 3 x 3 matrices without eigenvectors.

    Eigenvalues l1 >= l2 >= l3 by the trigonometric formula. If l2 >= 0 at most l3 is negative, and the part is
    A - min(l3, 0) E3; else it is max(l1, 0) E1, with E = (A - a)(A - b) / ((l - a)(l - b)) the projector of
    the eigenvalue l and a, b the others. The factor l / ((l - a)(l - b)) is harmless when l comes near l2, as
    l2 then lies on the other side of 0: |l / (l - l2)| <= 1. The error is that of the eigenvalues, at most
    about 1e-8 |A| (at double ones), otherwise rounding.
    """
    trace = a00 + a11 + a22
    mean = trace / 3
    b0, b1, b2 = a00 - mean, a11 - mean, a22 - mean
    s01, s02, s12 = a01 * a01, a02 * a02, a12 * a12
    spread = np.sqrt((b0 * b0 + b1 * b1 + b2 * b2 + 2 * (s01 + s02 + s12)) / 6)
    det = b0 * (b1 * b2 - s12) - b1 * s02 - b2 * s01 + 2 * a01 * a02 * a12
    cosine = np.cos(np.arccos(np.clip(det / (2 * spread**3 + TINY), -1.0, 1.0)) / 3)
    sine = np.sqrt(np.maximum(1 - cosine * cosine, 0.0))
    high = mean + 2 * spread * cosine
    low = mean - spread * (cosine + np.sqrt(3.0) * sine)
    middle = trace - high - low

    one_negative = middle >= 0
    single, far = np.where(one_negative, low, high), np.where(one_negative, high, low)
    kept = np.where(one_negative, -np.minimum(low, 0.0), np.maximum(high, 0.0))
    factor = kept / ((single - far) * (single - middle) + TINY)
    linear = one_negative - factor * (far + middle)
    constant = factor * far * middle
    return [
        linear * a00 + factor * (a00 * a00 + s01 + s02) + constant,
        linear * a01 + factor * (a01 * (a00 + a11) + a02 * a12),
        linear * a02 + factor * (a02 * (a00 + a22) + a01 * a12),
        linear * a11 + factor * (s01 + a11 * a11 + s12) + constant,
        linear * a12 + factor * (a12 * (a11 + a22) + a01 * a02),
        linear * a22 + factor * (s02 + s12 + a22 * a22) + constant,
    ]


def _psd_part_jacobi(entries: Sequence[FloatArray], size: int, sweeps: int = 5) -> list[FloatArray]:
    """Positive part by cyclic Jacobi rotations: 5 sweeps leave 4 x 4 matrices diagonal to rounding.

    The tangent of the rotation is written so that no quotient overflows:
    t = sgn(D) 2a / (|D| + sqrt(D^2 + 4a^2)), D = a_rr - a_pp.
    """
    place = {pair: k for k, (i, j) in enumerate(triangle(size)) for pair in ((i, j), (j, i))}
    a = list(entries)
    shape = a[0].shape
    vectors = [[np.full(shape, float(i == j)) for j in range(size)] for i in range(size)]
    for _ in range(sweeps):
        for p in range(size - 1):
            for r in range(p + 1, size):
                off, gap = a[place[p, r]], a[place[r, r]] - a[place[p, p]]
                t = np.copysign(2.0, gap) * off / (np.abs(gap) + np.sqrt(gap * gap + 4 * off * off) + TINY)
                cosine = 1 / np.sqrt(t * t + 1)
                sine = t * cosine
                a[place[p, p]] = a[place[p, p]] - t * off
                a[place[r, r]] = a[place[r, r]] + t * off
                a[place[p, r]] = np.zeros(shape)
                for k in range(size):
                    if k not in (p, r):
                        x, y = a[place[k, p]], a[place[k, r]]
                        a[place[k, p]], a[place[k, r]] = cosine * x - sine * y, sine * x + cosine * y
                for row in vectors:
                    x, y = row[p], row[r]
                    row[p], row[r] = cosine * x - sine * y, sine * x + cosine * y
    kept = [np.maximum(a[place[i, i]], 0.0) for i in range(size)]
    scaled = [[w * x for w, x in zip(kept, row, strict=True)] for row in vectors]
    return [np.sum([x * y for x, y in zip(scaled[i], vectors[j], strict=True)], axis=0) for i, j in triangle(size)]


def _spectrahedron_part(A: FloatArray, trace: float) -> FloatArray:
    """Nearest positive semidefinite matrix of the given trace: its eigenvalues projected on the simplex."""
    values, vectors = np.linalg.eigh(A)
    falling = values[::-1]
    excess = (np.cumsum(falling) - trace) / np.arange(1, len(values) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    kept = values > shift
    half = vectors[:, kept] * np.sqrt(values[kept] - shift)
    part: FloatArray = half @ half.T
    return part


# ---------------------------------------------------------------------- the linear step


class _Member:
    """A group of bags with the constant matrices of its kind, all rows times one weight.

    Π = I - Q Q^+ removes the free unknowns: the target t reaches C through P'Π t, and S = P'Π P = R'R.
    """

    def __init__(self, group: BagGroup, weight: float, slack: float) -> None:
        self.group, self.kind, self.weight = group, group.kind, weight
        self.P, self.Q = (weight * A for A in group.kind.stacked())
        self.floor = (group.kind.strict * (slack * weight))[:, None]
        self.Q_inverse = np.linalg.pinv(self.Q) if self.Q.shape[1] else np.zeros((0, len(self.P)))
        self.target_map = self.P.T - (self.P.T @ self.Q) @ self.Q_inverse
        values, vectors = np.linalg.eigh(self.target_map @ self.P)
        kept = values > 1e-12 * values.max()
        self.R = (vectors[:, kept] * np.sqrt(values[kept])).T

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the group's part of a point."""
        return len(self.P), self.group.n_bags

    @property
    def block_shape(self) -> tuple[int, int, int]:
        """Shape of the semidefinite rows of the part: (blocks, entries, bags)."""
        return self.kind.n_blocks, self.kind.n_entries, self.group.n_bags

    @property
    def n_block_rows(self) -> int:
        """Rows of the part that belong to semidefinite blocks; the linear rows follow."""
        return self.kind.n_blocks * self.kind.n_entries

    def best_part(self, C: FloatArray, target: FloatArray) -> FloatArray:
        """P g(C) + Q h with the free h that brings it nearest to the target."""
        part: FloatArray = self.P @ self.group.compressions(C)
        if self.Q.shape[1]:
            part += self.Q @ (self.Q_inverse @ (target - part))
        return part

    def cone_part(self, w: FloatArray, rho: float, centre: Centre) -> FloatArray:
        """Projection of a part on its cones; the log barrier lifts its rows to the root of z - w = 1/(rho z)."""
        z = np.empty_like(w)
        n = self.n_block_rows
        if n:
            cones = psd_part(w[:n].reshape(self.block_shape).swapaxes(0, 1), self.kind.size)
            z[:n].reshape(self.block_shape)[:] = cones.swapaxes(0, 1)
        z[n:] = np.maximum(w[n:], self.floor)
        if centre == "log_barrier":
            y = w[n:][self.kind.barrier]
            z[n:][self.kind.barrier] = (y + np.sqrt(y * y + 4 / rho)) / 2
        return z

    def price(self, y: FloatArray) -> tuple[FloatArray, float]:
        """The matrix W and the number f with  f <= <y, P g + Q h> <= <W, C>  for all feasible (C, h), y >= 0.

        W = sum_b X_b (smat(P'y_b) + sum_l [smat(Q'y_b)_l]_+) X_b', because 0 <= H_l <= G_b.
        """
        price = self.P.T @ y
        if self.Q.shape[1]:
            free = (self.Q.T @ y).reshape(-1, self.kind.n_entries, self.group.n_bags)
            price = price + psd_part(free.swapaxes(0, 1), self.kind.size).sum(axis=1)
        return self.group.adjoint(price), float((self.floor * y[self.n_block_rows :]).sum())


class _Equations:
    """Projection on the affine set {(C, P g_b(C) + Q h_b)}, with the h_b eliminated.

    The C nearest to a target (T, t) solves (I + sum_b K_b' S K_b) C = T + sum_b K_b' P'Π t_b. K_b is never
    stored: the matrix to factor is either that of the D = d(d+1)/2 entries of C, added up in chunks of bags,
    or by Woodbury's identity the Gram matrix of the rows R K_b, from inner products of instances; whichever
    is smaller.
    """

    def __init__(self, members: Sequence[_Member], d: int) -> None:
        from scipy.linalg import cho_factor

        self.members, self.d = members, d
        self.upper = np.triu_indices(d)
        self.scale = np.where(self.upper[0] == self.upper[1], 1.0, ROOT2)
        self.by_rows = sum(len(one.R) * one.group.n_bags for one in members) < len(self.scale)
        if self.by_rows:
            gram = np.block([[_row_products(one, two) for two in members] for one in members])
        else:
            gram = self._entry_gram()
        gram[np.diag_indices_from(gram)] += 1
        self.factor: FloatArray = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)[0]

    def _solve(self, right: FloatArray) -> FloatArray:
        from scipy.linalg import cho_solve

        solved: FloatArray = cho_solve((self.factor, True), right, check_finite=False)
        return solved

    def nearest(self, T: FloatArray, targets: Sequence[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
        """The point of the affine set nearest to the target."""
        right = T
        for one, t in zip(self.members, targets, strict=True):
            right = right + one.group.adjoint(one.target_map @ t)
        C = self._inverse(right)
        return C, [one.best_part(C, t) for one, t in zip(self.members, targets, strict=True)]

    def _inverse(self, right: FloatArray) -> FloatArray:
        """(I + sum_b K_b' S K_b)^-1 of a symmetric matrix."""
        if self.by_rows:  # (I + A'A)^-1 = I - A' (I + A A')^-1 A
            images = [one.R @ one.group.compressions(right) for one in self.members]
            solved = self._solve(np.concatenate([image.ravel() for image in images]))
            start = 0
            for one, image in zip(self.members, images, strict=True):
                piece = solved[start : start + image.size].reshape(image.shape)
                right = right - one.group.adjoint(one.R.T @ piece)
                start += image.size
            return right
        C = np.empty((self.d, self.d))
        C[self.upper] = self._solve(right[self.upper] * self.scale) / self.scale
        C.T[self.upper] = C[self.upper]
        return C

    def _entry_gram(self) -> FloatArray:
        """sum_b K_b' S K_b in svec coordinates of C."""
        first, second = self.upper
        gram = np.zeros((len(first), len(first)))
        for one in self.members:
            chunk = max(1, GRAM_ROWS // len(one.R))
            for start in range(0, one.group.n_bags, chunk):
                x = one.group.rows[:, start : start + chunk]
                # Row (i, j) of K_b is x_i x_j' symmetrised, as svec (times sqrt 2 for i != j).
                A = np.zeros((len(one.R), x.shape[1], len(first)))
                for k, (i, j) in enumerate(triangle(one.kind.size)):
                    if not one.R[:, k].any():
                        continue
                    product = x[i][:, first] * x[j][:, second]
                    if i != j:
                        product = (product + x[j][:, first] * x[i][:, second]) / ROOT2
                    for row, coefficient in enumerate(one.R[:, k]):
                        if coefficient != 0:
                            A[row] += coefficient * product
                A *= self.scale
                flat = A.reshape(-1, len(first))
                gram += flat.T @ flat
        return gram


def _row_products(one: _Member, two: _Member) -> FloatArray:
    """Products of the rows R K_b of two groups: <sym(x_i x_j'), sym(y_k y_l')> from inner products of x and y."""
    inner = np.einsum("imd,knd->ikmn", one.group.rows, two.group.rows, optimize=True)
    out = np.zeros((len(one.R), one.group.n_bags, len(two.R), two.group.n_bags))
    for a, (i, j) in enumerate(triangle(one.kind.size)):
        for b, (k, l) in enumerate(triangle(two.kind.size)):
            weight = np.outer(one.R[:, a], two.R[:, b])
            if not weight.any():
                continue
            product = (inner[i, k] * inner[j, l] + inner[i, l] * inner[j, k]) / 2
            product *= (1.0 if i == j else ROOT2) * (1.0 if k == l else ROOT2)
            out += weight[:, None, :, None] * product[None, :, None, :]
    return out.reshape(len(one.R) * one.group.n_bags, len(two.R) * two.group.n_bags)


# ---------------------------------------------------------------------- the method


class _Extrapolation:
    """Anderson acceleration of a fixed-point iteration w -> w + f(w), with restarts.

    From the last few (w, f) it proposes the affine combination whose residuals f cancel best. A proposal that
    does not lower |f| is taken back by the caller. Differences lie in two rings of rows, so that a step costs
    a few passes over them.
    """

    def __init__(self, memory: int, length: int) -> None:
        self.steps = np.empty((memory, length))
        self.changes = np.empty((memory, length))
        self.gram = np.zeros((memory, memory))
        self.forget()

    def forget(self) -> None:
        """Start afresh: the map has changed, or the memory has misled."""
        self.count = 0
        self.last: tuple[FloatArray, FloatArray] | None = None

    def note(self, w: FloatArray, f: FloatArray) -> None:
        """Take in one more point and its residual."""
        if self.last is not None:
            at, self.count = self.count % len(self.steps), self.count + 1
            np.subtract(w, self.last[0], out=self.steps[at])
            np.subtract(f, self.last[1], out=self.changes[at])
            held = min(self.count, len(self.steps))
            self.gram[at, :held] = self.gram[:held, at] = self.changes[:held] @ self.changes[at]
        self.last = w, f

    def proposal(self) -> FloatArray | None:
        """The extrapolated point, once there are two differences."""
        if self.last is None or self.count < 2:
            return None
        w, f = self.last
        held = min(self.count, len(self.steps))
        gram, changes = self.gram[:held, :held].copy(), self.changes[:held]
        gram[np.diag_indices(held)] += 1e-8 * np.trace(gram) + TINY
        mix = np.linalg.solve(gram, changes @ f)
        proposal: FloatArray = w + f - mix @ changes - mix @ self.steps[:held]
        return proposal


def solve(
    groups: Sequence[BagGroup],
    n_features: int,
    *,
    centre: Centre,
    slack: float,
    tol: float,
    max_iter: int,
) -> SDPSolution:
    """The least-norm or the log-barrier centre of the matrices that all groups of bags allow.

    Minimises f(z) + indicator(x in the affine set), f the objective and the cones, by the Douglas-Rachford
    iteration w <- w + relaxation (x - z), z = prox_f(w), x = projection of 2z - w. Costs one
    eigendecomposition of a d x d matrix, the projections of all small blocks and two products of all rows
    with a d x d matrix per iteration; matrices are scaled to trace d inside.

    Parameters
    ----------
    groups : bags by kind, rows of length about 1
    n_features : d
    centre : which of the feasible points
    slack : floor of the strict rows, for a trace of 1
    tol : relative residuals at which to stop
    max_iter : iterations at which to give up
    """
    if not groups:
        return SDPSolution(np.eye(n_features) / n_features, "solved", 0, 0.0, 0.0, 0.0)
    return _Iteration(groups, n_features, centre, slack).run(tol, max_iter)


class _Iteration:
    """The state of one run of `solve`: a flat vector w = (d x d part, parts of the groups) and views of it."""

    def __init__(self, groups: Sequence[BagGroup], d: int, centre: Centre, slack: float) -> None:
        self.d, self.centre = d, centre
        with_free, without = WEIGHTS[centre]
        self.members = [_Member(group, with_free if group.kind.n_blocks else without, slack * d) for group in groups]
        self.equations = _Equations(self.members, d)
        ends = np.cumsum([d * d, *(a * b for a, b in (one.shape for one in self.members))])
        self.slices = [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def split(self, w: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Views of the d x d part and of the parts of the groups."""
        parts = [w[at].reshape(one.shape) for at, one in zip(self.slices, self.members, strict=True)]
        return w[: self.d**2].reshape(self.d, self.d), parts

    def proximal(self, w: FloatArray, rho: float) -> FloatArray:
        """argmin over z of f(z) + rho/2 |z - w|^2: projections on the cones, shrunk or lifted by f."""
        W, parts = self.split(w)
        target = W * (rho / (rho + 1)) if self.centre == "least_norm" else W
        cones = [one.cone_part(part, rho, self.centre) for one, part in zip(self.members, parts, strict=True)]
        return _joined(_spectrahedron_part(target, self.d), cones)

    def affine(self, w: FloatArray) -> FloatArray:
        """The nearest point that fulfils the equations."""
        return _joined(*self.equations.nearest(*self.split(w)))

    def start(self) -> FloatArray:
        """The identity with the bag parts nearest to 0."""
        C = np.eye(self.d)
        return _joined(C, [one.best_part(C, np.zeros(one.shape)) for one in self.members])

    def run(self, tol: float, max_iter: int) -> SDPSolution:
        """Iterate until solved, shown to be infeasible, or max_iter."""
        rho, w = 1.0, self.start()
        extrapolation = _Extrapolation(MEMORY, len(w))
        fallback: tuple[FloatArray, float] | None = None  # the plain step and |x - z| before an extrapolation
        status: Status = "stopped"
        for iteration in range(1, max_iter + 1):
            z = self.proximal(w, rho)
            x = self.affine(2 * z - w)
            gap, size = float(np.linalg.norm(x - z)), float(np.linalg.norm(z))
            if fallback is not None and gap > fallback[1] and iteration < max_iter:
                w, fallback = fallback[0], None
                extrapolation.forget()
                continue
            # x is feasible for the equations and z for the cones; rho (w - z) is a subgradient of f at z, and
            # rho (z - x) is what it lacks to be normal to the equations: one gap, two scales.
            price = float(np.linalg.norm(w - z))
            if self.centre == "least_norm":
                price = max(price, size / rho)
            primal, dual = gap / size, gap / max(price, TINY)
            if max(primal, dual) < tol:
                status = "solved"
                break
            if iteration % ADAPT_EVERY == 0:
                if self.certainly_infeasible(z - w):
                    status = "infeasible"
                    break
                factor = min(max(price / size, 0.2), 5.0)
                if not 0.5 < factor < 2:
                    rho *= factor
                    w, fallback = z + (w - z) / factor, None
                    extrapolation.forget()
                    continue
            step = RELAXATION * (x - z)
            extrapolation.note(w, step)
            w, fallback = w + step, None
            if iteration % EXTRAPOLATE_EVERY == 0 and (proposal := extrapolation.proposal()) is not None:
                w, fallback = proposal, (w, gap)
        Z, parts = self.split(z)
        return SDPSolution(Z / np.trace(Z), status, iteration, primal, dual, self.violation(Z, parts))

    def certainly_infeasible(self, y: FloatArray) -> bool:
        """Whether y, an element of the dual cones, proves that no matrix meets all constraints.

        It does if the largest <W, C> over the spectrahedron, d lambda_max(W), is below the sum of the floors'
        prices (see `_Member.price`). The margin allows for the rounding of the projections that gave y.
        """
        W, floors, margin = np.zeros((self.d, self.d)), 0.0, 0.0
        for one, part in zip(self.members, self.split(y)[1], strict=True):
            matrix, floor = one.price(part)
            W, floors, margin = W + matrix, floors + floor, margin + 1e-6 * float(np.abs(part).sum())
        return self.d * float(np.linalg.eigvalsh(W)[-1]) + margin < floors

    def violation(self, Z: FloatArray, parts: Sequence[FloatArray]) -> float:
        """Largest entry by which Z, with free unknowns that suit the parts, misses the cones; for trace 1."""
        misses = [
            float(np.abs(one.best_part(Z, part) - part).max()) / one.weight
            for one, part in zip(self.members, parts, strict=True)
        ]
        return max(misses, default=0.0) / self.d


def _joined(C: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """The flat vector of a matrix and the parts of the groups."""
    return np.concatenate([C.ravel(), *(part.ravel() for part in parts)])
