"""Recommendation of a model: the default, unless another predicts held-out answers clearly better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import AnnotatorDetails, Comparisons, Judgments, Rankings, Ratings
from crowdrank.data.features import POSITION
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.cross_validation import Estimate, clustered_mean
from crowdrank.models import REGISTRY, by_name
from crowdrank.models.selection import ModelChoice, default_model, kinds_read, shared_error_notes
from crowdrank.results import Ranking

if TYPE_CHECKING:
    from crowdrank.evaluation.model_comparison import ModelScore

# Candidate models of a comparison: those that read the judgments as they are.

BASELINE: dict[type, str] = {Comparisons: "bradley-terry", Ratings: "mean-rating", Rankings: "plackett-luce"}
"""The model that the others are compared with, by kind of judgment."""
QUICK_MODELS: dict[type, tuple[str, ...]] = {
    Comparisons: ("bradley-terry", "crowd-bt", "factor-bt"),
    Ratings: ("mean-rating", "z-rating", "graded-response"),
    Rankings: ("plackett-luce", "borda"),
}
"""The models of a quick comparison."""
SLOW_MODELS = ("bayesian-crowd-bt", "tpp", "trm")
"""Models that sample."""
SLOW_MAX_JUDGMENTS = 1_000
"""With more judgments than this, slow models are compared only if they are named."""
BY_COMPLEXITY = (
    "bradley-terry",
    "thurstone",
    "elo",
    "crowd-bt",
    "em-elo",
    "variance-bt",
    "mpm",
    "bayesian-crowd-bt",
    "factor-bt",
    "tpp",
    "mean-rating",
    "z-rating",
    "graded-response",
    "dawid-skene",
    "plackett-luce",
    "borda",
    "crowd-agg",
    "trm",
)
"""Models from simple to complex: a score per item; parameters per annotator; features of the task; domains. Among
equally simple models the better known one comes first."""
_MIN_BOTH_ORDERS = 0.1
"""Smallest fraction of pairs in each order from which the sides count as randomised."""


@dataclass(frozen=True)
class Candidates:
    """The models to compare.

    Parameters
    ----------
    models : dict of str to Model
        The models by name.
    left_out : dict of str to str
        Why other models are not compared, by name.
    baseline : str
        Name of the model that the others are compared with.
    default : ModelChoice
        The default model of these judgments, which `rank` uses, and why.
    people : mapping from annotator to AnnotatorDetails
        Which annotators are human and which are language models, as far as it is known.
    """

    models: dict[str, Any]
    left_out: dict[str, str]
    baseline: str
    default: ModelChoice
    people: Mapping[str, AnnotatorDetails] = field(default_factory=dict)

    @property
    def predicts_humans(self) -> bool:
        """Whether only humans' answers are predicted, because the ranking is theirs."""
        return self.default.name == "commensurate-bt"

    def __len__(self) -> int:
        return len(self.models)


def select_candidates(
    judgments: Judgments,
    names: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    people: Mapping[str, AnnotatorDetails] | None = None,
    quick: bool = False,
) -> Candidates:
    """Return the models to compare: those in `names`, a few if `quick`, else all that read this kind of judgment.

    The baseline and the default model are always among them. `features` are given to models with features; by default
    those of the judgments, else the side of the screen.
    """
    wanted = names if names is not None else QUICK_MODELS[type(judgments)] if quick else _readers(judgments)
    used_features = _default_features(judgments) if features is None else tuple(features)
    found = Candidates({}, {}, BASELINE[type(judgments)], default_model(judgments, people=people), people or {})
    for name in dict.fromkeys((found.baseline, found.default.name, *wanted)):
        kind = by_name(name)
        reason = "" if names is not None and name in names else _reason_against(kind, name, judgments, used_features)
        if reason:
            found.left_out[name] = reason
        elif _has_features(kind):
            settings: dict[str, Any] = {"features": used_features or (POSITION,)}
            found.models[name] = kind(**settings)
        else:
            found.models[name] = kind()
    if names is not None and len(set(names) | {found.baseline}) < 2:
        raise SettingError(f"A comparison needs at least two models, got {', '.join(names) or 'none'}.")
    if len(found) < 2:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise DataError(f"No model can be compared with {found.baseline}. {reasons}.")
    return found


def complexity(name: str) -> tuple[int, str]:
    """Return a sort key from simple to complex; models without a known complexity come last."""
    return (BY_COMPLEXITY.index(name) if name in BY_COMPLEXITY else len(BY_COMPLEXITY)), name


def _has_features(kind: type[Any]) -> bool:
    return "features" in {entry.name for entry in fields(kind)}


