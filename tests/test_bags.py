"""Bags: every way in, every way out, and the words of every refusal."""

import datetime
import pickle
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import bagwise as bw
from bagwise.bags import is_bag_target
from bagwise.errors import InvalidInputError
from strategies import bags as any_bags

Bags = bw.Bags
X3 = np.array([[0.0], [1.0], [2.0]])
ABA = ["a", "b", "a"]
DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-01"], "M8[D]")
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def contents(bags: bw.Bags) -> dict[object, tuple[int, list[list[float]]]]:
    """id -> (count, rows as a sorted list): what bags are whatever their order."""
    ends = bags.starts
    return {
        bags.ids[b].item() if hasattr(bags.ids[b], "item") else bags.ids[b]: (
            int(bags.counts[b]),
            sorted(bags.X[ends[b] : ends[b + 1]].tolist()),
        )
        for b in range(bags.n_bags)
    }


# ---------------------------------------------------------------------- from arrays


@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_rows_of_a_bag_may_lie_anywhere(n, m, seed):
    rng = np.random.default_rng(seed)
    ids = rng.integers(m, size=n)
    X = rng.standard_normal((n, 2))
    distinct = np.unique(ids)
    counts = {int(i): int(rng.integers((ids == i).sum() + 1)) for i in distinct}
    expected = {int(i): (counts[int(i)], sorted(X[ids == i].tolist())) for i in distinct}
    assert contents(Bags.from_arrays(X, ids, counts=counts)) == expected
    assert contents(Bags.from_arrays(X, ids, counts=[counts[int(i)] for i in distinct])) == expected
    text = [f"bag {i}" for i in ids]
    named = Bags.from_arrays(X, text, counts={f"bag {i}": k for i, k in counts.items()})
    assert contents(named) == {f"bag {i}": value for i, value in expected.items()}


def test_bags_keep_the_order_of_their_first_rows_and_rows_their_own():
    bags = Bags.from_arrays(np.arange(6.0)[:, None], [5, 1, 5, 9, 1, 5], counts={1: 2, 5: 0, 9: 1})
    assert bags.ids.tolist() == [5, 1, 9]
    assert bags.sizes.tolist() == [3, 2, 1] and bags.counts.tolist() == [0, 2, 1]
    assert bags.X.ravel().tolist() == [0, 2, 5, 1, 4, 3]
    assert bags.starts.tolist() == [0, 3, 5, 6]


def test_grouped_rows_are_not_copied():
    X = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    assert Bags.from_arrays(X, [3, 3, 1, 1], counts={1: 1, 3: 0}).X is X
    assert Bags.from_sizes(X, [1, 3], [1, 2]).X is X
    assert Bags.from_target(X, bw.bag_target([3, 3, 1, 1], counts={1: 1, 3: 0})).X is X


@pytest.mark.parametrize(
    ("ids", "counts"),
    [
        ([(1, 2), (3, 4), (1, 2)], {(1, 2): 1, (3, 4): 0}),
        ([(1, 2), (3,), (1, 2)], {(1, 2): 1, (3,): 0}),
        ([1, "1", 1], {1: 1, "1": 0}),
        ([0.5, 1.5, 0.5], {0.5: 1, 1.5: 0}),
        ([True, False, True], {True: 1, False: 0}),
        ([b"x", b"y", b"x"], {b"x": 1, b"y": 0}),
        (pd.Series(["x", "y", "x"], dtype="category"), {"x": 1, "y": 0}),
        (pl.Series(["x", "y", "x"]), {"x": 1, "y": 0}),
        (pa.array(["x", "y", "x"]), {"x": 1, "y": 0}),
        (DAYS.astype("M8[ns]"), {pd.Timestamp("2020-01-01"): 1, pd.Timestamp("2020-01-02"): 0}),
        (DAYS, {datetime.date(2020, 1, 1): 1, datetime.date(2020, 1, 2): 0}),
        (ABA, pd.Series([0, 1], index=["b", "a"])),
        (ABA, pd.Series([1, 0, 1], index=ABA)),  # one entry per row, all of a bag agree
    ],
)  # fmt: skip
def test_any_hashable_is_an_id(ids, counts):
    bags = Bags.from_arrays(X3, ids, counts=counts)
    assert bags.sizes.tolist() == [2, 1] and bags.counts.tolist() == [1, 0]
    assert bw.bag_target(ids, counts=counts)["count"].tolist() == [1, 0, 1]


