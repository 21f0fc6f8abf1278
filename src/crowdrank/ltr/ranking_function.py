"""What was learnt: a function that ranks new items, and how far each teacher can be believed.

Ranking functions as one file: a zip of JSON. Nothing in it is run, and all of it is checked.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError, FormatError
from crowdrank.io.frames import NATIVES
from crowdrank.ltr.expertise import Teachers
from crowdrank.ltr.features import Features
from crowdrank.ltr.rankers.boosted import Trees
from crowdrank.ltr.rankers.linear import LinearScorer, Scorer
from crowdrank.results import CLOSED_FORM, Convergence
from crowdrank.results.frames import as_native


@dataclass(frozen=True)
class Validation:
    """How well queries were ranked that the function had not seen."""

    metric: str
    value: float
    std_error: float
    """Of the mean, from the spread between queries."""
    queries: int
    against: str
    """What the order was held against: grades, or the annotators' own lists."""

    def __str__(self) -> str:
        return (
            f"{self.metric} {self.value:.3f} ± {self.std_error:.3f} on {self.queries:,} queries held out, "
            f"against {self.against}"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankingFunction:
    """A trained ranking function, with what was learnt beside it. `CrowdRanker.fit` gives one."""

    scorer: Scorer
    names: tuple[str, ...]
    """The features it looks at, in its order."""
    method: str
    settings: Mapping[str, Any]
    """All settings that made it, as plain words and numbers."""
    teachers: Teachers | None = None
    """What was learnt of the annotators; None by methods that believe all alike."""
    validation: Validation | None = None
    convergence: Convergence = CLOSED_FORM
    notes: tuple[str, ...] = ()
    """What in the data weakens the answer, and what was chosen by it."""

    def __repr__(self) -> str:
        ranker = self.settings.get("ranker", "")
        return f"<RankingFunction of {len(self.names):,} features by {self.method} ({ranker})>"

    @property
    def annotators(self) -> Teachers:
        if self.teachers is None:
            raise DataError(f"{self.method} learnt nothing of the annotators.")
        return self.teachers

    def scores(self, features: Features | Any) -> FloatArray:
        """A score for every row, larger is better; only rows of one query can be compared."""
        return self.scorer.scores(_as_features(features).columns(self.names))

    def rank(self, features: Features | Any) -> Any:
        """Best first, query by query: query, item, rank and score, as the kind of data frame that came in."""
        given = _as_features(features)
        return as_native(self.frame(given), given.native)

    def frame(self, features: Features) -> pl.DataFrame:
        """The same as a polars frame."""
        scores, items = self.scores(features), features.items
        order = np.lexsort((items.labels.astype(str), -scores, items.query))
        query = items.query[order]
        fresh = np.append(True, (scores[order][1:] != scores[order][:-1]) | (query[1:] != query[:-1]))[: len(order)]
        place = np.arange(len(order)) - items.starts[query] + 1
        first = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
        columns: dict[str, Any] = {"query": items.queries[query].tolist()} if items.has_queries else {}
        columns |= {"item": items.labels[order].tolist(), "rank": place[first], "score": scores[order]}
        return pl.DataFrame(columns)

    def save(self, path: str | Path) -> None:
        """Write it as one file, to be read again anywhere; nothing in it is code."""

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> RankingFunction:
        """Read what `save` wrote; a file that is no such thing, or was tampered with, is refused."""

        return load(path)


def _as_features(given: Features | Any) -> Features:
    return given if isinstance(given, Features) else Features.of(given)


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
        "annotators": None
        if people is None
        else {
            "annotator": people.labels.tolist(),
            "judged": people.n_judgments.tolist(),
            "level": people.level,
            "length": people.length,
            "native": people.native,
            "estimates": {name: [part.tolist() for part in parts] for name, parts in people.estimates.items()},
        },
    }
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
        OSError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        zlib.error,
    ) as error:
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
        scorer=_scorer(state, len(names)),
        names=names,
        method=str(content["method"]),
        settings={str(k): tuple(v) if isinstance(v, list) else v for k, v in content["settings"].items()},
        teachers=None if people is None else _annotators(people),
        validation=None if checked is None else Validation(**checked),
        convergence=Convergence(**content["convergence"]),
        notes=tuple(map(str, content["notes"])),
    )


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
        labels=labels,
        n_judgments=judged,
        estimates=estimates,
        level=float(people["level"]),
        length=max(2, min(int(people["length"]), _LONGEST)),
        native=people["native"] if people["native"] in NATIVES else "polars",
    )


def _interval(parts: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    estimate, low, high = (np.array(part, np.float64) for part in parts)
    return estimate, low, high