def _readers(judgments: Judgments) -> list[str]:
    return [name for name, kind in REGISTRY.items() if isinstance(judgments, kinds_read(kind))]


def _default_features(judgments: Judgments) -> tuple[str, ...]:
    if not isinstance(judgments, Comparisons):
        return ()
    if judgments.features:
        return tuple(judgments.features)
    return (POSITION,) if _sides_are_randomised(judgments) else ()


def _sides_are_randomised(comparisons: Comparisons) -> bool:
    share = float(np.mean(comparisons.left < comparisons.right)) if len(comparisons) else 0.0
    return comparisons.positions_known and _MIN_BOTH_ORDERS <= share <= 1 - _MIN_BOTH_ORDERS


def _reason_against(kind: type[Any], name: str, judgments: Judgments, features: tuple[str, ...]) -> str:
    """Why a model is not compared unless it is named; "" if it is."""
    several = judgments.annotator is not None and len(judgments.annotators) > 1
    if kind.models_annotators and not several:
        return "the judgments do not name several annotators"
    if name in SLOW_MODELS and len(judgments) > SLOW_MAX_JUDGMENTS:
        return f"slow: compared only up to {SLOW_MAX_JUDGMENTS:,} judgments, or if named"
    if name == "tpp" and len(judgments.items.queries) < 2:
        return "it models domains of queries, and there is only one query"
    if _has_features(kind) and not features:
        return "the judgments have no features, and sides are unknown or not randomised"
    return ""


def model_of(ranking: Ranking) -> Any:
    """Return the model of a ranking with its settings; None if it is not a registered model."""
    if ranking.model not in REGISTRY:
        return None
    kind, known = by_name(ranking.model), dict(ranking.settings)
    return kind(**{entry.name: known[entry.name] for entry in fields(kind) if entry.name in known})


_MIN_LEAD = {"log_likelihood": 0.001, "agreement": 0.005}
"""A smaller lead than this does not matter, however significant: in nats, and as a fraction of pairs."""
_UNIT = {"log_likelihood": "nats per answer", "agreement": "of the pairs"}
_MANY_TIES = 0.05

_REASONS = {
    "thurstone": "the noise is closer to normal than to logistic",
    "elo": "later answers count more",
    "variance-bt": "annotators differ in how well they see differences",
    "mpm": "annotators differ in how closely they follow the scores",
    "bayesian-crowd-bt": "annotators differ and there are few answers from each",
    "tpp": "annotators are experts of different domains",
    "bradley-terry": "the answers tell little about the annotators",
    "mean-rating": "the grades tell little about the annotators",
    "z-rating": "annotators use the scale differently",
    "graded-response": "annotators differ in strictness and precision",
    "dawid-skene": "annotators confuse grades in different ways",
    "borda": "counting does as well as a model",
}
_NOT_BY_PREDICTION = (
    "The predictions above do not show which model is right: judges who share errors predict each other's errors."
)
_ADVANTAGE = {
    "log_likelihood": "predicts held-out answers clearly better than",
    "agreement": "orders clearly more of the held-out pairs correctly than",
}


@dataclass(frozen=True)
class Recommendation:
    """The recommended model.

    Parameters
    ----------
    model : str
        Name of the model.
    why : str
        The reason in a sentence.
    notes : list of str
        Limits of the recommendation.
    default : str
        The model that `rank` uses if none is named. It is the recommended model, unless another is clearly better.
    """

    model: str
    why: str
    notes: list[str]
    default: str


