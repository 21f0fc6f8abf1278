"""Mutated files of every shape are read or refused in words: always the same 15 of each; `make explore` reads 100."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import CrowdrankError, FormatError
from crowdrank.io import explain, read_with_report
from tests.io.test_containers import ROWS, TEXT, ZSTD, workbook, zipped
from tests.strategies import EXPLORING

MUTATIONS = 100 if EXPLORING else 15

_MATCHES = "ann bob\nbob cy\ncy ann\nann cy\nbob ann\ncy bob\n"
SHAPES = {
    "scores.csv": "date,home_team,away_team,home_score,away_score\n2020-01-01,x,y,3,1\n2020-01-02,y,z,0,0\n,x,z,2,10\n",
    "ranks.csv": "judgeID,srclang,trglang,system1Id,system1rank,system2Id,system2rank\n"
    "j,de,en,x,1,y,2\nk,de,en,x,2,z,2\n",
    "lists.csv": "judge,system1,system2,system3,rank1,rank2,rank3\nj,a,b,c,2,1,3\nk,a,c,b,1,1,-1\n",
    "annotators.json": '[{"response1":"x","response2":"y","annotator1":1,"annotator2":2},'
    '{"response1":"y","response2":"z","annotator1":0,"annotator2":2}]',
    "grid.csv": "student,one,two,three\nann,5,3,4\nbob,4,,2\ncy,5,5,1\n",
    "ballots.csv": "voter,tea,milk,juice\nann,1,2,3\nbob,2,1,3\ncy,3,1,2\n",
    "form.csv": "Timestamp,How? [Tea],How? [Milk]\n1/2,5 - great,2\n1/3,4,1\n",
    "matches.txt": _MATCHES,
    "labels.tsv": "".join(f"w{n % 3}\t{n % 5}\t{n % 2}\n" for n in range(12)),
    "answers.txt": "1;13;25;-1,1,-1\n1;25;35;1,1,0\n2;13;35;1,-1,1\n",
    "mixed.txt": "left, right; winner\nx; y, x\ny, z, z\nz;x;z\n",
    "comments.csv": "# by hand\nleft,right,winner\nx,y,A>B\n# more\ny,z,[[B]]\nz,x,A=B\n",
    "codes.csv": "left,right,label\nx,y,0\ny,z,1\nz,x,2\nx,z,1\n",
    "levels.csv": "type1,level1,type2,level2,selected\njpg,1,png,2,1\npng,1,jpg,2,2\njpg,2,png,1,1\n",
    "pandalm.json": '[{"cmp_key":"x_y","response1":"p","response2":"q","annotator1":"1","annotator2":"2"},'
    '{"cmp_key":"y_z","response1":"r","response2":"s","annotator1":"0","annotator2":"2"}]',
    "judgebench.jsonl": '{"pair_id":"p","response_A":"x","response_B":"y","label":"A>B","judgments":'
    '[{"judgment":{"judge_model":"m"},"decision":"A>B"},{"judgment":{"judge_model":"m"},"decision":"B>A"}]}\n'
    '{"pair_id":"q","response_A":"x","response_B":"y","label":"A>B","judgments":[]}\n',
    "arena-hard.jsonl": '{"question_id":"1","model":"x","judge":"j","games":[{"score":"A>>B"},{"score":"A=B"}]}\n'
    '{"question_id":"2","model":"y","judge":"j","games":[{"score":"B>A"},{"score":null}]}\n',
    "summaries.jsonl": '{"summaries":[{"policy":"x"},{"policy":"y"}],"choice":0,"worker":"w"}\n'
    '{"summaries":[{"policy":"y"},{"policy":"z"}],"choice":1,"worker":"v"}\n',
    "qualtrics.csv": "StartDate,EndDate,ResponseId,Q1_1,Q1_2\nStart Date,End Date,Response ID,Rate - tea,Rate - milk\n"
    '"{""ImportId"":""s""}","{""ImportId"":""e""}","{""ImportId"":""r""}","{""ImportId"":""a""}","{""ImportId"":""b""}"\n'
    "2023-01-01,2023-01-01,R_1,5,3\n2023-01-02,2023-01-02,R_2,4,4\n",
    "choices.csv": "Ballot,1st Choice,2nd Choice,3rd Choice\n1,tea,milk,juice\n2,milk,tea,\n3,juice,milk,tea\n",
    "best-worst.csv": "worker,item1,item2,item3,best,worst\nann,x,y,z,x,z\nbob,y,z,x,z,y\n",
    "words.csv": "annotator,item,rating\nann,x,good\nann,y,very good\nbob,x,poor\nbob,y,excellent\n",
    "raters.csv": "video,sub1,sub2,sub3\na.mp4,5,4,\nb.mp4,3,3,2\nc.mp4,1,2,2\n",
    "wins.csv": "player1,player2,win1,win2\nx,y,3,0\ny,z,2,2\nx,z,4,1\n",
    "title.csv": "Votes of May\nby hand\n\nleft,right,winner\nx,y,x\ny,z,z\nz,x,z\n",
    "wrapped.json": '{"data":[{"left":"x","right":"y","winner":"x"},{"left":"y","right":"z","winner":"z"}]}',
    "columns.json": '{"left":{"0":"x","1":"y"},"right":{"0":"y","1":"z"},"winner":{"0":"x","1":"z"}}',
    "colons.dat": "".join(f"{n % 3}::{n % 5}::{1 + n % 4}::97830{n:02d}\n" for n in range(15)),
    "order.csv": 'who,ranking\nann,"tea, milk, juice"\nbob,"milk, tea, juice"\ncy,"juice, tea, milk"\n',
    "orders.txt": "tea>milk>juice\nmilk>tea>juice\njuice>tea>milk\n",
    "bars.txt": "ann|bob|0,1,0\nbob|cy|1,1,-1\ncy|ann|-1,1,1\n",
    "reasons.jsonl": '{"model_a":"x","model_b":"y","judgment":"I think ... [[A]]"}\n'
    '{"model_a":"y","model_b":"z","judgment":"so [[C]]"}\n',
    "opponents.csv": "Team,Opponent,Result\nx,y,W\ny,z,D\nz,x,L\n",
    "prose.csv": "model_a,model_b,preference\nx,y,A is much better\ny,z,About the same\nz,x,B is better\n",
    "signs.csv": "rater,item,score\nann,x,79%\nann,y,20%\nbob,x,4%\n",
    "pairs.json": '[{"models":["x","y"],"winner":0},{"models":["y","z"],"winner":1}]',
    "games.pgn": '[White "x"]\n[Black "y"]\n[Result "1-0"]\n\n1. e4 1-0\n\n[White "y"]\n[Black "x"]\n[Result "*"]\n',
    "crosstable.csv": "No,Name,1,2,3\n1,x,*,1,½\n2,y,0,*,1½\n3,z,½,0½,*\n",
    "matrix.csv": ",x,y,z\nx,0,3,1\ny,2,0,4\nz,1,0,0\n",
    "fields.jsonl": '{"model_a":"x","model_b":"y","verdict":{"why":"","winner":"[[A]]"}}\n'
    '{"model_a":"y","model_b":"z","verdict":{"why":"so","winner":"[[B]]"}}\n',
    "spaced.txt": "ann: tea > milk > juice\nbob: milk > tea\ncy: juice > tea > milk\n",
    "table.md.txt": "| left | right | winner |\n|---|:---:|---|\n| x | y | x |\n| y | z | tie |\n| z | x | z |\n",
    "form places.csv": "Timestamp,Order [1st],Order [2nd],Order [3rd]\n1/2,tea,milk,juice\n1/3,milk,tea,\n",
    "humans.csv": "left,right,human1,human2,human3\nx,y,0,1,2\ny,z,1,1,2\nz,x,0,2,1\n",
    "five.csv": "judgeId,system1Id,system2Id,system3Id,system1rank,system2rank,system3rank\nj,a,b,c,2,1,-1\n"
    "k,a,c,b,1,1,2\n",
    "shootouts.csv": "date,home_team,away_team,winner\n2020-01-01,x,y,x\n2020-01-02,y,z,z\n2020-01-03,z,x,z\n",
    "preflib.toi": "# by hand\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: milk\n"
    "# ALTERNATIVE NAME 3: juice\n2: 1,2,3\n1: 2,{1,3}\n",
    "questions.csv": "Timestamp,Username,Tea vs Milk,Milk or Juice?\n1/2,ann,Tea,Milk\n1/3,bob,Milk,Juice\n4,cy,Tea,\n",
    "versus.csv": "who,pair,winner\nann,x vs y,x\nbob,y vs z,tie\ncy,z vs x,x\n",
    "judges.csv": "Name,Nation,J1,J2,J3,Total\nann,JP,9.25,8,7,24.25\nbob,US,6,7.5,8,21.5\nMean,,7.6,7.75,7.5,22.9\n",
    "numbers.csv": "judge,1,2,3\nann,tea,milk,juice\nbob,milk,tea,juice\ncy,tea,juice,milk\n",
    "stamps.csv": "Timestamp,Tea,Milk,Juice\n1/2,5,3,4\n1/3,4,,2\n",
    "headers.csv": "worker,left,right,winner,\nann,x,y,x,\nbob,y,z,z,\n" * 2,
    "points.csv": "Date,Visitor,PTS,Home,PTS\n2020-01-01,x,90,y,101\n2020-01-02,y,88,z,88\n",
    "totals.csv": "i,j,n,wins_i,wins_j,ties\na,b,57,19,22,16\na,c,9,9,0,0\n",
    "ids.csv": "item_a_id,item_a_name,item_b_id,item_b_name,winner_id\n1,x,2,y,1\n2,y,3,z,3\n3,z,1,x,tie\n",
    "grades.jsonl": '{"question_id":1,"model":"x","judge":["g","v1"],"judgment":"","score":8,"turn":1}\n'
    '{"question_id":1,"model":"y","judge":["g","v1"],"judgment":"","score":-1,"turn":1}\n',
    "alpaca.json": '[{"generator_1":"x","generator_2":"y","output_1":"","output_2":"","preference":1.25},'
    '{"generator_1":"x","generator_2":"z","output_1":"","output_2":"","preference":2.0}]',
    "nectar.json": '[{"answers":[{"model":"x","rank":1},{"model":"y","rank":2}]},'
    '{"answers":[{"model":"y","rank":1},{"model":"z","rank":1}]}]',
    "completions.jsonl": '{"completions":[{"model":"x","overall_score":8.5},{"model":"y","overall_score":2}]}\n'
    '{"completions":[{"model":"x","overall_score":3},{"model":"z","overall_score":4}]}\n',
    "ranked.json": '[{"generations":["x","y","z"],"ranking":[2,1,2]},{"generations":["x","y"],"ranking":[1,2]}]',
    "chesscom.csv": "white_username,black_username,white_result,black_result\nx,y,win,resigned\ny,z,agreed,agreed\n"
    "z,x,timeout,win\n",
    "assessments.csv": "SYS,DOC,SID,WORKER,RAW.SCR\nx,d,1,w,70\ny,d,1,w,80\nx,e,2,v,60\n",
    "seasons.csv": "Season,WTeamID,WScore,LTeamID,LScore\n2020,7,80,8,70\n2020,9,60,7,50\n",
    "goals.txt": "Real Oslo 3 - 1 Rome\nRome 0 - 0 Real Oslo\nParis 1 - 2 Rome\n",
    "remarks.csv": "Timestamp,Rate: Tea,Rate: Milk,Rate: Juice,Comments\n1/2,5,3,4,nice\n1/3,4,2,3,\n",
    "people.json": '[{"data":{"a":"x","b":"y"},"annotations":[{"completed_by":1,"result":[{"type":"pairwise",'
    '"to_name":"a,b","value":{"selected":"left"}}]}]},{"data":{"a":"y","b":"z"},"annotations":[{"completed_by":'
    '{"id":2},"result":[{"type":"pairwise","to_name":"a,b","value":{"selected":"right"}}]}]}]',
    "ticked.csv": "HITId,AssignmentId,WorkerId,AssignmentStatus,Input.a,Input.b,Answer.v.left,Answer.v.right\n"
    "H,A1,W1,Approved,x,y,true,false\nH,A2,W2,Approved,y,z,false,true\n",
    "judged.csv": "City,Judge 1,Judge 2\nParis,3,1\nRome,1,2\nOslo,2,3\n",
    "beats.txt": "x beats y\ny beats z\nz beats x\n",
    "results.txt": "x 3-1 y\ny 0-0 z\nz 1-2 x\n",
    "python.csv": "who,ranking\nann,\"['tea', 'milk']\"\nbob,\"['milk', 'tea']\"\n",
    "options.csv": "who,option_1,option_2,choice\nann,x,y,1\nbob,y,z,2\n",
    "counts.csv": "Count,1st choice,2nd choice\n3,tea,milk\n2,milk,tea\n",
    "booleans.csv": "model_a,model_b,a_wins,b_wins\nx,y,True,False\ny,z,False,True\nz,x,False,False\n",
    "worded.csv": "reviewer,paper,rating\nr,p,6: weak accept\nr,q,3: reject\ns,p,8\n",
    "comparia.csv": "timestamp,model_a_name,model_b_name,chosen_model_name,both_equal\n1,x,y,x,False\n2,y,z,,True\n",
    "monkey.csv": "Respondent ID,Collector ID,Rank these,,\n,,Tea,Milk,Juice\n1,7,2,1,3\n2,7,1,3,2\n",
    "chat.json": '[{"chosen":[{"role":"a","content":"x"}],"rejected":[{"role":"a","content":"y"}]},'
    '{"chosen":[{"role":"a","content":"z"}],"rejected":[{"role":"a","content":"x"}]}]',
    "likert.csv": "Timestamp,Is tea nice,Is milk,Is juice\n1/2,Agree,Neutral,Disagree\n1/3,Disagree,Agree,Agree\n",
    "practice.csv": "left,right,winner,is_practice\nx,y,x,True\ny,z,z,False\nz,x,z,False\n",
    "thousands.csv": 'team1,team2,score1,score2\nx,y,"1,234",999\ny,x,"12,345","12,344"\n',
    "dates.csv": "Date,Time,home,away,winner\n31/12/2020,12:30,x,y,x\n01/01/2021,15:00,y,z,z\n",
    "shiny.csv": 'judge_id,decision,time_taken\n1,"p4,p2 -> p2,p4",2500\n1,"p4,p7 -> p4,p7",900\n',
}
# What a user has to say of files that are not understood without it.
OPTIONS: dict[str, dict[str, Any]] = {
    "labels.tsv": {"columns": {"annotator": "1", "item": "2", "grade": "3"}, "header": False},
    "answers.txt": {
        "columns": {"query": "1", "left": "2", "right": "3", "winner": "4:1=left,0=tie,-1=right"},
        "header": False,
    },
    "levels.csv": {"columns": {"left": "type1+level1", "right": "type2+level2", "winner": "selected"}},
    "colons.dat": {"columns": {"annotator": "1", "item": "2", "grade": "3"}, "header": False},
    "bars.txt": {"columns": {"left": "1", "right": "2", "winner": "3:1=left,0=tie,-1=right"}, "header": False},
    "pairs.json": {"columns": {"left": "models_1", "right": "models_2", "winner": "winner:0=left,1=right"}},
    "humans.csv": {"columns": {"left": "left", "right": "right", "winner": "human*"}},
    "ticked.csv": {"columns": {"left": "Input.a", "right": "Input.b", "winner": "Answer.v"}},
}
STRAYS = [
    "",
    "",
    "0",
    "-1",
    "7",
    "x",
    "nan",
    "½",
    ",",
    ";",
    "\t",
    "\n",
    '"',
    "#",
    "[",
    "1e999",
    "\u2028",
    "tie",
    "A>B",
    "*",
]


def mutate(text: str, dice: random.Random) -> str:
    """The text with one to three pieces cut, doubled or replaced."""
    for _ in range(dice.randint(1, 3)):
        start = dice.randrange(len(text) + 1)
        end = min(len(text), start + dice.choice([0, 1, 1, 2, 5, 15]))
        piece = text[start:end] * 2 if dice.random() < 0.2 else dice.choice(STRAYS)
        text = text[:start] + piece + text[end:]
    return text


def mutate_bytes(data: bytes, dice: random.Random) -> bytes:
    """The data with one to three pieces cut, doubled or replaced."""
    return mutate(data.decode("latin-1"), dice).encode("latin-1", "replace")


def check_mutation(source: Any, options: dict[str, Any], message: str) -> bool:
    """Whether a source is read; if so, its report accounts for every row. Nothing but a CrowdrankError is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found, report = read_with_report(source, **options)
        except CrowdrankError as error:
            assert str(error).strip()
            return False
    assert isinstance(found, Comparisons | Ratings | Rankings)
    kept = report.kept + report.skips + report.malformed_count + sum(report.set_aside.values())
    assert report.rows_read == kept, message
    return True


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_read_before_it_is_mutated(tmp_path: Path, name: str) -> None:
    path, options = tmp_path / name, OPTIONS.get(name, {})
    path.write_text(SHAPES[name], encoding="utf-8")
    assert check_mutation(path, options, name)
    if options:  # the guide shows how to read it
        with pytest.raises(FormatError) as error:
            read_with_report(path)
        assert error.value.__notes__


