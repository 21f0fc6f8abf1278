"""Tests for vote stuffing: campaigns for one item, near-copies of annotators, bursts in time, and newcomers.

A campaign is a group of annotators who answer about hardly any other item. Whether they favour it is judged by the
answers of all others: a likelihood ratio test of a shift of its score, which allows for the error of the score and for
differences in taste and skill. The group is chosen by the questions, not by the answers, so honest annotators who were
given only one item raise no alarm.

Copies are two annotators who give nearly the same answers to the same questions; see `near_copies`.

A burst is an interval of time in which an item wins or loses more than at other times: the largest standardised sum of
residuals over all items and intervals, compared with its distribution under random signs of each annotator's residuals
(Liu 1988).

Newcomers are annotators who gave their first answers one after another, and who favour an item by the same likelihood
ratio test. Annotators who do not choose their questions, as on a collection server, cannot run a campaign, but they may
come together.

Each test has a quarter of the false alarm rate, divided among everything that it examines (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import LEFT, Comparisons
from crowdrank.errors import CrowdrankError, SettingError, muted_warnings

# Annotators who are nearly copies of each other: they agree more often than what each of them knows explains.
#
# The chance that two annotators agree on a question is that of two logistic regressions of their answers, on what all
# others answered and on the sides. The number of agreements then has a Poisson binomial distribution. Annotators
# share more than the regressions know, so the distribution is widened as much as the agreement of all pairs of
# annotators shows (Efron 2004).

MAX_ANNOTATORS = 3_000
"""More annotators are not compared with each other."""
# Fewest common questions, and the share of equal answers.
_MIN_COMMON, _MIN_AGREEMENT = 10, 0.95
_SLOPE_PRECISION = 0.25
_SHRINKAGE = 4.0


def near_copies(
    comparisons: Comparisons, annotator: IntArray, margin: FloatArray, level: float
) -> Iterator[tuple[IntArray, int, int, float]]:
    """Yield groups of annotators who are nearly copies: codes, agreements and questions of the clearest pair, p-value.

    Parameters
    ----------
    comparisons : Comparisons
        Decided votes.
    annotator : array of int
        Who gave each.
    margin : array of float
        Score of left minus that of right, for each vote.
    level : float
        Probability of any group among independent annotators.
    """
    answers, lean = _answer_tables(comparisons, annotator, margin)
    pairs = _compare_answers(answers, lean)
    if not len(pairs.one):
        return
    standard = (pairs.agreed - pairs.expected) / np.sqrt(pairs.variance + 1e-9)
    low, median, high = np.quantile(standard, (0.25, 0.5, 0.75))
    centre, width = max(float(median), 0.0), max(float(high - low) / 1.349, 1.0)
    copies: list[tuple[int, int, int, int, float]] = []
    for k in np.flatnonzero(pairs.agreed >= _MIN_AGREEMENT * pairs.common):
        one, other = int(pairs.one[k]), int(pairs.other[k])
        product = (lean[[one]] * lean[[other]]).data
        chance = np.append((1 + product) / 2, np.full(int(pairs.common[k]) - len(product), 0.5))
        p = _widened(_tail_probability(chance, int(pairs.agreed[k])), centre, width) * len(pairs.one)
        if p < level:
            copies.append((one, other, int(pairs.agreed[k]), int(pairs.common[k]), p))
    yield from _groups(copies)


def _answer_tables(comparisons: Comparisons, annotator: IntArray, margin: FloatArray) -> tuple[Any, Any]:
    """Sparse tables of annotators × questions: the answers, 1 for the first item and −1 for the second, and 2P − 1."""
    from scipy.sparse import csr_array

    left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
    first, second = np.minimum(left, right), np.maximum(left, right)
    questions, question = np.unique(first * len(comparisons.items) + second, return_inverse=True)
    question = question.ravel()
    toward = np.where((left == first) == (comparisons.outcome == LEFT), 1.0, -1.0)
    chance = _answer_model(comparisons, annotator, margin, toward, question)

    def tabulate(values: FloatArray) -> Any:
        shape = (len(comparisons.annotators), len(questions))
        table = csr_array((values, (annotator, question)), shape=shape)
        table.sum_duplicates()
        return table

    # An annotator who answered a question several times counts once, with the answer given more often.
    answers, lean = tabulate(toward), tabulate(2 * chance - 1)
    answers.data = np.sign(answers.data)
    lean.data /= tabulate(np.ones(len(toward))).data
    lean = lean * abs(answers)
    answers.eliminate_zeros()
    return answers, lean


class _AnswerPairs(NamedTuple):
    """Pairs of annotators with enough common questions: how often they agreed, and how often by chance."""

    one: IntArray
    other: IntArray
    common: FloatArray
    agreed: FloatArray
    expected: FloatArray
    variance: FloatArray


def _compare_answers(answers: Any, lean: Any) -> _AnswerPairs:
    """With t = 2·P(first) − 1 of each, two annotators agree with probability ½(1 + t₁t₂)."""
    asked = abs(answers)
    common = (asked @ asked.T).tocoo()
    kept = (common.row < common.col) & (common.data >= _MIN_COMMON)
    one, other, n = common.row[kept].astype(np.int64), common.col[kept].astype(np.int64), common.data[kept]
    same, product, square = (
        np.asarray((table @ table.T).tocsr()[one, other]).ravel() for table in (answers, lean, lean * lean)
    )
    return _AnswerPairs(one, other, n, (n + same) / 2, (n + product) / 2, (n - square) / 4)


def _widened(p: float, centre: float, width: float) -> float:
    """A p-value under a normal distribution with another centre and width."""
    from scipy.special import ndtr, ndtri

    # Beyond the range of a double the tail is that of the smallest p-value, which is small enough.
    return float(ndtr((ndtri(max(p, 1e-300)) + centre) / width))


def _answer_model(
    comparisons: Comparisons, who: IntArray, margin: FloatArray, toward: FloatArray, question: IntArray
) -> FloatArray:
    """Probability that each answer is for the first item of its question, by a logistic regression per annotator.

    On the side, the order of the labels, and the logit of what all others answered to the question, shrunk towards what
    the scores say. So experts, careless annotators, those who always choose one side, and questions that mislead
    everybody are expected to agree as often as they do.
    """
    sign = np.where(comparisons.left < comparisons.right, 1.0, -1.0)
    chance = 1 / (1 + np.exp(-sign * margin))
    given = (toward > 0).astype(np.float64)
    wins, total = np.bincount(question, given)[question] - given, np.bincount(question)[question] - 1.0
    chance = (wins + _SHRINKAGE * chance) / (total + _SHRINKAGE)
    x = np.stack((np.log(chance / (1 - chance)), sign, np.ones(len(sign))), axis=1)
    size = len(comparisons.annotators)
    weights = np.tile(np.array([1.0, 0.0, 0.0]), (size, 1))
    start = weights.copy()
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(np.sum(weights[who] * x, axis=1), -30, 30)))
        gap, unsure = (toward > 0) - chance, chance * (1 - chance)
        gradient = np.stack([np.bincount(who, gap * x[:, k], size) for k in range(3)], axis=1)
        gradient -= _SLOPE_PRECISION * (weights - start)
        hessian = np.array([[np.bincount(who, unsure * x[:, j] * x[:, k], size) for k in range(3)] for j in range(3)])
        hessian = hessian.transpose(2, 0, 1) + _SLOPE_PRECISION * np.eye(3)
        weights = weights + np.clip(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], -1.0, 1.0)
    return np.asarray(1 / (1 + np.exp(-np.clip(np.sum(weights[who] * x, axis=1), -30, 30))))


def _tail_probability(chance: FloatArray, count: int) -> float:
    """Probability of at least `count` successes among independent trials."""
    missed = len(chance) - count
    distribution = np.zeros(missed + 1)  # of the number of failures, cut at what was seen
    distribution[0] = 1.0
    for p in chance:
        distribution[1:] = distribution[1:] * p + distribution[:-1] * (1 - p)
        distribution[0] *= p
    return float(distribution.sum())


def _groups(copies: list[tuple[int, int, int, int, float]]) -> Iterator[tuple[IntArray, int, int, float]]:
    """Annotators connected by pairs of copies, with the clearest pair of each group."""
    parent: dict[int, int] = {}

    def root(n: int) -> int:
        while parent.setdefault(n, n) != n:
            n = parent[n]
        return n

    for u, v, *_ in copies:
        parent[root(u)] = root(v)
    for top in sorted({root(u) for u, *_ in copies}):
        members = np.array(sorted(n for n in parent if root(n) == top), np.int64)
        *_, agreed, n, p = min((pair for pair in copies if root(pair[0]) == top), key=lambda pair: pair[-1])
        yield members, agreed, n, p


_TESTS = 4
# Campaigns: who is devoted to an item, and how many votes of them and of others about it are enough for a test.
_DEVOTED_SHARE, _MIN_ANSWERS = 0.9, 3
_MIN_DEVOTED_VOTES, _MIN_OTHER_VOTES = 10, 5
_MIN_EXCESS = 0.1
_SMALLEST_TASTE = 0.3
_SHIFTS = np.linspace(-12.0, 12.0, 241)
# Devoted annotators may know more or less than the others: their margins are stretched, log-normally.
_STRETCHES, _STRETCH_SCALE = np.geomspace(0.25, 4.0, 13), 0.5
# Bursts: fewest votes about an item, and shares of them that an interval may hold.
_MIN_VOTES, _MIN_INTERVAL = 20, 5
_INTERVALS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
_FLIPS = 999
# Newcomers: how many came in a row, at most this share of all; how many annotators times items fit into memory; and
# standard errors from which a group is looked at closely.
_GROUPS, _LARGEST_GROUP = (3, 5, 8, 12, 20, 35, 60, 100), 0.5
_MAX_CELLS = 5_000_000
_NOTICEABLE = 2.0
# How many items are looked at closely: fewer if there are many votes, because each takes four fits.
_MOST_ITEMS, _FEWEST_ITEMS, _VOTES_FITTED = 60, 4, 200_000


@dataclass(frozen=True, kw_only=True)
class StuffingAlarm:
    """One finding.

    Parameters
    ----------
    kind : {"campaign", "copies", "burst", "newcomers"}
        The test that raised the alarm.
    item : str or None
        The item that profits or suffers; None for copies.
    annotators : tuple of str
        The annotators involved; empty if they are unknown.
    votes : array of int
        Positions of their votes.
    p_value : float
        Probability of such a finding anywhere in an honest collection, by this test.
    reason : str
        The finding in one sentence.
    """

    kind: str
    item: str | None
    annotators: tuple[str, ...]
    votes: IntArray
    p_value: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class StuffingTest:
    """The result of the tests for vote stuffing.

    Parameters
    ----------
    alarms : tuple of StuffingAlarm
        What was found, smallest p-value first; empty in most honest collections.
    false_alarm_rate : float
        Probability of any alarm in an honest collection.
    skipped : mapping of str to str
        Tests that could not be made, with the reason.
    """

    alarms: tuple[StuffingAlarm, ...]
    false_alarm_rate: float
    skipped: dict[str, str]

    def __bool__(self) -> bool:
        """Whether there is an alarm."""
        return bool(self.alarms)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dictionary that can be written as JSON."""
        alarms = [
            {
                "kind": alarm.kind,
                "item": alarm.item,
                "annotators": list(alarm.annotators),
                "votes": alarm.votes.tolist(),
                "p_value": alarm.p_value,
                "reason": alarm.reason,
            }
            for alarm in self.alarms
        ]
        return {"alarms": alarms, "false_alarm_rate": self.false_alarm_rate, "skipped": dict(self.skipped)}


