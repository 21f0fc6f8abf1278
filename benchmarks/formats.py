"""Time to read external formats: a million judgments in each.

python benchmarks/formats.py                      all formats, a million judgments each
python benchmarks/formats.py --quick              a hundred thousand
python benchmarks/formats.py --only toloka,lmsys
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from report import duration, verdict
from votes import Votes, draw

import crowdrank

_ITEMS, _ANNOTATORS = 1_000, 500
_AIM_COLUMNS, _AIM_JSON = 3.0, 15.0
_JSON = (".json", ".jsonl")


def base(votes: Votes) -> pl.DataFrame:
    """Names, not numbers, and who said so."""
    labels = pl.Series([f"item {k:05d}" for k in range(votes.items)])
    people = pl.Series([f"annotator {k:03d}" for k in range(_ANNOTATORS)])
    who = np.random.default_rng(0).integers(_ANNOTATORS, size=len(votes))
    return pl.DataFrame(
        {
            "who": people.gather(who),
            "l": labels.gather(votes.left),
            "r": labels.gather(votes.right),
            "w": labels.gather(votes.winner),
            "b": labels.gather(votes.loser),
            "first": votes.left_won,
            "side": np.where(votes.left_won, "left", "right"),
            "t": 1.7e9 + np.arange(len(votes)),
            "n": np.arange(len(votes)),
        }
    )


def _csv(**columns: str | pl.Expr) -> Callable[[pl.DataFrame, Path], None]:
    return lambda frame, path: frame.select(**columns).write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")


def _spaced(names: dict[str, str | pl.Expr]) -> Callable[[pl.DataFrame, Path], None]:
    def write(frame: pl.DataFrame, path: Path) -> None:
        told = [(pl.col(e) if isinstance(e, str) else e).alias(name) for name, e in names.items()]
        frame.select(told).write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")

    return write


def _jsonl(**columns: str | pl.Expr) -> Callable[[pl.DataFrame, Path], None]:
    return lambda frame, path: frame.select(**columns).write_ndjson(path)


def _json(**columns: str | pl.Expr) -> Callable[[pl.DataFrame, Path], None]:
    return lambda frame, path: frame.select(**columns).write_json(path)


def _as(name: str) -> Callable[[pl.DataFrame, Path], None]:
    """By our own writer."""

    def write(frame: pl.DataFrame, path: Path) -> None:
        found = crowdrank.Comparisons.of(frame["l"], frame["r"], frame["w"], annotator=frame["who"], time=frame["t"])
        crowdrank.io.write(found, path, name)

    return write


def _lines(pattern: str, *columns: str | pl.Expr) -> Callable[[pl.DataFrame, Path], None]:
    def write(frame: pl.DataFrame, path: Path) -> None:
        path.write_text("\n".join(frame.select(pl.format(pattern, *columns)).to_series().to_list()) + "\n")

    return write


def _preflib(frame: pl.DataFrame, path: Path) -> None:
    """Orders of four: a place in a list is a judgment."""
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.broadcast_to(np.arange(1, 21), (frame.height // 4, 20)), axis=1)[:, :4]
    names = "".join(f"# ALTERNATIVE NAME {n}: item {n}\n" for n in range(1, 21))
    text = "\n".join(f"1: {a},{{{b},{c}}},{d}" for a, b, c, d in orders.tolist())
    path.write_text(f"# FILE NAME: big.toi\n{names}{text}\n")


def _jury(frame: pl.DataFrame, path: Path) -> None:
    frame[: frame.height // 2].select(
        Name="who", Code=pl.lit("0"), Ranked=pl.format("{},{}", "w", "b"), Unranked=pl.lit("")
    ).write_csv(path)


def _argilla(frame: pl.DataFrame, path: Path) -> None:
    ranked = pl.concat_list(pl.concat_list(pl.struct(x=pl.concat_list("w", "b")))).list.eval(
        pl.element().struct.field("x")
    )
    told = {"": ranked, ".users": pl.concat_list("who"), ".status": pl.concat_list(pl.lit("submitted"))}
    columns = {f"best.responses{end}": e for end, e in told.items()}
    frame.select(id="n", prompt=_WORD, **columns).write_json(path)


_MODEL = pl.struct(model_name=pl.lit("m"))
_ONE = pl.lit(1)
_WORD, _TRUE, _FALSE = pl.lit("word"), pl.lit("true"), pl.lit("false")
_DOC = pl.col("l").str.replace(" ", "-")
_MTURK_TIME = pl.lit("Mon Mar 01 09:01:00 PST 2021")
_ANNOTATION = pl.struct(
    id="n",
    completed_by="who",
    was_cancelled=pl.lit(False),
    ground_truth=pl.lit(False),
    created_at=pl.lit("2023-01-02T10:00:00.000000Z"),
    lead_time=pl.lit(4.5),
    result=pl.concat_list(
        pl.struct(
            from_name=pl.lit("cmp"), to_name=pl.lit("a,b"), type=pl.lit("pairwise"), value=pl.struct(selected="side")
        )
    ),
)
_PAIR_OF_TURNS = pl.concat_list(pl.struct(role=pl.lit("user"), content=pl.lit("a question of some length")))

FILES: dict[str, tuple[str, Callable[[pl.DataFrame, Path], None]]] = {
    "tidy": (".csv", _as("tidy")),
    "tidy, json": (".json", _as("tidy")),
    "crowd-kit": (".csv", _as("crowd-kit")),
    "evalica": (".csv", _as("evalica")),
    "comparative-judgement": (
        ".csv",
        _csv(judge="who", candidate_chosen="w", candidate_not_chosen="b", time_taken=_ONE),
    ),
    "no-more-marking": (
        ".csv",
        _csv(
            id="n",
            timeTaken=_ONE,
            createdAt=pl.lit("2020-02-03T09:00:00.000Z"),
            judgeId="who",
            chosen="w",
            notChosen="b",
            task=_WORD,
        ),
    ),
    "gavel": (
        ".csv",
        _spaced(
            {"Annotator ID": "who", "Winner ID": "w", "Loser ID": "b", "Time": pl.lit("2017-01-14 12:00:01.123456")}
        ),
    ),
    "jury": (".csv", _jury),
    "all-our-ideas": (
        ".csv",
        _spaced(
            {
                "Vote ID": "n",
                "Session ID": "who",
                "Winner ID": "w",
                "Loser ID": "b",
                "Left Choice ID": "l",
                "Right Choice ID": "r",
                "Created at": pl.lit("2011-05-01 10:00:00 UTC"),
                "Response Time (s)": _ONE,
                "Valid": pl.lit("TRUE"),
            }
        ),
    ),
    "mturk": (
        ".csv",
        _spaced(
            {
                "HITId": "n",
                "AssignmentId": "n",
                "WorkerId": "who",
                "AssignmentStatus": pl.lit("Approved"),
                "SubmitTime": _MTURK_TIME,
                "WorkTimeInSeconds": _ONE,
                "Input.model1": "l",
                "Input.model2": "r",
                "Input.swapped": _FALSE,
                "Answer.choice": "side",
            }
        ),
    ),
    "toloka": (
        ".tsv",
        _spaced(
            {
                "INPUT:image_left": "l",
                "INPUT:image_right": "r",
                "OUTPUT:result": "side",
                "GOLDEN:result": pl.lit(""),
                "ASSIGNMENT:worker_id": "who",
                "ASSIGNMENT:status": pl.lit("APPROVED"),
                "ASSIGNMENT:submitted": pl.lit("2020-05-01T10:01:00.2"),
            }
        ),
    ),
    "appen": (
        ".csv",
        _spaced(
            {
                "_unit_id": "n",
                "_created_at": pl.lit("4/1/2014 10:00:00"),
                "_golden": _FALSE,
                "_tainted": _FALSE,
                "_worker_id": "who",
                "_ip": pl.lit("192.0.2.1"),
                "better": "side",
                "item_a": "l",
                "item_b": "r",
            }
        ),
    ),
    "label-studio": (".json", _json(id="n", data=pl.struct(a="l", b="r"), annotations=pl.concat_list(_ANNOTATION))),
    "label-studio-min": (
        ".csv",
        _csv(
            annotation_id="n",
            annotator="who",
            cmp="side",
            created_at=pl.lit("2023-01-02T10:00:00Z"),
            id="n",
            lead_time=_ONE,
            text1="l",
            text2="r",
            updated_at=_WORD,
        ),
    ),
    "argilla": (".json", _argilla),
    "potato": (
        ".jsonl",
        _jsonl(
            id="n",
            user_id="who",
            responses=pl.concat_list("l", "r"),
            annotations=pl.struct(
                preference=pl.struct(selection=pl.when("first").then(pl.lit("A")).otherwise(pl.lit("B")))
            ),
        ),
    ),
    "prodigy": (
        ".jsonl",
        _jsonl(
            accept=pl.struct(text="l"),
            reject=pl.struct(text="r"),
            mapping=pl.struct(A=pl.lit("accept"), B=pl.lit("reject")),
            answer=pl.when("first").then(pl.lit("accept")).otherwise(pl.lit("reject")),
            _annotator_id="who",
            _timestamp="t",
        ),
    ),
    "lmsys": (
        ".jsonl",
        _jsonl(
            question_id="n",
            model_a="l",
            model_b="r",
            winner=pl.when("first").then(pl.lit("model_a")).otherwise(pl.lit("model_b")),
            judge="who",
            conversation_a=_PAIR_OF_TURNS,
            conversation_b=_PAIR_OF_TURNS,
            tstamp="t",
        ),
    ),
    "lmsys-55k": (
        ".csv",
        _csv(
            id="n",
            model_a="l",
            model_b="r",
            prompt=_WORD,
            response_a=_WORD,
            response_b=_WORD,
            winner_model_a=pl.col("first").cast(pl.Int8),
            winner_model_b=(~pl.col("first")).cast(pl.Int8),
            winner_tie=pl.lit(0),
        ),
    ),
    "fastchat": (
        ".jsonl",
        _jsonl(
            tstamp="t",
            type=pl.col("side") + "vote",
            models=pl.concat_list("l", "r"),
            states=pl.concat_list(_MODEL, _MODEL),
            ip="who",
        ),
    ),
    "mt-bench": (
        ".jsonl",
        lambda frame, path: _jsonl(
            question_id="n",
            model_1="l",
            model_2="r",
            g1_winner=pl.lit("model_1"),
            g2_winner=pl.lit("tie"),
            judge=pl.concat_list("who", _WORD),
            tstamp="t",
        )(frame[: frame.height // 2], path),
    ),
    "alpaca-eval": (
        ".json",
        _json(
            instruction=_WORD,
            output_1=_WORD,
            generator_1="l",
            output_2=_WORD,
            generator_2="r",
            annotator="who",
            preference=pl.when("first").then(1.0).otherwise(2.0),
        ),
    ),
    "pwcmp": (
        ".csv",
        _csv(
            observer="who",
            session=_ONE,
            scene=_WORD,
            condition_A="l",
            condition_B="r",
            is_A_selected=pl.col("first").cast(pl.Int8),
        ),
    ),
    "preflib": (".toi", _preflib),
    "letor": (
        ".txt",
        _lines(
            "{} qid:{} 1:0.5 2:0.25 3:{} #docid = {}",
            pl.col("first").cast(pl.Int8),
            pl.col("n") // 100,
            "n",
            _DOC + "-" + pl.col("n").cast(pl.String),
        ),
    ),
    "trec-qrels": (".qrels", _lines("{} 0 {} {}", pl.col("n") // 100, _DOC, pl.col("first").cast(pl.Int8))),
    "trec-run": (
        ".txt",
        _lines(
            "{} Q0 {} {} {} {}",
            pl.col("n") // 100,
            _DOC + "-" + pl.col("n").cast(pl.String),
            pl.col("n") % 100,
            -pl.col("n"),
            pl.lit("tag"),
        ),
    ),
    "crowdrank": (
        ".csv",
        _csv(
            vote_id="n",
            annotator="who",
            left="l",
            right="r",
            winner="w",
            answered_at="t",
            response_ms=_ONE,
            is_gold=_FALSE,
            valid=_TRUE,
        ),
    ),
}


def measure(name: str, rows: int) -> tuple[float, float]:
    """Seconds it took, and what they should be."""
    suffix, make = FILES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export{suffix}"
        make(base(draw(_ITEMS, rows)), path)
        start, worked = time.perf_counter(), time.process_time()
        found, report = crowdrank.read_with_report(path)
        took, worked = time.perf_counter() - start, time.process_time() - worked
        size = path.stat().st_size / 1e6
    if report.format != name.partition(",")[0] or report.kept < rows // 4:
        raise SystemExit(f"{name}: read as {report.format}, {report.kept:,} of {rows:,} kept.")
    print(f"  {name:<24} {size:>7,.0f} MB   {duration(took):>9} ({duration(worked)} of work)   {found}", flush=True)
    return took, _AIM_JSON if suffix in _JSON else _AIM_COLUMNS


def main() -> None:
    rows = 100_000 if "--quick" in sys.argv else 1_000_000
    only = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else list(FILES)
    print(f"Reading {rows:,} judgments:")
    times = {name: measure(name, rows) for name in only}
    for name, (took, aim) in times.items():
        print(verdict(took < aim, f"{name}, {rows:,} judgments: {duration(took)} (aim under {aim:g} s)"))


if __name__ == "__main__":
    main()
