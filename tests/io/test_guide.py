"""What a user sees when a file is not understood."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crowdrank.cli import app
from crowdrank.cli.output import as_commands
from crowdrank.errors import FormatError
from crowdrank.io import explain, read


def guide(source: object) -> str:
    with pytest.raises(FormatError) as error:
        read(source)
    return error.value.__notes__[0]


def columns_of(text: str) -> dict[str, str]:
    call = text.rpartition("columns=")[2].partition("}")[0] + "}"
    return eval(call)


LEVELS = {
    "observer": ["o1", "o1", "o2", "o2"],
    "type1": ["jpg", "png", "jpg", "ref"],
    "level1": [1, 2, 2, 0],
    "type2": ["png", "jpg", "png", "jpg"],
    "level2": [2, 1, 1, 1],
    "selected": [1, 2, 1, 2],
}
UNKNOWN = {"eins": ["x", "y", "z", "x"], "zwei": ["y", "z", "x", "z"], "besser": ["x", "z", "z", "z"]}


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        (LEVELS, {"left": "type1+level1", "right": "type2+level2", "winner": "selected"}),
        (UNKNOWN, {"left": "eins", "right": "zwei", "winner": "besser"}),
    ],
)
def test_the_call_that_is_suggested_reads_the_source(source: dict[str, list[object]], columns: dict[str, str]) -> None:
    text = guide(source)
    assert "This reads it:" in text
    assert columns_of(text) == columns
    assert len(read(source, columns=columns_of(text))) == 4


SLIDER = {
    "rater": ["r1", "r2"] * 4,
    "clip_1": list("xyzxyzxy"),
    "clip_2": list("yzxzxyyz"),
    "slider": [14, 86, 24, 50, 71, 3, 99, 42],
}
HUMANS = {
    "m1": ["x", "y", "z", "x"],
    "m2": ["y", "z", "x", "z"],
    "human1": [0, 1, 2, 1],
    "human2": [1, 1, 2, 0],
    "human3": [2, 1, 0, 1],
}
OPINIONS = {
    "respondent": ["ann", "ann", "bob", "bob"],
    "product": ["tea", "milk", "tea", "milk"],
    "opinion": ["Agree", "Neutral", "Strongly agree", "Agree"],
}


def test_a_comparison_is_not_suggested_as_ratings_of_one_side() -> None:
    assert "grade" not in guide(SLIDER)
    assert "Fill in the columns" in guide(SLIDER)


def test_columns_of_several_annotators_are_not_suggested_as_scores() -> None:
    assert columns_of(guide(HUMANS)) == {"left": "m1", "right": "m2", "winner": "human*"}
    assert "human3  2, 1, 0     winner" in guide(HUMANS)


def test_words_without_a_meaning_can_be_given_one() -> None:
    rows = {"left": ["x", "y", "z"], "right": ["y", "z", "x"], "vote": ["up!", "low!", "up!"]}
    text = guide(rows)
    assert "Fill in what each word means: left, right, tie, both_bad, skip." in text
    columns = columns_of(text)
    assert columns["winner"] == "vote:low!=MEANING,up!=MEANING"
    columns["winner"] = "vote:up!=left,low!=right"
    assert len(read(rows, columns=columns)) == 3


def test_a_table_of_results_is_not_read_with_the_counts_as_items() -> None:
    rows = {"model": ["x", "y", "z", "x"], "elo": [1200, 1190, 1180, 1200], "votes": [10, 9, 8, 8]}
    assert "votes" not in columns_of(guide(rows)).values()


def test_words_of_a_scale_are_suggested_as_grades() -> None:
    assert columns_of(guide(OPINIONS)) == {"annotator": "respondent", "item": "product", "grade": "opinion"}
    rows = {"product": ["tea", "milk"], "remark": ["so", "well"]}
    assert columns_of(guide(rows)) == {"item": "product", "grade": "COLUMN"}


def test_first_rows_and_what_they_look_like_are_shown() -> None:
    lines = guide({"alpha": [1.5, 2.5, 9.0], "note": ["so " * 50] * 3, "when": ["2020-01-01"] * 2 + ["2020-01-02"]})
    assert "alpha   1.5, 2.5, 9" in lines
    assert "numbers from 1.5 to 9" in lines
    assert "times" in lines
    assert "Fill in the columns of your file:" in lines


def test_the_home_country_is_not_suggested_as_the_winner() -> None:
    rows = {"home_team": list("xyzxyz"), "away_team": list("yzxzxy"), "land": list("xyzxyz"), "attendance": [9] * 6}
    assert "'winner': 'land'" not in guide(rows)


def test_the_command_line_prints_the_command(tmp_path: Path) -> None:
    path = tmp_path / "my votes.csv"
    path.write_text("eins,zwei,besser\nx,y,x\ny,z,z\nz,x,z\nx,z,z\n")
    shown = as_commands(guide(path)).splitlines()[-1].strip()
    assert shown == f"crowdrank rank '{path}' --column left=eins --column right=zwei --column winner=besser"
    result = CliRunner().invoke(app, ["formats", "--explain", str(path)])
    assert result.exit_code == 0
    assert shown in result.output


def test_every_suggested_command_runs(tmp_path: Path) -> None:
    path = tmp_path / "answers.txt"
    path.write_text("7;1;2;-1,1,0\n7;2;3;1,1,1\n8;1;3;0,-1,-1\n8;2;1;1,1,-1\n")
    shown = CliRunner().invoke(app, ["formats", "--explain", str(path)]).output.splitlines()[-1]
    assert "--column query=1" in shown
    result = CliRunner().invoke(app, [*shlex.split(shown)[1:], "--uncertainty", "none"])
    assert result.exit_code == 0


def test_a_file_that_is_read_is_explained_too(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("worker,left,right,winner\nann,x,y,x\n")
    assert "worker  ann         annotator" in explain(path)
    assert "1 row read, 1 kept." in explain(path)


@pytest.mark.parametrize(
    "text",
    [
        "model_a,model_b,prob_a_wins\nx,y,0.25\ny,z,0.75\nz,x,0.5\n",
        "One,Two,Three,Four\nx,y,7.5,9\ny,x,1.5,8\nx,y,3.5,7\ny,x,2,2\n",
    ],
)
def test_a_pair_of_columns_beside_others_is_not_suggested_as_winner_and_loser(tmp_path, text):
    """Some other column says who won, in a way that is not understood: a command that runs would rank nonsense."""
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert "loser" not in caught.value.__notes__[0].split("\n")[-1]


def test_a_suggested_command_keeps_the_encoding(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_bytes("étudiant;copie;note\né1;x;12,5\né2;x;9,5\né1;y;7,5\né2;y;8,5\n".encode("latin-1"))
    with pytest.raises(FormatError) as caught:
        read(path, encoding="latin-1")
    (guide,) = caught.value.__notes__
    assert "encoding='latin-1'" in guide
    words = shlex.split(as_commands(guide).split("\n")[-1])[1:]
    assert CliRunner().invoke(app, words).exit_code == 0


def test_a_scale_between_two_sides_is_suggested_from_left_to_right() -> None:
    rows = {"who": list("uvuvu"), "model_a": list("xyzxy"), "model_b": list("yzxyz"), "slider": list("12345")}
    assert "'winner': 'slider:1=left,2=left,3=tie,4=right,5=right'" in guide(rows)
    assert "'winner'" not in guide({**rows, "slider": ["10", "20", "30", "40", "50"]}).splitlines()[-1] or (
        "COLUMN" in guide({**rows, "slider": ["10", "20", "30", "40", "50"]})
    )


def test_the_annotator_is_not_suggested_as_the_winner() -> None:
    rows = {"annotator": list("121212"), "one": list("xyzxyz"), "two": list("yzxzxy"), "which": list("xzzxzy")}
    assert "'winner': 'which'" in guide(rows)


def test_places_in_races_and_votes_that_are_sent_are_suggested() -> None:
    races = {"raceId": list("111222"), "driverRef": ["ann", "bob", "cy"] * 2, "position": ["1", "2", "\\N"] * 2}
    assert "{'list': 'raceId', 'item': 'driverRef', 'rank': 'position'}" in guide(races)
    sent = {"from_country": list("abcabc"), "to_country": list("bcacab"), "points": list("123321")}
    assert "{'annotator': 'from_country', 'item': 'to_country', 'grade': 'points'}" in guide(sent)


def test_a_column_with_another_role_is_no_side() -> None:
    shown = guide({"item": list("12345"), "total": list("32145")})
    assert "'loser': 'total'" not in shown
    assert "'annotator': 'query'" not in guide(
        {"query": list("aabb"), "item": list("xyxy"), "true_rank": list("1212"), "name": list("pqrs")}
    )


def test_columns_that_would_rank_nonsense_are_not_suggested() -> None:
    chess = {"white_username": list("xyzxyz"), "black_username": list("yzxzxy")}
    elo = {"white_rating": list("123132"), "black_rating": list("321213")}
    assert "rating" not in guide({**chess, **elo}).splitlines()[-1]
    assert "'loser': 'vote'" not in guide({"comment": list("0123401234"), "vote": ["1", "0"] * 5, "v": list("ab") * 5})
    assert "COLUMN" in guide(
        {"1": ["4", "3", "5"] * 4, "2": ["-3.3", "9.5", "1.2"] * 4, "3": ["7.1", "9.5", "2.2"] * 4}
    )


def test_the_number_of_a_document_is_not_suggested_as_its_grade() -> None:
    numbers = [n % 6 for n in range(24)]
    rows = {"who": ["ab"[n // 6 % 2] for n in range(24)], "what": ["xyz"[n % 3] for n in range(24)]}
    shown = guide({**rows, "nr_of_it": numbers, "it": [f"d{n}" for n in numbers], "given": [n % 7 for n in range(24)]})
    assert "'grade': 'given'" in shown


def test_several_rows_of_a_judge_with_grades_in_columns_are_suggested() -> None:
    rows = {"judge": list("aabbcc"), "Tea": list("321213"), "Milk": list("445532"), "Juice": list("544545")}
    assert "columns={'grade': 'Tea,Milk,Juice'}" in guide(rows)


def test_codes_that_are_also_ids_are_suggested_as_the_winner() -> None:
    rows = {"idA": list("012012"), "idB": list("345345"), "choseA": list("011001"), "who": list("uvuvuv")}
    assert "{'left': 'idA', 'right': 'idB', 'winner': 'choseA:0=right,1=left'}" in guide(rows)


def test_keys_and_grades_by_name_are_suggested() -> None:
    keys = {"left": list("xyzxyz"), "right": list("yzxzxy"), "response": list("fjfjff")}
    assert "'winner': 'response:f=left,j=right'" in guide(keys)
    wines = {"Wein": list("abcd"), "Ann": ["14,5", "12,0", "19,5", "15,0"], "Bo": ["13,5", "12,0", "18,5", "11,0"]}
    assert "{'item': 'Wein', 'grade': 'Ann,Bo,Cy'}" in guide({**wines, "Cy": wines["Bo"]})


def test_the_guide_shows_the_columns_of_the_file(tmp_path: Path) -> None:
    """Not those that a table of grades was changed to."""
    path = tmp_path / "form.csv"
    path.write_text("id,Q1 [tea],Q1 [milk]\n1,red,round\n2,blue,square\n")
    shown = explain(path)
    assert "Q1 [tea]" in shown
    assert "'item': 'item'" not in shown


def test_codes_are_about_the_side_that_their_column_names() -> None:
    games = {
        "blueTeam": list("xyzxyz"),
        "redTeam": list("yzxzxy"),
        "bResult": list("011010"),
        "rResult": list("100101"),
    }
    assert "{'left': 'redTeam', 'right': 'blueTeam', 'winner': 'bResult:0=left,1=right'}" in guide(games)
    games = {"home": list("xyzxyz"), "away": list("yzxzxy"), "away_win": list("011010")}
    assert "'winner': 'away_win:0=left,1=right'" in guide(games)
    games = {"home": list("xyzxyz"), "away": list("yzxzxy"), "home_win": list("011010")}
    assert "'winner': 'home_win:0=right,1=left'" in guide(games)


def test_a_scale_ends_at_its_largest_answer() -> None:
    rows = {"model_a": list("xyzxyzxy"), "model_b": list("yzxzxyyz"), "preference (1-8)": list("12345678")}
    assert "4=left,5=right" in guide(rows)


def test_numbers_that_only_look_like_grades_are_not_suggested() -> None:
    heats = {"heat": list("111222333"), "swimmer": list("abcabcabc"), "time_s": [50.1 + n / 7 for n in range(9)]}
    assert "'grade': 'heat'" not in guide(heats)
    texts = {"prompt": list("ppqq"), "response": list("abcd"), "helpful": list("3122"), "correct": list("3202")}
    assert "{'item': 'response', 'grade': 'helpful', 'query': 'prompt'}" in guide(texts)
    skaters = {"skater": list("aabb"), "part": list("xyxy"), "J1": list("5678"), "J2": list("6678"), "J3": list("5778")}
    assert "{'item': 'skater', 'grade': 'J1,J2,J3'}" in guide(skaters)


def test_questions_that_begin_alike_are_suggested_as_grades() -> None:
    start = "Please rate the food of "
    rows = {"RespondentID": [1, 2, 3], "Gender": list("mfm")} | {
        start + c: ["5", "N/A", "2"] for c in ("Peru", "Chad", "Iran")
    }
    assert f"columns={{'grade': '{start}*'}}" in guide(rows)
