"""The sums of moments are linear in the rows, and two workers take them nearly twice as fast as one.

    python benchmarks/sums_scale_with_rows_and_workers.py FOLDER [rows|workers]

Writes its files (50 features, bags of 10) into the folder and leaves them there; the largest has 10^7.5 rows, 12.7 GB.
With matplotlib the linearity is drawn to FOLDER/linear.svg.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

import bagwise as bw
from bagwise.data.problems import random_oracle, write_sample

D, Q = 50, 10


def file_of(folder: Path, n_rows: int) -> Path:
    """A file with so many rows, drawn if it is not there."""
    path = folder / f"rows-{n_rows}.parquet"
    if not path.exists():
        rng = np.random.default_rng(n_rows)
        write_sample(random_oracle(D, size=Q, count=8, rng=rng), n_rows // Q, rng, path)
    return path


def seconds(source: object) -> float:
    start = time.perf_counter()
    source.reduce(bw.BagMoments.from_bags)  # type: ignore[attr-defined]
    return time.perf_counter() - start


def rows(folder: Path, exponents: list[float]) -> None:
    """Seconds of one pass against the number of rows, and the exponent of a power law through them."""
    found = []
    print(f"{'rows':>12} {'seconds':>9} {'Mrows/s':>9}")
    for exponent in exponents:
        n = round(10**exponent / Q) * Q
        scan = bw.scan_bags(file_of(folder, n))
        scan.layout()
        took = min(seconds(scan) for _ in range(2))
        found.append((n, took))
        print(f"{n:12,} {took:9.3f} {n / took / 1e6:9.2f}", flush=True)
    n_rows, took_all = np.array(found).T
    slope = np.polyfit(np.log10(n_rows), np.log10(took_all), 1)[0]
    print(f"time grows as rows^{slope:.3f}")
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    plt.loglog(n_rows, took_all, "o-")
    plt.xlabel("rows")
    plt.ylabel("seconds of one pass")
    plt.savefig(folder / "linear.svg")


def workers(path: Path) -> None:
    """Seconds of one pass by one worker process of one thread, and by two."""
    from dask.distributed import Client, LocalCluster

    scan = bw.scan_bags(path)
    took = {}
    for n in (1, 2):
        with (
            LocalCluster(n_workers=n, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            source = scan.on(client)
            source.layout()
            client.run(_warm)
            seconds(source)
            took[n] = min(seconds(source) for _ in range(2))
        print(f"{n} worker{'s' * (n > 1)}: {took[n]:.2f} s", flush=True)
    print(f"two against one: {took[1] / took[2]:.2f} times as fast on {os.cpu_count()} processors")


def _warm() -> None:
    __import__("bagwise.stats.kernels")


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2:]
    if "workers" in what:
        workers(Path(what[1]) if len(what) > 1 else file_of(folder, 10**7))
    else:
        rows(folder, [float(e) for e in what[1:]] or [5.0, 5.5, 6.0, 6.5, 7.0, 7.5])


if __name__ == "__main__":
    main()
