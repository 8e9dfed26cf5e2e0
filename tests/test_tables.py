"""The experiments as data: names, published numbers, which learner stands where."""

from dataclasses import replace

import pytest

from bagwise.lab.learners import LEARNERS
from bagwise.lab.tables import TABLES, Cell, Recipe, _published, published

EVERY = [cell for table in TABLES.values() for cell, _ in table.entries]


def test_all_56_published_numbers_stand_in_table_1() -> None:
    printed = [published(*entry) for entry in TABLES["table1"].entries]
    assert sum(number is not None for number in printed) == len(_published()) == 56
    # Means of the two halves' columns, added up by hand from the printed tables.
    of_learner = {name: [p for (c, l), p in zip(TABLES["table1"].entries, printed, strict=True) if l == name and p]
                  for name in ("A2", "R", "S")}  # fmt: skip
    assert {name: len(numbers) for name, numbers in of_learner.items()} == {"A2": 24, "R": 24, "S": 8}
    assert sum(of_learner["S"]) == pytest.approx(88.40 + 67.31 + 57.83 + 58.69 + 90.10 + 70.80 + 61.12 + 62.39)


def test_nothing_is_published_for_other_cells() -> None:
    cell = Cell("general", False, 0.0, 50, 50, 35, 2000)
    assert published(cell, "A2") == 94.33 and published(cell, "R") == 56.97
    for other in (replace(cell, offset=True), replace(cell, flip=0.1), replace(cell, m=500), replace(cell, k=25, d=11)):
        assert published(other, "A2") is None
    assert published(cell, "ML") is None


def test_table_1_is_24_cells_with_s_in_its_columns() -> None:
    entries = TABLES["table1"].entries
    assert len({(c.law, c.d, c.q, c.k) for c, _ in entries}) == 24
    assert {c.m for c, learner in entries if learner == "S"} == {200}
    assert {c.m for c, learner in entries if learner != "S"} == {2000}
    assert {(c.q, c.k) for c, learner in entries if learner == "S"} == {(2, 1), (3, 1)}
    assert {learner for _, learner in entries} == {"A2", "R", "S", "ML", "true"}


def test_the_sizes_of_the_appendix() -> None:
    sizes = {name: len({cell for cell, _ in table.entries}) for name, table in TABLES.items()}
    # 2 dimensions x (q, k) x m, for one or two laws, and three flips
    assert sizes["standard"] == 2 * 3 * 3
    assert sizes["standard-sdp"] == 2 * 1 * 3
    assert sizes["homogeneous"] == sizes["offset"] == 2 * 2 * 6 * 3
    assert sizes["homogeneous-sdp"] == sizes["offset-sdp"] == 2 * 2 * 2 * 3
    assert sizes["flips-centred"] == sizes["flips-general"] == 2 * 6 * 3 * 3


def test_learners_stand_only_where_they_take_the_bags() -> None:
    for table in TABLES.values():
        for cell, learner in table.entries:
            assert learner in LEARNERS
            if learner in ("S", "S+"):
                assert cell.q <= 3 and not cell.flip
            if learner in ("A3", "A3one"):
                assert not cell.balanced and cell.law == "standard"
            if learner == "A2":
                assert not cell.offset
            if learner == "MeanMap":
                assert cell.k == "any"
        learners = {learner for _, learner in table.entries}
        assert {"ML", "true"} <= learners, "ours and the ceiling stand beside the paper's columns"


def test_names_tell_cells_apart_and_keep_their_meaning() -> None:
    distinct = set(EVERY) | {replace(cell, recipe=Recipe(mean_scale=0.5)) for cell in EVERY}
    assert len({cell.name for cell in distinct}) == len(distinct)
    # All results hang on these names: a change makes every stored row another experiment's.
    assert Cell("centred", False, 0.0, 10, 2, 1, 2000).name == "centred/d=10/q=2/k=1/m=2000"
    assert Cell("general", True, 0.25, 50, 10, "any", 100).name == "general/offset/flip=0.25/d=50/q=10/k=any/m=100"
    assert Cell("general", False, 0, 3, 2, 1, 5, Recipe(cov_ridge=0.1)).name.endswith("/m=5/cov_ridge=0.1")


def test_a_cell_comes_back_from_its_spec() -> None:
    for cell in (EVERY[0], replace(EVERY[-1], recipe=Recipe(offset_scale=0.5))):
        assert Cell.from_spec(cell.spec | {"new": 1}) == cell


def test_another_recipe_is_another_table_of_the_same_shape() -> None:
    table = TABLES["table1"]
    moved = table.under(Recipe(mean_scale=0.5))
    assert len(moved.entries) == len(table.entries)
    assert not set(moved.entries) & set(table.entries)
    assert table.under(Recipe()) == table
