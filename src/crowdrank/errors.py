"""Exceptions and warnings of crowdrank.

CrowdrankError
├── DataError               the judgments cannot be used
│   ├── FormatError         a file cannot be read, or its columns cannot be identified
│   ├── DisconnectedError   some items were never compared with the others, and the model has no prior
│   └── SeparationError     some items only won or only lost against the rest, and the model has no prior
├── EndpointError           an endpoint of a language model refuses all requests, or does not answer
├── NothingToAskError       no question is left to ask
├── SettingError            a setting of a model, a command or an engine is invalid
└── UnknownNameError        there is no such model, item, column or query; suggests the nearest name

CrowdrankWarning
├── ConvergenceWarning      a solver stopped before it reached its tolerance
└── DataWarning             the result is valid, but something in the data weakens it
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_MAX_NAMES_SHOWN = 8


class CrowdrankError(Exception):
    """Base class of all errors that crowdrank raises on purpose.

    Parameters
    ----------
    problem : str
        What is wrong, where, and what was found.
    remedy : str, default ""
        What to change in a Python call. ``str(error)`` is the problem followed by the remedy.
    option : str, default ""
        The parameter that the remedy sets, for example ``"columns"``. Another interface (the command line) can use
        it to describe the remedy in its own words, in place of `remedy`.
    value : str or mapping, optional
        An example value for `option`, for example ``{"winner": "COLUMN"}``.

    Examples
    --------
    >>> error = FormatError("votes.csv: not UTF-8.", remedy="Pass encoding='latin-1'.", option="encoding")
    >>> str(error)
    "votes.csv: not UTF-8. Pass encoding='latin-1'."
    >>> error.problem, error.option
    ('votes.csv: not UTF-8.', 'encoding')
    """

    def __init__(
        self, problem: str = "", *, remedy: str = "", option: str = "", value: str | Mapping[str, str] | None = None
    ):
        super().__init__(problem)
        self.problem, self.remedy, self.option, self.value = problem, remedy, option, value

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}" if self.remedy else self.problem


class DataError(CrowdrankError, ValueError):
    """The judgments cannot be used as they are."""


class FormatError(DataError):
    """A file cannot be read, or its columns cannot be identified.

    Attributes
    ----------
    suggestion : mapping of str to str or None, optional
        Columns that were guessed from the cells, and that read the file.
    """

    suggestion: Mapping[str, str | None] | None = None


class DisconnectedError(DataError):
    """Some items cannot be compared with others, not even indirectly."""


class SeparationError(DataError):
    """Some items only won or only lost against the rest, so their scores have no finite estimate."""


class EndpointError(CrowdrankError):
    """An endpoint of a language model refuses all requests, or does not answer."""


class NothingToAskError(CrowdrankError):
    """No question is left to ask, or no annotator is available."""


class SettingError(CrowdrankError, ValueError):
    """A setting has an invalid value."""


class UnknownNameError(CrowdrankError, KeyError):
    """No item, column, model or setting has this name.

    Parameters
    ----------
    kind : str
        The kind of name: "item", "column", "model".
    name : object
        The name that was given.
    known : iterable
        The names that exist. The message suggests the nearest one, or lists the first few.
    meant : str, default ""
        What was probably meant, such as the usual name of an abbreviation; by default `name`.

    Examples
    --------
    >>> print(UnknownNameError("item", "Tokio", ["Tokyo", "Delhi"]))
    No item named 'Tokio'; did you mean 'Tokyo'?
    """

    def __init__(self, kind: str, name: object, known: Iterable[object], meant: str = ""):
        names = [str(k) for k in known]
        super().__init__(f"No {kind} named {str(name)!r}; {_suggestion(kind, meant or str(name), names)}")
        # Exceptions are pickled as type and args; these rebuild the error in another process.
        self.args = (kind, name, names, meant)


def _suggestion(kind: str, name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    if nearest := get_close_matches(name, known, n=1, cutoff=0.5):
        return f"did you mean {nearest[0]!r}?"
    if not [other for other in known if other]:
        return f"no {kind} has a name here."
    return "known: " + ", ".join(known[:_MAX_NAMES_SHOWN]) + (", …" if len(known) > _MAX_NAMES_SHOWN else ".")


class AmbiguousNameError(CrowdrankError, KeyError):
    """Several things have this name, such as an item of several queries."""

    def __str__(self) -> str:
        return str(self.args[0])


class CrowdrankWarning(UserWarning):
    """Base class of all warnings that crowdrank emits on purpose."""


class ConvergenceWarning(CrowdrankWarning):
    """A solver stopped before it reached its tolerance."""


class DataWarning(CrowdrankWarning):
    """The result is valid, but something in the data weakens it."""


# The filters of `warnings` belong to the whole process: two threads in `warnings.catch_warnings` undo each other's
# changes. A context variable belongs to one thread.
_MUTED: ContextVar[tuple[type[CrowdrankWarning], ...]] = ContextVar("_MUTED", default=())


def issue_warning(message: str | CrowdrankWarning, category: type[CrowdrankWarning], stacklevel: int = 1) -> None:
    """Issue a warning like `warnings.warn`, unless the calling thread has muted its category."""
    if not issubclass(category, _MUTED.get()):
        warnings.warn(message, category, stacklevel=stacklevel + 1)


@contextmanager
def muted_warnings(*categories: type[CrowdrankWarning]) -> Iterator[None]:
    """Mute warnings of crowdrank in this thread; all of them if no category is given."""
    token = _MUTED.set((*_MUTED.get(), *(categories or (CrowdrankWarning,))))
    try:
        yield
    finally:
        _MUTED.reset(token)
