"""Bags in files: the same sums however the rows are cut, in bounded memory, and plain words when files misbehave."""

import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bagwise as bw
from bagwise.data.io import bags_table, write_table
from bagwise.errors import BagwiseWarning, InvalidInputError
from bagwise.scale import pieces, spans
from bagwise.scale.pieces import Columns, TablePiece
from bagwise.scale.spans import Job, merged, span_of, total_of

LAW = np.full(7, 1 / 7)


def some_bags(n_bags: int = 400, d: int = 3) -> bw.Bags:
    """Bags of six rows with any count, with ids that ascend."""
    oracle = bw.BagOracle(bw.LTF(np.arange(1.0, d + 1), 0.5), np.zeros(d), np.eye(d), size=6, count=LAW)
    return oracle.sample(n_bags, np.random.default_rng(0))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows per part, parts per batch and batches per piece, so that a small file has many of each."""
    monkeypatch.setattr(pieces, "_PIECE_BYTES", 1 << 13)
    monkeypatch.setattr(spans, "batch_rows", lambda columns: 37)
    monkeypatch.setattr(spans, "part_rows", lambda columns: 13)


def same_model(one: Any, other: Any) -> None:
    # Sums in another order: d^2 numbers of about n rounding errors, amplified by the condition of a 3 x 3 matrix.
    assert_allclose(one.coef_, other.coef_, rtol=1e-9, atol=1e-9)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-9, atol=1e-9)
    assert_array_equal(one.bag_fingerprints_, other.bag_fingerprints_)


# ---------------------------------------------------------------------- the algebra


class Concatenated:
    """Bags that add up to lists of what they hold: order does not matter, losing or cutting a bag does."""

    def __init__(self, entries: list[Any]) -> None:
        self.entries = entries

    @classmethod
    def of(cls, bags: bw.Bags) -> "Concatenated":
        return cls([(i, k, bags[b].X.tolist()) for b, (i, k) in enumerate(zip(bags.ids, bags.counts, strict=True))])

    def __add__(self, other: "Concatenated") -> "Concatenated":
        return Concatenated(self.entries + other.entries)


@given(st.data())
def test_any_tree_over_any_cuts_gives_each_bag_once_and_whole(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    rows = np.arange(sum(sizes), dtype=np.float64)[:, None]
    bags = bw.Bags.from_sizes(rows, sizes, np.ones(len(sizes)), ids=np.arange(len(sizes)) * 7)
    table = bags_table(bags)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=8)))
    edges = [0, *cuts, len(rows)]
    parts = [table.slice(a, b - a) for a, b in pairwise(edges)]
    columns = Columns("bag", "positives", False, ("x0",), False, pa.int64())
    job = Job(Concatenated.of, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "batch_rows", lambda columns: data.draw(st.integers(1, 20)))
        patch.setattr(spans, "part_rows", lambda columns: data.draw(st.integers(1, 20)))
        found = [span_of(TablePiece(part, "part", whole=False), job) for part in parts]
    while len(found) > 1:
        i = data.draw(st.integers(0, len(found) - 2))
        found[i : i + 2] = [merged(found[i], found[i + 1], job)]
    total = total_of(found[0], job)
    assert total is not None
    assert sorted(total.entries) == Concatenated.of(bags).entries


# ---------------------------------------------------------------------- the same model


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.usefixtures("small_pieces")
def test_a_scan_teaches_what_memory_does(tmp_path: Path, ending: str, threads: int) -> None:
    bags = some_bags()
    table = bags_table(bags)
    for i, first in enumerate(range(0, bags.n_rows, 1001)):  # borders of files cut bags
        part = table.slice(first, 1001)
        if ending == "parquet":
            pq.write_table(part, tmp_path / f"{i}.parquet", row_group_size=100)
        else:
            write_table(part, tmp_path / f"{i}.{ending}")
    for learner in (bw.SpectralLTF(), bw.SpectralLTF(offset="count"), bw.MeanLTF(), bw.MeanMap()):
        scan = bw.scan_bags(tmp_path, threads=threads)
        streamed = learner.fit(scan)
        assert scan.layout().how == "sorted by bag"
        same_model(streamed, type(learner)(**learner.get_params()).fit(bags))


def test_the_likelihood_is_the_same_in_few_passes(tmp_path: Path) -> None:
    oracle = bw.BagOracle(bw.LTF(np.arange(1.0, 21), 0.5), np.zeros(20), np.eye(20), size=10, count=8)
    bags = oracle.sample(25_000, np.random.default_rng(0))  # enough for starts to be compared on a part
    bw.write_bags(bags, tmp_path / "b.parquet")
    scan = bw.scan_bags(tmp_path / "b.parquet")
    streamed = bw.BagLogisticRegression(C=100.0).fit(scan)
    assert streamed.converged_ and scan.n_passes <= 12
    exact = bw.BagLogisticRegression(C=100.0, tol=1e-8).fit(bags)
    objective = lambda model: model.log_likelihood_ - float((model.coef_**2).sum()) / 200
    assert abs(objective(streamed) - objective(exact)) < 2e-4  # tol, the gain still to be had, is 1e-4
    assert_array_equal(streamed.bag_fingerprints_, exact.bag_fingerprints_)


def test_one_pass_for_the_sums_and_one_for_the_sweep(tmp_path: Path) -> None:
    bw.write_bags(some_bags(), tmp_path / "b.parquet")
    for learner, passes in ((bw.MeanMap(), 1), (bw.MeanLTF(), 1), (bw.SpectralLTF(), 2)):
        scan = bw.scan_bags(tmp_path / "b.parquet")
        learner.fit(scan)
        assert scan.n_passes == passes


@pytest.mark.usefixtures("small_pieces")
def test_grouped_but_unsorted_ids_are_found_to_be_so(tmp_path: Path) -> None:
    bags = some_bags()[np.random.default_rng(1).permutation(400)]
    bags = replace(bags, ids=np.array([f"ward {i}" for i in bags.ids]))
    pq.write_table(bags_table(bags), tmp_path / "b.parquet", row_group_size=100)
    scan = bw.scan_bags(tmp_path / "b.parquet")
    same_model(bw.SpectralLTF().fit(scan), bw.SpectralLTF().fit(bags))
    assert scan.layout().how == "grouped by bag, unsorted"


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("by_text", [False, True])
def test_scattered_rows_are_brought_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_text: bool) -> None:
    from bagwise.scale import streaming

    monkeypatch.setattr(streaming, "_PART_BYTES", 1 << 14)
    bags = some_bags()
    if by_text:
        bags = replace(bags, ids=np.array([f"ward {i}" for i in bags.ids]))
    table = bags_table(bags).take(pa.array(np.random.default_rng(0).permutation(bags.n_rows)))
    for i in range(4):
        pq.write_table(table.slice(600 * i, 600), tmp_path / f"{i}.parquet", row_group_size=100)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scan = bw.scan_bags(tmp_path, scratch=scratch)
    same_model(bw.SpectralLTF().fit(scan), bw.SpectralLTF().fit(bags))
    assert not scan.layout().grouped and len(scan.layout().pieces) > 2
    assert len(list(scratch.iterdir())) == 1
    del scan
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_proportions_and_small_numbers_are_kept(tmp_path: Path) -> None:
    bags = some_bags(50)
    table = bags_table(bags).drop_columns(["positives"])
    table = table.append_column("rate", pa.array(bags.proportions[bags.row_bags()]))
    single = pa.schema([pa.field(f.name, pa.float32() if f.name[0] == "x" else f.type) for f in table.schema])
    pq.write_table(table.cast(single), tmp_path / "b.parquet")
    read = bw.scan_bags(tmp_path / "b.parquet", proportion="rate").read()
    assert read.X.dtype == np.float32
    assert_array_equal(read.counts, bags.counts)


def test_a_scan_can_be_iterated_again_and_split_by_bags(tmp_path: Path) -> None:
    bags = some_bags()
    bw.write_bags(bags, tmp_path / "b.parquet")
    scan = bw.scan_bags(tmp_path / "b.parquet")
    for _ in range(2):
        assert_array_equal(bw.Bags.concat(list(scan)).ids, bags.ids)
    first, second = scan.split(0.7, np.random.default_rng(0))
    ids = set(first.read().ids.tolist()), set(second.read().ids.tolist())
    assert not ids[0] & ids[1] and ids[0] | ids[1] == set(bags.ids.tolist())
    assert abs(len(ids[0]) - 280) < 4 * np.sqrt(400 * 0.7 * 0.3)  # four standard errors: 1 in 16,000
    one, two = first.split(0.5, np.random.default_rng(1))
    assert len(one.read()) + len(two.read()) == len(ids[0])


def test_progress_is_reported_piece_by_piece(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bw.write_bags(some_bags(), tmp_path / "b.parquet")
    seen: list[tuple[int, int, int]] = []
    bw.SpectralLTF().fit(bw.scan_bags(tmp_path / "b.parquet", progress=lambda *at: seen.append(at)))
    assert seen == [(1, 1, 1), (2, 1, 1)]
    bw.MeanMap().fit(bw.scan_bags(tmp_path / "b.parquet", progress=True))
    assert "pass 1: 100 %" in capsys.readouterr().err


def test_files_may_lie_where_fsspec_finds_them(tmp_path: Path) -> None:
    import fsspec

    bags = some_bags(100)
    bw.write_bags(bags, tmp_path / "b.parquet")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/a.parquet", (tmp_path / "b.parquet").read_bytes())
    scan = bw.scan_bags("memory://bucket/*.parquet")
    same_model(bw.SpectralLTF().fit(scan), bw.SpectralLTF().fit(bags))
    store.pipe("/bucket/_SUCCESS", b"")
    assert [file.path for file in bw.scan_bags("memory://bucket").files] == ["memory:///bucket/a.parquet"]
    store.pipe("/bucket/a.parquet", (tmp_path / "b.parquet").read_bytes())
    with pytest.raises(InvalidInputError, match=r"a.parquet must stay as it is while it is read; it changed"):
        bw.SpectralLTF().fit(scan)
    store.rm("/bucket/a.parquet")
    with pytest.raises(InvalidInputError, match=r"a.parquet must stay where it is"):
        bw.SpectralLTF().fit(scan)


@pytest.mark.usefixtures("small_pieces")
def test_claims_from_files_are_those_of_memory(tmp_path: Path) -> None:
    bags = some_bags(800)
    table = bags_table(bags[400:])
    for i, first in enumerate(range(0, 2400, 1001)):  # borders of files cut bags
        pq.write_table(table.slice(first, 1001), tmp_path / f"{i}.parquet", row_group_size=100)
    held = bw.read_bags(tmp_path)
    pipeline = make_pipeline(StandardScaler(), bw.SpectralLTF()).fit(*bags[:400].as_rows())
    for model in (bw.LTF([1.0, 2.5, 3.0], 0.5), bw.BagLogisticRegression(C=1.0).fit(bags[:400]), pipeline):
        scan = bw.scan_bags(tmp_path, threads=2)
        assert bw.certify(model, scan, prevalence="bags") == bw.certify(model, held, prevalence="bags")
        assert scan.n_passes == 1
        streamed, in_memory = bw.assess(model, scan).to_dict(), bw.assess(model, held).to_dict()
        for name in ("accuracy", "tpr", "fpr", "roc_auc"):
            for part in ("estimate", "low", "high"):
                # Sums over bags in another order, in a search that ends within 1e-5 of the best log-likelihood.
                assert_allclose(streamed[name][part], in_memory[name][part], atol=1e-3)
    assert streamed["n_rows"] == 2400 and streamed["n_bags"] == 400


@pytest.mark.usefixtures("small_pieces")
def test_claims_from_files_know_bags_of_the_fit(tmp_path: Path) -> None:
    bags = some_bags()
    pq.write_table(bags_table(bags), tmp_path / "b.parquet", row_group_size=100)
    model = bw.SpectralLTF().fit(bags[:150])
    scan = bw.scan_bags(tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match=r"must be held out; 150 of 400 were used to fit the model. Certify"):
        bw.certify(model, scan)
    with pytest.warns(BagwiseWarning, match=r"150 of 400 were used"):
        bw.assess(model, scan)
    with pytest.raises(InvalidInputError, match=r"part by part need a model with predict\(X\); got a?.*ndarray"):
        bw.assess(np.zeros(2400), scan)
    with pytest.raises(InvalidInputError, match=r"certify needs Bags, or a source of them; got DataFrame"):
        bw.certify(model, pd.DataFrame({"x": [1.0]}))


def test_learners_of_rows_say_that_they_need_them(tmp_path: Path) -> None:
    bw.write_bags(some_bags(20), tmp_path / "b.parquet")
    scan = bw.scan_bags(tmp_path / "b.parquet")
    for learner in (bw.RandomLTF(), bw.SpectralLTF(pairs="one"), bw.MeanLTF(pairs="one")):
        with pytest.raises(InvalidInputError, match=r"Pass scan.read\(\)|at \"all\""):
            learner.fit(scan)


# ---------------------------------------------------------------------- files that misbehave


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Three files of bags."""
    bags = some_bags(90)
    for i in range(3):
        bw.write_bags(bags[30 * i : 30 * i + 30], tmp_path / f"{i}.parquet")
    return tmp_path


