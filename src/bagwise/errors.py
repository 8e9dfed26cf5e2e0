"""What can go wrong, by kind.

    BagwiseError
    ├── InvalidInputError      input that breaks a stated rule (also a ValueError)
    ├── NotIdentifiableError   valid input from which no linear threshold can be learnt (also a ValueError)
    └── MissingExtraError      an optional dependency is not installed (also an ImportError)
    BagwiseWarning
    ├── IdentifiabilityWarning what the bags leave open, with the numbers
    └── FitWarning             a fit that ended otherwise than asked for, with the reason

Each message says what must hold, what came and where, and what to do, on one line.
"""

from collections.abc import Iterable

__all__ = [
    "BagwiseError",
    "InvalidInputError",
    "NotIdentifiableError",
    "MissingExtraError",
    "BagwiseWarning",
    "IdentifiabilityWarning",
    "FitWarning",
    "listed",
    "one_line",
]


class BagwiseError(Exception):
    """Base of every error that bagwise raises on purpose."""


class InvalidInputError(BagwiseError, ValueError):
    """Input that breaks a stated rule."""


class NotIdentifiableError(BagwiseError, ValueError):
    """Bags from which no linear threshold can be learnt, however many there are."""


class MissingExtraError(BagwiseError, ImportError):
    """An optional dependency is missing; the message names the extra that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed; run: pip install 'bagwise[{extra}]'")


class BagwiseWarning(UserWarning):
    """Base of every warning that bagwise gives."""


class IdentifiabilityWarning(BagwiseWarning):
    """What the bags leave open (a sign, a direction), with the numbers that say so."""


class FitWarning(BagwiseWarning):
    """A fit that ended otherwise than asked for, with the reason."""


def listed(names: Iterable[object]) -> str:
    """Names from someone's data, fit for a message; of many, the first dozen."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - 12} more" if len(texts) > 12 else ""
    return one_line(", ".join(texts[:12])) + more


def one_line(text: str, most: int = 400) -> str:
    """Text that may hold anything, on one line without what a terminal would obey, and not too long."""
    shown = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return shown if len(shown) <= most else shown[: most - 1] + "…"
