"""Shared code of the TPP scripts: cached fits to crowds with domains, and metrics of these fits."""

from __future__ import annotations

import json
import re
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import measure
import numpy as np
from measure import Check, Key, Table, decimals, over_seeds, standard_error

from crowdrank import TPP, CrowdBT
from crowdrank.errors import ConvergenceWarning
from crowdrank.evaluation import kendall_distance
from crowdrank.models import Model
from crowdrank.results import Ranking
from crowdrank.simulation import Crowd, domain_crowd
from crowdrank.simulation.domains import parse_dataset_name

# The seeds on record for TPP; `measure` begins at others.
measure.FIRST_SEED = 300

PUBLISHED, PEER, OURS = "TPP, published", "crowd-bt", "tpp"
BY_THE_PAPER = TPP(inference="mcem", domains=10)
METHODS: dict[str, Model] = {
    PUBLISHED: BY_THE_PAPER,
    "TPPUNIDOM": replace(BY_THE_PAPER, domains=1),
    "TPPUNIEXP": replace(BY_THE_PAPER, expertise="shared"),
    "TPPUNIDIFF": replace(BY_THE_PAPER, difficulty="shared"),
    PEER: CrowdBT(),
    OURS: TPP(),
    "tpp, one domain": TPP(domains=1),
    "tpp, domains=2": TPP(domains=2),
}
DISTANCE = "distance"
FALSE_POSITIVES = tuple(np.linspace(0, 1, 41).tolist())


def shown(methods: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Methods, and the crowds they are fitted to, for `SHOWS`."""
    crowds = {name: partial(crowd_named, name, measure.FIRST_SEED) for name in names}
    return {method: METHODS[method] for method in methods} | crowds


Record = dict[str, Any]
"""What one fit came to, by name."""
Fits = Mapping[Key, Sequence[Record]]
"""By method and crowd, one record a seed."""
Found = Mapping[Key, Sequence[float]]


SPAMMERS = {"τ = 0.1": 0.1, "τ = 1": 1.0}
"""Expertise of spammers: 0.1 in the authors' simulator, from which the printed numbers come, and 1 as printed."""


def crowd_named(name: str, seed: int, quick: bool = False) -> Crowd:
    """Simulate the crowd that the paper calls `name`.

    The name may end in " of 5 domains" or " of 2 even domains" (otherwise ten of any size), and in ", τ = 0.1", the
    expertise of spammers.
    """
    name, _, spammers = name.partition(", ")
    name, _, domains = name.partition(" of ")
    settings = parse_dataset_name(name)
    if spammers:
        settings["spammer_expertise"] = SPAMMERS[spammers]
    if domains:
        settings |= {"domains": int(domains.split()[0]), "even_domains": "even" in domains}
    if quick:
        settings |= {"queries": 12, "items": 4, "annotators": 6, "sparsity": 1.0}
    return domain_crowd(**settings, seed=seed)


def fits(told: Namespace, names: Sequence[str], methods: Sequence[str]) -> dict[Key, list[Record]]:
    """Of every method to every crowd; those found in the folder `told.kept` are not made again."""
    columns = [(method, name) for name in names for method in methods]
    # over_seeds collects whatever the cells hold
    return cast(dict[Key, list[Record]], over_seeds(partial(_trial, told.kept), columns, told))


def _trial(kept: Path | None, column: Key, seed: int, quick: bool) -> Mapping[Key, Any]:
    method, name = column
    found = keep(None if quick else kept, (name, method), seed, lambda: fit(method, name, seed, quick))
    return {column: found}


def keep(kept: Path | None, folders: Sequence[str], seed: int, make: Callable[[], Record]) -> Record:
    """What is kept of an earlier run, else what is made now; fits that did not converge are warned of either way."""
    place = None if kept is None else kept.joinpath(*map(_plain, folders), f"{seed}.json")
    if place is not None and place.exists():
        found: Record = json.loads(place.read_text(encoding="utf-8"))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = make()
        if place is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            # all of it or nothing, should the run be stopped here
            unfinished = place.with_suffix(".part")
            unfinished.write_text(json.dumps(found) + "\n", encoding="utf-8")
            unfinished.replace(place)
    if not found["converged"]:
        warnings.warn(f"{folders[-1].partition(',')[0]} did not converge.", ConvergenceWarning, stacklevel=2)
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9.]+", "-", name)