def test_a_truncated_file_is_named(folder: Path) -> None:
    data = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInputError, match=r"1.parquet must be a readable Parquet file; "):
        bw.SpectralLTF().fit(bw.scan_bags(folder))


def test_damage_within_a_file_is_named(folder: Path) -> None:
    data = bytearray((folder / "1.parquet").read_bytes())
    data[4:400] = bytes(396)  # the footer is whole, the pages are not
    (folder / "1.parquet").write_bytes(bytes(data))
    with pytest.raises(InvalidInputError, match=r"1.parquet"):
        bw.SpectralLTF().fit(bw.scan_bags(folder))


def test_a_file_with_other_columns_is_named(folder: Path) -> None:
    table = pq.read_table(folder / "2.parquet").rename_columns(["x0", "z", "x2", "bag", "positives"])
    pq.write_table(table, folder / "2.parquet")
    with pytest.raises(InvalidInputError, match=r"2.parquet: column 'x1' must exist; there are x0, z, x2"):
        bw.scan_bags(folder)
    texts = pq.read_table(folder / "0.parquet")
    pq.write_table(texts.set_column(1, "x1", texts["x1"].cast(pa.string())), folder / "2.parquet")
    with pytest.raises(InvalidInputError, match=r"2.parquet: all files must have columns of the same types; 'x1'"):
        bw.scan_bags(folder)


