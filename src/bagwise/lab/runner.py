"""Runs what is missing: data sets of cells, the learners on them, one row each, on several processes.

Owns seeds, processes and resuming. All that is random in a run comes from the cell's name, the number of the data set
and the learner's name, so that any row repeats alone, whatever else runs and on how many processes; each process has
one thread for linear algebra, as sums in another order round otherwise. Refuses to print: whoever wants to show
progress passes a function.

Vocabulary: a *job* is a data set of a cell with the learners that are to run on it; data are drawn once per job.
"""

import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from bagwise.arrays import FloatArray, IntArray
from bagwise.bags import Bags
from bagwise.data.oracles import BagOracle
from bagwise.data.problems import random_oracle
from bagwise.errors import IdentifiabilityWarning, InvalidInputError
from bagwise.lab.learners import LEARNERS
from bagwise.lab.results import Claims, Results, Row
from bagwise.lab.tables import TABLES, Cell, Table

__all__ = ["DataSet", "Job", "Outcome", "data_set", "expected_seconds", "jobs_of", "run", "run_jobs", "tables_named"]

_TEST_INSTANCES = 1000
_PROBLEM, _BAGS, _TEST, _LEARNER = range(4)
_PATIENCE = 2.0  # seconds between looks at what another program has claimed


@dataclass(frozen=True, slots=True)
class Job:
    """A data set of a cell, and the learners to run on it."""

    cell: Cell
    dataset: int
    learners: tuple[str, ...]


@dataclass(slots=True)
class Outcome:
    """What a call of `run_jobs` did."""

    finished: int = 0
    failed: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DataSet:
    """A problem drawn for a cell: its truth, bags with the true labels of their rows, and test instances."""

    oracle: BagOracle
    bags: Bags
    labels: IntArray
    test_X: FloatArray
    test_y: IntArray


# ---------------------------------------------------------------------- one run


def seed_of(cell: Cell) -> int:
    """The number from which all data sets of a cell are drawn: the hash of its name."""
    return int.from_bytes(sha256(cell.name.encode()).digest()[:16], "big")


def _stream(cell: Cell, dataset: int, *what: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed_of(cell), spawn_key=(dataset, *what))


def data_set(cell: Cell, dataset: int) -> DataSet:
    """Problem, bags and test instances of a cell, always the same ones for one number.

    >>> cell = Cell("general", True, 0.0, 3, 4, 1, 5)
    >>> first, again = data_set(cell, 0), data_set(cell, 0)
    >>> bool((first.bags.X == again.bags.X).all()), first.test_X.shape
    (True, (1000, 3))
    """
    oracle = _oracle(cell, np.random.default_rng(_stream(cell, dataset, _PROBLEM)))
    bags, labels = oracle.sample_labelled(cell.m, np.random.default_rng(_stream(cell, dataset, _BAGS)))
    test = oracle.sample_instances(_TEST_INSTANCES, np.random.default_rng(_stream(cell, dataset, _TEST)))
    return DataSet(oracle, bags, labels, *test)


def _oracle(cell: Cell, rng: np.random.Generator) -> BagOracle:
    count: Any = np.full(cell.q + 1, 1 / (cell.q + 1)) if cell.k == "any" else cell.k
    offset = cell.recipe.offset_scale * float(rng.standard_normal()) if cell.offset else 0.0
    drawn = random_oracle(
        cell.d,
        size=cell.q,
        count=count,
        rng=rng,
        offset=offset,
        flip=cell.flip,
        random_mean=cell.law == "general",
        mean_scale=cell.recipe.mean_scale,
        cov_ridge=cell.recipe.cov_ridge,
    )
    if cell.law == "standard":
        return BagOracle(drawn.ltf, np.zeros(cell.d), np.eye(cell.d), size=cell.q, count=count, flip=cell.flip)
    return drawn


