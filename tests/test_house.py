"""The house itself: exports, import order, light import, documented names, locks."""

import ast
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import bagwise as bw

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "bagwise"
MODULES = sorted(module.name for module in pkgutil.walk_packages([str(SOURCE)], "bagwise."))
HOME: dict[str, str] = bw._HOME
EXTRAS = {"pyarrow", "dask", "distributed", "matplotlib", "plotly", "typer", "rich", "pandas", "polars"}


def loaded_by(statement: str) -> set[str]:
    """Top-level packages, and all submodules, that a fresh interpreter has after the statement."""
    code = f"import sys\n{statement}\nimport json\nprint(json.dumps(list(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(json.loads(output))


# ---------------------------------------------------------------------- names


def test_every_export_is_importable_from_its_home_and_nothing_else_is_exported() -> None:
    assert list(bw.__all__) == [*HOME, *bw._MODULES]
    for name, home in bw._MODULES.items():
        assert getattr(bw, name) is import_module(f"bagwise.{home}")
    for name, home in HOME.items():
        module = import_module(f"bagwise.{home}")
        assert getattr(bw, name) is getattr(module, name)
        assert name in module.__all__
        assert name in dir(bw)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = bw.nothing


def test_type_checkers_see_the_same_exports() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: f"{node.module}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = {name: f"bagwise.{home}".rpartition(".")[0] for name, home in bw._MODULES.items()}
    assert seen == {name: f"bagwise.{home}" for name, home in HOME.items()} | modules


@pytest.mark.parametrize("name", HOME)
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(bw, name)
    text = inspect.getdoc(thing) or ""
    assert len(text.splitlines()[0]) > 15, "a docstring begins with a sentence"
    if inspect.isclass(thing):
        for member, value in public_members(thing):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"
    assert ">>>" in text, "a public name shows a run"
    assert f"::: bagwise.{HOME[name]}.{name}\n" in (ROOT / "docs" / "reference.md").read_text()


def public_members(cls: type) -> list[tuple[str, Any]]:
    """Methods and properties that the house itself defines on a class."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("bagwise")]
    return [
        (name, value)
        for base in ours
        for name, value in vars(base).items()
        if not name.startswith("_") and isinstance(value, property | classmethod | staticmethod | type(public_members))
    ]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    file = SOURCE.joinpath(*name.split(".")[1:])
    source = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text()
    text = ast.get_docstring(ast.parse(source)) or ""
    assert text.split("\n\n")[0].endswith((".", ":")) and "TODO" not in text
    assert not {"utils", "helpers", "common", "misc"} & set(name.split("."))


def test_every_learner_can_be_saved() -> None:
    from bagwise.persist import _FIELDS

    # BagClassifier holds a classifier of scikit-learn, for which there is joblib.
    learners = {name: home for name, home in HOME.items() if home.startswith("estimators.") and name != "BagClassifier"}
    assert learners.items() <= {name: home for name, (home, _) in _FIELDS.items()}.items()


# ---------------------------------------------------------------------- imports


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_by("import bagwise")
    assert not loaded & (EXTRAS | {"numpy", "scipy", "sklearn", "numba", "narwhals"})


def test_no_name_loads_an_extra_before_it_is_used() -> None:
    # scikit-learn loads some itself, to recognise their tables.
    heavy = (EXTRAS | {"numba", "pyarrow.parquet", "pyarrow.dataset"}) - loaded_by("import sklearn.base")
    assert not loaded_by("from bagwise import *") & heavy


def test_the_nouns_load_neither_scipy_nor_scikit_learn() -> None:
    assert not loaded_by("from bagwise import Bags, LTF, bag_target") & {"scipy", "sklearn"}


def test_the_program_shows_help_without_arrays() -> None:
    loaded = loaded_by("import bagwise.cli.app")
    assert not loaded & {"numpy", "scipy", "sklearn", "numba", "pyarrow"}


def test_the_import_contract_covers_every_room() -> None:
    contract = config()["tool"]["importlinter"]["contracts"][0]
    assert contract["exhaustive"] is True
    layers = [room.strip() for layer in contract["layers"] for room in layer.split("|")]
    there = {module.name for module in pkgutil.iter_modules([str(SOURCE)])}
    assert {room.strip("()") for room in layers} >= there
    assert not {f"({room})" for room in there} & set(layers), "a room that exists is not optional"
    assert {room for room in layers if "(" not in room} == there


# ---------------------------------------------------------------------- the repository


def config() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(name: str) -> dict[str, list[str]]:
    """Package with marker -> its hashes."""
    text = (ROOT / "requirements" / name).read_text()
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.M).strip())
    return {entry.split(" \\")[0]: re.findall(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries}


def test_the_locks_agree_are_hashed_and_name_no_host() -> None:
    run, dev = locked("run.txt"), locked("dev.txt")
    for lock in (run, dev):
        assert all("==" in package and hashes for package, hashes in lock.items())
    plain = lambda package: package.split(" ;")[0]  # the larger lock may need a package under more conditions
    assert {plain(package) for package in run} <= {plain(package) for package in dev}
    for name in ("run.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert "://" not in text and "index" not in text and "make lock" in text


def test_every_direct_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs" / "decisions" / "001-dependencies.md").read_text()
    project = config()["project"]
    named = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    named += [d for group in config()["dependency-groups"].values() for d in group if isinstance(d, str)]
    for requirement in named:
        package = re.split(r"[\[<>=~ ]", requirement)[0]
        assert package == "bagwise" or package.removeprefix("pytest-") in reasons, package


def test_version_stands_in_one_place_and_the_citation_follows() -> None:
    assert config()["project"]["dynamic"] == ["version"]
    assert f"\nversion: {bw.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_extras_are_what_the_errors_name() -> None:
    extras = config()["project"]["optional-dependencies"]
    for file in SOURCE.rglob("*.py"):
        for package, extra in re.findall(r'MissingExtraError\(\s*"([^"]+)", "([^"]+)"', file.read_text()):
            assert any(re.match(rf"{package}\b", requirement) for requirement in extras[extra]), (file, package)
