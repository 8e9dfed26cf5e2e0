"""Linear thresholds from semidefinite relaxations: the paper's column S, and a stronger reading of the same program.

Owns the programs of [S21] (bags of one or two rows) and [S22] (three, four), which become blocks for
`bagwise.learn.sdp_solver`, the rounding of their matrix to thresholds, the linear program for bags of one label, and
what is proven of the outcome. Refuses bags of more than four rows.

Vocabulary. A *mono* bag has rows of one label (count 0 or size), others are *split*. C stands for r r', r the unknown
normal, so that x' C y > 0 says that x and y have the same label. Rows are scaled to length 1; with an offset they are
(x, 1) scaled, and the offset is the last entry of what is rounded. A *candidate* is a threshold that competes for the
most bags: a draw from N(0, C), the top eigenvector of C, the solution of the linear program. Labelled rows (bags of
size 1) do not enter C, as x' C x > 0 says nothing: they enter the linear program and the choice of candidate and sign.

Two variants: "S" takes the C of least Frobenius norm and five draws; "S+" the log-barrier centre, 100 draws and the
top eigenvector. Proofs of the elimination and of the guarantees: docs/theory/sdp.md.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from bagwise.arrays import BoolArray, FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.errors import InvalidInputError, NotIdentifiableError
from bagwise.learn.sdp_solver import BagGroup, BagKind, entry, solve
from bagwise.ltf import LTF

__all__ = [
    "Candidate",
    "SDPResult",
    "Variant",
    "bag_groups",
    "guarantee",
    "published_guarantee",
    "sdp_ltf",
    "separating_ltf",
    "unit_rows",
]

Variant = Literal["S", "S+"]

LARGEST_SIZE = 4
SLACK = 1e-7  # of every strict constraint, for unit rows and trace 1
ROUNDINGS = {"S": 5, "S+": 100}

# Share of bags that one draw with its better sign satisfies at least, on average: (size, mono) -> bound.
# A split bag of four counts as satisfied here when it is split at all.
MONO_BOUND = {1: 1 / 2, 2: 1 / 4, 3: 1 / 8, 4: 1 / 16}
SPLIT_BOUND = {2: 1 / 2, 3: 1 / 8, 4: 1 / 4}


# ---------------------------------------------------------------------- the programs


def one_side(size: int) -> BagKind:
    """Rows of one label: x_i' C x_j >= slack for all pairs."""
    return _rows_only(size, np.array([entry(size, i, j) for i, j in combinations(range(size), 2)]))


def split_pair() -> BagKind:
    """Two rows of different labels: -x_1' C x_2 >= slack."""
    return _rows_only(2, -entry(2, 0, 1)[None, :])


def split_triple() -> BagKind:
    """Three rows, one of which is alone: six blocks of 3 x 3 in three unknowns H_k, and three rows.

    H_k = G - N_ij, k the third row, N_ij the compression of the relaxation's M_ij. The nine conditions
    0 <= N_ij <= G, N_ij + N_ik >= G are H_k >= 0 and H_j + H_k <= G; and (N_ij)_ij + (N_ik)_ik <= -slack for each i.
    """
    eye = np.eye(3)
    pairs = list(combinations(range(3), 2))
    gram_rows, free_rows = np.zeros((3, 6)), np.zeros((3, 3, 6))
    for i, j in pairs:
        for end in (i, j):
            gram_rows[end] -= entry(3, i, j)
            free_rows[end, 3 - i - j] += entry(3, i, j)
    return BagKind(
        size=3,
        gram_blocks=np.repeat([0.0, 1.0], 3),
        free_blocks=np.vstack([eye, [-(eye[i] + eye[j]) for i, j in pairs]]),
        gram_rows=gram_rows,
        free_rows=free_rows.reshape(3, 18),
        strict=np.ones(3, np.bool_),
        barrier=np.ones(3, np.bool_),
    )


