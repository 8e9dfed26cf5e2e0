"""Rows of results on disk: one line of JSON per finished run, appended so that no crash can hurt the lines before.

Owns the file format and what two programs on one folder owe each other. A row is appended by a single write to a file
opened for appending, and synced; a torn last line (power cut, full disk) is skipped on reading and ended before the
next row. A program *claims* a data set of a cell before it works on it, by a lock on one byte of a file, which the
system takes back when the program dies, however it dies. Where there are no such locks work may be done twice; the
rows of one key are then equal but for their seconds, and the first counts.

Refuses to interpret rows. Vocabulary: a *key* is (cell name, learner, data set), it names a run.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from bagwise.errors import InvalidInputError
from bagwise.lab.tables import Cell

__all__ = ["Claims", "Key", "Results", "Row"]

Key = tuple[str, str, int]
_FILE, _CLAIMS = "runs.jsonl", "claims.lock"


@dataclass(frozen=True, slots=True)
class Row:
    """One run: a learner on a data set of a cell.

    ``accuracy`` is the share of right test instances, ``error`` the exact Pr[prediction != label]; both of the
    threshold as it was returned, whatever the cell's balance. A run that failed has a ``failure`` and neither.
    ``seconds`` passed on the clock during the fit, ``cpu`` on the processor, which does not mind the neighbours.
    """

    cell: Cell
    learner: str
    dataset: int
    seed: str
    accuracy: float | None
    error: float | None
    seconds: float
    cpu: float | None = None
    note: str = ""
    failure: str = ""
    commit: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    finished: str = ""

    @property
    def key(self) -> Key:
        """What it is the result of."""
        return self.cell.name, self.learner, self.dataset

    def to_json(self) -> str:
        """One line."""
        return json.dumps({"name": self.cell.name} | asdict(self), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> "Row":
        """The row of a line; entries that newer versions have added are ignored."""
        entries = json.loads(line)
        known = {f.name for f in fields(cls)} & set(entries)
        row = cls(**{name: entries[name] for name in known} | {"cell": Cell.from_spec(entries["cell"])})
        if not row.sound:
            raise ValueError("a row with numbers out of range, or other things where numbers belong")
        return row

    @property
    def sound(self) -> bool:
        """Whether its entries are what they must be; a folder of results may come from anywhere."""
        text = (self.learner, self.seed, self.note, self.failure, self.commit, self.finished)
        return (
            all(isinstance(value, str) for value in text)
            and isinstance(self.dataset, int)
            and self.dataset >= 0
            and (bool(self.failure) or (_between(self.accuracy, 1.0) and _between(self.error, 1.0)))
            and _between(self.seconds, inf)
            and (self.cpu is None or _between(self.cpu, inf))
            and isinstance(self.versions, dict)
            and isinstance(self.machine, dict)
        )


def _between(value: Any, high: float) -> bool:
    return isinstance(value, int | float) and 0 <= value <= high


class Results:
    """The rows of a folder, read as far as they have been written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> results = Results(folder.name)
    >>> results.append(Row(Cell("centred", False, 0.0, 10, 3, 1, 50), "A2", 0, "1", 0.9, 0.1, 0.01))
    >>> [row.accuracy for row in Results(folder.name).refresh()]
    [0.9]
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.rows: dict[Key, Row] = {}
        self.failures: dict[Key, Row] = {}
        self.unreadable = 0
        self._position = 0

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / _FILE

    def refresh(self) -> list[Row]:
        """Read what was written since; the new rows, without those of keys that were there."""
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            file.seek(self._position)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]  # the rest is being written, or torn
        self._position += len(whole)
        return [row for line in whole.splitlines() if line.strip() and (row := self._take(line))]

    def _take(self, line: bytes) -> Row | None:
        try:
            row = Row.from_json(line.decode("utf-8"))
        except (ValueError, KeyError, TypeError, AttributeError):
            self.unreadable += 1
            return None
        if row.key in self.rows:
            return None
        if row.failure:
            self.failures[row.key] = row
            return None
        self.failures.pop(row.key, None)
        self.rows[row.key] = row
        return row

    def append(self, row: Row) -> None:
        """Write a row so that it survives a crash from here on."""
        line = row.to_json().encode("utf-8") + b"\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            if new:
                _sync_folder(self.folder)
            if _torn(descriptor):
                line = b"\n" + line
            written = os.write(descriptor, line)
            if written < len(line):
                raise OSError(f"{self.path}: a row was only half written; the disk may be full. Make room and go on.")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file as durable as its rows."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # folders cannot be opened on this system
        return
    try:
        os.fsync(descriptor)
    except OSError:  # nor synced on this file system
        pass
    finally:
        os.close(descriptor)


def _torn(descriptor: int) -> bool:
    """Whether the file ends within a line."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size == 0:
        return False
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) != b"\n"


class Claims:
    """Who works on what, among programs on one folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._descriptor: int | None = None
        self._path = Path(folder) / _CLAIMS

    def close(self) -> None:
        """Give back the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def held(self, cell: Cell, dataset: int) -> Iterator[bool]:
        """Whether the data set is ours while the block runs; False when another program has it."""
        place = int.from_bytes(sha256(f"{cell.name}/{dataset}".encode()).digest()[:7], "big") >> 1
        if not self._locked(place):
            yield False
            return
        try:
            yield True
        finally:
            self._unlock(place)

    def _locked(self, place: int) -> bool:
        try:
            import fcntl
        except ImportError:  # not a POSIX system
            return True
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except BlockingIOError:
            return False
        except PermissionError:  # the same on some systems
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def _unlock(self, place: int) -> None:
        if self._descriptor is None:
            return
        import fcntl

        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, place)
        except OSError:
            pass


def require_folder(folder: Path) -> None:
    """Refuse a folder that holds no results, with what to do."""
    if not (folder / _FILE).is_file():
        raise InvalidInputError(
            f"{folder} must be a folder of results; there is no {_FILE} in it. Make some: bagwise reproduce table1 "
            f"-o {folder}"
        )
