"""Errors say what is wrong and how to fix it, and can be pickled."""

import pickle
import threading
import warnings
from pathlib import Path

import pytest

from crowdrank import errors
from crowdrank.errors import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    FormatError,
    NothingToAskError,
    SettingError,
    UnknownNameError,
    issue_warning,
    muted_warnings,
)

WITH_REMEDY = FormatError(
    "votes.csv: no column for winner.",
    remedy="Pass columns={'winner': 'COLUMN'}.",
    option="columns",
    value={"winner": "COLUMN"},
)


@pytest.mark.parametrize(
    "error",
    [
        DataError("bad"),
        SettingError("bad"),
        NothingToAskError("none"),
        UnknownNameError("item", "b", ["a", "bb"]),
        WITH_REMEDY,
    ],
)
def test_errors_survive_the_way_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert (again.problem, again.option, again.value) == (error.problem, error.option, error.value)


def test_an_error_is_its_problem_and_its_remedy():
    assert str(WITH_REMEDY) == "votes.csv: no column for winner. Pass columns={'winner': 'COLUMN'}."
    assert WITH_REMEDY.problem == "votes.csv: no column for winner."


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        ("Tokio", ["Delhi", "Tokyo"], "No city named 'Tokio'; did you mean 'Tokyo'?"),
        ("x", ["Delhi", "Tokyo"], "No city named 'x'; known: Delhi, Tokyo."),
        ("x", list("abcdefghij"), "No city named 'x'; known: a, b, c, d, e, f, g, h, …"),
        ("x", [], "No city named 'x'; no city has a name here."),
        ("x", [""], "No city named 'x'; no city has a name here."),
    ],
)
def test_an_unknown_name_suggests_the_nearest_or_lists_what_there_is(name, known, message):
    assert str(UnknownNameError("city", name, known)) == message


def test_muting_in_one_thread_leaves_the_others_and_the_filters_alone():
    muted, done, heard = threading.Event(), threading.Event(), []

    def work():
        with muted_warnings(DataWarning):
            issue_warning("thin data", DataWarning)
            muted.set()
            done.wait(10)
            with pytest.raises(ConvergenceWarning):
                issue_warning("stopped early", ConvergenceWarning)
            heard.append("another category")

    before = list(warnings.filters)
    thread = threading.Thread(target=work)
    thread.start()
    assert muted.wait(10)
    assert warnings.filters == before
    with pytest.warns(DataWarning, match="thin data"):
        issue_warning("thin data", DataWarning)
    done.set()
    thread.join(10)
    assert heard == ["another category"]


def test_a_warning_points_at_its_caller():
    with pytest.warns(DataWarning) as caught:
        issue_warning("thin data", DataWarning)
    assert caught[0].filename == __file__


def test_only_the_main_thread_changes_the_filters_of_warnings():
    """What the server runs in threads mutes warnings by `muted_warnings`."""
    source = Path(errors.__file__).parent
    changing = {p.relative_to(source).parts[0] for p in source.rglob("*.py") if "catch_warnings" in p.read_text()}
    assert changing <= {"cli", "engines", "errors.py", "pipeline"}
