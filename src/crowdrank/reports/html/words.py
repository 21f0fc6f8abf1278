"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, one: str, many: str = "") -> str:
    """
    >>> count(1, "item"), count(1200, "query", "queries")
    ('1 item', '1,200 queries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def several(names: Sequence[str], most: int = 5) -> str:
    """
    >>> several(["a", "b", "c"]), several(["a", "b", "c"], most=2)
    ('a, b and c', 'a, b and 1 more')
    """
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def between(low: float, high: float, digits: int = 2) -> str:
    return f"{low:.{digits}f} to {high:.{digits}f}"


def decimals(spread: float) -> int:
    """Enough to tell numbers apart that lie so far from each other, no more."""
    return 0 if spread > 200 else 1 if spread > 20 else 2 if spread > 0.5 else 3
