"""Beliefs as JSON, to go on from where they were left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import FormatError
from crowdrank.online.beliefs import Beliefs, Roll
from crowdrank.online.sequential_mcmc import Draws, Place, Posterior

VERSION = 1


def save(beliefs: Beliefs, path: str | Path) -> None:
    """Write everything believed; numbers come back to the last bit."""
    content: dict[str, Any] = {
        "crowdrank_beliefs": VERSION,
        "item": beliefs.items.labels,
        "query": beliefs.items.queries,
        "annotator": beliefs.annotators.labels,
        "of_items": {name: column.tolist() for name, column in beliefs.of_items.items()},
        "of_annotators": {name: column.tolist() for name, column in beliefs.of_annotators.items()},
        "judged": beliefs.judged,
        "left_out": beliefs.left_out,
    }
    if isinstance(beliefs, Posterior):
        content["posterior"] = _walk_of(beliefs)
    Path(path).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def load(path: str | Path) -> Beliefs:
    """Read beliefs that `save` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        version = content["crowdrank_beliefs"]
        if version == VERSION:
            return _beliefs(content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} does not hold beliefs saved by crowdrank.") from error
    raise FormatError(f"{path} was saved in version {version} of the format; this crowdrank reads {VERSION}.")


def _beliefs(content: dict[str, Any]) -> Beliefs:
    told: dict[str, Any] = {
        "items": Roll(tuple(content["item"]), tuple(content["query"])),
        "annotators": Roll.of(content["annotator"]),
        "of_items": _columns(content["of_items"]),
        "of_annotators": _columns(content["of_annotators"]),
        "judged": content["judged"],
        "left_out": content["left_out"],
    }
    return Posterior(**told, **_walk(content["posterior"])) if "posterior" in content else Beliefs(**told)


def _walk_of(beliefs: Posterior) -> dict[str, Any]:
    """What was said, the draws, and where the walk stopped."""
    place = beliefs.place
    return {
        "winner": beliefs.winner.tolist(),
        "loser": beliefs.loser.tolist(),
        "speaker": beliefs.speaker.tolist(),
        "waiting": beliefs.waiting,
        "scores": beliefs.draws.scores.tolist(),
        "qualities": beliefs.draws.qualities.tolist(),
        "place": None if place is None else [place.scores.tolist(), place.quality.tolist(), *place[2:]],
    }


def _walk(content: dict[str, Any]) -> dict[str, Any]:
    place, count = content["place"], len(content["scores"])
    scores, qualities = (np.array(content[name], np.float64).reshape(count, -1) for name in ("scores", "qualities"))
    codes = {name: np.array(content[name], np.int32) for name in ("winner", "loser", "speaker")}
    if place is not None:
        place = Place(np.array(place[0]), np.array(place[1]), *place[2:])
    return {**codes, "waiting": content["waiting"], "draws": Draws(scores, qualities), "place": place}


def _columns(lists: dict[str, list[float]]) -> dict[str, FloatArray]:
    return {name: np.array(numbers, np.float64) for name, numbers in lists.items()}
