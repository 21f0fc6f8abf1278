"""crowdrank start: at most three questions, then a ranking and the command that makes it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crowdrank.cli import app

ODD = "foo,bar,baz,qux\nA,B,A,u1\nB,C,C,u2\nA,C,A,u1\nA,B,B,u2\nC,B,C,u1\n"
runner = CliRunner()


@pytest.fixture(autouse=True)
def in_a_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def answer(*answers, file="odd.csv"):
    return runner.invoke(app, ["start", file], input="".join(f"{text}\n" for text in answers))


def command_in(output):
    return output.split("The command was:\n")[1].splitlines()[0].strip()


def test_a_file_that_is_understood_is_ranked_without_a_question(crowdrank, votes):
    code, out, err = crowdrank("start", votes, "--yes")
    assert (code, err) == (0, "")
    assert "votes.csv: 8 comparisons of 3 items by 3 annotators." in out
    assert f"crowdrank annotators {votes}" in out
    assert Path("votes-report.html").exists()
    ran = crowdrank(*command_in(out).split()[1:])
    assert ran.code == 0
    assert ran.out in out


def test_the_columns_of_a_file_that_is_not_understood_are_asked_for():
    Path("odd.csv").write_text(ODD)
    found = answer("comparison", "1, 2, baz, 4", "no")
    assert found.exit_code == 0
    assert found.output.count("[") == 3  # a default per question
    columns = "--column left=foo --column right=bar --column winner=baz --column annotator=qux"
    assert command_in(found.output) == f"crowdrank rank odd.csv {columns}"
    assert "5 comparisons of 3 items by 2 annotators." in found.output


def test_columns_that_can_be_guessed_from_the_cells_are_the_default():
    Path("odd.csv").write_text("pp,img_left,img_right,resp\n" + "p1,A,B,0\np2,B,C,1\np1,A,C,0\np2,A,B,1\n" * 2)
    columns = "--column left=img_left --column right=img_right --column winner=resp:0=right,1=left"
    for found in (answer("", "no"), answer("yes", "no"), runner.invoke(app, ["start", "odd.csv", "--yes"])):
        assert found.exit_code == 0
        assert command_in(found.output).startswith(f"crowdrank rank odd.csv {columns}")
        assert "exchange left and right" in found.output


def test_a_wrong_answer_is_asked_again_with_a_suggestion():
    Path("odd.csv").write_text(ODD)
    found = answer("match", "c", "1 2", "foo bar bax", "foo bar baz", "perhaps", "n")
    assert found.exit_code == 0
    for said in ("No kind of row named 'match'", "Name 3 or 4 columns, got 2", "did you mean 'ba", "yes or no"):
        assert said in found.output
    assert "annotators odd.csv" not in found.output


def test_columns_that_do_not_fit_are_asked_for_again():
    Path("odd.csv").write_text(
        "id,foo,bar,baz\n1,A,B,A\n2,B,C,C\n3,A,C,A\n4,A,B,B\n5,C,B,C\n6,C,A,x\n7,C,B,x\n8,x,B,A\n"
    )
    found = answer("comparison", "1, 2, 3", "2, 3, 4", "no")
    assert found.exit_code == 0
    assert "8 of 8 rows cannot be used" in found.output
    assert command_in(found.output) == "crowdrank rank odd.csv --column left=foo --column right=bar --column winner=baz"


def test_a_single_column_that_says_nothing_is_refused_as_rank_refuses_it(crowdrank):
    Path("odd.csv").write_text("foo\nso\nthen\nso\n")
    assert crowdrank("start", "odd.csv")[::2] == crowdrank("rank", "odd.csv")[::2]


def test_grades_and_lists_are_asked_for_too():
    Path("odd.csv").write_text("foo,bar,qux\nA,3,u1\nB,1,u1\nA,2,u2\nB,2,u2\n")
    assert "4 grades of 2 items by 2 annotators." in answer("grade", "", "no").output
    Path("odd.csv").write_text('foo,bar\n"A>B>C",u1\n"A>C>B",u2\n')
    assert "2 lists of 3 items by 2 annotators." in answer("list", "", "no").output


def test_a_column_that_may_name_annotators_is_asked_for():
    Path("odd.csv").write_text("left,right,winner,team,number\nA,B,A,x,1\nB,C,C,y,2\nA,C,A,x,3\nA,B,B,y,4\n")
    found = answer("1", "no")
    assert command_in(found.output) == "crowdrank rank odd.csv --column annotator=team"
    assert command_in(answer("", "no").output) == "crowdrank rank odd.csv"


def test_without_a_file_an_example_is_ranked(crowdrank):
    code, out, _ = crowdrank("start", "--yes")
    assert code == 0
    assert "600 comparisons of 20 items by 15 annotators." in out
    again = runner.invoke(app, ["start"], input="nowhere.csv\n\nno\n")
    assert again.exit_code == 0
    assert "nowhere.csv: no such file." in again.output
    assert "Simulated" not in again.output


def test_questions_that_nobody_answers_end_in_an_error(crowdrank, monkeypatch):
    Path("odd.csv").write_text("foo,bar\nso,well\nthen,when\nso,now\n")
    code, out, err = crowdrank("start", "odd.csv", "--yes")
    assert (code, out) == (1, "")
    assert err.startswith("crowdrank: odd.csv: ")
    monkeypatch.setattr("builtins.input", lambda prompt: (_ for _ in ()).throw(EOFError))
    code, _, err = crowdrank("start", "odd.csv")
    assert code == 1
    assert "--yes" in err


def test_a_file_that_is_no_table_is_refused_as_rank_refuses_it(crowdrank):
    Path("odd.csv").write_bytes(b"\x00\x01\x02" * 50)
    assert crowdrank("start", "odd.csv")[::2] == crowdrank("rank", "odd.csv")[::2]
    assert crowdrank("start", "nowhere.csv")[::2] == crowdrank("rank", "nowhere.csv")[::2]


def test_it_works_on_a_terminal():
    Path("odd.csv").write_text(ODD)
    ours, theirs = pty.openpty()
    os.write(ours, b"comparison\n1 2 3 4\nno\n")
    command = [sys.executable, "-m", "crowdrank", "start", "odd.csv"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"The command was:" in shown
