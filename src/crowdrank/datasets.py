"""Public sets of judgments, read from your own copies: nothing is downloaded, and no data come with the package.

`CATALOGUE` has what is known about each: its files with checksums, source, licence and citation.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from crowdrank.data import Judgments
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.evaluation import Gold
from crowdrank.io import read

__all__ = ["CATALOGUE", "Dataset", "DatasetInfo", "available", "load"]

_COLUMNS = {
    "comparisons": "query, worker, left, right, winner",
    "ratings": "query, worker, item, rating",
    "rankings": "query, worker, item, rank",
}


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """Description of a public data set. `CATALOGUE` has one per set.

    Parameters
    ----------
    name : str
        Name for `load`.
    description : str
        What was judged, and by whom.
    kind : {"comparisons", "ratings", "rankings"}
        Kind of judgments.
    size : str
        Number of items, annotators and judgments.
    file : str
        File of the judgments, relative to the data folder.
    sha256 : str
        Its checksum.
    source : str
        Where the set can be obtained.
    licence : str
        Under which terms; "not stated" if we found none.
    citation : str
        What to cite.
    gold_file, gold_sha256 : str, default ""
        File of the true values, and its checksum; empty if there is none.
    original : str, default ""
        Name or pattern of the file as its authors publish it, if it can be read as it is.
    columns : mapping, default {}
        Columns of `file` by role, where their names do not say it.
    original_columns : mapping, default {}
        The same for the original file.

    Examples
    --------
    >>> import crowdrank as cr
    >>> cr.datasets.CATALOGUE["mtbench-human"].licence
    'CC BY 4.0'
    """

    name: str
    description: str
    kind: str
    size: str
    file: str
    sha256: str
    source: str
    licence: str
    citation: str
    gold_file: str = ""
    gold_sha256: str = ""
    original: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    original_columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        """The columns that `file` must have."""
        return ", ".join(dict.fromkeys(self.columns.values())) if self.columns else _COLUMNS[self.kind]


_PREFLIB = "N. Mattei, T. Walsh (2013). PrefLib: a library for preferences. ADT."

_ENTRIES = (
    DatasetInfo(
        name="sushi",
        description="Diners order ten kinds of sushi.",
        kind="rankings",
        size="10 items, 5,000 annotators with one complete list each",
        file="preflib_sushi/orders.csv",
        sha256="5b994125597da6026e1bdf4a4ce3be7375b70729ad64c68ae702e0ffcd180493",
        original="00014-00000001.soc",
        columns={"annotator": "worker", "order": "order_best_first"},
        source="https://www.preflib.org/dataset/00014",
        licence="not stated",
        citation=f"T. Kamishima (2003). Nantonac collaborative filtering. KDD. {_PREFLIB}",
    ),
    DatasetInfo(
        name="dots",
        description="Workers order four pictures by their number of dots, at four levels of difficulty.",
        kind="rankings",
        size="4 items in 4 queries, 3,183 annotators with one list each",
        file="preflib_dots/rankings.csv",
        sha256="d47aed18c018db5bd60190cc9d1009dbbbcaace3306c179f7b030fb35602c98c",
        gold_file="preflib_dots/gold.csv",
        gold_sha256="3879470e43068e82bde0b81b48feeb499d54809a57fec39106133ecf8bc0d89b",
        source="https://www.preflib.org/dataset/00024",
        licence="not stated",
        citation="A. Mao, A. D. Procaccia, Y. Chen (2013). Better human computation through principled voting. AAAI. "
        + _PREFLIB,
    ),
    DatasetInfo(
        name="lee-rankings",
        description="People order facts such as presidents by term or cities by population, in 23 tasks.",
        kind="rankings",
        size="305 items in 23 queries, 2,133 annotators with one list each",
        file="lee_rankings/rankings.csv",
        sha256="5f1bd7baf64a73eb2e9c7ceb02b8b567a4064bc299e603e88526a136ab4e8b5d",
        gold_file="lee_rankings/gold.csv",
        gold_sha256="f941e5a8ab8b23282fab10554368d375c47bc27e41f10fcae73e01c9bf0f2fe8",
        source="https://doi.org/10.1371/journal.pone.0096431",
        licence="not stated",
        citation="M. D. Lee, M. Steyvers, B. Miller (2014). A cognitive model for aggregating people's rankings. "
        "PLOS ONE 9(5).",
    ),
    DatasetInfo(
        name="mq2008-agg",
        description="Retrieval systems rank web pages; relevance is the truth. The training queries of LETOR 4.0.",
        kind="rankings",
        size="9,630 items in 471 queries, 25 annotators, 10,516 lists",
        file="mq2008_agg/dev_rankings.csv",
        sha256="2cd9077cb659fa64ac9614214d10fe98b7016d785b0bf3cb9f1b9a9671b3e29c",
        gold_file="mq2008_agg/dev_gold.csv",
        gold_sha256="e03294001e83c6190712b15e40ab44df9abc131d761f3009d9c508c1687e7d04",
        source="https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/",
        licence="LETOR agreement, to be accepted on download",
        citation="T. Qin, T.-Y. Liu (2013). Introducing LETOR 4.0 datasets. arXiv:1306.2597.",
    ),
    DatasetInfo(
        name="mtbench-human",
        description="Experts compare the answers of six chatbots. A query is a question and turn of MT-Bench.",
        kind="comparisons",
        size="6 items in 160 queries, 65 annotators, 3,355 judgments",
        file="mtbench_human/votes_human.csv",
        sha256="3ee442d4a984625a11be0832d63aa7a76b8fe333d29abb29a4712bb44816d7df",
        original="human-*.parquet",
        original_columns={
            "query": "question_id+turn",
            "annotator": "judge",
            "left": "model_a",
            "right": "model_b",
            "winner": "winner",
        },
        source="https://huggingface.co/datasets/lmsys/mt_bench_human_judgments",
        licence="CC BY 4.0",
        citation="L. Zheng et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot Arena. NeurIPS.",
    ),
    DatasetInfo(
        name="llmbar",
        description="Language models with prompts judge which of two answers follows the instruction, in both orders.",
        kind="comparisons",
        size="2 items in 598 queries, 65 annotators, 40,423 judgments",
        file="llmbar_judges/votes.csv.gz",
        sha256="dc402da2e98a314043af6fb22bd7d9e861c7739780ca64be05e2667a8a1f8083",
        gold_file="llmbar_judges/votes.csv.gz",
        gold_sha256="dc402da2e98a314043af6fb22bd7d9e861c7739780ca64be05e2667a8a1f8083",
        columns={
            "query": "subset+instance",
            "annotator": "judge+prompting",
            "left": "left",
            "right": "right",
            "winner": "winner",
        },
        source="https://github.com/princeton-nlp/LLMBar",
        licence="not stated in its README",
        citation="Z. Zeng et al. (2024). Evaluating large language models at evaluating instruction following. ICLR.",
    ),
    DatasetInfo(
        name="llmfao",
        description="Crowd workers compare the answers of language models.",
        kind="comparisons",
        size="59 items, 124 annotators, 8,931 judgments, 3,471 of them ties",
        file="llmfao/pairwise.csv",
        sha256="5f2c4db81fbd8c2ad8cfa96dd9c60f6fcfcd42cb258777846fae1858d172810d",
        columns={"annotator": "worker", "left": "left", "right": "right", "winner": "winner"},
        source="https://github.com/dustalov/llmfao",
        licence="CC BY 4.0",
        citation="D. Ustalov. Large language model feedback analysis and optimization (LLMFAO).",
    ),
    DatasetInfo(
        name="ukp-convarg",
        description="Crowd workers say which of two arguments is more convincing, in 32 debates.",
        kind="comparisons",
        size="1,052 items in 32 queries, 3,815 annotators, 84,445 judgments, 19,105 of them ties",
        file="ukp_convarg/pairwise.csv",
        sha256="cd112d662df0dadbb60b34cb8ac69daf54fe0468496361c5e31194dc7b335dc5",
        source="https://github.com/UKPLab/acl2016-convincing-arguments",
        licence="CC BY 4.0",
        citation="I. Habernal, I. Gurevych (2016). Which argument is more convincing? ACL.",
    ),
    DatasetInfo(
        name="tone-mapping",
        description="Observers compare tone-mapping operators on five video scenes.",
        kind="comparisons",
        size="7 items in 5 queries, 18 annotators, 1,213 judgments",
        file="pwcmp/tmo_pairwise.csv",
        sha256="0c4ba5d5f7405ab23af8db9956b78b916d62d382d840d963e70aaec41de93cb2",
        source="https://github.com/mantiuk/pwcmp",
        licence="MIT (the repository)",
        citation="M. Perez-Ortiz, R. K. Mantiuk (2017). A practical guide and software for analysing pairwise "
        "comparison experiments. arXiv:1712.03686.",
    ),
    DatasetInfo(
        name="snow2008",
        description="Workers rate headlines for six emotions and valence, and pairs of words for similarity.",
        kind="ratings",
        size="730 items in 8 queries, 48 annotators, 7,300 judgments",
        file="snow2008/ratings.csv",
        sha256="4c5bc08cf68b8d012a372df109e31f9c9a498c5e647c4e5014f3d2c50ccb4914",
        gold_file="snow2008/gold.csv",
        gold_sha256="302cab5f03b8ec528b26284d373aec2df6e0eccd06e79ad3b7d8a35b45698f72",
        source="https://sites.google.com/site/nlpannotations/",
        licence="not stated",
        citation="R. Snow, B. O'Connor, D. Jurafsky, A. Y. Ng (2008). Cheap and fast, but is it good? EMNLP.",
    ),
)

CATALOGUE: dict[str, DatasetInfo] = {entry.name: entry for entry in _ENTRIES}
"""The known data sets by name."""


# Finding, checking and reading a data set.

VARIABLE = "CROWDRANK_DATA"
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set as returned by `load`.

    Parameters
    ----------
    info : DatasetInfo
        Source, licence and citation.
    judgments : Comparisons, Ratings or Rankings
        The judgments, for `crowdrank.rank` and the models.
    gold : Gold or None
        True values of the items, if the set has them.
    """

    info: DatasetInfo
    judgments: Judgments
    gold: Gold | None

    def __repr__(self) -> str:
        return f"Dataset({self.info.name!r}, {self.judgments!r}, gold={self.gold!r})"


