"""Language models as annotators: prompts, an endpoint, limits, and a journal of what was asked and answered."""

from crowdrank.judging.asking import LLMJudge
from crowdrank.judging.endpoint import Endpoint
from crowdrank.judging.journal import Journal
from crowdrank.judging.participation import Participation, take_part
from crowdrank.judging.prompts import Template, Verdict, parse_answer
from crowdrank.judging.run import judge
from crowdrank.judging.votes import JudgeRun

__all__ = [
    "Endpoint",
    "Journal",
    "JudgeRun",
    "LLMJudge",
    "Participation",
    "Template",
    "Verdict",
    "judge",
    "parse_answer",
    "take_part",
]