class Meddling:
    """A task that meddles with the files when it is first called."""

    def __init__(self, meddle: Any) -> None:
        self.meddle = meddle

    def __call__(self, bags: bw.Bags) -> bw.BagMoments:
        self.meddle()
        return bw.BagMoments.from_bags(bags)


def test_a_file_that_vanishes_or_changes_between_passes_is_named(folder: Path) -> None:
    scan = bw.scan_bags(folder, threads=1)
    scan.reduce(bw.BagMoments.from_bags)
    data = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").unlink()
    with pytest.raises(InvalidInputError, match=r"1.parquet must stay where it is while it is read; it vanished"):
        scan.reduce(bw.BagMoments.from_bags)
    (folder / "1.parquet").write_bytes(data)
    with pytest.raises(InvalidInputError, match=r"1.parquet must stay as it is while it is read; it changed"):
        scan.reduce(bw.BagMoments.from_bags)


def test_a_file_that_vanishes_in_the_middle_of_a_pass_is_named(folder: Path) -> None:
    scan = bw.scan_bags(folder, threads=1)
    with pytest.raises(InvalidInputError, match=r"2.parquet must stay where it is"):
        scan.reduce(Meddling(lambda: (folder / "2.parquet").unlink(missing_ok=True)))


def test_a_file_that_appears_is_not_part_of_the_scan(folder: Path) -> None:
    before = bw.SpectralLTF().fit(bw.scan_bags(folder))
    scan = bw.scan_bags(folder)
    scan.reduce(bw.BagMoments.from_bags)
    bw.write_bags(some_bags(200)[100:], folder / "3.parquet")
    same_model(bw.SpectralLTF().fit(scan), before)
    assert len(bw.scan_bags(folder).files) == 4


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("x1", [1.0, None, 2.0], "column 'x1' must have no missing values; got 1"),
        ("x1", [1.0, float("inf"), 2.0], "the features must be finite; got inf in column 'x1' of bag 0"),
        ("positives", [1.0, float("nan"), 1.0], "the same in all rows of a bag; got 1.0 and nan in bag 0"),
        ("bag", [1, None, 2], "column 'bag' must have no missing values; got 1"),
        ("positives", [1, 0, 1], "the total must be the same in all rows of a bag; got 1 and 0 in bag 0"),
        ("positives", [7, 7, 7], "counts must lie in 0..size; got 7 in bag 0 of size 3"),
    ],
)
def test_what_memory_refuses_a_scan_refuses_in_the_name_of_the_file(
    tmp_path: Path, column: str, values: list[Any], sentence: str
) -> None:
    table = pa.table({"x0": [0.0, 1.0, 2.0], "x1": [0.0, 1.0, 2.0], "bag": [0, 0, 0], "positives": [1, 1, 1]})
    place = table.column_names.index(column)
    pq.write_table(table.set_column(place, column, pa.array(values)), tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match=re.escape(sentence)) as refused:
        bw.SpectralLTF().fit(bw.scan_bags(tmp_path / "b.parquet"))
    assert str(refused.value).startswith(f"{tmp_path / 'b.parquet'}: ")
    with pytest.raises(InvalidInputError, match=r"b\.parquet: "):
        bw.read_bags(tmp_path / "b.parquet")


