"""Save and load beliefs as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import FormatError
from crowdrank.online.beliefs import Beliefs, Vocabulary
from crowdrank.online.sequential_mcmc import ChainState, Draws, Posterior

VERSION = 2


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
    return {**codes, "n_pending": content["n_pending"], "draws": Draws(scores, qualities), "chain_state": chain}


def _columns(lists: dict[str, list[float]]) -> dict[str, FloatArray]:
    return {name: np.array(numbers, np.float64) for name, numbers in lists.items()}
