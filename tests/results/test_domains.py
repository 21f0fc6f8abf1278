"""Domains of a ranking."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from crowdrank import BradleyTerry, Comparisons, Ranking
from crowdrank.errors import DataError
from crowdrank.results import Domains

Z = norm.ppf(0.95)


def labels(*names):
    return np.array(names, dtype=object)


def domains_of(expertise, spread=0.1, n_judgments=None, membership=((0.9, 0.1), (0.2, 0.8), (1.0, 0.0)), names=None):
    """Two domains of three queries; τ is known to ± `spread`, with intervals of 90 %."""
    expertise = np.array(expertise, np.float64).reshape(-1, 2)
    reach = Z * np.broadcast_to(spread, expertise.shape)
    difficulty = np.array([0.5, 2.0, 0.5])
    return Domains(
        annotators=labels(*(names or "abcdefgh"[: len(expertise)])),
        queries=labels("jazz", "rock", "folk"),
        expertise=(expertise, expertise - reach, expertise + reach),
        membership=np.array(membership),
        difficulty=(difficulty, difficulty / 2, difficulty * 2),
        n_judgments=np.full(expertise.shape, 9) if n_judgments is None else np.array(n_judgments),
    )


def bits(chance):
    return -sum(p * np.log2(p) for p in (chance, 1 - chance) if p > 0)


def expected(function, middle, spread):
    return quad(lambda z: function(norm.cdf((middle + spread * z) / np.sqrt(2))) * norm.pdf(z), -9, 9, limit=200)[0]


def test_quality_is_the_probability_to_choose_the_better_of_two_items_one_unit_apart():
    rng = np.random.default_rng(1)
    tau = 1.3
    # each item is said with an error of its own, of standard deviation 1/τ (Wang et al. 2016, §III)
    better, worse = 1.0 + rng.normal(size=200_000) / tau, rng.normal(size=200_000) / tau
    quality = domains_of([[tau, -tau]]).quality[0]
    assert quality[0, 0] == pytest.approx(np.mean(better > worse), abs=0.005)
    assert quality[0].sum() == pytest.approx(1.0)


def test_quality_keeps_the_order_of_its_interval():
    estimate, low, high = domains_of([[1.0, -1.0]], spread=0.5).quality
    assert np.all(low < estimate)
    assert np.all(estimate < high)


def test_domains_are_counted_and_numbered_from_one():
    found = domains_of([[1.0, 1.0]])
    assert len(found) == 2
    assert found.domain.tolist() == [1, 2, 1]
    assert found.sizes.tolist() == [2, 1]
    assert repr(found) == "<Domains: 2, of 3 queries and 1 annotators>"


@pytest.mark.parametrize(
    ("expertise", "spread", "judged", "word"),
    [
        (2.0, 0.1, 9, "expert"),
        (1.0, 0.1, 9, "average"),
        (0.2, 0.1, 9, "random"),
        (2.0, 2.0, 9, "random"),
        (-2.0, 0.1, 9, "reversed"),
        (-2.0, 2.0, 9, "random"),
        (2.0, 0.1, 0, "unknown"),
        (-2.0, 0.1, 0, "unknown"),
    ],
)
def test_a_verdict_rests_on_quality_and_its_interval(expertise, spread, judged, word):
    found = domains_of([[expertise, 1.0]], spread=[spread, 0.1], n_judgments=[[judged, 9]])
    assert found.verdict.tolist() == [[word, "average"]]


def test_queries_come_hardest_first_and_equals_by_name():
    frame = domains_of([[1.0, 1.0]]).queries_frame()
    assert frame.columns == ["query", "difficulty", "difficulty_low", "difficulty_high", "domain", "probability"]
    assert frame.select("query", "difficulty", "domain", "probability").rows() == [
        ("rock", 2.0, 2, 0.8),
        ("folk", 0.5, 1, 1.0),
        ("jazz", 0.5, 1, 0.9),
    ]


def test_annotators_come_domain_by_domain_best_first():
    frame = domains_of([[0.0, 2.0], [1.0, -2.0]], n_judgments=[[4, 5], [6, 7]]).annotators_frame()
    assert frame.columns == [
        "annotator",
        "domain",
        "expertise",
        "expertise_low",
        "expertise_high",
        "quality",
        "verdict",
        "judgments",
    ]
    assert frame.select("domain", "annotator", "expertise", "verdict", "judgments").rows() == [
        (1, "b", 1.0, "average", 6),
        (1, "a", 0.0, "random", 4),
        (2, "a", 2.0, "expert", 5),
        (2, "b", -2.0, "reversed", 7),
    ]


def test_the_table_is_empty_where_nothing_was_judged():
    table = domains_of([[0.0, 2.0], [1.0, -2.0]], n_judgments=[[4, 0], [6, 7]]).table()
    assert table.columns == ["annotator", "domain_1", "domain_2"]
    assert table["domain_1"].to_list() == pytest.approx([0.5, norm.cdf(1 / np.sqrt(2))])
    assert table["domain_2"].is_null().to_list() == [True, False]


@pytest.mark.parametrize(("middle", "spread"), [(0.0, 1.0), (1.5, 0.3), (-2.0, 2.0), (1.0, 5.0)])
def test_information_is_the_integral_over_expertise(middle, spread):
    row = domains_of([[middle, 0.0]], spread=[spread, 1.0]).ask().filter(domain=1).row(0, named=True)
    probability = expected(lambda p: p, middle, spread)
    assert row["item_information"] == pytest.approx(1 - bits(probability), abs=1e-4)
    assert row["annotator_information"] == pytest.approx(bits(probability) - expected(bits, middle, spread), abs=1e-4)


def test_known_annotators_inform_on_items_and_unknown_ones_on_themselves():
    asked = domains_of([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0]], spread=[[0.0, 1], [3.0, 1], [0.0, 1]]).ask()
    first = asked.filter(domain=1)
    assert first["annotator"].to_list() == ["a", "b", "c"]
    sums = (first["item_information"] + first["annotator_information"]).to_list()
    assert sums == sorted(sums, reverse=True)
    assert (first["item_information"].arg_max(), first["annotator_information"].arg_max()) == (0, 1)
    assert first.select("item_information", "annotator_information").row(2) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_reversed_experts_are_as_informative_as_experts():
    asked = domains_of([[2.0, -2.0], [-2.0, 2.0]]).ask()
    assert asked["annotator"].to_list() == ["a", "b", "a", "b"]
    assert asked["item_information"].to_list() == pytest.approx([asked["item_information"][0]] * 4)


def test_nobody_is_asked_about_a_domain_without_queries():
    asked = domains_of([[1.0, 1.0]], membership=[[0.9, 0.1]] * 3).ask()
    assert asked["domain"].to_list() == [1]


def test_without_annotators_the_frames_are_empty_but_whole():
    found = domains_of(np.zeros((0, 2)))
    for frame in (found.annotators_frame(), found.table(), found.ask()):
        assert frame.height == 0
        assert frame.schema["annotator"] == pl.String
    assert found.queries_frame().height == 3


def ranking():
    return BradleyTerry().fit(Comparisons.of(left=["a", "b"], right=["b", "a"], winner=["a", "a"]))


def test_a_ranking_without_domains_says_so():
    with pytest.raises(DataError, match="bradley-terry has no estimates of domains"):
        _ = ranking().domains


def test_domains_are_computed_once_and_only_when_used():
    calls = []
    found = ranking().with_parts(domains=lambda: calls.append(1) or domains_of([[1.0, 1.0]]))
    assert calls == []
    assert found.domains is found.domains
    assert calls == [1]


@pytest.mark.parametrize("people", [2, 0])
def test_domains_are_saved_and_read_again(tmp_path, people):
    before = domains_of(np.arange(2 * people) / 3, spread=0.7)
    ranking().with_parts(domains=lambda: before).save(tmp_path / "r.json")
    after = Ranking.load(tmp_path / "r.json").domains
    assert len(after) == 2
    for name in ("queries_frame", "annotators_frame", "table", "ask"):
        assert getattr(after, name)().equals(getattr(before, name)())
    np.testing.assert_array_equal(after.membership, before.membership)
    assert after.level == before.level


def test_files_from_before_there_were_domains_still_load(tmp_path):
    ranking().save(tmp_path / "r.json")
    assert "domains" not in json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert not Ranking.load(tmp_path / "r.json").has_domains


def test_domains_can_be_written_as_json():
    content = json.loads(json.dumps(domains_of([[1.0, 2.0]]).as_dict(), allow_nan=False))
    assert (content["count"], content["sizes"], content["level"]) == (2, [2, 1], 0.9)
    assert [len(content[name]) for name in ("queries", "annotators", "ask")] == [3, 2, 2]
