"""The words people use for the columns of judgments, and which of them count first.

Names are compared without regard to case and punctuation: "Candidate.Chosen" is "candidate_chosen". For each role the
names stand in tiers. The first tier with a match gives the column; two matches in one tier are left to the user.

Left out on purpose, because as often as not each row has its own: `prompt`, `question_id`, `task` and `id` are no
query, `response_a` and `output_1` stand behind `model_a`, and `count` is no weight. Name such a column yourself.
"""

from __future__ import annotations

Tiers = tuple[tuple[str, ...], ...]
PairTiers = tuple[tuple[tuple[str, str], ...], ...]


def plain(name: str) -> str:
    """A name without case and punctuation; a name of nothing but punctuation stays as it is."""
    return "".join(c for c in name.casefold() if c.isalnum()) or name.strip()


def _tiers(*lines: str) -> Tiers:
    return tuple(tuple(line.split()) for line in lines)


def each(names: str) -> Tiers:
    """Strict precedence: every name a tier of its own."""
    return tuple((name,) for name in names.split())


def _with_id(names: str) -> tuple[str, ...]:
    return tuple(f"{name}id" for name in names.split())


_PEOPLE = "worker judge rater observer voter assessor performer coder labeler labeller evaluator reviewer grader juror"
_MORE_PEOPLE = "user participant person respondent subject visitor"
_THINGS = (
    "item object document doc candidate stimulus option entity alternative condition image img video model system "
    "generator player team driver method essay project product submission representation choice argument"
)
_TEXTS = "response output answer text conversation"
_TOOK = "duration timetaken responsetime worktime reactiontime decisiontime leadtime timespent elapsed work response"
_UNITS = {1.0: ("", "s", "sec", "secs", "seconds", "inseconds"), 1000.0: ("ms", "msec", "millis", "milliseconds")}


def _durations() -> dict[str, float]:
    """Names of durations, and by what to divide for seconds."""
    named = {f"{word}{unit}": by for word in _TOOK.split() for by, units in _UNITS.items() for unit in units}
    alone = {unit: by for by, units in _UNITS.items() for unit in units if len(unit) > 2}
    # Bare "work" and "response" are no durations; only their units make them so.
    return {name: by for name, by in (named | alone).items() if name not in ("work", "response", "responses", "works")}


DURATIONS = _durations()

SYNONYMS: dict[str, Tiers] = {
    "annotator": (
        ("annotator",),
        ("annotatorid",),
        tuple(_PEOPLE.split()),
        _with_id(_PEOPLE),
        tuple(_MORE_PEOPLE.split()),
        _with_id(_MORE_PEOPLE),
    ),
    "query": each("query queryid qid topic topicid scene sceneid context contextid"),
    "winner": _tiers(
        "winner",
        "winnerid winneritem winnername",
        "preferred choice chosen selected selection vote result answer label preference verdict outcome judgment "
        "judgement decision better pick",
    ),
    "item": (("item",), ("itemid",), ("itemname",), tuple(_THINGS.split()[1:]), (*_with_id(_THINGS), "docno")),
    "grade": _tiers("grade", "rating", "score", "stars relevance label mark points judgment judgement"),
    "rank": _tiers("rank", "position", "place placement", "ranking"),
    "list": _tiers("list", "listid", "ballot ballotid rankingid race raceid"),
    "order": _tiers("order", "orderbestfirst", "ranking preferenceorder rankedlist"),
    "weight": _tiers("weight", "weights"),
    "time": each(
        "time timestamp answeredat createdat tstamp submittedat submittime datetime datecreated date updatedat"
    ),
    "duration": each(" ".join(DURATIONS)),
}


def _sides() -> PairTiers:
    def pairs(things: str, first: str, second: str) -> list[tuple[str, str]]:
        return [(first.format(t), second.format(t)) for t in things.split()]

    def by_side(things: str, end: str = "") -> list[tuple[str, str]]:
        return pairs(things, f"left{{}}{end}", f"right{{}}{end}") + pairs(things, f"{{}}left{end}", f"{{}}right{end}")

    def by_letter(things: str, end: str = "") -> list[tuple[str, str]]:
        return [p for a, b in ("ab", "12", "xy") for p in pairs(things, f"{{}}{a}{end}", f"{{}}{b}{end}")]

    bare = [("a", "b"), ("x", "y"), ("l", "r"), ("lhs", "rhs"), ("first", "second")]
    return tuple(
        tuple(tier)
        for tier in (
            [("left", "right")],
            [("leftid", "rightid")],
            [("leftname", "rightname")],
            by_side(_THINGS),
            by_side(_THINGS, "id"),
            by_letter(_THINGS),
            by_letter(_THINGS, "id"),
            by_letter(_THINGS, "name"),
            bare,
            [("lhsid", "rhsid")],
            [("id1", "id2")],
            by_side(_TEXTS),
            by_letter(_TEXTS),
            by_letter(_TEXTS, "id"),
        )
    )


SIDES = _sides()

BEATEN: PairTiers = (
    (("winner", "loser"),),
    (("winnerid", "loserid"),),
    (("winnername", "losername"), ("winneritem", "loseritem")),
    (("chosen", "notchosen"),),
    (("chosen", "rejected"),),
    (("candidatechosen", "candidatenotchosen"),),
    (("won", "lost"),),
    (("preferred", "rejected"), ("preferred", "nonpreferred"), ("better", "worse"), ("selected", "rejected")),
)

ROLES = (
    "annotator",
    "query",
    "left",
    "right",
    "winner",
    "loser",
    "item",
    "grade",
    "rank",
    "list",
    "order",
    "weight",
    "time",
    "duration",
)

SINGLE: dict[str, Tiers] = SYNONYMS | {
    "left": tuple(tuple(left for left, _ in tier) for tier in SIDES),
    "right": tuple(tuple(right for _, right in tier) for tier in SIDES),
    "loser": tuple(tuple(loser for _, loser in tier) for tier in BEATEN),
}
