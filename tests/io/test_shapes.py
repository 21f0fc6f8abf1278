"""Shapes of tables beyond left, right, winner: scores, ranks, lists in a row, annotators' columns, grids, codes."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import FormatError
from crowdrank.io import read, read_with_report


def said(votes: Comparisons) -> str:
    """Comparisons in words."""
    signs = {1: ">", 0: "=", -1: "<"}
    labels = votes.items.labels
    rows = zip(votes.left, votes.outcome, votes.right, strict=True)
    return " ".join(f"{labels[a]}{signs[int(o)]}{labels[b]}" for a, o, b in rows)


def load(text: str, tmp_path: Path, name: str = "votes.csv", **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_with_report(path, **options)


@pytest.mark.parametrize(
    "header",
    [
        "home_team,away_team,home_score,away_score",
        "Home,Away,HomeGoals,AwayGoals",
        "HomeTeam,AwayTeam,FTHG,FTAG",
        "player1,player2,score1,score2",
        "model_a,model_b,score_a,score_b",
        "white,black,white_score,black_score",
        "team1,team2,team1_score,team2_score",
    ],
)
def test_the_larger_score_wins(tmp_path: Path, header: str) -> None:
    found, report = load(f"{header}\nx,y,3,1\ny,z,0,0\nx,z,2,10\nz,y,NA,\n", tmp_path)
    assert said(found) == "x>y y=z x<z"
    assert (report.ties, report.skips, report.malformed_count) == (1, 1, 0)
    assert any("larger" in note for note in report.notes)


def test_a_score_that_is_not_a_number_is_reported(tmp_path: Path) -> None:
    _, report = load("home,away,home_score,away_score\nx,y,3,1\ny,x,many,0\nx,y,1,1\n", tmp_path)
    assert [(m.line, m.column) for m in report.malformed] == [(3, "home_score")]


def test_the_smaller_rank_wins_and_languages_are_the_query(tmp_path: Path) -> None:
    text = "srclang,trglang,judgeID,system1Id,system1rank,system2Id,system2rank\n"
    found, report = load(text + "de,en,j1,x,1,y,2\nde,en,j2,x,2,y,2\nfr,en,j1,z,4,x,3\nfr,en,j1,z,-1,x,3\n", tmp_path)
    assert found.outcome.tolist() == [1, 0, -1]
    assert found.items.queries.tolist() == ["de+en", "fr+en"]
    assert (report.columns["query"], report.skips) == ("srclang+trglang", 1)


def test_k_systems_and_k_ranks_in_a_row_are_a_list(tmp_path: Path) -> None:
    ids, ranks = (",".join(f"system{n}{end}" for n in range(1, 5)) for end in ("Id", "rank"))
    found, report = load(f"judgeId,{ids},{ranks}\nj,a,b,c,d,2,1,2,3\nj,a,b,c,d,1,-1,,2\n", tmp_path)
    assert isinstance(found, Rankings)
    assert [len(places) for places in (found.place[:4], found.place[4:])] == [4, 2]
    frame = found.to_polars()
    assert frame["item"].to_list()[0] == "b"
    assert frame.filter(pl.col("rank") == 2)["item"].to_list()[:2] == ["a", "c"]
    assert report.rows_read == report.kept == 2


def test_annotators_in_columns_give_an_answer_each(tmp_path: Path) -> None:
    text = '[{"response1": "x", "response2": "y", "annotator1": 1, "annotator2": 2, "annotator3": 0},'
    text += ' {"response1": "x", "response2": "z", "annotator1": 2, "annotator2": null, "annotator3": 2}]'
    found, report = load(text, tmp_path, "votes.json")
    assert said(found) == "x>y x<y x=y x<z x<z"
    assert found.annotators.tolist() == ["annotator1", "annotator2", "annotator3"]
    assert any("0 tie, 1 left, 2 right" in note for note in report.notes)


def test_a_pattern_names_the_columns_of_annotators(tmp_path: Path) -> None:
    text = "left,right,q ann,q bob\nx,y,x,y\ny,z,y,tie\n"
    found, _ = load(text, tmp_path, columns={"winner": "q *"})
    assert said(found) == "x>y x<y y>z y=z"
    with pytest.raises(FormatError, match="no column fits"):
        load(text, tmp_path, columns={"winner": "p *"})


def test_a_grid_of_grades_has_voters_in_rows(tmp_path: Path) -> None:
    text = "Timestamp,Student,Essay one,Essay two,Essay three\n1/2,ann,5,3,4\n1/2,bob,4,,2\n1/2,cy,5,5,1\n"
    found, report = load(text, tmp_path)
    assert isinstance(found, Ratings)
    assert len(found) == 8
    assert found.annotators.tolist() == ["ann", "bob", "cy"]
    assert "larger is better" in " ".join(report.notes)


def test_a_grid_of_ranks_is_lists(tmp_path: Path) -> None:
    found, report = load("voter,tea,milk,juice\nann,1,2,3\nbob,2,1,3\ncy,3,1,2\n", tmp_path)
    assert isinstance(found, Rankings)
    assert found.to_polars().filter(pl.col("rank") == 1)["item"].to_list() == ["tea", "milk", "milk"]
    assert "1 is the best" in " ".join(report.notes)


def test_a_form_names_the_items_in_brackets(tmp_path: Path) -> None:
    text = "Timestamp,How good? [Tea],How good? [Milk],Remarks\n1/2,5 - great,2,\n1/3,4,1 - bad,hm\n"
    found, _ = load(text, tmp_path)
    assert isinstance(found, Ratings)
    assert sorted(found.items.labels) == ["Milk", "Tea"]
    assert sorted(found.grade.tolist()) == [1, 2, 4, 5]
    ranked, _ = load(text, tmp_path, kind="rankings")
    assert ranked.to_polars().filter(pl.col("rank") == 1)["item"].to_list() == ["Milk", "Milk"]


@pytest.mark.parametrize("pattern", ["c*", "c1,c2,c3"])
def test_a_grid_can_be_named(tmp_path: Path, pattern: str) -> None:
    text = "x,c1,c2,c3\n7,500,300,400\n8,400,,200\n"
    found, _ = load(text, tmp_path, columns={"grade": pattern})
    assert (len(found), len(found.annotators)) == (5, 2)
    ranked, _ = load(text, tmp_path, columns={"rank": pattern})
    assert ranked.to_polars().filter(pl.col("rank") == 1)["item"].to_list() == ["c2", "c3"]


def test_annotators_may_be_abbreviated(tmp_path: Path) -> None:
    found, _ = load("model_a,model_b,ann_1,ann_2\nx,y,A,T\ny,z,B,A\n", tmp_path)
    assert said(found) == "x>y x=y y<z y>z"


def test_the_verdict_of_a_language_model_follows_its_reasons() -> None:
    words = ["[[B]] has flaws, but A errs.\nFinal verdict: [[A]].", "so [[B]]", "[[C]]"]
    found = read({"left": ["x"] * 3, "right": ["y"] * 3, "judgment": words})
    assert found.outcome.tolist() == [1, -1, 0]


def test_numbers_that_are_no_grid_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no column for"):
        load("height,width,depth\n170,33,0.5\n180,44,0.25\n", tmp_path)


def test_items_are_joined_from_several_columns(tmp_path: Path) -> None:
    text = "type1,level1,type2,level2,selected\njpg,1,jpg,2,1\nref,,jpg,1,1\npng,2,jpg,2,2\n"
    columns = {"left": "type1+level1", "right": "Type2 + level2"}
    found, report = load(text, tmp_path, columns=columns)
    assert said(found) == "jpg+1>jpg+2 ref>jpg+1 png+2<jpg+2"
    assert report.columns["right"] == "type2+level2"
    with pytest.raises(KeyError, match="type3"):
        load(text, tmp_path, columns={"left": "type1+type3"})


@pytest.mark.parametrize(
    ("cells", "outcomes"),
    [
        ("A>B A>>B B>A B>>A A=B A<B", "> > < < = <"),
        ("[[A]] [[B]] [[C]] [[A>B]]", "> < = >"),
        ("1-0 0-1 1/2-1/2 ½-½ 3:1 2–2", "> < = = > ="),
        ("1 0 .5 0.5", "> < = ="),
        ("1 0 -1", "> = <"),
        ("0 1 2", "= > <"),
        ("1 2 1.5", "> < ="),
        ("both_bad tie A", "= = >"),
        ("win loss draw", "> < ="),
        (
            "A is much better|B is slightly better|About the same|Response B is better.|the left one is preferred",
            "> < = < >",
        ),
    ],
)
def test_verdicts_scores_and_codes_say_who_won(cells: str, outcomes: str) -> None:
    words = cells.split("|") if "|" in cells else cells.split()
    found = read({"left": ["x"] * len(words), "right": ["y"] * len(words), "winner": words})
    signs = {1: ">", 0: "=", -1: "<"}
    assert " ".join(signs[int(o)] for o in found.outcome) == outcomes


@pytest.mark.parametrize(
    ("sides", "words", "outcomes"),
    [
        (("home_team", "away_team"), "H D A X home away", [1, 0, -1, 0, 1, -1]),
        (("white", "black"), "w b d White black", [1, -1, 0, 1, -1]),
        (("Team", "Opponent"), "W L D T", [1, -1, 0, 0]),
        (("player1", "player2"), "player1 player2 1 2", [1, -1, 1, -1]),
    ],
)
def test_words_for_a_side_follow_the_columns(sides: tuple[str, str], words: str, outcomes: list[int]) -> None:
    cells = words.split()
    source = {sides[0]: ["p"] * len(cells), sides[1]: ["q"] * len(cells), "result": cells}
    assert read(source).outcome.tolist() == outcomes


def test_codes_are_shown_and_can_be_given_another_meaning() -> None:
    rows = {"left": ["x", "x", "y"], "right": ["y", "z", "z"], "label": ["0", "1", "2"]}
    found, report = read_with_report(rows)
    assert said(found) == "x=y x>z y<z"
    assert any("0 tie, 1 left, 2 right" in note for note in report.notes)
    found, report = read_with_report(rows, columns={"winner": "label:0=left,1=right,2=tie"})
    assert said(found) == "x>y x<z y=z"
    assert not report.notes
    with pytest.raises(FormatError, match="a code can mean left, right"):
        read(rows, columns={"winner": "label:0=first"})


def test_numbers_that_do_not_say_who_won_are_refused_with_the_remedy() -> None:
    teams = {"home_team": ["x", "y", "z", "x"], "away_team": ["y", "z", "x", "z"]}
    scores = {"home_score": [0, 1, 2, 3], "away_score": [1, 1, 0, 5]}
    with pytest.raises(FormatError, match="holds numbers") as error:
        read(teams | scores, columns={"winner": "home_score"})
    assert error.value.value["left_score"] == "home_score"
    assert said(read(teams | scores, columns=error.value.value)) == "x<y y=z z>x x<z"
    with pytest.raises(FormatError, match="holds numbers") as error:
        read(teams | {"label": [0, 1, 1, 0]})
    assert len(read(teams | {"label": [0, 1, 1, 0]}, columns=error.value.value)) == 4


def test_a_code_is_not_read_where_an_item_has_that_name() -> None:
    found, report = read_with_report({"left": list("1234"), "right": list("2341"), "winner": list("1342")})
    assert (len(found), report.unknown_items) == (3, 1)


def test_names_are_preferred_to_ids_and_it_is_said() -> None:
    rows = {
        "left_id": ["1", "2"],
        "right_id": ["2", "3"],
        "left_name": ["x", "y"],
        "right_name": ["y", "z"],
        "winner": ["x", "z"],
    }
    found, report = read_with_report(rows)
    assert said(found) == "x>y y<z"
    assert any("'left_name' and 'right_name' were read as left and right" in note for note in report.notes)
    by_id, report = read_with_report(rows | {"winner": ["1", "tie"]})
    assert said(by_id) == "x>y y=z"
    assert any("'winner' was matched with 'left_id' and 'right_id'" in note for note in report.notes)


def test_ids_stay_where_their_names_are_not_unique() -> None:
    rows = {"left_id": ["1", "2"], "right_id": ["2", "3"], "left_name": ["x", "y"], "right_name": ["y", "y"]}
    assert said(read(rows | {"winner": ["1", "3"]})) == "1>2 2<3"


def test_several_answers_in_a_cell_are_read_when_they_are_named(tmp_path: Path) -> None:
    text = "7;1;2;-1,1,0\n7;2;3;1,1,1\n8;1;3;0,-1,-1\n"
    columns = {"query": "1", "left": "2", "right": "3", "winner": "4:1=left,-1=right,0=tie"}
    found, _ = load(text, tmp_path, "votes.txt", columns=columns, header=False)
    assert found.outcome.tolist() == [-1, 1, 0, 1, 1, 1, 0, -1, -1]


def listed(found: Rankings) -> list[str]:
    """Lists in words, in the order of the file."""
    texts = []
    for start, end in zip(found.offsets, found.offsets[1:], strict=False):
        places: dict[int, list[str]] = {}
        for code, place in zip(found.item[start:end], found.place[start:end], strict=True):
            places.setdefault(int(place), []).append(str(found.items.labels[code]))
        texts.append(">".join("=".join(sorted(places[n])) for n in sorted(places)))
    return texts


@pytest.mark.parametrize(
    "header", ["1st Choice,2nd Choice,3rd Choice", "rank1,rank2,rank3", "first pick,second pick,third pick"]
)
def test_columns_that_are_places_are_a_list(tmp_path: Path, header: str) -> None:
    found, _ = load(f"{header}\ntea,milk,juice\nmilk,tea,\n", tmp_path)
    assert isinstance(found, Rankings)
    assert listed(found) == ["tea>milk>juice", "milk>tea"]


def test_the_best_and_the_worst_of_a_few_items_are_a_list(tmp_path: Path) -> None:
    text = "worker,item1,item2,item3,item4,BestItem,WorstItem\nann,x,y,z,u,y,x\nbob,x,y,z,u,u,y\n"
    found, _ = load(text, tmp_path)
    assert isinstance(found, Rankings)
    assert listed(found) == ["y>u=z>x", "u>x=z>y"]


@pytest.mark.parametrize("name", ["choice", "winner", "Chosen"])
def test_choices_of_one_among_several_are_lists(tmp_path: Path, name: str) -> None:
    found, report = load(f"worker,item1,item2,item3,{name}\nann,x,y,z,y\nann,x,z,u,u\nbob,z,x,y,\n", tmp_path)
    assert isinstance(found, Rankings)
    assert listed(found) == ["y>x=z", "u>x=z"]
    assert "Each row is a choice" in " ".join(report.notes)


@pytest.mark.parametrize(
    "text",
    [
        "worker,option_a,option_b,option_c,choice\nann,x,y,z,B\nbob,z,x,y,a\n",
        "worker,item1,item2,item3,choice\nann,x,y,z,2\nbob,z,x,y,1\n",
        "worker,items,choice\nann,x; y; z,y\nbob,z; x; y,z\n",
    ],
)
def test_the_chosen_one_may_be_a_letter_or_number_and_the_items_one_column(tmp_path: Path, text: str) -> None:
    found, _ = load(text, tmp_path)
    assert isinstance(found, Rankings)
    assert listed(found) == ["y>x=z", "z>x=y"]


def test_best_and_worst_of_a_column_of_items(tmp_path: Path) -> None:
    found, _ = load("worker,items,best,worst\nann,x|y|z|u,y,x\nbob,x|y|z|u,u,y\n", tmp_path)
    assert isinstance(found, Rankings)
    assert listed(found) == ["y>u=z>x", "u>x=z>y"]


def test_two_items_and_a_third_column_stay_comparisons(tmp_path: Path) -> None:
    found, _ = load("worker,item1,item2,item3,winner\nann,x,y,p,x\nbob,y,z,q,z\n", tmp_path, kind="comparisons")
    assert said(found) == "x>y y<z"


def test_wins_of_each_side_are_weights(tmp_path: Path) -> None:
    found, report = load("player1,player2,win1,win2\nx,y,3,0\ny,z,2,1\n", tmp_path)
    assert said(found) == "x>y y>z y<z"
    assert found.weight.tolist() == [3, 2, 1]
    assert any("how often" in note for note in report.notes)


def test_raters_in_columns_grade_the_item_of_a_row(tmp_path: Path) -> None:
    found, _ = load("video,sub1,sub2,sub3\na,5,4,\nb,3,3,2\n", tmp_path)
    assert isinstance(found, Ratings)
    assert (len(found), list(found.annotators)) == (5, ["sub1", "sub2", "sub3"])


def test_words_of_a_scale_are_grades_and_it_is_said(tmp_path: Path) -> None:
    found, report = load("who,item,rating\nann,x,Good\nann,y,poor\nbob,x,Excellent\nbob,y,fair\n", tmp_path)
    assert isinstance(found, Ratings)
    assert list(found.grade) == [3, 1, 4, 2]
    assert any("poor 1, fair 2, Good 3, Excellent 4" in note for note in report.notes)


def test_words_of_no_scale_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="finite number"):
        load("who,item,rating\nann,x,purple\nann,y,poor\n", tmp_path)


def test_a_title_above_the_header_is_skipped_and_it_is_said(tmp_path: Path) -> None:
    rows = "x;y;x\ny;z;z\nz;x;z\nx;z;x\n"
    found, report = load(f"Votes of May\nby hand\n\nleft;right;winner\n{rows}", tmp_path)
    assert said(found) == "x>y y<z z>x x>z"
    assert any("2 lines above the header" in note for note in report.notes)


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 2, "data": [{"left": "x", "right": "y", "winner": "x"}, {"left": "y", "right": "z", "winner": "z"}]}',
        '{"battles": [{"left": "x", "right": "y", "winner": "x"}, {"left": "y", "right": "z", "winner": "z"}]}',
        '{"left": {"0": "x", "1": "y"}, "right": {"0": "y", "1": "z"}, "winner": {"0": "x", "1": "z"}}',
        '{"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "z"]}',
    ],
)
def test_records_inside_one_object_are_read(tmp_path: Path, text: str) -> None:
    assert said(load(text, tmp_path, "votes.json")[0]) == "x>y y<z"


def test_a_named_column_of_lists_may_use_commas(tmp_path: Path) -> None:
    text = 'who,My ranking\nann,"tea, milk"\nbob,"milk, tea"\n'
    found, report = load(text, tmp_path, columns={"order": "My ranking"})
    assert listed(found) == ["tea>milk", "milk>tea"]
    assert any("commas" in note for note in report.notes)


def test_codes_of_several_annotators_can_be_given_a_meaning(tmp_path: Path) -> None:
    text = "model1,model2,judge1,judge2\nx,y,0,1\ny,z,1,2\n"
    found, _ = load(text, tmp_path, columns={"winner": "judge*:0=left,1=right,2=tie"})
    assert said(found) == "x>y x<y y<z y=z"


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("date,visitor,visitor_pts,home,home_pts\nd,x,90,y,80\nd,y,70,z,71\n", "y<x z>y"),
        ("Heim;Gast;Tore Heim;Tore Gast\nx;y;1;2\ny;z;0;0\n", "x<y y=z"),
        ("white_id,white_rating,black_id,black_rating,winner\nx,1500,y,1400,black\ny,1,x,2,draw\n", "x<y y=x"),
        ("chosen,rejected,chosen_model,rejected_model\nt,u,x,y\nv,w,y,z\n", "x>y y>z"),
    ],
)
def test_more_names_of_sides(tmp_path: Path, text: str, order: str) -> None:
    assert said(load(text, tmp_path)[0]) == order


CROSSTABLE = """No,Name,Rtg,1,2,3,4,Pts
1,Vera,2400,*,1,½,1½,3
2,Max,2300,0,,1,1/2,1.5
3,Nona,2200,½,0,x,=,1
4,Otto,2100,0½,0.5,½,-,1.5
"""


def test_a_crosstable_of_a_tournament_is_its_games(tmp_path: Path) -> None:
    found, report = load(CROSSTABLE, tmp_path)
    assert said(found) == "Vera>Max Vera=Nona Max>Nona Vera>Otto Vera=Otto Max=Otto Nona=Otto"
    assert not found.positions_known
    assert any("7 games between the 4 players" in note for note in report.notes)
    names = CROSSTABLE.replace("1,2,3,4", "Vera,Max,Nona,Otto")
    assert said(load(names, tmp_path)[0]) == said(found)


def test_numbers_that_are_no_results_of_games_are_no_crosstable(tmp_path: Path) -> None:
    found, _ = load("No,Name,1,2,3\n1,Vera,1,1,0\n2,Max,1,0,1\n3,Nona,1,1,1\n", tmp_path)
    assert isinstance(found, Ratings)


def test_fields_of_objects_are_columns(tmp_path: Path) -> None:
    rows = [
        {"model_a": "x", "model_b": "y", "verdict": {"why": "I prefer [[B]]", "by": {"winner": "[[A]]"}}},
        {"model_a": "y", "model_b": "z", "verdict": {"why": "", "by": {"winner": "B>>A"}}},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    found, report = load(text, tmp_path, "votes.jsonl")
    assert said(found) == "x>y y<z"
    assert report.columns["winner"] == "verdict.by.winner"
    assert said(read(pl.DataFrame(rows))) == said(found)
    found, _ = load(text, tmp_path, "votes.jsonl", columns={"winner": "verdict.why"}, strict=False)
    assert said(found) == "x<y"


def test_places_in_the_brackets_of_a_form_are_lists(tmp_path: Path) -> None:
    text = "Timestamp,Your order [1st],Your order [2nd choice],Your order [Third]\nt,tea,milk,juice\nt,milk,,tea\n"
    found, _ = load(text, tmp_path)
    assert isinstance(found, Rankings)
    assert found.to_polars()["item"].to_list() == ["tea", "milk", "juice", "milk", "tea"]


def test_one_row_of_numbers_without_a_voter_is_not_a_list(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no column for"):
        load("a,b,c\n1,2,3\n", tmp_path)


def test_a_matrix_of_names_says_how_it_was_read_and_can_be_grades(tmp_path: Path) -> None:
    text = ",ann,bob,cy\nann,,5,9\nbob,6,,8\ncy,2,7,\n"
    _, report = load(text, tmp_path)
    assert "how often the item of its row beat the item of its column" in report.notes[0]
    assert "columns={'grade': 'ann,bob,cy'}" in report.notes[0]
    found, _ = load(text, tmp_path, format="tidy", columns={"grade": "ann,bob,cy"})
    assert isinstance(found, Ratings)
    assert found.annotators.tolist() == ["ann", "bob", "cy"]


def test_games_without_a_result_are_skipped_and_dates_may_have_points(tmp_path: Path) -> None:
    found, report = load("White,Black,Result,Date\nx,y,*,2020.01.02\ny,z,½-½,2020.01.03\n", tmp_path)
    assert (said(found), report.skips) == ("y=z", 1)
    assert found.time.tolist() == [1578009600.0]


def test_a_verdict_that_is_denied_is_not_read() -> None:
    with pytest.raises(FormatError, match="neither"):
        read({"left": ["x"] * 2, "right": ["y"] * 2, "winner": ["A is not better", "B is hardly better"]})


@pytest.mark.parametrize(
    ("cells", "grades", "said"),
    [
        ("79% 20% 4,5%", [79, 20, 4.5], "percentages"),
        ("7/10 2.5/10 10/10", [7, 2.5, 10], "points out of 10"),
        ("★★★ ★☆☆ ★★☆", [3, 1, 2], "numbers of stars"),
        ("up down up", [2, 1, 2], "down 1, up 2"),
    ],
)
def test_grades_may_have_signs(cells: str, grades: list[float], said: str) -> None:
    found, report = read_with_report({"item": ["x", "y", "z"], "grade": cells.split()})
    assert found.grade.tolist() == grades
    assert any(said in note for note in report.notes)


def test_points_of_different_scales_are_refused() -> None:
    with pytest.raises(FormatError, match="finite number"):
        read({"item": ["x", "y"], "grade": ["7/10", "3/5"]})


def test_grades_of_items_in_rows_can_be_named(tmp_path: Path) -> None:
    text = "essay,Ann,Bob\nfirst,3,5\nsecond,4,\n"
    with pytest.raises(FormatError) as error:
        load(text, tmp_path)
    assert error.value.suggestion == {"item": "essay", "grade": "Ann,Bob"}
    found, _ = load(text, tmp_path, columns=error.value.suggestion)
    assert found.to_polars().rows() == [("Ann", "first", 3.0), ("Bob", "first", 5.0), ("Ann", "second", 4.0)]


def test_lists_of_two_are_the_sides(tmp_path: Path) -> None:
    rows = [
        {"pair": ["x", "y"], "choice": "y"},
        {"pair": ["y", "z"], "choice": "y"},
        {"pair": ["x", "z"], "choice": "x"},
    ]
    text = json.dumps(rows)
    with pytest.raises(FormatError) as error:
        load(text, tmp_path, "votes.json")
    assert error.value.suggestion == {"left": "pair_1", "right": "pair_2", "winner": "choice"}
    found, _ = load(text, tmp_path, "votes.json", columns=error.value.suggestion)
    assert said(found) == "x<y y>z x>z"


def test_a_choice_of_columns_is_said_once(tmp_path: Path) -> None:
    _, report = load("home_id,home_team,away_id,away_team,home_goals,away_goals\n1,x,2,y,1,0\n2,y,3,z,1,0\n", tmp_path)
    assert sum("home_team" in note for note in report.notes) == 1


def test_a_pattern_for_the_winner_goes_with_named_sides(tmp_path: Path) -> None:
    text = "m1,m2,human1,human2\nx,y,1,2\ny,z,0,2\n"
    found, _ = load(text, tmp_path, columns={"left": "m1", "right": "m2", "winner": "human*"})
    assert said(found) == "x>y x<y y=z y<z"
    assert found.annotators.tolist() == ["human1", "human2"]


def test_decimal_commas_are_read_and_it_is_said(tmp_path: Path) -> None:
    text = "rater;essay;note\nann;x;12,5\nann;y;13\nbob;x;9,75\nbob;y;10,0\n"
    found, report = load(text, tmp_path, columns={"grade": "note"})
    assert list(found.grade) == [12.5, 13, 9.75, 10]
    assert any("decimal points" in note for note in report.notes)


def test_questions_about_two_items_are_comparisons_of_each_voter(tmp_path: Path) -> None:
    text = "Timestamp,Email Address,Tea vs Milk,Which do you like: Green Tea or Milk?,Tea or Green Tea\n"
    text += "1/13/2024 1:02:03 PM,a@x.org,Tea,Milk,Tea\n1/14/2024 9:00:00 AM,b@x.org,Milk,Green Tea,\n"
    found, report = load(text + "1/14/2024 9:30:00 AM,a@x.org,tie,Milk,Green Tea\n", tmp_path)
    assert said(found) == "Tea>Milk Green Tea<Milk Tea>Green Tea Tea<Milk Green Tea>Milk Tea=Milk Green Tea<Milk " + (
        "Tea<Green Tea"
    )
    assert found.annotators.tolist() == ["voter 1", "voter 2"]  # addresses are not kept
    assert found.time[0] == 1705150923
    assert "3 rows read, which hold 8 judgments, 8 kept (1 tie)." in report.lines()


def test_columns_of_words_that_name_no_pair_are_no_questions(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no column for"):
        load("who,Colour,Shape\nann,red,round\nbob,blue,square\ncy,red,square\n", tmp_path)


def test_a_survey_of_pairs_by_qualtrics_is_read(tmp_path: Path) -> None:
    text = "StartDate,EndDate,ResponseId,Q1,Q2,PROLIFIC_PID\nStart Date,End Date,Response ID,Tea or milk?,"
    text += 'Milk or juice?,PROLIFIC_PID\n"{""ImportId"":""s""}",e,r,a,b,p\n'
    found, _ = load(
        text + "2024-01-01,2024-01-01,R_1,Tea,Juice,5f\n2024-01-01,2024-01-01,R_2,Milk,Juice,5e\n", tmp_path
    )
    assert said(found) == "Tea>Milk Milk<Juice Tea<Milk Milk<Juice"
    assert found.annotators.tolist() == ["5e", "5f"]


def test_two_items_in_one_cell_are_the_sides(tmp_path: Path) -> None:
    found, report = load("who,pair,winner\nann,x vs y,x\nbob,y vs. z,tie\ncy,z versus x,x\n", tmp_path)
    assert said(found) == "x>y y=z z<x"
    assert any("'pair'" in note for note in report.notes)


def test_judges_in_columns_grade_the_names_in_rows_and_totals_are_set_aside(tmp_path: Path) -> None:
    text = "Name,Nation,J1,J2,J3,Total\nann,JP,9.25,8,7,24.25\nbob,US,6,7.5,8,21.5\nMean,,7.6,7.75,7.5,22.9\n"
    found, report = load(text, tmp_path)
    assert isinstance(found, Ratings)
    assert sorted(found.items.labels) == ["ann", "bob"]
    assert (report.kept, report.set_aside, report.entries) == (6, {"total": 3}, 3)


def test_places_that_are_called_by_numbers_are_lists(tmp_path: Path) -> None:
    found, _ = load("judge,1,2,3\nann,tea,milk,juice\nbob,milk,tea,juice\ncy,tea,juice,milk\n", tmp_path)
    assert isinstance(found, Rankings)
    assert found.to_polars().filter(pl.col("rank") == 1)["item"].to_list() == ["tea", "milk", "tea"]
    with pytest.raises(FormatError):
        load("judge,1,2,3\nann,red,round,old\nbob,blue,square,new\n", tmp_path)


def test_a_form_that_names_nobody_is_a_grid_of_grades(tmp_path: Path) -> None:
    found, _ = load("Timestamp,Tea,Milk,Juice\n1/2,5,3,4\n1/3,4,,2\n", tmp_path)
    assert (len(found), len(found.annotators)) == (5, 2)
    with pytest.raises(FormatError):  # measurements
        load("Timestamp,Tea,Milk,Juice\n1/2,5.1,3.7,4.2\n1/3,4.9,3.1,2.2\n", tmp_path)


def test_a_header_that_is_repeated_is_left_out_and_it_is_said(tmp_path: Path) -> None:
    part = "worker,left,right,winner,\nann,x,y,x,\nbob,y,z,z,\n"
    found, report = load(part + part, tmp_path)
    assert said(found) == "x>y y<z x>y y<z"
    assert "1 line repeats the header; left out." in report.notes


@pytest.mark.parametrize(
    ("header", "rows", "outcomes"),
    [
        ("Home Team Name,Home Team Goals,Away Team Goals,Away Team Name", "x,3,1,y", "x>y"),
        ("Date,Visitor/Neutral,PTS,Home/Neutral,PTS,Attend.", "2020-01-01,x,90,y,101,7", "y>x"),
        ("answer_0,score_0,answer_1,score_1", "x,-1.0,y,1.0", "x<y"),
        ("SYS,SID,RAW.SCR,UID", "x,s1,90,u1", ""),
    ],
)
def test_names_of_columns_in_public_tables(tmp_path: Path, header: str, rows: str, outcomes: str) -> None:
    found, _ = load(f"{header}\n{rows}\n", tmp_path)
    assert (said(found) if isinstance(found, Comparisons) else "") == outcomes


def test_totals_of_wins_and_ties_are_weights(tmp_path: Path) -> None:
    found, report = load("i,j,n,wins_i,wins_j,ties\na,b,57,19,22,16\na,c,9,9,0,0\n", tmp_path)
    assert said(found) == "a>b a<b a=b a>c"
    assert found.weights.tolist() == [19, 22, 16, 9]
    assert "2 rows read, 2 kept (1 tie)." in report.lines()


def test_the_date_is_preferred_to_the_hour_and_may_begin_with_the_day(tmp_path: Path) -> None:
    header = "Date,Time,home,away,winner\n"
    found, report = load(header + "31/12/2020,12:30,x,y,x\n01/01/2021,15:00,y,z,z\n", tmp_path)
    assert report.columns["time"] == "Date"
    assert found.time.tolist() == [1609372800, 1609459200]
    unknown, report = load(header + "01/02/2020,12:30,x,y,x\n", tmp_path)
    assert unknown.time is None
    assert any("no time that can be read" in note for note in report.notes)


def test_a_game_that_was_not_played_is_won_by_who_came(tmp_path: Path) -> None:
    found, _ = load("White,Black,Result\nx,y,+ - -\ny,z,- - +\nz,x,1-0\n", tmp_path)
    assert said(found) == "x>y y<z z>x"


def test_a_column_of_lists_is_no_query(tmp_path: Path) -> None:
    text = '[{"context": [{"role": "user"}], "left": "x", "right": "y", "winner": "x"}]'
    found, report = load(text, tmp_path, "votes.json")
    assert (len(found), "query" in report.columns) == (1, False)


def test_rows_that_all_compare_the_same_two_items_are_pointed_out(tmp_path: Path) -> None:
    text = "judge,instance,left,right,winner\n" + "".join(f"g,{n},1,2,{1 + n % 2}\n" for n in range(30))
    assert any("the same two items" in note for note in load(text, tmp_path)[1].notes)
    assert not any("same two" in n for n in load(text, tmp_path, columns={"query": "instance"})[1].notes)


def test_parts_of_a_split_vote_are_one_row(tmp_path: Path) -> None:
    rows = [{"generator_1": "x", "generator_2": "y", "output_1": "", "output_2": "", "preference": p, "annotator": "g"}
            for p in (1.25, 2.0, 1.5, None)]  # fmt: skip
    found, report = load(json.dumps(rows), tmp_path, "annotations.json")
    assert len(found) == 4
    assert (report.rows_read, report.kept, report.skips, report.duplicates) == (4, 3, 1, 0)


def test_the_items_of_chosen_and_rejected_conversations_are_their_last_messages(tmp_path: Path) -> None:
    def conversation(text: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]

    rows = [{"prompt": "?", "chosen": conversation(a), "rejected": conversation(b)} for a, b in ("xy", "yz")]
    pl.DataFrame(rows).write_parquet(tmp_path / "train.parquet")
    found, report = read_with_report(tmp_path / "train.parquet")
    assert said(found) == "x>y y>z"
    assert any("last messages" in note for note in report.notes)


@pytest.mark.parametrize("signs", ["['tea, hot', 'milk']", '["tea, hot", "milk"]'])
def test_lists_written_as_python_or_json_are_lists(tmp_path: Path, signs: str) -> None:
    rows = {"who": ["ann", "bob"], "ranking": [signs, signs]}
    assert sorted(read(rows).items.labels) == ["milk", "tea, hot"]
    assert sorted(read(rows | {"ranking": ["[tea, milk]", "[milk, tea]"]}).items.labels) == ["milk", "tea"]


def test_ranks_of_items_by_judges_in_columns_are_lists(tmp_path: Path) -> None:
    found, report = load("City,Judge 1,Judge 2\nParis,3,1\nRome,1,2\nOslo,2,3\n", tmp_path)
    assert isinstance(found, Rankings)
    assert found.to_polars().filter(pl.col("rank") == 1)["item"].to_list() == ["Rome", "Paris"]
    assert any("1 is the best" in note for note in report.notes)
    assert isinstance(load("City,Judge 1,Judge 2\nParis,3,1\nRome,1,2\nOslo,1,3\n", tmp_path)[0], Ratings)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("x beats y\ny beats z\nz beats x\n", "x>y y>z z>x"),
        ("x 3-1 y\ny 0-0 z\nz 1-2 x\n", "x>y y=z z<x"),
        ("a x 3 - 1 a y\na y 0:0 z\nz 1 – 2 a x\n", "a x>a y a y=z z<a x"),
        ("a x beats y\ny beats z\nz beats a x\n", "a x>y y>z z>a x"),
    ],
)
def test_lines_without_a_header_that_say_who_beat_whom(tmp_path: Path, lines: str, expected: str) -> None:
    found, report = load(lines, tmp_path, "games.txt")
    assert said(found) == expected
    assert any("read by their cells" in note for note in report.notes)


def test_options_of_which_another_column_says_the_choice_are_no_list(tmp_path: Path) -> None:
    found, _ = load("who,option_1,option_2,choice\nann,x,y,1\nbob,y,z,2\n", tmp_path)
    assert said(found) == "x>y y<z"
    listed, _ = load("who,option1,option2,option3,choice\nann,x,y,z,2\nbob,y,z,x,z\n", tmp_path)
    assert isinstance(listed, Rankings)
    assert listed.to_polars().filter(pl.col("rank") == 1)["item"].to_list() == ["y", "z"]


def test_counts_of_ballots_are_weights(tmp_path: Path) -> None:
    found, report = load("Count,1st choice,2nd choice\n3,tea,milk\n2,milk,tea\n", tmp_path)
    assert isinstance(found, Rankings)
    assert sorted(found.weights.tolist()) == [2, 3]
    assert any("how often" in note for note in report.notes)


def test_two_columns_of_true_and_false_say_who_won(tmp_path: Path) -> None:
    text = "model_a,model_b,a_wins,b_wins\nx,y,True,False\ny,z,False,True\nz,x,False,False\n"
    assert said(load(text, tmp_path)[0]) == "x>y y<z z=x"


def test_an_empty_column_is_no_query(tmp_path: Path) -> None:
    found, report = load("context,left,right,winner\n,x,y,x\n,y,z,z\n", tmp_path)
    assert (len(found), "query" in report.columns) == (2, False)


def test_numbers_before_words_are_grades(tmp_path: Path) -> None:
    found, report = load("reviewer,paper,rating\nr,p,6: weak accept\nr,q,3: reject\ns,p,8\n", tmp_path)
    assert sorted(found.grade.tolist()) == [3, 6, 8]
    assert any("before their words" in note for note in report.notes)


def test_words_of_other_languages(tmp_path: Path) -> None:
    text = "Juge;Gauche;Droite;Vainqueur\nann;x;y;gauche\nbob;y;z;égalité\ncy;z;x;x\n"
    assert said(load(text, tmp_path)[0]) == "x>y y=z z<x"
    text = "Prüfer;Links;Rechts;Gewinner\nann;x;y;rechts\nbob;y;z;unentschieden\n"
    assert said(load(text, tmp_path)[0]) == "x<y y=z"


def test_trials_for_practice_are_set_aside(tmp_path: Path) -> None:
    found, report = load("left,right,winner,is_practice\nx,y,x,True\ny,z,z,False\n", tmp_path)
    assert (said(found), report.set_aside) == ("y<z", {"practice": 1})


def test_commas_between_thousands_are_no_decimal_points(tmp_path: Path) -> None:
    found, _ = load('team1,team2,score1,score2\nx,y,"1,234",999\ny,x,"12,345","12,344"\n', tmp_path)
    assert said(found) == "x>y y>x"


def test_a_form_of_words_is_a_grid(tmp_path: Path) -> None:
    text = "Timestamp,Tea is nice,Milk is nice,Juice is nice\n1/2,Agree,Neutral,Disagree\n1/3,Disagree,Agree,Agree\n"
    found, _ = load(text, tmp_path)
    assert isinstance(found, Ratings)
    assert sorted(found.grade.tolist()) == [1, 1, 2, 3, 3, 3]


def test_results_of_both_players_are_those_of_white(tmp_path: Path) -> None:
    text = "white_username,black_username,white_rating,black_rating,white_result,black_result\n"
    found, _ = load(
        text + "x,y,1500,1400,win,resigned\ny,z,1400,1300,agreed,agreed\nz,x,1300,1500,timeout,win\n", tmp_path
    )
    assert said(found) == "x>y y=z z<x"


def test_a_system_is_ranked_and_not_the_document_that_it_translated(tmp_path: Path) -> None:
    _, report = load("SYS,DOC,SID,WORKER,RAW.SCR\nx,d,1,w,70\ny,d,1,w,80\n", tmp_path)
    assert (report.columns["item"], report.columns["grade"]) == ("SYS", "RAW.SCR")


def test_winning_and_losing_teams(tmp_path: Path) -> None:
    found, _ = load("Season,WTeamID,WScore,LTeamID,LScore\n2020,7,80,8,70\n2020,9,60,7,50\n", tmp_path)
    assert said(found) == "7>8 9>7"


def test_lists_of_objects_are_lists_or_grades_of_items(tmp_path: Path) -> None:
    ranked = [{"prompt": "p", "answers": [{"answer": "a", "model": m, "rank": n} for n, m in enumerate("yx", 1)]}]
    found, report = load(json.dumps(ranked * 2), tmp_path, "answers.json")
    assert isinstance(found, Rankings)
    assert found.to_polars()["item"].to_list() == ["y", "x"] * 2
    assert "2 rows read, which hold 4 judgments, 4 kept." in report.lines()
    graded = [
        {"completions": [{"model": "x", "annotations": {"ok": [1]}, "overall_score": 8.5}, {"model": "y"}]},
        {"completions": []},
        {"completions": [{"model": "x", "overall_score": 3}, {"model": "y", "overall_score": 4}]},
    ]
    found, report = load("\n".join(map(json.dumps, graded)), tmp_path, "completions.jsonl")
    assert isinstance(found, Ratings)
    assert found.to_polars().rows() == [("x", 8.5), ("x", 3.0), ("y", 4.0)]
    assert [m.line for m in report.malformed] == [1, 2]


def test_a_list_of_texts_beside_a_list_of_ranks_is_an_order(tmp_path: Path) -> None:
    rows = [{"generations": ["x", "y", "z"], "ranking": [2, 1, 2]}, {"generations": ["x", "y"], "ranking": [1, 2]}]
    found, _ = load(json.dumps(rows), tmp_path, "ranked.json")
    assert isinstance(found, Rankings)
    assert found.to_polars()["item"].to_list() == ["y", "x", "z", "x", "y"]
    assert found.to_polars()["rank"].to_list() == [1, 2, 2, 1, 2]
    with pytest.raises(FormatError, match=r"'ranking': \[2, 1, 2\] names an item twice"):
        load(json.dumps([{"ranking": [2, 1, 2]}] * 2), tmp_path, "ranked.json")


def test_remarks_of_a_form_are_no_grades(tmp_path: Path) -> None:
    text = "Timestamp,Rate: Tea,Rate: Milk,Rate: Juice,Comments\n1/2,5,3,4,nice\n1/3,4,2,3,\n"
    assert len(load(text, tmp_path)[0]) == 6


def test_votes_of_nobody_in_a_format_with_annotators(tmp_path: Path) -> None:
    row = {"generator_1": "x", "generator_2": "y", "output_1": "", "output_2": "", "preference": 1.25}
    found, report = load(json.dumps([row, {**row, "generator_1": None}, row]), tmp_path, "annotations.json")
    assert found.annotator is None
    assert (report.rows_read, report.kept, report.malformed_count) == (3, 2, 1)


def test_a_matrix_of_numbers_without_names_is_not_suggested_as_comparisons(tmp_path: Path) -> None:
    text = "".join(",".join(str((n * k) % 7 - 1) for k in range(1, 12)) + "\n" for n in range(1, 20))
    with pytest.raises(FormatError) as error:
        load(text, tmp_path)
    assert error.value.suggestion is None


def test_items_of_a_grid_are_named_without_the_word_before_all_of_them(tmp_path: Path) -> None:
    found, report = load("rater,rank_tea,rank_milk,rank_juice\nann,1,2,3\nbob,2,1,3\n", tmp_path)
    assert sorted(found.items.labels) == ["juice", "milk", "tea"]
    assert any("If the largest is the best" in note for note in report.notes)


def test_answers_that_are_missing_from_a_grid_are_no_faults(tmp_path: Path) -> None:
    text = (
        "who,How good is tea,How good is milk,How good is juice,Age\nann,5,N/A,3,old\nbob,2,1,n/a,old\ncy,4,4,4,old\n"
    )
    found, report = load(text, tmp_path, columns={"grade": "How good is *"})
    assert (len(found), report.malformed_count) == (7, 0)


@pytest.mark.parametrize(
    ("header", "row", "columns"),
    [
        ("ID1,ID2,better_id", "s1,s2,s2", {"left": "ID1", "right": "ID2", "winner": "better_id"}),
        (
            "participant_id,trial_id,rating_stimulus,rating_score",
            "p,t,C1,70",
            {"item": "rating_stimulus", "grade": "rating_score", "annotator": "participant_id"},
        ),
    ],
)
def test_columns_of_public_experiments(tmp_path: Path, header: str, row: str, columns: dict[str, str]) -> None:
    assert load(f"{header}\n{row}\n", tmp_path)[1].columns == columns


def test_signs_say_which_side_is_better() -> None:
    rows = {"left": ["x", "y", "z"], "right": ["y", "z", "x"], "winner": [">", "<", "="]}
    assert said(read(rows)) == "x>y y<z z=x"


def test_shares_in_a_matrix_are_pointed_out(tmp_path: Path) -> None:
    _, report = load(",x,y\nx,,0.25\ny,0.75,\n", tmp_path)
    assert "look like shares" in report.notes[0]
    assert "look like shares" not in load(",x,y\nx,,1\ny,3,\n", tmp_path)[1].notes[0]
