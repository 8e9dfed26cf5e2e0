"""Models as JSON files that a person can read and a program can trust.

Owns the file format: what is written of each class stands in one table, `_FIELDS`. Refuses on loading
whatever the table does not promise: an unknown class or entry, a newer version, numbers that are not
finite, other types or shapes, more than any model holds. A file is data and nothing in it is executed, so it
may come from anywhere; for pipelines of other libraries there is joblib, which must be trusted.

Vocabulary: a *parameter* is an argument of the constructor, a *field* is what a fit found; each field has a
*kind* and a shape, where ``d`` is the number of features and ``*`` any length. *Provenance* is where the model
comes from: the versions that fitted it, and a hash of its bags. docs/model-files.md is this table for people.
"""

import hashlib
import inspect
import json
import math
import os
import platform
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from bagwise.data.io import whole_file
from bagwise.errors import InvalidInputError
from bagwise.ltf import LTF

__all__ = ["load", "save"]

_FORMAT = "bagwise model"
_VERSION = 1
_LARGEST_FILE = 2**26  # bytes: a million features in 64 numbers each take less
_MOST_LISTS = 2**16  # brackets; an empty list takes 2 bytes in a file and 64 in memory
_KEYS = ("format", "version", "class", "parameters", "fields", "provenance")

# What every learner of one threshold stores; its ltf_ is made of coef_ and intercept_ again.
_LINEAR = {
    "n_features_in_": "int",
    "feature_names_in_": "text d ?",
    "classes_": "label 2",
    "coef_": "float 1 d",
    "intercept_": "float 1",
    "ambiguous_": "bool",
    "bag_fingerprints_": "int * ?",
}

# class -> (module, field -> kind and shape). A question mark: may be absent. An outcome is a float that may have
# no finite value; JSON has no word for these, so they are the text "nan", "inf" and "-inf".
_FIELDS: dict[str, tuple[str, dict[str, str]]] = {
    "LTF": ("ltf", {"normal": "float d", "offset": "float"}),
    "SpectralLTF": (
        "estimators.spectral",
        _LINEAR | {"satisfied_": "float", "mirrored_": "float", "expected_sine_": "outcome", "dispersion_": "outcome"},
    ),
    "BagLogisticRegression": (
        "estimators.logistic",
        _LINEAR
        | {
            "C_": "float",
            "C_scores_": "float * 2 ?",
            "coef_standard_errors_": "float 1 d ?",
            "intercept_standard_error_": "float ?",
            "levels_": "float 2",
            "prevalence_": "float",
            "log_likelihood_": "float",
            "overdispersion_": "outcome",
            "overdispersion_z_": "outcome",
            "separated_": "bool",
            "n_starts_": "int",
            "n_iter_": "int",
            "converged_": "bool",
            "status_": "text",
        },
    ),
    "SDPLTF": ("estimators.sdp", _LINEAR | {"n_iter_": "int"}),
    "MeanMap": ("estimators.mean", _LINEAR | {"means_": "float 2 d"}),
    "MeanLTF": ("estimators.mean", _LINEAR),
    "BagLossRegression": ("estimators.bag_loss", _LINEAR | {"n_iter_": "int"}),
    "EasyLLP": ("estimators.debiased", _LINEAR),
    "AlternatingMeanMap": ("estimators.alternating", _LINEAR | {"n_rounds_": "int"}),
    "RandomLTF": ("estimators.random", _LINEAR | {"satisfied_": "float"}),
    "ClassRatioLTF": ("estimators.random", _LINEAR),
}
_VALUES = ("LTF",)  # built from their fields at once; everything else is an estimator


