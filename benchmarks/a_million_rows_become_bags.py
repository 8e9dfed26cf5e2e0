"""Claim: a million rows in 100,000 bags are built in well under a second from integer ids, in a few from text.

    python benchmarks/a_million_rows_become_bags.py

Prints seconds (best of three) of every way in, beside what a user would do with pandas: sort rows by bag and group.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
import pandas as pd
import polars as pl

import bagwise as bw

N_ROWS, N_BAGS, N_FEATURES = 1_000_000, 100_000, 10


def best_seconds(run: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    ids = np.concatenate([np.arange(N_BAGS), rng.integers(N_BAGS, size=N_ROWS - N_BAGS)])
    grouped, scattered = np.sort(ids), rng.permutation(ids)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    sizes = np.bincount(ids)
    counts = rng.integers(sizes + 1)
    by_text = {f"ward {i}": int(k) for i, k in enumerate(counts)}
    text = np.array([f"ward {i}" for i in scattered])
    target = bw.bag_target(scattered, counts=counts)
    columns = {f"x{j}": X[:, j] for j in range(N_FEATURES)} | {"positives": counts[scattered]}
    frame = pd.DataFrame(columns | {"ward": scattered})
    text_frame = pd.DataFrame(columns | {"ward": text})
    polars = pl.DataFrame(columns | {"ward": scattered})
    ways = {
        "from_arrays, integers, grouped": lambda: bw.Bags.from_arrays(X, grouped, counts=counts),
        "from_arrays, integers, anywhere": lambda: bw.Bags.from_arrays(X, scattered, counts=counts),
        "from_arrays, numpy text": lambda: bw.Bags.from_arrays(X, text, counts=by_text),
        "from_arrays, list of text": lambda: bw.Bags.from_arrays(X, text.tolist(), counts=by_text),
        "from_sizes": lambda: bw.Bags.from_sizes(X, sizes, counts),
        "from_frame, pandas, integers": lambda: bw.Bags.from_frame(frame, bag="ward", count="positives"),
        "from_frame, pandas, text": lambda: bw.Bags.from_frame(text_frame, bag="ward", count="positives"),
        "from_frame, polars, integers": lambda: bw.Bags.from_frame(polars, bag="ward", count="positives"),
        "from_target": lambda: bw.Bags.from_target(X, target),
        "pandas: sort by integers, group": lambda: frame.sort_values("ward").groupby("ward").size(),
        "pandas: sort by text, group": lambda: text_frame.sort_values("ward").groupby("ward").size(),
    }
    print(f"{N_ROWS:,} rows, {N_BAGS:,} bags, {N_FEATURES} features")
    for name, way in ways.items():
        print(f"{name:34} {best_seconds(way):6.2f} s", flush=True)


if __name__ == "__main__":
    main()
