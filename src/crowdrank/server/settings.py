"""The settings of a collection, read from a TOML file or changed by an admin while it runs."""

from __future__ import annotations

import ipaddress
import socket
import tomllib
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from crowdrank.errors import SettingError
from crowdrank.server.translation import LANGUAGES
from crowdrank.storage import TASK_TYPES

SKIP_REASONS = ("I cannot decide", "I do not know these items", "Something is broken", "I have a conflict of interest")
WEBHOOK_EVENTS = ("vote", "milestone")


@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    """How questions are chosen.

    Parameters
    ----------
    policy : str, default "epsilon-greedy"
        The policy that chooses the pairs: a name in `crowdrank.active.POLICIES`.
    random_share : float, default 0.2
        The share of questions chosen at random. The reliability of the board is measured on these.
    min_appearances : int, default 2
        How often every item is shown before the policy chooses the most informative pairs.
    repeat_share : float, default 0.0
        The share of questions that repeat an earlier question of the same annotator, to measure consistency.
    gold_share : float, default 0.05
        The share of questions with a known answer, if there are gold pairs.
    lease_seconds : int, default 1800
        How long a question is reserved for the annotator who sees it.
    max_gold_failures : int, optional
        Annotators who get this many gold questions wrong are excluded, with the reason in the log; never by default.
    """

    policy: str = "epsilon-greedy"
    random_share: float = 0.2
    min_appearances: int = 2
    repeat_share: float = 0.0
    gold_share: float = 0.05
    lease_seconds: int = 1800
    max_gold_failures: int | None = None


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """What annotators do with the items that they see.

    Parameters
    ----------
    type : str, default "pair"
        "pair": which of two items is better; "rating": a grade for one item; "ranking": put some items in order;
        "best-worst": the best and the worst of some items; "choice": the best of some items.
    size : int, default 4
        How many items are shown at a time for a ranking, best-worst or a choice.
    scale : tuple of str
        The grades of a rating, the worst one first. They are exported as numbers from 1.
    criteria : tuple of str
        Further questions about the same items, answered in the same way: for pairs, ratings and choices.
    """

    type: str = "pair"
    size: int = 4
    scale: tuple[str, ...] = ("1", "2", "3", "4", "5")
    criteria: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kinds = tuple(TASK_TYPES)
        if self.type not in kinds:
            nearest = get_close_matches(self.type, kinds, n=1, cutoff=0.4)
            hint = f"Did you mean {nearest[0]}?" if nearest else f"Known types: {', '.join(kinds)}."
            raise SettingError(f"task.type: {self.type!r} is not a type of task. {hint}")
        _check_range("task.size", self.size, 3, 10)
        if not 2 <= len(self.scale) <= 11 or len(set(self.scale)) < len(self.scale):
            raise SettingError(f"task.scale must have 2 to 11 different grades, got {len(self.scale)}.")
        if self.criteria and self.type in ("ranking", "best-worst"):
            raise SettingError(f"task.criteria can be used for pairs, ratings and choices, not for {self.type}.")
        if len(self.criteria) > 10 or len(set(self.criteria)) < len(self.criteria):
            raise SettingError("task.criteria must be at most 10 different questions.")

    @property
    def n_items(self) -> int:
        """How many items a question shows."""
        return {"pair": 2, "rating": 1}.get(self.type, self.size)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When to stop asking. None means no limit.

    Parameters
    ----------
    votes : int, optional
        Votes in total.
    per_annotator : int, optional
        Answers per annotator, skips included.
    money : float, optional
        Money in total, at `price_per_vote`.
    price_per_vote : float, default 0.0
    decision : str, optional
        The decision that the collection is for: "top 3", "order", "a over b", "tau 0.9" or "accuracy 0.95".
    confidence : float, default 0.95
        The probability with which the decision must be right.
    stop_when_decided : bool, default False
        Whether to stop asking once the decision is reached.
    """

    votes: int | None = None
    per_annotator: int | None = None
    money: float | None = None
    price_per_vote: float = 0.0
    decision: str | None = None
    confidence: float = 0.95
    stop_when_decided: bool = False


@dataclass(frozen=True, kw_only=True)
class PanelCodes:
    """What participants of one panel get at the end, instead of the codes and URLs of `joining`.

    Parameters
    ----------
    completion_code, completion_url : str, optional
        Shown to those who have finished. In URLs, "{code}" is replaced by the code, and the name of a parameter in
        braces by its value. Participants of Prolific get a link back even without a URL.
    screen_out_code, screen_out_url : str, optional
        The same for those who were excluded.
    """

    completion_code: str | None = None
    completion_url: str | None = None
    screen_out_code: str | None = None
    screen_out_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Panels:
    """The codes of each panel.

    Parameters
    ----------
    prolific, mturk, cloudresearch : PanelCodes
    """

    prolific: PanelCodes = field(default_factory=PanelCodes)
    mturk: PanelCodes = field(default_factory=PanelCodes)
    cloudresearch: PanelCodes = field(default_factory=PanelCodes)


@dataclass(frozen=True, kw_only=True)
class Joining:
    """How annotators join without a personal link.

    Parameters
    ----------
    open : bool, default True
        Whether anyone with the public link can join.
    panel_parameters : tuple of str
        URL parameters that another panel adds to the link; the first one is the id of the participant. Those of
        Prolific, Mechanical Turk and CloudResearch are known.
    completion_code : str, optional
        Shown to annotators who have finished.
    completion_url : str, optional
        Where annotators who have finished are sent; "{code}" is replaced by the code.
    screen_out_code, screen_out_url : str, optional
        The same for annotators who were excluded.
    panels : Panels
        Codes and URLs for the participants of each panel.
    max_participants : int, optional
        How many people may join with the public link; no limit by default.
    completion_min_answered : float, default 0.5
        The share of their questions that annotators must answer, not skip, to get the code and the URL.
    approval : bool, default False
        Whether the votes of people who join with the public link are set aside until an admin approves them.
    guests_per_address : int, optional, default 60
        How many people may join with the public link from one IP address per hour; a classroom shares one.
    votes_per_minute : int, optional, default 60
        How many votes someone who joined with the public link may cast per minute.
    """

    open: bool = True
    panel_parameters: tuple[str, ...] = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
    completion_code: str | None = None
    completion_url: str | None = None
    screen_out_code: str | None = None
    screen_out_url: str | None = None
    panels: Panels = field(default_factory=Panels)
    max_participants: int | None = None
    completion_min_answered: float = 0.5
    approval: bool = False
    guests_per_address: int | None = 60
    votes_per_minute: int | None = 60


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Rules for annotators whose answers cannot be trusted, besides `questions.max_gold_failures`.

    Rules compare the answers so far; those about shares wait for `min_answers`. None means that a rule is not used.

    Parameters
    ----------
    action : str, default "exclude"
        What happens to who breaks a rule: "exclude" (their votes no longer count), "set-aside" (the same, but they may
        go on answering) or "pause" (their votes count, and they get no more questions until you let them go on).
    min_answers : int, default 20
        How many answers the rules about shares and times need.
    min_median_seconds : float, optional
        The shortest median response time.
    max_side_share : float, optional
        The largest share of decided pairs with the winner on the same side; pairs only.
    max_skip_share : float, optional
        The largest share of skipped questions.
    min_repeat_agreement : float, optional
        The smallest share of repeated questions that are answered as before; pairs only.
    """

    action: str = "exclude"
    min_answers: int = 20
    min_median_seconds: float | None = None
    max_side_share: float | None = None
    max_skip_share: float | None = None
    min_repeat_agreement: float | None = None

    @cached_property
    def is_used(self) -> bool:
        """Whether any rule is used."""
        rules = (self.min_median_seconds, self.max_side_share, self.max_skip_share, self.min_repeat_agreement)
        return any(limit is not None for limit in rules)

    def __post_init__(self) -> None:
        if self.action not in ("exclude", "set-aside", "pause"):
            raise SettingError(f"quality.action must be exclude, set-aside or pause, got {self.action!r}.")
        _check_range("quality.min_answers", self.min_answers, 1, 10_000)
        limits = {
            "min_median_seconds": 600.0,
            "max_side_share": 1.0,
            "max_skip_share": 1.0,
            "min_repeat_agreement": 1.0,
        }
        for name, most in limits.items():
            if (value := getattr(self, name)) is not None:
                _check_range(f"quality.{name}", value, 0, most)