@pytest.mark.parametrize("values", [[2 / 3, 0.0], [np.float32(2 / 3), 0], [0.6666666, 0], [Fraction(2, 3), 0]])
def test_proportions_are_counts_to_rounding(values):
    bags = Bags.from_arrays(np.zeros((4, 1)), [1, 1, 1, 2], proportions=values)
    assert bags.counts.tolist() == [2, 0] and bags.counts.dtype == np.int64
    assert_array_equal(bags.proportions, [2 / 3, 0])


def test_a_float32_proportion_of_a_bag_of_millions_is_read_to_the_nearest_count():
    size, count = 3_000_000, 1_234_567
    bags = Bags.from_sizes(np.zeros((size, 1), np.float32), [size], [count])
    exact = Bags.from_arrays(bags.X, np.zeros(size, int), proportions=[count / size])
    assert exact.counts[0] == count
    # float32 keeps seven digits: 0.4115223 times three million is off by up to 0.1, too much to be sure.
    with pytest.raises(InvalidInputError, match="The nearest count is 12345"):
        Bags.from_arrays(bags.X, np.zeros(size, int), proportions=[np.float32(count / size) + np.float32(6e-8)])


# ---------------------------------------------------------------------- tables


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_tables_of_all_three_kinds_give_the_same_bags(make):
    columns = {
        "ward": ["w2", "w1", "w2", "w3"],
        "relapsed": [1, 0, 1, 1],
        "age": [61.0, 44.0, 52.5, 70.0],
        "name": ["p", "q", "r", "s"],
        "smoker": [True, False, True, True],
        "visits": [3, 1, 2, 9],
        "label": [1, 0, 0, 1],
    }
    bags = Bags.from_frame(make(columns), bag="ward", count="relapsed")
    assert bags.feature_names == ("age", "smoker", "visits")  # neither text nor the label
    assert bags.X.dtype == np.float64 and bags.X.flags.c_contiguous
    assert contents(bags) == {
        "w1": (0, [[44.0, 0, 1]]),
        "w2": (1, [[52.5, 1, 2], [61.0, 1, 3]]),
        "w3": (1, [[70.0, 1, 9]]),
    }
    chosen = Bags.from_frame(make(columns), bag="ward", count="relapsed", features=["label", "age"])
    assert chosen.feature_names == ("label", "age")


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_float32_tables_stay_float32(make):
    columns = {"b": [1, 1, 2], "k": [0.5, 0.5, 1.0], "u": np.float32([1, 2, 3]), "v": np.float32([4, 5, 6])}
    bags = Bags.from_frame(make(columns), "b", proportion="k")
    assert bags.X.dtype == np.float32 and bags.X.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert bags.counts.tolist() == [1, 1]
    mixed = Bags.from_frame(make({**columns, "v": np.float64([4, 5, 6])}), "b", proportion="k")
    assert mixed.X.dtype == np.float64


