"""Online models: beliefs updated one judgment at a time (Crowd-BT, TrueSkill, Elo, Glicko-2, sequential MCMC)."""

from crowdrank.online.beliefs import Beliefs, OnlineModel, Vocabulary
from crowdrank.online.crowd_bt import CrowdBT, beliefs_from_ranking
from crowdrank.online.rating_systems import Elo, Glicko2, TrueSkill
from crowdrank.online.sequential_mcmc import Posterior, SequentialMCMC

__all__ = [
    "Beliefs",
    "CrowdBT",
    "Elo",
    "Glicko2",
    "OnlineModel",
    "Posterior",
    "SequentialMCMC",
    "TrueSkill",
    "Vocabulary",
    "beliefs_from_ranking",
]