def save(model: Any, path: str | os.PathLike[str], *, provenance: Mapping[str, Any] | None = None) -> None:
    """A fitted model as a JSON file; an existing file is replaced only by a complete one.

    Parameters
    ----------
    model : a fitted bagwise estimator, or an LTF
    path : the file, commonly ``….json``
    provenance : further entries for the record of where the model comes from, beside the versions of the packages
        and a hash of the bags of the fit (the same in whatever order these were); texts, numbers and lists of them

    Examples
    --------
    >>> import bagwise as bw, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "m.json")
    >>> bw.save(bw.LTF([1.0, 2.0], 0.5), file)
    >>> bw.load(file)
    LTF(normal=[1.0, 2.0], offset=0.5)
    """
    name = type(model).__name__
    if name not in _FIELDS or type(model) is not _class(name):
        raise InvalidInputError(
            f"a model to save must be one of {', '.join(_FIELDS)}; got {name}. "
            "Save the bagwise step of a pipeline, or the whole with joblib."
        )
    parameters = {} if name in _VALUES else model.get_params(deep=False)
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "class": name,
        "parameters": {key: _plain(value, f"parameter {key!r}") for key, value in parameters.items()},
        "fields": _fields_of(model, name),
        "provenance": _provenance_of(model) | {key: _plain(v, key) for key, v in dict(provenance or {}).items()},
    }
    text = json.dumps(document, indent=1, allow_nan=False)
    with whole_file(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def load(path: str | os.PathLike[str]) -> Any:
    """The model that `save` wrote; anything else is refused with the reason, and nothing is executed.

    A learner has the file's record of where it comes from as ``provenance_``.

    Examples
    --------
    >>> import bagwise as bw, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "m.json")
    >>> _ = file.write_text("{}")
    >>> bw.load(file)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bagwise.errors.InvalidInputError: ...m.json must be a model that bagwise saved; its entry "format" is not...
    """
    file = Path(path)
    try:
        return _model_of(_document(file))
    except InvalidInputError as error:
        raise InvalidInputError(f"{file} must be a model that bagwise saved; {error}") from None


# ---------------------------------------------------------------------- out


def _fields_of(model: Any, name: str) -> dict[str, Any]:
    fields = {}
    for field, declared in _FIELDS[name][1].items():
        if hasattr(model, field):
            value = getattr(model, field)
            if declared.startswith("outcome") and not math.isfinite(value):
                value = str(float(value))
            fields[field] = _plain(value, f"{name}.{field}")
        elif not declared.endswith("?"):
            raise InvalidInputError(f"a model to save must be fitted; this {name} has no {field}. Call fit first.")
    return fields


def _provenance_of(model: Any) -> dict[str, Any]:
    """What fitted the model, and to which bags; of a model that was loaded, what its file said."""
    made = {"python": platform.python_version(), "bagwise": import_module("bagwise").__version__}
    made |= {package: version(package) for package in ("numpy", "scipy", "scikit-learn")}
    if (kept := getattr(model, "bag_fingerprints_", None)) is not None:
        made["bags"] = hashlib.sha256(np.ascontiguousarray(kept, dtype="<i8").tobytes()).hexdigest()
    earlier: dict[str, Any] = getattr(model, "provenance_", {})
    return earlier if earlier and earlier.get("bags") == made.get("bags") else made  # another: fitted anew


def _plain(value: Any, what: str) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item, what) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"a model to save must hold finite numbers; {what} has {value}. Look at the fit.")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInputError(
        f"a model to save must hold numbers, text and lists of them; {what} is a {type(value).__name__}. "
        "Save a model with a plain parameter in its place."
    )


# ---------------------------------------------------------------------- in


def _document(file: Path) -> dict[str, Any]:
    """The file's JSON object, with the entries that every version has."""
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise InvalidInputError(f"it is larger than {_LARGEST_FILE:,} bytes.")
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError("it is not text.") from None
    except OSError as error:
        raise InvalidInputError(f"it cannot be read ({error.strerror}).") from None
    if not text.strip():
        raise InvalidInputError("it is empty.")
    if text.count("[") + text.count("{") > _MOST_LISTS:
        raise InvalidInputError(f"it has more than {_MOST_LISTS:,} lists.")
    try:
        document = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"it is not JSON ({error.msg} in line {error.lineno}).") from None
    except RecursionError:
        raise InvalidInputError("it is nested too deeply.") from None
    except ValueError as error:  # integers of thousands of digits, and what the two hooks refuse
        raise InvalidInputError(f"it holds what no model has ({error}).") from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise InvalidInputError(f'its entry "format" is not "{_FORMAT}".')
    found = document.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise InvalidInputError(f"its version is {_short(found)}, not a number from 1.")
    if found > _VERSION:
        raise InvalidInputError(
            f"it is of version {_short(found)} and this bagwise reads up to {_VERSION}: install a newer bagwise."
        )
    if set(document) != set(_KEYS):
        raise InvalidInputError(f"its entries are {_short(sorted(document))}, not {', '.join(_KEYS)}.")
    return document


def _model_of(document: dict[str, Any]) -> Any:
    name = document["class"]
    if not isinstance(name, str) or name not in _FIELDS:
        raise InvalidInputError(f"its class is {_short(name)}, not one of {', '.join(_FIELDS)}.")
    for part in ("parameters", "fields", "provenance"):
        if not isinstance(document[part], dict):
            raise InvalidInputError(f"its {part} are {_short(document[part])}, not an object.")
    fields = _checked_fields(name, document["fields"])
    if name in _VALUES:
        return _class(name)(**fields)
    model = _class(name)()
    model.set_params(**_checked_parameters(type(model), document["parameters"]))
    for field, value in fields.items():
        setattr(model, field, value)
    model.ltf_ = LTF(model.coef_[0], model.intercept_[0])
    model.provenance_ = _checked_provenance(document["provenance"])
    return model


