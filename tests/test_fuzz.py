"""No input crashes, hangs or ends in a traceback: it is taken, or refused in one line.

Three doors are fuzzed: the constructors of `Bags`, model files, and the files that the program reads. The default suite
tries 50 inputs per test, the same ones each time; ``make fuzz`` tries 12,000 in all, other ones each time.
"""

import json
import math
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import bagwise as bw
from bagwise.cli import main
from bagwise.errors import BagwiseWarning, InvalidInputError
from bagwise.persist import _FIELDS, _VALUES

SECONDS = 20.0  # of the processor, so that a busy machine is no hang; far above what any input takes


@contextmanager
def in_time() -> Iterator[None]:
    """Fail what hangs."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"not done in {SECONDS} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# ---------------------------------------------------------------------- constructors of Bags

odd = st.sampled_from(
    [
        None, True, float("nan"), float("inf"), -0.0, 10**400, -(10**20), 2**63, 1e308, 5e-324, "", "1", "x", b"1",
        Decimal("1.5"), Decimal("NaN"), Fraction(1, 3), 1j, date(2020, 1, 1), datetime(2020, 1, 1), timedelta(1),
        np.datetime64("NaT"), pd.NA, pd.NaT, pd.Timestamp(0), (1, 2), (), [1], {}, set(), object(), np.float16(1.0),
        np.int8(3), np.bool_(True), np.str_("a"), type, print,
    ]
)  # fmt: skip
numbers = st.integers(-2, 5) | st.floats(-2, 2) | st.sampled_from([0.5, 1 / 3, 0.25])
scalars = numbers | odd | st.text(max_size=3)
small = st.integers(0, 6)


def columns_of(cells: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(cells, max_size=6)


@st.composite
def arrays(draw: st.DrawFn, max_dims: int = 3) -> Any:
    """Arrays of any dtype and few dimensions."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=max_dims)))
    dtype = draw(st.sampled_from("f8 f4 f2 i8 i1 u8 ? c16 U2 S2 O M8[D] m8[s] g".split()))
    array = np.zeros(shape, dtype=dtype)
    if array.size and dtype in ("f8", "f4", "O", "i8"):
        values = draw(st.lists(numbers if dtype == "i8" else numbers | odd, min_size=1, max_size=4))
        for i in range(array.size):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    array.flat[i] = values[i % len(values)]
                except (TypeError, ValueError, OverflowError):
                    array.flat[i] = 1
    return draw(st.sampled_from([array, array.T, array[::-1] if array.ndim else array]))


def tame(cell: Any) -> bool:
    """Whether polars can be trusted with a cell; of some others it panics, past what Python can catch."""
    return cell is None or (type(cell) in (int, float, str, bool) and abs(cell if type(cell) is int else 0) < 2**62)


def dressed(values: Any, kind: str) -> Any:
    """The same values as another type has them, if it takes them."""
    makers: dict[str, Callable[[Any], Any]] = {
        "array": np.asarray, "object": lambda v: np.array([*v, None], dtype=object)[:-1], "series": pd.Series,
        "category": lambda v: pd.Series(v, dtype="category"), "index": pd.Index, "polars": pl.Series,
        "arrow": pa.array, "generator": iter, "tuple": tuple, "masked": np.ma.masked_invalid,
        "mapping": lambda v: dict(enumerate(v)), "by name": lambda v: dict(zip("abcdef", v, strict=False)),
        "sparse": sparse.csr_matrix, "frame": pd.DataFrame, "polars frame": pl.DataFrame, "set": set,
        "nullable": lambda v: pd.Series(v, dtype="Int64"), "memory": lambda v: memoryview(bytes(v)),
    }  # fmt: skip
    if kind.startswith("polars"):
        rows = values if isinstance(values, list) else [None]
        if not all(tame(cell) for row in rows for cell in (row if isinstance(row, list) else [row])):
            return values
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return makers[kind](values) if kind in makers else values
    except Exception:
        return values


kinds = st.sampled_from(
    ["list"] * 6
    + "array object series category index polars arrow generator tuple masked mapping sparse frame set nullable".split()
    + ["by name", "polars frame", "memory"]
)
vectors = st.builds(
    dressed, columns_of(scalars) | columns_of(small) | st.lists(st.sampled_from("ab"), max_size=6), kinds
)
matrices = st.builds(
    dressed, st.lists(columns_of(scalars), max_size=5) | st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=1, max_size=6)), kinds,
)  # fmt: skip
anything = vectors | matrices | arrays() | odd