def find_stuffing(comparisons: Comparisons, *, false_alarm_rate: float = 0.02, seed: int = 0) -> StuffingTest:
    """Test whether votes were stuffed.

    Parameters
    ----------
    comparisons : Comparisons
        The votes. Annotators are needed for campaigns and copies, times for bursts, and both for newcomers.
    false_alarm_rate : float, default 0.02
        Probability of any alarm if all votes are honest.
    seed : int, default 0
        Seed of the random signs.

    Returns
    -------
    StuffingTest
        The alarms, and which tests could not be made.

    Notes
    -----
    An alarm is a reason to look, not a proof: a change of an item raises a burst too, and so may devoted users.

    Examples
    --------
    >>> from crowdrank.simulation import crowd_bt
    >>> honest = crowd_bt(items=8, annotators=10, pairs=28, votes=8, labels="logistic").judgments
    >>> bool(find_stuffing(honest))
    False
    """
    if not 0 < false_alarm_rate < 1:
        raise SettingError(f"false_alarm_rate must be between 0 and 1, got {false_alarm_rate}.")
    votes = _Votes(comparisons)
    level = false_alarm_rate / _TESTS
    tests: dict[str, Callable[[_Votes, float], Iterator[StuffingAlarm]]]
    tests = {
        "campaign": _campaigns,
        "copies": _copies,
        "burst": partial(_bursts, seed=seed),
        "newcomers": _newcomers,
    }
    skipped = {name: reason for name in tests if (reason := votes.missing_for(name))}
    found = [alarm for name, test in tests.items() if name not in skipped for alarm in test(votes, level)]
    found.sort(key=lambda alarm: alarm.p_value)
    return StuffingTest(alarms=_without_echoes(found), false_alarm_rate=false_alarm_rate, skipped=skipped)


