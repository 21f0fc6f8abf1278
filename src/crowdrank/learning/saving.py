"""Ranking functions as one file: a zip of JSON. Nothing in it is run, and all of it is checked."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.errors import FormatError
from crowdrank.files.frames import NATIVES
from crowdrank.learning.function import RankingFunction, Validation
from crowdrank.learning.rankers.contract import Scorer
from crowdrank.learning.rankers.linear import LinearScorer
from crowdrank.learning.rankers.trees import Trees
from crowdrank.learning.teachers import Teachers
from crowdrank.results import Convergence

Vector = npt.NDArray[np.float64]

VERSION = 1
_MEMBERS = ("function.json", "scorer.json")
# No function of ours is nearly so large; a file that claims to be is a trap.
LARGEST = 1 << 28
_LONGEST = 100_000


def save(function: RankingFunction, path: str | Path) -> None:
    """Write a ranking function."""
    people = function.teachers
    content = {
        "crowdrank_function": VERSION,
        "method": function.method,
        "settings": dict(function.settings),
        "features": list(function.names),
        "validation": None if function.validation is None else asdict(function.validation),
        "convergence": asdict(function.convergence),
        "notes": list(function.notes),
        "annotators": None if people is None else {
            "annotator": people.labels.tolist(), "judged": people.judged.tolist(), "level": people.level,
            "length": people.length, "native": people.native,
            "estimates": {name: [part.tolist() for part in parts] for name, parts in people.estimates.items()},
        },
    }  # fmt: skip
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, part in zip(_MEMBERS, (content, function.scorer.state()), strict=True):
                # of a fixed date, so that the same function is the same file
                file.writestr(zipfile.ZipInfo(name), json.dumps(part, ensure_ascii=False), zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written ({(error.strerror or str(error)).lower()}).") from error


def load(path: str | Path) -> RankingFunction:
    """Read what `save` wrote."""
    if not Path(path).is_file():
        raise FormatError(f"{path}: there is no such file.")
    try:
        content, state = (json.loads(text) for text in _unpacked(path))
        version = content["crowdrank_function"]
        if version != VERSION:
            raise FormatError(f"{path} was saved in version {version} of the format; this crowdrank reads {VERSION}.")
        return _function(content, state)
    except FormatError:
        raise
    except (
        OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, KeyError, TypeError,
        AttributeError, OverflowError, RecursionError, zlib.error,
    ) as error:  # fmt: skip
        raise FormatError(f"{path} is not a ranking function saved by crowdrank.") from error


def _unpacked(path: str | Path) -> list[bytes]:
    with zipfile.ZipFile(path) as file:
        if sorted(file.namelist()) != sorted(_MEMBERS):
            raise FormatError(f"{path} is not a ranking function saved by crowdrank.")
        return [_member(file, name) for name in _MEMBERS]


def _member(file: zipfile.ZipFile, name: str) -> bytes:
    """What a member holds, never more than it may: the size that the file claims is not believed."""
    with file.open(name) as member:
        text = member.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise FormatError(f"{file.filename}: {name} is larger than any ranking function ({LARGEST:,} bytes).")
    return text


def _function(content: Mapping[str, Any], state: Mapping[str, Any]) -> RankingFunction:
    names = tuple(str(name) for name in content["features"])
    checked, people = content["validation"], content["annotators"]
    return RankingFunction(
        scorer=_scorer(state, len(names)), names=names, method=str(content["method"]),
        settings={str(k): tuple(v) if isinstance(v, list) else v for k, v in content["settings"].items()},
        teachers=None if people is None else _annotators(people),
        validation=None if checked is None else Validation(**checked),
        convergence=Convergence(**content["convergence"]), notes=tuple(map(str, content["notes"])),
    )  # fmt: skip


def _scorer(state: Mapping[str, Any], width: int) -> Scorer:
    if state["kind"] == "trees":
        return Trees.of_state(state, width)
    if state["kind"] != "linear":
        raise FormatError(f"The ranking function is of a kind that this crowdrank does not know: {state['kind']!r}.")
    found = LinearScorer.of_state(state)
    for column in (found.weights, found.centre, found.scale):
        if column.shape != (width,) or not np.isfinite(column).all():
            raise FormatError(f"The weights cannot be used: there must be {width} finite ones.")
    return found


def _annotators(people: Mapping[str, Any]) -> Teachers:
    labels = np.array([str(label) for label in people["annotator"]], dtype=object)
    judged = np.array(people["judged"], np.int64)
    estimates = {name: _interval(people["estimates"][name]) for name in ("quality", "expertise")}
    if any(part.shape != labels.shape for part in (judged, *estimates["quality"], *estimates["expertise"])):
        raise FormatError("What was learnt of the annotators cannot be used: its columns differ in length.")
    return Teachers(
        labels=labels, judged=judged, estimates=estimates, level=float(people["level"]),
        length=max(2, min(int(people["length"]), _LONGEST)),
        native=people["native"] if people["native"] in NATIVES else "polars",
    )  # fmt: skip


def _interval(parts: Any) -> tuple[Vector, Vector, Vector]:
    estimate, low, high = (np.array(part, np.float64) for part in parts)
    return estimate, low, high
