"""A trained ranking function with the annotators' expertise, and its file format.

The file is a zip of JSON. Loading executes nothing and checks everything.
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
from crowdrank.data.tables import FRAME_BACKENDS
from crowdrank.errors import DataError, FormatError
from crowdrank.ltr.boosted import TreeEnsemble
from crowdrank.ltr.expertise import AnnotatorExpertise
from crowdrank.ltr.features import Features
from crowdrank.ltr.linear import LinearScorer, Scorer
from crowdrank.results import CLOSED_FORM, Convergence
from crowdrank.results.parts import as_native


@dataclass(frozen=True)
class Validation:
    """Performance on held-out queries.

    Parameters
    ----------
    metric : str
        Name of the metric.
    value : float
        Mean over queries.
    std_error : float
        Standard error of the mean, from the variation between queries.
    queries : int
        Number of held-out queries.
    against : str
        What the order is compared with: "grades", or "the annotators' own lists".
    """

    metric: str
    value: float
    std_error: float
    queries: int
    against: str

    def __str__(self) -> str:
        return (
            f"{self.metric} {self.value:.3f} ± {self.std_error:.3f} on {self.queries:,} held-out queries, "
            f"against {self.against}"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankingFunction:
    """A trained ranking function, as returned by `CrowdRanker.fit`.

    Parameters
    ----------
    scorer : Scorer
        The function of the feature matrix.
    names : tuple of str
        Names of the features, in the order of the scorer.
    method : str
        Name of the method, see `crowdrank.ltr.METHODS`.
    settings : mapping
        All settings, as plain strings and numbers.
    expertise : AnnotatorExpertise or None, default None
        Expertise of the annotators; None for methods that do not estimate it.
    validation : Validation or None, default None
        Performance on held-out queries.
    convergence : Convergence
        Whether training converged.
    notes : tuple of str, default ()
        Remarks on the data and on choices made from it.

    Examples
    --------
    >>> from crowdrank.data import Rankings
    >>> from crowdrank.ltr import CrowdRanker
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]]], annotator=["x", "y"])
    >>> features = Features.of([[3.0], [2.0], [1.0]], item=["a", "b", "c"])
    >>> function = CrowdRanker(method="pooled").fit(lists, features)
    >>> function.rank(Features.of([[5.0], [9.0]], item=["new", "newer"]))["item"].to_list()
    ['newer', 'new']
    """

    scorer: Scorer
    names: tuple[str, ...]
    method: str
    settings: Mapping[str, Any]
    expertise: AnnotatorExpertise | None = None
    validation: Validation | None = None
    convergence: Convergence = CLOSED_FORM
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ranker = self.settings.get("ranker", "")
        return f"<RankingFunction of {len(self.names):,} features by {self.method} ({ranker})>"

    @property
    def annotators(self) -> AnnotatorExpertise:
        """Expertise of the annotators; an error if the method does not estimate it."""
        if self.expertise is None:
            raise DataError(f"The method {self.method} does not estimate the expertise of annotators: use ltr-crowds.")
        return self.expertise

    def scores(self, features: Features | Any) -> FloatArray:
        """Score every row of features.

        Parameters
        ----------
        features : Features or anything that `Features.of` accepts
            The items to score.

        Returns
        -------
        array
            One score per row; larger is better. Scores are comparable within a query only.
        """
        return self.scorer.scores(_as_features(features).columns(self.names))

    def rank(self, features: Features | Any) -> Any:
        """Rank the items of each query.

        Parameters
        ----------
        features : Features or anything that `Features.of` accepts
            The items to rank.

        Returns
        -------
        data frame
            Columns query (if there are queries), item, rank and score, best first within a query, as the kind of data
            frame that the features came in.
        """
        given = _as_features(features)
        return as_native(self.frame(given), given.native)

    def frame(self, features: Features) -> pl.DataFrame:
        """The result of `rank` as a polars frame."""
        scores, items = self.scores(features), features.items
        order = np.lexsort((items.labels.astype(str), -scores, items.query))
        query = items.query[order]
        is_new = np.append(True, (scores[order][1:] != scores[order][:-1]) | (query[1:] != query[:-1]))[: len(order)]
        rank = np.arange(len(order)) - items.starts[query] + 1
        first_of_tie = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
        columns: dict[str, Any] = {"query": items.queries[query].tolist()} if items.has_queries else {}
        columns |= {"item": items.labels[order].tolist(), "rank": rank[first_of_tie], "score": scores[order]}
        return pl.DataFrame(columns)

    def save(self, path: str | Path) -> None:
        """Write the function to a file (a zip of JSON, without code)."""

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> RankingFunction:
        """Read a file that `save` wrote; other or manipulated files are refused."""

        return load(path)


def _as_features(given: Features | Any) -> Features:
    return given if isinstance(given, Features) else Features.of(given)


VERSION = 1
_MEMBERS = ("function.json", "scorer.json")
# Bytes per member: far above any real function, and a guard against decompression bombs.
MAX_MEMBER_BYTES = 1 << 28
_MAX_LIST_LENGTH = 100_000


def save(function: RankingFunction, path: str | Path) -> None:
    """Write a ranking function to a file."""
    expertise = function.expertise
    content = {
        "crowdrank_function": VERSION,
        "method": function.method,
        "settings": dict(function.settings),
        "features": list(function.names),
        "validation": None if function.validation is None else asdict(function.validation),
        "convergence": asdict(function.convergence),
        "notes": list(function.notes),
        "annotators": None
        if expertise is None
        else {
            "annotator": expertise.labels.tolist(),
            "judged": expertise.n_judgments.tolist(),
            "level": expertise.level,
            "length": expertise.length,
            "native": expertise.native,
            "estimates": {name: [part.tolist() for part in parts] for name, parts in expertise.estimates.items()},
        },
    }
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, part in zip(_MEMBERS, (content, function.scorer.state()), strict=True):
                # ZipInfo has a fixed date, so that the same function gives the same file.
                file.writestr(zipfile.ZipInfo(name), json.dumps(part, ensure_ascii=False), zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written ({(error.strerror or str(error)).lower()}).") from error


def load(path: str | Path) -> RankingFunction:
    """Read a ranking function from a file that `save` wrote."""
    if not Path(path).is_file():
        raise FormatError(f"{path}: there is no such file.")
    try:
        content, state = (json.loads(text) for text in _unpacked(path))
        version = content["crowdrank_function"]
        if version != VERSION:
            raise FormatError(
                f"{path} has version {version} of the format; this version of crowdrank reads version {VERSION}."
            )
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
    """The content of a member, up to the size limit; the size stated in the file is not trusted."""
    with file.open(name) as member:
        text = member.read(MAX_MEMBER_BYTES + 1)
    if len(text) > MAX_MEMBER_BYTES:
        raise FormatError(f"{file.filename}: {name} is larger than the limit of {MAX_MEMBER_BYTES:,} bytes.")
    return text


def _function(content: Mapping[str, Any], state: Mapping[str, Any]) -> RankingFunction:
    names = tuple(str(name) for name in content["features"])
    validation, annotators = content["validation"], content["annotators"]
    return RankingFunction(
        scorer=_scorer(state, len(names)),
        names=names,
        method=str(content["method"]),
        settings={str(k): tuple(v) if isinstance(v, list) else v for k, v in content["settings"].items()},
        expertise=None if annotators is None else _expertise(annotators),
        validation=None if validation is None else Validation(**validation),
        convergence=Convergence(**content["convergence"]),
        notes=tuple(map(str, content["notes"])),
    )


def _scorer(state: Mapping[str, Any], width: int) -> Scorer:
    if state["kind"] == "trees":
        return TreeEnsemble.from_state(state, width)
    if state["kind"] != "linear":
        raise FormatError(f"Unknown kind of ranking function: {state['kind']!r}. It may need a newer crowdrank.")
    scorer = LinearScorer.from_state(state)
    for column in (scorer.weights, scorer.centre, scorer.scale):
        if column.shape != (width,) or not np.isfinite(column).all():
            raise FormatError(f"Invalid weights: expected {width} finite numbers.")
    return scorer


def _expertise(content: Mapping[str, Any]) -> AnnotatorExpertise:
    labels = np.array([str(label) for label in content["annotator"]], dtype=object)
    judged = np.array(content["judged"], np.int64)
    estimates = {name: _interval(content["estimates"][name]) for name in ("quality", "expertise")}
    if any(part.shape != labels.shape for part in (judged, *estimates["quality"], *estimates["expertise"])):
        raise FormatError("Invalid annotators: the columns differ in length.")
    return AnnotatorExpertise(
        labels=labels,
        n_judgments=judged,
        estimates=estimates,
        level=float(content["level"]),
        length=max(2, min(int(content["length"]), _MAX_LIST_LENGTH)),
        native=content["native"] if content["native"] in FRAME_BACKENDS else "polars",
    )


def _interval(parts: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    estimate, low, high = (np.array(part, np.float64) for part in parts)
    return estimate, low, high