@st.composite
def nearly_right(draw: st.DrawFn) -> dict[str, Any]:
    """Rows, ids, counts and proportions that fit each other, with at most one of them spoilt."""
    m = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 3), min_size=m, max_size=m))
    ids = [name for name, size in zip("cabd", sizes, strict=False) for _ in range(size)]
    counts = {name: draw(st.integers(0, size)) for name, size in zip("cabd", sizes, strict=False)}
    X = np.random.default_rng(draw(st.integers(0, 99))).standard_normal((len(ids), 2))
    parts: dict[str, Any] = {
        "X": X, "ids": ids, "sizes": sizes, "counts": counts,
        "proportions": {name: counts[name] / size for name, size in zip("cabd", sizes, strict=False)},
        "feature_names": None, "per_bag": list(counts.values()),
    }  # fmt: skip
    spoilt = draw(st.sampled_from([None, *parts]))
    if spoilt:
        change = draw(st.sampled_from(["replace", "dress", "entry"]))
        if change == "replace":
            parts[spoilt] = draw(anything)
        elif change == "dress":
            parts[spoilt] = dressed(parts[spoilt], draw(kinds))
        elif isinstance(parts[spoilt], dict):
            parts[spoilt][draw(st.sampled_from("abcz"))] = draw(scalars)
        elif isinstance(parts[spoilt], list):
            parts[spoilt][draw(st.integers(0, len(parts[spoilt]) - 1))] = draw(scalars)
    return parts