def test_a_full_disk_stops_regrouping_and_leaves_nothing(tmp_path: Path, small_disk: Path) -> None:
    bags = some_bags(20_000)
    table = bags_table(bags).take(pa.array(np.random.default_rng(0).permutation(bags.n_rows)))
    pq.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match=r"scattered.*No space left on device.*scratch="):
        bw.SpectralLTF().fit(bw.scan_bags(tmp_path / "b.parquet", scratch=small_disk))
    assert list(small_disk.iterdir()) == []


# ---------------------------------------------------------------------- files that differ


def split_in_two(folder: Path, first: pa.Table, second: pa.Table) -> Path:
    """The upper half of one table and the lower of another; the border cuts a bag."""
    pq.write_table(first.slice(0, 183), folder / "a.parquet", row_group_size=100)
    pq.write_table(second.slice(183), folder / "b.parquet", row_group_size=100)
    return folder


def with_ids(table: pa.Table, ids: Any) -> pa.Table:
    return table.set_column(table.column_names.index("bag"), "bag", ids)


TEXT = pa.array([f"ward {i:03}" for i in np.repeat(np.arange(60), 6)])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.int32(), pa.int64()),
        (pa.uint8(), pa.int16()),
        (pa.string(), pa.large_string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.string(), pa.dictionary(pa.int8(), pa.string())),
        (pa.float64(), pa.int32()),
    ],
    ids=str,
)
def test_ids_may_be_written_in_several_types(tmp_path: Path, first: Any, second: Any) -> None:
    table = bags_table(some_bags(60))
    as_text = "string" in str(first)
    written = [with_ids(table, (TEXT if as_text else table["bag"]).cast(kind)) for kind in (first, second)]
    split_in_two(tmp_path, *written)
    scan = bw.scan_bags(tmp_path)
    same_model(bw.SpectralLTF().fit(scan), bw.SpectralLTF().fit(bw.read_bags(tmp_path)))
    assert scan.layout().grouped and len(scan.read()) == 60