def _without_echoes(alarms: list[StuffingAlarm]) -> tuple[StuffingAlarm, ...]:
    """The alarms without those of newcomers that a campaign explains, or newcomers for another item.

    Where an item wins whatever it meets, the others lose, and the same people seem to vote against them.
    """
    first = [alarm for alarm in alarms if alarm.kind == "campaign"]
    explained = {name for alarm in first for name in alarm.annotators}
    kept = []
    for alarm in alarms:
        if alarm.kind == "newcomers":
            if 2 * len(explained.intersection(alarm.annotators)) > len(alarm.annotators):
                continue
            explained.update(alarm.annotators)
        kept.append(alarm)
    return tuple(kept)


class _Fit(NamedTuple):
    scores: FloatArray
    covariance: FloatArray | None


class _Votes:
    """Decided votes, with names of items that are the same in every query."""

    def __init__(self, comparisons: Comparisons):
        self.rows = np.flatnonzero(comparisons.outcome)
        self.comparisons = comparisons.take(self.rows)
        names, code = np.unique(comparisons.items.labels.astype(str), return_inverse=True)
        self.names, self.name_of = names, code.ravel().astype(np.int64)
        self.left, self.right = self.name_of[self.comparisons.left], self.name_of[self.comparisons.right]
        self.left_won = self.comparisons.outcome == LEFT
        given = self.comparisons.annotator
        self.annotator = None if given is None else given.astype(np.int64)
        self.labels = comparisons.annotators

    def missing_for(self, test: str) -> str:
        """Why a test cannot be made; empty if it can."""
        if len(self.rows) < _MIN_VOTES:
            return f"fewer than {_MIN_VOTES} decided votes"
        if test in ("burst", "newcomers"):
            time = self.comparisons.time
            known = None if time is None else time[~np.isnan(time)]
            if known is None or len(np.unique(known)) < _MIN_VOTES:
                return "the votes have no times"
        if test == "burst":
            return ""
        if self.annotator is None or len(self.labels) < 2:
            return "the votes do not name annotators"
        if test == "newcomers" and len(self.labels) * len(self.names) > _MAX_CELLS:
            return f"more than {_MAX_CELLS:,} annotators times items"
        if test == "copies" and len(self.labels) > MAX_ANNOTATORS:
            return f"more than {MAX_ANNOTATORS:,} annotators"
        return ""

    def fit(self, rows: IntArray | None = None, covariance: bool = False) -> _Fit:
        """Scores from some of the votes, by bradley-terry, with their covariance."""
        from crowdrank.models.pairwise.bradley_terry import BradleyTerry

        used = self.comparisons if rows is None else self.comparisons.take(rows)
        with muted_warnings():
            ranking = BradleyTerry().fit(used)
        if not covariance:
            return _Fit(ranking.scores, None)
        draws = ranking.uncertainty.draws
        return _Fit(ranking.scores, draws - draws.mean(axis=0))

    def margins(self, scores: FloatArray) -> FloatArray:
        return np.asarray(scores[self.comparisons.left] - scores[self.comparisons.right])

    def alarm(
        self, kind: str, item: int | None, annotators: IntArray, rows: IntArray, p: float, why: str
    ) -> StuffingAlarm:
        return StuffingAlarm(
            kind=kind,
            item=None if item is None else str(self.names[item]),
            annotators=tuple(str(self.labels[n]) for n in annotators),
            votes=self.rows[rows],
            p_value=float(min(p, 1.0)),
            reason=why,
        )


