"""Language models among the annotators: invited as such, shown both orders, shown apart from people."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.cli.export import export
from tests.server.conftest import bearer

ITEMS = tuple(f"i{n}" for n in range(8))


def invite(played, *names, **more):
    given = [{"name": name, "kind": "llm", **more} for name in names]
    answer = played.client.post("/api/v1/annotators", json={"annotators": given}, headers=played.admin)
    assert answer.status_code == 200, answer.text
    played._ids |= {one["token"]: one["id"] for one in answer.json()["annotators"]}
    return [one["token"] for one in answer.json()["annotators"]]


def answers(played, strength, rng, n):
    """Outcomes of an annotator who sees `strength` of an item by its label, with logistic noise."""
    labels = {item.id: item.label for item in played.service.projection.catch_up().items.values()}

    def answer(asked):
        left, right = (strength[labels[asked[side]["id"]]] for side in ("left", "right"))
        return "left" if rng.random() < 1 / (1 + np.exp(right - left)) else "right"

    return [answer] * n


@pytest.fixture
def mixed(start):
    """Two people who prefer later items, and a model that agrees but for the best item."""
    played = start(items=ITEMS)
    rng = np.random.default_rng(3)
    human = {label: 0.7 * n for n, label in enumerate(ITEMS)}
    for name in played.join("ann", "bob"):
        played.play_directly(name, answers(played, human, rng, 28))
    (model,) = invite(played, "gpt-4", family="gpt")
    played.play_directly(model, answers(played, human, rng, 56))
    return played


def test_a_model_gets_what_it_needs_and_a_person_does_not(start):
    played = start(items=[cr_item("a", "*text* of a"), cr_item("b", "text of b")], settings={"question": "Which?"})
    (model,) = invite(played, "gpt-4")
    (ann,) = played.join("ann")
    shown = played.question(model)["model"]
    assert sorted(shown["texts"]) == ["*text* of a", "text of b"]
    assert (shown["question"], shown["ties"], shown["context"]) == ("Which?", True, "")
    assert "model" not in played.question(ann)


def cr_item(label, body):
    from crowdrank.storage import NewItem

    return NewItem(label=label, content={"body": body, "kind": "markdown"})


def test_each_pair_is_swapped_once(played):
    (model,) = invite(played, "gpt-4")
    seen, question = [], played.question(model)
    while "assignment" in question:
        asked = question["assignment"]
        seen.append((asked["left"]["id"], asked["right"]["id"]))
        question = played.vote(model, question, "left")["next"]
    assert len(seen) == len(set(seen)) == 12
    assert all(first == second[::-1] for first, second in zip(seen[::2], seen[1::2], strict=True))


@pytest.mark.parametrize("outcome", ["skip", "undo", "hidden"])
def test_a_pair_that_does_not_count_is_not_swapped(played, outcome):
    (model,) = invite(played, "gpt-4")
    question = played.question(model)
    first = {question["assignment"][side]["id"] for side in ("left", "right")}
    after = played.vote(model, question, "skip" if outcome == "skip" else "left")["next"]
    if outcome == "undo":
        played.client.post("/api/v1/undo", headers=bearer(model))
        after = played.question(model)
        assert {after["assignment"][side]["id"] for side in ("left", "right")} == first
        after = played.vote(model, after, "skip")["next"]
    if outcome == "hidden":
        played.client.patch(f"/api/v1/items/{min(first)}", json={"hidden": True}, headers=played.admin)
        after = played.question(model)
    assert {after["assignment"][side]["id"] for side in ("left", "right")} != first


def test_the_budget_of_the_study_is_for_people(start):
    played = start(settings={"budget": {"votes": 4}})
    (model,) = invite(played, "gpt-4", quota=6)
    assert played.play(model, ["left"] * 20)["reason"] == "quota"
    (ann,) = played.join("ann")
    finished = played.play(ann, ["left"] * 20)
    assert (finished["reason"], finished["progress"]["done"]) == ("budget", 4)


def test_a_name_cannot_change_sides(played):
    played.join("ann")
    given = {"annotators": [{"name": "ann", "kind": "llm"}]}
    answer = played.client.post("/api/v1/annotators", json=given, headers=played.admin)
    assert answer.status_code == 422
    assert "'ann' has joined as a person" in answer.json()["error"]["message"]


def test_the_board_is_that_of_the_people(mixed):
    board = mixed.client.get("/api/v1/board", headers=mixed.admin).json()
    assert board["model"] == "commensurate-bt"
    assert (board["votes"], board["annotators"]) == (112, 3)
    assert (board["votes_of_models"], board["models"], board["is_of_people"]) == (56, 1, True)
    assert sum(row["votes"] for row in board["items"]) == 2 * 56, "the votes of people on each item"
    assert "gpt-4's votes count for" in " ".join(board["notes"])
    page = mixed.enter(mixed.secret, "admin").get("/").text
    assert "votes of people" in page
    assert "The ranking is that of the people" in page


def test_without_votes_of_people_the_models_are_ranked_by(start):
    played = start(items=ITEMS)
    for model in invite(played, "gpt-4", "claude-3", "llama-3"):
        played.play_directly(model, ["left"] * 20)
    board = played.client.get("/api/v1/board", headers=played.admin).json()
    assert (board["model"], board["is_of_people"], board["votes_of_models"]) == ("jury", False, 60)


def test_the_annotators_page_tells_them_apart(mixed):
    admin = mixed.enter(mixed.secret, "admin")
    assert admin.get("/admin/annotators").text.count('<span class="badge">language model</span>') == 1
    assert admin.get("/admin/links").text.count('<span class="badge">language model</span>') == 1


def test_links_for_models_are_created_in_the_browser(played):
    admin = played.enter(played.secret, "admin")
    csrf = admin.get("/admin/links").text.split('name="csrf" value="')[1].split('"')[0]
    form = {"csrf": csrf, "names": "gpt-4\nclaude-3", "models": "yes"}
    rows = list(csv.DictReader(io.StringIO(admin.post("/admin/links.csv", data=form).text)))
    assert [row["annotator"] for row in rows] == ["gpt-4", "claude-3"]
    token = rows[0]["link"].rpartition("/")[2]
    assert "model" in played.question(token)


def test_an_export_ranks_like_the_board(start, tmp_path, monkeypatch, capsys, new_location):
    location = new_location()
    played = start(location=location, items=ITEMS)
    rng, human = np.random.default_rng(5), {label: 0.7 * n for n, label in enumerate(ITEMS)}
    for token in (*played.join("ann", "bob"), *invite(played, "gpt-4")):
        played.play_directly(token, answers(played, human, rng, 28))
    board = played.client.get("/api/v1/board", headers=played.admin).json()
    export(location, tmp_path / "votes.csv", people_out=tmp_path / "people.csv")
    assert f"--people {tmp_path / 'people.csv'} --model commensurate-bt" in " ".join(capsys.readouterr().out.split())
    ranking = cr.rank(tmp_path / "votes.csv", people=tmp_path / "people.csv")
    assert ranking.model == "commensurate-bt"
    assert [row["item"] for row in board["items"]] == list(ranking)