GOOD = {"b": ["u", "u", "v"], "k": [1, 1, 0], "x": [1.0, 2.0, 3.0], "t": ["p", "q", "r"]}
FRAME_REFUSALS = [
    ({}, {"bag": "ward"}, "column 'ward' must be in the table; it has b, k, x, t"),
    ({}, {"count": "n"}, "column 'n' must be in the table"),
    ({}, {"features": ["z"]}, "column 'z' must be in the table"),
    ({}, {"features": ["x", "x"]}, "features must be distinct columns other than 'b' and 'k'; got x, x"),
    ({}, {"features": ["k"]}, "features must be distinct columns other than 'b' and 'k'; got k"),
    ({}, {"features": []}, "features must be distinct columns other than 'b' and 'k'; got none"),
    ({}, {"features": ["t"]}, "features must be numeric; column 't' is not. Encode it as numbers or leave it out"),
    ({"x": ["p", "q", "r"]}, {}, "a table of bags must have numeric features besides 'b', 'k' and 'label'; got b, k"),
    ({"k": [1, 2, 0]}, {}, "'k' must be the same in all rows of a bag; got 1 and 2 in bag 'u'. It is the total of"),
    ({"k": [3, 3, 0]}, {}, "counts must lie in 0..size; got 3 in bag 'u' of size 2. Counts are positives per bag"),
    ({"k": [0, 0, -1]}, {}, "counts must lie in 0..size; got -1 in bag 'v' of size 1"),
    ({"k": [0.5, 0.5, 1.0]}, {}, "counts must be integers; got 0.5 in bag 'u'. For fractions pass proportions="),
    ({"k": ["1", "1", "0"]}, {}, "counts must be numbers; got '1'. Convert them first"),
    ({"b": ["u", None, "v"]}, {}, "column 'b' must have no missing values; got 1. Fill them or drop their bags"),
    ({"k": [1, None, 0]}, {}, "column 'k' must have no missing values; got 1"),
    ({"x": [1.0, None, 3.0]}, {}, "column 'x' must have no missing values; got 1"),
    ({"x": [1.0, np.inf, 3.0]}, {}, "the features must be finite; got inf in row 1, column 0 ('x')"),
]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(("change", "arguments", "message"), FRAME_REFUSALS)
def test_a_table_that_is_none_of_bags_is_refused_by_column(make, change, arguments, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        Bags.from_frame(make({**GOOD, **change}), **{"bag": "b", "count": "k", **arguments})


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_an_empty_table_is_refused(make):
    empty = make({"b": np.zeros(0, int), "k": np.zeros(0, int), "x": np.zeros(0)})
    with pytest.raises(InvalidInputError, match=r"a table of bags must have rows; got none \(columns b, k, x\)"):
        Bags.from_frame(empty, "b", "k")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_total_that_is_nan_is_called_so_and_not_different(make):
    words = "no missing values; got 2" if make is pd.DataFrame else r"must lie in \[0, 1\]; got nan in bag 'u'"
    with pytest.raises(InvalidInputError, match=words):
        Bags.from_frame(make({**GOOD, "k": [np.nan, np.nan, 0.5]}), "b", proportion="k")


def test_tables_with_one_name_twice_are_refused():
    columns = [[1, 1], [1, 1], [0.5, 1.5], [2.0, 3.0]]
    for twice in (
        pd.DataFrame(np.transpose(columns), columns=["b", "k", "x", "x"]),
        pa.table(columns, names=["b", "k", "x", "x"]),
    ):
        with pytest.raises(InvalidInputError, match="names must be distinct; 'x' stands more than once"):
            Bags.from_frame(twice, "b", "k")
    with pytest.raises(InvalidInputError, match="column names must be distinct; 'x'"):
        Bags.from_arrays(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), [0], counts=[1])
    with pytest.raises(InvalidInputError, match="column names must be distinct; 'u'"):
        Bags.from_arrays([[1.0, 2.0]], [0], counts=[1], feature_names=["u", "u"])


@pytest.mark.parametrize("thing", [{"b": [1]}, pl.LazyFrame({"b": [1]}), pd.Series([1]), np.zeros((2, 2))])
def test_what_is_no_table_in_memory_is_refused(thing):
    words = f"must be a pandas, polars or pyarrow one in memory; got a {type(thing).__name__}. Collect a lazy one"
    with pytest.raises(InvalidInputError, match=words):
        Bags.from_frame(thing, "b", "k")


def test_a_table_needs_one_total():
    for totals in ({}, {"count": "k", "proportion": "k"}):
        with pytest.raises(InvalidInputError, match="needs exactly one of count= and proportion="):
            Bags.from_frame(pd.DataFrame(GOOD), "b", **totals)


# ---------------------------------------------------------------------- refusals of arrays


def arrays(X=X3, ids=ABA, **totals):
    return lambda: Bags.from_arrays(X, ids, **totals)


def sizes(sizes, counts, X=X3, **more):
    return lambda: Bags.from_sizes(X, sizes, counts, **more)


