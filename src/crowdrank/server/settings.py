"""What an organiser may set, in `collection.toml` or while the collection runs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from crowdrank.errors import SettingError

SKIP_REASONS = ("I cannot tell", "I do not know these", "Something is broken", "I have a conflict of interest")


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What chooses the questions."""

    policy: str = "epsilon-greedy"
    """A name of `crowdrank.active.POLICIES`."""
    random_share: float = 0.2
    """The share of questions that are drawn at random: the board's reliability is told from these."""
    floor: int = 2
    """How often every item is shown before pairs are chosen by what they teach."""
    repeat_share: float = 0.0
    """The share of questions that an annotator has answered before, to see whether they say the same again."""
    gold_share: float = 0.05
    """The share of questions whose answer is known, where gold pairs are given."""
    lease_seconds: int = 1800
    """How long a question is kept for the one who was shown it."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When to stop asking; None for never."""

    votes: int | None = None
    per_annotator: int | None = None
    money: float | None = None
    price: float = 0.0
    """What one vote costs."""
    decision: str | None = None
    """What is to be settled: "top 3", "order" …"""
    level: float = 0.95
    """How sure it must be."""
    stop_when_settled: bool = False


@dataclass(frozen=True, kw_only=True)
class Joining:
    """How annotators come in without a link of their own."""

    open: bool = True
    """Whether the join link lets anyone in."""
    panel_parameters: tuple[str, ...] = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
    """Parameters of the join link that a panel sends along; the first names the annotator."""
    completion_code: str | None = None
    completion_url: str | None = None
    """Where a finished annotator is sent; {code} stands for the code."""


EVENTS = ("vote", "milestone")
"""What webhooks can be told of."""


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """Who is told of events."""

    url: str
    secret: str
    events: tuple[str, ...] = EVENTS


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Of one collection."""

    title: str = "Which is better?"
    question: str = "Which of the two is better?"
    instructions: str = ""
    """Markdown, shown before the first question."""
    ties: bool = True
    skips: bool = True
    skip_reasons: tuple[str, ...] = SKIP_REASONS
    undo: bool = True
    board_public: bool = False
    gold: tuple[tuple[str, str], ...] = ()
    """Pairs of items whose order is known, the better one first."""
    asking: Asking = field(default_factory=Asking)
    budget: Budget = field(default_factory=Budget)
    joining: Joining = field(default_factory=Joining)
    webhooks: tuple[Webhook, ...] = ()

    def __post_init__(self) -> None:
        from crowdrank.active import decision
        from crowdrank.active.policies import by_name

        by_name(self.asking.policy)
        if self.budget.decision is not None:
            decision(self.budget.decision)
        for name in ("random_share", "repeat_share", "gold_share"):
            _within(f"asking.{name}", getattr(self.asking, name), 0, 1)
        if self.asking.repeat_share + self.asking.gold_share > 0.5:
            raise SettingError(
                "asking: repeat_share and gold_share together must not take more than half of the questions."
            )
        _within("asking.floor", self.asking.floor, 0, 1_000)
        _within("asking.lease_seconds", self.asking.lease_seconds, 10, 7 * 86_400)
        _within("budget.level", self.budget.level, 0.5, 0.9999)
        for name in ("votes", "per_annotator", "money", "price"):
            if (value := getattr(self.budget, name)) is not None:
                _within(f"budget.{name}", value, 0, 1e12)
        if self.skips and not self.skip_reasons:
            raise SettingError("skip_reasons must name at least one reason, or set skips = false.")
        for hook in self.webhooks:
            if not hook.url.startswith(("http://", "https://")):
                raise SettingError(f"webhooks: {hook.url!r} is not a web address.")
            if not hook.secret:
                raise SettingError(f"webhooks: {hook.url} needs a secret to sign with.")
            if not hook.events or not set(hook.events) <= set(EVENTS):
                got = ", ".join(hook.events) or "nothing"
                raise SettingError(f"webhooks: {hook.url} can be told of {' and '.join(EVENTS)}, got {got}.")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON and TOML have them."""
        return asdict(self)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """From plain values; a key that means nothing is refused by name."""
        found: Settings = _filled(cls, given, "")
        return found

    def changed(self, given: Mapping[str, Any]) -> Settings:
        """With some values replaced, those of a table within it one by one."""
        return Settings.of(_merged(self.as_dict(), given))


def read_settings(path: Path) -> Settings:
    """Of a TOML file."""
    try:
        return Settings.of(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path.name} is not TOML: {error}.") from error
    except SettingError as error:
        raise SettingError(f"{path.name}: {error}") from error


def kind_of_setting(name: str) -> Any:
    """What a setting holds, by its name ("budget.votes"): a type, or several; None where there is no such setting."""
    kind: Any = Settings
    for part in name.split("."):
        kind = get_type_hints(kind).get(part) if is_dataclass(kind) else None
    return kind


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _filled(kind: Any, given: Any, where: str) -> Any:
    if not isinstance(given, Mapping):
        raise SettingError(f"{where.rstrip('.')} must be a table, got {given!r}.")
    hints, known = get_type_hints(kind), [f.name for f in fields(kind)]
    for key in given:
        if key not in known:
            raise SettingError(
                f"{where}{key} is not a setting. There are: {', '.join(where + name for name in known)}."
            )
    values = {name: _value(hints[name], value, where + name) for name, value in given.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise SettingError(
            f"{where.rstrip('.')}: {str(error).partition('missing')[2].strip() or error} is missing."
        ) from error


def _value(hint: Any, value: Any, where: str) -> Any:
    """A plain value as the field has it."""
    if is_dataclass(hint):
        return _filled(hint, value, f"{where}.")
    if get_origin(hint) is tuple:
        if isinstance(value, str) or not isinstance(value, (list, tuple)):
            raise SettingError(f"{where} must be a list, got {value!r}.")
        inner, *rest = get_args(hint)
        if rest != [...] and len(value) != 1 + len(rest):
            raise SettingError(f"{where} must hold {1 + len(rest)} values, got {len(value)}.")
        return tuple(_value(inner, member, f"{where}[{n}]") for n, member in enumerate(value))
    kinds = get_args(hint) or (hint,)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not any(type(value) is kind for kind in kinds):
        wanted = " or ".join("nothing" if kind is type(None) else kind.__name__ for kind in kinds)
        raise SettingError(f"{where} must be {wanted}, got {value!r}.")
    return value


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingError(f"{name} must lie between {low:g} and {high:g}, got {value:g}.")