def taken_or_refused(make: Callable[[], Any]) -> None:
    """Bags that keep every promise of `Bags`, or one line that says why not."""
    with in_time(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the libraries whose odd types come in
        try:
            bags = make()
        except InvalidInputError as error:
            text = str(error)
            assert text and "\n" not in text and len(text) < 1000, text
            return
    if isinstance(bags, np.ndarray):  # a bag target
        assert bags.dtype.names == ("bag", "size", "count")
        assert (bags["count"] >= 0).all() and (bags["count"] <= bags["size"]).all()
        return
    assert isinstance(bags, bw.Bags)
    assert bags.X.dtype in (np.float32, np.float64) and bags.X.ndim == 2 and np.isfinite(bags.X).all()
    assert bags.sizes.dtype == bags.counts.dtype == np.int64
    assert bags.sizes.sum() == bags.n_rows and (bags.sizes >= 1).all()
    assert (bags.counts >= 0).all() and (bags.counts <= bags.sizes).all()
    assert len(bags.ids) == len({*bags.ids.tolist()}) == bags.n_bags
    assert bags.feature_names is None or len(bags.feature_names) == bags.n_features
    assert repr(bags)


@given(nearly_right())
def test_constructors_take_or_refuse_what_is_nearly_right(parts: dict[str, Any]) -> None:
    p = parts
    again = lambda value: list(value) if hasattr(value, "__next__") else value
    p = {name: again(value) for name, value in p.items()}
    taken_or_refused(
        lambda: bw.Bags.from_arrays(p["X"], p["ids"], counts=p["counts"], feature_names=p["feature_names"])
    )
    taken_or_refused(lambda: bw.Bags.from_arrays(p["X"], p["ids"], proportions=p["proportions"]))
    taken_or_refused(lambda: bw.Bags.from_sizes(p["X"], p["sizes"], p["per_bag"]))
    taken_or_refused(lambda: bw.bag_target(p["ids"], counts=p["counts"]))


@given(X=anything, ids=anything, values=anything, proportions=st.booleans())
def test_constructors_take_or_refuse_anything(X: Any, ids: Any, values: Any, proportions: bool) -> None:
    what = "proportions" if proportions else "counts"
    taken_or_refused(lambda: bw.Bags.from_arrays(X, ids, **{what: values}))
    taken_or_refused(lambda: bw.Bags.from_sizes(X, ids, values))
    taken_or_refused(lambda: bw.bag_target(ids, **{what: values}))


names = st.sampled_from(["bag", "n", "x", "label", "y", "", "bag", 0, None, ("a", "b")]) | st.text(max_size=2)


@given(
    data=st.dictionaries(names, st.lists(scalars, min_size=4, max_size=4) | st.lists(numbers, min_size=4, max_size=4)),
    total=st.lists(small, min_size=4, max_size=4) | st.just([1, 1, 0, 0]),
    whole=st.booleans(),
    kind=st.sampled_from(["pandas", "polars", "arrow", "dict", "lazy"]),
    bag=st.sampled_from(["bag", "bag", "bag", "none", "x"]),
    features=st.none() | st.lists(st.sampled_from(["x", "y", "bag", "n", "none"]), max_size=2),
)
def test_frames_are_taken_or_refused(
    data: dict[Any, Any], total: list[int], whole: bool, kind: str, bag: str, features: list[str] | None
) -> None:
    if whole:
        data = data | {"bag": ["a", "a", "b", "b"], "n": total, "x": [0.5, 1.5, -1.0, 2.0]}
    if not all(tame(cell) for column in data.values() for cell in column):
        kind = "pandas"
    makers: dict[str, Callable[[Any], Any]] = {
        "pandas": pd.DataFrame, "polars": lambda d: pl.DataFrame(d, strict=False), "arrow": pa.table, "dict": dict,
        "lazy": lambda d: pl.LazyFrame(d, strict=False),
    }  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = makers[kind](data)
    except Exception:
        frame = pd.DataFrame(data)
    taken_or_refused(lambda: bw.Bags.from_frame(frame, bag=bag, count="n", features=features))
    taken_or_refused(lambda: bw.Bags.from_frame(frame, bag=bag, proportion="n", features=features))


# ---------------------------------------------------------------------- model files

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@cache
def model_document(name: str) -> str:
    """The file of a fitted model of that class."""
    oracle = bw.BagOracle(bw.LTF([1.0, -1.0], 0.2), np.zeros(2), np.eye(2), size=3, count=[0.2, 0.1, 0.4, 0.3])
    bags = oracle.sample(60, np.random.default_rng(0))
    model: Any = oracle.ltf if name in _VALUES else getattr(bw, name)().fit(bags)
    file = Path(os.environ.get("TMPDIR", "/tmp"), f"bagwise-fuzz-{os.getpid()}.json")
    try:
        bw.save(model, file)
        return file.read_text()
    finally:
        file.unlink(missing_ok=True)


def loaded_or_refused(file: Path) -> None:
    """A model that predicts, or one line that names the file and says why not."""
    with in_time():
        try:
            model = bw.load(file)
        except InvalidInputError as error:
            text = str(error)
            assert text.startswith(f"{file} must be a model that bagwise saved; ") and "\n" not in text, text
            assert len(text) < 500 + len(str(file)), text
            return
    ltf = model if isinstance(model, bw.LTF) else model.ltf_
    assert np.isfinite(ltf.normal).all() and math.isfinite(ltf.offset)
    with np.errstate(over="ignore"):  # the largest finite weights
        assert len(model.predict(np.zeros((2, ltf.n_features)))) == 2


@given(data=st.data(), name=st.sampled_from(sorted(_FIELDS)), value=json_values)
def test_models_with_one_value_changed_are_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str, value: Any
) -> None:
    document = json.loads(model_document(name))
    place: Any = document
    while True:  # walk down to a random place
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys or [0])) if keys or isinstance(place, list) else "new"
        inner = place[key] if keys else None
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        place = inner
    action = data.draw(st.sampled_from(["replace", "add", "drop", "repeat"]))
    if isinstance(place, dict):
        if action == "drop":
            place.pop(key, None)
        else:
            place[key if action == "replace" else "new"] = value
    elif action == "drop":
        del place[:1]
    elif action == "replace" and place:
        place[key] = value
    else:
        place.extend(place * 2 if action == "repeat" else [value])
    file = _file(tmp_path_factory, "model.json")
    file.write_text(json.dumps(document))
    loaded_or_refused(file)


@given(data=st.data(), name=st.sampled_from(sorted(_FIELDS)))
def test_models_with_bytes_changed_are_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    file = _file(tmp_path_factory, "model.json")
    file.write_bytes(data.draw(spoilt(model_document(name).encode())))
    loaded_or_refused(file)


