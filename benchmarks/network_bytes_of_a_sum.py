"""What one sum over bags sends between the workers of a cluster depends on the features, not on the rows.

    python benchmarks/network_bytes_of_a_sum.py FOLDER

Counted by Dask's own counters (bytes that workers sent to each other), per worker and sum, on two worker processes.
``a span`` is what docs/scale.md says that the sums over some neighbouring pieces take. Every task makes one; it travels
at most once to be merged with its neighbours, as do the merged ones: 16 tasks per thread make at most 16 (1 + 1/8 + …)
spans per worker. Files are cut into small pieces, so that small data have many.
"""

import sys
from pathlib import Path

import numpy as np
from dask.distributed import Client, LocalCluster

import bagwise as bw
from bagwise.data.problems import random_oracle, write_sample
from bagwise.estimators.base import _Both
from bagwise.learn.likelihood import CountModel, LikelihoodTask
from bagwise.learn.offsets import _intervals_task
from bagwise.scale import pieces
from bagwise.scale.distributed import _TASKS

Q = 10
LINE = "{:>8} {:>9} {:>6}  {:22} {:>10} {:>10} {:>6}"
AT_MOST = _TASKS * 8 / 7


def sent(client: Client) -> float:
    """Bytes that the workers have sent to each other so far."""
    return float(
        sum(client.run(lambda dask_worker: sum(t["compressed"] for t in dask_worker.transfer_outgoing_log)).values())
    )


def main() -> None:
    folder = Path(sys.argv[1])
    pieces._PIECE_BYTES = 1 << 19
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        print(LINE.format("features", "rows", "pieces", "sum", "KB/worker", "a span, KB", "spans"))
        for d, n_bags in ((10, 5_000), (10, 50_000), (50, 5_000), (50, 50_000), (200, 2_000), (200, 20_000)):
            rng = np.random.default_rng(d)
            file = folder / f"network-{d}-{n_bags}.parquet"
            oracle = random_oracle(d, size=Q, count=8, rng=rng)
            with small_groups():
                write_sample(oracle, n_bags, rng, file)
            scan = bw.scan_bags(file).on(client)
            n_pieces = len(scan.layout().pieces)
            moments = scan.reduce(bw.BagMoments.from_bags).finalize()
            model = CountModel(oracle.ltf.normal, 0.0)
            bags_of_a_task = n_bags / (2 * _TASKS)
            ends = 2 * Q * d * 8  # the bags at both ends of a span stay open, and travel as rows
            sums = {
                "moments": (bw.BagMoments.from_bags, 16 * d**2 + ends),
                "moments, fingerprints": (_Both(bw.BagMoments.from_bags), 16 * d**2 + 8 * bags_of_a_task + ends),
                "gradient": (LikelihoodTask(model, moments.mean), 8 * (d + 3) + ends),
                "Hessian": (LikelihoodTask(model, moments.mean, curvature=True), 8 * (d + 3) ** 2 + ends),
                "sweep": (_intervals_task(oracle.ltf.normal, moments), 64 * bags_of_a_task + ends),
            }
            for name, (task, span) in sums.items():
                before = sent(client)
                scan.reduce(task)
                per_worker = (sent(client) - before) / 2
                numbers = (f"{number:,.1f}" for number in (per_worker / 1e3, span / 1e3, per_worker / span))
                print(LINE.format(d, f"{n_bags * Q:,}", n_pieces, name, *numbers), flush=True)
            file.unlink()
        print(f"spans per worker and sum, at most: {AT_MOST:.1f}")


class small_groups:
    """Row groups of a few thousand numbers while files are written."""

    def __enter__(self) -> None:
        from bagwise.data import problems

        self.before, problems._PART_NUMBERS = problems._PART_NUMBERS, 1 << 16

    def __exit__(self, *_: object) -> None:
        from bagwise.data import problems

        problems._PART_NUMBERS = self.before


if __name__ == "__main__":
    main()
