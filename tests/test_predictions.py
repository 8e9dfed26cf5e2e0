"""Predictions for rows in files: those of memory, whatever the parts, and one complete file or none."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bagwise as bw
from bagwise.data.io import write_table
from bagwise.errors import InvalidInputError
from bagwise.scale import predictions

FIRST = bw.LTF([1.0, -2.0, 0.5], 0.3)


def some_rows(n: int = 5000) -> pa.Table:
    """Rows with an id and a text, which are no features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    names = pa.array([f"who {i}" for i in range(n)])
    return pa.table({"id": np.arange(n) + (1 << 60), "x2": X[:, 2], "x0": X[:, 0], "who": names, "x1": X[:, 1]})


def fitted() -> Any:
    """A learner that knows its features as x0, x1, x2."""
    law = np.full(11, 1 / 11)
    bags = bw.BagOracle(FIRST, np.zeros(3), np.eye(3), size=10, count=law).sample(100, np.random.default_rng(1))
    names = ("x0", "x1", "x2")
    bags = bw.Bags.from_sizes(bags.X, bags.sizes, bags.counts, feature_names=names)
    return bw.BagLogisticRegression(C=1.0).fit(bags)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_parts_are_predicted_as_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr(predictions, "_PART_NUMBERS", 1)  # parts of 1024 rows
    table, model = some_rows(), fitted()
    for i, first in enumerate(range(0, 5000, 1700)):
        write_table(table.slice(first, 1700), tmp_path / f"{i}.{ending}")
    X = table.select(["x0", "x1", "x2"])
    found = bw.write_predictions(model, tmp_path / f"*.{ending}", tmp_path / "out.parquet")
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.column_names == [*table.column_names, "prediction", "probability"]
    assert pq.read_metadata(tmp_path / "out.parquet").num_row_groups > 3
    assert written.select(table.column_names).cast(table.schema).equals(table)  # ids to the last digit
    assert_array_equal(written["prediction"], model.predict(X))
    # A product of three numbers, in blocks of another size.
    assert_allclose(written["probability"], model.predict_proba(X)[:, 1], rtol=1e-12)
    assert found.n_rows == 5000 and found.n_positive == int(model.predict(X).sum())


