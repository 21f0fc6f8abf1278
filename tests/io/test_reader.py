"""Reading a table: kinds, roles, winners, and the report on rows that are left out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import DataWarning, FormatError, SettingError, UnknownNameError
from crowdrank.io import ImportReport, MalformedRow, read, read_with_report
from crowdrank.io.builders import count_duplicates


def votes(*rows: str, header: str = "worker left right winner") -> dict[str, list[Any]]:
    """Columns from rows of words; a dot is an empty cell."""
    cells = zip(*(row.split() for row in rows), strict=True)
    return {n: [None if c == "." else c for c in column] for n, column in zip(header.split(), cells, strict=True)}


def wins(found: Any) -> list[tuple[str, str, int]]:
    labels = found.items.labels
    return list(zip(labels[found.left], labels[found.right], found.outcome.tolist(), strict=True))


def test_a_winner_is_an_item_of_its_row() -> None:
    found = read(votes("ann x y x", "bob x y y", "cy y x tie"))
    assert wins(found) == [("x", "y", 1), ("x", "y", -1), ("y", "x", 0)]
    assert found.annotators[found.annotator].tolist() == ["ann", "bob", "cy"]


@pytest.mark.parametrize(
    ("words", "outcomes"),
    [
        ("left right", [1, -1]),
        ("LEFT Right", [1, -1]),
        ("a b", [1, -1]),
        ("L R", [1, -1]),
        ("x y", [1, -1]),
        ("1 2", [1, -1]),
        ("model_a model_b", [1, -1]),
        ("model_x Model.Y", [1, -1]),
        ("leftvote rightvote", [1, -1]),
        ("first second", [1, -1]),
        ("first tievote", [1, 0]),
        ("left draw", [1, 0]),
        ("left both_bad", [1, 0]),
        ("left bothbad_vote", [1, 0]),
        ("left =", [1, 0]),
        ("left -", [1, 0]),
        ("left neither", [1, 0]),
    ],
)
def test_a_winner_may_be_a_word_for_its_side(words: str, outcomes: list[int]) -> None:
    first, second = words.split()
    found = read(votes(f"ann p q {first}", f"ann q s {second}"))
    assert found.outcome.tolist() == outcomes


def test_ties_with_spaces_and_brackets_are_ties() -> None:
    table = votes("ann p q p", "ann p q q") | {"winner": ["tie (bothbad)", "p"]}
    assert read(table).ties == 1


def test_a_winner_may_be_the_name_of_a_column() -> None:
    table = {"this": ["p", "p"], "that": ["q", "q"], "winner": ["that", "THIS"]}
    found = read(table, columns={"left": "this", "right": "that"})
    assert found.outcome.tolist() == [-1, 1]


def test_names_of_items_come_before_words_for_sides() -> None:
    found = read(votes("ann b a a", "ann 2 1 1"))
    assert found.outcome.tolist() == [-1, -1]


@pytest.mark.parametrize("word", ["a", "A", "1", "Tie", "none"])
def test_a_word_that_names_an_item_is_no_word_elsewhere(word: str) -> None:
    rows = votes("ann x y x", "ann x y x", f"ann x {word} x", f"ann x y {word.lower()}")
    _, report = read_with_report(rows)
    assert report.malformed == (MalformedRow(4, "winner", f"{word.lower()!r} is neither 'x', 'y', a tie nor a skip"),)


@pytest.mark.parametrize("word", ["skip", "Skipped", "can't tell", "unknown", "none", "n/a"])
def test_skips_are_left_out_and_counted_apart(word: str) -> None:
    table = {"left": ["x", "x"], "right": ["y", "y"], "winner": ["x", word]}
    found, report = read_with_report(table)
    assert (len(found), report.kept, report.skips, report.malformed_count) == (1, 1, 1, 0)


def test_rows_all_skipped_are_no_judgments() -> None:
    with pytest.raises(FormatError, match="every row was skipped"):
        read({"left": ["x"], "right": ["y"], "winner": ["skip"]})


@pytest.mark.parametrize(
    "header",
    [
        "winner loser",
        "chosen not_chosen",
        "Candidate.Chosen Candidate.Not.Chosen",
        "won lost",
        "Winner_ID Loser_ID",
        "chosen rejected",
        "candidateChosen candidateNotChosen",
    ],
)
def test_winner_and_loser_have_no_sides(header: str) -> None:
    found = read(votes("x y", "y z", header=header))
    assert isinstance(found, Comparisons)
    assert not found.positions_known
    assert wins(found) == [("x", "y", 1), ("y", "z", 1)]


@pytest.mark.parametrize(
    "header",
    [
        "left right winner",
        "item_a item_b choice",
        "a b label",
        "option_a option_b preferred",
        "model_a model_b winner",
        "model_x model_y winner",
        "left_id right_id result",
        "image_left image_right answer",
        "item1 item2 vote",
        "condition_A condition_B preference",
        "first second Winner",
        "x y winner",
        "generator_1 generator_2 preference",
        "Left_Choice_ID Right_Choice_ID Winner_ID",
        "left_model right_model result",
        "response_a_id response_b_id winner",
    ],
)
def test_sides_go_by_many_names(header: str) -> None:
    found = read(votes("p q p", "q r r", header=header))
    assert found.positions_known
    assert wins(found) == [("p", "q", 1), ("q", "r", -1)]


@pytest.mark.parametrize(
    "name",
    [
        "worker",
        "WorkerId",
        "judge",
        "Judge ID",
        "rater",
        "observer",
        "voter",
        "user",
        "assessor",
        "annotator_id",
        "performer",
        "participant",
        "coder",
        "person",
    ],
)
def test_annotators_go_by_many_names(name: str) -> None:
    found, report = read_with_report({name: ["ann"], "left": ["x"], "right": ["y"], "winner": ["x"]})
    assert found.annotators.tolist() == ["ann"]
    assert report.columns["annotator"] == name


@pytest.mark.parametrize("name", ["prompt", "question_id", "task", "id", "pair"])
def test_what_may_number_the_rows_is_no_query(name: str) -> None:
    found = read({name: ["1", "2"], "left": ["x", "x"], "right": ["y", "y"], "winner": ["x", "x"]})
    assert not found.items.has_queries


@pytest.mark.parametrize("name", ["query", "topic", "scene", "Query ID", "context"])
def test_queries_keep_items_apart(name: str) -> None:
    found = read({name: ["s", "t"], "left": ["x", "x"], "right": ["y", "y"], "winner": ["x", "x"]})
    assert found.items.queries.tolist() == ["s", "t"]
    assert len(found.items) == 4


def test_a_query_of_its_own_for_every_row_earns_a_note() -> None:
    rows = {"context": [str(n) for n in range(30)], "left": ["x"] * 30, "right": ["y"] * 30, "winner": ["x"] * 30}
    _, report = read_with_report(rows)
    assert any("columns={'query': None}" in note for note in report.notes)
    _, report = read_with_report(rows, columns={"query": None})
    assert report.notes == ()


def test_sides_come_in_pairs_and_left_and_right_come_first() -> None:
    table = votes("m1 m2 p q q", header="model_x model_y left right winner")
    assert wins(read(table)) == [("p", "q", -1)]


def test_what_was_compared_comes_before_its_text() -> None:
    table = votes("long text m1 m2 m2", header="response_a response_b model_a model_b winner")
    assert wins(read(table)) == [("m1", "m2", -1)]


def test_two_columns_that_match_equally_well_are_left_to_the_user() -> None:
    table = votes("x y x ann bob", header="left right winner worker judge")
    with pytest.raises(
        FormatError, match=r"'worker' and 'judge' could each be the annotator.*columns={'annotator': 'worker'}"
    ):
        read(table)
    assert read(table, columns={"annotator": "judge"}).annotators.tolist() == ["bob"]
    assert read(table, columns={"annotator": None}).annotator is None
    assert read(table, columns={"annotator": ""}).annotator is None


def test_the_canonical_name_wins_and_the_report_says_so() -> None:
    table = votes("x y x ann bob", header="left right winner annotator judge")
    found, report = read_with_report(table)
    assert found.annotators.tolist() == ["ann"]
    assert report.notes == ("'annotator' was read as the annotator, not 'judge'.",)


def test_a_column_the_user_gave_a_role_plays_no_other() -> None:
    table = votes("s x 1", "s y 2", "t x 2", "t y 1", header="query item rank")
    found = read(table, columns={"list": "query"})
    assert isinstance(found, Rankings)
    assert len(found) == 2
    assert not found.items.has_queries


def test_roles_and_columns_that_do_not_exist_are_named() -> None:
    table = votes("x y x", header="left right winner")
    with pytest.raises(UnknownNameError, match=r"No role named 'annotater'; did you mean 'annotator'"):
        read(table, columns={"annotater": "who"})
    with pytest.raises(UnknownNameError, match=r"No column named 'wnner'; did you mean 'winner'"):
        read(table, columns={"winner": "wnner"})
    with pytest.raises(UnknownNameError, match="kind of judgments"):
        read(table, kind="comparison")
    with pytest.raises(UnknownNameError, match="column"):
        read(table, features=["colour"])


def test_a_missing_role_is_told_with_the_columns_found_and_the_remedy() -> None:
    with pytest.raises(FormatError) as caught:
        read({"left": ["x"], "right": ["y"], "comment": ["z"]})
    message = str(caught.value)
    for part in (
        "no column for winner",
        "'left', 'right', 'comment'",
        "columns={'winner': 'COLUMN'}",
        "left, right and winner",
    ):
        assert part in message


def test_the_kind_can_be_forced() -> None:
    table = votes("x 1 5", "y 2 4", header="item rank score")
    assert isinstance(read(table), Rankings)
    assert isinstance(read(table, kind="ratings"), Ratings)
    assert isinstance(read(table, columns={"grade": "score"}), Ratings)
    with pytest.raises(FormatError, match="no column for left"):
        read(table, kind="comparisons")


@pytest.mark.parametrize("grade", ["rating", "grade", "score", "label", "relevance", "stars"])
@pytest.mark.parametrize("item", ["item", "object", "document", "docno", "candidate", "stimulus"])
def test_items_with_grades_are_ratings(item: str, grade: str) -> None:
    found = read({item: ["x", "y"], grade: ["3", "4.5"], "worker": ["ann", "ann"]})
    assert isinstance(found, Ratings)
    assert found.grade.tolist() == [3.0, 4.5]


def test_the_order_of_trials_does_not_make_a_ranking() -> None:
    assert isinstance(read(votes("x 3 1", "y 4 2", header="item rating order")), Ratings)


def test_orders_are_lists_with_ties() -> None:
    found, report = read_with_report({"voter": ["ann", "ann"], "order": ["a > b=c>d", "d>a"]})
    assert found.items.labels[found.item].tolist() == ["a", "b", "c", "d", "d", "a"]
    assert found.place.tolist() == [0, 1, 1, 2, 0, 1]
    assert found.offsets.tolist() == [0, 4, 6]
    assert (report.kept, report.ties, len(found.annotators)) == (2, 1, 1)


def test_orders_that_cannot_be_lists_are_left_out() -> None:
    table = {"order": ["a>b", "b>a", "a>b>a", "a>>b", "b>a", "", "a>b"]}
    _, report = read_with_report(table)
    assert report.kept == 4
    assert report.malformed == (
        MalformedRow(3, "order", "'a>b>a' names an item twice"),
        MalformedRow(4, "order", "'a>>b' leaves a place empty"),
        MalformedRow(6, "order", "the order is missing"),
    )


def test_orders_without_any_order_are_refused() -> None:
    with pytest.raises(FormatError, match="contains no lists such as 'a>b=c>d'"):
        read({"order": ["1", "2"]})


def test_weights_of_lists_follow_their_lists() -> None:
    table = {"worker": ["bob", "ann"], "order": ["b>a", "a>b"], "weight": ["3", "2"]}
    found = read(table)
    assert found.annotators[found.annotator].tolist() == ["ann", "bob"]
    assert found.weight.tolist() == [2.0, 3.0]


def test_weights_of_long_lists_must_agree() -> None:
    table = votes("ann x 1 2", "ann y 2 2", header="worker item rank weight")
    assert read(table).weight.tolist() == [2.0]
    table["weight"][1] = "3"
    with pytest.raises(FormatError, match="rows of one list different weights"):
        read(table)


def test_one_unnamed_list_may_have_a_weight() -> None:
    assert read(votes("x 1 2", "y 2 2", header="item rank weight")).weight.tolist() == [2.0]


def test_an_item_twice_in_a_list_counts_once() -> None:
    table = votes("ann x 1", "ann y 2", "ann x 3", "bob x 1", header="worker item rank")
    found, report = read_with_report(table)
    assert found.lengths.tolist() == [2, 1]
    assert report.malformed == (MalformedRow(3, "item", "'x' is already in this list"),)


def test_every_unusable_row_is_named_with_its_column_and_reason() -> None:
    table = votes(
        "ann x y x 1",
        "ann x y z 1",
        ". x y x 1",
        "ann . y y 1",
        "ann x x x 1",
        "ann x y . 1",
        "ann x y x 0",
        "ann x y x -2",
        "ann x y x nan",
        "ann x y x inf",
        "ann x y x heavy",
        "ann x y x .",
        *["bob x y y 2"] * 12,
        header="worker left right winner weight",
    )
    found, report = read_with_report(table)
    assert report.malformed == (
        MalformedRow(2, "winner", "'z' is neither 'x', 'y', a tie nor a skip"),
        MalformedRow(3, "worker", "the annotator is missing"),
        MalformedRow(4, "left", "the left is missing"),
        MalformedRow(5, "right", "'x' is compared with itself"),
        MalformedRow(6, "winner", "the winner is missing"),
        MalformedRow(7, "weight", "the weight must be a positive number (1e-09 to 1e+09), got '0'"),
        MalformedRow(8, "weight", "the weight must be a positive number (1e-09 to 1e+09), got '-2'"),
        MalformedRow(9, "weight", "the weight must be a positive number (1e-09 to 1e+09), got 'nan'"),
        MalformedRow(10, "weight", "the weight must be a positive number (1e-09 to 1e+09), got 'inf'"),
        MalformedRow(11, "weight", "the weight must be a positive number (1e-09 to 1e+09), got 'heavy'"),
        MalformedRow(12, "weight", "the weight must be a positive number (1e-09 to 1e+09), got nothing"),
    )
    assert (report.rows_read, report.kept, report.malformed_count) == (24, 13, 11)
    assert (report.self_comparisons, report.duplicates, len(found)) == (1, 11, 13)
    assert found.weight.tolist() == [1.0] + [2.0] * 12


def test_ranks_and_grades_must_be_numbers() -> None:
    _, report = read_with_report(votes("x 1", "y second", "z 3", header="item rank"))
    assert report.malformed == (MalformedRow(2, "rank", "the rank must be a finite number, got 'second'"),)
    _, report = read_with_report(votes("x 1", "y good", "z inf", "u 3", header="item grade"))
    assert [m.line for m in report.malformed] == [2, 3]


def test_reading_warns_in_one_sentence_of_rows_left_out() -> None:
    table = votes("ann x y x", "ann x y z", "ann x y y")
    with pytest.warns(DataWarning, match=r"1 of 3 rows could not be used and was left out. The first: Row 2, column"):
        assert len(read(table)) == 2


def test_strict_reading_stops_at_the_first_unusable_row() -> None:
    with pytest.raises(FormatError, match="Row 2, column 'winner': 'z' is neither"):
        read(votes("ann x y x", "ann x y z", "ann x y y"), strict=True)


def test_mostly_unusable_rows_mean_a_wrong_mapping() -> None:
    with pytest.raises(FormatError, match=r"2 of 3 rows cannot be used.*Row 2, column 'winner'.*columns="):
        read(votes("ann x y x", "ann x y z", "ann x y w"))


def test_unusable_and_skipped_rows_alone_are_no_judgments() -> None:
    with pytest.raises(FormatError, match="1 of 2 rows cannot be used"):
        read(votes("ann x y skip", "ann x y z"))


def test_repeats_are_counted_for_named_annotators_only() -> None:
    same = votes("ann x y x", "ann x y x", "ann y x x", "bob x y x", "ann x y y")
    assert read_with_report(same)[1].duplicates == 1
    del same["worker"]
    assert read_with_report(same)[1].duplicates == 0


def test_repeats_are_counted_when_codes_outgrow_a_number() -> None:
    codes = np.array([2**30, 2**30, 5, 2**30], np.int32)
    assert count_duplicates(codes, codes, codes) == 2
    assert count_duplicates(codes, np.array([1, 2, 1, 1]), np.array([1, 1, 1, 1])) == 1


def test_repeated_grades_are_counted() -> None:
    table = votes("ann x 3", "ann x 3", "bob x 3", "ann x 4", header="worker item rating")
    assert read_with_report(table)[1].duplicates == 1


def test_features_are_numbers_where_they_can_be() -> None:
    table = votes("x y x 1.5 red", "x y y . .", header="left right winner size colour")
    found = read(table, features=["size", "Colour"])
    assert found.features["colour"].tolist() == ["red", ""]
    np.testing.assert_array_equal(found.features["size"], [1.5, np.nan])


def test_features_belong_to_comparisons() -> None:
    with pytest.raises(SettingError, match="Features describe comparisons"):
        read(votes("x 1", "y 2", header="item grade"), features=["grade"])


def test_features_of_rows_left_out_go_with_them() -> None:
    table = votes("x y x 1", "x y z 2", "x y y 3", header="left right winner size")
    found, _ = read_with_report(table, features=["size"])
    assert found.features["size"].tolist() == [1.0, 3.0]


def test_the_report_speaks_plainly_and_in_json() -> None:
    rows = ["ann x y x", "ann x y z", "ann x y skip", "bob x y tie", "ann x y x", "bob x x x", "bob x y y"]
    _, report = read_with_report(votes(*rows))
    assert isinstance(report, ImportReport)
    assert report.lines() == [
        "the columns: comparisons from the columns left, right, winner, worker as annotator.",
        "7 rows read, 4 kept (1 tie), 1 skipped by the annotator, 2 left out (1 compare an item with itself, "
        "1 name a winner that is not one of the two items).",
        "1 exact repeat of an annotator's own answer kept.",
        "Row 2, column 'winner': 'z' is neither 'x', 'y', a tie nor a skip.",
        "Row 6, column 'right': 'x' is compared with itself.",
    ]
    told = json.loads(json.dumps(report.as_dict()))
    assert told["malformed"][0] == {
        "line": 2,
        "column": "winner",
        "reason": "'z' is neither 'x', 'y', a tie nor a skip",
    }
    assert told["columns"] == {"left": "left", "right": "right", "winner": "winner", "annotator": "worker"}
    assert told["rows_read"] == told["kept"] + told["skips"] + told["malformed_count"]


def test_the_report_lists_the_first_hundred_and_counts_the_rest() -> None:
    _, report = read_with_report(votes(*["ann x y z"] * 150, *["ann x y x"] * 150))
    assert (len(report.malformed), report.malformed_count) == (100, 150)
    assert "… and 140 more rows left out." in report.lines()


def test_long_cells_are_cut_in_messages() -> None:
    _, report = read_with_report({"left": ["x"] * 2, "right": ["y"] * 2, "winner": ["x", "z" * 100_000]})
    assert len(report.malformed[0].reason) < 120


def test_strict_reading_refuses_skips_too() -> None:
    with pytest.raises(FormatError, match=r"1 rows are not judgments: skip \(1\)\. Pass strict=False"):
        read(votes("ann x y x", "ann x y skip"), strict=True)


def test_the_report_counts_the_usual_faults_apart() -> None:
    _, report = read_with_report(votes("ann x y x", "ann x y z", "ann x x x", "ann y z y"))
    assert (report.unknown_items, report.self_comparisons, report.broken_lines) == (1, 1, 0)