@dataclass(frozen=True, kw_only=True)
class PracticeQuestion:
    """A question before the first real one, whose answer is known and explained. It is not a vote.

    Parameters
    ----------
    items : tuple of str
        The labels of the items that are shown; they may be hidden items.
    answer : str
        The right answer: the label of an item, "tie", or a grade.
    feedback : str, default ""
        Markdown that is shown after the answer.
    """

    items: tuple[str, ...]
    answer: str
    feedback: str = ""


@dataclass(frozen=True, kw_only=True)
class Practice:
    """Questions with feedback, for pairs, ratings and choices.

    Parameters
    ----------
    questions : tuple of PracticeQuestion
    min_correct : int, default 0
        How many must be answered correctly. Others may practise again, as often as they like.
    """

    questions: tuple[PracticeQuestion, ...] = ()
    min_correct: int = 0

    def __post_init__(self) -> None:
        if len(self.questions) > 20:
            raise SettingError(f"practice.questions must be at most 20, got {len(self.questions)}.")
        if not 0 <= self.min_correct <= len(self.questions):
            most = len(self.questions)
            raise SettingError(f"practice.min_correct must be between 0 and {most}, got {self.min_correct}.")


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """What happens to data about people.

    Parameters
    ----------
    retention_days : int, optional
        How many days after the study was closed the data that identify annotators are erased; never by default.
    """

    retention_days: int | None = None


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """A URL that is notified of events.

    Parameters
    ----------
    url, secret : str
        Where to send events, and the key that signs them.
    events : tuple of str, default ("vote", "milestone")
        Which events to send.
    """

    url: str
    secret: str
    events: tuple[str, ...] = WEBHOOK_EVENTS


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one collection.

    Parameters
    ----------
    title, question : str
        The name of the study, and the question above every pair.
    instructions : str, default ""
        Markdown that is shown before the first question.
    consent : str, default ""
        Markdown that annotators must agree to before the first question; nothing by default.
    ties, skips, undo : bool, default True
        Whether annotators may answer with a tie (pairs only), skip a question, and undo their last answer.
    both_bad : bool, default False
        Whether annotators may say that both items of a pair are bad. It counts as a tie.
    comments : bool, default False
        Whether annotators may add a comment to their answer.
    language : str, default "en"
        The language of the pages for annotators: en, de, es, fr, zh or ar.
    skip_reasons : tuple of str
        The reasons for skipping that annotators choose from.
    board_public : bool, default False
        Whether everyone can see the board.
    board_link : int, default 0
        The number of the read-only link to the board; 0 if there is none. Another number makes another link.
    gold : tuple of pairs of str
        Pairs of items whose order is known, the better one first.
    task : TaskSettings
    questions : QuestionSettings
    budget : Budget
    joining : Joining
    quality : Quality
    practice : Practice
    privacy : Privacy
    webhooks : tuple of Webhook

    Examples
    --------
    >>> settings = Settings.from_dict({"title": "Posters", "budget": {"votes": 500}})
    >>> settings.budget.votes, settings.questions.policy
    (500, 'epsilon-greedy')
    """

    title: str = "Which is better?"
    question: str = "Which of the two is better?"
    instructions: str = ""
    consent: str = ""
    language: str = "en"
    ties: bool = True
    skips: bool = True
    skip_reasons: tuple[str, ...] = SKIP_REASONS
    undo: bool = True
    both_bad: bool = False
    comments: bool = False
    board_public: bool = False
    board_link: int = 0
    gold: tuple[tuple[str, str], ...] = ()
    task: TaskSettings = field(default_factory=TaskSettings)
    questions: QuestionSettings = field(default_factory=QuestionSettings)
    budget: Budget = field(default_factory=Budget)
    joining: Joining = field(default_factory=Joining)
    quality: Quality = field(default_factory=Quality)
    practice: Practice = field(default_factory=Practice)
    privacy: Privacy = field(default_factory=Privacy)
    webhooks: tuple[Webhook, ...] = ()

    def __post_init__(self) -> None:
        from crowdrank.active import decision
        from crowdrank.active.policies import by_name

        by_name(self.questions.policy)
        if self.language not in LANGUAGES:
            raise SettingError(f"language must be one of {', '.join(LANGUAGES)}, got {self.language!r}.")
        if self.budget.decision is not None:
            decision(self.budget.decision)
        for name in ("random_share", "repeat_share", "gold_share"):
            _check_range(f"questions.{name}", getattr(self.questions, name), 0, 1)
        if self.questions.repeat_share + self.questions.gold_share > 0.5:
            raise SettingError(
                "questions: repeat_share and gold_share must not add up to more than half of the questions."
            )
        _check_range("questions.min_appearances", self.questions.min_appearances, 0, 1_000)
        if (failures := self.questions.max_gold_failures) is not None:
            _check_range("questions.max_gold_failures", failures, 1, 1_000)
        _check_range("questions.lease_seconds", self.questions.lease_seconds, 10, 7 * 86_400)
        _check_range("board_link", self.board_link, 0, 2**53)
        _check_range("budget.confidence", self.budget.confidence, 0.5, 0.9999)
        for name in ("votes", "per_annotator", "money", "price_per_vote"):
            if (value := getattr(self.budget, name)) is not None:
                _check_range(f"budget.{name}", value, 0, 1e12)
        _check_range("joining.completion_min_answered", self.joining.completion_min_answered, 0, 1)
        if (days := self.privacy.retention_days) is not None:
            _check_range("privacy.retention_days", days, 0, 36_500)
        if self.practice.questions and self.task.type in ("ranking", "best-worst"):
            raise SettingError(f"practice can be used for pairs, ratings and choices, not for {self.task.type}.")
        for name in ("guests_per_address", "votes_per_minute", "max_participants"):
            if (value := getattr(self.joining, name)) is not None:
                _check_range(f"joining.{name}", value, 1, 1e6)
        if self.skips and not self.skip_reasons:
            raise SettingError("skip_reasons must have at least one reason. To forbid skipping, set skips = false.")
        for hook in self.webhooks:
            _check_webhook(hook)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as in JSON and TOML."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Create settings from plain values. An unknown key is an error that suggests the nearest one."""
        settings: Settings = _parse_table(cls, values, "")
        return settings

    def with_changes(self, values: Mapping[str, Any]) -> Settings:
        """Return settings with some values replaced. Tables are merged key by key."""
        return Settings.from_dict(_merge(self.as_dict(), values))