def run(cell: Cell, learner: str, dataset: int, data: DataSet | None = None) -> Row:
    """The row of one run, on data that were drawn already or are drawn now."""
    data = data_set(cell, dataset) if data is None else data
    _warm(learner, cell.offset)
    name = int.from_bytes(sha256(learner.encode()).digest()[:4], "big")
    seed = int(_stream(cell, dataset, _LEARNER, name).generate_state(1)[0])
    accuracy = error = None
    failure = ""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        start, start_cpu = time.perf_counter(), time.process_time()
        try:
            ltf = LEARNERS[learner].fit(cell, data.bags, data.labels, seed)
            seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
            accuracy = float(np.mean(ltf.predict(data.test_X) == data.test_y))
            error = ltf.disagreement(data.oracle.ltf, data.oracle.mean, data.oracle.cov)
        except Exception as problem:  # a failed run must not end a night of others; it is told, and tried again
            seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
            failure = f"{type(problem).__name__}: {problem}"
    notes = {str(w.message) for w in said if not issubclass(w.category, IdentifiabilityWarning)}
    return Row(
        cell,
        learner,
        dataset,
        seed=f"{seed_of(cell)}/{dataset}",
        accuracy=accuracy,
        error=error,
        seconds=round(seconds, 6),
        cpu=round(cpu, 6),
        note=" | ".join(sorted(notes)),
        failure=failure,
        commit=_commit(),
        versions=_versions(),
        machine=_machine(),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@cache
def _warm(learner: str, offset: bool) -> None:
    """Load and compile what a learner needs, once per process, so that seconds are those of a fit."""
    count: Any = "any" if learner == "MeanMap" else 1
    cell = Cell("standard", offset, 0.0, 2, 3, count, 40)
    bags, labels = _oracle(cell, np.random.default_rng(0)).sample_labelled(cell.m, np.random.default_rng(1))
    with suppress(Exception), warnings.catch_warnings():  # it will fail again where it counts, and be told
        warnings.simplefilter("ignore")
        LEARNERS[learner].fit(cell, bags, labels, 0)


@cache
def _versions() -> dict[str, str]:
    packages = ("bagwise", "numpy", "scipy", "scikit-learn", "numba")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


@cache
def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache
def _commit() -> str:
    """The commit of this source, with a plus where files of the package differ from it; empty outside a clone."""
    package = Path(__file__).parents[1]
    git = ["git", "-C", str(package)]
    try:
        tracked = subprocess.run([*git, "ls-files", "--error-unmatch", __file__], capture_output=True)
        if tracked.returncode != 0:
            return ""
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "."], capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + "+" * bool(changed.strip())


# ---------------------------------------------------------------------- many runs


def tables_named(names: Iterable[str]) -> list[Table]:
    """The tables of those names, "all" for all of them.

    >>> [table.title for table in tables_named(["table1"])]
    ['Thresholds without offset, 2000 bags (S: 200)']
    """
    wanted = list(dict.fromkeys(names))
    if "all" in wanted:
        return list(TABLES.values())
    for name in wanted:
        if name not in TABLES:
            raise InvalidInputError(f"tables must be of {', '.join(TABLES)}, or all; got {name!r}.")
    return [TABLES[name] for name in wanted]


def jobs_of(tables: Iterable[Table], datasets: int, *, only: str = "") -> list[Job]:
    """All jobs of the tables, cell by cell, without learners that this version lacks; ``only`` is a part of a cell's
    name."""
    learners: dict[Cell, dict[str, None]] = {}
    for table in tables:
        for cell, learner in table.entries:
            if LEARNERS[learner].available and only in cell.name:
                learners.setdefault(cell, {})[learner] = None
    return [Job(cell, number, tuple(names)) for cell, names in learners.items() for number in range(datasets)]


def missing(jobs: Iterable[Job], results: Results) -> list[Job]:
    """The jobs with the learners that have no row yet; done jobs are left out."""
    left = []
    for job in jobs:
        names = tuple(name for name in job.learners if (job.cell.name, name, job.dataset) not in results.rows)
        if names:
            left.append(Job(job.cell, job.dataset, names))
    return left


def run_jobs(
    jobs: Iterable[Job],
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    on_row: Callable[[Row], None] = lambda row: None,
) -> Outcome:
    """Run what is missing and append it to the folder; return when every job has its rows, whoever made them.

    Parameters
    ----------
    jobs : jobs, most of which may be done already
    folder : where the rows are
    workers : processes; 1 works in this one
    on_row : called with each new row, also with those that another program on the folder wrote meanwhile
    """
    results = Results(folder)
    results.refresh()
    left = missing(jobs, results)
    outcome = Outcome()
    if not left:
        return outcome
    with _crew(workers, Path(folder)) as crew:
        while left:
            claimed = []
            for job, rows in crew.rows_of_all(left):
                if rows is None:
                    claimed.append(job)
                for row in rows or ():
                    if row.failure:
                        outcome.failed.append(row)
                    else:
                        outcome.finished += 1
                for row in results.refresh():
                    on_row(row)
            left = missing(claimed, results)
            if left:
                time.sleep(_PATIENCE)
    return outcome


