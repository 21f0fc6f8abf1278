"""Errors say what is wrong and how to fix it, and can be pickled."""

import pickle

import pytest

from crowdrank.errors import DataError, FormatError, NothingToAskError, SettingError, UnknownNameError

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