def test_large_ids_after_small_ones_are_kept(tmp_path: Path) -> None:
    table = bags_table(some_bags(60))
    far = pa.array(np.repeat(np.arange(60), 6) + (1 << 40))
    pq.write_table(with_ids(table, table["bag"].cast(pa.int32())), tmp_path / "a.parquet")
    pq.write_table(with_ids(table, far), tmp_path / "b.parquet")
    assert bw.scan_bags(tmp_path).read().ids[[0, 59, 60]].tolist() == [0, 59, 1 << 40]


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (
            "int64",
            "string",
            r"b.parquet: all files must have columns of the same types; 'bag' is string here and int64",
        ),
        (
            "string",
            "int64",
            r"b.parquet: all files must have columns of the same types; 'bag' is int64 here and string",
        ),
        ("int32", "list", r"b.parquet: ids must be numbers, text or dates; column 'bag' holds list"),
    ],
)
def test_ids_of_several_kinds_are_refused(tmp_path: Path, first: str, second: str, sentence: str) -> None:
    table = bags_table(some_bags(60))
    numbers = table["bag"].to_pylist()
    ids = {"string": TEXT, "int64": table["bag"], "int32": table["bag"].cast(pa.int32())}
    ids["list"] = pa.array([[i] for i in numbers])
    split_in_two(tmp_path, with_ids(table, ids[first]), with_ids(table, ids[second]))
    with pytest.raises(InvalidInputError, match=sentence):
        bw.scan_bags(tmp_path)
    with pytest.raises(InvalidInputError, match="columns of the same types"):
        bw.read_bags(tmp_path)


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.date32(), pa.timestamp("us", "Europe/Rome"), pa.binary(), pa.bool_()]
)
def test_ids_of_any_plain_type_name_bags(tmp_path: Path, kind: Any) -> None:
    table = bags_table(some_bags(2 if kind == pa.bool_() else 60))
    ids = table["bag"].cast(pa.int32())
    if "view" in str(kind) or "binary" in str(kind):
        ids = pa.array([f"{i:03}" for i in ids.to_pylist()]).cast(kind)
    elif "timestamp" in str(kind):
        ids = ids.cast(pa.int64()).cast(kind)
    write_table(with_ids(table, ids.cast(kind)), tmp_path / "b.arrow")
    assert len(bw.scan_bags(tmp_path).read()) == len(bw.read_bags(tmp_path / "b.arrow"))


