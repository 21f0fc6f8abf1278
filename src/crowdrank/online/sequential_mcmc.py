"""The joint posterior of Crowd-BT, sampled by a Markov chain that continues as judgments arrive.

Slower than a moment-matching update, but it keeps the correlations between scores and qualities.
Beliefs of any model are saved and loaded here, as JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import TIE, Comparisons, Items
from crowdrank.errors import DataError, FormatError, SettingError
from crowdrank.models import BayesianCrowdBT
from crowdrank.models.crowd.encoding import encode_answers, index_answers
from crowdrank.models.crowd.likelihood import CROWD_BT
from crowdrank.models.crowd.priors import QualityBounds
from crowdrank.models.crowd.sampler import Sampler, State
from crowdrank.models.crowd.sampler_kernels import ALPHA_MEDIAN, BETA_MEDIAN, SCALE_MEDIAN
from crowdrank.online.beliefs import Answers, Beliefs, SequentialModel, Vocabulary

_NO_CODES = np.zeros(0, np.int32)
_COLD_START_WARMUP = 500
"""Additional warm-up sweeps of the first chain, which has no earlier state to continue from."""
VERSION = 3
"""Version of the format of saved beliefs."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Joint posterior draws, one per row.

    Parameters
    ----------
    scores : array of shape (draws, items)
        Scores, with mean zero in each query.
    qualities : array of shape (draws, annotators)
        Qualities of the annotators.
    """

    scores: FloatArray
    qualities: FloatArray


class ChainState(NamedTuple):
    """State of the Markov chain: scores, qualities and their hyperparameters."""

    scores: FloatArray
    quality: FloatArray
    scale: float
    alpha: float
    beta: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Posterior(Beliefs):
    """Beliefs with joint posterior draws; means and variances are those of the draws.

    Parameters
    ----------
    draws : Draws
        The draws.
    winner, loser, annotator : array of int
        Codes of all answers, in the order in which they came. A tie is two answers of half the weight, one each way.
    weight : array of float
        Weight of each answer.
    n_pending : int, default 0
        How many answers came after the last run of the chain, so that the draws do not include them yet.
    chain_state : ChainState, optional
        Where the last run of the chain ended.

    See Also
    --------
    Beliefs : The other parameters.
    """

    draws: Draws
    winner: Int32Array
    loser: Int32Array
    annotator: Int32Array
    weight: FloatArray
    n_pending: int = 0
    chain_state: ChainState | None = None

    @property
    def pending_pairs(self) -> Int32Array:
        """The pairs of judgments that the draws do not include yet, as two columns."""
        latest = slice(len(self.winner) - self.n_pending, None)
        return np.stack((self.winner[latest], self.loser[latest]), axis=1)


@dataclass(frozen=True, kw_only=True)
class SequentialMCMC(SequentialModel):
    """The posterior of Crowd-BT, sampled again after every few judgments, from where the last run ended.

    Between two runs new judgments wait, and new items and annotators follow the prior. A tie counts as half an
    answer each way.

    Parameters
    ----------
    prior_scale : float or "learnt", default "learnt"
        Standard deviation of the normal prior on scores.
    quality_prior : tuple of two floats or "learnt", default "learnt"
        Beta prior on an annotator's quality: pseudo-counts of true and of false answers.
    refit_every : int, default 25
        Number of judgments, given one at a time, after which the chain runs again. `fold` always runs it.
    warmup : int, default 100
        Sweeps discarded in each run.
    draws : int, default 200
        Draws kept in each run.
    thin : int, default 1
        Sweeps per draw.
    seed : int, default 0
        Seed of the chain. The same judgments and seed give the same draws.

    Examples
    --------
    >>> from crowdrank.data import Comparisons
    >>> votes = Comparisons.of(["a"] * 9, ["b"] * 9, ["a"] * 9, annotator=list("xyz") * 3)
    >>> model = SequentialMCMC(draws=50)
    >>> posterior = model.fold(model.start(), votes)
    >>> posterior.draws.scores.shape
    (50, 2)
    >>> bool(posterior.mean[0] > posterior.mean[1])
    True
    """

    prior_scale: float | Literal["learnt"] = "learnt"
    quality_prior: tuple[float, float] | Literal["learnt"] = "learnt"
    refit_every: int = 25
    warmup: int = 100
    draws: int = 200
    thin: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        self._model()  # which checks the priors
        for name in ("refit_every", "draws", "thin"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} must be at least 1, got {getattr(self, name)!r}.")
        if self.warmup < 0:
            raise SettingError(f"warmup must be zero or more, got {self.warmup!r}.")

    def fold(self, beliefs: Beliefs, comparisons: Comparisons) -> Posterior:
        """Return the posterior after a table of judgments; the chain always runs."""
        posterior = cast(Posterior, super().fold(beliefs, comparisons))
        return self._refit(posterior) if posterior.n_pending else posterior

    def empty(self) -> Posterior:
        nothing = np.zeros((self.draws, 0))
        return Posterior(
            items=Vocabulary.of(()),
            annotators=Vocabulary.of(()),
            winner=_NO_CODES,
            loser=_NO_CODES,
            annotator=_NO_CODES,
            weight=np.zeros(0),
            **_summary(nothing, nothing),
        )

    def apply(self, beliefs: Beliefs, items: Vocabulary, annotators: Vocabulary, answers: Answers) -> Posterior:
        if not isinstance(beliefs, Posterior):
            raise DataError(
                "SequentialMCMC needs a posterior of its own, got other beliefs: begin with SequentialMCMC().start()."
            )
        posterior = self._extended(beliefs, items, annotators)
        tied = answers.outcome == TIE
        row = np.repeat(np.arange(len(tied)), np.where(tied, 2, 1))
        left_won = answers.outcome[row] > 0
        left_won[1:] |= row[1:] == row[:-1]  # the second answer of a tie
        left, right = answers.left[row], answers.right[row]
        posterior = posterior.replace(
            winner=np.concatenate((posterior.winner, np.where(left_won, left, right))),
            loser=np.concatenate((posterior.loser, np.where(left_won, right, left))),
            annotator=np.concatenate((posterior.annotator, answers.annotator[row])),
            weight=np.concatenate((posterior.weight, np.where(tied, 0.5, 1.0)[row] * answers.weight[row])),
            n_judgments=posterior.n_judgments + len(tied),
            n_pending=posterior.n_pending + len(row),
        )
        return self._refit(posterior) if posterior.n_pending >= self.refit_every else posterior

    def resample(self, posterior: Posterior, times: int = 4) -> Posterior:
        """Draw again from the posterior of the same judgments, with another seed and `times` as many draws."""
        return replace(self, draws=times * self.draws, seed=self.seed + 1)._refit(posterior)

    def _extended(self, posterior: Posterior, items: Vocabulary, annotators: Vocabulary) -> Posterior:
        """Add new items and annotators, drawn from the prior."""
        new_items = len(items) - len(posterior.items)
        new_annotators = len(annotators) - len(posterior.annotators)
        if not new_items and not new_annotators:
            return posterior
        rng = np.random.default_rng([self.seed, len(items), len(annotators)])
        chain = posterior.chain_state
        scale, alpha, beta = self._hyperparameters() if chain is None else chain[2:]
        scores = np.hstack((posterior.draws.scores, scale * rng.standard_normal((self.draws, new_items))))
        qualities = np.hstack((posterior.draws.qualities, rng.beta(alpha, beta, (self.draws, new_annotators))))
        if chain is not None:
            chain = chain._replace(
                scores=np.append(chain.scores, scores[-1, len(chain.scores) :]),
                quality=np.append(chain.quality, qualities[-1, len(chain.quality) :]),
            )
        return posterior.replace(items=items, annotators=annotators, chain_state=chain, **_summary(scores, qualities))

    def _refit(self, posterior: Posterior) -> Posterior:
        """Run the chain on all judgments, from where it stopped last."""
        # The generator depends on the number of judgments alone, so the same beliefs always give the same draws.
        rng = np.random.default_rng([self.seed, len(posterior.winner)])
        order, chain = _by_query(posterior.items), posterior.chain_state
        comparisons = _comparisons(posterior, order)
        if chain is None:
            sampler = self._model().sampler(comparisons)
            state, warmup = sampler.init(rng), self.warmup + _COLD_START_WARMUP
        else:
            sampler = self._resumed_sampler(comparisons)
            state, warmup = sampler.at(chain.scores[order], chain.quality.copy(), *chain[2:]), self.warmup
        state = sampler.tune(rng, state, warmup)
        scores, qualities = np.empty((self.draws, len(order))), np.empty((self.draws, len(posterior.annotators)))
        for draw in range(self.draws):
            state, _ = sampler.sample(rng, state, self.thin)
            scores[draw, order], qualities[draw] = sampler.items.centre(state.scores), state.quality
        if self.quality_prior == "learnt":
            state = _resolve_sign(state, scores, qualities)
        last_scores = np.empty(len(order))
        last_scores[order] = state.scores
        chain = ChainState(last_scores, state.quality, state.scale, state.alpha, state.beta)
        return posterior.replace(n_pending=0, chain_state=chain, **_summary(scores, qualities))

    def _model(self) -> BayesianCrowdBT:
        return BayesianCrowdBT(prior_scale=self.prior_scale, quality_prior=self.quality_prior)

    def _hyperparameters(self) -> tuple[float, float, float]:
        """Scale of the scores, and α and β of the qualities, before any judgment."""
        scale = SCALE_MEDIAN if self.prior_scale == "learnt" else self.prior_scale
        return scale, *((ALPHA_MEDIAN, BETA_MEDIAN) if self.quality_prior == "learnt" else self.quality_prior)

    def _resumed_sampler(self, comparisons: Comparisons) -> Sampler:
        """A sampler without starting values: the chain brings its own."""
        n_annotators = len(comparisons.annotators)
        return Sampler(
            index_answers(encode_answers(comparisons), len(comparisons.items), n_annotators, CROWD_BT),
            comparisons.items,
            np.zeros(len(comparisons.items)),
            np.zeros(n_annotators),
            QualityBounds(np.zeros(n_annotators), np.ones(n_annotators), _NO_CODES, _NO_CODES),
            None if self.prior_scale == "learnt" else self.prior_scale,
            None if self.quality_prior == "learnt" else self.quality_prior,
        )


def _comparisons(posterior: Posterior, order: Int32Array) -> Comparisons:
    """All answers, with the items sorted by query, as `Items` requires."""
    code, query = np.argsort(order).astype(np.int32), posterior.items.query[order]
    labels, annotators = (np.array(names.labels, dtype=object) for names in (posterior.items, posterior.annotators))
    return Comparisons(
        items=Items(labels[order], query, np.unique(query).astype(object)),
        left=code[posterior.winner],
        right=code[posterior.loser],
        outcome=np.ones(len(posterior.winner), np.int8),
        annotators=annotators,
        annotator=posterior.annotator,
        weight=None if np.all(posterior.weight == 1) else posterior.weight,
    )


def _by_query(items: Vocabulary) -> Int32Array:
    return np.argsort(items.query, kind="stable").astype(np.int32)


def _resolve_sign(state: State, scores: FloatArray, qualities: FloatArray) -> State:
    """Choose the sign of each draw so that most annotators tell the truth.

    The likelihood is the same when all scores change sign and every quality η becomes 1 − η.
    """
    reversed_ = np.mean(qualities > 0.5, axis=1) < 0.5
    scores[reversed_] *= -1
    qualities[reversed_] = 1 - qualities[reversed_]
    if not reversed_[-1]:
        return state
    return state._replace(scores=-state.scores, quality=1 - state.quality, alpha=state.beta, beta=state.alpha)


def _summary(scores: FloatArray, qualities: FloatArray) -> dict[str, Any]:
    """The draws, and their moments per item and annotator; a Beta matches mean and variance of each quality."""
    quality, variance = qualities.mean(axis=0), np.maximum(qualities.var(axis=0), 1e-12)
    count = np.maximum(quality * (1 - quality) / variance - 1, 1e-3)
    return {
        "draws": Draws(scores, qualities),
        "item_columns": {"mean": scores.mean(axis=0), "variance": np.maximum(scores.var(axis=0), 1e-12)},
        "annotator_columns": {"alpha": count * quality, "beta": count * (1 - quality)},
    }


def save(beliefs: Beliefs, path: str | Path) -> None:
    """Write beliefs to a file. Floats are written so that they are read back to the last bit."""
    content: dict[str, Any] = {
        "crowdrank_beliefs": VERSION,
        "item": beliefs.items.labels,
        "query": beliefs.items.queries,
        "annotator": beliefs.annotators.labels,
        "item_columns": {name: column.tolist() for name, column in beliefs.item_columns.items()},
        "annotator_columns": {name: column.tolist() for name, column in beliefs.annotator_columns.items()},
        "n_judgments": beliefs.n_judgments,
        "n_ties_dropped": beliefs.n_ties_dropped,
    }
    if isinstance(beliefs, Posterior):
        content["posterior"] = _posterior_content(beliefs)
    Path(path).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def load(path: str | Path) -> Beliefs:
    """Read beliefs that `save` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        version = content["crowdrank_beliefs"]
        if version == VERSION:
            return _beliefs(content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} does not contain beliefs saved by crowdrank.") from error
    raise FormatError(
        f"{path} has version {version} of the format, but this crowdrank reads version {VERSION}: "
        "fold the judgments again and save the result."
    )