@st.composite
def spoilt(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes cut short, overwritten, doubled or with some put in, in one to three places."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 12))
        put = draw(
            st.binary(max_size=6) | st.sampled_from([b"\xff" * 4, b"\0" * 8, b"1e999", b"NaN", b",", b"\n", b'"'])
        )
        action = draw(st.sampled_from(["cut", "overwrite", "insert", "delete", "double"]))
        content = {
            "cut": content[:at],
            "overwrite": content[:at] + put + content[at + len(put) :],
            "insert": content[:at] + put + content[at:],
            "delete": content[:at] + content[at + length :],
            "double": content[:at] + content[at : at + length] + content[at:],
        }[action]
    return content


# ---------------------------------------------------------------------- the program's files


@cache
def table_file(ending: str) -> bytes:
    """A small table of bags in that format."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 2))
    counts = (X[:, 0].reshape(8, 3) > 0).sum(axis=1)
    table = pa.table(
        {"x0": X[:, 0], "x1": X[:, 1], "bag": np.repeat(np.arange(8), 3), "positives": np.repeat(counts, 3)}
    )
    stream = BytesIO()
    writers: dict[str, Callable[[], None]] = {
        "parquet": lambda: pq.write_table(table, stream), "csv": lambda: pc.write_csv(table, stream),
        "arrow": lambda: pf.write_feather(table, stream),
    }  # fmt: skip
    writers[ending]()
    return stream.getvalue()


def program_ends_well(folder: Path, line: list[str]) -> None:
    """Status 0 and an output, or status 2, one message, and no output."""
    out, err, arguments = StringIO(), StringIO(), sys.argv
    output = Path(line[line.index("-o") + 1])
    before = {*folder.iterdir()}
    with in_time(), warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always", BagwiseWarning)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(sys, "argv", ["bagwise", *line])
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        with pytest.raises(SystemExit) as end:
            main()
    assert sys.argv is arguments
    status = end.value.code or 0
    said = err.getvalue()
    assert "Traceback" not in said
    if status == 0:
        assert output.exists() and json.loads(out.getvalue())
    else:
        errors = [text for text in said.splitlines() if not text.startswith("Warning: ")]
        assert status == 2 and out.getvalue() == "" and {*folder.iterdir()} == before
        assert len(errors) == 1 and errors[0].startswith("Error: "), said


@given(data=st.data(), ending=st.sampled_from(["parquet", "csv", "arrow"]), command=st.sampled_from(["fit", "predict"]))
def test_the_program_takes_or_refuses_spoilt_tables(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, ending: str, command: str
) -> None:
    file = _file(tmp_path_factory, f"t.{ending}")
    file.write_bytes(data.draw(spoilt(table_file(ending))))
    _run(file, command)


cells = st.text('abc01.,-" \n\t;é\x00', max_size=4) | st.sampled_from(
    ["1", "0", "2", "1.5", "nan", "NA", "inf", "-1", "1e400", "true", "2020-01-01", "9" * 30, "0x10", "null"]
)


@given(
    header=st.lists(st.sampled_from(["bag", "positives", "x0", "x1", "label", "", '"', "é"]) | cells, max_size=6),
    rows=st.lists(st.lists(cells, max_size=6), max_size=6),
    command=st.sampled_from(["fit", "predict"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    code=st.sampled_from(["utf-8", "utf-16", "latin-1"]),
)
def test_the_program_takes_or_refuses_any_csv(
    tmp_path_factory: pytest.TempPathFactory,
    header: list[str],
    rows: list[list[str]],
    command: str,
    end: str,
    code: str,
) -> None:
    file = _file(tmp_path_factory, "t.csv")
    file.write_bytes(end.join(",".join(row) for row in [header, *rows]).encode(code))
    _run(file, command)


@given(data=st.data(), name=st.sampled_from(sorted(set(_FIELDS) - {*_VALUES})))
def test_the_program_takes_or_refuses_spoilt_models(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    model = _file(tmp_path_factory, "model.json")
    model.write_bytes(data.draw(spoilt(model_document(name).encode())))
    table = model.with_name("t.csv")
    table.write_bytes(table_file("csv"))
    program_ends_well(model.parent, ["predict", str(model), str(table), "-o", str(model.with_name("o.csv")), "--json"])


def _run(file: Path, command: str) -> None:
    output = file.with_name("out.json" if command == "fit" else "out.csv")
    if command == "fit":
        line = ["fit", str(file), "--model", "spectral", "-o", str(output), "--json"]
    else:
        model = file.with_name("model.json")
        model.write_text(model_document("SpectralLTF"))
        line = ["predict", str(model), str(file), "-o", str(output), "--json"]
    program_ends_well(file.parent, line)


def _file(factory: pytest.TempPathFactory, name: str) -> Path:
    """A place for one input, in a folder that is emptied for each."""
    folder = factory.getbasetemp() / f"fuzz-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    for left in folder.iterdir():
        left.unlink()
    return folder / name
