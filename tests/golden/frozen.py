"""Scores and standard errors of every model on fixed data, kept in frozen.json.

After an intended change of the numbers, run `python -m tests.golden.frozen` to write the file again, and say in the
commit message which models changed and why.
"""

import json
import warnings
from pathlib import Path

import crowdrank as cr
from crowdrank.errors import DataError
from crowdrank.models import REGISTRY
from crowdrank.models.selection import convert_for

HERE = Path(__file__).parent
FILE = HERE / "frozen.json"
CITIES = HERE.parents[1] / "examples" / "cities" / "votes.csv"
CROWDS = {
    "cities": lambda: cr.read(CITIES),
    "mixed": lambda: cr.simulation.mixed_crowd(items=12, votes_each=25, seed=5).judgments,
    "ratings": lambda: cr.simulation.rating_crowd(queries=2, items=8, annotators=10, grades_each=6, seed=6).judgments,
    "lists": lambda: cr.simulation.list_crowd(queries=3, items=7, annotators=6, seed=7).judgments,
}


def numbers(model_name, crowd_name):
    """Scores and standard errors of a model with default settings, item by item; None if it rejects the data."""
    model = REGISTRY[model_name]()
    judgments, _ = convert_for(model, CROWDS[crowd_name]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ranking = model.fit(judgments)
        except DataError:
            return None
        error = ranking.uncertainty.std_error
    return {"scores": [float(f"{x:.10g}") for x in ranking.scores], "std_error": [float(f"{x:.10g}") for x in error]}


def write():
    """Fit every model to every crowd."""
    found = {name: {crowd: numbers(name, crowd) for crowd in CROWDS} for name in REGISTRY}
    FILE.write_text(json.dumps(found, separators=(",", ":")).replace('},"', '},\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
