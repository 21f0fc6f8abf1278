"""The ranking as it is published: on a scale, linked to an earlier one, without provisional items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, BoolArray, IntArray, ObjectArray
from crowdrank.data import Comparisons, Items, Judgments, Rankings
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError, issue_warning
from crowdrank.models import Model, name_of
from crowdrank.models.base import model_settings
from crowdrank.results import LazyParts, Ranking, Scale, Uncertainty, make_scale
from crowdrank.results.ranks import benjamini_hochberg
from crowdrank.results.scales import is_probit, model_is_probit, three_to_one

if TYPE_CHECKING:
    from crowdrank.pipeline.sources import RankOptions

# Other names for items, and judgments without some annotators.


def without_annotators(judgments: Judgments, names: Sequence[str]) -> Judgments:
    """Return the judgments without those of some annotators, and without items that nobody else judged.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        Judgments that name annotators.
    names : sequence of str
        Annotators to leave out.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a"], ["b", "c"], ["a", "c"], annotator=["ann", "bob"])
    >>> without_annotators(votes, ["bob"])
    Comparisons(1 judgments, 2 items, 1 annotators)
    """
    if not names:
        return judgments
    if judgments.annotator is None:
        raise DataError("exclude= names annotators, but these judgments do not.")
    for name in names:
        if name not in judgments.annotators.tolist():
            raise UnknownNameError("annotator", name, judgments.annotators)
    kept = ~np.isin(judgments.annotators, list(names))
    if not kept.any():
        raise DataError("exclude= names all annotators: no judgments would remain.")
    rest: Any = judgments.take(np.flatnonzero(kept[judgments.annotator]))
    rest = replace(
        rest,
        annotators=judgments.annotators[kept],
        annotator=(np.cumsum(kept) - 1)[rest.annotator].astype(np.int32),
    )
    return _recoded(rest, rest.items.labels, rest.n_judgments_per_item > 0)


def with_aliases(judgments: Judgments, aliases: Mapping[str, str]) -> Judgments:
    """Return the judgments with items renamed; two items that get one name become one.

    Comparisons of an item with itself are left out, with a warning.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments.
    aliases : mapping of str to str
        The new name of each old one.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "a-v2"], ["b", "b"], ["a", "b"])
    >>> with_aliases(votes, {"a-v2": "a"}).items.labels.tolist()
    ['a', 'b']
    """
    if not aliases:
        return judgments
    old = judgments.items.labels
    for name in aliases:
        if name not in old.tolist():
            raise UnknownNameError("item", name, dict.fromkeys(old))
    labels = np.array([aliases.get(str(label), label) for label in old], dtype=object)
    if isinstance(judgments, Rankings) and len(set(zip(judgments.items.query, labels, strict=True))) < len(labels):
        raise DataError("aliases= cannot make two items of ranked lists one: a list may hold both.")
    if isinstance(judgments, Comparisons):
        query = judgments.items.query
        same = (labels[judgments.left] == labels[judgments.right]) & (query[judgments.left] == query[judgments.right])
        if count := int(same.sum()):
            found = "1 comparison" if count == 1 else f"{count:,} comparisons"
            issue_warning(f"aliases= left out {found} of an item with itself.", DataWarning)
            judgments = judgments.take(np.flatnonzero(~same))
    return _recoded(judgments, labels, judgments.n_judgments_per_item > 0)


def _recoded(judgments: Any, labels: ObjectArray, used: BoolArray) -> Judgments:
    """The judgments with other labels of the items, and without the items that are not used."""
    items: Items = judgments.items
    names = [(int(q), str(label)) for q, label in zip(items.query, labels, strict=True)]
    kept = sorted({name for name, is_used in zip(names, used, strict=True) if is_used})
    if not kept:
        raise DataError("No judgments are left.")
    place = {name: n for n, name in enumerate(kept)}
    code = np.array([place.get(name, -1) for name in names], np.int32)
    queries, query = np.unique([q for q, _ in kept], return_inverse=True)
    fresh = Items(np.array([label for _, label in kept], dtype=object), query.astype(np.int32), items.queries[queries])
    columns: dict[str, AnyArray] = {
        name: code[getattr(judgments, name)] for name in ("left", "right", "item") if hasattr(judgments, name)
    }
    storage = {"storage": None} if isinstance(judgments, Comparisons) else {}
    recoded: Judgments = replace(judgments, items=fresh, **columns, **storage)
    return recoded


_DRIFT_FDR = 0.05
_MAX_NAMES = 5


def check_publishable(options: RankOptions, model: Model, items: Items) -> None:
    """Raise before the fit if the scores of the model have no such scale, or an anchor is not an item."""
    if options.score_scale is not None:
        model_is_probit(name_of(model), model_settings(model), "show this scale")
    if options.by or options.criteria:
        for name in options.anchors:
            if name not in items.labels.tolist():
                raise UnknownNameError("item", name, dict.fromkeys(items.labels))
        return
    for name in options.anchors:
        items.index(name, items.queries[0])


def publish(ranking: Ranking, options: RankOptions, earlier: Ranking | None) -> tuple[Ranking, list[str]]:
    """Return the ranking as it is published, and notes.

    Parameters
    ----------
    ranking : Ranking
        The fitted ranking.
    options : RankOptions
        Scale, anchors and the fewest comparisons.
    earlier : Ranking or None
        The ranking whose scale is kept.
    """
    notes: list[str] = []
    if ranking.overall is not None:
        return _publish_boards(ranking, ranking.overall, options), notes
    if earlier is not None:
        linked = link_scale(ranking, earlier, options.score_scale)
        ranking, notes = ranking.on_scale(linked.scale), [linked.note]
    elif options.score_scale is not None:
        ranking = ranking.on_scale(make_scale(ranking, options.score_scale, options.anchors))
    return set_provisional_apart(ranking, options.min_comparisons), notes


def _publish_boards(ranking: Ranking, overall: Ranking, options: RankOptions) -> Ranking:
    """Categories or criteria with their overall, all on the scale of the overall."""
    overall, _ = publish(replace(overall, simultaneous=ranking.simultaneous), options, None)
    boards = set_provisional_apart(replace(ranking, overall=None).on_scale(overall.scale), options.min_comparisons)
    apart = None if boards.provisional is None else replace(boards.provisional, overall=overall.provisional)
    return replace(boards, overall=overall, provisional=apart)


class LinkedScale(NamedTuple):
    """A scale on which the items of two rankings have the same mean, and what happened to them in a sentence."""

    scale: Scale
    note: str


def link_scale(ranking: Ranking, earlier: Ranking, name: str | None) -> LinkedScale:
    """Return the scale of an earlier ranking for a new one: the items in both keep their mean.

    Each common item counts by the precision of its difference. Items whose difference is larger than its error
    explains, at a false discovery rate of 5 %, are named in the note.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> fit = BradleyTerry(prior_scale=1.0).fit
    >>> before = fit(Comparisons.of(["a", "a", "b"] * 9, ["b", "c", "c"] * 9, ["a", "c", "b"] * 9))
    >>> before = before.on_scale(make_scale(before, "elo"))
    >>> after = fit(Comparisons.of(["a", "a", "d"] * 9, ["b", "d", "b"] * 9, ["a", "d", "d"] * 9))
    >>> link_scale(after, before, "elo").note
    'Linked to the earlier ranking by 2 items.'
    """
    if len(ranking.items.queries) > 1 or len(earlier.items.queries) > 1:
        raise DataError("link_to= needs one ranking on both sides, but there are several queries.")
    scale = _scale_to_link(ranking, earlier, name)
    old = {str(label): n for n, label in enumerate(earlier.items.labels)}
    common = [(n, old[str(label)]) for n, label in enumerate(ranking.items.labels) if str(label) in old]
    if not common:
        raise DataError("link_to= needs items that both rankings have, and there are none.")
    now, before = (np.array(side) for side in zip(*common, strict=True))
    difference = earlier.shown_scores[before] - scale.factor * ranking.scores[now]
    variance = np.ones(len(now))
    if ranking.has_uncertainty and earlier.has_uncertainty:
        variance = (scale.factor * ranking.uncertainty.std_error[now]) ** 2 + earlier.shown_errors[before] ** 2
    shift = float(np.average(difference, weights=1 / np.maximum(variance, 1e-12)))
    count = "1 item" if len(now) == 1 else f"{len(now):,} items"
    note = f"Linked to the earlier ranking by {count}."
    if ranking.has_uncertainty and earlier.has_uncertainty and len(now) > 2:
        moved = _moved((difference - shift) / np.sqrt(np.maximum(variance, 1e-12)))
        names = [str(ranking.items.labels[now[n]]) for n in np.flatnonzero(moved)]
        shown = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
        note += f" Significant changes: {shown}." if names else " None of them changed significantly."
    return LinkedScale(replace(scale, shift=shift), note)


def _moved(z: np.ndarray) -> BoolArray:
    from math import erfc, sqrt

    p_values = np.array([erfc(abs(float(value)) / sqrt(2)) for value in z])
    return np.asarray(benjamini_hochberg(p_values) < _DRIFT_FDR)


def _scale_to_link(ranking: Ranking, earlier: Ranking, name: str | None) -> Scale:
    """The scale of the earlier ranking in the unit of the new one."""
    kept = earlier.scale
    has = "score" if kept is None else kept.name
    if kept is not None and kept.link:
        raise SettingError("link_to= needs an earlier ranking on a scale without limits, not one of probabilities.")
    if name is not None and name != has:
        raise SettingError(f"link_to=: the earlier ranking is on the scale {has!r}, not {name!r}.")
    if kept is not None and has != "score":
        return make_scale(ranking, has)
    purpose = "link rankings"
    if ranking.model == earlier.model:
        return Scale(name="score")
    same = is_probit(ranking, purpose) == is_probit(earlier, purpose)
    return Scale(name="score", factor=1.0 if same else three_to_one(earlier, purpose) / three_to_one(ranking, purpose))


def set_provisional_apart(ranking: Ranking, fewest: int) -> Ranking:
    """Return the ranking of the items with at least `fewest` judgments; the others are its `provisional` items."""
    established = ranking.n_judgments >= fewest
    if established.all():
        return ranking
    if not established.any():
        most = int(ranking.n_judgments.max())
        raise DataError(f"No item has {fewest:,} {ranking.judgment_kind}; the most is {most:,}. Lower min_comparisons.")
    return replace(restrict(ranking, established), provisional=restrict(ranking, ~established))


def restrict(ranking: Ranking, kept: BoolArray) -> Ranking:
    """Return the ranking of some of the items, with the scores of the whole."""
    old, at = ranking.items, np.flatnonzero(kept)
    queries, query = np.unique(old.query[at], return_inverse=True)
    items = Items(old.labels[at], query.astype(np.int32), old.queries[queries])
    lazy = ranking._lazy

    def measure() -> Uncertainty:
        whole = ranking.uncertainty
        return replace(whole, draws=whole.draws[:, at], std_error=whole.std_error[at])

    def count() -> IntArray:
        return ranking.n_judgments[at]

    # The judgments name all items, by codes that are not those of this ranking.
    parts = LazyParts(
        n_judgments=count,
        uncertainty=measure if ranking.has_uncertainty else None,
        annotators=lazy.annotators,
        domains=lazy.domains,
        notes=lambda: ranking.notes,
    )
    per_item = {name: values[at] for name, values in ranking.item_parameters.items()}
    drift = None if ranking.drift is None else ranking.drift.take(at, items)
    scores = ranking.scores[at]
    return replace(ranking, items=items, scores=scores, item_parameters=per_item, drift=drift, _lazy=parts)
