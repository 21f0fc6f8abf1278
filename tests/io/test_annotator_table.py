"""Files of annotators who can be asked."""

import pytest

from crowdrank.data import AnnotatorDetails
from crowdrank.errors import FormatError
from crowdrank.io import read_annotators, read_people


def test_names_quotas_and_prices_are_read(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("Worker ID,max,Pay,active\nann,10,0.5,1\nbob,,,0\ncid,0,2,yes\n")
    people = read_annotators(path)
    assert people.annotators == ("ann", "bob", "cid")
    assert people.available == ("ann", "cid")
    assert people.quota == {"ann": 10, "cid": 0}
    assert people.price == {"ann": 0.5, "cid": 2.0}


def test_a_bare_list_of_names_will_do():
    assert read_annotators({"name": ["ann", "bob"]}).available == ("ann", "bob")


def test_a_column_can_be_named():
    people = read_annotators({"who": ["ann"], "euros": [3]}, columns={"annotator": "who", "price": "euros"})
    assert people.price == {"ann": 3.0}


def test_kind_and_family_are_read():
    people = read_annotators({"judge": ["ann", "gpt", "x"], "type": ["Human", "LLM", ""], "family": ["", "openai", ""]})
    assert people.kind == {"ann": "human", "gpt": "llm"}
    assert people.family == {"gpt": "openai"}
    assert people.details["gpt"] == AnnotatorDetails(kind="llm", family="openai")
    assert read_people(people) == read_people(people.details) == people.details


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"annotator": ["ann", "ann"]}, "more than one row"),
        ({"annotator": ["ann"], "price": ["free"]}, "price of 'ann'"),
        ({"annotator": ["ann"], "quota": [-1]}, "quota of 'ann'"),
        ({"annotator": ["ann"], "kind": ["cat"]}, "kind of 'ann' must be human or llm"),
        ({"x": ["ann"], "y": ["bob"]}, "no column for the annotator"),
    ],
)
def test_what_makes_no_sense_is_refused(columns, said):
    with pytest.raises(FormatError, match=said):
        read_annotators(columns)
