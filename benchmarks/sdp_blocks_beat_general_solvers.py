"""Speed of the semidefinite baseline against its program handed to cvxpy and SCS bag by bag, in one run on one thread.

    python benchmarks/sdp_blocks_beat_general_solvers.py              # all; the largest reference: 2 minutes, 3 GB
    python benchmarks/sdp_blocks_beat_general_solvers.py q3d50 many   # some of them

The reference is the published program as printed, one d x d matrix per pair of rows of a bag. "feasible" is pure
feasibility by SCS without acceleration and otherwise at its defaults (tolerance 1e-4), as in the authors' experiments:
a point that depends on the solver. "least norm" is the point that we compute, by SCS at the same tolerance. Its wall
time is building, compiling and solving; "solver" is SCS's own time, set-up included. Ours are the whole fit of SDPLTF
(the least-norm point, five roundings) and its solver alone, the least of three runs. Accuracies are exact, the better
of the two signs for pairs, after the same five draws from both matrices.
"""

import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import bagwise as bw
from bagwise.data.problems import random_oracle
from bagwise.learn import sdp
from bagwise.learn.sdp_solver import solve

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from saket_programs import printed_program

CELLS = {  # name: (q, d, m, data sets, whether there is time for both references)
    "q2d10": (2, 10, 200, 25, True),
    "q2d50": (2, 50, 200, 25, True),
    "q3d10": (3, 10, 200, 3, True),
    "q3d50": (3, 50, 200, 1, False),
}
MANY = [(2, 50, 20_000), (3, 10, 2000), (3, 50, 2000)]


def problem(q: int, d: int, m: int, seed: int) -> tuple[bw.BagOracle, bw.Bags]:
    """Bags of q rows, one of them positive, of a centred Gaussian."""
    rng = np.random.default_rng([q, d, m, seed])
    oracle = random_oracle(d, size=q, count=1, rng=rng)
    return oracle, oracle.sample(m, rng)


def reference(bags: bw.Bags, objective: str) -> tuple[np.ndarray, float, float]:
    """Matrix, wall seconds and SCS's own seconds of the printed program."""
    start = time.perf_counter()
    rows = sdp.unit_rows(bags, with_offset=False)
    parts = [(rows[a:b], False) for a, b in pairwise(bags.starts)]
    program, C = printed_program(parts, rows.shape[1], objective=objective, slack=sdp.SLACK)
    program.solve(solver="SCS", acceleration_lookback=0, eps_abs=1e-4, eps_rel=1e-4)
    wall = time.perf_counter() - start
    stats = program.solver_stats
    return C.value, wall, stats.solve_time + (stats.setup_time or 0.0)


def least_seconds(run: Callable[[], Any], times: int = 3) -> float:
    """Least wall time of a few runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def fit(bags: bw.Bags, variant: sdp.Variant = "S") -> bw.SDPLTF:
    """The whole baseline."""
    return bw.SDPLTF(variant=variant, fit_intercept=False, random_state=0).fit(bags)


def solver_alone(bags: bw.Bags) -> np.ndarray:
    """The matrix of S."""
    rows = sdp.unit_rows(bags, with_offset=False)
    groups = sdp.bag_groups(bags, rows, "S")
    return solve(groups, rows.shape[1], centre="least_norm", slack=sdp.SLACK, tol=1e-4, max_iter=10_000).matrix


def accuracy(C: np.ndarray, bags: bw.Bags, oracle: bw.BagOracle) -> float:
    """Of the best of five draws from N(0, C), in percent: C^1/2 z, which is near for C that are near."""
    values, vectors = np.linalg.eigh(C)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    draws = [("", g) for g in np.random.default_rng(1).standard_normal((5, len(C))) @ root]
    best = max(sdp._judged(bags, bags.X, draws, "S", False), key=lambda one: one.satisfied)
    right = 100 * (1 - bw.instance_error(best.ltf, oracle.ltf, oracle.mean, oracle.cov))
    return max(right, 100 - right) if bags.balanced else right


def compare(q: int, d: int, m: int, datasets: int, objective: str) -> None:
    """One line: seconds of both, mean over the data sets, their ratios and accuracies."""
    seconds, right = [], []
    for seed in range(datasets):
        oracle, bags = problem(q, d, m, seed)
        C, wall, solver = reference(bags, objective)
        ours = least_seconds(lambda bags=bags: fit(bags)), least_seconds(lambda bags=bags: solver_alone(bags))
        seconds.append((wall, solver, *ours))
        right.append((accuracy(C, bags, oracle), accuracy(solver_alone(bags), bags, oracle)))
    wall, solver, our_wall, our_solver = np.mean(seconds, axis=0)
    theirs, our_right = np.mean(right, axis=0)
    differences = np.diff(right, axis=1)
    error = f"{differences.std(ddof=1) / np.sqrt(datasets):.1f}" if datasets > 1 else "?"
    gap = differences.mean()
    print(
        f"{q} {d:3} {m:4} {datasets:3} {objective:10} | {wall:8.3f} {solver:8.4f} | "
        f"{our_wall:7.4f} {our_solver:7.4f} | "
        f"{wall / our_wall:6.1f} {solver / our_solver:6.2f} | "
        f"{theirs:5.1f} {our_right:5.1f} ({gap:+.1f} +- {error})",
        flush=True,
    )


def many_bags() -> None:
    """Seconds of whole fits where there is no reference to wait for."""
    print("\nwhole fits of many bags\nq   d      m | S, iterations   | S+, iterations")
    for q, d, m in MANY:
        _, bags = problem(q, d, m, 0)
        told = []
        for variant in ("S", "S+"):
            start = time.perf_counter()
            result = fit(bags, variant).result_
            ended = f"{result.iterations:6}" if result.converged else "  stopped"
            told.append(f"{time.perf_counter() - start:6.2f} s {ended}")
        print(f"{q} {d:3} {m:6} | {told[0]} | {told[1]}", flush=True)


def main() -> None:
    chosen = sys.argv[1:] or [*CELLS, "many"]
    warnings.simplefilter("ignore")  # of the sign
    _, bags = problem(3, 5, 20, 0)
    fit(bags), reference(bags, "feasible")  # load all that is loaded on first use
    small = [CELLS[name] for name in chosen if name in CELLS]
    if small:
        print("                       |  cvxpy + SCS [s]  |     ours [s]    |   ratio of    | accuracy [%]")
        print("q   d    m  n reference  |    wall   solver |    wall  solver |   wall solver | SCS, ours (difference)")
    for cell in small:
        for objective in ("feasible", "least_norm")[: 1 + cell[-1]]:
            compare(*cell[:-1], objective)
    if "many" in chosen:
        many_bags()


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