# Campaigns


def _campaigns(votes: _Votes, level: float) -> Iterator[StuffingAlarm]:
    annotator = votes.annotator
    assert annotator is not None
    devotion = _devotion(votes)
    devoted = np.zeros((len(votes.labels),), bool)
    for members in devotion.values():
        devoted[members] = True
    others = np.flatnonzero(~devoted[annotator])
    if not devotion or len(others) < _MIN_VOTES:
        return
    try:
        fit = votes.fit(others, covariance=True)
    except CrowdrankError:
        return
    margin = votes.margins(fit.scores)
    taste = _taste_variance(votes, margin, others)
    tests = {}
    for item, members in devotion.items():
        about = (votes.left == item) | (votes.right == item)
        rows = np.flatnonzero(about & np.isin(annotator, members))
        if len(rows) >= _MIN_DEVOTED_VOTES and np.count_nonzero(about[others]) >= _MIN_OTHER_VOTES:
            tests[item] = (members, rows)
    for item, (members, rows) in tests.items():
        p, wins, expected = _shift_test(votes, fit, margin, item, rows, taste / len(members))
        p *= len(tests)
        if p < level and abs(wins - expected) > _MIN_EXCESS:
            side = "for" if wins > expected else "against"
            who = f"{len(members):,} annotators who answered about hardly any other item"
            yield votes.alarm(
                "campaign",
                item,
                members,
                rows,
                p,
                f"{who} voted {side} {votes.names[item]}: it won {wins:.0%} of their {len(rows):,} votes, "
                f"and {expected:.0%} were expected from the others.",
            )