def test_types_that_differ_between_files_are_widened(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x0,x1,x2\n1,2,3\n")
    (tmp_path / "b.csv").write_text("x0,x1,x2\n")
    (tmp_path / "c.csv").write_text("x2,x1,x0,more\n1.5,2,3,4\n")
    bw.write_predictions(fitted(), tmp_path, tmp_path / "out.parquet")
    written = pq.read_table(tmp_path / "out.parquet")
    assert written["x2"].to_pylist() == [3.0, 1.5] and written["x1"].to_pylist() == [2, 2]
    assert "more" not in written.column_names
    (tmp_path / "c.csv").write_text("x0,x1,x2\n3,2,old\n")
    with pytest.raises(InvalidInputError, match=r"c.csv: features must be numeric; column 'x2' is not"):
        bw.write_predictions(fitted(), tmp_path, tmp_path / "out.arrow")


def test_without_names_the_numeric_columns_are_the_features(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
    bw.write_bags(bw.Bags.from_sizes(X, [3, 4], [1, 2]), tmp_path / "r.parquet", labels=np.zeros(7, np.int64))
    bw.write_predictions(FIRST, tmp_path / "r.parquet", tmp_path / "r.parquet")  # in place
    assert_array_equal(pq.read_table(tmp_path / "r.parquet")["prediction"], FIRST.predict(X))
    bw.write_predictions(FIRST, tmp_path / "r.parquet", tmp_path / "r.csv")  # earlier predictions are replaced
    assert pa.csv.read_csv(tmp_path / "r.csv").column_names.count("prediction") == 1
    unnamed = bw.SpectralLTF()
    unnamed.coef_, unnamed.n_features_in_ = None, 5
    with pytest.raises(InvalidInputError, match=r"must have the 5 features of the model; got 3 numeric columns"):
        bw.write_predictions(unnamed, tmp_path / "r.parquet", tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x0,x1,x3\n1,2,3\n", "r.csv: column 'x2' must exist; there are x0, x1, x3."),
        ("x0,x1,x2\n1,2,old\n", "r.csv: features must be numeric; column 'x2' is not."),
        ("x0,x1,x2\n1,2,3\n1,2,NaN\n", "r.csv: column 'x2' must have no missing values; got 1."),
        ("x0,x1,x2\n1,2,3\n1,2,inf\n", "r.csv: the features must be finite; got inf in row 1, column 2 ('x2')."),
        ("x0,x1,x2\n", "r.csv must have rows; it has only columns (x0, x1, x2)."),
        ("", "r.csv must hold a table; it is empty (0 bytes)."),
    ],
)
def test_rows_that_cannot_be_predicted_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(InvalidInputError) as error:
        bw.write_predictions(fitted(), tmp_path / "r.csv", tmp_path / "out.parquet")
    assert sentence in str(error.value)
    assert os.listdir(tmp_path) == ["r.csv"]


def test_text_without_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("name\nann\n")
    with pytest.raises(InvalidInputError, match=r"must have numeric columns; it has name"):
        bw.write_predictions(FIRST, tmp_path / "r.csv", tmp_path / "out.parquet")


def test_what_fails_late_leaves_the_old_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "_PART_NUMBERS", 1)
    table = some_rows(4000)
    spoilt = table["x1"].to_numpy().copy()
    spoilt[3000] = np.inf
    write_table(table.set_column(4, "x1", pa.array(spoilt)), tmp_path / "r.parquet")
    (tmp_path / "out.parquet").write_text("old")
    with pytest.raises(InvalidInputError, match=r"r.parquet, from row 2,048 on: .* must be finite; got inf in row 952"):
        bw.write_predictions(fitted(), tmp_path / "r.parquet", tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["out.parquet", "r.parquet"]


# ---------------------------------------------------------------------- a full disk


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_a_full_disk_leaves_the_old_output(tmp_path: Path, small_disk: Path, ending: str) -> None:
    write_table(some_rows(100_000), tmp_path / "r.parquet")  # 4 MB of rows for a disk of 1 MB
    out = small_disk / f"out.{ending}"
    out.write_text("old")
    with pytest.raises(InvalidInputError, match=rf"out\.{ending} must be writable; .*No space left on device"):
        bw.write_predictions(fitted(), tmp_path / "r.parquet", out)
    assert out.read_text() == "old" and os.listdir(small_disk) == [out.name]


@pytest.mark.parametrize("command", ["fit", "fit --stream", "predict"])
def test_the_program_says_that_the_disk_is_full(tmp_path: Path, small_disk: Path, command: str) -> None:
    oracle = bw.BagOracle(bw.LTF([1.0] * 50), np.zeros(50), np.eye(50), size=6, count=[1 / 7] * 7)
    bw.write_bags(oracle.sample(1000, np.random.default_rng(0)), tmp_path / "b.parquet")
    bw.save(bw.MeanMap().fit(bw.read_bags(tmp_path / "b.parquet")), tmp_path / "m.json")
    out = small_disk / ("p.parquet" if command == "predict" else "m.json")
    (small_disk / "filler").write_bytes(bytes((1 << 20) - (1 << 12)))  # one page is left, and a draft takes it
    start = [sys.executable, "-m", "bagwise.cli"]
    line = ["predict", tmp_path / "m.json"] if command == "predict" else [*command.split(), "--model", "meanmap"]
    ended = subprocess.run(
        [*start, *map(str, line), str(tmp_path / "b.parquet"), "-o", str(out)], capture_output=True, text=True
    )
    assert ended.returncode != 0 and ended.stdout == ""
    assert f"{out} must be writable; " in ended.stderr and "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert os.listdir(small_disk) == ["filler"]


PEAK = """
import resource, sys
import bagwise as bw
bw.write_predictions(bw.LTF([1.0] * 20), sys.argv[1], sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    from bagwise.data.problems import random_oracle, write_sample

    rng = np.random.default_rng(0)
    oracle = random_oracle(20, size=10, count=8, rng=rng)
    peaks = []
    for n_bags in (50_000, 400_000):
        write_sample(oracle, n_bags, rng, tmp_path / "b.parquet")
        shown = subprocess.run(
            [sys.executable, "-c", PEAK, str(tmp_path / "b.parquet"), str(tmp_path / "p.parquet")],
            capture_output=True,
            text=True,
        )
        peaks.append(int(shown.stdout))
    assert peaks[1] < peaks[0] + 200  # MiB; the rows alone are 76 and 610
