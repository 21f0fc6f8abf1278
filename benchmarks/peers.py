"""One small adapter per library. Each gets its preferred input and the loosest tolerance that still converges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from votes import Votes, draw

__all__ = ["CONTENDERS", "Contender", "draw", "rungs"]

OURS = "crowdrank"
GENERAL = ("numpy", "scikit-learn")
"""Not ranking libraries: what one would write without one."""


class Contender:
    """From votes to scores in four steps, of which `build` and `fit` are timed."""

    family: str
    way: str
    module: str
    """What must be importable."""
    settings: Sequence[float]
    """Tolerances (or numbers of steps), loosest first: the first that reaches the optimum is the one reported."""
    warm: Sequence[tuple[int, ...]] = ((100, 4_000),)
    """Items and rows (or whatever the field draws by) of the fits done before the clock starts."""
    most_rows = 10**9
    """Where another way of the same library is known to be quicker, this one stops."""
    builds = False
    rehearses = False
    """Whether to fit the very same votes once before the clock starts."""

    @property
    def name(self) -> str:
        return f"{self.family} {self.way}"

    def settings_for(self, items: int) -> Sequence[float]:
        return self.settings

    def load(self, votes: Votes) -> Any:
        """Its own kind of input, in memory; not timed."""
        raise NotImplementedError

    def fresh(self, native: Any) -> Any:
        """The same input with nothing remembered from an earlier fit; not timed."""
        return native

    def build(self, native: Any) -> Any:
        """What it needs made of its input before it can fit; timed apart."""
        return native

    def fit(self, built: Any, setting: float) -> Any:
        raise NotImplementedError

    def scores(self, found: Any, items: int) -> Any:
        """Log-strengths in the order of the items, and whatever else its field asks for; not timed."""
        return found

    def aside(self, native: Any) -> dict[str, float]:
        """What else is worth knowing of it at this size; not timed."""
        return {}


def rungs(settings: Sequence[float], took: float | None) -> Sequence[float]:
    """Where to begin on the ladder: one looser than what it took with fewer votes."""
    if took is None or took not in settings:
        return settings
    return settings[max(0, list(settings).index(took) - 1) :]


class Crowdrank(Contender):
    family, way, module = OURS, "BradleyTerry", "crowdrank"
    settings = (1e-4,)  # the default, which is far tighter than the bar
    warm = ((100, 4_000), (2_000, 200_000))  # few rows and many take different roads

    def load(self, votes: Votes) -> Any:
        from crowdrank.data import LEFT, RIGHT, Comparisons, Items

        outcome = np.where(votes.left_won, LEFT, RIGHT)
        return Comparisons(items=Items.of(range(votes.items)), left=votes.left, right=votes.right, outcome=outcome)

    def fresh(self, native: Any) -> Any:
        return replace(native, items=replace(native.items))

    def fit(self, built: Any, setting: float) -> Any:
        from crowdrank.models.pairwise.bradley_terry import BradleyTerry

        return BradleyTerry(prior_scale=None, tolerance=setting).fit(built).scores


class Choix(Contender):
    family, module = "choix", "choix"

    def __init__(self, way: str, settings: Sequence[float]):
        self.way, self.settings = way, settings

    def load(self, votes: Votes) -> Any:
        return votes.items, list(zip(votes.winner.tolist(), votes.loser.tolist(), strict=True))

    def fit(self, built: Any, setting: float) -> Any:
        import choix

        return getattr(choix, self.way)(*built, alpha=0.0, tol=setting, max_iter=10_000)


class ChoixDense(Choix):
    """The same library from a matrix of wins: what it advises for many votes on few pairs."""

    builds = True

    def build(self, native: Any) -> Any:
        items, pairs = native
        wins = np.zeros((items, items))
        np.add.at(wins, tuple(np.array(pairs).T), 1.0)
        return (wins,)


class CrowdKit(Contender):
    family, way, module = "crowd-kit", "BradleyTerry", "crowdkit"
    settings = (50, 75, 95, 120, 200)

    def settings_for(self, items: int) -> Sequence[float]:
        """Where to start: minorization takes more steps the more items there are."""
        first = {100: 50, 1_000: 75, 10_000: 95}.get(items, 50)
        return [steps for steps in self.settings if steps >= first]

    def load(self, votes: Votes) -> Any:
        import pandas as pd

        return pd.DataFrame({"left": votes.left, "right": votes.right, "label": votes.winner})

    def fit(self, built: Any, setting: float) -> Any:
        from crowdkit.aggregation import BradleyTerry

        # with any tolerance above zero it compares a buffer with itself and stops after two steps
        return BradleyTerry(n_iter=int(setting), tol=0.0).fit(built).scores_

    def scores(self, found: Any, items: int) -> Any:
        return np.log(found.loc[np.arange(items)].to_numpy())


class Evalica(Contender):
    family, module = "evalica", "evalica"
    settings = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6)

    def __init__(self, way: str, given: str):
        self.function, self.given = way, given
        self.way = f"{way}, {given}"

    def load(self, votes: Votes) -> Any:
        import pandas as pd
        from evalica import Winner

        if self.given == "lists":
            won = [Winner.X if left_won else Winner.Y for left_won in votes.left_won.tolist()]
            return (votes.left.tolist(), votes.right.tolist(), won), None
        winners = np.where(votes.left_won, Winner.X, Winner.Y).astype(np.uint8)
        index = pd.RangeIndex(votes.items) if self.given == "codes" else None
        return (votes.left, votes.right, winners), index

    def fit(self, built: Any, setting: float) -> Any:
        import evalica

        columns, index = built
        return getattr(evalica, self.function)(*columns, index=index, tolerance=setting, limit=10_000).scores

    def scores(self, found: Any, items: int) -> Any:
        return np.log(found.loc[np.arange(items)].to_numpy())


class ArenaRank(Contender):
    """From its own data set of codes, made directly: its reader of data frames takes longer than the fit.

    It compiles anew at every fit, with the votes as constants of the program. "Compiled before" lets JAX keep what it
    compiled and times a second fit of the very same votes: faster than any user will see, but free of the compiler.
    """

    family, module = "arena-rank", "arena_rank"
    settings = (1e-9, 1e-10, 1e-11, 1e-12, 1e-14)

    def __init__(self, keeps: bool):
        self.rehearses = keeps
        self.way = "BradleyTerry, compiled before" if keeps else "BradleyTerry"

    def load(self, votes: Votes) -> Any:
        import jax

        # through its model's module, which switches JAX to double precision
        from arena_rank.models.bradley_terry import PairDataset, jnp

        jax.config.update("jax_enable_compilation_cache", self.rehearses)
        pairs = jnp.column_stack((jnp.asarray(votes.left), jnp.asarray(votes.right)))
        outcomes, ones = jnp.asarray(votes.left_won, dtype=jnp.float64), jnp.ones(len(votes), dtype=jnp.float64)
        return PairDataset(list(range(votes.items)), pairs, outcomes, counts=ones, weights=ones, opt_weights=ones)

    def fit(self, built: Any, setting: float) -> Any:
        from arena_rank.models.bradley_terry import BradleyTerry

        model = BradleyTerry(built.n_competitors, ftol=setting, gtol=1e-12)
        return np.asarray(model.fit(built).params["ratings"])


class NumPy(Contender):
    """Twenty lines anyone would write: whole-array formulas and SciPy's L-BFGS."""

    family, way, module = "numpy", "L-BFGS", "scipy"
    settings = (1e-7, 1e-8, 1e-9, 1e-10, 1e-12)

    def load(self, votes: Votes) -> Any:
        return votes.items, votes.winner, votes.loser

    def fit(self, built: Any, setting: float) -> Any:
        from scipy.optimize import minimize

        items, winner, loser = built

        def loss(scores: Any) -> tuple[float, Any]:
            margin = scores[winner] - scores[loser]
            doubt = np.exp(-np.logaddexp(0.0, margin))  # the chance given to the other answer
            value = np.logaddexp(0.0, -margin).mean()
            slope = np.bincount(loser, doubt, items) - np.bincount(winner, doubt, items)
            return float(value), slope / len(winner)

        options = {"ftol": setting, "gtol": 0.0, "maxiter": 10_000}
        return minimize(loss, np.zeros(items), jac=True, method="L-BFGS-B", options=options).x