def _devotion(votes: _Votes) -> dict[int, IntArray]:
    """Annotators who answered about one item nearly always, by item."""
    assert votes.annotator is not None
    size = len(votes.names)
    key = np.concatenate((votes.annotator * size + votes.left, votes.annotator * size + votes.right))
    pairs, count = np.unique(key, return_counts=True)
    who, item = pairs // size, pairs % size
    answers = np.bincount(votes.annotator, minlength=len(votes.labels))
    usual = (count >= _DEVOTED_SHARE * answers[who]) & (answers[who] >= _MIN_ANSWERS)
    # An annotator who answered about a single pair is devoted to both items and so to neither.
    alone = np.bincount(who[usual], minlength=len(votes.labels)) == 1
    usual &= alone[who]
    return {int(i): who[usual & (item == i)] for i in np.unique(item[usual])}


def _taste_variance(votes: _Votes, margin: FloatArray, rows: IntArray) -> float:
    """Variance of what an item is worth to an annotator, by moments: E r² = V + τ²V² for sums r of residuals."""
    assert votes.annotator is not None
    chance = 1 / (1 + np.exp(-margin[rows]))
    residual, variance = votes.left_won[rows] - chance, chance * (1 - chance)
    size = len(votes.names)
    keys = np.concatenate([votes.annotator[rows] * size + side[rows] for side in (votes.left, votes.right)])
    _, group = np.unique(keys, return_inverse=True)
    total = np.bincount(group.ravel(), np.append(residual, -residual))
    noise = np.bincount(group.ravel(), np.tile(variance, 2))
    found = float(np.sum(total**2 - noise) / max(float(np.sum(noise**2)), 1e-9))
    return max(found, _SMALLEST_TASTE**2)


def _shift_test(
    votes: _Votes, fit: _Fit, margin: FloatArray, item: int, rows: IntArray, taste: float
) -> tuple[float, float, float]:
    """P-value of a shift of the score of an item, the share of votes it won, and the share that was expected."""
    on_left = votes.left[rows] == item
    sign = np.where(on_left, 1.0, -1.0)
    lead, won = sign * margin[rows], votes.left_won[rows] == on_left
    chance = 1 / (1 + np.exp(-lead))
    assert fit.covariance is not None
    compared = votes.comparisons
    information = chance * (1 - chance)
    draws = fit.covariance[:, compared.left[rows]] - fit.covariance[:, compared.right[rows]]
    error = draws @ (sign * information) / information.sum()
    variance = float(np.var(error)) + taste
    margins, group = np.unique(lead, return_inverse=True)
    wins, losses = (np.bincount(group.ravel(), which, len(margins)) for which in (won, ~won))
    shifted = _STRETCHES[:, None, None] * margins[:, None] + _SHIFTS
    likelihood = -np.einsum("k,bks->bs", wins, np.logaddexp(0.0, -shifted))
    likelihood -= np.einsum("k,bks->bs", losses, np.logaddexp(0.0, shifted))
    prior = (np.log(_STRETCHES) ** 2 / (2 * _STRETCH_SCALE**2))[:, None] + _SHIFTS**2 / (2 * variance)
    ratio = 2 * float(likelihood.max() - (likelihood - prior).max())
    from math import erfc, sqrt

    return erfc(sqrt(max(ratio, 0.0) / 2)), float(won.mean()), float(chance.mean())


