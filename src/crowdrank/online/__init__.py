"""Online models: beliefs updated one judgment at a time (Crowd-BT, TrueSkill, Elo, Glicko-2, sequential MCMC)."""

from crowdrank.online.beliefs import Beliefs, Vocabulary
from crowdrank.online.crowd_bt import CrowdBT
from crowdrank.online.elo import Elo
from crowdrank.online.glicko import Glicko2
from crowdrank.online.sequential_mcmc import Posterior, SequentialMCMC
from crowdrank.online.sequential_model import OnlineModel
from crowdrank.online.tpp_transfer import beliefs_from_ranking
from crowdrank.online.trueskill import TrueSkill

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