REFUSALS = {
    # counts and proportions
    "count above size": (arrays(counts={"a": 3, "b": 0}), "counts must lie in 0..size; got 3 in bag 'a' of size 2"),
    "count below 0": (arrays(counts=[1, -1]), "counts must lie in 0..size; got -1 in bag 'b' of size 1"),
    "count not an integer": (arrays(counts=[0.5, 1]), "counts must be integers; got 0.5 in bag 'a'. For fractions"),
    "count nan": (arrays(counts=[np.nan, 1]), "counts must be integers; got nan in bag 'a'"),
    "count None": (arrays(counts={"a": None, "b": 1}), "counts must be integers; got nan in bag 'a'"),
    "count huge": (arrays(counts=[1e300, 1]), "counts must be integers; got 1e+300 in bag 'a'"),
    "count text": (arrays(counts=["1", "1"]), "counts must be numbers; got '1'. Convert them first."),
    "count something": (arrays(counts={"a": {}, "b": 1}), "counts must be numbers; float() argument must be"),
    "proportion of no count": (
        arrays(proportions=[0.3, 0]),
        "proportions must be multiples of 1/size; got 0.3 in bag 'a' of size 2. The nearest count is 1: pass counts=, "
        "or 1/2.",
    ),
    "proportion rounded": (
        arrays(np.zeros((3, 1)), [7, 7, 7], proportions=[0.33]),
        "proportions must be multiples of 1/size; got 0.33 in bag 7 of size 3. The nearest count is 1: pass counts=, "
        "or 1/3.",
    ),
    "proportion above 1": (arrays(proportions=[2, 0]), "proportions must lie in [0, 1]; got 2.0 in bag 'a'. For"),
    "proportion nan": (arrays(proportions=[np.nan, 0]), "proportions must lie in [0, 1]; got nan in bag 'a'"),
    "no total": (arrays(), "exactly one of counts= and proportions= must be given"),
    "two totals": (arrays(counts=[1, 1], proportions=[1, 1]), "exactly one of counts= and proportions= must be given"),
    "totals too few": (arrays(counts=[1]), "counts must be one per distinct id, in sorted order; got shape (1,) for 2"),
    # ids and totals that miss each other
    "id without a count": (arrays(counts={"a": 1}), "each bag must have an entry in counts; none for bag 'b' (1 of 2"),
    "count without a bag": (
        arrays(counts={"a": 1, "b": 1, "c": 0}),
        "each entry of counts must belong to a bag with rows; 'c' has none (1 such entries)",
    ),
    "two counts": (
        arrays(counts=pd.Series([1, 0, 2], index=ABA)),
        "counts must be the same wherever a bag stands; got 1 and 2 for bag 'a'",
    ),
    "ids too few": (arrays(ids=["a"], counts=[1]), "ids must be one per row; got 1 for 3 rows"),
    "ids a table": (arrays(ids=np.zeros((3, 1)), counts=[1]), "ids must be one per row; got an array of shape (3, 1)"),
    "id None": (arrays(ids=["a", None, "a"], counts=[1]), "each row must have a bag id; got None in row 1. Drop such"),
    "id nan": (arrays(ids=[1.0, 2.0, np.nan], counts=[1]), "each row must have a bag id; got nan in row 2"),
    "id NaT": (arrays(ids=np.array(["2020", "NaT", "2020"], "M8[D]"), counts=[1]), "bag id; got NaT in row 1"),
    "id NA": (arrays(ids=np.array([1, pd.NA, 1], object), counts=[1]), "row must have a bag id; got <NA> in row 1"),
    "id a list": (arrays(ids=[[1], [2], [1]], counts=[1, 0]), "ids must be hashable; unhashable type: 'list'. Use"),
    "ids without an order": (arrays(ids=[1, "1", 1], counts=[1, 0]), "ids that cannot be sorted need counts as a map"),
    "date out of range": (
        arrays(ids=np.array(["2020-01-01"] * 3, "M8[D]"), counts=[4]),
        "counts must lie in 0..size; got 4 in bag 2020-01-01 of size 3",
    ),
    # sizes
    "size 0": (sizes([3, 0], [1, 0]), "sizes must be at least 1; got 0 in bag 1. Leave empty bags out"),
    "sizes do not add up": (sizes([1, 1], [1, 0]), "sizes must add up to the number of rows; got 2 for 3 rows"),
    "size not an integer": (sizes([1.5, 1.5], [1, 0]), "sizes must be integers; got 1.5 in bag 0. They are numbers of"),
    "sizes a table": (sizes([[1], [2]], [[1], [0]]), "sizes must be one per bag; got an array of shape (2, 1)"),
    "counts of another length": (sizes([1, 2], [1]), "counts must be one per bag; got shape (1,) for 2 bags"),
    "one id twice": (sizes([1, 2], [1, 0], ids=["u", "u"]), "each bag must have an id of its own; got 'u' more than"),
    "ids of another length": (sizes([1, 2], [1, 0], ids=["u"]), "ids must be one per bag; got 1 for 2 bags"),
    # features
    "nan": (arrays(X=[[0.0], [np.nan], [1.0]], counts=[1, 1]), "X must be finite; got nan in row 1, column 0"),
    "no rows": (arrays(X=np.zeros((0, 1)), ids=[], counts=[]), "X must have at least one row and one feature"),
    "names too few": (arrays(X=np.zeros((3, 2)), counts=[1, 1], feature_names=["u"]), "feature_names must be one per"),
    "no ids": (lambda: bw.bag_target([], counts=[]), "bags must have at least one row; got none"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_none_of_bags_is_refused_in_one_sentence(name):
    call, message = REFUSALS[name]
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        call()


# ---------------------------------------------------------------------- the bag target


@given(any_bags(), st.integers(0, 2**32 - 1))
def test_the_target_carries_bags_through_any_order_of_the_rows(bags, seed):
    X, y = bags.as_rows()
    assert is_bag_target(y) and not is_bag_target(X) and not is_bag_target([1, 2])
    order = np.random.default_rng(seed).permutation(len(X))
    assert contents(Bags.from_target(X[order], y[order])) == contents(bags)
    again = bw.bag_target(y["bag"][order], counts={i: k for i, k in zip(bags.ids, bags.counts, strict=True)})
    assert_array_equal(again, y[order])


def test_a_fold_that_cuts_a_bag_is_refused():
    X, y = Bags.from_sizes(np.zeros((6, 1)), [2, 3, 1], [1, 1, 1], ids=["u", "v", "w"]).as_rows()
    message = re.escape("all rows of a bag must stay together; got 2 of the 3 rows of bag 'v' (1 bags are cut). Split")
    with pytest.raises(InvalidInputError, match=message):
        Bags.from_target(X[:4], y[:4])
    assert Bags.from_target(X[2:], y[2:]).ids.tolist() == ["v", "w"]


def test_a_target_of_other_rows_is_refused():
    X, y = Bags.from_sizes(np.zeros((3, 1)), [1, 2], [1, 1]).as_rows()
    with pytest.raises(InvalidInputError, match="X and y must have one record per row; got 2 rows and 3 records"):
        Bags.from_target(X[:2], y)
    altered = y.copy()
    altered["count"][2] = 0
    with pytest.raises(InvalidInputError, match="'count' must be the same in all rows of a bag; got 1 and 0 in bag 1"):
        Bags.from_target(X, altered)


def test_proportions_of_rows_must_agree_within_a_bag():
    assert Bags.from_row_proportions(X3, ABA, [0.5, 1, 0.5]).counts.tolist() == [1, 1]
    with pytest.raises(InvalidInputError, match=r"'proportion' must be the same .* got 0\.5 and 1\.0 in bag 'a'"):
        Bags.from_row_proportions(X3, ABA, [0.5, 1, 1])


# ---------------------------------------------------------------------- views


RAGGED = Bags.from_sizes(
    np.arange(12.0).reshape(6, 2), [1, 3, 2], [0, 2, 1], ids=["u", "v", "w"], feature_names=["f", "g"]
)


@pytest.mark.parametrize(
    ("key", "ids"),
    [
        (slice(1, None), "vw"), (slice(None, -1), "uv"), (slice(None, None, 2), "uw"), (slice(None, None, -1), "wvu"),
        (slice(2, 1), ""), (1, "v"), (-1, "w"), ([2, 0], "wu"), ([1, 1], "vv"), ([], ""), ([-1], "w"),
        ([True, False, True], "uw"), (np.array([False, False, False]), ""), (np.array([0, 2], np.uint8), "uw"),
    ],
)  # fmt: skip
def test_bags_are_selected_with_their_rows(key, ids):
    chosen = RAGGED[key]
    assert "".join(chosen.ids) == ids and len(chosen) == chosen.n_bags == len(ids)
    whole = contents(RAGGED)
    expected = np.concatenate([np.zeros((0, 2)), *(np.array(whole[i][1]) for i in ids)])
    assert_array_equal(chosen.X, expected)
    assert chosen.counts.tolist() == [whole[i][0] for i in ids]
    assert chosen.feature_names == ("f", "g")
    assert repr(chosen).startswith("Bags(no bags, 2 features" if not ids else f"Bags({len(ids)} bag")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([True, False], r"a mask must have one entry per bag \(3\); got shape \(2,\)"),
        ([3], r"bag numbers must lie in 0\.\.2; got 3\.\.3"),
        ([-4, 1], r"bag numbers must lie in 0\.\.2; got -4\.\.1"),
        ("u", "bags are selected by a slice, a mask or integers; got <U1"),
        ([0.5], "bags are selected by a slice, a mask or integers; got float64"),
        ([[0]], r"got int64 of shape \(1, 1\)"),
    ],
)
def test_what_selects_no_bags_is_refused(key, message):
    with pytest.raises(InvalidInputError, match=message):
        RAGGED[key]


