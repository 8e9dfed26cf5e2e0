"""Claim: the closed forms of `bagwise.theory.asymptotics` are what the learners do, within 10 % from m = 100 d on.

Run: python benchmarks/asymptotics_match_simulation.py [data sets per cell, default 400]. Samples whole bags, fits the
learners, and prints the measured over the expected squared sine of the angle to the normal (A2: `SpectralLTF`, A3:
`MeanLTF`, over N(0, I)) and the measured over the expected instance error of both ways of fitting an offset (A4).
"""

import sys
import warnings

import numpy as np

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.theory.asymptotics import mean_direction_error, spectral_direction_error, spectral_instance_error

# (q, k, l, d, m)
CELLS = [
    *((q, k, 0.0, 10, 1000) for q, k in ((2, 1), (3, 1), (10, 5), (10, 8), (50, 25), (50, 35))),
    (3, 1, 1.0, 10, 1000),
    (5, 4, 2.0, 10, 1000),
    (10, 8, 1.0, 10, 1000),
    (10, 8, 1.0, 10, 4000),
    (10, 8, -1.0, 10, 1000),
    (10, 2, 1.5, 10, 1000),
    (10, 8, 0.0, 50, 5000),
    (10, 5, 1.0, 5, 500),
]


def measured(q: int, k: int, l: float, d: int, m: int, data_sets: int) -> dict[str, float]:
    """Means over data sets, a fresh normal each."""
    rng = np.random.default_rng((q, k, d, m, round(100 + 10 * l)))
    rows: dict[str, list[float]] = {}
    for _ in range(data_sets):
        normal = rng.standard_normal(d)
        truth = bw.LTF(normal / np.linalg.norm(normal), -l)
        bags = bw.BagOracle(truth, np.zeros(d), np.eye(d), size=q, count=k).sample(m, rng)
        for offset in ("satisfied", "count"):
            found = bw.SpectralLTF(offset=offset).fit(bags).ltf_
            error = bw.instance_error(found, truth, np.zeros(d), np.eye(d))
            rows.setdefault(offset, []).append(min(error, 1 - error) if 2 * k == q else error)
        rows.setdefault("A2", []).append(float(np.sin(found.angle(truth)) ** 2))
        if abs(2 * k - q) > 0 and l == 0:
            for pairs in ("all", "one"):
                mean = bw.MeanLTF(pairs=pairs, random_state=rng.integers(2**31)).fit(bags).ltf_
                rows.setdefault(f"A3 {pairs}", []).append(float(np.sin(mean.angle(truth)) ** 2))
    return {name: float(np.mean(values)) for name, values in rows.items()}


def expected(q: int, k: int, l: float, d: int, m: int) -> dict[str, float]:
    """The same from theory."""
    values = {"A2": spectral_direction_error(d, m, q, k, l).sin2}
    for offset in ("satisfied", "count"):
        values[offset] = spectral_instance_error(d, m, q, k, l, offset=offset)
    for pairs in ("all", "one"):
        try:
            values[f"A3 {pairs}"] = mean_direction_error(d, m, q, k, l, pairs=pairs).sin2
        except InvalidInputError:
            continue
    return values


if __name__ == "__main__":
    warnings.simplefilter("ignore", bw.errors.IdentifiabilityWarning)
    data_sets = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    columns = ("A2", "A3 all", "A3 one", "satisfied", "count")
    print("measured / expected; sin^2 of the angle for A2, A3, instance error for the offsets of A4")
    print(
        f"{'q':>3} {'k':>3} {'l':>5} {'d':>3} {'m':>5}  {'sin^2 A2':>9}" + "".join(f" {name:>10}" for name in columns)
    )
    worst = 1.0
    for cell in CELLS:
        found, theory = measured(*cell, data_sets), expected(*cell)
        ratios = {name: found[name] / theory[name] for name in columns if name in found and name in theory}
        worst = max(worst, *(max(ratios[name], 1 / ratios[name]) for name in ratios if name.startswith("A")))
        shown = "".join(f" {ratios[name]:10.3f}" if name in ratios else f" {'':>10}" for name in columns)
        print("{:3d} {:3d} {:5.1f} {:3d} {:5d}".format(*cell) + f"  {theory['A2']:9.5f}" + shown, flush=True)
    print(f"largest factor between measured and expected angle: {worst:.3f} ({data_sets} data sets per cell)")