def test_small_numbers_in_one_file_do_not_shorten_those_of_another(tmp_path: Path) -> None:
    table = bags_table(some_bags(60))
    single = pa.schema([pa.field(f.name, pa.float32() if f.name[0] == "x" else f.type) for f in table.schema])
    split_in_two(tmp_path, table.cast(single), table)
    scanned, read = bw.scan_bags(tmp_path).read(), bw.read_bags(tmp_path)
    assert scanned.X.dtype == np.float64
    assert_array_equal(scanned.X, read.X)


def test_folders_may_state_columns(tmp_path: Path) -> None:
    bags = some_bags(60)
    table = bags_table(bags)
    dataset = pa.dataset
    by_bag = dataset.partitioning(pa.schema([("bag", pa.int64())]), flavor="hive")
    dataset.write_dataset(table, tmp_path / "by bag", format="parquet", partitioning=by_bag)
    scan = bw.scan_bags(tmp_path / "by bag")
    assert scan.feature_names == ("x0", "x1", "x2")
    same_model(bw.SpectralLTF().fit(scan), bw.SpectralLTF().fit(bags))
    assert scan.layout().how == "grouped by bag, unsorted"  # bag=10 stands before bag=2
    same_model(bw.SpectralLTF().fit(bw.read_bags(tmp_path / "by bag")), bw.SpectralLTF().fit(bags))

    region = pa.array(np.repeat([f"s/w {i % 3}" for i in range(60)], 6))
    by_region = dataset.partitioning(pa.schema([("region", pa.string())]), flavor="hive")
    table = table.append_column("region", region)
    dataset.write_dataset(table, tmp_path / "by region", format="parquet", partitioning=by_region)
    for read in (bw.read_bags, bw.scan_bags):
        assert read(tmp_path / "by region").feature_names == ("x0", "x1", "x2")
        with pytest.raises(InvalidInputError, match="the same in all rows of a bag"):
            bw.SpectralLTF().fit(read(tmp_path / "by region", bag="region"))
    (tmp_path / "years" / "year=2024").mkdir(parents=True)
    bw.write_bags(bags, tmp_path / "years" / "year=2024" / "b.parquet")
    for read in (bw.read_bags, bw.scan_bags):
        assert read(tmp_path / "years").n_features == 3  # a year of the folder is learnt from only when asked for
        assert read(tmp_path / "years", features=["x0", "year"]).feature_names == ("x0", "year")
    assert bw.scan_bags(tmp_path / "years", features=["x0", "year"]).read().X[0, 1] == 2024