def read_settings(path: Path) -> Settings:
    """Read settings from a TOML file."""
    try:
        return Settings.from_dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path.name} is not valid TOML: {error}.") from error
    except SettingError as error:
        raise SettingError(f"{path.name}: {error}") from error


def setting_type(name: str) -> Any:
    """Return the type of a setting, given its dotted name ("budget.votes"); None if there is no such setting."""
    kind: Any = Settings
    for part in name.split("."):
        kind = get_type_hints(kind).get(part) if is_dataclass(kind) else None
    return kind


def _check_webhook(hook: Webhook) -> None:
    if not hook.url.startswith(("http://", "https://")):
        raise SettingError(f"webhooks: {hook.url!r} is not a URL that starts with http:// or https://.")
    if not hook.secret:
        raise SettingError(f"webhooks: {hook.url} needs a secret, which signs the events.")
    if not hook.events or not set(hook.events) <= set(WEBHOOK_EVENTS):
        got = ", ".join(hook.events) or "nothing"
        raise SettingError(f"webhooks: the events of {hook.url} must be {' or '.join(WEBHOOK_EVENTS)}, got {got}.")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingError(f"{name} must be between {low:g} and {high:g}, got {value:g}.")


def _merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _parse_table(kind: Any, values: Any, prefix: str) -> Any:
    if not isinstance(values, Mapping):
        raise SettingError(f"{prefix.rstrip('.')} must be a table, got {values!r}.")
    hints, known = get_type_hints(kind), [f.name for f in fields(kind)]
    for key in values:
        if key not in known:
            nearest = get_close_matches(str(key), known, n=1, cutoff=0.5)
            hint = f"Did you mean {prefix}{nearest[0]}?" if nearest else f"Known settings: {', '.join(known)}."
            raise SettingError(f"{prefix}{key} is not a setting. {hint}")
    parsed = {name: _parse_value(hints[name], value, prefix + name) for name, value in values.items()}
    try:
        return kind(**parsed)
    except TypeError as error:
        missing = str(error).partition("missing")[2].strip() or error
        raise SettingError(f"{prefix.rstrip('.')}: {missing} is missing.") from error


