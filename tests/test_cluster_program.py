"""The program on a Dask cluster that runs already, started here as its users start theirs, and on one of its own."""

import json
import os
import pty
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

import bagwise as bw
from bagwise.data.io import bags_table

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from dask.distributed import Client

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own housekeeping
COLUMNS = "--bag ward --count relapsed"


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of ``dask scheduler`` with the two processes of one ``dask worker``."""
    place = tmp_path_factory.mktemp("cluster")
    dask, at = [sys.executable, "-m", "dask"], ["--scheduler-file", str(place / "scheduler.json"), "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", *at], **quiet),
        subprocess.Popen(
            [*dask, "worker", "--nworkers", "2", "--nthreads", "1", "--local-directory", str(place), *at], **quiet
        ),
    ]
    try:
        while not (place / "scheduler.json").exists():  # written at once; the test's own time limit is that of CI
            assert started[0].poll() is None, "the scheduler ended"
            time.sleep(0.1)
        address = json.loads((place / "scheduler.json").read_text())["address"]
        with Client(address) as client:
            client.wait_for_workers(2, timeout=120)
        yield str(address)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(timeout=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files whose border cuts a bag, bags to certify by, and a model of the first."""
    place = tmp_path_factory.mktemp("rows")
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0, 3.0], 0.5), np.zeros(3), np.eye(3), size=6, count=np.full(7, 1 / 7))
    bags = oracle.sample(900, np.random.default_rng(0))
    (place / "rows").mkdir()
    table = bags_table(bags[:600], bag="ward", count="relapsed")
    pq.write_table(table.slice(0, 1801), place / "rows" / "0.parquet", row_group_size=300)
    pq.write_table(table.slice(1801), place / "rows" / "1.parquet", row_group_size=300)
    bw.write_bags(bags[600:], place / "heldout.parquet", bag="ward", count="relapsed")
    bw.save(bw.SpectralLTF().fit(bw.read_bags(place / "rows", bag="ward", count="relapsed")), place / "memory.json")
    return place


def program(line: str, folder: Path) -> SimpleNamespace:
    """The program, with a terminal for what it shows on the way."""
    seen, shown = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-m", "bagwise.cli", *line.split()], cwd=folder,
        stdout=subprocess.PIPE, stderr=shown, text=True, env={**os.environ, "TERM": "xterm", "COLUMNS": "300"},
    )  # fmt: skip
    os.close(shown)
    terminal = b""
    while True:
        try:
            terminal += (more := os.read(seen, 1 << 16))
        except OSError:  # the last writer is gone
            break
        if not more:
            break
    os.close(seen)
    out = started.communicate()[0]
    return SimpleNamespace(status=started.returncode, out=out, terminal=terminal.decode())


def transitions(address: str) -> list[int]:
    """How much each worker has done so far."""
    with Client(address) as client:
        return list(client.run(lambda dask_worker: dask_worker.state.transition_counter).values())


def test_a_fit_on_a_live_cluster_is_the_fit(scheduler: str, folder: Path) -> None:
    before = transitions(scheduler)
    ended = program(f"fit rows {COLUMNS} --model spectral --cluster {scheduler} -o far.json --json", folder)
    assert ended.status == 0, ended.terminal
    near, far = bw.load(folder / "memory.json"), bw.load(folder / "far.json")
    assert_allclose(far.coef_, near.coef_, rtol=1e-9)
    assert_allclose(far.intercept_, near.intercept_, rtol=1e-9)
    result = json.loads(ended.out)
    assert result["n_bags"] == 600 and result["passes"] == 3
    assert all(now > then for now, then in zip(transitions(scheduler), before, strict=True))
    assert "pass 3" in ended.terminal and "100 %" in ended.terminal


@pytest.mark.parametrize("command", ["certify", "assess"])
def test_claims_of_a_live_cluster_are_those_of_memory(scheduler: str, folder: Path, command: str) -> None:
    line = f"{command} memory.json heldout.parquet {COLUMNS} --json"
    far, near = program(f"{line} --cluster {scheduler}", folder), program(line, folder)
    assert far.status == near.status == 0, far.terminal
    found, wanted = json.loads(far.out), json.loads(near.out)
    if command == "certify":
        assert found == wanted
    # Sums over bags in another order, in a search that ends within 1e-5 of the best log-likelihood.
    for name in ("accuracy", "tpr", "fpr") if command == "assess" else ():
        assert_allclose(found[name]["estimate"], wanted[name]["estimate"], atol=1e-3)


def test_a_bad_file_on_a_live_cluster_is_named_and_nothing_is_written(scheduler: str, folder: Path) -> None:
    whole = (folder / "heldout.parquet").read_bytes()
    damaged = bytearray(whole)
    damaged[4:400] = bytes(396)  # the footer is whole, the pages are not
    (folder / "damaged.parquet").write_bytes(bytes(damaged))
    ended = program(f"fit damaged.parquet {COLUMNS} --model spectral --cluster {scheduler} -o no.json", folder)
    assert ended.status == 2 and ended.out == "" and not (folder / "no.json").exists()
    assert "damaged.parquet must be a readable Parquet file" in ended.terminal and "Traceback" not in ended.terminal


def test_processes_of_its_own_fit_the_same(folder: Path) -> None:
    ended = program(f"fit rows {COLUMNS} --model spectral --workers 2 -o own.json --json", folder)
    assert ended.status == 0, ended.terminal
    assert_allclose(bw.load(folder / "own.json").coef_, bw.load(folder / "memory.json").coef_, rtol=1e-9)
    assert "pass 3" in ended.terminal and "WARNING" not in ended.terminal


def test_a_stream_shows_how_far_it_is(folder: Path) -> None:
    ended = program(f"fit rows {COLUMNS} --model spectral --stream -o near.json", folder)
    assert ended.status == 0 and "Wrote near.json" in ended.out
    assert "pass 3" in ended.terminal and "100 %" in ended.terminal


def test_an_address_without_a_scheduler_is_refused(folder: Path) -> None:
    ended = program(f"fit rows {COLUMNS} --cluster nonsense -o no.json", folder)
    assert ended.status == 2 and ended.out == "" and not (folder / "no.json").exists()
    assert "--cluster must be the address of a running Dask scheduler" in ended.terminal


def test_a_learner_of_rows_is_refused_before_anything_is_read(folder: Path) -> None:
    ended = program("fit nowhere.parquet --model random --stream -o no.json", folder)
    assert ended.status == 2 and "RandomLTF needs its bags in memory. Leave out --stream" in ended.terminal
