"""Comparison of models on given judgments: by cross-validation, and against gold where there is some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import AnnotatorDetails, Comparisons, Judgments, SideInformation
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.evaluation.cross_validation import (
    Estimate,
    Fold,
    HeldOutPredictions,
    HoldOut,
    PairedScore,
    fit_quietly,
    knows_people,
    make_folds,
    paired_scores,
    predict_held_out,
)
from crowdrank.evaluation.gold import Evaluation, Gold, accuracy_gains, evaluate_all
from crowdrank.evaluation.recommendation import Candidates, Recommendation, recommend, select_candidates
from crowdrank.models.base import model_settings
from crowdrank.models.commensurate.judge_scores import find_sources
from crowdrank.results import Ranking
from crowdrank.results.parts import Tabular

MIN_JUDGMENTS = 20
"""Fewer judgments than this are too few for cross-validation."""
_MANY_JUDGMENTS = 20_000
"""With more judgments than this, a quick comparison predicts one fold only."""

Progress = Callable[[str, int, int], None]
"""Called after each fit with the name of the model, the number of fits done, and their total."""


@dataclass(frozen=True)
class ModelScore:
    """One model and its scores.

    Parameters
    ----------
    model : str
        Name of the model.
    settings : dict
        Its settings.
    log_likelihood : dict of str to PairedScore
        Log-likelihood per held-out answer in nats, by what was held out; empty for models without probabilities.
    agreement : dict of str to PairedScore
        Fraction of held-out answers whose preferred item has the higher score, by what was held out.
    evaluation : Evaluation or None
        Metrics against gold of a fit to all judgments.
    accuracy_gain : Estimate or None
        Gain in accuracy over the baseline, against gold.
    seconds : float
        Time of all fits.
    not_converged : int
        Number of fits that did not converge.
    """

    model: str
    settings: dict[str, Any]
    log_likelihood: dict[HoldOut, PairedScore]
    agreement: dict[HoldOut, PairedScore]
    evaluation: Evaluation | None
    accuracy_gain: Estimate | None
    seconds: float
    not_converged: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison(Tabular):
    """The result of a comparison. ``comparison["crowd-bt"]`` is the score of one model.

    Parameters
    ----------
    models : tuple of ModelScore
        The models, best first.
    left_out : dict of str to str
        Models that were not compared, with the reason.
    baseline : str
        Name of the model that the others are compared with.
    criterion : str
        "log_likelihood" for comparisons; "agreement" for ratings and lists, or if only one model has probabilities.
    folds : int
        Number of folds.
    answers : dict of str to int
        Number of held-out answers, by what was held out.
    recommendation : Recommendation
        The recommended model.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    models: tuple[ModelScore, ...]
    left_out: dict[str, str]
    baseline: str
    criterion: str
    folds: int
    answers: dict[HoldOut, int]
    recommendation: Recommendation
    native: str = "polars"

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        return f"<{len(self)} models compared: {self.recommendation.model} is recommended>"

    def __getitem__(self, name: str) -> ModelScore:
        """Return the scores of one model."""
        for score in self.models:
            if score.model == name:
                return score
        raise UnknownNameError("compared model", name, [score.model for score in self.models])

    @property
    def best(self) -> str:
        """The model with the best mean."""
        return self.models[0].model

    def to_polars(self) -> pl.DataFrame:
        """Return one row per model: each score and its gain over the baseline, with standard errors."""
        return pl.DataFrame([_row(score, self.answers) for score in self.models], infer_schema_length=None)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "recommended": self.recommendation.model,
            "default": self.recommendation.default,
            "why": self.recommendation.why,
            "notes": self.recommendation.notes,
            "best": self.best,
            "baseline": self.baseline,
            "criterion": self.criterion,
            "folds": self.folds,
            "answers": dict(self.answers),
            "models": [_score_dict(score) for score in self.models],
            "left_out": dict(self.left_out),
        }


