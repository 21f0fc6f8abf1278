"""Which answers to buy next: gold answers, or votes of people and language models, by expected gain per price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import AnnotatorDetails, Comparisons, SideInformation
from crowdrank.errors import DataError, SettingError, UnknownNameError, muted_warnings
from crowdrank.models import by_name
from crowdrank.models.jury.factors import GOLD_SPREAD, MAX_ITEMS, gold_prior
from crowdrank.models.jury.jury import JuryFit, fit_jury
from crowdrank.models.selection import default_model

if TYPE_CHECKING:
    from crowdrank.results import Ranking

# The gain of an answer: how many more pairs of items are expected in the right order, given a normal distribution.

GOLD, HUMAN = "gold", "human"
# Share of the variance of a difference that answers can explain at most.
_MOST_EXPLAINED = 0.999
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


class Source(NamedTuple):
    """Someone whose answers can be bought.

    Parameters
    ----------
    name : str
        A name, "human" or "gold".
    price : float
        Price of an answer.
    quality : float
        Probability that an answer is the intended one.
    noise : float
        Standard deviation of the noise on the difference of scores.
    free : array of bool
        Which pairs can be asked.
    """

    name: str
    price: float
    quality: float
    noise: float
    free: BoolArray


class _Best(NamedTuple):
    """The best answer of a source: its gain, its pair, and the state after it."""

    gain: float
    pair: int
    information: float
    explained: FloatArray
    accuracy: FloatArray


@dataclass(eq=False)
class _Choice:
    """Differences of pairs, how much of their variance the chosen answers explain, and how sure their orders are."""

    margin: FloatArray
    covariance: FloatArray
    within: FloatArray
    share: float
    before: FloatArray
    explained: FloatArray
    accuracy: FloatArray
    settled: BoolArray

    def best_of(self, source: Source, free: BoolArray) -> _Best | None:
        """The pair whose answer by this source gains most."""
        candidates = np.flatnonzero(free)
        if not len(candidates):
            return None
        information = _information(self.margin, self.covariance, source)[candidates]
        explained = self.explained + self._relation(source)[candidates] ** 2 * information[:, None]
        explained = np.minimum(explained, _MOST_EXPLAINED * self.before)
        accuracy = _expected_accuracy(self.margin, self.before, explained)
        accuracy[:, self.settled] = 1.0
        rise = accuracy - self.accuracy
        own = rise[np.arange(len(candidates)), candidates]
        gain = self.share * (rise.sum(axis=1) - own)
        if source.name == GOLD:
            # The pair itself is settled, whichever it is: choosing by that would prefer pairs that teach nothing.
            at = int(np.argmax(gain))
            own = 1.0 - self.accuracy[candidates]
        else:
            at = int(np.argmax(gain + own))
        return _Best(
            float(gain[at] + own[at]), int(candidates[at]), float(information[at]), explained[at], accuracy[at]
        )

    def _relation(self, source: Source) -> FloatArray:
        """What an answer has in common with other pairs: only gold tells which direction is the truth."""
        return self.covariance if source.name == GOLD else self.within

    def take(self, best: _Best, source: Source) -> None:
        """Count an answer as given."""
        self.explained, self.accuracy = best.explained, best.accuracy
        if source.name == GOLD:
            self.settled[best.pair], self.accuracy[best.pair] = True, 1.0
        column, own = self._relation(source)[:, best.pair], self.within[:, best.pair]
        self.covariance = self.covariance - best.information * np.outer(column, column)
        self.within = self.within - best.information * np.outer(own, own)


def choose_by_gain(
    margin: FloatArray,
    covariance: FloatArray,
    within: FloatArray,
    share: float,
    sources: Sequence[Source],
    count: int,
) -> list[tuple[int, int, float]]:
    """Sources and pairs one after the other, each with its gain given those before it."""
    from scipy.special import ndtr

    before = np.maximum(np.diag(covariance), 1e-12)
    nothing = np.zeros(len(margin))
    accuracy = ndtr(np.abs(margin) / np.sqrt(before))
    state = _Choice(margin, covariance, within, share, before, nothing, accuracy, nothing.astype(bool))
    free = [source.free.copy() for source in sources]
    chosen: list[tuple[int, int, float]] = []
    for _ in range(count):
        offers = [state.best_of(source, mask) for source, mask in zip(sources, free, strict=True)]
        worth = [-np.inf if o is None else o.gain / s.price for o, s in zip(offers, sources, strict=True)]
        number = int(np.argmax(worth))
        best, name = offers[number], sources[number].name
        if best is None:
            break
        chosen.append((number, best.pair, max(best.gain, 0.0)))
        state.take(best, sources[number])
        for n, mask in enumerate(free):
            # Another person can be asked about the same pair; nobody needs to be once its answer is known.
            mask[best.pair] &= name != GOLD and (n != number or name == HUMAN)
    return chosen


def _information(margin: FloatArray, covariance: FloatArray, source: Source) -> FloatArray:
    """κ: an answer to pair p reduces the variance of pair q by Cov(p, q)²·κ, by linear regression on the answer."""
    from scipy.special import ndtr

    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0) + source.noise**2)
    spread = np.maximum(spread, 1e-9)
    ahead = np.clip(margin / spread, -8, 8)
    trust = 2 * source.quality - 1
    likely = 0.5 + trust * (ndtr(ahead) - 0.5)
    density = np.exp(-0.5 * ahead**2) / np.sqrt(2 * np.pi)
    return np.asarray((trust * density / spread) ** 2 / np.maximum(likely * (1 - likely), 1e-12))


def _expected_accuracy(margin: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Expected probability of the more probable order of each pair, if `after` of its variance is explained."""
    from scipy.special import ndtr

    root, rest = np.sqrt(after), np.sqrt(before - after)
    found = np.zeros(after.shape)
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        found += weight * ndtr(np.abs(margin + root * node) / rest)
    return found


