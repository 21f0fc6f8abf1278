"""External formats: each file is recognised by its content, and the pitfalls of each format are avoided."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdrank.io
from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import FormatError, SettingError
from crowdrank.io import ImportReport, list_formats, read, read_with_report
from crowdrank.io.formats.registry import SIGNATURES, confirms_format, detect_format
from crowdrank.io.sources import open_sources

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = [known.name for known in list_formats()]

# fixture: (format, judgments, dropped)
COMPARED = {
    "crowd-kit.csv": ("w1 pear>fig, w1 fig<plum, w2 pear<fig, w3 pear>plum", {"malformed_count": 2}),
    "evalica.csv": ("pear>fig, fig<plum, right>left, plum=pear", {}),
    "evalica-llmfao.csv": ("w1 m2>m1, w1 m1=m3, w2 m2<m3", {}),
    "comparative-judgement.csv": ("j1 s1>s2, j2 s3>s1, j1 s1>s3", {"malformed_count": 1}),
    "comparative-judgement-dots.csv": ("j1 s1>s2, j1 s2>s3, j2 s3>s1", {}),
    "comparative-judgement-spaces.csv": ("j1 s1>s2, j2 s3>s1", {}),
    "no-more-marking.csv": ("judge1 script1>script2, judge1 script3>script2, judge2 script1>script3", {}),
    "gavel.csv": ("1 10>11, 1 12>11, 2 10>12", {}),
    "all-our-ideas.csv": ("501 31>32, 501 31<33", {"set_aside": {"marked invalid": 1}}),
    "mturk.csv": ("W1 bot>human, W1 human>bot, W3 other<bot, W3 bot=other", {"set_aside": {"rejected": 1}}),
    "mturk-crowd-html.csv": ("W1 a.png>b.png, W2 b.png<c.png", {}),
    "toloka.tsv": ("u1 a.png>b.png, u3 c.png<a.png", {"set_aside": {"gold": 1, "rejected": 1, "not submitted": 1}}),
    "appen.csv": ("901 x>y, 901 y<z", {"skips": 1, "set_aside": {"gold": 1, "tainted": 1}}),
    "appen-aggregated.csv": ("x>y, x<z", {"set_aside": {"gold": 1}}),
    "label-studio.json": ("5 one>two, 6 three<one, 7 three=one", {"skips": 1, "set_aside": {"gold": 1}}),
    "label-studio-min.csv": ("5 one>two, 6 three<one", {}),
    "label-studio-min.json": ("5 one>two, 6 three<one", {}),
    "argilla-label.json": ("u1 aa>bb, u2 aa=bb, u1 bb<cc", {}),
    "potato.jsonl": ("ann alpha>beta, ann beta<gamma, bob alpha=gamma", {}),
    "potato-scale.jsonl": ("ann alpha>beta, ann beta<gamma, bob alpha=gamma", {}),
    "prodigy.jsonl": ("ann B<A, ann A<B, bob A>B", {"skips": 1}),
    "lmsys.jsonl": (
        "arena_user_1 m1>m2, arena_user_2 m2=m3, arena_user_1 m3=m1",
        {"malformed_count": 1, "both_bad": 1},
    ),
    "lmsys-100k.json": ("ab12 m1<m2, cd34 m2=m3", {}),
    "lmsys-55k.csv": ("m1>m2, m2<m3, m1=m3", {"malformed_count": 1}),
    "lmsys-55k-derived.csv": ("m1>m2, m2<m3, m1=m3", {"malformed_count": 1}),
    "fastchat.jsonl": (
        "voter 1 m1>m2, voter 2 m2<m3, voter 1 m3=m1, voter 3 m1=m3",
        {"malformed_count": 1, "broken_lines": 1, "set_aside": {"not a vote": 1}, "both_bad": 1},
    ),
    "comparia.csv": ("v1 m1>m2, v1 m2=m3, v2 m3<m1", {}),
    "mt-bench.jsonl": (
        "gpt-4 pair-v2 m1>m2, gpt-4 pair-v2 m1=m3, gpt-4 pair-v2 m2<m3, gpt-4 pair-v2 m2<m1, gpt-4 pair-v2 m3>m1",
        {"skips": 1},
    ),
    "alpaca-eval.json": ("gpt base<new, gpt base>new, gpt base<new, gpt base=new", {"skips": 1, "malformed_count": 1}),
    "judgebench.jsonl": ("o1 response_A>response_B, o1 response_B<response_A, o1 response_A=response_B", {"skips": 1}),
    "judgebench-labels.jsonl": ("response_A>response_B, response_A<response_B", {}),
    "pandalm.json": (
        "annotator1 gpt_j<llama, annotator2 gpt_j<llama, annotator3 gpt_j=llama, annotator1 llama>opt, "
        "annotator3 llama>opt, annotator1 gpt_j>opt, annotator2 gpt_j<opt, annotator3 gpt_j>opt",
        {},
    ),
    "arena-hard.jsonl": ("gpt baseline>m1, gpt m1=baseline, gpt m0<m2", {"skips": 1}),
    "openai-summaries.jsonl": ("w1 ref<sup2, w2 sup4>ref", {}),
    "pgn.pgn": ("Vera>Max, Max=Nona, Nona<Vera", {"skips": 1}),
    "shiny-cj.csv": (
        "1 p4<p2, 1 p4>p7, 2 p2<p7",
        {"set_aside": {"not a decision": 1, "ranking of more than two": 1}},
    ),
    "pwcmp.csv": ("o1 c1>c2, o1 c2<c3, o2 c1<c2, o2 c1<c2", {"duplicates": 1}),
    "asap.csv": ("1>2, 1>3, 2>1, 2>3, 3>2", {}),
    "asap-spaces.txt": ("1>2, 2>1", {}),
    "asap-named.csv": ("x>y, x>z, y>x, y>z", {}),
    "crowdrank.csv": ("ann x>y, bob y=z", {"skips": 1, "set_aside": {"gold": 1, "marked invalid": 1}}),
    "tidy.csv": ("ann x>y, bob y=z, cy x<z", {}),
}
# fixture: lists, each with its weight where it counts more than once
LISTED = {
    "surveymonkey.csv": ("101: Milk>Tea>Juice; 102: Tea>Juice>Milk", {}),
    "qualtrics.csv": ("R_1: milk>tea>juice; R_2: tea>juice>milk", {"set_aside": {"preview of the survey": 1}}),
    "jury.csv": ("judge 1: 4>2>7; judge 2: 2>4", {"set_aside": {"fewer than two projects ranked": 2}}),
    "label-studio-ranker.json": ("5: mdn>wiki>blog; 6: wiki>mdn", {}),
    "label-studio-buckets.json": ("5: b=c>a; 6: a", {"set_aside": {"cancelled": 1}}),
    "argilla.json": (
        "u1: reply-2>reply-1>reply-3; u2: reply-3>reply-1>reply-2",
        {"set_aside": {"discarded": 1, "draft": 1}},
    ),
    "preflib.toi": (
        "pear, green>fig>plum>quince = best; fig>pear, green=plum; plum=quince = best>pear, green",
        {"malformed_count": 1},
    ),
    "preflib-old.soc": ("fig>pear>plum; pear>plum>fig", {}),
    "trec-run.txt": ("sysA: FBIS3-2>FBIS3-1>FBIS3-3; sysA: FBIS3-1=FBIS3-2", {}),
}
GRADED = {
    "letor.txt": "10 GX001 2, 10 GX002 0, 11 GX001 1",
    "trec.qrels": "301 FBIS3-1 1, 301 FBIS3-2 0, 302 FBIS3-1 -2, 302 FBIS3-9 2",
    "tidy-grades.jsonl": "x 3, y 1",
    "mt-bench-grades.jsonl": "m1 9, m2 6",
}
UNJUDGED = ("all-our-ideas-non-votes.csv",)
ALL = sorted(path.name for path in FIXTURES.iterdir())


def format_of(fixture: str) -> str:
    """The format in the name of a fixture, which may have a suffix."""
    return max((name for name in [*NAMES, "trec"] if fixture.startswith(name)), key=len).replace("trec", "trec-qrels")


def expected_format(fixture: str) -> str:
    return {"trec.qrels": "trec-qrels", "trec-run.txt": "trec-run"}.get(fixture) or format_of(fixture)


def load(fixture: str, **options: Any) -> tuple[Any, ImportReport]:
    return read_with_report(FIXTURES / fixture, **options)


def said(found: Comparisons) -> str:
    signs = {1: ">", 0: "=", -1: "<"}
    labels = found.items.labels
    who = [""] * len(found) if found.annotator is None else [f"{name} " for name in found.annotators[found.annotator]]
    rows = zip(who, labels[found.left], found.outcome.tolist(), labels[found.right], strict=True)
    return ", ".join(f"{name}{left}{signs[outcome]}{right}" for name, left, outcome, right in rows)


def listed(found: Rankings) -> str:
    frame = found.to_frame()
    texts = []
    for rows in frame.partition_by("list", maintain_order=True):
        places = [">".join(["=".join(place["item"]) for place in rows.partition_by("rank", maintain_order=True)])]
        texts += [f"{rows['annotator'][0]}: {places[0]}" if "annotator" in rows.columns else places[0]]
    return "; ".join(texts)


def test_every_format_has_a_fixture_and_every_fixture_a_test() -> None:
    assert {expected_format(fixture) for fixture in ALL} == set(NAMES)
    assert set(ALL) == {*COMPARED, *LISTED, *GRADED, *UNJUDGED}


@pytest.mark.parametrize("fixture", ALL)
def test_no_two_formats_claim_the_same_file(fixture: str) -> None:
    source = open_sources(FIXTURES / fixture)[0]
    claimed = [known.name for known in SIGNATURES[:-1] if known.fits(source) and confirms_format(known.name, source)]
    assert claimed == [name for name in [expected_format(fixture)] if name != "tidy"]


def check(report: ImportReport, fixture: str, dropped: dict[str, Any]) -> None:
    told = {"skips": 0, "malformed_count": 0, "set_aside": {}, "duplicates": 0} | dropped
    told.pop("duplicates") if "duplicates" not in dropped else None
    assert report.format == expected_format(fixture)
    assert {name: getattr(report, name) for name in told} == told
    assert report.rows_read == report.kept + report.skips + report.malformed_count + sum(report.set_aside.values())
    json.dumps(report.as_dict())


@pytest.mark.parametrize("fixture", COMPARED)
def test_comparisons_are_read_as_they_were_meant(fixture: str) -> None:
    found, report = load(fixture)
    expected, dropped = COMPARED[fixture]
    assert said(found) == expected
    check(report, fixture, dropped)


@pytest.mark.parametrize("fixture", LISTED)
def test_lists_are_read_as_they_were_meant(fixture: str) -> None:
    found, report = load(fixture)
    expected, dropped = LISTED[fixture]
    assert isinstance(found, Rankings)
    assert listed(found) == expected
    check(report, fixture, dropped)


@pytest.mark.parametrize("fixture", GRADED)
def test_grades_are_read_as_they_were_meant(fixture: str) -> None:
    found, report = load(fixture)
    assert isinstance(found, Ratings)
    names = ["query", "item", "grade"] if found.items.has_queries else ["item", "grade"]
    rows = found.to_frame().select(names).rows()
    assert ", ".join(" ".join(f"{c:g}" if isinstance(c, float) else c for c in row) for row in rows) == GRADED[fixture]
    check(report, fixture, {"set_aside": {"no rating": 1}} if fixture.startswith("mt-bench") else {})


@pytest.mark.parametrize("fixture", UNJUDGED)
def test_non_votes_are_skips_and_nothing_else(fixture: str) -> None:
    assert open_sources(FIXTURES / fixture)[0].table.rows == 3
    with pytest.raises(FormatError, match="every row was skipped"):
        load(fixture)


@pytest.mark.parametrize("fixture", [f for f in ALL if f.endswith((".csv", ".tsv")) and not f.startswith("asap")])
def test_whose_format_it_is_does_not_depend_on_the_container(fixture: str, tmp_path: Path) -> None:
    """A table copied to Parquet is recognised as the same format."""
    table = open_sources(FIXTURES / fixture)[0].table
    table.load(table.columns, None).write_parquet(tmp_path / "same.parquet")
    source = open_sources(tmp_path / "same.parquet")[0]
    assert detect_format(source) == expected_format(fixture)


def test_sides_are_kept_apart_from_who_won() -> None:
    assert load("mturk.csv")[0].positions_known
    assert not load("gavel.csv")[0].positions_known
    assert not load("alpaca-eval.json")[0].positions_known


def test_swapped_sides_are_turned_back_whatever_names_the_items() -> None:
    by_id, _ = load("mturk.csv", columns={"left": "Input.id1", "right": "Input.id2"})
    assert said(by_id) == "W1 d1>d2, W1 d4>d3, W3 d6>d5, W3 d5=d7"
    by_side, _ = load("mturk.csv", columns={"left": "lhs_id", "right": "rhs_id"})
    assert said(by_side) == "W1 d1>d2, W1 d4>d3, W3 d6>d5, W3 d5=d7"


def test_a_user_may_name_another_shape_than_the_format_does() -> None:
    found, report = load("all-our-ideas.csv", columns={"winner": "Winner Text", "loser": "Loser Text"})
    assert said(found) == "501 more trees>more bins, fewer dogs, 501 wider paths>more trees"
    assert report.columns["annotator"] == "Session ID"


def test_milliseconds_become_seconds() -> None:
    np.testing.assert_array_equal(load("no-more-marking.csv")[0].duration, [8.5, 4.2, np.nan])
    np.testing.assert_array_equal(load("crowdrank.csv")[0].duration, [5.0, 1.5])


@pytest.mark.parametrize(
    ("fixture", "first"),
    [
        ("mturk.csv", "2021-03-01T17:01:00"),
        ("appen.csv", "2014-04-01T10:00:00"),
        ("toloka.tsv", "2020-05-01T10:01:00.2"),
        ("all-our-ideas.csv", "2011-05-01T10:00:00"),
        ("label-studio.json", "2023-01-02T10:00:00"),
        ("comparative-judgement-dots.csv", "2015-03-01T10:00:00"),
    ],
)
def test_dates_of_all_platforms_are_read(fixture: str, first: str) -> None:
    found, _ = load(fixture)
    assert found.time[0] == pytest.approx(np.datetime64(first, "ms").astype(float) / 1000, abs=1e-6)


def test_a_graded_preference_is_shared_out_as_weight() -> None:
    found, _ = load("alpaca-eval.json")
    assert found.weight.tolist() == [1.0, 0.75, 0.25, 1.0]
    second = np.where(found.outcome == -1, 1.0, np.where(found.outcome == 0, 0.5, 0.0))
    assert np.average(second, weights=found.weight) == pytest.approx(np.mean([2.0, 1.25, 1.5]) - 1)


def test_counts_of_a_matrix_and_of_lists_are_weights() -> None:
    assert load("asap.csv")[0].weight.tolist() == [3.0, 1.0, 1.0, 2.0, 0.5]
    assert load("preflib.toi")[0].weight.tolist() == [4.0, 3.0, 1.0]


def test_scenes_and_topics_are_queries() -> None:
    assert load("pwcmp.csv")[0].items.queries.tolist() == ["bike", "car"]
    assert load("trec-run.txt")[0].items.queries.tolist() == ["301", "302"]


@pytest.mark.parametrize("fixture", sorted({*COMPARED, *LISTED}))
def test_nothing_personal_is_carried_over(fixture: str) -> None:
    found, report = load(fixture)
    text = found.to_frame().write_csv() + json.dumps(report.as_dict())
    for secret in ("192.0.2.", "example.org", "Lovelace", "Turing", "738291", "Berlin", "Ada"):
        assert secret not in text


@pytest.mark.parametrize("name", ["_ip", "_city"])
def test_personal_columns_are_no_features(name: str) -> None:
    with pytest.raises(FormatError, match=f"column '{name}' may contain personal data or secrets"):
        load("appen.csv", features=[name])
    assert load("appen.csv", features=["_channel"])[0].features["_channel"].tolist() == ["neodev", "neodev"]


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("Name,Email,Description,Secret", "Gavel's list of judges"),
        ("Mu,Sigma Squared,Name,Location,Description,Active", "Gavel's list of projects"),
        ("QR Code,First Name,Last Name,DOB,Scaled Score,True Score", "results about pupils"),
        ("Wikisurvey ID,Idea ID,Idea Text,Wins,Losses,Score", "list of ideas"),
    ],
)
def test_files_that_lie_beside_judgments_are_told_apart(tmp_path: Path, header: str, told: str) -> None:
    path = tmp_path / "export.csv"
    path.write_text(header + "\n" + ",".join("1" for _ in header.split(",")) + "\n")
    with pytest.raises(FormatError, match=told):
        read(path)


@pytest.mark.parametrize("fixture", ["toloka.tsv", "prodigy.jsonl", "crowd-kit.csv", "fastchat.jsonl"])
def test_strict_reading_refuses_any_drop(fixture: str) -> None:
    with pytest.raises(FormatError, match=r"rows are not judgments|Line \d"):
        load(fixture, strict=True)


def test_a_format_can_be_named_where_guessing_is_wrong() -> None:
    assert load("evalica-llmfao.csv", format="tidy")[1].format == "tidy"
    # The items are named like sides, and only evalica's rule distinguishes them.
    assert load("evalica.csv", format="tidy")[1].unknown_items == 2


def test_an_unknown_format_is_told_with_all_that_are_known() -> None:
    with pytest.raises(SettingError) as caught:
        load("evalica.csv", format="evalicca")
    assert "did you mean 'evalica'" in str(caught.value)
    assert all(name in str(caught.value) for name in NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tidy"])
def test_a_file_that_is_not_of_the_format_named_is_an_error_of_ours(name: str, tmp_path: Path) -> None:
    """A file read as another format is read or raises a CrowdrankError."""
    for fixture in ("tidy.csv", "gavel.csv", "lmsys.jsonl", "label-studio.json", "trec.qrels"):
        try:
            load(fixture, format=name)
        except FormatError as error:
            assert str(error).startswith(fixture)


def test_text_with_an_unknown_suffix_is_read(tmp_path: Path) -> None:
    for fixture, known in (("preflib.toi", "preflib"), ("tidy.csv", "tidy"), ("lmsys.jsonl", "lmsys")):
        shutil.copy(FIXTURES / fixture, tmp_path / "votes.odd")
        assert read_with_report(tmp_path / "votes.odd")[1].format == known


def test_documents_and_binary_files_are_refused_by_their_suffix(tmp_path: Path) -> None:
    for suffix in ("xls", "html", "pkl"):
        shutil.copy(FIXTURES / "tidy.csv", tmp_path / f"votes.{suffix}")
        with pytest.raises(FormatError, match=f"suffix '.{suffix}' cannot be read.*csv"):
            read(tmp_path / f"votes.{suffix}")


def test_cells_that_hold_whole_conversations_are_read(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    text = (FIXTURES / "lmsys-55k.csv").read_text().replace("[", "[" + "long " * 40_000)
    path.write_text(text)
    assert len(read_with_report(path)[0]) == 3


def test_a_list_of_objects_survives_one_that_is_none(tmp_path: Path) -> None:
    records = json.loads((FIXTURES / "alpaca-eval.json").read_text())
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps([records[0], 7, *records[1:3]]))
    _, report = read_with_report(path)
    assert (report.kept, report.broken_lines, report.malformed[0].line) == (3, 1, 2)


def test_ticked_boxes_of_crowd_html_are_answers(tmp_path: Path) -> None:
    text = (FIXTURES / "mturk-crowd-html.csv").read_text()
    for label in ("left", "right"):
        ticked = ",".join(f'""{side}"":{str(side == label).lower()}' for side in ("left", "right"))
        text = text.replace(f'{{""label"":""{label}""}}', f"{{{ticked}}}")
    path = tmp_path / "batch.csv"
    path.write_text(text)
    assert said(read(path)) == "W1 a.png>b.png, W2 b.png<c.png"


def test_every_format_describes_itself() -> None:
    assert NAMES[-1] == "tidy"
    assert all(known.name and known.description.endswith(".") and known.known_by for known in list_formats())
    assert len(set(NAMES)) == len(NAMES)


def test_frames_are_recognised_too() -> None:
    frame = pl.DataFrame({"observer": ["o"], "condition_A": ["x"], "condition_B": ["y"], "is_A_selected": [0]})
    found, report = read_with_report(frame)
    assert (report.format, said(found)) == ("pwcmp", "o x<y")


def test_every_format_has_its_row_and_its_section_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = {line.split("]")[0][3:]: line.split("|")[4].strip() for line in page.splitlines() if line.startswith("| [")}
    assert rows == {known.name: "yes" if known.writer else "" for known in list_formats()}
    assert all(f"\n## {name}\n" in page for name in NAMES)


def test_a_plain_table_is_read_without_importing_any_format(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("annotator,left,right,winner\nann,x,y,x\n")
    script = (
        "import sys, crowdrank; crowdrank.read(sys.argv[1]);"
        "print(sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('crowdrank.io.formats.')))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['registry']"


def test_library_messages_name_no_options_of_the_command_line() -> None:
    package = Path(crowdrank.io.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in (*package.rglob("*.py"), *package.parent.glob("data/*.py"))]
    assert not [flag for text in texts for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)]
