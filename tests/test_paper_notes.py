"""The notes on the paper: an entry says what is printed, what holds, how it was checked, and names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTES = (ROOT / "docs" / "paper-notes.md").read_text("utf-8")
ENTRIES = re.split(r"^### ", NOTES.split("## What could not be settled")[0], flags=re.M)[1:]


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.split(".")[0] for entry in ENTRIES])
def test_an_entry_has_its_four_parts_and_its_tests_exist(entry: str) -> None:
    parts = re.findall(r"^- (\w+):", entry, flags=re.M)
    assert parts == ["Printed", "Holds", "Checked", "Test"]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", entry)
    assert named
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"


def test_entries_are_numbered_in_order() -> None:
    assert [int(entry.split(".")[0]) for entry in ENTRIES] == list(range(1, len(ENTRIES) + 1))
    for script in re.findall(r"`(benchmarks/\w+\.py)`", NOTES):
        assert (ROOT / script).exists()
