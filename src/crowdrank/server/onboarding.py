"""What comes before the first question: consent, and practice questions with feedback, which are not votes."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from crowdrank.server.errors import RequestError
from crowdrank.server.records import Annotator, Item
from crowdrank.server.settings import Practice, PracticeQuestion, Settings

if TYPE_CHECKING:
    from crowdrank.server.service import Service

Json = dict[str, Any]


@lru_cache(maxsize=64)
def consent_version(text: str) -> str:
    """Return a short hash of the text that annotators must agree to; empty if there is none."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:16] if text.strip() else ""


@lru_cache(maxsize=64)
def practice_version(practice: Practice) -> str:
    """Return a short hash of the practice questions; empty if there are none."""
    if not practice.questions:
        return ""
    text = json.dumps([[*one.items, one.answer] for one in practice.questions])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def has_consented(settings: Settings, annotator: Annotator) -> bool:
    """Return whether an annotator has agreed to the present text."""
    version = consent_version(settings.consent)
    return not version or annotator.metadata.get("consent") == version


def has_practised(settings: Settings, annotator: Annotator) -> bool:
    """Return whether an annotator has answered all practice questions, and enough of them correctly."""
    practice, given = settings.practice, practice_answers(settings, annotator)
    return len(given) >= len(practice.questions) and n_correct(practice, given) >= practice.min_correct


def next_step(settings: Settings, annotator: Annotator) -> str | None:
    """Return the path of the page that comes before the next question; None if nothing does."""
    if not has_consented(settings, annotator):
        return "/consent"
    return None if has_practised(settings, annotator) else "/practice"


def check_ready(settings: Settings, annotator: Annotator) -> None:
    """Raise RequestError (403) if a page comes before the next question."""
    step = next_step(settings, annotator)
    if step is not None:
        raise RequestError(403, "Reload the page: something comes before the next question.", code=step[1:])


def practice_answers(settings: Settings, annotator: Annotator) -> list[str]:
    """Return the answers to the present practice questions so far."""
    stored = annotator.metadata.get("practice")
    if not isinstance(stored, dict) or stored.get("version") != practice_version(settings.practice):
        return []
    return [str(one) for one in stored.get("answers", ())]


def n_correct(practice: Practice, answers: list[str]) -> int:
    return sum(given == asked.answer for given, asked in zip(answers, practice.questions, strict=False))


def agree(service: Service, annotator: Annotator, version: str) -> None:
    """Record which text an annotator agreed to. The time is that of the row of the log."""
    service.collection.annotators.edit(annotator.id, {**annotator.metadata, "consent": version}, actor="annotator")
    service.projection.catch_up()


def answer_practice(service: Service, annotator: Annotator, number: int, answer: str) -> None:
    """Store the answer to a practice question. An answer to an earlier question is ignored: it was sent twice."""
    settings = service.projection.settings
    given = practice_answers(settings, annotator)
    if number != len(given) or number >= len(settings.practice.questions):
        return
    if answer not in options(settings, settings.practice.questions[number]):
        raise RequestError(422, "Choose one of the answers.")
    _store(service, annotator, [*given, answer])


def practise_again(service: Service, annotator: Annotator) -> None:
    """Start the practice questions again."""
    _store(service, annotator, [])


def practice_summary(service: Service, id_: int) -> str | None:
    """Return how an annotator did in the practice questions, as text; None if they answered none."""
    settings, annotator = service.projection.settings, service.projection.annotators[id_]
    given, stored = practice_answers(settings, annotator), annotator.metadata.get("practice")
    if not given or not isinstance(stored, dict):
        return None
    attempts = int(stored.get("attempts", 1))
    return f"{n_correct(settings.practice, given)} of {len(given)} correct" + (
        f", in attempt {attempts}" if attempts > 1 else ""
    )


def options(settings: Settings, question: PracticeQuestion) -> list[str]:
    """Return the answers that are possible."""
    if settings.task.type == "rating":
        return list(settings.task.scale)
    return [*question.items, *(["tie"] if settings.task.type == "pair" and settings.ties else [])]


def practice_items(service: Service, question: PracticeQuestion) -> list[Item]:
    """Return the items of a practice question, all of the same query if possible."""
    by_label: dict[str, list[Item]] = {}
    for item in service.projection.items.values():
        by_label.setdefault(item.label, []).append(item)
    first = by_label[question.items[0]][0]
    return [
        next((one for one in by_label[label] if one.query == first.query), by_label[label][0])
        for label in question.items
    ]


def _store(service: Service, annotator: Annotator, answers: list[str]) -> None:
    before = annotator.metadata.get("practice")
    attempts = int(before.get("attempts", 1)) if isinstance(before, dict) else 1
    practice: Json = {
        "version": practice_version(service.projection.settings.practice),
        "answers": answers,
        "attempts": attempts if answers else attempts + 1,
    }
    metadata = {**annotator.metadata, "practice": practice}
    service.collection.annotators.edit(annotator.id, metadata, actor="annotator")
    service.projection.catch_up()