def test_slices_are_views():
    assert np.shares_memory(RAGGED[1:].X, RAGGED.X)


def test_figures_of_bags():
    assert RAGGED.proportions.tolist() == [0, 2 / 3, 1 / 2]
    assert RAGGED.starts.tolist() == [0, 1, 4, 6] and RAGGED.row_bags().tolist() == [0, 1, 1, 1, 2, 2]
    assert (RAGGED.n_bags, RAGGED.n_rows, RAGGED.n_features) == (3, 6, 2)
    assert repr(RAGGED) == "Bags(3 bags, 6 rows, 2 features; sizes 1 to 3, 50.0 % positive)"
    assert RAGGED.key is None and RAGGED[[1]].key == (3, 2) and RAGGED[:0].key is None
    assert RAGGED[[2]].balanced and not RAGGED.balanced


def test_bags_cannot_be_changed_and_survive_a_pickle():
    with pytest.raises(AttributeError):
        RAGGED.counts = RAGGED.sizes
    assert contents(pickle.loads(pickle.dumps(RAGGED))) == contents(RAGGED)


# ---------------------------------------------------------------------- parts


@given(any_bags(), st.integers(0, 6))
def test_parts_together_are_the_whole(bags, cut):
    parts = [part for part in (bags[:cut], bags[cut:]) if part.n_bags]
    assert contents(Bags.concat(parts)) == contents(bags)


