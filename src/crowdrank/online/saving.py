"""Beliefs as JSON, to go on from where they were left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.errors import FormatError
from crowdrank.online.beliefs import Beliefs, Roll, Vector

VERSION = 1


def save(beliefs: Beliefs, path: str | Path) -> None:
    """Write everything believed; numbers come back to the last bit."""
    content = {
        "crowdrank_beliefs": VERSION,
        "item": beliefs.items.labels,
        "query": beliefs.items.queries,
        "annotator": beliefs.annotators.labels,
        "of_items": {name: column.tolist() for name, column in beliefs.of_items.items()},
        "of_annotators": {name: column.tolist() for name, column in beliefs.of_annotators.items()},
        "judged": beliefs.judged,
        "left_out": beliefs.left_out,
    }
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
    return Beliefs(
        items=Roll(tuple(content["item"]), tuple(content["query"])), annotators=Roll.of(content["annotator"]),
        of_items=_columns(content["of_items"]), of_annotators=_columns(content["of_annotators"]),
        judged=content["judged"], left_out=content["left_out"],
    )  # fmt: skip


def _columns(lists: dict[str, list[float]]) -> dict[str, Vector]:
    return {name: np.array(numbers, np.float64) for name, numbers in lists.items()}