def _parse_value(hint: Any, value: Any, name: str) -> Any:
    """Convert a plain value to the type of its field."""
    if is_dataclass(hint):
        return _parse_table(hint, value, f"{name}.")
    if get_origin(hint) is tuple:
        if isinstance(value, str) or not isinstance(value, (list, tuple)):
            raise SettingError(f"{name} must be a list, got {value!r}.")
        inner, *rest = get_args(hint)
        if rest != [...] and len(value) != 1 + len(rest):
            raise SettingError(f"{name} must have {1 + len(rest)} values, got {len(value)}.")
        return tuple(_parse_value(inner, member, f"{name}[{n}]") for n, member in enumerate(value))
    kinds = get_args(hint) or (hint,)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not any(type(value) is kind for kind in kinds):
        wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise SettingError(f"{name} must be {wanted}, got {value!r}.")
    return value


# Check settings before they are stored: lengths, URLs, gold items, and where webhooks are sent to.
#
# These checks apply to changes only. Settings that are in the log already must stay readable.

_MAX_LENGTHS = {"title": 200, "question": 500, "instructions": 50_000, "consent": 50_000}
_MAX_REASONS, _MAX_REASON_LENGTH = 20, 200
_MAX_CODE_LENGTH, _MAX_URL_LENGTH = 200, 2_000


