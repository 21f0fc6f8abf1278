"""Whether a solver or a sampler converged."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from crowdrank.errors import ConvergenceWarning


@dataclass(frozen=True)
class Convergence:
    """Whether the solver converged, and how far it was from the optimum when it stopped.

    Parameters
    ----------
    converged : bool, default True
        Whether the stopping criterion was met.
    steps : int, default 0
        Number of steps taken; 0 for models in closed form.
    distance : float, default 0.0
        Value of the stopping criterion at the end.
    unit : str, default "standard errors from the optimum"
        What `distance` measures.
    remedy : str, default "Increase max_steps"
        What to do if the solver did not converge.

    Examples
    --------
    >>> Convergence(converged=False, steps=200, distance=0.12).describe()
    'Did not converge in 200 steps (0.12 standard errors from the optimum). Increase max_steps.'
    """

    converged: bool = True
    steps: int = 0
    distance: float = 0.0
    unit: str = "standard errors from the optimum"
    remedy: str = "Increase max_steps"

    def describe(self, model: str = "") -> str:
        """Return the outcome as a sentence; "" for models in closed form."""
        if not self.converged:
            subject = f"{model} did" if model else "Did"
            remedy = self.remedy[:1].upper() + self.remedy[1:]
            return f"{subject} not converge in {self.steps} steps ({self.distance:.2g} {self.unit}). {remedy}."
        subject = f"{model} converged" if model else "Converged"
        return f"{subject} in {self.steps} steps." if self.steps else ""

    def warn(self, model: str) -> None:
        """Warn if the solver did not converge."""
        if not self.converged:
            warnings.warn(self.describe(model), ConvergenceWarning, stacklevel=4)


CLOSED_FORM = Convergence()
"""The convergence of models that are computed in closed form."""
