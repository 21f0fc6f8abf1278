"""The tools for language models answer from files of one folder, and only read."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from crowdrank.cli.mcp import FileTools, build_server
from crowdrank.errors import SettingError

CITIES = Path(__file__).resolve().parents[2] / "examples" / "cities"


@pytest.fixture
def tools(tmp_path):
    shutil.copy(CITIES / "votes.csv", tmp_path)
    return FileTools(tmp_path)


def test_rank_says_what_the_command_says(tools):
    found = tools.rank("votes.csv", top=3)
    assert [row["item"] for row in found["ranking"]] == ["Tokyo", "Delhi", "Mexico City"]
    assert (found["model"], found["items"]) == ("crowd-bt", 40)
    assert "several annotators" in found["why"]
    assert "boris" in found["notes"][0]


def test_annotators_have_verdicts_with_reasons(tools):
    found = {row["annotator"]: row for row in tools.annotators("votes.csv")["annotators"]}
    assert found["boris"]["verdict"] == "reversed"
    assert "agreed with the others" in found["boris"]["reason"]


def test_explain_and_next_answer(tools):
    assert tools.explain("votes.csv", "Tokyo", "Lima")["sentences"][0].startswith("Tokyo ranks above Lima")
    questions = tools.next("votes.csv", count=3)["questions"]
    assert len(questions) == 3
    assert all(question["left"] != question["right"] for question in questions)


@pytest.mark.parametrize("file", ["../votes.csv", "/etc/passwd", "inner/../../votes.csv"])
def test_files_elsewhere_are_refused(tools, file):
    with pytest.raises(SettingError, match="only files in"):
        tools.rank(file)


def test_nothing_is_written(tools):
    before = sorted(tools.folder.rglob("*"))
    tools.rank("votes.csv")
    tools.next("votes.csv", count=1)
    assert sorted(tools.folder.rglob("*")) == before


def test_a_client_sees_four_read_only_tools_and_errors_as_sentences(tools):
    pytest.importorskip("mcp.server.mcpserver")
    from mcp import Client

    async def talk():
        async with Client(build_server(tools)) as client:
            listed = (await client.list_tools()).tools
            good = await client.call_tool("rank", {"file": "votes.csv", "top": 1})
            bad = await client.call_tool("rank", {"file": "nowhere.csv"})
            return listed, good, bad

    listed, good, bad = asyncio.run(talk())
    assert {tool.name for tool in listed} == {"rank", "annotators", "explain", "next"}
    assert all(tool.annotations.read_only_hint and tool.description for tool in listed)
    assert json.loads(good.content[0].text)["ranking"][0]["item"] == "Tokyo"
    assert bad.is_error
    assert "nowhere.csv" in bad.content[0].text