def fit(method: str, name: str, seed: int, quick: bool = False) -> Record:
    model, crowd = METHODS[method], crowd_named(name, seed, quick)
    if quick and isinstance(model, TPP):
        model = replace(model, max_sweeps=60, draws=20)
    begun = perf_counter()
    ranking = model.fit(crowd.judgments)
    seconds = perf_counter() - begun
    found: Record = {"converged": ranking.convergence.converged, "seconds": seconds}
    found[DISTANCE] = distance(ranking, crowd)
    if isinstance(model, TPP):
        found |= of_domains(ranking, crowd)
        if model.inference == "posterior":
            found |= covered(ranking, crowd)
    return found


def distance(ranking: Ranking, crowd: Crowd) -> float:
    """Pairs the wrong way round, the mean over queries."""
    blocks = [ranking.items.of_query(query) for query in range(len(ranking.items.queries))]
    return float(np.mean([kendall_distance(ranking.scores[block], crowd.truth[block]) for block in blocks]))


def covered(ranking: Ranking, crowd: Crowd) -> Record:
    """Shares of true scores and difficulties in their 90 % intervals, in the units in which the model gives them."""
    scores = ranking.items.centre(crowd.truth)
    scores = scores / np.sqrt(np.mean(scores**2))
    low, high = np.quantile(ranking.uncertainty.draws, (0.05, 0.95), axis=0)
    difficulty = crowd.queries["difficulty"] / crowd.queries["difficulty"].mean()
    _, easy, hard = ranking.domains.difficulty
    return {
        "scores covered": float(np.mean((low <= scores) & (scores <= high))),
        "difficulties covered": float(np.mean((easy <= difficulty) & (difficulty <= hard))),
    }


def of_domains(ranking: Ranking, crowd: Crowd) -> Record:
    """How many were found, how many queries are in the right one, and how well malicious annotators are told."""
    found, true = ranking.domains.domain - 1, crowd.queries["domain"]
    name, lie = names_of(found, true), crowd.annotators["expertise"] < 0
    return {
        "domains": int(np.count_nonzero(ranking.domains.sizes)),
        "sets of malicious annotators": len({tuple(lie[:, domain]) for domain in name}),
        "in the right domain": float(np.mean(matched(found, true)[found] == true)),
        "AUC": malicious_told(ranking.domains.expertise[0], crowd.annotators["expertise"], name),
        "ROC": roc(*_malicious_scores(ranking.domains.expertise[0], crowd.annotators["expertise"], name)),
    }


