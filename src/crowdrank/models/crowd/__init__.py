"""Models of pairwise comparisons by annotators of different quality.

`likelihood` has the formulas of Crowd-BT and its relatives; `priors` completes them to the log posterior in
`objective`; `fitting.fit_map` maximises it; `sampler` draws from it. Names are imported on first use, because crowd-bt
by default needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdrank.models.crowd.encoding import Start, Ties, check_ties, select_judgments
    from crowdrank.models.crowd.fitting import MapEstimate, Solver, build_crowd_ranking, fit_map, interval
    from crowdrank.models.crowd.priors import Priors

_HOME = {
    "MapEstimate": "fitting",
    "Priors": "priors",
    "Solver": "fitting",
    "Start": "encoding",
    "Ties": "encoding",
    "build_crowd_ranking": "fitting",
    "check_ties": "encoding",
    "fit_map": "fitting",
    "interval": "fitting",
    "select_judgments": "encoding",
}

__all__ = [
    "MapEstimate",
    "Priors",
    "Solver",
    "Start",
    "Ties",
    "build_crowd_ranking",
    "check_ties",
    "fit_map",
    "interval",
    "select_judgments",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"crowdrank.models.crowd.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