def _beliefs(content: dict[str, Any]) -> Beliefs:
    fields: dict[str, Any] = {
        "items": Vocabulary(tuple(content["item"]), tuple(content["query"])),
        "annotators": Vocabulary.of(content["annotator"]),
        "item_columns": _columns(content["item_columns"]),
        "annotator_columns": _columns(content["annotator_columns"]),
        "n_judgments": content["n_judgments"],
        "n_ties_dropped": content["n_ties_dropped"],
    }
    if "posterior" in content:
        return Posterior(**fields, **_posterior_fields(content["posterior"]))
    return Beliefs(**fields)


def _posterior_content(posterior: Posterior) -> dict[str, Any]:
    """The judgments, the draws, and the state of the chain."""
    chain = posterior.chain_state
    return {
        "winner": posterior.winner.tolist(),
        "loser": posterior.loser.tolist(),
        "annotator": posterior.annotator.tolist(),
        "weight": posterior.weight.tolist(),
        "n_pending": posterior.n_pending,
        "scores": posterior.draws.scores.tolist(),
        "qualities": posterior.draws.qualities.tolist(),
        "chain_state": None if chain is None else [chain.scores.tolist(), chain.quality.tolist(), *chain[2:]],
    }


def _posterior_fields(content: dict[str, Any]) -> dict[str, Any]:
    chain, count = content["chain_state"], len(content["scores"])
    scores, qualities = (np.array(content[name], np.float64).reshape(count, -1) for name in ("scores", "qualities"))
    codes = {name: np.array(content[name], np.int32) for name in ("winner", "loser", "annotator")}
    if chain is not None:
        chain = ChainState(np.array(chain[0]), np.array(chain[1]), *chain[2:])
    return {
        **codes,
        "weight": np.array(content["weight"], np.float64),
        "n_pending": content["n_pending"],
        "draws": Draws(scores, qualities),
        "chain_state": chain,
    }


def _columns(lists: dict[str, list[float]]) -> dict[str, FloatArray]:
    return {name: np.array(numbers, np.float64) for name, numbers in lists.items()}
