"""Rankings as JSON: everything concluded, and the draws behind it, to be read again anywhere."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, ObjectArray
from crowdrank.data import Items
from crowdrank.errors import FormatError
from crowdrank.results.annotators import Annotators
from crowdrank.results.domains import Domains
from crowdrank.results.ranking import Convergence, Ranking
from crowdrank.results.uncertainty import Uncertainty

VERSION = 1


def save(ranking: Ranking, path: str | Path, uncertainty: bool = True) -> None:
    """Write a ranking; without its uncertainty the file is small and quick to write."""
    items = ranking.items
    content: dict[str, Any] = {
        "crowdrank_ranking": VERSION,
        "model": ranking.model,
        "settings": dict(ranking.settings),
        "queries": items.queries.tolist(),
        "query": items.query.tolist(),
        "item": items.labels.tolist(),
        "score": ranking.scores.tolist(),
        "judged": ranking.judged.tolist(),
        "counted_in": ranking.counted_in,
        "parameters": dict(ranking.parameters),
        "log_likelihood": ranking.log_likelihood,
        "convergence": asdict(ranking.convergence),
        "notes": ranking.notes,
        "native": ranking.native,
    }
    if ranking.survey is not None:
        people = ranking.annotators
        content["annotators"] = {
            "annotator": people.labels.tolist(),
            "judged": people.judged.tolist(),
            "estimates": {name: [part.tolist() for part in parts] for name, parts in people.estimates.items()},
            "level": people.level,
        }
    if ranking.chart is not None:
        chart = ranking.domains
        content["domains"] = {
            "annotator": chart.annotators.tolist(),
            "query": chart.queries.tolist(),
            "expertise": [part.tolist() for part in chart.expertise],
            "membership": chart.membership.tolist(),
            "difficulty": [part.tolist() for part in chart.difficulty],
            "judged": chart.n_judgments.tolist(),
            "level": chart.level,
        }
    if uncertainty and ranking.measure is not None:
        sure = ranking.uncertainty
        content["uncertainty"] = {
            "method": sure.method,
            "sampled": sure.sampled,
            "std_error": sure.std_error.tolist(),
            "draws": _pack(sure.draws),
            "draws_shape": sure.draws.shape,
        }
    Path(path).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def load(path: str | Path) -> Ranking:
    """Read a ranking that `save` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        version = content["crowdrank_ranking"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is not a ranking saved by crowdrank.") from error
    if version != VERSION:
        raise FormatError(f"{path} was saved in version {version} of the format; this crowdrank reads {VERSION}.")
    notes, sure = content["notes"], content.get("uncertainty")
    people, chart = content.get("annotators"), content.get("domains")
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in content["settings"].items()}
    return Ranking(
        model=content["model"],
        settings=settings,
        items=Items(_labels(content["item"]), np.array(content["query"], np.int32), _labels(content["queries"])),
        scores=np.array(content["score"], np.float64),
        tally=lambda: np.array(content["judged"], np.int64),
        counted_in=content["counted_in"],
        parameters=content["parameters"],
        log_likelihood=content["log_likelihood"],
        convergence=Convergence(**content["convergence"]),
        native=content["native"],
        observe=lambda: notes,
        measure=None if sure is None else lambda: _unpack(sure),
        survey=None if people is None else lambda: _annotators(people),
        chart=None if chart is None else lambda: _domains(chart),
    )


def _annotators(people: dict[str, Any]) -> Annotators:
    estimates = {
        name: (np.array(estimate), np.array(low), np.array(high))
        for name, (estimate, low, high) in people["estimates"].items()
    }
    return Annotators(
        labels=_labels(people["annotator"]),
        judged=np.array(people["judged"], np.int64),
        estimates=estimates,
        level=people["level"],
    )


def _domains(chart: dict[str, Any]) -> Domains:
    membership = np.array(chart["membership"], np.float64)
    shape = (len(chart["annotator"]), membership.shape[1])  # an empty list would have lost it
    expertise, low, high = (np.array(part, np.float64).reshape(shape) for part in chart["expertise"])
    difficulty, easiest, hardest = (np.array(part, np.float64) for part in chart["difficulty"])
    return Domains(
        annotators=_labels(chart["annotator"]),
        queries=_labels(chart["query"]),
        expertise=(expertise, low, high),
        membership=membership,
        difficulty=(difficulty, easiest, hardest),
        n_judgments=np.array(chart["judged"], np.int64).reshape(shape),
        level=chart["level"],
    )


def _labels(names: list[str]) -> ObjectArray:
    return np.array(names, dtype=object)


def _pack(draws: FloatArray) -> str:
    return base64.b64encode(zlib.compress(draws.astype("<f4").tobytes())).decode("ascii")


def _unpack(sure: dict[str, Any]) -> Uncertainty:
    raw = zlib.decompress(base64.b64decode(sure["draws"]))
    draws = np.frombuffer(raw, "<f4").reshape(sure["draws_shape"]).astype(np.float64)
    return Uncertainty(draws, np.array(sure["std_error"], np.float64), sure["method"], sure.get("sampled", False))
