"""Beliefs updated one judgment at a time: Crowd-BT, TrueSkill, Elo, Glicko-2."""

from crowdrank.online.beliefs import Beliefs, Roll
from crowdrank.online.crowd_bt import CrowdBT
from crowdrank.online.elo import Elo
from crowdrank.online.glicko import Glicko2
from crowdrank.online.sequential import OnlineModel
from crowdrank.online.sequential_mcmc import Posterior, Refits
from crowdrank.online.tpp_transfer import beliefs_of
from crowdrank.online.trueskill import TrueSkill

__all__ = [
    "Beliefs",
    "CrowdBT",
    "Elo",
    "Glicko2",
    "OnlineModel",
    "Posterior",
    "Refits",
    "Roll",
    "TrueSkill",
    "beliefs_of",
]