def recommend(
    judgments: Judgments,
    candidates: Candidates,
    scores: Sequence[ModelScore],
    values: Mapping[str, FloatArray],
    weight: FloatArray,
    annotator: IntArray,
    criterion: str,
) -> Recommendation:
    """Recommend a model; `values` has the criterion of each model on every held-out answer."""

    def lead(a: str, b: str) -> Estimate:
        return clustered_mean(values[a] - values[b], weight, annotator)

    def mean(name: str) -> float:
        return float(np.average(values[name], weights=weight))

    baseline, unit = candidates.baseline, _UNIT[criterion]
    # A default that cannot be compared, for example because its fit failed, gives way to the baseline.
    default = candidates.default.name if candidates.default.name in values else baseline
    best = max(values, key=mean)
    chosen = default
    # Judges who err together predict each other's errors: held-out answers cannot tell who is right.
    if candidates.default.name == "jury":
        why = f"Use jury, the default. {candidates.default.reason} {_NOT_BY_PREDICTION}"
        notes = [
            *shared_error_notes(judgments, candidates.people),
            *_note_ties(judgments),
            *_note_gold(scores, "jury", baseline),
        ]
        return Recommendation("jury", why, notes, "jury")
    if _is_worse(lead(best, default), criterion):
        chosen = next(name for name in sorted(values, key=complexity) if not _is_worse(lead(best, name), criterion))
    if chosen == default:
        reason = f"{candidates.default.reason} " if default == candidates.default.name else ""
        why = f"Use {default}, the default. {reason}{_compare_with_best(best, lead(best, default), unit)}"
        if default != baseline and (gain := lead(default, baseline)).clearly_positive:
            why += f" {default} {_ADVANTAGE[criterion]} {baseline}, by {_plus_minus(gain)} {unit}."
    else:
        advantage = f"{_ADVANTAGE[criterion]} {default}, the default, by {_plus_minus(lead(chosen, default))} {unit}"
        why = f"{chosen} {advantage}: {_reason(chosen, candidates)}."
    notes = _note_new_annotators(scores, chosen, baseline) + _note_ties(judgments)
    notes += _note_gold(scores, chosen, baseline)
    if candidates.predicts_humans:
        notes.append("Only the humans' answers were predicted, because the ranking is theirs.")
    if chosen not in (best, default):
        notes.insert(0, _note_best(best, lead(best, chosen), unit))
    return Recommendation(chosen, why, notes, candidates.default.name)


def _is_worse(lead: Estimate, criterion: str) -> bool:
    """Whether a model is clearly, and by enough to matter, behind the best."""
    return lead.clearly_positive and lead.value > _MIN_LEAD[criterion]


def _compare_with_best(best: str, lead: Estimate, unit: str) -> str:
    if lead.value <= 0:
        return "No other model predicts held-out answers better."
    return f"{best} leads by {_plus_minus(lead)} {unit}, {_significance(lead)}."


def _significance(lead: Estimate) -> str:
    if lead.clearly_positive:
        return "too little to matter"
    return "which is within one standard error" if lead.value <= lead.std_error else "which may be chance"


def _models_annotators(name: str) -> bool:
    return bool(by_name(name).models_annotators)


def _reason(name: str, candidates: Candidates) -> str:
    if name in _REASONS:
        return _REASONS[name]
    features = getattr(candidates.models[name], "features", None)
    if features is not None:
        named = ["the side of the screen" if feature == POSITION else feature for feature in features]
        return f"some annotators answer by {' and '.join(filter(None, (', '.join(named[:-1]), named[-1])))}"
    return "annotators differ" if _models_annotators(name) else "its order fits better"


def _note_best(best: str, lead: Estimate, unit: str) -> str:
    return f"{best} leads by {_plus_minus(lead)} {unit}, {_significance(lead)}: the simpler model is enough."


def _note_new_annotators(scores: Sequence[ModelScore], chosen: str, baseline: str) -> list[str]:
    """What is learnt about annotators does not help with new ones, and may do harm."""
    found = next(score for score in scores if score.model == chosen)
    score = (found.log_likelihood or found.agreement).get("annotator")
    if score is None or chosen == baseline or not -score.gain.value > 2 * score.gain.std_error:
        return []
    loss = _plus_minus(Estimate(-score.gain.value, score.gain.std_error))
    return [f"For new annotators it predicts worse than {baseline}, by {loss}."]


def _note_ties(judgments: Judgments) -> list[str]:
    if not isinstance(judgments, Comparisons) or judgments.ties < _MANY_TIES * len(judgments):
        return []
    share = judgments.ties / len(judgments)
    return [f"{share:.0%} of the judgments are ties; the comparison uses decided answers only."]


def _note_gold(scores: Sequence[ModelScore], chosen: str, baseline: str) -> list[str]:
    evaluated = [score for score in scores if score.evaluation is not None]
    found = next((score for score in evaluated if score.model == chosen), None)
    if found is None or found.evaluation is None:
        return []
    best = max(evaluated, key=lambda s: s.evaluation.accuracy if s.evaluation is not None else -np.inf)
    sentence = f"Against gold, {chosen} orders {found.evaluation.accuracy:.1%} of the pairs correctly"
    if best.evaluation is None or best.evaluation.accuracy <= found.evaluation.accuracy:
        return [f"{sentence}, as many as any other model."]
    gain = best.accuracy_gain
    clearly = f", clearly more than {baseline}" if gain and chosen == baseline and gain.clearly_positive else ""
    return [f"{sentence}; the best is {best.model} with {best.evaluation.accuracy:.1%}{clearly}."]


def _plus_minus(found: Estimate) -> str:
    return f"{found.value:.3f} ± {found.std_error:.3f}"