def check_changes(
    settings: Settings, changed: AnyCollection[str], items: Iterable[tuple[str, str]], *, allow_internal: bool
) -> None:
    """Raise SettingError if a changed setting cannot be used.

    Parameters
    ----------
    settings : Settings
        The new settings.
    changed : collection of str
        The names of the settings to check; others are left as they are.
    items : iterable of (query, label)
        The items of the study.
    allow_internal : bool
        Whether webhooks may be sent to this machine and to the local network.
    """
    for name, most in _MAX_LENGTHS.items():
        if name in changed:
            may_be_empty = name in ("instructions", "consent")
            _check_length(name, getattr(settings, name), most, may_be_empty=may_be_empty)
    if "skip_reasons" in changed:
        if len(settings.skip_reasons) > _MAX_REASONS:
            raise SettingError(f"skip_reasons must be at most {_MAX_REASONS}, got {len(settings.skip_reasons)}.")
        for reason in settings.skip_reasons:
            _check_length("skip_reasons", reason, _MAX_REASON_LENGTH)
    if "task" in changed:
        for name, texts in (("scale", settings.task.scale), ("criteria", settings.task.criteria)):
            for text in texts:
                _check_length(f"task.{name}", text, _MAX_REASON_LENGTH)
    if "joining" in changed:
        _check_joining(settings.joining)
    given = list(items)
    if "gold" in changed:
        _check_gold(settings.gold, given)
    if "practice" in changed:
        _check_practice(settings, given)
    if "webhooks" in changed:
        for hook in settings.webhooks:
            if not allow_internal and is_internal(hook.url):
                raise SettingError(
                    f"webhooks: {hook.url} is an address of this machine or of the local network. "
                    "Start the server with --allow-internal-webhooks if that is intended."
                )