def split_quad(*, with_barrier: bool) -> BagKind:
    """Four rows, not all of one label: sixteen blocks of 4 x 4 in six unknowns N_ij, and six rows -(N_ij)_ij >= 0.

    0 <= N_ij <= G, and sum_j N_ij >= G for each i. The barrier, if wanted, is on the sums -sum_j (N_ij)_ij of the four
    rows i, as a single entry of a pair on one side is 0 in the relaxation's own solution; the sums add nothing else.
    """
    pairs = list(combinations(range(4), 2))
    touches = np.array([[float(i in pair) for pair in pairs] for i in range(4)])  # (4, 6)
    entries = np.array([entry(4, i, j) for i, j in pairs])
    single = np.array([-np.kron(np.eye(6)[k], entries[k]) for k in range(6)])
    rows = np.vstack([single, touches @ single]) if with_barrier else single
    return BagKind(
        size=4,
        gram_blocks=np.repeat([0.0, 1.0, -1.0], [6, 6, 4]),
        free_blocks=np.vstack([np.eye(6), -np.eye(6), touches]),
        gram_rows=np.zeros((len(rows), 10)),
        free_rows=rows,
        strict=np.zeros(len(rows), np.bool_),
        barrier=np.arange(len(rows)) >= 6,
    )


def _rows_only(size: int, rows: FloatArray) -> BagKind:
    """A kind without blocks or free unknowns."""
    every = np.ones(len(rows), np.bool_)
    return BagKind(size, np.zeros(0), np.zeros((0, 0)), rows, np.zeros((len(rows), 0)), every, every)


def unit_rows(bags: Bags, *, with_offset: bool) -> FloatArray:
    """Rows, followed by 1 if there is an offset, scaled to length 1; a row of zeros stays."""
    X = np.asarray(bags.X, dtype=np.float64)
    if with_offset:
        X = np.column_stack([X, np.ones(len(X))])
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1.0)  # squares of 1e200 overflow
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1.0)


def bag_groups(bags: Bags, rows: FloatArray, variant: Variant) -> list[BagGroup]:
    """The program of the bags: those of two to four rows by kind."""
    mono = is_mono(bags)
    kinds = [(one_side(size), True) for size in (2, 3, 4)]
    kinds += [(split_pair(), False), (split_triple(), False), (split_quad(with_barrier=variant == "S+"), False)]
    groups = []
    for kind, alike in kinds:
        chosen = np.flatnonzero((bags.sizes == kind.size) & (mono == alike))
        if len(chosen):
            groups.append(BagGroup(kind, rows[bags.starts[chosen] + np.arange(kind.size)[:, None]]))
    return groups


def is_mono(bags: Bags) -> BoolArray:
    """Whether all rows of each bag have one label."""
    mono: BoolArray = (bags.counts == 0) | (bags.counts == bags.sizes)
    return mono


# ---------------------------------------------------------------------- what is proven


def guarantee(bags: Bags, variant: Variant) -> float:
    """Share of the bags that the answer satisfies at least, on average over its draws, if an LTF satisfies all.

    The larger of what one draw with its better sign satisfies (a sum over bags of the bounds of their kinds) and what
    the linear program satisfies, all mono bags. For bags of at most two rows it is never below 2/5. Under "S" a
    split bag of four counts when it is split; "S+" goes for its count, of which nothing is proven.
    """
    mono = is_mono(bags)
    of_split = {**SPLIT_BOUND, 4: SPLIT_BOUND[4] if variant == "S" else 0.0}
    rounding = sum(
        MONO_BOUND[size] * np.count_nonzero(mono & (bags.sizes == size))
        + of_split.get(size, 0.0) * np.count_nonzero(~mono & (bags.sizes == size))
        for size in MONO_BOUND
    )
    return float(max(rounding, np.count_nonzero(mono)) / bags.n_bags)


def published_guarantee(bags: Bags) -> float | None:
    """The constant in the papers: 1/2 for split pairs, 2/5 up to two rows, 1/12 up to three; above, none is stated."""
    largest = int(bags.sizes.max())
    if largest > 3:
        return None
    if largest == 3:
        return 1 / 12
    return 1 / 2 if not is_mono(bags).any() else 2 / 5


# ---------------------------------------------------------------------- the outcome


@dataclass(frozen=True, slots=True)
class Candidate:
    """A threshold that competed.

    Attributes
    ----------
    name : str
        "rounding 1", "rounding 2", … , "eigenvector" or "linear program".
    ltf : LTF
    satisfied : int
        Bags satisfied, as the choice between candidates counts them: under "S" a split bag of four rows counts when
        it is split at all.
    exact : int
        Bags whose count is met.
    """

    name: str
    ltf: LTF
    satisfied: int
    exact: int