_MIN_JUDGES = 3
# Pairs that are considered; of more, a random sample.
_MAX_PAIRS = 700
# The logistic distribution is close to a normal one with this standard deviation.
_LOGISTIC = 1.702


class Purchase(NamedTuple):
    """An answer that is worth its price.

    Parameters
    ----------
    annotator : str
        Who to ask: a name, "human" for any person, or "gold" for someone who knows the right answer.
    query : str or None
        The query of the two items.
    left, right : str
        The items to compare; the sides are random.
    gain : float
        How many more pairs of items the ranking is expected to have in the right order, if the answers listed before
        are known.
    price : float
        Price of the answer.

    Examples
    --------
    >>> Purchase("gold", None, "a", "b", gain=3.0, price=2.0).gain_per_price
    1.5
    """

    annotator: str
    query: str | None
    left: str
    right: str
    gain: float
    price: float

    @property
    def gain_per_price(self) -> float:
        """The expected gain per unit of price."""
        return self.gain / self.price


def choose_answers(
    comparisons: Comparisons,
    ask: str | Sequence[str] = GOLD,
    count: int = 10,
    *,
    people: Mapping[str, AnnotatorDetails] | None = None,
    gold: Any = None,
    seed: int = 0,
) -> list[Purchase]:
    """Choose the answers that are expected to put most pairs of items in the right order, per unit of price.

    Parameters
    ----------
    comparisons : Comparisons
        The answers so far.
    ask : str or sequence of str, default "gold"
        Whose answers can be bought: "gold" is the right answer, by an expert; "human" is a vote of any person; other
        names are annotators. With several, gains per price decide between them.
    count : int, default 10
        Number of answers.
    people : mapping from name to AnnotatorDetails, optional
        Kind, family and price of annotators. The names "gold" and "human" can have a price, too. Without a price, an
        answer costs 1, and a vote of any person the mean price of the people who have one.
    gold : Comparisons or pairs of items, optional
        Gold pairs that are known already, better item first.
    seed : int, default 0
        Seed of the sides, of the sample of pairs if there are more than 700, and of draws.

    Returns
    -------
    list of Purchase
        The answers, in the order in which they should be bought; fewer than `count` if nothing is left to ask.

    Notes
    -----
    Differences of scores have a joint normal distribution. For gold answers it is that of the model jury, in which they
    tell whom to believe, and with it about all other pairs; otherwise that of the default model of `rank`. An answer
    to pair p reduces the variance of the difference of pair q by about Cov(p, q)²·κ, with κ from the quality of the
    annotator and the noise of answers. The gain is the sum over q of the expected rise in max(P, 1 − P), where P is the
    probability of an order. A gold answer settles its own pair, whichever it is, so it is chosen for what it tells
    about the others. All answers of a list can be bought at once: each is chosen as if those before it were known,
    whatever they are. It is better to buy a few, add them and choose again.

    Examples
    --------
    >>> rows = [("a", "b", "a"), ("b", "c", "b"), ("a", "c", "a"), ("c", "d", "d")] * 3
    >>> left, right, winner = zip(*rows)
    >>> votes = Comparisons.of(left, right, winner, annotator=list("xxxxyyyyzzzz"))
    >>> found = choose_answers(votes, "gold", 2)
    >>> [one.annotator for one in found], all(one.gain > 0 for one in found)
    (['gold', 'gold'], True)
    """
    names = [ask] if isinstance(ask, str) else list(ask)
    if not names or count < 1:
        raise SettingError("Name at least one source of answers, and a count of at least 1.")
    people = people or {}
    rng = np.random.default_rng(seed)
    with muted_warnings():
        beliefs = _beliefs(comparisons, names, people, gold, seed)
    pairs = _pairs(comparisons, beliefs.gold, rng)
    if not len(pairs.first):
        return []
    sources = [_source(name, beliefs, comparisons, people, pairs) for name in names]
    chosen = choose_by_gain(beliefs.margin(pairs), *beliefs.covariance(pairs), pairs.share, sources, count)
    items, flipped = comparisons.items, rng.random(len(chosen)) < 0.5
    found = []
    for (which, pair, gain), flip in zip(chosen, flipped, strict=True):
        left, right = (pairs.second[pair], pairs.first[pair]) if flip else (pairs.first[pair], pairs.second[pair])
        query = str(items.queries[items.query[left]]) if items.has_queries else None
        source = sources[which]
        found.append(
            Purchase(source.name, query, str(items.labels[left]), str(items.labels[right]), gain, source.price)
        )
    return found