def _checked_parameters(cls: type, found: dict[str, Any]) -> dict[str, Any]:
    """The parameters, each of a type that the constructor declares."""
    _refuse_unknown(found, inspect.signature(cls).parameters, "parameter")
    hints = get_type_hints(cls.__init__)  # type: ignore[misc]
    for key, value in found.items():
        if not _is_plain(value):
            raise InvalidInputError(f"its parameter {key!r} is {_short(value)}, not a number, text or a list of them.")
        if not _fits(value, hints.get(key, Any)):
            raise InvalidInputError(f"its parameter {key!r} is {_short(value)}, which {cls.__name__} does not take.")
    return found


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is of the annotated type; True and False are no numbers."""
    if get_origin(hint) in (UnionType, Union):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str | bool) and value in get_args(hint)
    if hint is float:
        return _is(value, (int, float)) and abs(value) <= sys.float_info.max
    if hint is int:
        return _is(value, int) and abs(value) <= 2**53
    if hint in (bool, str, type(None)):
        return isinstance(value, hint)
    return True


def _checked_provenance(found: dict[str, Any]) -> dict[str, Any]:
    for key, value in found.items():
        if not _is_plain(value):
            raise InvalidInputError(f"its provenance {key!r} is {_short(value)}, not a number, text or a list of them.")
    return found


def _is_plain(value: Any) -> bool:
    """Whether JSON has it as a number, a text, a truth value, nothing, or a list of these."""
    items = value if isinstance(value, list) else [value]
    return all(item is None or isinstance(item, bool | int | float | str) for item in items)


def _checked_fields(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """The fields as arrays and scalars of the declared kinds and shapes."""
    declared = _FIELDS[name][1]
    _refuse_unknown(found, declared, "field")
    lengths: dict[str, int] = {}
    fields = {}
    for field, declaration in declared.items():
        if field in found:
            fields[field] = _field(found[field], declaration.rstrip(" ?").split(), field, lengths)
        elif not declaration.endswith("?"):
            raise InvalidInputError(f"its field {field!r} is missing.")
    if "n_features_in_" in fields and lengths.setdefault("d", fields["n_features_in_"]) != fields["n_features_in_"]:
        raise InvalidInputError(
            f"its n_features_in_ is {fields['n_features_in_']}; the other fields have {lengths['d']}."
        )
    return fields


_TYPES: dict[str, tuple[type | tuple[type, ...], Any]] = {
    "float": ((int, float), np.float64),
    "int": (int, np.int64),
    "bool": (bool, np.bool_),
    "text": (str, object),
    "label": ((bool, int, float, str), None),
}


def _field(value: Any, declaration: list[str], field: str, lengths: dict[str, int]) -> Any:
    """One field. Each letter of the shapes gets its length from where it is met first."""
    kind, *shape = declaration
    if kind == "outcome":
        if value in ("nan", "inf", "-inf"):
            return float(value)
        kind = "float"
    python, dtype = _TYPES[kind]

    def check(part: Any, axes: list[str]) -> None:
        if not axes:
            if not (_is(part, python) or (kind == "label" and isinstance(part, bool))):
                raise InvalidInputError(f"its field {field!r} holds {_short(part)}, not {kind}.")
            if isinstance(part, int | float) and not abs(part) <= (2**53 if kind == "int" else sys.float_info.max):
                raise InvalidInputError(f"its field {field!r} holds {_short(part)}, which is out of range.")
            return
        axis = axes[0]
        if not isinstance(part, list):
            raise InvalidInputError(f"its field {field!r} holds {_short(part)}, not a list.")
        key = axis if axis.isalpha() else f"{axis} {field} {len(axes)}"  # a star stands for one length per axis
        wanted = int(axis) if axis.isdigit() else lengths.setdefault(key, len(part))
        if len(part) != wanted or (axis == "d" and not part):
            raise InvalidInputError(f"its field {field!r} has {len(part)} entries, not {wanted or 'at least 1'}.")
        for item in part:
            check(item, axes[1:])

    check(value, shape)
    if kind == "label" and (len({type(item) for item in value}) > 1 or len(set(value)) < len(value)):
        raise InvalidInputError(f"its field {field!r} holds {_short(value)}, not distinct labels of one type.")
    if not shape:
        return float(value) if kind == "float" else value
    array = np.array(value, dtype=dtype)
    return array if array.ndim == len(shape) else array.reshape([len(value)] + [0] * (len(shape) - 1))


def _class(name: str) -> Any:
    return getattr(import_module(f"bagwise.{_FIELDS[name][0]}"), name)


def _refuse_unknown(found: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    if unknown := [key for key in found if key not in known]:
        raise InvalidInputError(f"its {what} {_short(unknown[0])} is unknown to this version.")


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """isinstance, but True and False are no numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _short(value: Any) -> str:
    """A value for a message, on one line and not too long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _no_constant(text: str) -> Any:
    raise ValueError(f"the constant {text}")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an entry that stands twice")
    return found
