"""A scikit-learn estimator that learns a ranking function from several annotators. Needs scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crowdrank.arrays import AnyArray, BoolArray, FloatArray, IntArray
from crowdrank.data import Rankings
from crowdrank.evaluation import kendall_correlation
from crowdrank.ltr.crowd_ranker import CrowdRanker, Labels
from crowdrank.ltr.features import Features

if TYPE_CHECKING:
    from crowdrank.ltr.linear import Ranker

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover - depends on the environment
    raise ImportError("SklearnRanker needs scikit-learn 1.6 or newer: pip install 'crowdrank[sklearn]'.") from error


class SklearnRanker(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn a ranking function in scikit-learn's way: `fit(X, y)`, then `predict(X)` gives scores.

    Parameters
    ----------
    ranker : str or Ranker, default "linear"
        Kind of ranking function: "linear" or "lightgbm", see `CrowdRanker`.
    method : str, default "ltr-crowds"
        How the function is learned, see `crowdrank.ltr.METHODS`.
    labels : {"auto", "map", "expected"}, default "auto"
        Lists that the function is trained on, see `CrowdRanker`.
    top : int or None, default None
        k for top-k lists: items that an annotator left out are worse than their first k.
    held_out : float, default 0.2
        Fraction of the queries that is held out to choose `labels`; 0 for none.
    iterations : int, default 15
        Maximum number of EM iterations.
    tolerance : float, default 0.02
        When EM stops, see `CrowdRanker`.
    random_state : int, RandomState or None, default 0
        Seed of draws and of the held-out queries.

    Attributes
    ----------
    function_ : RankingFunction
        The trained function, with notes, validation and `save`.
    annotators_ : AnnotatorExpertise or None
        Expertise of the annotators, called "0", "1", … by their column in y; None for methods that do not estimate it.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X was a data frame with column names.

    Notes
    -----
    Rows of X are items. A column of y is an annotator: larger values are better, equal values are ties, NaN means that
    the annotator did not judge the item. Only the order of the values within a query counts. `qid` names the query of
    each row, as in other libraries for learning to rank; without it all rows belong to one query. To pass `qid` through
    `cross_val_score` or a pipeline, enable metadata routing and call `set_fit_request(qid=True)` and
    `set_score_request(qid=True)`.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdrank.ltr import SklearnRanker
    >>> X = np.array([[0.9, 0.1], [0.5, 0.3], [0.1, 0.2], [0.8, 0.9], [0.4, 0.1], [0.2, 0.7]])
    >>> y = np.array([[3, 2], [2, 3], [1, 1], [3, 3], [2, 2], [1, np.nan]])  # two annotators
    >>> ranker = SklearnRanker(method="pooled").fit(X, y, qid=[1, 1, 1, 2, 2, 2])
    >>> bool(np.all(np.diff(ranker.predict([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]])) > 0))
    True
    """

    def __init__(
        self,
        *,
        ranker: str | Ranker = "linear",
        method: str = "ltr-crowds",
        labels: Labels = "auto",
        top: int | None = None,
        held_out: float = 0.2,
        iterations: int = 15,
        tolerance: float = 0.02,
        random_state: Any = 0,
    ) -> None:
        self.ranker = ranker
        self.method = method
        self.labels = labels
        self.top = top
        self.held_out = held_out
        self.iterations = iterations
        self.tolerance = tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: Any, qid: Any = None) -> SklearnRanker:
        """Learn from the annotators' grades.

        Parameters
        ----------
        X : array of shape (items, features)
            Features of the items.
        y : array of shape (items,) or (items, annotators)
            Grades; larger is better, NaN for items that an annotator did not judge.
        qid : array of shape (items,), optional
            Query of each item.

        Returns
        -------
        SklearnRanker
            This object.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        grades, query = _grades(X, y), _queries(X, qid)
        names = [str(name) for name in getattr(self, "feature_names_in_", [])] or None
        labels = np.arange(len(X)).astype(str)
        features = Features.of(X, item=labels, query=query, names=names)
        item, annotator = np.nonzero(~np.isnan(grades))
        lists = Rankings.of(
            labels[item],
            -grades[item, annotator],
            annotator=annotator.astype(str),
            query=None if query is None else query[item],
        )
        self.function_ = self._crowd_ranker().fit(lists, features)
        self.annotators_ = self.function_.expertise
        return self

    def predict(self, X: Any) -> FloatArray:
        """Score items.

        Parameters
        ----------
        X : array of shape (items, features)
            Features of the items.

        Returns
        -------
        array of shape (items,)
            Scores; larger is better. They can be compared within a query only.
        """
        check_is_fitted(self)
        return self.function_.scorer.scores(validate_data(self, X, dtype=np.float64, reset=False))

    def score(self, X: Any, y: Any, qid: Any = None) -> float:
        """Return the mean Kendall correlation of the scores with the annotators' orders.

        Parameters
        ----------
        X, y, qid
            As in `fit`. The mean is over queries and annotators; orders without two different grades are left out.

        Returns
        -------
        float
            1 if every annotator has the order of the scores, 0 if they have nothing in common. NaN if no order is left.
        """
        scores = self.predict(X)
        grades, query = _grades(scores, y), _queries(scores, qid)
        groups = [np.arange(len(scores))] if query is None else _rows_by_query(query)
        found = [
            kendall_correlation(column[rows][seen], scores[rows][seen])
            for rows in groups
            for column in grades.T
            if len(np.unique(column[rows][seen := ~np.isnan(column[rows])])) > 1
        ]
        return float(np.mean(found)) if found else float("nan")

    def _crowd_ranker(self) -> CrowdRanker:
        state = self.random_state
        is_seed = isinstance(state, int | np.integer)
        return CrowdRanker(
            ranker=self.ranker,
            method=self.method,
            labels=self.labels,
            top=self.top,
            held_out=self.held_out,
            iterations=self.iterations,
            tolerance=self.tolerance,
            seed=int(state) if is_seed else int(check_random_state(state).randint(2**31 - 1)),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.non_deterministic = False
        return tags


def _grades(X: AnyArray, y: Any) -> FloatArray:
    """One column of grades per annotator."""
    if y is None:
        raise ValueError("SklearnRanker requires y to be passed, but the target y is None.")
    grades: FloatArray = check_array(
        y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
    )
    check_consistent_length(X, grades)
    return grades.reshape(len(grades), -1)


def _queries(X: AnyArray, qid: Any) -> AnyArray | None:
    if qid is None:
        return None
    query = np.asarray(qid)
    check_consistent_length(X, query)
    return query.astype(str)


def _rows_by_query(query: AnyArray) -> list[IntArray]:
    order = np.argsort(query, kind="stable")
    new: BoolArray = query[order][1:] != query[order][:-1]
    return np.split(order, np.flatnonzero(new) + 1)