class Pairs(NamedTuple):
    """Pairs of items that can be asked about.

    Parameters
    ----------
    first, second, query : array of int
        Codes of the items, and of their query.
    judged : array of bool
        Whether anybody has compared them.
    share : float
        The number of all such pairs per pair that is considered.
    """

    first: IntArray
    second: IntArray
    query: IntArray
    judged: BoolArray
    share: float


def _pairs(comparisons: Comparisons, gold: set[tuple[int, int]], rng: np.random.Generator) -> Pairs:
    """All pairs of items of a query, or the judged ones if those are too many; without known ones."""
    items = comparisons.items
    left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
    judged = set(zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True))
    sizes = np.diff(items.starts)
    everything = judged
    if int(np.sum(sizes * (sizes - 1) // 2)) <= _MAX_PAIRS:
        everything = {
            (a, b)
            for start, end in zip(items.starts[:-1].tolist(), items.starts[1:].tolist(), strict=True)
            for a in range(start, end)
            for b in range(a + 1, end)
        }
    pairs = np.array(sorted(everything - gold), np.int64).reshape(-1, 2)
    total = len(pairs)
    if total > _MAX_PAIRS:
        pairs = pairs[np.sort(rng.choice(total, _MAX_PAIRS, replace=False))]
    known = np.array([pair in judged for pair in map(tuple, pairs.tolist())], bool)
    query = items.query[pairs[:, 0]].astype(np.int64)
    return Pairs(pairs[:, 0], pairs[:, 1], query, known, total / max(len(pairs), 1))


@dataclass(frozen=True, eq=False)
class JuryBeliefs:
    """Scores by the model jury: a gold answer tells about all pairs, through the direction of the truth."""

    fit: JuryFit
    seed: int
    noise: float = 0.0

    @property
    def gold(self) -> set[tuple[int, int]]:
        known = zip(self.fit.known.gold_better.tolist(), self.fit.known.gold_worse.tolist(), strict=True)
        return {(min(pair), max(pair)) for pair in known}

    @property
    def _is_guess(self) -> bool:
        """Whether the judges err together, and neither gold nor their consistency tells whom to believe."""
        return (
            self.fit.errs_together and not self.fit.known.has_gold and not np.isfinite(self.fit.cells.reliability).any()
        )

    def margin(self, pairs: Pairs) -> FloatArray:
        if self._is_guess:
            return np.zeros(len(pairs.first))  # a majority that may be wrong together is no reason to spare its pairs
        return np.asarray(self.fit.scores[pairs.first] - self.fit.scores[pairs.second])

    def covariance(self, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        """Covariance of the differences, and the part that is not due to the direction of the truth."""
        fit = self.fit
        direction = fit.direction.covariance
        if self._is_guess:
            direction = gold_prior(direction, fit.cells.reliability)
        within = np.zeros((len(pairs.first), len(pairs.first)))
        hidden = GOLD_SPREAD**2 * fit.hidden_share
        for query in np.unique(pairs.query):
            rows = np.flatnonzero(pairs.query == query)
            own = fit.items.of_query(int(query))
            scores = fit.item_factors.along(fit.direction.mean, int(query), own.stop - own.start)
            scores = scores + np.diag(hidden[own])
            sides = np.zeros((len(rows), len(scores)))
            sides[np.arange(len(rows)), pairs.first[rows] - own.start] = 1.0
            sides[np.arange(len(rows)), pairs.second[rows] - own.start] = -1.0
            within[np.ix_(rows, rows)] = sides @ scores @ sides.T
        factors = fit.item_factors.mean[pairs.first] - fit.item_factors.mean[pairs.second]
        return within + factors @ direction @ factors.T, within

    def quality(self) -> FloatArray:
        return self.fit.quality(self.seed)[0]


@dataclass(frozen=True, eq=False)
class DrawnBeliefs:
    """Scores by a model of the ranking, from its joint draws."""

    ranking: Ranking
    gold: set[tuple[int, int]]
    noise: float = _LOGISTIC

    def margin(self, pairs: Pairs) -> FloatArray:
        return np.asarray(self.ranking.scores[pairs.first] - self.ranking.scores[pairs.second])

    def covariance(self, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        draws = self.ranking.uncertainty.draws
        differences = draws[:, pairs.first] - draws[:, pairs.second]
        found = np.atleast_2d(np.cov(differences, rowvar=False))
        found = np.where(pairs.query[:, None] == pairs.query, found, 0.0)
        return found, found

    def quality(self) -> FloatArray | None:
        """The quality of each annotator; None if the model has none, and all answers follow the scores."""
        if not self.ranking.has_annotators:
            return None
        return self.ranking.annotators.to_polars()["quality"].to_numpy()


def _beliefs(
    comparisons: Comparisons, names: Sequence[str], people: Mapping[str, AnnotatorDetails], gold: Any, seed: int
) -> JuryBeliefs | DrawnBeliefs:
    known = SideInformation(people=people, gold=gold)
    judges = 0 if comparisons.annotator is None else len(comparisons.annotators)
    can_be_jury = judges >= _MIN_JUDGES and int(np.diff(comparisons.items.starts).max()) <= MAX_ITEMS
    choice = "jury" if GOLD in names else default_model(comparisons, people=people, gold=gold is not None).name
    if can_be_jury and choice == "jury":
        return JuryBeliefs(fit_jury(comparisons, known.encode(comparisons)), seed)
    if choice == "jury":
        choice = default_model(comparisons, people=people, gold=gold is not None).name
    cls = by_name(choice)
    used = known if cls.accepts_side_information else None
    if cls.accepts_people:
        used = SideInformation(people=people)
    if gold is not None and not cls.accepts_side_information:
        raise SettingError(
            f"{choice}, the model of these answers, does not use gold pairs: ask for gold, or omit them."
        )
    encoded = known.encode(comparisons)
    pairs = zip(encoded.gold_better.tolist(), encoded.gold_worse.tolist(), strict=True)
    ranking = cls().fit(comparisons, side_information=used)
    return DrawnBeliefs(ranking, {(min(pair), max(pair)) for pair in pairs})


def _source(
    name: str,
    beliefs: JuryBeliefs | DrawnBeliefs,
    comparisons: Comparisons,
    people: Mapping[str, AnnotatorDetails],
    pairs: Pairs,
) -> Source:
    price = _price(name, people)
    everything = np.ones(len(pairs.first), bool)
    if name == GOLD:
        return Source(name, price, 1.0, 0.0, pairs.judged)
    annotators = [str(label) for label in comparisons.annotators]
    kinds = {label: people[label].kind for label in annotators if label in people}
    if name == HUMAN:
        if isinstance(beliefs, JuryBeliefs) and HUMAN not in kinds.values():
            raise DataError(
                "No human has judged these items, so the value of a human vote is unknown.",
                remedy="Ask for gold (the correct answer by an expert), or name the humans with people=.",
            )
        codes = [code for code, label in enumerate(annotators) if kinds.get(label, HUMAN) == HUMAN]
        return Source(name, price, _mean_quality(beliefs, codes), beliefs.noise, everything)
    if name not in annotators and name not in people:
        raise UnknownNameError("annotator", name, [GOLD, HUMAN, *annotators, *people])
    codes = [annotators.index(name)] if name in annotators else list(range(len(annotators)))
    free = everything if name not in annotators else ~_answered(comparisons, codes[0], pairs)
    quality, noise = _mean_quality(beliefs, codes), beliefs.noise
    if isinstance(beliefs, DrawnBeliefs) and "discrepancy" in beliefs.ranking.parameters and _is_judge(name, people):
        noise = _noise_of_judge(name, beliefs.ranking.parameters)
    return Source(name, price, quality, noise, free)


def _price(name: str, people: Mapping[str, AnnotatorDetails]) -> float:
    own = people[name].price if name in people else None
    if own is None and name == HUMAN:
        prices = [details.price for details in people.values() if details.kind == HUMAN and details.price is not None]
        own = float(np.mean(prices)) if prices else None
    return 1.0 if own is None else own


def _mean_quality(beliefs: JuryBeliefs | DrawnBeliefs, codes: Sequence[int]) -> float:
    quality = beliefs.quality()
    return 1.0 if quality is None or not len(codes) else float(np.mean(quality[list(codes)]))


def _answered(comparisons: Comparisons, code: int, pairs: Pairs) -> BoolArray:
    """Which pairs an annotator has answered."""
    assert comparisons.annotator is not None
    mine = comparisons.annotator == code
    size = len(comparisons.items)
    left, right = comparisons.left[mine].astype(np.int64), comparisons.right[mine].astype(np.int64)
    return np.isin(pairs.first * size + pairs.second, np.minimum(left, right) * size + np.maximum(left, right))


def _is_judge(name: str, people: Mapping[str, AnnotatorDetails]) -> bool:
    return name in people and people[name].kind == "llm"


def _noise_of_judge(name: str, parameters: Mapping[str, float]) -> float:
    """A judge's answer follows its own scores: those of the humans, off by the discrepancy, over its weight."""
    weights = {key: value for key, value in parameters.items() if key.startswith("weight[")}
    if f"weight[{name}]" not in weights:
        raise DataError(f"{name}'s votes order the items no better than coin tosses, so more of them would not help.")
    return float(np.hypot(_LOGISTIC * sum(weights.values()), np.sqrt(2.0) * parameters["discrepancy"]))
