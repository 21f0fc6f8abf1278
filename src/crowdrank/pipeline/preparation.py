"""Everything before the fit: read the judgments, choose the model, convert the judgments to what it reads."""

from __future__ import annotations

import warnings
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from crowdrank.data import AnnotatorDetails, Comparisons, Judgments, Rankings, SideInformation
from crowdrank.data.side_information import describe_kinds
from crowdrank.errors import DataError, DataWarning, SettingError
from crowdrank.io import ImportReport
from crowdrank.leaderboard.categories import check_boards, default_for_categories, pooling_settings
from crowdrank.leaderboard.control import default_choice, feature_settings, with_feature_sides
from crowdrank.leaderboard.publishing import check_publishable, with_aliases, without_annotators
from crowdrank.models import Model, by_name, name_of
from crowdrank.models.selection import (
    ModelChoice,
    convert_for,
    default_model,
    has_setting,
    models_that,
    notes_for,
    parse_settings,
)
from crowdrank.pipeline.rank_options import AUTO, RankOptions, Stage, silent
from crowdrank.pipeline.sources import ItemInformation, are_agreed, load_people, read_gold_pairs, read_judgments

# Judgments are refused if at least this share of at least so many items was compared once, with each other.
_LONE_SHARE, _FEWEST_LONE_ITEMS = 0.95, 10


@dataclass(frozen=True, kw_only=True)
class PreparedData:
    """Everything that is known before the fit.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments as read.
    report : ImportReport or None
        How each row was handled; None if the source is not a file or table.
    choice : ModelChoice
        The name of the model, and why it was chosen.
    model : Model
        The model with its settings.
    converted : Comparisons, Ratings or Rankings
        The judgments as the model reads them.
    conversion : str
        How they were converted; empty if they were not.
    side_information : SideInformation or None
        Gold pairs, and knowledge about annotators.
    items : ItemInformation
        Columns about items.
    """

    judgments: Judgments
    report: ImportReport | None
    choice: ModelChoice
    model: Model
    converted: Judgments
    conversion: str
    side_information: SideInformation | None
    items: ItemInformation


def prepare(
    source: Any, options: RankOptions, stage: Stage = silent, *, among: Container[str] | None = None
) -> PreparedData:
    """Read the judgments, choose the model (one of `among`, if given), and convert the judgments to what it reads."""
    items = ItemInformation.read(source, options)
    judgments, report = read_judgments(source, options, items.columns_to_read, stage)
    if options.by or options.criteria:
        check_boards(judgments, options)
    judgments = with_feature_sides(judgments, items.feature_sides)
    judgments = with_aliases(without_annotators(judgments, options.exclude), options.aliases)
    if options.system is None and options.by is None:
        _check_connected(judgments)
    people = load_people(options, judgments)
    choice = _choose_model(judgments, items, people, options, stage, among)
    model = _make_model(choice, options)
    if people and options.people is None and model.accepts_people:
        choice = replace(choice, notes=(describe_kinds(people), *choice.notes))
    check_publishable(options, model, judgments.items)
    if options.time:
        from crowdrank.leaderboard.options import check_drift

        check_drift(options, model, judgments)
    filled, filling = _fill_missing(judgments, options.missing)
    converted, conversion = convert_for(model, filled)
    if options.features and isinstance(converted, Comparisons):
        converted = items.add_features(converted)
    return PreparedData(
        judgments=judgments,
        report=report,
        choice=choice,
        model=model,
        converted=converted,
        conversion="; ".join(filter(None, (filling, conversion))),
        side_information=_read_side_information(model, converted, people, options),
        items=items,
    )


def _check_connected(judgments: Judgments) -> None:
    """Raise DataError if nearly every item was compared once, with another that was compared once."""
    items = len(judgments.items)
    if not isinstance(judgments, Comparisons) or items < _FEWEST_LONE_ITEMS:
        return
    lone = judgments.n_judgments_per_item == 1
    if lone.mean() < _LONE_SHARE or judgments.n_judgments > items / (2 * _LONE_SHARE):
        return
    nearly = "" if lone.all() else "Nearly all of "
    raise DataError(
        f"{nearly}{items:,} items were compared once each: there is nothing to rank.",
        remedy="An order needs items that were compared with several others. If these items are texts of a few authors "
        "or systems, rank those: columns={'left': 'COLUMN', 'right': 'COLUMN'}.",
        option="columns",
        value={"left": "COLUMN", "right": "COLUMN"},
    )


