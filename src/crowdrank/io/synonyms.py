"""Names of columns by role: the one place for synonyms.

Names are compared without case and punctuation: "Candidate.Chosen" equals "candidate_chosen". The names of a role are
grouped in tiers: the first tier with a match decides.

Some names are missing on purpose, because they often have a different value in every row: `prompt`, `question_id`,
`task` and `id` are not read as the query, and `count` is not read as a weight. `response_a` and `output_1` come after
`model_a`. A name comes before an id, because people read the ranking.
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
    return _with_end(names, "id")


def _with_end(names: str, end: str) -> tuple[str, ...]:
    return tuple(f"{name}{end}" for name in names.split())


_ANNOTATOR_WORDS = (
    "worker judge rater observer voter assessor performer coder labeler labeller evaluator reviewer grader juror"
)
_PARTICIPANT_WORDS = "user participant person respondent subject visitor"
_ITEM_WORDS = (
    "item object document doc candidate stimulus option entity alternative condition image img video model system "
    "generator player team driver method essay project product submission representation choice argument policy movie "
    "film song book poster sentence summary stim"
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
ITEM_WORDS = tuple(_ITEM_WORDS.split())
ANNOTATOR_WORDS = ("annotator", *_ANNOTATOR_WORDS.split())
# In a grid with voters in rows: names of voters, and columns of numbers that are not items.
GRID_ANNOTATORS = frozenset(
    ["name", "student", "studentname", "username", "email", "emailaddress", "team", "group", "responseid"]
)
NOT_ITEMS = frozenset(
    name for (name,) in each("id idx index row no number nr trial unnamed0 total sum mean average age year")
) | {""}

SYNONYMS: dict[str, Tiers] = {
    "annotator": (
        ("annotator",),
        ("annotatorid",),
        tuple(_ANNOTATOR_WORDS.split()),
        _with_id(_ANNOTATOR_WORDS),
        tuple(_PARTICIPANT_WORDS.split()),
        _with_id(_PARTICIPANT_WORDS),
    ),
    # A name with "+" stands for two columns whose cells are joined.
    "query": each(
        "query queryid qid topic topicid scene sceneid context contextid langpair languagepair lp "
        "srclang+trglang srclang+tgtlang sourcelang+targetlang"
    ),
    "winner": _tiers(
        "winner",
        "winnername winneritem",
        "winnerid",
        "preferred choice chosen selected selection vote result answer label preference verdict outcome judgment "
        "judgement decision better pick ftr",
    ),
    "item": (
        ("item",),
        ("itemname",),
        ("itemid",),
        _with_end(_ITEM_WORDS, "name"),
        tuple(_ITEM_WORDS.split()[1:]),
        (*_with_id(_ITEM_WORDS), "docno"),
    ),
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


# Words for the two sides of a comparison, as part of a name or alone.
_SIDE_WORDS = (("left", "right"), ("home", "away"), ("home", "visitor"), ("heim", "gast"), ("white", "black"))
_SIDE_MARKS = (("a", "b"), ("1", "2"), ("x", "y"))


def _pairs(words: str, first: str, second: str) -> list[tuple[str, str]]:
    return [(first.format(w), second.format(w)) for w in words.split()]


def _by_side(words: str, end: str = "") -> list[tuple[str, str]]:
    return [
        pair
        for a, b in _SIDE_WORDS
        for pair in _pairs(words, f"{a}{{}}{end}", f"{b}{{}}{end}") + _pairs(words, f"{{}}{a}{end}", f"{{}}{b}{end}")
    ]


def _by_mark(words: str, end: str = "") -> list[tuple[str, str]]:
    return [pair for a, b in _SIDE_MARKS for pair in _pairs(words, f"{{}}{a}{end}", f"{{}}{b}{end}")]


def _side_pairs() -> PairTiers:
    bare = [("a", "b"), ("x", "y"), ("l", "r"), ("lhs", "rhs"), ("first", "second"), ("p1", "p2")]
    return tuple(
        tuple(tier)
        for tier in (
            [("left", "right")],
            [("leftname", "rightname")],
            [("leftid", "rightid")],
            _by_side(_ITEM_WORDS, "name"),
            _by_side(_ITEM_WORDS),
            _by_side(_ITEM_WORDS, "id"),
            _by_mark(_ITEM_WORDS, "name"),
            _by_mark(_ITEM_WORDS),
            _by_mark(_ITEM_WORDS, "id"),
            [("home", "away"), ("home", "visitor"), ("heim", "gast")],
            [("white", "black")],
            [("homeid", "awayid"), ("whiteid", "blackid")],
            bare,
            [("lhsid", "rhsid")],
            [("id1", "id2")],
            [("player", "opponent"), ("team", "opponent")],
            _by_side(_TEXT_WORDS),
            _by_mark(_TEXT_WORDS),
            _by_mark(_TEXT_WORDS, "id"),
        )
    )


SIDE_PAIRS = _side_pairs()


def _valued_pairs(values: str, *, with_sides: bool) -> PairTiers:
    """Return names of a value on each side: score_a and score_b, system1score and system2score."""
    items = [pair for value in values.split() for pair in _by_mark(_ITEM_WORDS + " " + _TEXT_WORDS, value)]
    sides = (
        [pair for value in values.split() for pair in _by_side(value)]
        if with_sides
        else _pairs(values, "left{}", "right{}")
    )
    return (tuple(sides), tuple(_by_mark(values)), tuple(items), tuple(_pairs(values, "a{}", "b{}")))


# White's and home's ranks are usually places in a league or rating list before the match, so they are missing here.
SCORE_PAIRS: PairTiers = (
    *_valued_pairs("score scores goals points pts runs tore", with_sides=True),
    (("fthg", "ftag"), ("hg", "ag")),
)
RANK_PAIRS = _valued_pairs("rank", with_sides=False)

WINNER_LOSER_PAIRS: PairTiers = (
    (("winner", "loser"),),
    (("winnername", "losername"), ("winneritem", "loseritem")),
    (("winnerid", "loserid"),),
    (("chosenmodel", "rejectedmodel"), ("winnermodel", "losermodel")),
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
    "left_score",
    "right_score",
    "left_rank",
    "right_rank",
    "item",
    "grade",
    "rank",
    "list",
    "order",
    "weight",
    "time",
    "duration",
)

PAIRS_BY_ROLES: dict[tuple[str, str], PairTiers] = {
    ("left", "right"): SIDE_PAIRS,
    ("winner", "loser"): WINNER_LOSER_PAIRS,
    ("left_score", "right_score"): SCORE_PAIRS,
    ("left_rank", "right_rank"): RANK_PAIRS,
}
NAMES_BY_ROLE: dict[str, Tiers] = SYNONYMS | {
    role: tuple(tuple(pair[n] for pair in tier) for tier in tiers)
    for roles, tiers in reversed(PAIRS_BY_ROLES.items())
    for n, role in enumerate(roles)
    if role != "winner"
}
