"""The commands, by name. A command's own module is imported when the command runs."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command of the command line.

    Parameters
    ----------
    panel : str
        Heading of the help screen.
    function : str
        Its function, as "module:name" in this package.
    summary : str
        First sentence of the function's docstring. A test keeps the two alike.
    """

    panel: str
    function: str
    summary: str


_RANK, _DATA, _COLLECT, _LEARN = "Rank", "Data", "Collect judgments", "Learn to rank"
_MACHINES = "For language models"

COMMANDS = {
    "start": Command(_RANK, "start:start", "Look at a file, ask what is unclear, and rank it."),
    "rank": Command(_RANK, "rank:rank", "Rank the items of a file of judgments."),
    "compare": Command(
        _RANK, "compare:compare", "Compare models on these judgments by cross-validation, and recommend one."
    ),
    "check": Command(
        _RANK,
        "check:check",
        "Check on simulated answers to the same questions how often intervals, groups and verdicts hold.",
    ),
    "annotators": Command(
        _RANK, "annotators:annotators", "Show how reliable each annotator is: estimate, interval, verdict and reason."
    ),
    "judges": Command(
        _RANK,
        "judges:judges",
        "Audit a jury: agreement with gold or humans, flips, biases, shared errors, and which judges to pay for.",
    ),
    "explain": Command(
        _RANK,
        "explain:explain",
        "Show why one item ranks above another, or how fragile the first place is.",
    ),
    "models": Command(_RANK, "models:models", "List the models and the kinds of judgments that each reads."),
    "formats": Command(
        _DATA, "formats:formats", "List the file formats: how each is recognised, and whether it can be written."
    ),
    "convert": Command(_DATA, "convert:convert", "Convert judgments from one file format to another."),
    "simulate": Command(
        _DATA, "simulate:simulate", "Simulate a crowd: votes to rank, and the truth to evaluate the ranking against."
    ),
    "next": Command(
        _COLLECT, "next:next_questions", "Choose the most useful questions to ask next, and who should answer them."
    ),
    "plan": Command(
        _COLLECT,
        "plan:plan_collection",
        "Estimate by simulation how many votes a collection needs, and what they cost.",
    ),
    "simulate-active": Command(
        _COLLECT,
        "simulate_active:simulate_active",
        "Compare policies that choose questions: accuracy by number of votes, on simulated annotators.",
    ),
    "judge": Command(_COLLECT, "judge:judge", "Have language models compare items, and write their votes."),
    "serve": Command(
        _COLLECT, "serve:serve", "Start or resume a collection: a web page to compare items, and a live leaderboard."
    ),
    "export": Command(_COLLECT, "export:export", "Write the votes of a collection to a file."),
    "backup": Command(_COLLECT, "backup:backup", "Copy a collection, whether or not it is being served."),
    "migrate": Command(_COLLECT, "migrate:migrate", "Copy a collection from SQLite to PostgreSQL, or back."),
    "demo": Command(_COLLECT, "demo:demo", "Start a demonstration server where simulated annotators vote live."),
    "learn": Command(_LEARN, "learn:learn", "Learn a ranking function for new items from features and ranked lists."),
    "predict": Command(
        _LEARN, "predict:predict", "Rank items by their features, with a ranking function from `crowdrank learn`."
    ),
    "mcp": Command(
        _MACHINES,
        "mcp:mcp",
        "Serve rank, annotators, explain and next to language models, over the Model Context Protocol.",
    ),
}
