"""Side information: known qualities of annotators, orders among them, and gold pairs of items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from crowdrank.arrays import Int32Array, ObjectArray
from crowdrank.data.labels import Items
from crowdrank.data.pair_counts import PairCounts, count_pairs, pair_cells
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError, issue_warning

if TYPE_CHECKING:
    from crowdrank.data.comparisons import Comparisons


GoldPairs: TypeAlias = "Comparisons | Iterable[tuple[Any, Any]] | Literal['agreed'] | None"
NO_PAIRS: Int32Array = np.zeros(0, np.int32)


KINDS_OF_ANNOTATORS = ("human", "llm")


@dataclass(frozen=True, kw_only=True)
class AnnotatorDetails:
    """What is known about an annotator apart from quality.

    Parameters
    ----------
    kind : {"human", "llm"}, optional
        Whether the annotator is a person or a language model.
    family : str, optional
        What the annotator has in common with others: base model, prompt, instructions. Members of a family tend to make
        the same errors.
    price : float, optional
        Price of an answer.

    Examples
    --------
    >>> AnnotatorDetails(kind="llm", family="llama")
    AnnotatorDetails(kind='llm', family='llama', price=None)
    """

    kind: str | None = None
    family: str | None = None
    price: float | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS_OF_ANNOTATORS:
            raise SettingError(f"The kind of an annotator must be human or llm, got {self.kind!r}.")


@dataclass(frozen=True, kw_only=True)
class SideInformation:
    """Knowledge besides the judgments, for models that weight annotators (`fit(..., side_information=...)`).

    Parameters
    ----------
    quality : mapping from annotator to float
        Annotators whose quality is known, on the model's own scale: crowd-bt's quality, factor-bt's attention,
        variance-bt's precision, pairwise-hits' ability, the dispersion in learning to rank.
    between : mapping from annotator to (low, high)
        Annotators whose quality is known to lie in an interval.
    better : pairs of annotators
        Pairs of annotators, the better one first.
    gold : Comparisons, pairs of items, "agreed" or None
        Pairs of items whose order is known, better item first. "agreed" takes the pairs that more than 10 annotators
        answered, 90 % of them alike.
    gold_weight : float, default 5
        How many answers of a perfect annotator each gold pair counts for. With 0, gold pairs only resolve the sign of
        the scores.
    people : mapping from annotator to AnnotatorDetails
        Kind (human or llm), family and price of annotators. Names that gave no judgment are ignored.

    Examples
    --------
    >>> from crowdrank.data import Comparisons
    >>> votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"], annotator=["ann", "bob"])
    >>> known = SideInformation(quality={"ann": 0.95}, better=[("ann", "bob")], gold=[("a", "c")])
    >>> known.encode(votes).quality
    {0: 0.95}
    """

    quality: Mapping[Any, float] = field(default_factory=lambda: MappingProxyType({}))
    between: Mapping[Any, tuple[float, float]] = field(default_factory=lambda: MappingProxyType({}))
    better: Iterable[tuple[Any, Any]] = ()
    gold: GoldPairs = None
    gold_weight: float = 5.0
    people: Mapping[Any, AnnotatorDetails] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if not 0 <= self.gold_weight < np.inf:
            raise SettingError(f"gold_weight must be zero or more, got {self.gold_weight}.")
        object.__setattr__(self, "better", tuple(self.better))

    @property
    def has_only_people(self) -> bool:
        """Whether nothing is known but kind, family and price of annotators."""
        return self.gold is None and not (self.quality or self.between or self.better)

    def encode(self, comparisons: Comparisons) -> EncodedSideInformation:
        """Replace names by the codes of these comparisons. Unknown names and contradictions are errors."""
        constraints = self.encode_annotators(comparisons.annotators)
        gold_better, gold_worse = _encode_gold(comparisons, self.gold)
        return replace(constraints, gold_better=gold_better, gold_worse=gold_worse, gold_weight=float(self.gold_weight))

    def encode_annotators(self, annotators: ObjectArray, larger_is_better: bool = True) -> EncodedSideInformation:
        """Encode the information about annotators only, without the gold pairs."""
        code = _Coder(annotators)
        for who, value in self.quality.items():
            if np.isnan(value):
                raise SettingError(f"The quality of {who} must be a number, got nan.")
        for who, (low, high) in self.between.items():
            if not low < high:
                raise SettingError(
                    f"The quality of {who} must lie between a lower and a higher value, got {low} to {high}."
                )
        encoded = EncodedSideInformation(
            quality={code(who): float(value) for who, value in self.quality.items()},
            between={code(who): (float(low), float(high)) for who, (low, high) in self.between.items()},
            better=tuple((code(first), code(second)) for first, second in self.better),
            people={code(who): details for who, details in self.people.items() if str(who) in code.places},
        )
        _refuse_contradictions(encoded, annotators, larger_is_better)
        return encoded


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedSideInformation:
    """Side information in codes of annotators and items.

    Parameters
    ----------
    quality : mapping from annotator code to float
        Known qualities.
    between : mapping from annotator code to (low, high)
        Intervals of qualities.
    better : tuple of pairs
        Pairs of annotator codes, the better one first.
    gold_better, gold_worse : arrays of int
        Item codes of the gold pairs.
    gold_weight : float
        How many answers of a perfect annotator each gold pair counts for.
    people : mapping from annotator code to AnnotatorDetails
        Kind, family and price of annotators.
    """

    quality: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    between: Mapping[int, tuple[float, float]] = field(default_factory=lambda: MappingProxyType({}))
    better: tuple[tuple[int, int], ...] = ()
    gold_better: Int32Array = field(default_factory=lambda: NO_PAIRS)
    gold_worse: Int32Array = field(default_factory=lambda: NO_PAIRS)
    gold_weight: float = 5.0
    people: Mapping[int, AnnotatorDetails] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> bool:
        return self.has_annotators or self.has_gold

    @property
    def has_annotators(self) -> bool:
        """Whether anything is known about the annotators themselves."""
        return bool(self.quality or self.between or self.better)

    @property
    def has_gold(self) -> bool:
        """Whether there are gold pairs."""
        return bool(len(self.gold_better))

    def gold_annotator(self, comparisons: Comparisons) -> int | None:
        """Code of the perfect annotator who answers the gold pairs, after all others; None if they carry no weight."""
        return max(1, len(comparisons.annotators)) if self.has_gold and self.gold_weight > 0 else None


NO_SIDE_INFORMATION = EncodedSideInformation()


def _refuse_contradictions(known: EncodedSideInformation, names: ObjectArray, larger_is_better: bool) -> None:
    for code, value in known.quality.items():
        low, high = known.between.get(code, (-np.inf, np.inf))
        if not low <= value <= high:
            raise SettingError(f"{names[code]} is known to be {value:g}, and to lie between {low:g} and {high:g}.")
    if cycle := _cycle(known.better):
        who = [str(names[code]) for code in cycle]
        path = f": {' > '.join(who)} is a cycle" if len(who) > 2 else ""
        raise SettingError(f"{who[0]} cannot be better than {who[0]}{path}.")
    sign = 1.0 if larger_is_better else -1.0
    ends = {**known.between, **{code: (value, value) for code, value in known.quality.items()}}
    highest = {code: max(sign * low, sign * high) for code, (low, high) in ends.items()}
    for first, second in _transitive_closure(known.better) if len(ends) > 1 else ():
        if first in ends and second in ends and highest[first] < min(sign * end for end in ends[second]):
            raise SettingError(
                f"{names[first]} is given as better than {names[second]}, but is {_describe(ends[first])}, "
                f"and {names[second]} is {_describe(ends[second])}."
            )


def _describe(ends: tuple[float, float]) -> str:
    low, high = ends
    return f"known to be {low:g}" if low == high else f"known to lie between {low:g} and {high:g}"


def _transitive_closure(better: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """All pairs where the first is better than the second, directly or through others."""
    pairs = set(better)
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs |= more
    return pairs


def _cycle(order: tuple[tuple[int, int], ...]) -> list[int]:
    """Annotators that form a cycle, its first one repeated at the end; empty if there is none."""
    from graphlib import CycleError, TopologicalSorter

    sorter: TopologicalSorter[int] = TopologicalSorter()
    for better, worse in order:
        sorter.add(worse, better)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _encode_gold(comparisons: Comparisons, gold: GoldPairs) -> tuple[Int32Array, Int32Array]:
    if gold is None:
        return NO_PAIRS, NO_PAIRS
    if not isinstance(gold, str):
        return encode_gold(comparisons.items, gold)
    if gold != "agreed":
        raise SettingError(f'gold must be pairs, or "agreed" for those nearly all agree on, got {gold!r}.')
    better, worse = agreed_pairs(comparisons)
    if not len(better):
        raise DataError(
            "No pair was answered by more than 10 annotators with 90 % agreement, so none can serve as gold."
        )
    return better, worse


class _Coder:
    def __init__(self, labels: ObjectArray):
        self.places = {str(label): place for place, label in enumerate(labels)}

    def __call__(self, name: Any) -> int:
        if str(name) not in self.places:
            raise UnknownNameError("annotator", name, self.places)
        return self.places[str(name)]


def encode_gold(items: Items, gold: Comparisons | Iterable[tuple[Any, Any]]) -> tuple[Int32Array, Int32Array]:
    """Return the better and the worse items of gold pairs as codes, without ties.

    Pairs with an item that nobody judged are dropped with a warning.
    """
    from crowdrank.data.comparisons import Comparisons

    if not isinstance(gold, Comparisons):
        pairs = [_pair(given) for given in gold]
        gold = Comparisons.of([a for a, _ in pairs], [b for _, b in pairs], [a for a, _ in pairs])
    if gold.items.has_queries != items.has_queries:
        which = "The gold pairs" if gold.items.has_queries else "The judgments"
        raise DataError(f"{which} name queries and the others do not: name the query column of both, or of neither.")
    place = {
        (str(items.queries[q]), str(label)): n
        for n, (q, label) in enumerate(zip(items.query, items.labels, strict=True))
    }
    theirs = gold.items
    names = [(str(theirs.queries[q]), str(label)) for q, label in zip(theirs.query, theirs.labels, strict=True)]
    ours = np.array([place.get(name, -1) for name in names])
    decided = np.flatnonzero(gold.outcome != 0)
    left, right = ours[gold.left[decided]], ours[gold.right[decided]]
    known = (left >= 0) & (right >= 0)
    if not known.any():
        raise DataError("No gold pair has both its items among those judged.")
    if not known.all():
        lost = int(np.count_nonzero(~known))
        pairs_name = "gold pair names" if lost == 1 else "gold pairs name"
        issue_warning(f"{lost:,} {pairs_name} an item nobody judged: left out.", DataWarning, stacklevel=4)
    won = gold.outcome[decided] > 0
    better, worse = np.where(won, left, right), np.where(won, right, left)
    return better[known].astype(np.int32), worse[known].astype(np.int32)


def _pair(given: Any) -> tuple[Any, Any]:
    if isinstance(given, str) or len(given) != 2:
        raise SettingError(f"A gold pair is two items, the better one first, got {given!r}.")
    better, worse = given
    return better, worse


def agreed_pairs(comparisons: Comparisons, more_than: int = 10, share: float = 0.9) -> tuple[Int32Array, Int32Array]:
    """Better and worse items of the pairs that `more_than` annotators answered, at least a `share` of them alike.

    Chen et al. 2013, footnote 4. A tie agrees with neither side.
    """
    counts = _annotators_per_pair(comparisons)
    majority = np.maximum(counts.first_wins, counts.second_wins)
    sure = (counts.total > more_than) & (majority >= share * counts.total)
    first_better = counts.first_wins >= counts.second_wins
    better = np.where(first_better, counts.first, counts.second)
    worse = np.where(first_better, counts.second, counts.first)
    return better[sure], worse[sure]


def _annotators_per_pair(comparisons: Comparisons) -> PairCounts:
    """How many annotators chose each item of a pair; repeated answers of one annotator count once."""
    left, right, said = comparisons.left, comparisons.right, comparisons.outcome.astype(np.int64)
    size = len(comparisons.items)
    if comparisons.annotator is None:
        return count_pairs(size, left, right, comparisons.outcome)
    annotator_pair = comparisons.annotator * np.int64(size * size) + pair_cells(size, left, right)
    _, first, place = np.unique(annotator_pair, return_index=True, return_inverse=True)
    along = np.where((left < right) == (left < right)[first][place], said, -said)
    outcome = np.sign(np.bincount(place, along)).astype(np.int8)
    return count_pairs(size, left[first], right[first], outcome)


# Who is human and who is a language model, where the names of annotators make it plain.

# Names of language models begin with one of these. Aliases of one family share a value.
_FAMILIES = {
    "gpt": "gpt",
    "chatgpt": "gpt",
    "text-davinci": "gpt",
    "claude": "claude",
    "gemini": "gemini",
    "palm": "palm",
    "llama": "llama",
    "alpaca": "alpaca",
    "vicuna": "vicuna",
    "koala": "koala",
    "mistral": "mistral",
    "mixtral": "mistral",
    "qwen": "qwen",
    "deepseek": "deepseek",
    "falcon": "falcon",
    "gemma": "gemma",
    "dolly": "dolly",
    "wizardlm": "wizardlm",
    "chatglm": "chatglm",
    "command-r": "command-r",
    "prometheus": "prometheus",
    "pandalm": "pandalm",
    "llm": "llm",
}
# The vendor in front is left out: openai/gpt-4. What follows must not be a letter: claudette is a person.
_MODEL = re.compile(
    rf"(?:[\w.-]+/)?({'|'.join(sorted(_FAMILIES, key=len, reverse=True))})(?![a-z]).*", re.IGNORECASE | re.DOTALL
)
_HUMAN = re.compile(r"(?:humans?|experts?|authors?|persons?|people|crowd|workers?)(?:[ _.:-]*\d+)?", re.IGNORECASE)
_MANY = 4


def model_family(name: str) -> str | None:
    """The family of a language model by its name; None for other names.

    Examples
    --------
    >>> model_family("openai/gpt-4-0125-preview"), model_family("Claudette")
    ('gpt', None)
    """
    found = _MODEL.fullmatch(name.strip())
    return None if found is None else _FAMILIES[found[1].lower()]


def people_from_names(names: Iterable[str]) -> dict[str, AnnotatorDetails]:
    """Kinds of annotators by their names; empty unless all names are plain and some are of language models.

    Parameters
    ----------
    names : iterable of str
        Names of all annotators.

    Returns
    -------
    dict of str to AnnotatorDetails
        The kind of each annotator. A family is not given: it is about errors in common, which names do not tell.

    Examples
    --------
    >>> {name: who.kind for name, who in people_from_names(["gpt-4", "expert_1"]).items()}
    {'gpt-4': 'llm', 'expert_1': 'human'}
    >>> people_from_names(["gpt-4", "ann"])
    {}
    """
    kinds = {}
    for name in names:
        if model_family(name) is not None:
            kinds[name] = "llm"
        elif _HUMAN.fullmatch(name.strip()):
            kinds[name] = "human"
        else:
            return {}
    return {name: AnnotatorDetails(kind=kind) for name, kind in kinds.items()} if "llm" in kinds.values() else {}


def describe_kinds(people: dict[str, AnnotatorDetails]) -> str:
    """A sentence that says which kinds were taken from names.

    Examples
    --------
    >>> describe_kinds(people_from_names(["gpt-4", "expert_1", "expert_2"]))
    'By their names, 1 annotator is a language model (gpt-4) and 2 are human: people= can say otherwise.'
    """
    models = [name for name, who in people.items() if who.kind == "llm"]
    humans = len(people) - len(models)
    more = f" and {len(models) - _MANY:,} more" if len(models) > _MANY else ""
    which = f"{', '.join(models[:_MANY])}{more}"
    one = "annotator is a language model" if len(models) == 1 else "annotators are language models"
    rest = f" and {humans:,} {'is' if humans == 1 else 'are'} human" if humans else ""
    return f"By their names, {len(models):,} {one} ({which}){rest}: people= can say otherwise."