# Near-copies


def _copies(votes: _Votes, level: float) -> Iterator[StuffingAlarm]:
    assert votes.annotator is not None
    margin = votes.margins(votes.fit().scores)
    for group, agreed, n, p in near_copies(votes.comparisons, votes.annotator, margin, level):
        rows = np.flatnonzero(np.isin(votes.annotator, group))
        names = ", ".join(str(votes.labels[w]) for w in group[:4]) + (", …" if len(group) > 4 else "")
        why = f"{names} gave nearly the same answers: for two of them, {agreed:,} of {n:,} to common questions."
        yield votes.alarm("copies", None, group, rows, p, why)


# Bursts


class _Sequence(NamedTuple):
    """The votes about one item in the order of time, and the lengths of the intervals."""

    item: int
    rows: IntArray
    residual: FloatArray
    total_variance: FloatArray
    lengths: list[int]


def _bursts(votes: _Votes, level: float, seed: int) -> Iterator[StuffingAlarm]:
    sequences = list(_sequences(votes))
    if not sequences:
        return
    observed = [_largest(s, s.residual) for s in sequences]
    cluster = np.arange(len(votes.rows)) if votes.annotator is None else votes.annotator
    rng, above = np.random.default_rng(seed), np.zeros(len(sequences), np.int64)
    for _ in range(_FLIPS):
        signs = rng.choice((-1.0, 1.0), int(cluster.max()) + 1)[cluster]
        largest = max(_largest(s, s.residual * signs[s.rows])[0] for s in sequences)
        above += largest >= np.array([value for value, *_ in observed])
        if above.min() > level * (_FLIPS + 1):  # no alarm can follow
            return
    for sequence, (_, start, length), count in zip(sequences, observed, above, strict=True):
        p = (1 + int(count)) / (_FLIPS + 1)
        if p < level:
            rows = sequence.rows[start : start + length]
            people = np.zeros(0, np.int64) if votes.annotator is None else np.unique(votes.annotator[rows])
            more = "won" if sequence.residual[start : start + length].sum() > 0 else "lost"
            why = f"{votes.names[sequence.item]} {more} far more often in {length:,} votes in a row than in the others."
            yield votes.alarm("burst", sequence.item, people, rows, p, why)


def _sequences(votes: _Votes) -> Iterator[_Sequence]:
    time = votes.comparisons.time
    assert time is not None
    chance = 1 / (1 + np.exp(-votes.margins(votes.fit().scores)))
    residual, variance = votes.left_won - chance, chance * (1 - chance)
    order = np.argsort(time, kind="stable")  # unknown times come last
    order = order[~np.isnan(time[order])]
    for item in range(len(votes.names)):
        rows = order[(votes.left[order] == item) | (votes.right[order] == item)]
        if len(rows) < _MIN_VOTES:
            continue
        own = np.where(votes.left[rows] == item, 1.0, -1.0) * residual[rows]
        lengths = sorted({max(_MIN_INTERVAL, int(share * len(rows))) for share in _INTERVALS})
        yield _Sequence(item, rows, own, np.append(0.0, np.cumsum(variance[rows])), lengths)


def _largest(sequence: _Sequence, residual: FloatArray) -> tuple[float, int, int]:
    """The largest standardised sum over intervals, where it begins, and its length."""
    total, best = np.append(0.0, np.cumsum(residual)), (0.0, 0, 0)
    for length in sequence.lengths:
        spread = np.sqrt(sequence.total_variance[length:] - sequence.total_variance[:-length] + 1e-9)
        value = np.abs(total[length:] - total[:-length]) / spread
        at = int(np.argmax(value))
        if value[at] > best[0]:
            best = (float(value[at]), at, length)
    return best


# Newcomers