def matched(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """The true domain of each that was found, one to one, so that most queries agree; -1 where none is left."""
    from scipy.optimize import linear_sum_assignment

    shared = _shared(found, true)
    name = np.full(len(shared), -1)
    rows, columns = linear_sum_assignment(-shared)
    name[rows] = columns
    return name


def names_of(found: np.ndarray, true: np.ndarray) -> dict[int, int]:
    """The found domain of each true one that has queries: its match, or where there is none, where most of it went."""
    shared = _shared(found, true)
    back = {int(domain): n for n, domain in enumerate(matched(found, true)) if domain >= 0 and shared[n, domain]}
    return {int(domain): back.get(int(domain), int(np.argmax(shared[:, domain]))) for domain in np.unique(true)}


def _shared(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    table = np.zeros((found.max() + 1, true.max() + 1), int)
    np.add.at(table, (found, true), 1)
    return table


def malicious_told(estimate: np.ndarray, expertise: np.ndarray, name: Mapping[int, int]) -> float:
    """The area under the curve of −τ as a test for being malicious, over annotators and domains; nan without any."""
    from scipy.stats import rankdata

    malicious, scores = _malicious_scores(estimate, expertise, name)
    rank = rankdata(scores)
    bad, good = np.count_nonzero(malicious), np.count_nonzero(~malicious)
    if not bad or not good:
        return float("nan")
    return float((rank[malicious].sum() - bad * (bad + 1) / 2) / (bad * good))


def _malicious_scores(
    estimate: np.ndarray, expertise: np.ndarray, name: Mapping[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each annotator is malicious in each domain, and −τ as it was estimated."""
    malicious = np.concatenate([expertise[:, domain] < 0 for domain in name])
    return malicious, np.concatenate([-estimate[:, found] for found in name.values()])


def roc(positive: np.ndarray, scores: np.ndarray) -> list[float]:
    """True positive rates at the false positive rates of `FALSE_POSITIVES`, interpolated between thresholds."""
    thresholds = np.unique(scores)[::-1]
    above = scores[:, None] >= np.append(np.inf, thresholds)
    rates = [
        above[chosen].mean(axis=0) if chosen.any() else np.full(above.shape[1], np.nan)
        for chosen in (positive, ~positive)
    ]
    return np.interp(FALSE_POSITIVES, rates[1], rates[0]).tolist()


def with_spammers(names: Sequence[str], spammers: str) -> list[str]:
    return [f"{name}, {spammers}" for name in names]


def of_spammers(found: Fits, spammers: str) -> dict[Key, list[Record]]:
    """The crowds with these spammers only, by the paper's names."""
    return {
        (method, name.removesuffix(f", {spammers}")): list(records)
        for (method, name), records in found.items()
        if name.endswith(f", {spammers}")
    }


def measured(found: Fits, what: str, methods: Sequence[str] | None = None) -> dict[Key, list[float]]:
    """One number of every record."""
    return {
        key: [record[what] for record in records]
        for key, records in found.items()
        if methods is None or key[0] in methods
    }


def less(found: Found, row: str, baselines: Sequence[str]) -> dict[Key, list[float]]:
    """Differences crowd by crowd, as far as both methods were fitted to the same."""
    ahead = {}
    for baseline in baselines:
        for column in [column for name, column in found if name == row and (baseline, column) in found]:
            pairs = zip(found[row, column], found[baseline, column], strict=False)
            ahead[f"{row} less {baseline}", column] = [ours - theirs for ours, theirs in pairs]
    return ahead


def below(table: Table, words: str = "below 0 by two standard errors") -> Iterator[Check]:
    """Whether differences are surely negative."""
    for (row, column), values in table.found.items():
        mean, error = float(np.mean(values)), standard_error(values)
        yield Check(f"{row}, {column}", words, table._cell(row, column), bool(mean + 2 * error < 0))


def as_printed(found: Found, printed: Mapping[Key, float]) -> Iterator[Check]:
    """Whether a printed number, which comes from one data set, lies within the spread of data sets."""
    for key, number in printed.items():
        if key in found and len(found[key]) > 1:
            mean, spread = float(np.mean(found[key])), float(np.std(found[key], ddof=1))
            words = f"{_tenths(mean)}, standard deviation {_tenths(spread)}"
            aim = f"one standard deviation of data sets around {_tenths(number)}"
            yield Check(", ".join(key), aim, words, abs(mean - number) <= spread)


@dataclass(frozen=True)
class Distances(Table):
    """Counts of pairs: ten and more show a decimal."""

    def markdown(self) -> str:
        head = ["", *self.columns]
        lines = [head, ["---"] * len(head)]
        for row in self.rows:
            lines.append([row, *(self._cell(row, column) for column in self.columns)])
            printed = [self.paper.get((row, column)) for column in self.columns]
            if any(number is not None for number in printed):
                lines.append(["*paper*", *("" if n is None else f"*{_tenths(n)}*" for n in printed)])
        return f"## {self.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def _cell(self, row: str, column: str) -> str:
        if (row, column) not in self.found:
            return ""
        values = self.found[row, column]
        error = standard_error(values)
        return _tenths(float(np.mean(values))) + ("" if np.isnan(error) else f" ± {_tenths(error)}")


def _tenths(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else decimals(value)
