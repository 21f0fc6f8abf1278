"""The column names that are recognised for each role, in order of precedence.

Names are compared without case and punctuation: "Candidate.Chosen" equals "candidate_chosen". The names of a role are
grouped in tiers. The first tier with a match decides; two matches in one tier are an error that asks the user.

Some names are missing on purpose, because they often have a different value in every row: `prompt`, `question_id`,
`task` and `id` are not read as the query, and `count` is not read as a weight. `response_a` and `output_1` come after
`model_a`.
"""

from __future__ import annotations

Tiers = tuple[tuple[str, ...], ...]
PairTiers = tuple[tuple[tuple[str, str], ...], ...]


def normalize_name(name: str) -> str:
    """Return a name without case and punctuation, unless it is nothing but punctuation."""
    return "".join(c for c in name.casefold() if c.isalnum()) or name.strip()


def _tiers(*lines: str) -> Tiers:
    return tuple(tuple(line.split()) for line in lines)


def each(names: str) -> Tiers:
    """Return tiers of one name each."""
    return tuple((name,) for name in names.split())


def _with_id(names: str) -> tuple[str, ...]:
    return tuple(f"{name}id" for name in names.split())


_ANNOTATOR_WORDS = (
    "worker judge rater observer voter assessor performer coder labeler labeller evaluator reviewer grader juror"
)
_PARTICIPANT_WORDS = "user participant person respondent subject visitor"
_ITEM_WORDS = (
    "item object document doc candidate stimulus option entity alternative condition image img video model system "
    "generator player team driver method essay project product submission representation choice argument"
)
_TEXT_WORDS = "response output answer text conversation"
_DURATION_WORDS = (
    "duration timetaken responsetime worktime reactiontime decisiontime leadtime timespent elapsed work response"
)
_DURATION_UNITS = {
    1.0: ("", "s", "sec", "secs", "seconds", "inseconds"),
    1000.0: ("ms", "msec", "millis", "milliseconds"),
}


def _durations() -> dict[str, float]:
    """Return the names of durations, and the divisor that gives seconds."""
    named = {
        f"{word}{unit}": by
        for word in _DURATION_WORDS.split()
        for by, units in _DURATION_UNITS.items()
        for unit in units
    }
    alone = {unit: by for by, units in _DURATION_UNITS.items() for unit in units if len(unit) > 2}
    # "work" and "response" name a duration only together with a unit.
    return {name: by for name, by in (named | alone).items() if name not in ("work", "response", "responses", "works")}


DURATIONS = _durations()

SYNONYMS: dict[str, Tiers] = {
    "annotator": (
        ("annotator",),
        ("annotatorid",),
        tuple(_ANNOTATOR_WORDS.split()),
        _with_id(_ANNOTATOR_WORDS),
        tuple(_PARTICIPANT_WORDS.split()),
        _with_id(_PARTICIPANT_WORDS),
    ),
    "query": each("query queryid qid topic topicid scene sceneid context contextid"),
    "winner": _tiers(
        "winner",
        "winnerid winneritem winnername",
        "preferred choice chosen selected selection vote result answer label preference verdict outcome judgment "
        "judgement decision better pick",
    ),
    "item": (("item",), ("itemid",), ("itemname",), tuple(_ITEM_WORDS.split()[1:]), (*_with_id(_ITEM_WORDS), "docno")),
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


def _side_pairs() -> PairTiers:
    def pairs(words: str, first: str, second: str) -> list[tuple[str, str]]:
        return [(first.format(w), second.format(w)) for w in words.split()]

    def by_side(words: str, end: str = "") -> list[tuple[str, str]]:
        return pairs(words, f"left{{}}{end}", f"right{{}}{end}") + pairs(words, f"{{}}left{end}", f"{{}}right{end}")

    def by_letter(words: str, end: str = "") -> list[tuple[str, str]]:
        return [p for a, b in ("ab", "12", "xy") for p in pairs(words, f"{{}}{a}{end}", f"{{}}{b}{end}")]

    bare = [("a", "b"), ("x", "y"), ("l", "r"), ("lhs", "rhs"), ("first", "second")]
    return tuple(
        tuple(tier)
        for tier in (
            [("left", "right")],
            [("leftid", "rightid")],
            [("leftname", "rightname")],
            by_side(_ITEM_WORDS),
            by_side(_ITEM_WORDS, "id"),
            by_letter(_ITEM_WORDS),
            by_letter(_ITEM_WORDS, "id"),
            by_letter(_ITEM_WORDS, "name"),
            bare,
            [("lhsid", "rhsid")],
            [("id1", "id2")],
            by_side(_TEXT_WORDS),
            by_letter(_TEXT_WORDS),
            by_letter(_TEXT_WORDS, "id"),
        )
    )


SIDE_PAIRS = _side_pairs()

WINNER_LOSER_PAIRS: PairTiers = (
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

NAMES_BY_ROLE: dict[str, Tiers] = SYNONYMS | {
    "left": tuple(tuple(left for left, _ in tier) for tier in SIDE_PAIRS),
    "right": tuple(tuple(right for _, right in tier) for tier in SIDE_PAIRS),
    "loser": tuple(tuple(loser for _, loser in tier) for tier in WINNER_LOSER_PAIRS),
}