class ScikitLearn(Contender):
    """Logistic regression without penalty or intercept: +1 in the column of left, −1 in that of right."""

    family, module = "scikit-learn", "sklearn"
    builds = True

    def __init__(self, way: str, settings: Sequence[float]):
        self.way, self.settings = way, settings

    def load(self, votes: Votes) -> Any:
        return votes

    def build(self, native: Any) -> Any:
        from scipy.sparse import csr_array

        rows = len(native)
        columns = np.stack((native.left, native.right), axis=1).ravel()
        signs = np.tile(np.array([1.0, -1.0]), rows)
        starts = np.arange(0, 2 * rows + 1, 2, dtype=np.int32)
        return csr_array((signs, columns, starts), shape=(rows, native.items)), native.left_won

    def fit(self, built: Any, setting: float) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=np.inf, fit_intercept=False, solver=self.way, tol=setting, max_iter=10_000)
        return model.fit(*built).coef_[0]


def only_small(contender: Contender) -> Contender:
    """A slower way of a library that is entered in a quicker one too: shown where it costs little to show."""
    contender.most_rows = 100_000
    return contender


CONTENDERS: tuple[Contender, ...] = (
    Crowdrank(),
    Choix("ilsr_pairwise", (1e-3, 1e-4, 1e-5)),
    only_small(ChoixDense("ilsr_pairwise_dense", (1e-3, 1e-4, 1e-5))),
    only_small(Choix("mm_pairwise", (1e-5, 3e-6, 1e-6, 1e-7))),
    only_small(Choix("opt_pairwise", (1e-3, 1e-4, 1e-5))),
    CrowdKit(),
    Evalica("bradley_terry", "codes"),
    only_small(Evalica("bradley_terry", "arrays")),
    Evalica("bradley_terry", "lists"),
    only_small(Evalica("newman", "codes")),
    ArenaRank(keeps=False),
    ArenaRank(keeps=True),
    NumPy(),
    ScikitLearn("lbfgs", (1e-6, 1e-7, 1e-8)),
    ScikitLearn("newton-cg", (1e-5, 1e-6, 1e-8)),
    only_small(ScikitLearn("newton-cholesky", (1e-6, 1e-7, 1e-8))),
)