@dataclass(frozen=True, slots=True, eq=False)
class SDPResult:
    """What the semidefinite baseline found, how the program ended and what is proven.

    Attributes
    ----------
    variant : "S" or "S+"
    matrix : array
        The matrix C that was rounded: positive semidefinite, of trace 1; one more row with an offset.
    feasible : bool
        False if a certificate shows that no matrix meets the constraints, or if no LTF is right on all rows whose
        labels are known. Either is what label noise does.
    converged : bool
        Whether the residuals came below the tolerance.
    primal_residual, dual_residual, violation : float
        Relative residuals at the end, and the largest violation of a constraint (unit rows, trace 1).
    iterations : int
    linear_slack : float or None
        By how much the rows of known label miss being separated with margin 1 (0: separated); None without such rows.
    candidates : tuple of Candidate
        All that competed, in order.
    winner : Candidate
        The one with the most bags.
    n_bags : int
    guarantee : float
        Proven share of satisfied bags for these sizes and counts, on average over the draws; 0 if not feasible or not
        converged.
    published_guarantee : float or None
        The constant in the papers for bags of these sizes.
    """

    variant: Variant
    matrix: FloatArray
    feasible: bool
    converged: bool
    primal_residual: float
    dual_residual: float
    violation: float
    iterations: int
    linear_slack: float | None
    candidates: tuple[Candidate, ...]
    winner: Candidate
    n_bags: int
    guarantee: float
    published_guarantee: float | None

    @property
    def ltf(self) -> LTF:
        """The threshold chosen."""
        return self.winner.ltf

    @property
    def satisfied(self) -> tuple[int, ...]:
        """Bags satisfied by each candidate."""
        return tuple(candidate.satisfied for candidate in self.candidates)

    @property
    def achieved(self) -> float:
        """Share of bags satisfied, counted as the guarantee counts."""
        return self.winner.satisfied / self.n_bags

    @property
    def achieved_exactly(self) -> float:
        """Share of bags whose count is met."""
        return self.winner.exact / self.n_bags

    @property
    def concern(self) -> str | None:
        """What a user must hear, with the numbers and a way out; None if all is well."""
        instead = (
            f"The best of {len(self.candidates)} candidates meets {self.winner.exact} of {self.n_bags} bags, without a "
            "guarantee. Noisy counts need BagLogisticRegression or SpectralLTF."
        )
        if not self.converged and self.feasible:
            return (
                f"the semidefinite program of {self.n_bags} bags must converge; residuals are "
                f"{self.primal_residual:.1e} and {self.dual_residual:.1e}, the largest violation {self.violation:.1e} "
                f"after {self.iterations} iterations. Raise max_iter or tol. {instead}"
            )
        if self.linear_slack:
            return (
                "bags of one label must be separable by a threshold; the linear program for them leaves a total slack "
                f"of {self.linear_slack:.3g}. {instead}"
            )
        if not self.feasible:
            return (
                f"some matrix must meet the constraints of all {self.n_bags} bags; after {self.iterations} iterations "
                f"a certificate shows that none does (largest violation {self.violation:.1e}), so no linear threshold "
                f"satisfies all bags. {instead}"
            )
        return None


def sdp_ltf(
    bags: Bags,
    rng: np.random.Generator,
    *,
    variant: Variant,
    with_offset: bool,
    n_roundings: int | None = None,
    tol: float = 1e-4,
    max_iter: int = 10_000,
) -> SDPResult:
    """The best candidate of the semidefinite relaxation: solve, draw, let the linear program compete, count bags.

    Parameters
    ----------
    bags : Bags
        Of one to four rows.
    rng : Generator of the draws
    variant : "S" or "S+"
    with_offset : whether to homogenise rows to (x, 1)
    n_roundings : draws from N(0, C); None for 5 ("S") or 100 ("S+")
    tol : relative residuals at which the solver stops
    max_iter : its iterations at most

    Raises
    ------
    InvalidInputError
        For bags of more than four rows.
    NotIdentifiableError
        When all rows are of one class.

    Examples
    --------
    >>> import numpy as np, bagwise as bw
    >>> oracle = bw.BagOracle(bw.LTF([1.0, 2.0]), np.zeros(2), np.eye(2), size=2, count=1)
    >>> rng = np.random.default_rng(0)
    >>> result = sdp_ltf(oracle.sample(100, rng), rng, variant="S", with_offset=False)
    >>> result.feasible, result.converged, len(result.candidates), result.guarantee
    (True, True, 5, 0.5)
    """
    _refuse_unsuitable(bags)
    rows = unit_rows(bags, with_offset=with_offset)
    centre: Literal["least_norm", "log_barrier"] = "least_norm" if variant == "S" else "log_barrier"
    solution = solve(
        bag_groups(bags, rows, variant), rows.shape[1], centre=centre, slack=SLACK, tol=tol, max_iter=max_iter
    )
    normals = [
        (f"rounding {i + 1}", g) for i, g in enumerate(_draws(solution.matrix, n_roundings or ROUNDINGS[variant], rng))
    ]
    if variant == "S+":
        normals.append(("eigenvector", np.linalg.eigh(solution.matrix)[1][:, -1]))
    slack: float | None = None
    if is_mono(bags).any():
        normal, slack = separating_ltf(bags, rows)
        normals.append(("linear program", normal))
    candidates = _judged(bags, rows, normals, variant, with_offset)
    feasible = solution.status != "infeasible" and not slack
    converged = solution.status == "solved"
    # The first of the best wins, as in the papers; exact counts break ties between bags of four.
    winner = max(candidates, key=lambda one: (one.satisfied, one.exact))
    return SDPResult(
        variant=variant,
        matrix=solution.matrix,
        feasible=feasible,
        converged=converged,
        primal_residual=solution.primal_residual,
        dual_residual=solution.dual_residual,
        violation=solution.violation,
        iterations=solution.iterations,
        linear_slack=slack,
        candidates=tuple(candidates),
        winner=winner,
        n_bags=bags.n_bags,
        guarantee=guarantee(bags, variant) if feasible and converged else 0.0,
        published_guarantee=published_guarantee(bags),
    )