def is_internal(url: str, *, resolve: bool = False) -> bool:
    """Return whether a URL leads to this machine or to the local network.

    Names are only looked up with `resolve`. A name that cannot be looked up is not internal.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return True
    if not host or host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    try:
        # Also reads numbers such as 127.1 and 0x7f000001, which are addresses to the operating system.
        found = (
            {str(address[4][0]) for address in socket.getaddrinfo(host, None)} if resolve or _is_numeric(host) else ()
        )
    except OSError:
        return False
    return any(not ipaddress.ip_address(address.partition("%")[0]).is_global for address in found)


def _is_numeric(host: str) -> bool:
    return all(part[:1].isdigit() for part in host.split("."))


def _check_length(name: str, value: str, most: int, *, may_be_empty: bool = False) -> None:
    if not value.strip() and not may_be_empty:
        raise SettingError(f"{name} must not be empty.")
    if len(value) > most:
        raise SettingError(f"{name} must have at most {most:,} characters, got {len(value):,}.")


def _check_joining(joining: Joining) -> None:
    tables: list[tuple[str, Joining | PanelCodes]] = [("joining", joining)]
    tables += [(f"joining.panels.{one.name}", getattr(joining.panels, one.name)) for one in fields(joining.panels)]
    for name, codes in tables:
        for kind in ("completion", "screen_out"):
            code, url = getattr(codes, f"{kind}_code"), getattr(codes, f"{kind}_url")
            if code is not None:
                _check_length(f"{name}.{kind}_code", code, _MAX_CODE_LENGTH)
            if url is not None:
                _check_link(f"{name}.{kind}_url", url)


def _check_practice(settings: Settings, items: Iterable[tuple[str, str]]) -> None:
    """Raise SettingError unless all items of practice questions exist, and their answers are possible."""
    labels = {label for _, label in items}
    task = settings.task
    for n, question in enumerate(settings.practice.questions, 1):
        where = f"practice.questions[{n}]"
        if unknown := [label for label in question.items if label not in labels]:
            raise SettingError(f"{where}: {unknown[0][:60]!r} is not an item of this study.")
        wanted = {"pair": (2, 2), "rating": (1, 1)}.get(task.type, (2, 10))
        if not wanted[0] <= len(set(question.items)) == len(question.items) <= wanted[1]:
            raise SettingError(f"{where} must show {wanted[0]} different items, got {len(question.items)}.")
        answers = task.scale if task.type == "rating" else question.items
        if question.answer not in answers and not (task.type == "pair" and question.answer == "tie"):
            raise SettingError(
                f"{where}: the answer must be one of {', '.join(answers)}, got {question.answer[:60]!r}."
            )
        _check_length(f"{where}.feedback", question.feedback, 5_000, may_be_empty=True)


def _check_link(name: str, url: str) -> None:
    _check_length(name, url, _MAX_URL_LENGTH)
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web or any(letter.isspace() for letter in url):
        raise SettingError(f"{name} must start with https:// or http://, got {url[:60]!r}.")


def _check_gold(gold: tuple[tuple[str, str], ...], items: Iterable[tuple[str, str]]) -> None:
    queries: dict[str, set[str]] = {}
    for query, label in items:
        queries.setdefault(label, set()).add(query)
    for pair in gold:
        for label in pair:
            if label not in queries:
                raise SettingError(f"gold: {label[:60]!r} is not an item of this study.")
        if pair[0] == pair[1] or not queries[pair[0]] & queries[pair[1]]:
            raise SettingError(f"gold: {pair[0]!r} and {pair[1]!r} must be two items of the same query.")
