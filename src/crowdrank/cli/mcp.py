"""crowdrank mcp: rank, annotators, explain and next as tools of the Model Context Protocol, for language models."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.output import require_extra
from crowdrank.errors import CrowdrankWarning, SettingError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_MAX_ROWS = 200
"""Rows of an answer. A language model cannot use more, and pays for each."""
_ONLINE_FROM = 50_000
"""Judgments from which beliefs are updated online instead of sampled."""


@dataclass(frozen=True)
class FileTools:
    """The tools. They read files below one folder and write nothing.

    Parameters
    ----------
    folder : Path
        Files outside this folder are refused.
    """

    folder: Path

    def rank(self, file: str, model: str | None = None, top: int = 20) -> dict[str, Any]:
        """Rank the items of a file of judgments (comparisons, ratings or ordered lists; CSV, JSON lines, Parquet …).

        Returns the best `top` items per query with score, standard error and the 95 % interval of the rank, the model
        and why it was chosen, and notes on what weakens the result. The order of items within one group is uncertain.
        `model` is a name from `crowdrank models`, or "auto"; by default chosen by the data.
        """
        from crowdrank.pipeline import RankOptions, run

        found = run(self._path(file), RankOptions(model=model))
        ranking = found.ranking
        frame = ranking.to_polars()
        rows = frame.filter(frame["rank"] <= top).to_dicts()
        return {
            "model": ranking.model,
            "why": found.choice.reason,
            "items": len(ranking.items),
            "ranking": rows[:_MAX_ROWS],
            "notes": ranking.notes,
        }

    def annotators(self, file: str) -> dict[str, Any]:
        """Show how reliable each annotator is: estimated quality, a verdict and its reason.

        "too few to say" is not an accusation: it means that the answers are inconclusive.
        """
        from crowdrank.data import Comparisons
        from crowdrank.models.selection import models_that
        from crowdrank.pipeline import RankOptions, prepare

        prepared = prepare(self._path(file), RankOptions(), among=models_that("models_annotators"))
        ranking = prepared.model.fit(prepared.converted, side_information=prepared.side_information)
        frame = ranking.annotators.to_polars()
        if isinstance(prepared.judgments, Comparisons):
            frame = frame.join(ranking.verdicts().frame(), on="annotator", how="left", maintain_order="left")
        return {"model": ranking.model, "annotators": frame.to_dicts()[:_MAX_ROWS], "notes": ranking.notes}

    def explain(self, file: str, item: str, above: str, query: str | None = None) -> dict[str, Any]:
        """Show why one item ranks above another: direct judgments, and chains through other items.

        `query` names the query of both items, if the file has several.
        """
        from crowdrank import evaluation
        from crowdrank.cli.explain import sentences
        from crowdrank.io import read

        found = evaluation.explain(read(self._path(file)), item, above, query=query)
        return {"sentences": sentences(found), **found.as_dict()}

    def next(self, file: str, count: int = 10) -> dict[str, Any]:
        """Choose the most useful questions to ask next, and who should answer them, from the judgments so far."""
        import numpy as np

        from crowdrank import active, models, online
        from crowdrank.io import read
        from crowdrank.models.selection import convert_for

        votes: Any = convert_for(models.BayesianCrowdBT(), read(self._path(file)))[0]
        model: Any = online.CrowdBT() if len(votes) > _ONLINE_FROM else online.SequentialMCMC()
        beliefs = model.fold(model.start([], [str(name) for name in votes.annotators] or ["annotator"]), votes)
        history = active.QuestionHistory(beliefs, active.Rules(), votes)
        chosen = active.batch(active.Adaptive(), beliefs, history, min(count, _MAX_ROWS), np.random.default_rng(0))
        keys = ("annotator", "query", "left", "right", "policy", "probability")
        return {"questions": [{key: getattr(question, key) for key in keys} for question in chosen]}

    def _path(self, file: str) -> Path:
        folder = self.folder.resolve()
        path = (folder / file).resolve()
        if not path.is_relative_to(folder):
            raise SettingError(f"{file}: only files in {folder.name} can be read.")
        return path


def build_server(tools: FileTools) -> MCPServer:
    """The server with its tools, all declared read-only."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    from crowdrank import __version__
    from crowdrank.errors import CrowdrankError

    purpose = "Rankings from the judgments of unreliable annotators."
    server = MCPServer("crowdrank", version=__version__, instructions=purpose)

    def as_tool(method: Callable[..., dict[str, Any]]) -> Callable[..., str]:
        from functools import wraps

        @wraps(method)
        def call(*given: Any, **named: Any) -> str:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CrowdrankWarning)
                    return json.dumps(method(*given, **named), default=str, ensure_ascii=False)
            except (CrowdrankError, OSError) as error:
                raise ToolError(str(error)) from error

        call.__annotations__ = {**method.__annotations__, "return": "str"}
        return call

    for method in (tools.rank, tools.annotators, tools.explain, tools.next):
        hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        server.tool(annotations=hints, structured_output=False)(as_tool(method))
    return server


def mcp(
    folder: Annotated[
        Path,
        typer.Option(help="Folder whose files can be read.", exists=True, file_okay=False),
    ] = Path(),
) -> None:
    """Serve rank, annotators, explain and next to language models, over the Model Context Protocol."""
    require_extra("mcp", extra="mcp")
    build_server(FileTools(folder)).run("stdio")