def _refuse_unsuitable(bags: Bags) -> None:
    largest = int(np.argmax(bags.sizes))
    if bags.sizes[largest] > LARGEST_SIZE:
        raise InvalidInputError(
            f"bags must have at most {LARGEST_SIZE} rows for the semidefinite relaxation; got {bags.sizes[largest]} in "
            f"bag {bags.ids[largest]}. Use BagLogisticRegression, SpectralLTF, MeanLTF, MeanMap or RandomLTF, which "
            "take any size."
        )
    total = int(bags.counts.sum())
    if total in (0, bags.n_rows):
        raise NotIdentifiableError(
            f"bags must hold both classes; got {total} positives in {bags.n_rows} rows. Nothing separates one class "
            "from itself."
        )


# ---------------------------------------------------------------------- candidates


def _draws(C: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draws from N(0, C): V diag(sqrt w) z, one per row."""
    values, vectors = np.linalg.eigh(C)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    draws: FloatArray = rng.standard_normal((n_draws, len(C))) @ half.T
    return draws


def separating_ltf(bags: Bags, rows: FloatArray) -> tuple[FloatArray, float]:
    """A normal that is right on all rows of known label, if there is one, and by how much it misses margin 1.

    Minimises the sum of max(0, 1 - y x·r) over the rows of mono bags, a linear program: 0 exactly when a threshold
    separates them, and a sensible threshold otherwise.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    known = np.repeat(is_mono(bags), bags.sizes)
    labels = np.repeat(np.where(bags.counts > 0, 1.0, -1.0), bags.sizes)[known]
    A = rows[known] * labels[:, None]
    n, d = A.shape
    found = linprog(
        np.concatenate([np.zeros(d), np.ones(n)]),
        A_ub=-hstack([csr_array(A), eye_array(n)], format="csc"),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * d + [(0, None)] * n,
        method="highs",
    )
    normal: FloatArray = np.asarray(found.x)[:d]
    slack = float(np.maximum(0.0, 1 - A @ normal).sum())
    # Margins of 1 are met to the solver's 1e-7 each; being on the right side is what counts.
    return normal, 0.0 if (A @ normal > 0).all() else slack


def _judged(
    bags: Bags, rows: FloatArray, normals: list[tuple[str, FloatArray]], variant: Variant, with_offset: bool
) -> list[Candidate]:
    """Each normal with the sign that satisfies more bags (itself on a tie)."""
    splits = ~is_mono(bags)
    weak = splits & (bags.sizes == LARGEST_SIZE) if variant == "S" else np.zeros(bags.n_bags, np.bool_)

    def count(scores: FloatArray) -> tuple[int, int]:
        positives: IntArray = np.add.reduceat(scores > 0, bags.starts[:-1], dtype=np.int64)
        exact = positives == bags.counts
        split = (positives > 0) & (positives < bags.sizes)
        return int(np.where(weak, split, exact).sum()), int(exact.sum())

    candidates = []
    for name, normal in normals:
        scores = rows @ normal
        kept, turned = count(scores), count(-scores)
        if turned > kept:
            normal, kept = -normal, turned
        ltf = LTF(normal[:-1], normal[-1]) if with_offset else LTF(normal)
        candidates.append(Candidate(name, ltf, *kept))
    return candidates