@given(any_bags(max_bags=9), st.floats(0.01, 0.99), st.integers(0, 2**32 - 1))
def test_a_split_loses_no_bag_and_leaves_none_empty(bags, fraction, seed):
    if bags.n_bags < 2:
        return
    first, second = bags.split(fraction, np.random.default_rng(seed))
    assert contents(first) | contents(second) == contents(bags)
    assert first.n_bags == min(max(round(fraction * bags.n_bags), 1), bags.n_bags - 1)
    assert first.n_bags + second.n_bags == bags.n_bags


def test_splits_that_cannot_be_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"fraction must lie strictly between 0 and 1; got 1\.5"):
        RAGGED.split(1.5, rng)
    with pytest.raises(InvalidInputError, match="a split needs at least two bags; got 1"):
        RAGGED[:1].split(0.5, rng)


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match="concat needs at least one part; got none"):
        Bags.concat([])
    with pytest.raises(InvalidInputError, match="parts must have the same features; part 0 has f, g, part 1 has 1"):
        Bags.concat([RAGGED, Bags.from_sizes(X3, [3], [1])])
    with pytest.raises(InvalidInputError, match="each bag must have an id of its own; got 'u' more than once"):
        Bags.concat([RAGGED, RAGGED[[0]]])


def test_ids_of_two_kinds_stay_apart_when_parts_are_joined():
    numbers, text = (Bags.from_arrays([[0.0]], [name], counts=[1]) for name in (1, "1"))
    assert Bags.concat([numbers, text]).ids.tolist() == [1, "1"]
