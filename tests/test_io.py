"""Bags in files: what goes out comes back, and what cannot come back is one sentence."""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from bagwise import Bags
from bagwise.data.io import read_bags, source_files, whole_file, write_bags, write_table
from bagwise.errors import InvalidInputError, MissingExtraError

ENDINGS = [".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv"]


def some_bags(dtype: type = np.float64) -> Bags:
    rng = np.random.default_rng(0)
    return Bags.from_arrays(
        rng.standard_normal((7, 3)).astype(dtype),
        ["b", "a", "b", "c", "a", "b", "c"],
        counts={"b": 2, "a": 0, "c": 1},
        feature_names=["age", "weight", "score"],
    )


def assert_same(one: Bags, two: Bags) -> None:
    assert_array_equal(one.X, two.X)
    assert_array_equal(one.sizes, two.sizes)
    assert_array_equal(one.counts, two.counts)
    assert_array_equal(one.ids, two.ids)
    assert one.feature_names == two.feature_names


def message(error: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


# ---------------------------------------------------------------------- there and back


@pytest.mark.parametrize("ending", ENDINGS)
def test_bags_come_back_from_a_file_as_they_went(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"bags{ending}"
    write_bags(some_bags(), file)
    assert_same(read_bags(file), some_bags())
    assert os.listdir(tmp_path) == [file.name]  # no draft is left


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_float32_stays_float32(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"bags{ending}"
    write_bags(some_bags(np.float32), file)
    assert read_bags(file).X.dtype == np.float32
    assert_same(read_bags(file), some_bags(np.float32))


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    d=st.integers(1, 3),
    ending=st.sampled_from(ENDINGS),
    seed=st.integers(0, 2**32),
)
def test_any_bags_come_back(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], d: int, ending: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((sum(sizes), d)) * 10.0 ** rng.integers(-300, 300)
    bags = Bags.from_sizes(X, sizes, rng.integers(0, np.array(sizes) + 1), ids=rng.permutation(len(sizes)))
    file = tmp_path_factory.mktemp("io") / f"any{ending}"
    write_bags(bags, file)
    back = read_bags(file)
    assert_array_equal(back.X, bags.X)
    assert_array_equal(back.ids, bags.ids)
    assert_array_equal(back.counts, bags.counts)
    assert back.feature_names == tuple(f"x{j}" for j in range(d))


def test_labels_are_written_and_never_a_feature(tmp_path: Path) -> None:
    file = tmp_path / "bags.parquet"
    write_bags(some_bags(), file, labels=np.arange(7) % 2)
    assert pq.read_schema(file).names == ["age", "weight", "score", "bag", "positives", "label"]
    assert read_bags(file).feature_names == ("age", "weight", "score")


def test_rows_of_a_bag_may_lie_in_several_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ward": ["a", "b", "a"], "relapsed": [1, 0, 1], "age": [1.0, 2.0, 3.0]})
    frame[:2].to_csv(tmp_path / "part-0.csv", index=False)
    # Columns in another order, and whole numbers where the other file has fractions.
    frame[2:].astype({"age": int})[["age", "relapsed", "ward"]].to_parquet(tmp_path / "part-1.parquet")
    (tmp_path / "part-2.csv").write_text("ward,relapsed,age\n")  # a part without rows
    (tmp_path / "_SUCCESS.csv").touch()
    (tmp_path / ".hidden.csv").touch()
    (tmp_path / "README.md").write_text("not a table")
    for path in (tmp_path, tmp_path / "part-*"):
        bags = read_bags(path, bag="ward", count="relapsed")
        assert_array_equal(bags.X, [[1], [3], [2]])
        assert_array_equal(bags.counts, [1, 0])


def test_only_needed_columns_are_read(tmp_path: Path) -> None:
    file = tmp_path / "wide.parquet"
    table = {"bag": [1, 1], "positives": [1, 1], "x": [0.5, 1.5], "note": ["p", "q"], "y.z": [1.0, 2.0]}
    write_table(pa.table(table), file)
    assert read_bags(file, features=["y.z"]).feature_names == ("y.z",)
    assert read_bags(file).feature_names == ("x", "y.z")


def test_a_proportion_column_is_read(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("bag,rate,x\n1,0.5,0\n1,0.5,1\n")
    assert_array_equal(read_bags(tmp_path / "r.csv", proportion="rate").counts, [1])


def test_row_numbers_of_pandas_are_no_features(tmp_path: Path) -> None:
    frame = pd.DataFrame({"bag": [1, 1], "positives": [1, 1], "x": [0.0, 1.0]}, index=[5, 7])
    frame.to_parquet(tmp_path / "p.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "p.parquet").names
    assert read_bags(tmp_path / "p.parquet").feature_names == ("x",)
    frame.to_csv(tmp_path / "p.csv")
    with pytest.raises(InvalidInputError, match=r"each column must have a name; column 1 has none.*index=False"):
        read_bags(tmp_path / "p.csv")


def test_an_arrow_stream_is_read_too(tmp_path: Path) -> None:
    table = pa.table({"bag": [1, 1], "positives": [1, 1], "x": [0.0, 1.0]})
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert read_bags(tmp_path / "s.arrow").n_rows == 2


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("b.parquet", b"", "must hold a table; it is empty (0 bytes)."),
        ("b.csv", b"", "must hold a table; it is empty (0 bytes)."),
        (
            "b.parquet",
            b"bag,positives,x\n1,1,0\n",
            "must be a Parquet file; it begins with b'bag,', not b'PAR1'.",
        ),
        ("b.parquet", b"PAR1 but not really", "must be a readable Parquet file;"),
        ("b.arrow", b"ARROW1 but not really", "must be a readable Arrow file;"),
        ("b.arrow", b"nothing of the kind", "must be a readable Arrow file;"),
        ("b.csv", b"bag,positives,x\n1,1\n", "must be a readable CSV file;"),
        ("b.csv", b"bag,positives,x\n", "must have rows; it has only columns (bag, positives, x)."),
        (
            "b.csv",
            b"bag,positive,x\n1,1,0\n",
            "column 'positives' must exist; there are bag, positive, x. Did you",
        ),
        (
            "b.csv",
            b"bag,positives,x,x\n1,1,0,0\n",
            "column names must be distinct; 'x' stands more than once.",
        ),
        (
            "b.csv",
            b"bag,positives,x\n1,1,a\n",
            "must have numeric features besides 'bag', 'positives' and 'label'",
        ),
        ("b.csv", b"bag,positives,x\n1,1,\n1,1,2\n", "column 'x' must have no missing values; got 1."),
        ("b.csv", b"bag,positives,x\n1,1,3\n1,0,2\n", "'positives' must be the same in all rows of a bag;"),
        ("b.csv", b"bag,positives,x\n1,4,3\n1,4,2\n", "got 4 in bag"),
        ("b.txt", b"bag,positives,x\n1,1,0\n", "must say its format; got '.txt'."),
    ],
)
def test_a_file_that_holds_no_bags_is_refused_by_name(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInputError) as error:
        read_bags(tmp_path / name)
    assert sentence in message(error) and name in message(error)


def test_a_text_column_asked_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("bag,positives,x,who\n1,1,2,ann\n")
    with pytest.raises(InvalidInputError, match="features must be numeric; column 'who' is not"):
        read_bags(tmp_path / "b.csv", features=["x", "who"])
    with pytest.raises(InvalidInputError, match="the bag and its total must be two columns"):
        read_bags(tmp_path / "b.csv", count="bag")
    with pytest.raises(InvalidInputError, match="one of count= and proportion="):
        read_bags(tmp_path / "b.csv", count="a", proportion="b")


def test_a_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.csv").touch()
    (tmp_path / "empty").mkdir()
    for path, sentence in {
        "trian.csv": r"must exist; there is none. Did you mean .*train.csv",
        "no/where.csv": "Its folder .* does not exist either",
        "empty": "must hold tables; it has none",
        "*.parquet": "must match at least one file; it matches none",
    }.items():
        with pytest.raises(InvalidInputError, match=sentence):
            source_files(tmp_path / path)


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("bag,positives,x\n1,1,0\n")
    (tmp_path / "1.csv").write_text("bag,positives,x\n1,1,a\n")
    with pytest.raises(InvalidInputError, match="all files must have columns of the same types"):
        read_bags(tmp_path)
    (tmp_path / "1.csv").write_text("bag,positives,z\n1,1,0\n")
    with pytest.raises(InvalidInputError, match=r"1.csv: column 'x' must exist"):
        read_bags(tmp_path)


def test_column_names_that_clash_are_refused_on_the_way_out(tmp_path: Path) -> None:
    bags = Bags.from_sizes([[0.0]], [1], [1], feature_names=["bag"])
    with pytest.raises(InvalidInputError, match="'bag' stands more than once"):
        write_bags(bags, tmp_path / "b.csv")
    mixed = Bags.from_arrays([[0.0], [1.0]], [1, "a"], counts={1: 1, "a": 0})
    with pytest.raises(InvalidInputError, match="must be all text or all integers"):
        write_bags(mixed, tmp_path / "b.csv")
    assert os.listdir(tmp_path) == []


HEADS = [b"", b"PAR1", b"ARROW1\0\0", b"bag,positives,x\n", b"bag,positives,x\n1,1,0\n1,1,", b"\xff\xfe"]


@given(head=st.sampled_from(HEADS), body=st.binary(max_size=60), ending=st.sampled_from(ENDINGS))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, head: bytes, body: bytes, ending: str
) -> None:
    file = tmp_path_factory.mktemp("io") / f"any{ending}"
    file.write_bytes(head + body)
    try:
        assert read_bags(file).n_rows > 0
    except InvalidInputError as error:
        assert file.name in str(error)
        assert "\n" not in str(error)


@given(cut=st.integers(0, 2000), flips=st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 255)), max_size=3))
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[tuple[int, int]]
) -> None:
    file = tmp_path_factory.mktemp("io") / "b.parquet"
    write_bags(some_bags(), file)
    content = bytearray(file.read_bytes())
    for place, change in flips:
        content[place % len(content)] ^= change
    file.write_bytes(content[: len(content) - cut % 50] if not flips else content)
    try:
        read_bags(file)
    except InvalidInputError as error:
        assert "b.parquet" in str(error)


# ---------------------------------------------------------------------- whole or not at all


def test_an_interrupted_write_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("before")
    with pytest.raises(KeyboardInterrupt), whole_file(file) as draft:
        draft.write_text("half of i")
        raise KeyboardInterrupt
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(InvalidInputError, match="must be a file to write; it is a folder"),
        whole_file(tmp_path),
    ):
        pass
    with pytest.raises(InvalidInputError, match=r"folder .* must exist"), whole_file(tmp_path / "no" / "x"):
        pass

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with (
        pytest.raises(InvalidInputError, match="must be writable; Permission denied"),
        whole_file(tmp_path / "x"),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bagwise\[files\]'"):
        read_bags(tmp_path)


def test_features_may_be_named_by_an_array_as_an_estimator_keeps_them(tmp_path: Path) -> None:
    write_bags(some_bags(), tmp_path / "b.parquet")
    names = np.array(["score", "age"], dtype=object)
    assert read_bags(tmp_path / "b.parquet", features=names).feature_names == ("score", "age")
