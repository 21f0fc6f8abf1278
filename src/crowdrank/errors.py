"""What can go wrong, as one tree.

CrowdrankError
├── DataError               the judgments themselves
│   ├── FormatError         a file cannot be read, or its columns cannot be understood
│   ├── IslandsError        items that cannot be compared, and no prior to bridge them
│   └── SeparationError     items that only win or only lose, and no prior to hold them
├── NothingToAskError       every question that may be put has been
├── SettingError            a setting of a model, a command or an engine
├── UnknownNameError        no such model, item, column or query; names the nearest
└── AmbiguousNameError      an item of several queries, named without its query

CrowdrankWarning
├── ConvergenceWarning      a solver stopped before its tolerance was met
└── DataWarning             the answer stands, but the data weaken it
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class CrowdrankError(Exception):
    """Anything crowdrank raises on purpose."""


class DataError(CrowdrankError, ValueError):
    """The judgments cannot be used as they are."""


class FormatError(DataError):
    """A file cannot be read, or its columns cannot be understood."""


class IslandsError(DataError):
    """Some items cannot be compared with others, even indirectly."""


class SeparationError(DataError):
    """Some items only win, or only lose: their scores have no finite value."""


class NothingToAskError(CrowdrankError):
    """Every question that may be put has been, or nobody can be asked."""


class SettingError(CrowdrankError, ValueError):
    """A setting has a value it cannot have."""


class UnknownNameError(CrowdrankError, KeyError):
    """Nothing goes by this name."""

    def __init__(self, kind: str, name: object, known: Iterable[object]):
        names = [str(k) for k in known]
        near = get_close_matches(str(name), names, n=1, cutoff=0.5)
        if near:
            hint = f"did you mean {near[0]!r}?"
        else:
            hint = "known: " + ", ".join(names[:8]) + (", …" if len(names) > 8 else "") + "."
        self.message = f"No {kind} named {str(name)!r}; {hint}"
        super().__init__(kind, name, names)  # as it was made, so that it can be sent from one process to another

    def __str__(self) -> str:
        return self.message


class AmbiguousNameError(CrowdrankError, KeyError):
    """Several things have this name, such as an item of several queries."""

    def __str__(self) -> str:
        return str(self.args[0])


class CrowdrankWarning(UserWarning):
    """Anything crowdrank warns of on purpose."""


class ConvergenceWarning(CrowdrankWarning):
    """A solver stopped before its tolerance was met."""


class DataWarning(CrowdrankWarning):
    """The answer stands, but something in the data weakens it."""
