"""The board: a function of the log, with honest uncertainty, and reproducible from the export."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from crowdrank.active.null_simulation import separated_pairs
from crowdrank.cli import app
from crowdrank.errors import muted_warnings
from crowdrank.models.selection import default_model
from crowdrank.server import annotator_summaries
from crowdrank.server.admin_actions import change_settings
from crowdrank.server.boards import build_board
from crowdrank.server.choice import choose_pair
from crowdrank.server.projection import Projection
from crowdrank.server.routes import board as board_routes
from crowdrank.storage import Collection, NewItem
from crowdrank.storage.judgments import iso_time
from tests.strategies import joint_crowd_bt

runner = CliRunner()


def by_name(asked):
    """The label that comes first in the alphabet wins."""
    return "left" if asked["left"]["label"] < asked["right"]["label"] else "right"


def voted(start, votes=60, **how):
    played = start(items=[f"i{n}" for n in range(8)], **how)
    for token in played.join(*(f"p{n}" for n in range(6))):
        played.play_directly(token, [by_name] * (votes // 6))
    return played


def test_a_board_without_votes_lists_every_item_without_scores(played):
    board = played.service.boards.build()
    assert [row.item for row in board.rows] == ["a", "b", "c", "d"]
    assert all(row.provisional and row.score is None for row in board.rows)
    assert (board.votes, board.reliability, board.decision) == (0, None, None)


def test_the_same_row_gives_the_same_board_in_every_process(start):
    played = voted(start, settings={"budget": {"decision": "top 3"}})
    first = played.service.boards.build()
    other = Projection(played.collection).catch_up()
    assert build_board(played.collection, other, first.seq) == first
    played.play_directly(played.join("late")[0], [by_name] * 5)
    assert played.service.boards.build(first.seq) == first
    assert played.service.boards.build() != first


def test_a_board_has_ranks_intervals_groups_and_explanations(start):
    played = voted(start)
    played.service.boards.latest(wait=300)
    answer = played.client.get("/api/v1/board", headers=played.admin).json()
    rows = answer["items"]
    assert [row["item"] for row in rows][:2] == ["i0", "i1"]
    assert all(row["low"] <= row["score"] <= row["high"] for row in rows)
    assert all(row["rank_low"] <= row["rank"] <= row["rank_high"] for row in rows)
    assert rows[0]["explanation"].startswith("i0 is above i1 with ")
    assert answer["reliability"]["random"] < answer["votes"] == 60
    assert [point["votes"] for point in answer["history"]][-1] == 60
    explanation = played.client.get("/api/v1/board/explanation?above=i7&below=i0", headers=played.admin).json()[
        "explanation"
    ]
    assert explanation.startswith("i7 is below i0 with ")


def test_a_board_is_private_unless_it_is_made_public(played):
    assert played.client.get("/api/v1/board").status_code == 403
    assert played.client.get("/", headers={"Accept": "text/html"}).status_code == 403
    change_settings(played.service, {"board_public": True}, "test")
    assert played.client.get("/api/v1/board").status_code == 200
    assert played.client.get("/", headers={"Accept": "text/html"}).status_code == 200


def test_a_decision_is_forecast_and_then_reached(start):
    played = voted(start, votes=18, settings={"budget": {"decision": "top 1"}})
    early = played.service.boards.build().decision
    assert not early.decided
    assert early.more_votes is None or early.more_votes > 0
    assert early.summary.startswith("Top 1: not decided yet")
    for token in played.join(*(f"q{n}" for n in range(12))):
        played.play_directly(token, [by_name] * 28)
    late = played.service.boards.build().decision
    assert late.decided
    assert late.summary == "Top 1: decided with 95 % confidence."


def test_a_study_can_stop_when_it_is_decided(start):
    played = voted(start, settings={"budget": {"decision": "top 1", "confidence": 0.6}})
    for token in played.join(*(f"q{n}" for n in range(8))):
        played.play_directly(token, [by_name] * 28)
    played.service.boards.latest_built = played.service.boards.build()
    assert played.service.boards.latest_built.decision.decided
    ann, late = played.join("ann", "late")
    assert "assignment" in played.question(ann)
    change_settings(played.service, {"budget": {"stop_when_decided": True}}, "test")
    assert played.question(late)["reason"] == "decided"


def test_hidden_items_and_excluded_annotators_leave_the_board(start):
    played = voted(start)
    played.client.patch(f"/api/v1/items/{played.ids[0]}", json={"hidden": True}, headers=played.admin)
    assert played.service.boards.build().rows[0].item == "i1"
    number = next(iter(played.service.projection.annotators))
    played.client.patch(f"/api/v1/annotators/{number}", json={"excluded": True}, headers=played.admin)
    assert played.service.boards.build().votes == 50


def test_a_board_uses_the_default_model_and_says_why(start):
    board = voted(start).service.boards.build()
    expected = default_model(board.judgments)
    assert (board.model, board.chosen_because) == (expected.name, expected.reason)
    assert board.as_dict()["chosen_because"] == expected.reason


def test_a_board_finds_no_order_in_random_votes(tmp_path):
    with Collection.open(tmp_path / "c.db", durable=False) as collection:
        projection = tossed(collection, items=60, annotators=12, votes=360, seed=0)
        board = build_board(collection, projection, projection.board_seq)
    told = separated_pairs(board.ranking).by_scores
    with muted_warnings():
        joint = joint_crowd_bt(ties="half").fit(board.judgments)
    blind = separated_pairs(joint).by_scores
    assert told <= 0.1 < blind


def test_a_pending_board_does_not_claim_that_there_are_no_votes(start, monkeypatch):
    played = voted(start, settings={"board_public": True})
    monkeypatch.setattr(played.service.boards, "_start", lambda: None)
    monkeypatch.setattr("crowdrank.server.routes.BOARD_WAIT", 0.0)
    page = played.client.get("/", headers={"Accept": "text/html"}).text
    assert "The first board is being computed" in page
    assert "No votes yet" not in page


def test_the_background_thread_builds_a_new_board_on_request(start):
    played = voted(start)
    board = played.service.boards.latest(wait=300)
    assert board.seq == played.service.projection.board_seq
    assert played.service.boards.latest() is board


@pytest.mark.parametrize(
    ("kind", "ending"),
    [("sqlite", ".parquet"), ("sqlite", ".csv"), ("sqlite", ".jsonl"), ("postgresql", ".parquet")],
)
def test_ranking_the_export_reproduces_the_board(start, new_location, tmp_path, kind, ending):
    location = new_location(kind)
    played = voted(start, location=location)
    played.play_directly(played.join("torn")[0], ["tie", "left", "tie", "skip", "tie"])
    number = next(iter(played.service.projection.annotators))
    played.client.post("/api/v1/void", json={"annotator": number}, headers=played.admin)
    board = played.service.boards.build()
    out = tmp_path / f"votes{ending}"
    said = runner.invoke(app, ["export", location, "--out", str(out)])
    assert said.exit_code == 0, said.output
    command = shlex.split(said.output.partition("Rank them like the leaderboard:")[2])
    assert command[:5] == ["crowdrank", "rank", str(out), "--model", board.model]
    ranked = runner.invoke(app, [*command[1:], "--json"])
    assert ranked.exit_code == 0, ranked.output
    found = json.loads(ranked.stdout)
    rows = found["ranking"] if "ranking" in found else found["items"]
    assert sum(row["comparisons"] for row in rows) == 2 * board.votes
    assert [row["item"] for row in rows] == [row.item for row in board.rows]
    np.testing.assert_allclose([row["score"] for row in rows], [row.score for row in board.rows], atol=1e-5)


def test_a_board_has_a_history_with_times_and_ranks(start, clock):
    played = start(clock=clock, items=tuple("abcd"))

    def better(asked):
        clock.pass_seconds(60)
        return "left" if asked["left"]["label"] < asked["right"]["label"] else "right"

    for name in ("ann", "bob", "cleo"):
        (token,) = played.join(name)
        played.play(token, [better] * 6)
    board = played.service.boards.build()
    assert [point["votes"] for point in board.history][-1] == board.votes == 18
    times = [point["at"] for point in board.history]
    assert times == sorted(times)
    assert times[-1] == iso_time(clock.now)
    leaders = {one["id"]: one["rank"] for one in board.history[-1]["ranks"]}
    assert leaders == {row.id: row.rank for row in board.rows}


def test_the_overview_plots_the_votes_that_count_and_the_time_per_answer(start, clock):
    played = start(clock=clock)
    assert annotator_summaries.dashboard(played.service.projection) == {"votes": [], "seconds": [0] * 10}
    ann, bob = played.join("ann", "bob")

    def later(_):
        clock.pass_seconds(60)
        return "left"

    played.play(ann, [later] * 4)
    played.play(bob, [later, "skip"])
    plots = annotator_summaries.dashboard(played.service.projection.catch_up())
    assert [count for _, count in plots["votes"]] == [1, 2, 3, 4, 5]
    assert plots["votes"][-1][0] == clock.now / 1e6
    assert sum(plots["seconds"]) == 6, "skips take time as well"
    admin = played.enter(played.secret, "admin")
    assert "Votes over time: now 5." in admin.get("/admin").text


def test_a_board_is_shown_by_category(start):
    items = [NewItem(label=name, content={"group": group}) for name, group in (("a", "x"), ("b", "y"), ("c", "x"))]
    played = start(items=items, settings={"board_public": True})
    everything, some = (played.client.get(path).text for path in ("/", "/?category=x"))
    assert all(f'<th scope="row" dir="auto">{name} ' in everything for name in "abc")
    assert 'auto">b ' not in some
    assert 'auto">a ' in some
    assert 'auto">c ' in some
    assert played.client.get("/?category=nothing").text == everything
    assert played.client.get("/api/v1/board").json()["categories"] == ["x", "y"]


def test_a_read_only_link_shows_a_private_board_until_it_is_removed(start):
    played = start()
    admin = played.enter(played.secret, "admin")

    def press(wanted):
        csrf = re.search(r'name="csrf" value="([0-9a-f]{32})"', admin.get("/admin/links").text)[1]
        assert admin.post("/admin/links/board", data={"csrf": csrf, "open": wanted}).status_code == 200
        return re.search(r"/board/([\w-]{22})<", admin.get("/admin/links").text)

    first = press("yes")[1]
    reader = played.client
    assert reader.get("/").status_code == 403
    assert "Which of the two is better?" in reader.get(f"/board/{first}").text
    assert reader.get("/api/v1/board", params={"link": first}).json()["votes"] == 0
    assert reader.get("/admin/annotators").status_code == 401
    second = press("yes")[1]
    assert second != first
    for wrong in (first, "x" * 22, "ä"):
        assert reader.get(f"/board/{wrong}").status_code == 404
        assert reader.get("/api/v1/board", params={"link": wrong}).status_code == 404
    assert reader.get(f"/board/{second}").status_code == 200
    assert press("no") is None
    assert reader.get(f"/board/{second}").status_code == 404


def test_a_public_board_is_rendered_once(start, monkeypatch):
    played = start(settings={"board_public": True})
    rendered = []
    original = board_routes._render
    monkeypatch.setattr(board_routes, "_render", lambda *given: rendered.append(given[3]) or original(*given))
    queries = ("", "", "?category=none", "?notice=saved", "?notice=x")
    pages = {played.client.get(f"/{query}").text for query in queries}
    assert len(pages) == len(rendered) == 1
    change_settings(played.service, {"title": "Another title"}, "test")
    assert "Another title" in played.client.get("/").text
    assert len(rendered) == 2


def test_ties_draw_items_together(start):
    """Two annotators say that a is better than b; the others skip the pair, or call it a tie."""
    apart = []
    for answer in ("skip", "tie"):
        played = start(items=["a", "b", "c"])
        for number, token in enumerate(played.join(*(f"p{n}" for n in range(8)))):
            undecided = answer if number > 1 else None
            played.play_directly(token, [lambda asked, word=undecided: _answer(asked, word)] * 3)
        board = played.service.boards.build()
        score = {row.item: row.score for row in board.rows}
        apart.append(abs(score["a"] - score["b"]))
        assert board.votes == (18 if answer == "skip" else 24)
        assert board.notes == () or "ties" not in " ".join(board.notes)
    assert apart[1] < apart[0]


def _answer(asked, about_a_and_b):
    return about_a_and_b if about_a_and_b and _is_of(asked, "ab") else by_name(asked)


def _is_of(asked, labels):
    return {asked["left"]["label"], asked["right"]["label"]} == set(labels)


def test_a_board_of_ties_has_one_group(start):
    played = start(items=["a", "b", "c"])
    for token in played.join("p", "q", "r"):
        played.play_directly(token, ["tie"] * 3)
    board = played.service.boards.build()
    assert board.votes == 9
    assert {row.group for row in board.rows} == {1}
    assert [row.score for row in board.rows] == pytest.approx([0, 0, 0], abs=0.25)


def test_the_page_names_the_model_and_why_it_was_chosen(start):
    played = voted(start, settings={"board_public": True})
    played.service.boards.latest_built = board = played.service.boards.build()
    assert board.reliability["model"] == board.model
    page = played.client.get("/", headers={"Accept": "text/html"}).text
    assert f"Ranked by {board.model}. {board.chosen_because}" in page


def test_a_reversed_annotator_is_flagged_with_a_reason(start):
    played = start(items=[f"i{n}" for n in range(12)])
    *good, bad = played.join(*(f"p{n}" for n in range(7)))
    for token in good:
        played.play_directly(token, [by_name] * 25)
    played.play_directly(bad, [lambda asked: "right" if by_name(asked) == "left" else "left"] * 25)
    told = annotator_summaries.summarise(played.service.projection, played.service.boards.build())
    verdicts = {one["name"]: one["verdict"] for one in told}
    assert verdicts["p6"] == "reversed"
    assert set(verdicts.values()) == {"reliable", "reversed"}
    assert told[6]["quality"] < 0.5 < told[0]["quality"]
    assert told[6]["reason"]
    (row,) = [one for one in told if one["name"] == "p0"]
    assert (row["votes"], row["median_seconds"], sum(row["histogram"])) == (25, 1.2, 25)
    moved = annotator_summaries.ranks_without(played.service.boards.build(), "p6")
    assert {one["item"] for one in moved} == {f"i{n}" for n in range(12)}


def test_a_one_sided_annotator_is_detected(start):
    played = start(items=[f"i{n}" for n in range(12)])
    tokens = played.join(*(f"p{n}" for n in range(5)))
    for token in tokens[:4]:
        played.play_directly(token, [by_name] * 30)
    played.play_directly(tokens[4], ["left"] * 30)
    told = annotator_summaries.summarise(played.service.projection, played.service.boards.build())[4]
    assert told["left_share"] == 1.0
    assert told["left_p"] < 1e-6
    assert told["verdict"] == "one-sided"


def test_random_votes_do_not_become_an_order(tmp_path):
    """At most 5 % of the pairs are separated at 95 %, and the reliability is not clearly positive."""
    apart, reliable = [], []
    for trial in range(2):
        with Collection.open(tmp_path / f"{trial}.db", durable=False) as collection:
            projection = tossed(collection, items=30, annotators=12, votes=240, seed=trial)
            board = build_board(collection, projection, projection.board_seq)
        apart.append(separated_pairs(board.ranking).by_scores)
        told = board.reliability["of_all"]
        reliable.append(told is not None and not board.reliability["too_few"] and told["low"] > 0.3)
    assert np.mean(apart) <= 0.05
    assert not any(reliable)


def tossed(collection, items, annotators, votes, seed):
    rng = np.random.default_rng(seed)
    collection.items.add([f"i{n}" for n in range(items)], actor="test")
    ids = collection.annotators.add([f"p{n}" for n in range(annotators)], actor="test")
    projection = Projection(collection).catch_up()
    for n in range(votes):
        who = ids[n % annotators]
        chosen = choose_pair(projection, projection.annotators[who], [], rng)
        asked = collection.assignments.create(
            who, chosen.left, chosen.right, policy=chosen.policy, probability=chosen.probability
        )
        collection.votes.record(asked.token, "left" if rng.random() < 0.5 else "right", annotator=who)
        projection.catch_up()
    return projection