class _Worker:
    """What does jobs: a reader of the folder, a claim on it, and a pen."""

    def __init__(self, folder: Path) -> None:
        self.results = Results(folder)
        self.claims = Claims(folder)

    def rows_of(self, job: Job) -> list[Row] | None:
        """New rows of a job, each on disk before the next is begun; None where another program is at it."""
        with self.claims.held(job.cell, job.dataset) as ours:
            if not ours:
                return None
            self.results.refresh()  # another program may have done it since it was planned
            todo = missing([job], self.results)
            if not todo:
                return []
            data = data_set(job.cell, job.dataset)
            rows = []
            for learner in todo[0].learners:
                rows.append(run(job.cell, learner, job.dataset, data))
                self.results.append(rows[-1])
            return rows


class _crew(AbstractContextManager["_crew"]):
    """Workers in processes of their own, or one in this process."""

    def __init__(self, workers: int, folder: Path) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._limit: Any = None
        self._workers = workers
        if workers == 1:
            self._worker = _Worker(folder)
        else:
            self._pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (folder,))

    def __enter__(self) -> "_crew":
        import scipy.linalg  # noqa: F401  (only what is loaded can be limited)
        import sklearn  # noqa: F401
        from threadpoolctl import threadpool_limits

        if self._pool is None:
            self._limit = threadpool_limits(1)
        return self

    def rows_of_all(self, jobs: list[Job]) -> Iterable[tuple[Job, list[Row] | None]]:
        """Each job with its rows, as they finish."""
        if self._pool is None:
            for job in jobs:
                yield job, self._worker.rows_of(job)
            return
        waiting = iter(jobs)
        running: dict[Future[list[Row] | None], Job] = {}
        while True:
            for job in waiting:
                running[self._pool.submit(_rows_of, job)] = job
                if len(running) >= 2 * self._workers:
                    break
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self._limit is not None:
            self._limit.restore_original_limits()
            self._worker.claims.close()
        if self._pool is not None:
            if kind is not None:
                # Rows are safe at any moment; nothing is worth waiting for.
                for process in list((self._pool._processes or {}).values()):
                    process.terminate()
            self._pool.shutdown(cancel_futures=True)


_own: _Worker | None = None  # of a process of the crew


def _begin(folder: Path) -> None:
    """A process of the crew: one thread, no word on interruption, and gone when its parent is."""
    import signal
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as wait_for
    from threading import Thread

    from threadpoolctl import threadpool_limits

    global _own
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def follow() -> None:
            wait_for([sentinel])
            os._exit(1)

        Thread(target=follow, daemon=True).start()
    threadpool_limits(1)
    _own = _Worker(folder)


def _rows_of(job: Job) -> list[Row] | None:
    assert _own is not None
    return _own.rows_of(job)


# ---------------------------------------------------------------------- cost

# Seconds of a run on one core: a constant (with its share of drawing and writing), per million rows, and per million
# numbers. Fitted by eye to the rows under docs/reproduction.
_COST = {
    "A2": (0.006, 0.1, 0.01),
    "A4": (0.006, 0.2, 0.01),
    "A3": (0.005, 0.1, 0.01),
    "A3one": (0.005, 0.1, 0.01),
    "R": (0.006, 0.15, 0.015),
    "S": (0.02, 0.0, 5.0),
    "S+": (0.02, 0.0, 7.0),
    "MeanMap": (0.006, 0.1, 0.01),
    "ML": (0.1, 15.0, 0.5),
    "true": (0.006, 0.5, 0.02),
}
_WITH_FLIPS = {"ML": 8.0}  # times as long: the levels are estimated too
_WITH_OFFSET = {"R": 30.0}  # times as long: each candidate is swept


def expected_seconds(cell: Cell, learner: str) -> float:
    """A rough cost of one run on one core, from measurements on a small server."""
    fixed, per_rows, per_numbers = _COST[learner]
    harder = (_WITH_FLIPS.get(learner, 1.0) if cell.flip else 1.0) * (
        _WITH_OFFSET.get(learner, 1.0) if cell.offset else 1.0
    )
    return fixed + harder * (per_rows + per_numbers * cell.d) * cell.n_rows / 1e6
