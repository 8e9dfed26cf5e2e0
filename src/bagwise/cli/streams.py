"""Fitting without holding the rows: files part by part, here or on a cluster.

Owns what the options --stream, --workers and --cluster of ``fit`` do, and the bar that shows how far a pass is, there
and in ``assess`` and ``certify``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bagwise.errors import InvalidInputError

__all__ = ["bar", "fit"]


def fit(
    learner: Any,
    data: str,
    output: Path,
    columns: tuple[str, str | None, str | None, list[str] | None],
    workers: int | None,
    cluster: str | None,
) -> tuple[dict[str, Any], list[str]]:
    """Fits and saves; the result and what to say of it."""
    import bagwise as bw
    from bagwise.claims.metrics import BagErrors

    if workers is not None and cluster is not None:
        raise InvalidInputError(
            f"the sums are taken by --workers or by --cluster; got {workers} and {cluster!r}. Leave one out."
        )
    bag, count, proportion, features = columns
    with bar() as progress:
        scan = bw.scan_bags(data, bag=bag, count=count, proportion=proportion, features=features, progress=progress)
        with _client(workers, cluster) as client:
            source = scan if client is None else scan.on(client)
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
        from bagwise.errors import MissingExtraError

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
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as own,
        distributed.Client(own) as client,
    ):
        yield client


@contextmanager
def bar() -> Iterator[Any]:
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
