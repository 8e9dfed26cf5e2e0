"""A streamed fit costs little more than reading the same files, in memory that does not grow with their rows.

    bagwise sample --features 50 --size 10 --count 8 --bags 2000000 --random-mean --stream -o rows.parquet
    python benchmarks/streaming_costs_about_a_read.py rows.parquet [spectral|logistic …]

Each line is a process of its own, cold (the file dropped from the page cache first) and warm. Reads are pyarrow's own:
``batches`` hands out all columns batch by batch and keeps nothing, ``table`` reads the whole table into memory.
"""

import json
import os
import resource
import subprocess
import sys
import time

COLUMNS = "{:22}{:>6}{:>9}{:>9}{:>9}{:>10}{:>8}{:>11}"


def read_batches(path: str) -> dict[str, float]:
    import pyarrow.dataset as dataset

    return {"rows": sum(batch.num_rows for batch in dataset.dataset(path).to_batches()), "passes": 1}


def read_table(path: str) -> dict[str, float]:
    import pyarrow.dataset as dataset

    return {"rows": dataset.dataset(path).to_table().num_rows, "passes": 1}


def one_sum(path: str) -> dict[str, float]:
    import bagwise as bw

    scan = bw.scan_bags(path)
    scan.reduce(bw.BagMoments.from_bags)
    return {"rows": scan.n_rows, "passes": scan.n_passes}


def fit(name: str) -> object:
    def run(path: str) -> dict[str, float]:
        import bagwise as bw

        model = {"spectral": bw.SpectralLTF(), "meanmap": bw.MeanMap(), "logistic": bw.BagLogisticRegression(C=1e4)}
        scan = bw.scan_bags(path)
        model[name].fit(scan)
        return {"rows": scan.n_rows, "passes": scan.n_passes}

    return run


RUNS = {"read, batches": read_batches, "read, table": read_table, "moments": one_sum}
RUNS |= {f"fit {name}": fit(name) for name in ("spectral", "meanmap", "logistic")}


def measured(name: str, path: str) -> dict[str, float]:
    """Seconds and memory of one run in this process, imports and compiled loops not counted."""
    import bagwise as bw

    bw.SpectralLTF, bw.BagLogisticRegression, bw.MeanMap  # noqa: B018 imported before the clock starts
    __import__("bagwise.stats.kernels"), __import__("bagwise.stats.kernels_counts")
    __import__("bagwise.stats.kernels_fingerprints"), __import__("pyarrow.dataset")
    wall, cpu = time.perf_counter(), time.process_time()
    found = RUNS[name](path)
    found |= {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def forget(path: str) -> None:
    """Drop a file from the page cache."""
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    if sys.argv[1] == "--one":
        print(json.dumps(measured(*sys.argv[2:])))
        return
    path, names = sys.argv[1], [f"fit {name}" for name in sys.argv[2:]] or ["fit spectral"]
    print(COLUMNS.format("", "cache", "seconds", "CPU s", "passes", "peak GiB", "Mrows/s", "over read"))
    base: dict[str, float] = {}
    for name in ["read, batches", "moments", *names, "read, table"]:
        for cache in ("cold", "warm"):
            if cache == "cold":
                forget(path)
            shown = subprocess.run([sys.executable, __file__, "--one", name, path], capture_output=True, text=True)
            if shown.returncode:
                print(name, shown.stderr.strip().splitlines()[-1])
                continue
            found = json.loads(shown.stdout)
            base.setdefault(cache, found["seconds"])
            rate, ratio = found["rows"] * found["passes"] / found["seconds"] / 1e6, found["seconds"] / base[cache]
            numbers = [f"{found[key]:.2f}" for key in ("seconds", "cpu")]
            more = (f"{found['peak']:.2f}", f"{rate:.1f}", f"{ratio:.2f}")
            print(
                COLUMNS.format(name, cache, *numbers, found["passes"], *more),
                flush=True,
            )


if __name__ == "__main__":
    main()
