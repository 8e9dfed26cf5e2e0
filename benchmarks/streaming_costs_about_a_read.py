"""A streamed fit costs little more than reading the same files, in memory that does not grow with their rows.

    bagwise sample --features 50 --size 10 --count 8 --bags 2000000 --random-mean --stream -o rows.parquet
    python benchmarks/streaming_costs_about_a_read.py rows.parquet [--cold] [--repeats 3] [NAME …]

Each line is a process of its own, the best of some (interleaved) repeats: on warm files, which an untimed read puts
into the page cache, or ``--cold``, dropped from it first. What a full read is, is pyarrow's to say, in two ways:

- ``read, table``: the whole table in memory, as ``pyarrow.parquet.read_table`` does it. It needs memory for all rows.
- ``read, batches``: all columns of all rows, batch by batch, and nothing kept: ``pyarrow.dataset(…).to_batches()``. The
  stricter yardstick, as nobody reads for nothing.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

LINE = "{:20}{:>9}{:>8}{:>8}{:>10}{:>12}{:>10}"
Found = dict[str, float]


def read_batches(path: str) -> Found:
    import pyarrow.dataset as dataset

    return {"rows": sum(batch.num_rows for batch in dataset.dataset(path).to_batches()), "passes": 1}


def read_table(path: str) -> Found:
    import pyarrow.parquet as parquet

    return {"rows": parquet.read_table(path).num_rows, "passes": 1}


def moments(path: str) -> Found:
    import bagwise as bw

    scan = bw.scan_bags(path)
    scan.reduce(bw.BagMoments.from_bags)
    return {"rows": scan.n_rows, "passes": scan.n_passes}


def fit(make: Callable[[], object]) -> Callable[[str], Found]:
    def run(path: str) -> Found:
        import bagwise as bw

        scan = bw.scan_bags(path)
        make().fit(scan)
        return {"rows": scan.n_rows, "passes": scan.n_passes}

    return run


def model(name: str, **settings: object) -> object:
    import bagwise as bw

    return getattr(bw, name)(**settings)


def predict(path: str) -> Found:
    import bagwise as bw

    output = f"{path}.predicted.parquet"
    found = bw.write_predictions(bw.LTF([1.0] * 50), path, output)
    os.unlink(output)
    return {"rows": found.n_rows, "passes": 1}


RUNS = {
    "read, batches": read_batches,
    "read, table": read_table,
    "moments": moments,
    "fit meanmap": fit(lambda: model("MeanMap")),
    "fit spectral": fit(lambda: model("SpectralLTF")),
    "fit spectral, count": fit(lambda: model("SpectralLTF", offset="count")),
    "fit logistic": fit(lambda: model("BagLogisticRegression", C=1e4)),
    "predict": predict,
}


def measured(name: str, path: str) -> Found:
    """Seconds and memory of one run in this process, imports and compiled loops not counted."""
    import bagwise as bw

    bw.SpectralLTF, bw.BagLogisticRegression, bw.MeanMap  # noqa: B018 imported before the clock starts
    for module in ("kernels", "kernels_counts", "kernels_fingerprints"):
        __import__(f"bagwise.stats.{module}")
    __import__("pyarrow.dataset"), __import__("pyarrow.parquet")
    wall, cpu = time.perf_counter(), time.process_time()
    found = RUNS[name](path)
    found |= {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def forget(path: str) -> None:
    """Drop a file from the page cache."""
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(path: str) -> None:
    """Put a file into the page cache."""
    buffer = bytearray(1 << 22)
    with open(path, "rb", buffering=0) as stream:
        while stream.readinto(buffer):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    parser.add_argument("names", nargs="*", metavar="NAME", default=["read, batches", "moments", "fit spectral"])
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.one, given.path)))
        return
    best: dict[str, Found] = {}
    for _ in range(given.repeats):
        for name in given.names:
            (forget if given.cold else warm)(given.path)
            call = [sys.executable, __file__, given.path, "--one", name]
            shown = subprocess.run(call, capture_output=True, text=True)
            if shown.returncode:
                sys.exit(f"{name}: {shown.stderr.strip().splitlines()[-1]}")
            found = json.loads(shown.stdout)
            best[name] = min(found, best.get(name, found), key=lambda one: one["seconds"])
    print(LINE.format("", "seconds", "CPU s", "passes", "peak GiB", "s per pass", "of a read"))
    for name, found in best.items():
        base = best.get("read, batches", found)["seconds"]
        numbers = [f"{found[key]:.2f}" for key in ("seconds", "cpu")]
        more = (f"{found['peak']:.2f}", f"{found['seconds'] / found['passes']:.2f}", f"{found['seconds'] / base:.2f}")
        print(LINE.format(name, *numbers, found["passes"], *more), flush=True)


if __name__ == "__main__":
    main()
