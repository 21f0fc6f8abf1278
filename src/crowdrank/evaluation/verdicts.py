"""Verdicts on annotators, from tests against scores that were fitted without them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons, EncodedSideInformation, SideInformation
from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.evaluation.annotator_tests import Evidence, collect_evidence
from crowdrank.evaluation.reference_scores import cross_fit_references
from crowdrank.models import CrowdBT
from crowdrank.models.base import Model
from crowdrank.models.camps import Camps, find_camps
from crowdrank.models.jury.jury import JuryFit, fit_jury
from crowdrank.models.selection import may_share_errors
from crowdrank.results.parts import Tabular

# Verdicts on the judges of a jury: the agreement of others proves nothing where judges err together.

P_VALUES = ("below_typical", "one_sided", "taste", "above_half", "below_half", "hasty")
# A judge that chooses a side in more than three answers of four, whatever is shown, is one-sided.
_ONE_SIDED = 0.5
_MIN_ANSWERS = 10


def find_shared_errors(comparisons: Comparisons, known: EncodedSideInformation) -> JuryFit | None:
    """The fit of the jury model, if the judges err together."""
    found = fit_jury(comparisons, known)
    return found if found.errs_together else None


def judge_jury(comparisons: Comparisons, found: JuryFit, seed: int) -> dict[str, Any]:
    """Columns of the verdicts: a judge is reliable if gold answers put its quality above one half, beyond doubt.

    Without gold nobody is: judges who err together may be consistent, too.

    Parameters
    ----------
    comparisons : Comparisons
        The answers.
    found : JuryFit
        The fit of the jury model to them.
    seed : int
        Seed of the draws behind the intervals.
    """
    assert comparisons.annotator is not None
    judges = len(comparisons.annotators)
    quality, low, high = found.quality(seed)
    difference = found.scores[comparisons.left] - found.scores[comparisons.right]
    decided_rows = comparisons.outcome != 0
    decided = np.bincount(comparisons.annotator, decided_rows, judges)
    agreed = np.bincount(comparisons.annotator, decided_rows & (comparisons.outcome * difference > 0), judges)
    enough, side = decided >= _MIN_ANSWERS, found.cells.side
    checked = enough & found.known.has_gold
    verdict = np.select(
        [enough & (np.abs(side) > _ONE_SIDED), checked & (high < 0.5), checked & (low > 0.5)],
        [np.array(word, dtype=object) for word in ("one-sided", "reversed", "reliable")],
        "too few to say",
    )
    by = "gold answers" if found.known.has_gold else "its consistency with itself"
    reason = np.array(
        [
            f"{_lean_clause(lean)}right with probability {mean:.2f} ({least:.2f} to {most:.2f}) by {by}"
            for mean, least, most, lean in zip(quality, low, high, side, strict=True)
        ],
        dtype=object,
    )
    return {"verdict": verdict, "reason": reason, "decided": decided, "agreed": agreed, "quality": quality}


def _lean_clause(lean: float) -> str:
    if abs(lean) <= _ONE_SIDED:
        return ""
    return f"chose {'left' if lean > 0 else 'right'} whatever was shown in {abs(lean):.0%} of its answers; "


VERDICTS = ("reliable", "noisy", "random", "reversed", "one-sided", "hasty", "different taste", "too few to say")
"""All verdicts."""

# One optimum per fit: verdicts refit many times, and the scale of the scores is recalibrated afterwards.
_CROWD_BT = CrowdBT(estimation="joint", prior_scale=3.0, quality_prior=(3.0, 0.5), ties="half")


@dataclass(frozen=True)
class Verdict:
    """The verdict on one annotator.

    Parameters
    ----------
    annotator : str
        Label of the annotator.
    verdict : str
        One of `VERDICTS`.
    reason : str
        The evidence in a sentence.
    quality : float
        η against the scores of the others; nan where nothing is known.
    decided, agreed : int
        Number of answers tested, and of those that agree with the others.
    """

    annotator: str
    verdict: str
    reason: str
    quality: float
    decided: int
    agreed: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Verdicts(Tabular):
    """One verdict per annotator, with its reason. ``verdicts["boris"]`` is the verdict on one annotator.

    Parameters
    ----------
    annotators : array of str
        Labels of the annotators.
    verdict : array of str
        One of `VERDICTS` per annotator.
    reason : array of str
        The evidence in a sentence per annotator.
    decided : array of int
        Number of answers tested: not ties, on items that others judged too.
    agreed : array of int
        Number of tested answers that agree with the scores of the others.
    quality : array of float
        η against the scores of the others; nan where nothing is known.
    p_values : dict of str to array
        Adjusted p-values by test: below_typical, one_sided and taste as one family; above_half, below_half and hasty
        each on its own. nan where a test is not possible, and for accusations on fewer than ten answers.
    typical : float
        Quality of a typical annotator.
    level : float
        False discovery rate.
    camps : Camps or None
        The two camps, if the crowd has any.
    native : str, default "polars"
        Data frame library of `frame`.
    """

    annotators: ObjectArray
    verdict: ObjectArray
    reason: ObjectArray
    decided: IntArray
    agreed: IntArray
    quality: FloatArray
    p_values: dict[str, FloatArray]
    typical: float
    level: float
    camps: Camps | None = None
    native: str = "polars"

    def __len__(self) -> int:
        return len(self.annotators)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {word}" for word, count in self.counts.items())
        return f"<Verdicts on {len(self):,} annotators: {counts}>"

    def __getitem__(self, annotator: object) -> Verdict:
        """Return the verdict on one annotator."""
        found = np.flatnonzero(self.annotators == str(annotator))
        if not len(found):
            raise UnknownNameError("annotator", annotator, self.annotators)
        n = int(found[0])
        return Verdict(
            annotator=str(self.annotators[n]),
            verdict=str(self.verdict[n]),
            reason=str(self.reason[n]),
            quality=float(self.quality[n]),
            decided=int(self.decided[n]),
            agreed=int(self.agreed[n]),
        )

    @property
    def counts(self) -> dict[str, int]:
        """Number of annotators per verdict, without verdicts that nobody got."""
        found = Counter(self.verdict.tolist())
        return {word: found[word] for word in VERDICTS if found[word]}

    def to_polars(self) -> pl.DataFrame:
        """Return one row per annotator, sorted by label."""
        columns: dict[str, Any] = {
            "annotator": self.annotators.tolist(),
            "verdict": self.verdict.tolist(),
            "reason": self.reason.tolist(),
            "decided": self.decided,
            "agreed": self.agreed,
        }
        return pl.DataFrame(columns | {f"p_{name}": p_value for name, p_value in self.p_values.items()}).with_columns(
            pl.col(f"p_{name}").fill_nan(None) for name in self.p_values
        )


def verdicts(
    comparisons: Comparisons,
    *,
    model: Model = _CROWD_BT,
    level: float = 0.05,
    folds: int = 5,
    seed: int = 0,
    side_information: SideInformation | None = None,
) -> Verdicts:
    """Test the decided answers of each annotator against scores that were fitted to the other annotators.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with annotators.
    model : Model, default the joint estimate of crowd-bt
        Model of the scores.
    level : float, default 0.05
        False discovery rate of accusations, all kinds and all annotators together.
    folds : int, default 5
        Number of folds of annotators.
    seed : int, default 0
        Seed of the folds and of the search for camps.
    side_information : SideInformation, optional
        Gold pairs and kinds of annotators, for judges who err together. Others are tested against each other only.

    Returns
    -------
    Verdicts
        One verdict per annotator, with reasons and p-values.

    Notes
    -----
    Random answers are left or right with probability ½, whatever was shown. So the distribution of their sum, with
    weights that were fixed without them, is known for every number of answers, and large sums are evidence:

    - weighted by what the scores predict: above zero (better than random) or below (reversed); the same sum against
      what a typical annotator reaches (noisy, random);
    - equal weights, orthogonal to what the scores predict: preference for a side (one-sided), if sides are known;
    - in a crowd with tastes, weighted by the difference between the two camps (different taste); everything else is
      then tested against the scores of the annotator's own camp;
    - response times by the Mann–Whitney test (hasty), if they are known.

    No annotator has more than a tenth of the weight in the scores that others are tested against. Nobody is accused on
    fewer than ten answers. The p-values of accusations (worse than typical, one-sided, different taste) are adjusted
    together after Benjamini and Hochberg; reversed and hasty annotators must be worse than typical too. If several
    verdicts apply, the first of these holds: one-sided, hasty, different taste, reversed, random, noisy, reliable, too
    few to say. Every answer counts once in the tests; weights are used in the fits.

    Where the judges of a jury (both orders were shown, or language models) err together, agreement with the others
    proves nothing. Then a judge is reliable if gold answers put its quality above one half beyond doubt, by the jury
    model; without gold, there is too little to say.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> verdicts(mixed_crowd(kinds={"good": 12, "reversed": 2, "left": 1}, seed=1).judgments)
    <Verdicts on 15 annotators: 12 reliable, 2 reversed, 1 one-sided>
    """
    if comparisons.annotator is None:
        raise DataError("Verdicts need annotators, but these judgments do not name them.")
    if not 0 < level < 0.5:
        raise SettingError(f"level must be between 0 and 0.5, got {level}.")
    if folds < 2:
        raise SettingError(f"folds must be at least 2, got {folds}.")
    if (jury := _jury_verdicts(comparisons, side_information, level, seed)) is not None:
        return jury
    camps = find_camps(comparisons, seed)
    references = cross_fit_references(comparisons, model, folds, camps, np.random.default_rng(seed))
    evidence = collect_evidence(comparisons, references, camps, level)
    return Verdicts(
        annotators=comparisons.annotators,
        verdict=_decide(evidence),
        reason=_reasons(evidence),
        decided=evidence.decided.astype(np.int64),
        agreed=evidence.agreed.astype(np.int64),
        quality=evidence.quality,
        p_values=evidence.p_values,
        typical=evidence.typical,
        level=level,
        camps=camps,
        native=comparisons.frame_backend,
    )


def _jury_verdicts(comparisons: Comparisons, known: SideInformation | None, level: float, seed: int) -> Verdicts | None:
    """Verdicts on the judges of a jury who err together; None for other crowds."""
    people = {} if known is None else {str(name): details for name, details in known.people.items()}
    if not may_share_errors(comparisons, people, gold=known is not None and known.gold is not None):
        return None
    encoded = NO_SIDE_INFORMATION if known is None else known.encode(comparisons)
    if (found := find_shared_errors(comparisons, encoded)) is None:
        return None
    columns = judge_jury(comparisons, found, seed)
    return Verdicts(
        annotators=comparisons.annotators,
        verdict=columns["verdict"],
        reason=columns["reason"],
        decided=columns["decided"].astype(np.int64),
        agreed=columns["agreed"].astype(np.int64),
        quality=np.asarray(columns["quality"], np.float64),
        p_values={name: np.full(len(comparisons.annotators), np.nan) for name in P_VALUES},
        typical=float(np.median(columns["quality"])),
        level=level,
        native=comparisons.frame_backend,
    )


def _decide(evidence: Evidence) -> ObjectArray:
    """The first verdict that applies."""
    found = {
        "one-sided": evidence.one_sided,
        "hasty": evidence.hasty,
        "different taste": evidence.different_taste,
        "reversed": evidence.reversed,
        "random": evidence.random,
        "noisy": evidence.noisy,
        "reliable": evidence.reliable,
    }
    return np.select(list(found.values()), [np.array(word, dtype=object) for word in found], VERDICTS[-1])


def _reasons(evidence: Evidence) -> ObjectArray:
    """One sentence per annotator: what the verdict rests on first, agreement with the others last."""
    clauses = [
        (evidence.one_sided, _side_clause),
        (evidence.hasty, _time_clause),
        (evidence.different_taste, _camp_clause),
    ]
    reasons = np.empty(len(evidence.decided), dtype=object)
    for n in range(len(reasons)):
        special = [clause(evidence, n) for applies, clause in clauses if applies[n]]
        reasons[n] = "; ".join([*special, _agreement_clause(evidence, n)])
    return reasons


def _side_clause(evidence: Evidence, n: int) -> str:
    left, expected, decided = (float(v[n]) for v in (evidence.left, evidence.left_expected, evidence.decided))
    side = "left" if left > expected else "right"
    if side == "right":
        left, expected = decided - left, decided - expected
    expected = min(max(expected, 0.0), decided)
    return f"chose {side} in {left:,.0f} of {_answers(decided)}, expected {expected:,.0f}{_p(evidence, 'one_sided', n)}"


def _time_clause(evidence: Evidence, n: int) -> str:
    assert evidence.response_times is not None
    median, typical = evidence.response_times.median[n], evidence.response_times.typical
    return f"took {median:.3g} seconds per answer, typically {typical:.3g}{_p(evidence, 'hasty', n)}"


def _camp_clause(evidence: Evidence, n: int) -> str:
    sided, contested = evidence.camps.with_smaller[n], evidence.camps.contested[n]
    return (
        f"sided with the smaller camp in {sided:,.0f} of {contested:,.0f} contested answers{_p(evidence, 'taste', n)}"
    )


def _agreement_clause(evidence: Evidence, n: int) -> str:
    decided, agreed = evidence.decided[n], evidence.agreed[n]
    if len(evidence.decided) < 3:
        return "cannot be checked: at least two other annotators are needed"
    if not decided:
        return _untested_clause(int(evidence.answers[n]))
    others = "others of a camp" if evidence.has_camps else "others"
    return f"agreed with the {others} on {agreed:,.0f} of {_answers(decided)}: {_conclusion(evidence, n)}"


def _conclusion(evidence: Evidence, n: int) -> str:
    if evidence.reversed[n]:
        return f"below half{_p(evidence, 'below_half', n)}"
    if evidence.significant("above_half")[n]:
        above = f"above half{_p(evidence, 'above_half', n)}"
        if not evidence.noisy[n]:
            return above
        return f"{above}, below the typical annotator{_p(evidence, 'below_typical', n)}"
    nearer = min(("above_half", "below_half"), key=lambda test: float(np.nan_to_num(evidence.p_values[test][n], nan=2)))
    random, upper = f"could be random{_p(evidence, nearer, n)}", evidence.upper[n]
    if not evidence.significant("below_typical")[n]:
        return f"{random} or typical{_p(evidence, 'below_typical', n)}"
    # The bound is for this annotator alone, the p-value is adjusted for all: below one half they would contradict.
    return f"{random}, quality at most {upper:.2f}" if upper >= 0.5 else random


def _untested_clause(answers: int) -> str:
    if not answers:
        return "gave no decided answer"
    return f"gave {_answers(answers)} that cannot be checked: the others judged other items or contradict each other"


def _answers(number: float) -> str:
    return f"{number:,.0f} answer{'' if number == 1 else 's'}"


def _p(evidence: Evidence, test: str, n: int) -> str:
    """The adjusted p-value; nothing for accusations that were not tested for want of answers."""
    p_value = float(evidence.p_values[test][n])
    if np.isnan(p_value):
        return ""
    return " (p < 0.001)" if p_value < 0.001 else f" (p = {p_value:.2g})"
