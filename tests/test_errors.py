"""Errors are what they were when they come from another process."""

import pickle

import pytest

from crowdrank.errors import DataError, NothingToAskError, SettingError, UnknownNameError


@pytest.mark.parametrize(
    "error",
    [DataError("bad"), SettingError("bad"), NothingToAskError("none"), UnknownNameError("item", "b", ["a", "bb"])],
)
def test_errors_survive_the_way_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