def test_files_without_rows_say_nothing(tmp_path: Path) -> None:
    bags = some_bags(60)
    table = bags_table(bags)
    for ending in ("parquet", "csv", "arrow"):
        folder = tmp_path / ending
        folder.mkdir()
        write_table(table.slice(0, 0), folder / f"0.{ending}")
        with pytest.raises(InvalidInputError, match=rf"0.{ending} must have rows; it has only columns \(x0, x1"):
            bw.scan_bags(folder)
        write_table(table, folder / f"1.{ending}")
        assert len(bw.scan_bags(folder).read()) == 60
        (folder / f"2.{ending}").touch()
        with pytest.raises(InvalidInputError, match=rf"2.{ending} must hold a table; it is empty"):
            bw.scan_bags(folder)
    with pq.ParquetWriter(tmp_path / "groups.parquet", table.schema) as writer:
        for part in (table.slice(0, 0), table.slice(0, 100), table.slice(0, 0), table.slice(100), table.slice(0, 0)):
            writer.write_table(part)
    assert len(bw.scan_bags(tmp_path / "groups.parquet").read()) == 60


def test_a_bag_over_many_batches_is_one_bag(tmp_path: Path, small_pieces: None) -> None:
    X = np.random.default_rng(0).standard_normal((2000, 9))
    bags = bw.Bags.from_sizes(X, [3, 1990, 7], [1, 1000, 2])
    pq.write_table(bags_table(bags), tmp_path / "b.parquet", row_group_size=100)
    read = bw.scan_bags(tmp_path / "b.parquet").read()
    assert read.sizes.tolist() == [3, 1990, 7]
    assert_array_equal(read.X, X)


@pytest.mark.parametrize(
    ("source", "settings", "sentence"),
    [
        ("nowhere://bucket/rows", {}, r"nowhere://bucket/rows must be within reach; Protocol not known: nowhere"),
        ("memory://nothing/*.parquet", {}, r"memory://nothing/\*.parquet must name at least one table; there is none"),
        (["a.parquet", "b.parquet"], {}, r"must be the path of a file, a folder or a glob; got a list"),
        (None, {}, r"must be the path of a file, a folder or a glob; got a NoneType"),
        ("rows", {"threads": 0}, r"threads must be a whole number above 0, or None; got 0"),
    ],
)
def test_what_is_no_source_is_refused(source: Any, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        bw.scan_bags(source, **settings)


def test_a_url_is_no_path() -> None:
    with pytest.raises(
        InvalidInputError, match=r"must be a local path to be read into memory. Stream from a URL: bagwise.scan_bags"
    ):
        bw.read_bags("memory://bucket/a.parquet")


# ---------------------------------------------------------------------- memory

PEAK = """
import resource, sys
import bagwise as bw
bw.SpectralLTF().fit(bw.scan_bags(sys.argv[1]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    from bagwise.data.problems import random_oracle, write_sample

    rng = np.random.default_rng(0)
    oracle = random_oracle(50, size=10, count=8, rng=rng)
    peaks = []
    for n_bags in (50_000, 400_000):
        write_sample(oracle, n_bags, rng, tmp_path / "b.parquet")
        shown = subprocess.run(
            [sys.executable, "-c", PEAK, str(tmp_path / "b.parquet")], capture_output=True, text=True
        )
        peaks.append(int(shown.stdout))
    assert peaks[1] < peaks[0] + 500  # MiB; the rows alone are 190 and 1500