def load(name: str, folder: str | Path | None = None, *, verify: bool = True) -> Dataset:
    """Load a public data set from your own copy.

    Parameters
    ----------
    name : str
        Name of the set, see `CATALOGUE`.
    folder : path, optional
        The folder with the data sets. By default the folder that the environment variable `CROWDRANK_DATA` names.
    verify : bool, default True
        Compare the checksums of the files. An original file has none, and is read as it is.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If the set is not in the folder; the message says where it can be obtained. Also if a checksum differs.

    Examples
    --------
    >>> import crowdrank as cr
    >>> data = cr.datasets.load("sushi", folder="my-data")  # doctest: +SKIP
    >>> cr.rank(data.judgments)  # doctest: +SKIP
    """
    if name not in CATALOGUE:
        raise UnknownNameError("data set", name, CATALOGUE)
    info, home = CATALOGUE[name], _folder(folder)
    path = home / info.file
    if not path.is_file():
        return Dataset(info, _read(_original(info, home), info.original_columns), None)
    if verify:
        _verify(path, info.sha256)
    return Dataset(info, _read(path, info.columns), _gold(info, home, verify))


def available(folder: str | Path | None = None) -> list[str]:
    """Return the names of the data sets that are in the folder.

    Parameters
    ----------
    folder : path, optional
        As in `load`.
    """
    home = _folder(folder)
    return [name for name, info in CATALOGUE.items() if (home / info.file).is_file() or _originals(info, home)]


