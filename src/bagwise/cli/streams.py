"""Working on files that memory need not hold: part by part, here or on a cluster.

Owns what the options --stream, --workers and --cluster do, and the bar that shows how far a pass over the files is.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bagwise.errors import InvalidInputError, MissingExtraError

__all__ = ["Place", "fit"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the sums over bags are taken, as the options say."""

    stream: bool
    workers: int | None
    cluster: str | None

    @property
    def streams(self) -> bool:
        """Whether the rows stay in their files."""
        return self.stream or self.workers is not None or self.cluster is not None

    @contextmanager
    def source(self, data: str, columns: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """The scan of the files, and the source of bags that is made of it: itself, or that of the cluster."""
        import bagwise as bw

        if self.workers is not None and self.cluster is not None:
            raise InvalidInputError(
                f"the sums are taken by --workers or by --cluster; got {self.workers} and {self.cluster!r}. Leave one "
                "out."
            )
        with _bar() as progress:
            scan = bw.scan_bags(data, **columns, progress=progress)
            with _client(self.workers, self.cluster) as client:
                yield scan, scan if client is None else scan.on(client)


def fit(
    learner: Any, data: str, output: Path, columns: Mapping[str, Any], place: Place
) -> tuple[dict[str, Any], list[str]]:
    """Fits and saves; the result and what to say of it."""
    import bagwise as bw
    from bagwise.claims.metrics import BagErrors

    if not learner._learns_from_sums:
        raise InvalidInputError(
            f"{type(learner).__name__} needs its bags in memory. Leave out --stream, --workers and --cluster, or take "
            "--model logistic, spectral, mean or meanmap."
        )
    with place.source(data, columns) as (scan, source):
        learner.fit(source)
        errors = source.reduce(BagErrors.task(learner.ltf_))
    bw.save(learner, output, provenance={"data": data, "n_bags": errors.n_bags, "n_rows": errors.n_rows})
    result = {
        "model": type(learner).__name__,
        "n_bags": errors.n_bags,
        "n_rows": errors.n_rows,
        "features": list(scan.feature_names or ()),
        "coef": learner.ltf_.normal.tolist(),
        "intercept": float(learner.ltf_.offset),
        "ambiguous": bool(learner.ambiguous_),
        "bag_error": errors.bag_error,
        "proportion_error": errors.proportion_error,
        "passes": source.n_passes,
        "output": str(output),
    }
    text = [
        f"Fitted {result['model']} to {errors.n_bags:,} bags of {errors.n_rows:,} rows in {source.n_passes} passes",
        f"Bags whose predicted count is wrong: {100 * errors.bag_error:.1f} %; "
        f"mean error of a proportion: {errors.proportion_error:.3f} (of the bags of the fit)",
        f"Wrote {output}",
    ]
    return result, text


@contextmanager
def _client(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """A client of a cluster that is there, or of one that lives as long as the fit; None to stay in this process."""
    if workers is None and cluster is None:
        yield None
        return
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtraError("dask", "dask", "a cluster") from None
    if cluster is not None:
        try:
            client = distributed.Client(cluster, timeout="20s")
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise InvalidInputError(
                f"--cluster must be the address of a running Dask scheduler, such as tcp://host:8786; {reason}."
            ) from None
        with client:
            yield client
        return
    settings = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(**settings, silence_logs=logging.ERROR) as own,
        distributed.Client(own) as client,
    ):
        yield client


@contextmanager
def _bar() -> Iterator[Any]:
    """A bar per pass on standard error, if someone watches."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield False
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def report(n_pass: int, done: int, n: int) -> None:
            progress.update(task, description=f"pass {n_pass}", completed=done, total=n)

        yield report