@pytest.mark.parametrize("name", SHAPES)
def test_mutations_are_read_or_refused_in_words(tmp_path: Path, name: str) -> None:
    dice, path = random.Random(name), tmp_path / name
    for n in range(MUTATIONS):
        path.write_text(mutate(SHAPES[name], dice), encoding="utf-8")
        check_mutation(path, {}, f"mutation {n}")
        if name in OPTIONS:
            check_mutation(path, OPTIONS[name], f"mutation {n}, with options")
        assert explain(path)


def _parquet(write: Callable[[pl.DataFrame, io.BytesIO], Any]) -> bytes:
    buffer = io.BytesIO()
    write(pl.DataFrame({"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "tie"]}), buffer)
    return buffer.getvalue()


CONTAINERS: dict[str, Callable[[], bytes]] = {
    "votes.csv.gz": lambda: gzip.compress(TEXT.encode()),
    "votes.csv.bz2": lambda: bz2.compress(TEXT.encode()),
    "votes.csv.xz": lambda: lzma.compress(TEXT.encode()),
    "votes.csv.zst": lambda: ZSTD,
    "votes.zip": lambda: zipped({"votes.csv": TEXT, "README.md": "hi"}),
    "votes.xlsx": lambda: workbook(ROWS),
    "votes.parquet": lambda: _parquet(lambda frame, buffer: frame.write_parquet(buffer)),
    "votes.arrow": lambda: _parquet(lambda frame, buffer: frame.write_ipc(buffer)),
    "votes": TEXT.encode,
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_mutated_containers_are_read_or_refused_in_words(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As files, and from standard input, where nothing but the content says what they are."""
    dice, path, data = random.Random(name), tmp_path / name, CONTAINERS[name]()
    path.write_bytes(data)
    assert check_mutation(path, {}, name)
    for n in range(MUTATIONS):
        mutated = mutate_bytes(data, dice)
        path.write_bytes(mutated)
        check_mutation(path, {}, f"mutation {n}")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(mutated)))
        check_mutation("-", {}, f"mutation {n}, from standard input")


def test_workbooks_with_mutated_parts_are_read_or_refused_in_words(tmp_path: Path) -> None:
    dice, path = random.Random("parts"), tmp_path / "votes.xlsx"
    with zipfile.ZipFile(io.BytesIO(workbook(ROWS, ("Read me", "Votes")))) as archive:
        parts = {part: archive.read(part).decode() for part in archive.namelist()}
    for n in range(2 * MUTATIONS):
        part = dice.choice([*parts])
        path.write_bytes(zipped({**parts, part: mutate(parts[part], dice)}))
        check_mutation(path, {}, f"mutation {n}")


def test_mutated_files_that_are_read_together_are_read_or_refused_in_words(tmp_path: Path) -> None:
    dice = random.Random("together")
    for n in range(MUTATIONS):
        for name in ("a.csv", "b.csv", "c.csv"):
            (tmp_path / name).write_text(mutate(TEXT, dice) if dice.random() < 0.5 else TEXT)
        for source in (str(tmp_path / "*.csv"), tmp_path, [tmp_path / "a.csv", tmp_path / "c.csv"]):
            check_mutation(source, {}, f"mutation {n}")


def test_mutated_addresses_are_refused_in_words() -> None:
    dice = random.Random("addresses")
    for n in range(MUTATIONS):
        check_mutation(mutate("https://example.org/votes.csv", dice), {}, f"mutation {n}")
