"""What the commands say about a crowd with tastes."""

import json

import pytest

from crowdrank.simulation import mixed_crowd


@pytest.fixture
def taste_test(tmp_path):
    path = tmp_path / "taste.csv"
    crowd = mixed_crowd(items=12, kinds={"good": 18, "reversed": 12}, votes_each=40, seed=1)
    crowd.judgments.to_polars().write_csv(path)
    return path


def test_rank_says_first_that_the_crowd_has_camps(taste_test, crowdrank):
    shown, answer = crowdrank("rank", taste_test).out, json.loads(crowdrank("rank", taste_test, "--json").out)
    assert shown.startswith("This crowd has tastes: it falls into two camps of 18 and 12 annotators")
    assert shown.count("This crowd has tastes") == 1
    assert answer["model"] == "bradley-terry"
    assert answer["chosen_because"].startswith("The annotators fall into two camps of 18 and 12")
    assert answer["notes"][0].startswith("This crowd has tastes")


def test_annotators_of_the_smaller_camp_are_not_called_reversed(taste_test, crowdrank):
    shown = crowdrank("annotators", taste_test).out
    assert "This crowd has tastes" in shown
    assert "18 reliable, 12 different taste" in shown


def test_rows_left_out_are_in_the_notes_too(tmp_path, crowdrank):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,winner\n" + "a,b,a\nb,c,b\nc,a,a\n" * 5 + "a,b,z\n")
    answer = json.loads(crowdrank("rank", path, "--json").out)
    assert any("1 of 16 rows could not be used" in note for note in answer["notes"])
    assert "could not be used" not in crowdrank("rank", path).out.split("Ranked by")[1]  # said above, not twice