def compare_models(
    judgments: Judgments,
    models: Sequence[str] | None = None,
    *,
    gold: Gold | None = None,
    features: Sequence[str] | None = None,
    people: Mapping[str, AnnotatorDetails] | None = None,
    folds: int = 5,
    quick: bool = False,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> ModelComparison:
    """Compare models by cross-validation and recommend one.

    Parameters
    ----------
    judgments : Judgments
        The judgments.
    models : sequence of str, optional
        Names of the models; by default all that read this kind of judgment, except slow ones on many judgments.
    gold : Gold, optional
        True values of items: adds metrics against them.
    features : sequence of str, optional
        Features for models that take them into account.
    people : mapping from annotator to AnnotatorDetails, optional
        Which annotators are human and which are language models. If there are both, only humans' answers are
        predicted, because the ranking is theirs.
    folds : int, default 5
        Number of folds.
    quick : bool, default False
        Compare a few models, and hold out judgments only.
    seed : int, default 0
        Seed of the folds.
    on_progress : callable, optional
        Called after each fit with the model, the number of fits done and their total.

    Returns
    -------
    ModelComparison
        The models, best first, and a recommendation: the default model, or the simplest that is not clearly worse than
        the best if the default is.

    Notes
    -----
    Judgments are held out, and then whole annotators. All models predict the same answers, so differences are paired;
    their standard errors are clustered by annotator.
    """
    if folds < 2:
        raise SettingError(f"folds must be at least 2, got {folds}.")
    if len(judgments) < MIN_JUDGMENTS:
        raise DataError(f"Comparing models needs at least {MIN_JUDGMENTS} judgments; got {len(judgments)}.")
    candidates = select_candidates(judgments, models, features, people=people, quick=quick)
    known = SideInformation(people=people) if people else None
    humans = _human_rows(judgments, known) if candidates.predicts_humans else None
    held_out = _held_out_folds(judgments, folds, quick, seed, humans)
    progress = _ProgressCounter(on_progress, len(candidates) * (sum(map(len, held_out.values())) + (gold is not None)))
    predictions = {
        by: predict_held_out(candidates.models, parts, candidates.left_out, progress, known)
        for by, parts in held_out.items()
    }
    _require_two_models(candidates)
    evaluations = {} if gold is None else _evaluations(judgments, candidates, gold, seed, progress, known)
    return _comparison(judgments, candidates, predictions, evaluations, folds)


def _require_two_models(candidates: Candidates) -> None:
    """Raise an error if the baseline, or all models but one, cannot be fitted."""
    if reason := candidates.left_out.get(candidates.baseline):
        raise DataError(f"The baseline {candidates.baseline} cannot be fitted: {reason}")
    if len(candidates.models.keys() - candidates.left_out.keys()) < 2:
        reasons = "; ".join(f"{name}: {why}" for name, why in candidates.left_out.items())
        raise DataError(f"Only {candidates.baseline} can be fitted to parts of these judgments. {reasons}")


@dataclass
class _ProgressCounter:
    """Counts fits and reports them."""

    report: Progress | None
    total: int
    done: int = 0

    def __call__(self, name: str) -> None:
        self.done += 1
        if self.report is not None:
            self.report(name, self.done, self.total)


def _human_rows(judgments: Judgments, known: SideInformation | None) -> BoolArray:
    """The rows that are humans' answers."""
    # otherwise the default model would be another
    assert known is not None
    assert isinstance(judgments, Comparisons)
    return find_sources(judgments, known.encode(judgments).people).human


def _held_out_folds(
    judgments: Judgments, folds: int, quick: bool, seed: int, predicted: BoolArray | None
) -> dict[HoldOut, list[Fold]]:
    limit = 1 if quick and len(judgments) > _MANY_JUDGMENTS else None
    held_out: dict[HoldOut, list[Fold]] = {"judgment": make_folds(judgments, "judgment", folds, seed, limit, predicted)}
    if not quick and judgments.annotator is not None and len(judgments.annotators) > 1:
        held_out["annotator"] = make_folds(judgments, "annotator", folds, seed, predicted=predicted)
    held_out = {by: parts for by, parts in held_out.items() if parts}
    if not held_out:
        raise DataError("The held-out judgments contain no ordered pair, so models cannot be scored.")
    return held_out


def _evaluations(
    judgments: Judgments,
    candidates: Candidates,
    gold: Gold,
    seed: int,
    progress: _ProgressCounter,
    known: SideInformation | None,
) -> dict[str, tuple[Evaluation, Estimate]]:
    rankings: dict[str, Ranking] = {}
    for name, model in candidates.models.items():
        if name not in candidates.left_out:
            rankings[name] = fit_quietly(model, judgments, known if knows_people(model) else None)[0]
        progress(name)
    gains = accuracy_gains(rankings, gold, candidates.baseline, np.random.default_rng(seed))
    return {name: (evaluation, gains[name]) for name, evaluation in evaluate_all(rankings, gold).items()}


def _comparison(
    judgments: Judgments,
    candidates: Candidates,
    predictions: dict[HoldOut, HeldOutPredictions],
    evaluations: dict[str, tuple[Evaluation, Estimate]],
    folds: int,
) -> ModelComparison:
    by, found = next(iter(predictions.items()))
    by_likelihood = isinstance(judgments, Comparisons) and len(found.log_likelihood) > 1
    baseline = candidates.baseline
    log_likelihood = {by: _scores(found, found.log_likelihood, baseline) for by, found in predictions.items()}
    agreement = {by: _scores(found, found.agreement, baseline) for by, found in predictions.items()}
    scores = [
        ModelScore(
            name,
            model_settings(model),
            _scores_of(name, log_likelihood),
            _scores_of(name, agreement),
            evaluations[name][0] if evaluations else None,
            evaluations[name][1] if evaluations else None,
            round(sum(found.seconds[name] for found in predictions.values()), 2),
            sum(found.not_converged[name] for found in predictions.values()),
        )
        for name, model in candidates.models.items()
        if name not in candidates.left_out
    ]
    criterion = "log_likelihood" if by_likelihood else "agreement"
    main = (log_likelihood if by_likelihood else agreement)[by]
    scores.sort(key=lambda s: (-_mean(main.get(s.model)), -_mean(agreement[by].get(s.model)), s.model))
    parts = found.log_likelihood if by_likelihood else found.agreement
    values = {name: np.concatenate(part) for name, part in parts.items() if name not in candidates.left_out}
    return ModelComparison(
        models=tuple(scores),
        left_out=candidates.left_out,
        baseline=baseline,
        criterion=criterion,
        folds=folds,
        answers={by: len(found.weight) for by, found in predictions.items()},
        recommendation=recommend(judgments, candidates, scores, values, found.weight, found.annotator, criterion),
        native=judgments.frame_backend,
    )


def _scores(
    predictions: HeldOutPredictions, values: dict[str, list[FloatArray]], baseline: str
) -> dict[str, PairedScore]:
    joined = {name: np.concatenate(parts) for name, parts in values.items()}
    return paired_scores(joined, predictions.weight, predictions.annotator, baseline)


def _scores_of(name: str, scores: dict[HoldOut, dict[str, PairedScore]]) -> dict[HoldOut, PairedScore]:
    return {by: by_model[name] for by, by_model in scores.items() if name in by_model}


def _mean(score: PairedScore | None) -> float:
    return -np.inf if score is None else score.mean.value


def _row(score: ModelScore, answers: dict[HoldOut, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"model": score.model}
    for by in answers:
        for name, found in (("log_likelihood", score.log_likelihood), ("agreement", score.agreement)):
            row |= _cells(f"{name}_by_{by}", found.get(by))
    if score.evaluation is not None:
        row |= {measure.metric: measure.value for measure in score.evaluation.measures}
    if score.accuracy_gain is not None:
        row |= {"accuracy_gain": score.accuracy_gain.value, "accuracy_gain_error": score.accuracy_gain.std_error}
    return row | {"seconds": score.seconds}


def _cells(name: str, score: PairedScore | None) -> dict[str, float | None]:
    mean, gain = (None, None) if score is None else (score.mean, score.gain)
    cells = {}
    for suffix, found in (("", mean), ("_gain", gain)):
        cells[f"{name}{suffix}"] = None if found is None else found.value
        cells[f"{name}{suffix}_error"] = None if found is None else found.std_error
    return cells


def _score_dict(score: ModelScore) -> dict[str, Any]:
    return {
        "model": score.model,
        "settings": score.settings,
        "log_likelihood": _paired_dict(score.log_likelihood),
        "agreement": _paired_dict(score.agreement),
        "gold": None if score.evaluation is None else {m.metric: _finite(m.value) for m in score.evaluation.measures},
        "accuracy_gain": _estimate_dict(score.accuracy_gain),
        "seconds": score.seconds,
        "not_converged": score.not_converged,
    }


def _paired_dict(scores: dict[HoldOut, PairedScore]) -> dict[str, Any]:
    return {
        by: {
            "mean": _estimate_dict(score.mean),
            "gain": _estimate_dict(score.gain),
            "deficit": _estimate_dict(score.deficit),
        }
        for by, score in scores.items()
    }


def _estimate_dict(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    return {"value": _finite(estimate.value), "std_error": _finite(estimate.std_error)}


def _finite(value: float) -> float | None:
    """None for nan, which JSON does not have."""
    return value if np.isfinite(value) else None
