"""Models in files: what comes back is what went, and no file can do harm."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bagwise as bw
from bagwise.errors import InvalidInputError
from bagwise.persist import _FIELDS, _KEYS, _VALUES, _VERSION


def saved(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    file = tmp_path / "m.json"
    bw.save(bw.LTF([1.0, -2.5, 0.1], 0.3), file)
    return file, json.loads(file.read_text())


def refusal(file: Path) -> str:
    with pytest.raises(InvalidInputError) as error:
        bw.load(file)
    text = str(error.value)
    assert text.startswith(f"{file} must be a model that bagwise saved; ") and "\n" not in text
    assert len(text) < 400 + len(str(file))
    return text


@given(
    normal=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    offset=st.floats(allow_nan=False, allow_infinity=False),
)
def test_an_ltf_comes_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, normal: list[float], offset: float
) -> None:
    file = tmp_path_factory.mktemp("m") / "m.json"
    bw.save(bw.LTF(normal, offset), file)
    assert bw.load(file) == bw.LTF(normal, offset)


def test_a_file_says_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    bw.save(bw.LTF([1.0]), file, provenance={"data": "train.parquet"})
    document = json.loads(file.read_text())
    assert {"bagwise", "numpy", "scikit-learn", "python", "data"} <= document["provenance"].keys()
    assert document["version"] == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty."),
        (b" \n", "it is empty."),
        (b"\x80\x04K\x01.", "it is not text."),
        (b"{", "it is not JSON"),
        (b"[1]", 'its entry "format" is not'),
        (b"{}", 'its entry "format" is not'),
        (b"[" * 60_000, "it is nested too deeply."),
        (b"[" + b"[]," * 100_000 + b"[]]", "it has more than 65,536 lists."),
        (b"1" * 5_000, "it holds what no model has"),
        (b'{"a": NaN}', "it holds what no model has (the constant NaN)."),
        (b'{"a": 1, "a": 2}', "it holds what no model has (an entry that stands twice)."),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "m.json"
    file.write_bytes(content)
    assert sentence in refusal(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "it cannot be read (No such file or directory)." in refusal(tmp_path / "none.json")
    assert "it cannot be read (Is a directory)." in refusal(tmp_path)


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (("version",), 2, "it is of version 2 and this bagwise reads up to 1: install a newer bagwise."),
        (("version",), 10**300, "…"),  # shortened
        (("version",), True, "its version is True, not a number from 1."),
        (("version",), "1", "its version is '1', not a number from 1."),
        (("class",), "os.system", "its class is 'os.system', not one of LTF"),
        (("class",), ["LTF"], "its class is ['LTF'], not one of LTF"),
        (("more",), 1, "its entries are ['class', 'fields', 'format', 'more', "),
        (("fields",), [1], "its fields are [1], not an object."),
        (("fields", "__class__"), 1, "its field '__class__' is unknown to this version."),
        (("fields", "normal"), None, "its field 'normal' holds None, not a list."),
        (("fields", "normal"), [], "its field 'normal' has 0 entries, not at least 1."),
        (("fields", "normal"), [[1.0]], "its field 'normal' holds [1.0], not float."),
        (("fields", "normal"), [True], "its field 'normal' holds True, not float."),
        (("fields", "normal"), ["1"], "its field 'normal' holds '1', not float."),
        (("fields", "offset"), 10**400, "which is out of range."),
        (("fields", "offset"), [0.0], "its field 'offset' holds [0.0], not float."),
    ],
)
def test_a_model_that_was_tampered_with_is_refused(
    tmp_path: Path, place: tuple[str, ...], value: Any, sentence: str
) -> None:
    file, document = saved(tmp_path)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    file.write_text(json.dumps(document))
    assert sentence in refusal(file)


def test_numbers_that_overflow_are_refused(tmp_path: Path) -> None:
    file, _ = saved(tmp_path)
    file.write_text(file.read_text().replace("-2.5", "1e999"))
    assert "its field 'normal' holds inf, which is out of range." in refusal(file)


def test_a_missing_field_is_refused(tmp_path: Path) -> None:
    file, document = saved(tmp_path)
    del document["fields"]["offset"]
    file.write_text(json.dumps(document))
    assert "its field 'offset' is missing." in refusal(file)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    with open(file, "wb") as stream:
        stream.truncate(2**40)  # sparse: takes no room
    assert "it is larger than 67,108,864 bytes." in refusal(file)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(data=st.data(), value=anything)
def test_any_value_anywhere_is_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, value: Any
) -> None:
    file, document = saved(tmp_path_factory.mktemp("m"))
    part = data.draw(st.sampled_from([document, document["fields"], document["parameters"]]))
    part[data.draw(st.sampled_from([*part, "new"]))] = value
    file.write_text(json.dumps(document))
    try:
        assert isinstance(bw.load(file), bw.LTF)
    except InvalidInputError as error:
        assert "\n" not in str(error)


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"must be one of LTF.*; got dict"):
        bw.save({}, tmp_path / "m.json")

    class LTF:
        normal = np.ones(1)
        offset = 0.0

    with pytest.raises(InvalidInputError, match=r"must be one of LTF.*; got LTF"):
        bw.save(LTF(), tmp_path / "m.json")
    with pytest.raises(InvalidInputError, match=r"folder .* must exist"):
        bw.save(bw.LTF([1.0]), tmp_path / "no" / "m.json")
    assert not any(tmp_path.iterdir())


def test_a_model_knows_its_versions_and_its_bags(tmp_path: Path) -> None:
    def record(bags: bw.Bags) -> dict[str, Any]:
        bw.save(bw.SpectralLTF().fit(bags), tmp_path / "m.json")
        found: dict[str, Any] = bw.load(tmp_path / "m.json").provenance_
        return found

    bags = fitted("SpectralLTF")[1]
    same = [bags, bags[np.arange(bags.n_bags)[::-1]]]
    other = [bags[:-1], bw.Bags.from_sizes(bags.X + 1e-12, bags.sizes, bags.counts)]
    assert record(bags).keys() == {"python", "bagwise", "numpy", "scipy", "scikit-learn", "bags"}
    assert len({record(one)["bags"] for one in same}) == 1
    assert len({record(one)["bags"] for one in [bags, *other]}) == 3


def test_provenance_outlives_a_second_saving_but_not_a_second_fit(tmp_path: Path) -> None:
    model, bags = fitted("SpectralLTF")
    bw.save(model, tmp_path / "a.json", provenance={"data": "first.parquet"})
    bw.save(bw.load(tmp_path / "a.json"), tmp_path / "b.json", provenance={"note": "copied"})
    assert bw.load(tmp_path / "b.json").provenance_ == bw.load(tmp_path / "a.json").provenance_ | {"note": "copied"}
    bw.save(bw.load(tmp_path / "a.json").fit(bags[:50].X, bags[:50].target()), tmp_path / "c.json")
    assert "data" not in bw.load(tmp_path / "c.json").provenance_


def test_the_documented_format_is_the_one_that_is_checked() -> None:
    page = (Path(__file__).parents[1] / "docs" / "model-files.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    listed = {row[0].strip("`"): set(row[1].replace("`", "").split(", ")) for row in rows if len(row) == 2}
    words = {name: {f"{field} {kind}" for field, kind in fields.items()} for name, (_, fields) in _FIELDS.items()}
    every = set.intersection(*(words[name] for name in LEARNERS))
    assert listed["every learner"] == every
    for name, found in words.items():
        own = found - (every if name in LEARNERS else set())
        assert listed[name] == (own or {"nothing else"}), name
    assert {f"`{key}`" for key in _KEYS} <= {row[0] for row in rows} and f"version {_VERSION}" in page


# ---------------------------------------------------------------------- learners

LEARNERS = [name for name in _FIELDS if name not in _VALUES]
# What a fit finds and a file leaves out, each with the reason.
LEFT_OUT = {
    "MeanMap": {"_sums"},  # for partial_fit only: two matrices of d x d, which would outweigh the model
    "MeanLTF": {"_sums"},  # likewise
    "SDPLTF": {"result_"},  # the solver's record of one run, as large as the data and nothing that predicts
}


def fitted(name: str) -> tuple[Any, bw.Bags]:
    # Three rows each, as the SDP takes no more; all counts, as the mean map needs several.
    oracle = bw.BagOracle(bw.LTF([1.0, -1.0, 0.5], 0.2), np.zeros(3), np.eye(3), size=3, count=[0.2, 0.1, 0.4, 0.3])
    bags = oracle.sample(200, np.random.default_rng(0))
    X, y = bags.as_rows()
    return getattr(bw, name)().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y), bags


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_comes_back_with_everything_it_found(tmp_path: Path, name: str) -> None:
    model, bags = fitted(name)
    bw.save(model, tmp_path / "m.json")
    back = bw.load(tmp_path / "m.json")
    assert type(back) is type(model) and back.get_params() == model.get_params()
    assert back.provenance_ and vars(back).pop("provenance_")
    found = {key for key in vars(model) if key not in model.get_params()} - LEFT_OUT.get(name, set())
    assert found == {key for key in vars(back) if key not in back.get_params()}
    for key in found:
        np.testing.assert_array_equal(getattr(back, key), getattr(model, key), err_msg=key)
    frame = pd.DataFrame(bags.X, columns=["a", "b", "c"])
    for answer in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, answer):
            np.testing.assert_array_equal(getattr(back, answer)(frame), getattr(model, answer)(frame))


@pytest.mark.parametrize("classes", [["no", "yes"], [False, True], [-1, 1]])
def test_labels_come_back_as_they_were(tmp_path: Path, classes: list[Any]) -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = bw.SpectralLTF().fit(X, np.array(classes)[(X[:, 0] > 0).astype(int)])
    bw.save(model, tmp_path / "m.json")
    back = bw.load(tmp_path / "m.json")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.classes_.dtype == model.classes_.dtype


@pytest.mark.parametrize("name", LEARNERS)
def test_an_unfitted_learner_is_not_saved(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"must be fitted; this {name} has no n_features_in_. Call fit first"):
        bw.save(getattr(bw, name)(), tmp_path / "m.json")


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (("parameters", "shell"), "rm", "its parameter 'shell' is unknown to this version."),
        (("parameters", "pairs"), {"a": 1}, "its parameter 'pairs' is {'a': 1}, not a number, text or a list of them."),
        (("parameters", "pairs"), "some", "its parameter 'pairs' is 'some', which SpectralLTF does not take."),
        (("parameters", "fit_intercept"), 1, "its parameter 'fit_intercept' is 1, which SpectralLTF does not take."),
        (("parameters", "holdout"), "0.5", "its parameter 'holdout' is '0.5', which SpectralLTF does not take."),
        (("provenance", "data"), {"a": 1}, "its provenance 'data' is {'a': 1}, not a number, text or a list of them."),
        (("fields", "coef_"), [1.0, 2.0, 3.0], "its field 'coef_' has 3 entries, not 1."),
        (("fields", "coef_"), [[1.0, 2.0]], "its field 'coef_' has 2 entries, not 3."),
        (("fields", "n_features_in_"), 4, "its n_features_in_ is 4; the other fields have 3."),
        (("fields", "n_features_in_"), 3.0, "its field 'n_features_in_' holds 3.0, not int."),
        (("fields", "feature_names_in_"), ["a", "b", 1], "its field 'feature_names_in_' holds 1, not text."),
        (("fields", "ambiguous_"), 1, "its field 'ambiguous_' holds 1, not bool."),
        (("fields", "classes_"), [0, 0], "not distinct labels of one type."),
        (("fields", "classes_"), [0, "1"], "not distinct labels of one type."),
        (("fields", "dispersion_"), "much", "its field 'dispersion_' holds 'much', not float."),
    ],
)
def test_a_learner_that_was_tampered_with_is_refused(
    tmp_path: Path, place: tuple[str, str], value: Any, sentence: str
) -> None:
    file = tmp_path / "m.json"
    bw.save(fitted("SpectralLTF")[0], file)
    document = json.loads(file.read_text())
    document[place[0]][place[1]] = value
    file.write_text(json.dumps(document))
    assert sentence in refusal(file)


def test_a_parameter_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    model = fitted("SpectralLTF")[0].set_params(random_state=np.random.RandomState(0))
    with pytest.raises(InvalidInputError, match="parameter 'random_state' is a RandomState"):
        bw.save(model, tmp_path / "m.json")
    model.set_params(random_state=None, holdout=float("nan"))
    with pytest.raises(InvalidInputError, match="must hold finite numbers; parameter 'holdout' has nan"):
        bw.save(model, tmp_path / "m.json")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_survives_joblib_as_scikit_learn_users_expect(tmp_path: Path, name: str) -> None:
    import joblib

    model, bags = fitted(name)
    joblib.dump(model, tmp_path / "m.joblib")
    back = joblib.load(tmp_path / "m.joblib")
    np.testing.assert_array_equal(back.predict(bags), model.predict(bags))
    assert back.get_params() == model.get_params()
