"""Rankings as JSON files: results, settings and the draws of the scores."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, ObjectArray
from crowdrank.data import Items
from crowdrank.errors import FormatError
from crowdrank.results.domains import Domains
from crowdrank.results.drift import Drift
from crowdrank.results.parts import Annotators, Convergence, LazyParts, Uncertainty
from crowdrank.results.ranking import Ranking
from crowdrank.results.scales import scale_from

_DRIFT_FIELDS = tuple(entry.name for entry in fields(Drift) if entry.name not in ("items", "native"))
VERSION = 1
"""Version of the format. Its keys stay as they are, so that files of earlier releases can be read."""


def save(ranking: Ranking, path: str | Path, uncertainty: bool = True) -> None:
    """Write a ranking as JSON."""
    Path(path).write_text(json.dumps(_content(ranking, uncertainty), ensure_ascii=False), encoding="utf-8")


def _content(ranking: Ranking, uncertainty: bool) -> dict[str, Any]:
    items = ranking.items
    content: dict[str, Any] = {
        "crowdrank_ranking": VERSION,
        "model": ranking.model,
        "settings": dict(ranking.settings),
        "queries": items.queries.tolist(),
        "query": items.query.tolist(),
        "item": items.labels.tolist(),
        "score": ranking.scores.tolist(),
        "judged": ranking.n_judgments.tolist(),
        "counted_in": ranking.judgment_kind,
        "parameters": dict(ranking.parameters),
        "item_parameters": {name: values.tolist() for name, values in ranking.item_parameters.items()},
        "log_likelihood": ranking.log_likelihood,
        "convergence": asdict(ranking.convergence),
        "notes": ranking.notes,
        "native": ranking.native,
        "simultaneous": ranking.simultaneous,
        "scale": None if ranking.scale is None else asdict(ranking.scale),
        "provisional": None if ranking.provisional is None else _content(ranking.provisional, uncertainty),
    }
    if ranking.overall is not None:
        content["overall"] = _content(ranking.overall, uncertainty)
    if ranking.drift is not None:
        content["drift"] = {name: _plain(getattr(ranking.drift, name)) for name in _DRIFT_FIELDS}
    if ranking.has_annotators:
        annotators = ranking.annotators
        content["annotators"] = {
            "annotator": annotators.labels.tolist(),
            "judged": annotators.n_judgments.tolist(),
            "answers": None if annotators.n_answers is None else annotators.n_answers.tolist(),
            "estimates": {name: [part.tolist() for part in parts] for name, parts in annotators.estimates.items()},
            "level": annotators.level,
        }
    if ranking.has_domains:
        domains = ranking.domains
        content["domains"] = {
            "annotator": domains.annotators.tolist(),
            "query": domains.queries.tolist(),
            "expertise": [part.tolist() for part in domains.expertise],
            "membership": domains.membership.tolist(),
            "difficulty": [part.tolist() for part in domains.difficulty],
            "judged": domains.n_judgments.tolist(),
            "level": domains.level,
        }
    if uncertainty and ranking.has_uncertainty:
        content["uncertainty"] = {
            "method": ranking.uncertainty.method,
            "sampled": ranking.uncertainty.sampled,
            "std_error": ranking.uncertainty.std_error.tolist(),
            "draws": _pack(ranking.uncertainty.draws),
            "draws_shape": ranking.uncertainty.draws.shape,
        }
    return content


def load(path: str | Path) -> Ranking:
    """Read a ranking that `save` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        version = content["crowdrank_ranking"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is not a ranking saved by crowdrank: expected a file of Ranking.save().") from error
    if version != VERSION:
        raise FormatError(f"{path} was saved in version {version} of the format; this crowdrank reads {VERSION}.")
    return _ranking(content)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _drift(content: dict[str, Any], items: Items, native: str) -> Drift:
    values: dict[str, Any] = {
        name: np.array(value) if isinstance(value, list) else value for name, value in content.items()
    }
    return Drift(items=items, native=native, **values)


def _ranking(content: dict[str, Any]) -> Ranking:
    notes, uncertainty = content["notes"], content.get("uncertainty")
    annotators, domains, native = content.get("annotators"), content.get("domains"), content["native"]
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in content["settings"].items()}
    items = Items(_labels(content["item"]), np.array(content["query"], np.int32), _labels(content["queries"]))
    return Ranking(
        model=content["model"],
        settings=settings,
        items=items,
        scores=np.array(content["score"], np.float64),
        judgment_kind=content["counted_in"],
        parameters=content["parameters"],
        item_parameters={name: np.array(values) for name, values in content.get("item_parameters", {}).items()},
        log_likelihood=content["log_likelihood"],
        convergence=Convergence(**content["convergence"]),
        native=native,
        simultaneous=content.get("simultaneous", False),
        scale=scale_from(content.get("scale")),
        provisional=None if content.get("provisional") is None else _ranking(content["provisional"]),
        overall=None if content.get("overall") is None else _ranking(content["overall"]),
        drift=None if content.get("drift") is None else _drift(content["drift"], items, native),
        _lazy=LazyParts(
            n_judgments=lambda: np.array(content["judged"], np.int64),
            notes=lambda: notes,
            uncertainty=None if uncertainty is None else lambda: _uncertainty(uncertainty),
            annotators=None if annotators is None else lambda: _annotators(annotators, native),
            domains=None if domains is None else lambda: _domains(domains, native),
        ),
    )


def _annotators(content: dict[str, Any], native: str) -> Annotators:
    estimates = {
        name: (np.array(estimate), np.array(low), np.array(high))
        for name, (estimate, low, high) in content["estimates"].items()
    }
    return Annotators(
        labels=_labels(content["annotator"]),
        n_judgments=np.array(content["judged"], np.int64),
        n_answers=None if content.get("answers") is None else np.array(content["answers"], np.int64),
        estimates=estimates,
        level=content["level"],
        native=native,
    )


def _domains(content: dict[str, Any], native: str) -> Domains:
    membership = np.array(content["membership"], np.float64)
    shape = (len(content["annotator"]), membership.shape[1])  # an empty list has lost its number of columns
    expertise, low, high = (np.array(part, np.float64).reshape(shape) for part in content["expertise"])
    difficulty, difficulty_low, difficulty_high = (np.array(part, np.float64) for part in content["difficulty"])
    return Domains(
        annotators=_labels(content["annotator"]),
        queries=_labels(content["query"]),
        expertise=(expertise, low, high),
        membership=membership,
        difficulty=(difficulty, difficulty_low, difficulty_high),
        n_judgments=np.array(content["judged"], np.int64).reshape(shape),
        level=content["level"],
        native=native,
    )


def _labels(names: list[str]) -> ObjectArray:
    return np.array(names, dtype=object)


def _pack(draws: FloatArray) -> str:
    """Compress draws to single precision: the rounding is far below their Monte Carlo error."""
    return base64.b64encode(zlib.compress(draws.astype("<f4").tobytes())).decode("ascii")


def _uncertainty(content: dict[str, Any]) -> Uncertainty:
    raw = zlib.decompress(base64.b64decode(content["draws"]))
    draws = np.frombuffer(raw, "<f4").reshape(content["draws_shape"]).astype(np.float64)
    std_error = np.array(content["std_error"], np.float64)
    return Uncertainty(draws, std_error, content["method"], content.get("sampled", False))
