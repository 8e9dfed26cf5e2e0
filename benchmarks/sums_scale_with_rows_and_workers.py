"""The sums of moments are linear in the rows, and two workers take them nearly twice as fast as one.

    python benchmarks/sums_scale_with_rows_and_workers.py rows FOLDER [--draw docs/images] [EXPONENT …]
    python benchmarks/sums_scale_with_rows_and_workers.py workers FILE

Writes its files (50 features, bags of 10) into the folder and removes each when it is measured; the largest has
10^7.5 rows, 12.7 GB. Every time is the best of a few on warm files. ``--draw`` leaves seconds-against-rows.png, .svg.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

import bagwise as bw
from bagwise.data.problems import random_oracle, write_sample

D, Q, REPEATS = 50, 10, 3


def written(folder: Path, n_rows: int) -> Path:
    """A file with so many rows."""
    path = folder / f"rows-{n_rows}.parquet"
    rng = np.random.default_rng(n_rows)
    write_sample(random_oracle(D, size=Q, count=8, rng=rng), n_rows // Q, rng, path)
    return path


def seconds(source: object) -> float:
    start = time.perf_counter()
    source.reduce(bw.BagMoments.from_bags)  # type: ignore[attr-defined]
    return time.perf_counter() - start


def rows(folder: Path, exponents: list[float], pictures: Path | None) -> None:
    """Seconds of one pass against the number of rows, and the line through them."""
    found = []
    print(f"{'rows':>12} {'seconds':>9} {'Mrows/s':>9}")
    for exponent in exponents:
        n = round(10**exponent / Q) * Q
        path = written(folder, n)
        scan = bw.scan_bags(path)
        scan.layout()
        took = min(seconds(scan) for _ in range(1 + REPEATS))
        path.unlink()
        found.append((n, took))
        print(f"{n:12,} {took:9.3f} {n / took / 1e6:9.2f}", flush=True)
    n_rows, took_all = np.array(found).T
    # The line with the least relative error: small times weigh as much as large ones.
    relative = np.stack([n_rows, np.ones_like(n_rows)], axis=1) / took_all[:, None]
    per_row, fixed = np.linalg.lstsq(relative, np.ones(len(found)))[0]
    worst = float(np.abs((fixed + per_row * n_rows) / took_all - 1).max())
    print(f"seconds = {fixed:.4f} + {1e9 * per_row:.1f}e-9 rows, off by at most {100 * worst:.0f} %")
    if pictures is not None:
        draw(n_rows, took_all, fixed, per_row, pictures)


def draw(n_rows: np.ndarray, took: np.ndarray, fixed: float, per_row: float, pictures: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    x = np.geomspace(n_rows.min(), n_rows.max(), 200)
    axes.loglog(x, fixed + per_row * x, color="#888888", label=f"{1e9 * per_row:.0f} ns per row + {1e3 * fixed:.0f} ms")
    axes.loglog(n_rows, took, "o", color="#1f5a99", label="one pass of moments, measured")
    axes.set(xlabel="rows of 50 features", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    for ending in ("png", "svg"):
        metadata = {"Date": None} if ending == "svg" else None
        figure.savefig(pictures / f"seconds-against-rows.{ending}", dpi=120, metadata=metadata)


def workers(path: Path) -> None:
    """Seconds of one pass by one worker process of one thread, and by two."""
    from dask.distributed import Client, LocalCluster

    scan = bw.scan_bags(path)
    took = {}
    for n in (1, 2):
        settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(n_workers=n, **settings) as cluster, Client(cluster) as client:
            source = scan.on(client)
            source.layout()
            client.run(_warm)
            seconds(source)
            took[n] = min(seconds(source) for _ in range(REPEATS))
        print(f"{n} worker{'s' * (n > 1)}: {took[n]:.2f} s", flush=True)
    print(f"two against one: {took[1] / took[2]:.2f} times as fast on {os.cpu_count()} processors")


def _warm() -> None:
    __import__("bagwise.stats.kernels")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("rows", "workers"))
    parser.add_argument("place", type=Path)
    parser.add_argument("exponents", nargs="*", type=float, default=[5.0, 5.5, 6.0, 6.5, 7.0, 7.5])
    parser.add_argument("--draw", type=Path)
    given = parser.parse_args()
    if given.what == "workers":
        workers(given.place)
    else:
        rows(given.place, given.exponents, given.draw)


if __name__ == "__main__":
    main()
