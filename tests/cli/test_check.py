"""crowdrank check."""

from __future__ import annotations

import json
from pathlib import Path

from crowdrank.simulation import crowd_bt, list_crowd

VOTES = Path(__file__).parents[2] / "examples" / "cities" / "votes.csv"
PLAIN = ("--model", "bradley-terry", "--simulations", 5)


def test_it_concludes_in_sentences(crowdrank):
    code, out, err = crowdrank("check", VOTES, *PLAIN)
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    assert "bradley-terry, 5 simulations of each kind" in said
    assert "For data like yours, the 95 % intervals of scores held" in said
    assert "Coin tosses on this design" in said
    assert "score intervals that held" in out


def test_json_has_the_shares_and_the_conclusions(crowdrank):
    found = json.loads(crowdrank("check", VOTES, *PLAIN, "--level", 0.8, "--json").out)
    assert (found["model"], found["level"], found["fitted"]["simulations"]) == ("bradley-terry", 0.8, 5)
    assert 0.5 < found["fitted"]["scores"] <= 1
    assert found["coin_tosses"]["simulations"] == 5
    assert found["conclusions"]


def test_a_seed_repeats_the_check(crowdrank):
    once, again, other = (crowdrank("check", VOTES, *PLAIN, "--seed", seed, "--json").out for seed in (1, 1, 2))
    assert once == again != other


def test_verdicts_are_checked_where_the_model_estimates_annotators(crowdrank, tmp_path):
    crowd_bt(items=5, annotators=4, pairs=10, votes=3, labels="logistic", seed=1).write(tmp_path)
    quick = ("--model", "crowd-bt", "--set", "estimation=joint", "--set", "prior_scale=3")
    out = crowdrank("check", tmp_path / "votes.csv", *quick, "--set", "quality_prior=3,0.5", "--simulations", 10).out
    assert "annotators accused wrongly" in out
    assert " of 4 simulated annotators wrongly" in " ".join(out.split())


def test_lists_need_a_model_of_comparisons(crowdrank, tmp_path):
    list_crowd(items=5, annotators=4, seed=1).write(tmp_path)
    code, out, err = crowdrank("check", tmp_path / "votes.csv")
    assert (code, out) == (1, "")
    assert "plackett-luce reads rankings" in err
