"""From a source of judgments to a ranking: read, choose a model, convert, fit, quantify uncertainty, evaluate.

`rank` is the public function. `run` takes the same options and also returns everything that the command line and
reports show: the import report, the reason for the model, the evaluation against gold and the comparison of systems.
"""

from crowdrank.pipeline.entry_points import check, check_result, rank
from crowdrank.pipeline.running import PreparedData, RankResult, describe_side_information, opening_notes, prepare, run
from crowdrank.pipeline.sources import ItemInformation, RankOptions, Stage, load_gold, silent

__all__ = [
    "ItemInformation",
    "PreparedData",
    "RankOptions",
    "RankResult",
    "Stage",
    "check",
    "check_result",
    "describe_side_information",
    "load_gold",
    "opening_notes",
    "prepare",
    "rank",
    "run",
    "silent",
]