def _choose_model(
    judgments: Judgments,
    items: ItemInformation,
    people: Mapping[str, AnnotatorDetails],
    options: RankOptions,
    stage: Stage,
    among: Container[str] | None = None,
) -> ModelChoice:
    """The model that was named, the default, or with "auto" the one that predicts held-out judgments best."""
    if options.model is not None and options.model != AUTO:
        name = options.model if isinstance(options.model, str) else name_of(options.model)
        return ModelChoice(name, notes=notes_for(judgments, name))
    # known qualities of annotators need a model that weights them
    weighted = bool(options.annotator_quality or options.annotator_order)
    default = default_model(
        judgments,
        win_probabilities=options.system is not None,
        among=among,
        people={} if weighted else people,
        gold=options.gold_pairs is not None and not are_agreed(options.gold_pairs),
    )
    if options.model is None:
        return default_choice(judgments, options, default.name) or default_for_categories(judgments, options) or default
    from crowdrank.evaluation import compare_models

    if isinstance(judgments, Comparisons):  # the compared models get the requested features and no others
        judgments = items.add_features(judgments) if options.features else replace(judgments, features={})
    try:
        with stage("Comparing models") as update:
            found = compare_models(
                judgments,
                features=options.features or None,
                quick=True,
                seed=options.seed or 0,
                on_progress=lambda name, done, total: update(f"{name}, fit {done:,} of {total:,}"),
            ).recommendation
    except DataError as error:
        reason = f"{default.name} is the default model; no others were compared: {error}"
        return replace(default, reason=reason, compared=True)
    notes = notes_for(judgments, found.model)
    if options.features and not has_setting(by_name(found.model), "features"):
        notes += (f"{found.model} predicts best and does not use the features.",)
    return ModelChoice(found.model, found.why, compared=True, notes=notes)


def _make_model(choice: ModelChoice, options: RankOptions) -> Model:
    """The model with its settings; raises if the engine cannot run it."""
    given = None if options.model is None or isinstance(options.model, str) else options.model
    cls = by_name(choice.name) if given is None else type(given)
    if options.engine == "dask" and not cls.distributable:
        raise SettingError(
            f"{choice.name} computes on one machine: omit engine='dask', or use one of "
            f"{', '.join(models_that('distributable'))}."
        )
    settings = parse_settings(cls, options.settings, options.seed)
    if options.model != AUTO or has_setting(cls, "features"):  # a comparison of models may find features useless
        settings |= feature_settings(cls, choice.name, options)
    settings |= pooling_settings(cls, choice.name, options)
    if options.measure is not None and has_setting(cls, "measure"):  # crowd-agg orders by it in its own way
        settings["measure"] = options.measure
    elif options.measure == "rbp":
        raise SettingError(f"measure='rbp' needs crowd-agg; {choice.name} can be ordered for ndcg.")
    return cls(**settings) if given is None else replace(given, **settings)


def _fill_missing(judgments: Judgments, missing: str | None) -> tuple[Judgments, str]:
    """With "worse", put the items that a list leaves out at its end. Returns the rule in words, too."""
    if missing is None:
        return judgments, ""
    if not isinstance(judgments, Rankings):
        kind = type(judgments).__name__.lower()
        raise DataError(f"missing= is about items missing from ranked lists, but these judgments are {kind}.")
    if missing == "unknown":
        return judgments, ""
    return judgments.with_missing_last(), "items missing from a list rank below the listed ones"


def _read_side_information(
    model: Model, data: Judgments, people: Mapping[str, AnnotatorDetails], options: RankOptions
) -> SideInformation | None:
    """Gold pairs and known qualities of annotators; raises an error if the model cannot use them."""
    if not options.has_side_information:
        usable = people and (model.accepts_side_information or model.accepts_people)
        return SideInformation(people=people) if usable else None
    if not model.accepts_side_information or not isinstance(data, Comparisons):
        able = models_that("accepts_side_information")
        raise SettingError(
            f"gold_pairs=, annotator_quality= and annotator_order= need comparisons and a model that uses side "
            f"information: {', '.join(able[:-1])} or {able[-1]}."
        )
    quality = options.annotator_quality
    return SideInformation(
        quality={name: value for name, value in quality.items() if not isinstance(value, tuple)},
        between={name: value for name, value in quality.items() if isinstance(value, tuple)},
        better=options.annotator_order,
        gold=read_gold_pairs(options),
        people=people,
    )


def describe_side_information(prepared: PreparedData) -> str:
    """Side information in one line; empty if there is none."""
    if prepared.side_information is None or not isinstance(prepared.converted, Comparisons):
        return ""
    with warnings.catch_warnings():  # the fit has already warned about gold pairs with unknown items
        warnings.simplefilter("ignore", DataWarning)
        known = prepared.side_information.encode(prepared.converted)
    annotators = len({*known.quality, *known.between})
    counts = (
        (len(known.gold_better), "gold pair", "gold pairs"),
        (annotators, "annotator's quality", "annotators' quality"),
        (len(known.better), "annotator order", "annotator orders"),
    )
    found = [f"{n:,} {one if n == 1 else many}" for n, one, many in counts if n]
    return f"Side information: {', '.join(found)}." if found else ""


def opening_notes(prepared: PreparedData) -> list[str]:
    """What is known before the fit: tastes, rows that were left out, why this model, how judgments were converted."""
    choice, report = prepared.choice, prepared.report
    found = [*choice.notes]
    if report is not None:
        found += [report.dropped_summary(), *report.notes]
    found.append(choice.reason if choice.compared else "")
    found.append(f"The judgments were converted: {prepared.conversion}." if prepared.conversion else "")
    return [note for note in found if note]
