"""The same sums on a real cluster of processes, whatever happens to its workers and files."""

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bagwise as bw
from bagwise.data.io import bags_table
from bagwise.errors import InvalidInputError
from bagwise.scale import pieces
from bagwise.scale.distributed import _TASKS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import dask.array as da
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own housekeeping


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two worker processes."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as two:
        yield two


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as one:
        one.wait_for_workers(2, timeout=60)
        yield one


@pytest.fixture(scope="module")
def bags() -> bw.Bags:
    oracle = bw.BagOracle(bw.LTF([1.0, 2.0, 3.0], 0.5), np.zeros(3), np.eye(3), size=6, count=np.full(7, 1 / 7))
    return oracle.sample(600, np.random.default_rng(0))


@pytest.fixture
def folder(bags: bw.Bags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files whose borders cut bags, to be read in about thirty pieces."""
    monkeypatch.setattr(pieces, "_PIECE_BYTES", 1 << 12)
    table = bags_table(bags)
    for i in range(3):
        pq.write_table(table.slice(1201 * i, 1201), tmp_path / f"{i}.parquet", row_group_size=100)
    return tmp_path


def same_model(one: Any, bags: bw.Bags) -> None:
    other = bw.SpectralLTF().fit(bags)
    # Sums in another order; see test_scale.
    assert_allclose(one.coef_, other.coef_, rtol=1e-9, atol=1e-9)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-9, atol=1e-9)
    assert_array_equal(one.bag_fingerprints_, other.bag_fingerprints_)


def test_a_cluster_teaches_what_memory_does(folder: Path, bags: bw.Bags, client: Client) -> None:
    seen: list[tuple[int, int, int]] = []
    scan = bw.scan_bags(folder, progress=lambda *at: seen.append(at))
    same_model(bw.SpectralLTF().fit(scan, client=client), bags)
    n = seen[0][2]
    assert n > 20 and {(1, n, n), (2, n, n)} <= set(seen)
    first, second = scan.on(client).split(0.5, np.random.default_rng(0))
    merged = first.reduce(bw.BagMoments.from_bags) + second.reduce(bw.BagMoments.from_bags)
    assert merged.n_bags == bags.n_bags


def test_workers_read_from_a_store_by_its_url(folder: Path, bags: bw.Bags, client: Client) -> None:
    scan = bw.scan_bags(f"file://{folder}/*.parquet", storage_options={"auto_mkdir": False})
    same_model(bw.SpectralLTF().fit(scan, client=client), bags)


def test_what_travels_depends_on_the_features_and_not_on_the_rows(folder: Path, bags: bw.Bags, client: Client) -> None:
    scan = bw.scan_bags(folder).on(client)
    n_pieces = len(scan.layout().pieces)
    assert n_pieces > 2 * _TASKS  # else each piece would be a task of its own in any case
    before = sent(client)
    moments = scan.reduce(bw.BagMoments.from_bags)
    d, q, overhead = 3, 6, 2000  # a pickle of classes and small arrays, whatever is in them
    span = 8 * (moments.between.size + moments.within.size + 2 * q * d) + overhead
    # Of the 16 spans of each worker, and of those that 8 are merged to, each travels at most once.
    assert 0 < sent(client) - before < 2 * _TASKS * 8 / 7 * span


def sent(client: Client) -> int:
    """Bytes that the workers have sent to each other so far, by Dask's own log."""
    logs = client.run(lambda dask_worker: [one["compressed"] for one in dask_worker.transfer_outgoing_log])
    return sum(map(sum, logs.values()))


def test_the_likelihood_is_summed_by_the_workers(folder: Path, bags: bw.Bags, client: Client) -> None:
    far = bw.BagLogisticRegression(C=1.0, tol=1e-8).fit(bw.scan_bags(folder), client=client)
    near = bw.BagLogisticRegression(C=1.0, tol=1e-8).fit(bags)
    assert_allclose(far.coef_, near.coef_, rtol=1e-4)


def test_scattered_rows_are_shuffled_by_the_cluster(bags: bw.Bags, tmp_path: Path, client: Client) -> None:
    table = bags_table(bags).take(pa.array(np.random.default_rng(0).permutation(bags.n_rows)))
    pq.write_table(table, tmp_path / "s.parquet", row_group_size=200)
    same_model(bw.SpectralLTF().fit(bw.scan_bags(tmp_path / "s.parquet"), client=client), bags)
    same_model(bw.SpectralLTF().fit(bw.scan_bags(dd.read_parquet(tmp_path / "s.parquet")), client=client), bags)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_dask_frames_and_arrays_are_bags(bags: bw.Bags, client: Client, on_cluster: bool) -> None:
    where = client if on_cluster else None
    client_free = dd.from_pandas(pd.DataFrame(bags_table(bags).to_pandas()), npartitions=5)
    same_model(bw.SpectralLTF().fit(bw.scan_bags(client_free), client=where), bags)
    features = client_free[["x0", "x1", "x2"]]
    named = bw.SpectralLTF().fit(features, client_free["positives"] / 6, bags=client_free["bag"], client=where)
    same_model(named, bags)
    assert list(named.feature_names_in_) == ["x0", "x1", "x2"]
    X, y = bags.as_rows()
    rows = da.from_array(X, chunks=(1001, 2))
    plain = bw.SpectralLTF().fit(rows, y, client=where)
    same_model(plain, bags)
    assert not hasattr(plain, "feature_names_in_")
    ids = da.from_array(np.repeat(bags.ids, bags.sizes), chunks=700)
    same_model(bw.SpectralLTF().fit(rows, y["count"] / y["size"], bags=ids, client=where), bags)


def test_dask_rows_without_totals_are_refused(bags: bw.Bags) -> None:
    rows = da.from_array(bags.X, chunks=(1000, 3))
    with pytest.raises(InvalidInputError, match="a Dask array needs its totals"):
        bw.SpectralLTF().fit(rows)
    with pytest.raises(InvalidInputError, match="bags from Dask need ids"):
        bw.SpectralLTF().fit(rows, np.zeros(bags.n_rows))
    with pytest.raises(InvalidInputError, match="bag must be one per row; got 5 for 3600 rows"):
        bw.SpectralLTF().fit(rows, np.zeros(bags.n_rows), bags=np.arange(5))


def test_a_client_needs_bags_that_workers_can_read(bags: bw.Bags, client: Client) -> None:
    with pytest.raises(InvalidInputError, match=r"client= needs bags that the workers can read; got a Bags in memory"):
        bw.SpectralLTF().fit(bags, client=client)


# ---------------------------------------------------------------------- faults


def test_a_worker_killed_in_the_middle_of_a_fit_costs_only_time(folder: Path, bags: bw.Bags, client: Client) -> None:
    pids = list(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(n_pass: int, done: int, n: int) -> None:
        if not killed and n_pass == 1 and done >= 3:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    same_model(bw.SpectralLTF().fit(bw.scan_bags(folder, progress=kill), client=client), bags)
    assert killed
    client.wait_for_workers(2, timeout=60)
    assert pids[0] not in client.run(os.getpid).values()


def test_a_worker_that_joins_late_takes_part(folder: Path, bags: bw.Bags) -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as one:
        with Client(one) as client:
            joined = threading.Event()

            def join(n_pass: int, done: int, n: int) -> None:
                if not joined.is_set():
                    joined.set()
                    threading.Thread(target=one.scale, args=(2,)).start()

            same_model(bw.SpectralLTF().fit(bw.scan_bags(folder, progress=join), client=client), bags)
            client.wait_for_workers(2, timeout=60)
            same_model(bw.SpectralLTF().fit(bw.scan_bags(folder), client=client), bags)


def test_what_is_wrong_with_a_file_comes_back_from_the_worker(folder: Path, client: Client) -> None:
    scan = bw.scan_bags(folder)
    data = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInputError, match=r"1.parquet must stay as it is while it is read; it changed"):
        bw.SpectralLTF().fit(scan, client=client)
    (folder / "1.parquet").unlink()
    with pytest.raises(InvalidInputError, match=r"1.parquet must stay where it is while it is read; it vanished"):
        bw.SpectralLTF().fit(scan, client=client)
    damaged = bytearray(data)
    damaged[4:400] = bytes(396)
    (folder / "1.parquet").write_bytes(bytes(damaged))
    with pytest.raises(InvalidInputError, match=r"1.parquet"):
        bw.SpectralLTF().fit(bw.scan_bags(folder), client=client)


def test_claims_are_summed_by_the_workers(folder: Path, bags: bw.Bags, client: Client) -> None:
    model = bw.LTF([1.0, 2.5, 3.0], 0.5)
    scan = bw.scan_bags(folder).on(client)
    assert bw.certify(model, scan) == bw.certify(model, bags)
    streamed, in_memory = bw.assess(model, scan).accuracy, bw.assess(model, bags).accuracy
    # Sums over bags in another order, in a search that ends within 1e-5 of the best log-likelihood.
    assert_allclose([streamed.low, streamed.high], [in_memory.low, in_memory.high], atol=1e-3)
    used = bw.SpectralLTF().fit(bags[:100])
    with pytest.raises(InvalidInputError, match="100 of 600 were used"):
        bw.certify(used, scan)
