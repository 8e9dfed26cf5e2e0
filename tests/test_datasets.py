"""Tables and their bags: shapes, totals, files of every kind that a caller may have, and each refusal by its words."""

import zipfile

import numpy as np
import pytest

import bagwise as bw
from bagwise.data.datasets import (
    load_adult,
    load_breast_cancer,
    load_digits,
    load_german,
    load_keel,
    make_bags,
)
from bagwise.errors import InvalidInputError

ADULT = """39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Wife, White, Male, 2174, 0, 40, US, <=50K
50, Private, 83311, HS-grad, 13, Married-civ-spouse, Exec-managerial, Husband, White, Male, 0, 0, 13, US, >50K

"""
ADULT_TEST = """|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Exec-managerial, Own-child, Black, Male, 0, 0, 40, US, <=50K.
"""


@pytest.fixture(params=["folder", "zip"])
def adult(request, tmp_path):
    files = {"adult.data": ADULT, "adult.test": ADULT_TEST}
    if request.param == "folder":
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        return tmp_path
    with zipfile.ZipFile(tmp_path / "carrier.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"carrier/data/{name}", text)
    return tmp_path / "carrier.whl"


def test_adult_joins_both_files_and_encodes_text(adult):
    table = load_adult(adult)
    assert table.y.tolist() == [0, 1, 0]
    assert table.X[:, table.feature_names.index("age")].tolist() == [39, 50, 25]
    assert table.X[:, table.feature_names.index("occupation=Exec-managerial")].tolist() == [0, 1, 1]
    assert table.keys["occupation"].tolist() == ["Adm-clerical", "Exec-managerial", "Exec-managerial"]


def test_bags_by_a_key_leave_its_own_columns_out(adult):
    bags = load_adult(adult).bags_by("occupation")
    assert dict(zip(bags.ids, bags.counts, strict=True)) == {"Adm-clerical": 0, "Exec-managerial": 1}
    assert not any(name.startswith("occupation") for name in bags.feature_names)


def test_random_bags_hold_the_true_totals():
    table = load_breast_cancer()
    truth = {row.tobytes(): label for row, label in zip(table.X, table.y, strict=True)}
    bags = table.random_bags(7, np.random.default_rng(3))
    assert bags.n_bags == 569 // 7
    counts = [sum(truth[row.tobytes()] for row in bags[b].X) for b in range(bags.n_bags)]
    assert bags.counts.tolist() == counts


def test_digits_are_positive_from_five():
    table = load_digits()
    assert (table.y == (table.keys["digit"] >= 5)).all()
    assert load_digits().rows(table.y == 1).y.all()


def test_standardised_columns_have_unit_variance_and_constants_stay_finite():
    table = load_digits().standardised()  # the first pixel is always 0
    spread = table.X.std(axis=0)
    assert np.all(np.isclose(spread, 1) | (spread == 0))
    assert np.isfinite(table.X).all()


def test_german_and_keel_read_their_formats(tmp_path):
    (tmp_path / "german.data").write_text(
        "A11 6 A34 " + " ".join(["1"] * 17) + " 1\nA12 9 A32 " + " ".join(["1"] * 17) + " 2\n"
    )
    assert load_german(tmp_path).y.tolist() == [0, 1]
    (tmp_path / "magic.dat").write_text("1.5,2.5,g\n3.5,4.5,h\n")
    assert load_keel(tmp_path / "magic.dat", "magic", positive="g").X.tolist() == [[1.5, 2.5], [3.5, 4.5]]
    (tmp_path / "ring.dat").write_text(
        "@relation ring\n@attribute A1 real\n@attribute Class {0,1}\n@data\n1.5,0\n2.5,1\n"
    )
    assert load_keel(tmp_path, "ring", positive="1").feature_names == ("A1",)


def test_make_bags_repeats_for_a_seed_and_can_be_learnt_from():
    X, y = make_bags(400, size=5, n_features=4, random_state=1)
    again, _ = make_bags(400, size=5, n_features=4, random_state=1)
    assert (X == again).all()
    # Random guessing satisfies at most C(5, 2) / 32 = 31 % of such bags; 400 bags have a standard error of 2.3 %.
    assert bw.SpectralLTF().fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda folder: load_adult(folder / "nowhere"), "there is no"),
        (lambda folder: load_adult(folder), "must hold adult.data"),
        (lambda folder: load_keel(folder / "other.csv", "magic", "g"), "must be magic.dat"),
        (lambda folder: load_keel(folder, "ragged", "g"), "must have 3 columns; got 2 in line 2"),
        (lambda folder: load_keel(folder, "classes", "g"), "must be of two classes"),
        (lambda folder: load_breast_cancer().random_bags(1000, np.random.default_rng(0)), "size must lie in 1..569"),
        (lambda folder: load_breast_cancer().bags_by("ward"), "key must be one of no column; got 'ward'"),
    ],
)
def test_refusals_say_what_must_hold(attempt, words, tmp_path):
    (tmp_path / "other.csv").write_text("1,2,g\n")
    (tmp_path / "ragged.dat").write_text("1,2,g\n1,g\n")
    (tmp_path / "classes.dat").write_text("1,2,g\n1,2,g\n")
    with pytest.raises(InvalidInputError, match=words):
        attempt(tmp_path)