def _folder(folder: str | Path | None) -> Path:
    given = folder or os.environ.get(VARIABLE)
    if not given:
        raise SettingError(f"No folder of data sets: pass folder=… or set the environment variable {VARIABLE}.")
    if not Path(given).is_dir():
        raise SettingError(f"There is no folder {given}: pass another folder=… or set {VARIABLE}.")
    return Path(given)


def _originals(info: DatasetInfo, home: Path) -> list[Path]:
    """Original files in the folder of the set. A pattern may match several; the first in order is read."""
    return sorted((home / info.file).parent.glob(info.original)) if info.original else []


def _original(info: DatasetInfo, home: Path) -> Path:
    if found := _originals(info, home):
        return found[0]
    either = f", or the original file {info.original} in the same folder" if info.original else ""
    raise DataError(
        f"The data set {info.name} is not in the folder {home} and can be obtained from {info.source} "
        f"(licence: {info.licence}). Expected {info.file} with the columns {info.layout}{either}."
    )


def _verify(path: Path, expected: str) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != expected:
        raise DataError(
            f"{path} is not the file that is known by this name: its SHA-256 is {digest.hexdigest()}, expected "
            f"{expected}.",
            remedy="Pass verify=False to read it anyway.",
        )


def _read(path: Path, columns: Mapping[str, str]) -> Judgments:
    return read(path, columns=dict(columns) or None, warn=False)


def _gold(info: DatasetInfo, home: Path, verify: bool) -> Gold | None:
    path = home / info.gold_file
    if not info.gold_file or not path.is_file():
        return None
    if verify:
        _verify(path, info.gold_sha256)
    if info.gold_file != info.file:
        return Gold.read(path)
    # The better of two items is named in each row of the judgments.
    frame = pl.read_csv(path, infer_schema=False)
    query = pl.concat_str(info.columns["query"].split("+"), separator="+").alias("query")
    pairs = frame.select(query, "left", "right", "gold").unique(["query"], maintain_order=True)
    rows = [(query, item, float(item == best)) for query, *shown, best in pairs.iter_rows() for item in shown]
    queries, items, values = zip(*rows, strict=True)
    return Gold.of(items, values, query=queries)