class _Residuals(NamedTuple):
    """By annotators in the order of their first answers and items, summed from the first annotator on."""

    order: IntArray
    total: FloatArray
    variance: FloatArray
    votes: FloatArray

    def standardise(self, start: IntArray, end: IntArray) -> FloatArray:
        """Residuals of groups of annotators by item, in standard errors; 0 where there are too few votes."""
        votes = self.votes[end] - self.votes[start]
        enough = (votes >= _MIN_DEVOTED_VOTES) & (self.votes[-1] - votes >= _MIN_OTHER_VOTES)
        error = np.sqrt(self.variance[end] - self.variance[start] + 1e-9)
        return np.where(enough, (self.total[end] - self.total[start]) / error, 0.0)

    def of_item(self, item: int) -> _Residuals:
        return _Residuals(self.order, *(table[:, item] for table in (self.total, self.variance, self.votes)))


def _newcomers(votes: _Votes, level: float) -> Iterator[StuffingAlarm]:
    annotator = votes.annotator
    assert annotator is not None
    everybody = _residuals(votes, _skilled_margins(votes, votes.fit().scores))
    came = len(everybody.order)
    longest = int(_LARGEST_GROUP * came)
    starts, ends = _windows(came, longest)
    if not len(starts):
        return
    largest = np.abs(everybody.standardise(starts, ends)).max(axis=0)
    most = int(np.clip(_VOTES_FITTED // len(votes.rows), _FEWEST_ITEMS, _MOST_ITEMS))
    looked_at = [int(i) for i in np.argsort(-largest, kind="stable")[:most] if largest[i] > _NOTICEABLE]

    def strongest(table: _Residuals, item: int, sign: float) -> IntArray:
        return table.order[slice(*_widest(table.of_item(item), sign, starts, ends, longest))]

    # Every group and every item could have been chosen, whether it was looked at or not.
    tests = came * longest * len(votes.names)
    for item in looked_at:
        # A campaign of many names moves the scores, and then it is the others who seem to vote against the item.
        groups = []
        for sign in (1.0, -1.0):
            margin = _margins_of_others(votes, strongest(everybody, item, sign), item)
            if margin is not None:  # without the group, the scores show more clearly who belongs to it
                groups.append(strongest(_residuals(votes, margin), item, sign))
        found = [one for one in (_test_group(votes, item, members) for members in groups) if one is not None]
        clear = [one for one in found if one[2] * tests < level and abs(one[3] - one[4]) > _MIN_EXCESS]
        if clear:  # if two groups contradict each other, the smaller one is the odd one
            members, rows, p, wins, expected = min(clear, key=lambda one: (len(one[0]), one[2]))
            side = "for" if wins > expected else "against"
            yield votes.alarm(
                "newcomers",
                item,
                members,
                rows,
                p * tests,
                f"{len(members):,} annotators who came one after another voted {side} {votes.names[item]}: it won "
                f"{wins:.0%} of their {len(rows):,} votes about it, and {expected:.0%} were expected from the others.",
            )


def _test_group(votes: _Votes, item: int, members: IntArray) -> tuple[IntArray, IntArray, float, float, float] | None:
    """The group, its votes about the item, the p-value, and the shares of votes won and expected."""
    assert votes.annotator is not None
    margin = _margins_of_others(votes, members)
    about, inside = (votes.left == item) | (votes.right == item), np.isin(votes.annotator, members)
    rows, rest = np.flatnonzero(about & inside), np.flatnonzero(about & ~inside)
    if margin is None or len(rows) < _MIN_DEVOTED_VOTES or len(rest) < _MIN_OTHER_VOTES:
        return None
    taste = _taste_variance(votes, margin, np.flatnonzero(~inside))
    return members, rows, *_difference_test(votes, margin, item, rows, rest, taste)


def _margins_of_others(votes: _Votes, members: IntArray, item: int = -1) -> FloatArray | None:
    """Margins by the scores of everyone else's votes; None if these order nothing."""
    assert votes.annotator is not None
    others = np.flatnonzero(~np.isin(votes.annotator, members))
    if len(others) < _MIN_VOTES:
        return None
    try:
        return _skilled_margins(votes, votes.fit(others).scores, item)
    except CrowdrankError:
        return None


def _difference_test(
    votes: _Votes, margin: FloatArray, item: int, rows: IntArray, rest: IntArray, taste: float
) -> tuple[float, float, float]:
    """P-value of a score of an item that differs between two groups, the share of votes it won, and that expected.

    Both scores are free, so it does not matter how few votes of the others there are. Tastes let them differ a little.
    """
    assert votes.annotator is not None
    likelihood = []
    for chosen in (rows, rest):
        on_left = votes.left[chosen] == item
        lead, won = np.where(on_left, 1.0, -1.0) * margin[chosen], votes.left_won[chosen] == on_left
        shifted = np.where(won, 1.0, -1.0)[:, None] * (lead[:, None] + _SHIFTS)
        likelihood.append(-np.logaddexp(0.0, -shifted).sum(axis=0))
        if chosen is rows:
            wins, expected = float(won.mean()), float(np.mean(1 / (1 + np.exp(-lead))))
    people = [len(np.unique(votes.annotator[chosen])) for chosen in (rows, rest)]
    variance = taste * sum(1 / n for n in people)
    together = likelihood[0][:, None] + likelihood[1] - (_SHIFTS[:, None] - _SHIFTS) ** 2 / (2 * variance)
    ratio = 2 * float(likelihood[0].max() + likelihood[1].max() - together.max())
    from math import erfc, sqrt

    return erfc(sqrt(max(ratio, 0.0) / 2)), wins, expected


def _residuals(votes: _Votes, margin: FloatArray) -> _Residuals:
    assert votes.annotator is not None
    assert votes.comparisons.time is not None
    people, items = len(votes.labels), len(votes.names)
    first = np.full(people, np.inf)
    np.fmin.at(first, votes.annotator, votes.comparisons.time)
    order = np.argsort(first, kind="stable")
    order = order[np.isfinite(first[order])]
    chance = 1 / (1 + np.exp(-margin))
    residual = votes.left_won - chance
    cells = np.concatenate([votes.annotator * items + side for side in (votes.left, votes.right)])

    def tabulate(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(cells, values, people * items).reshape(people, items)[order])

    noise = tabulate(np.tile(chance * (1 - chance), 2))
    taste = _taste_variance(votes, margin, np.arange(len(votes.rows)))
    tables = (tabulate(np.append(residual, -residual)), noise + taste * noise**2, tabulate(np.ones(len(cells))))
    return _Residuals(order, *(np.concatenate((np.zeros((1, items)), np.cumsum(one, axis=0))) for one in tables))


def _windows(came: int, longest: int) -> tuple[IntArray, IntArray]:
    """Where groups of newcomers begin and end: of several sizes, each overlapping the next."""
    groups = [(start, start + m) for m in _GROUPS if m <= longest for start in range(0, came - m + 1, max(1, m // 3))]
    found = np.array(groups, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _widest(table: _Residuals, sign: float, starts: IntArray, ends: IntArray, longest: int) -> tuple[int, int]:
    """The group with the largest residual of one item for or against it, its ends moved while that makes it grow."""
    best = int(np.argmax(sign * table.standardise(starts, ends)))
    start, end = int(starts[best]), int(ends[best])
    reach = np.arange(-(end - start), end - start + 1)
    moved = np.clip(start + reach, 0, len(table.order)), np.clip(end + reach, 0, len(table.order))
    first, last = (side.ravel() for side in np.meshgrid(*moved))
    valid = (last - first >= _GROUPS[0]) & (last - first <= longest)
    first, last = first[valid], last[valid]
    at = int(np.argmax(sign * table.standardise(first, last)))
    return int(first[at]), int(last[at])


def _skilled_margins(votes: _Votes, scores: FloatArray, item: int = -1) -> FloatArray:
    """Margins of the scores times how much each annotator follows them, so that careless ones raise no alarm.

    Votes about `item` do not count for that: those who lift a bad item would seem to answer in reverse. The test itself
    lets them count, which makes it cautious.
    """
    annotator, margin, people = votes.annotator, votes.margins(scores), len(votes.labels)
    assert annotator is not None
    discrimination, counts = np.ones(people), (votes.left != item) & (votes.right != item)
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(discrimination[annotator] * margin, -30, 30)))
        gradient = np.bincount(annotator, counts * (votes.left_won - chance) * margin, people) - _SLOPE_PRECISION * (
            discrimination - 1
        )
        curvature = np.bincount(annotator, counts * chance * (1 - chance) * margin**2, people) + _SLOPE_PRECISION
        discrimination = discrimination + np.clip(gradient / curvature, -1.0, 1.0)
    return np.asarray(np.clip(discrimination[annotator] * margin, -30, 30))
