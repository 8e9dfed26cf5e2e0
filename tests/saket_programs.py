"""The semidefinite programs of the papers as they are printed, one d x d matrix per pair of rows of a bag, in cvxpy.

The reference for our eliminated blocks, in tests and in benchmarks/sdp_blocks_beat_general_solvers.py. Nothing here
knows of the elimination.
"""

from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np

from bagwise.arrays import FloatArray

Bag = tuple[FloatArray, bool]  # unit rows (q, d), and whether they have one label


def bag_constraints(C: Any, rows: FloatArray, alike: bool, slack: float) -> tuple[list[Any], list[Any]]:
    """The constraints of one bag, and the expressions that the log barrier counts."""
    q, d = rows.shape
    pairs = list(combinations(range(q), 2))
    form = lambda M, i, j: cp.trace(M @ np.outer(rows[j], rows[i]))
    if alike:
        margins = [form(C, i, j) for i, j in pairs]
        return [margin >= slack for margin in margins], margins
    if q == 2:
        return [form(C, 0, 1) <= -slack], [-form(C, 0, 1)]
    M = {pair: cp.Variable((d, d), symmetric=True) for pair in pairs}
    constraints = [M[pair] >> 0 for pair in pairs] + [C - M[pair] >> 0 for pair in pairs]
    margins = []
    for i in range(q):
        mine = [pair for pair in pairs if i in pair]
        if q == 3:
            constraints.append(M[mine[0]] + M[mine[1]] - C >> 0)
        else:
            constraints.append(sum(M[pair] for pair in mine) - C >> 0)
        margins.append(-sum(form(M[pair], *pair) for pair in mine))
    if q == 3:
        constraints += [margin >= slack for margin in margins]
    else:
        constraints += [form(M[pair], *pair) <= 0 for pair in pairs]
    return constraints, margins


def printed_program(bags: list[Bag], d: int, *, objective: str, slack: float = 1e-7) -> tuple[Any, Any]:
    """(problem, C): pure feasibility ("feasible", what is published), "least_norm" or "log_barrier"."""
    C = cp.Variable((d, d), symmetric=True)
    constraints, margins = [C >> 0, cp.trace(C) == 1], []
    for rows, alike in bags:
        more, of_bag = bag_constraints(C, rows, alike, slack)
        constraints += more
        margins += of_bag
    if objective == "least_norm":
        goal: Any = cp.Minimize(cp.sum_squares(C))
    elif objective == "log_barrier":
        goal = cp.Maximize(cp.sum(cp.log(cp.hstack(margins))))
    else:
        goal = cp.Minimize(cp.trace(C))
    return cp.Problem(goal, constraints), C
