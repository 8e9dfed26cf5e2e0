"""The one check that every matrix passes: what is kept, and the words of each refusal."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bagwise.arrays import as_matrix, first_non_number
from bagwise.errors import InvalidInputError


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_are_kept_without_a_copy(dtype):
    X = np.arange(6, dtype=dtype).reshape(3, 2)
    assert as_matrix(X) is X


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.float16, np.longdouble])
def test_other_numbers_become_float64(dtype):
    found = as_matrix(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert found.dtype == np.float64 and found.tolist() == [[0, 1], [1, 0]]


def test_lists_frames_and_objects_are_numbers_too():
    assert as_matrix([[1, 2.5]]).tolist() == [[1, 2.5]]
    assert as_matrix(pd.DataFrame({"a": [1, 2], "b": [True, False]})).tolist() == [[1, 1], [2, 0]]
    assert as_matrix(np.array([[1, 2.5]], dtype=object)).tolist() == [[1, 2.5]]


def test_rows_become_contiguous_whatever_the_layout():
    X = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    for view in (X, X[::2], X[:, ::-1]):
        found = as_matrix(view)
        assert found.flags.c_contiguous and (found == view).all()


def test_sums_that_overflow_are_not_taken_for_infinities():
    X = np.full((4, 2), 1.7e308)
    assert as_matrix(X) is X
    assert as_matrix(np.full((4, 2), 3e38, np.float32)).dtype == np.float32


NAMES = ("age", "dose")
REFUSALS = [
    (np.array([[0.0, 1], [2, np.nan]]), "X must be finite; got nan in row 1, column 1 ('dose'). Impute or drop"),
    (np.array([[np.inf, 1], [-np.inf, 1]]), "X must be finite; got inf in row 0, column 0 ('age')"),
    (np.array([[1, 2], [-np.inf, 1]], np.float32), "X must be finite; got -inf in row 1, column 0 ('age')"),
    (np.zeros(3), "X must have two dimensions (rows, features); got 1 of shape (3,). For one feature use X.reshape"),
    (np.zeros((2, 2, 2)), "X must have two dimensions (rows, features); got 3 of shape (2, 2, 2)"),
    (np.zeros((0, 2)), "X must have at least one row and one feature; got shape (0, 2)"),
    (np.zeros((2, 0)), "X must have at least one row and one feature; got shape (2, 0)"),
    (np.zeros((2, 2), complex), "X must be real; got complex numbers. Pass real and imaginary parts as two columns"),
    ([[1, 2], [3, "old"]], "X must be numeric; got 'old' in row 1, column 1 ('dose'). Encode text, categories and"),
    (np.array([["1", "2"]]), "X must be numeric; got '1' in row 0, column 0 ('age')"),
    (np.array([["2020-01-01", "2020-01-02"]], "M8[D]"), "X must be numeric; got '2020-01-01' in row 0, column 0"),
    (np.array([[1, b"2"]], object), "X must be numeric; got \"b'2'\" in row 0, column 1"),
    (np.array([[1, {}]], object), "X must be numeric; got dtype object (float() argument must be"),
    (pd.DataFrame({"a": [1], "b": ["x"]}), "X must be numeric; got 'x' in row 0, column 1"),
    (
        np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]),
        "X must have no masked entries; got one in row 0, column 1",
    ),
    (sp.csr_matrix(np.eye(2)), "X must be a dense matrix; got a sparse csr_matrix. Pass X.toarray()"),
]


@pytest.mark.parametrize(("X", "message"), REFUSALS)
def test_what_is_no_finite_table_is_refused_by_place(X, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        as_matrix(X, column_names=NAMES)


def test_without_names_a_column_is_its_number():
    with pytest.raises(InvalidInputError, match=r"in row 0, column 1\. Impute"):
        as_matrix([[0.0, np.nan]], what="rows")


def test_a_mask_that_hides_nothing_is_no_obstacle():
    assert as_matrix(np.ma.masked_array([[1.0]], mask=[[False]])).tolist() == [[1.0]]


def test_the_first_non_number_is_found_where_it_stands():
    assert first_non_number(np.zeros(3)) is None
    assert first_non_number(np.array(["1"])) == (0,)
    assert first_non_number(np.array([1, None, pd.Timestamp("2020-01-01")], object)) == (2,)
    assert first_non_number(np.array([], dtype=str)) is None
