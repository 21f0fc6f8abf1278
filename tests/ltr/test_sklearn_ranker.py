"""The scikit-learn estimator: scikit-learn's own checks, queries, annotators, missing grades and scores."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from crowdrank.data import Rankings
from crowdrank.ltr import CrowdRanker, Features, SklearnRanker


def crowd(queries=12, items=5, seed=0):
    """Features, the truth, three annotators (good, noisy, reversed) and queries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * items, 3))
    truth = X @ [2.0, -1.0, 0.0]
    y = np.column_stack([truth, truth + rng.normal(size=len(X)), -truth])
    return X, truth, y, np.repeat(np.arange(queries), items)


@pytest.mark.parametrize("settings", [{"method": "pooled"}, {"iterations": 1}], ids=["pooled", "crowds"])
@pytest.mark.filterwarnings("ignore::crowdrank.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_estimator_checks_of_scikit_learn_pass(settings):
    results = check_estimator(SklearnRanker(**settings), on_fail=None, on_skip=None)
    assert [(found["check_name"], found["exception"]) for found in results if found["status"] == "failed"] == []
    # Input of other array libraries is checked only where SciPy was told to take it.
    assert {found["check_name"] for found in results if found["status"] == "skipped"} <= {"check_array_api_input"}
    assert sum(found["status"] == "passed" for found in results) > 30


def test_it_learns_the_order_and_who_answers_in_reverse():
    X, truth, y, qid = crowd()
    ranker = SklearnRanker().fit(X, y, qid=qid)
    assert ranker.score(X, truth, qid=qid) > 0.9
    assert ranker.annotators_.reversed == ["2"]
    assert ranker.n_features_in_ == 3


def test_it_is_the_crowd_ranker_with_the_same_settings():
    X, _, y, qid = crowd()
    item = np.arange(len(X)).astype(str)
    lists = Rankings.of(
        np.tile(item, 3), -y.T.ravel(), annotator=np.repeat(["0", "1", "2"], len(X)), query=np.tile(qid, 3)
    )
    function = CrowdRanker(seed=3).fit(lists, Features.of(X, item=item, query=qid))
    ranker = SklearnRanker(random_state=3).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.predict(X), function.scorer.scores(X), rtol=1e-9)


def test_only_the_order_within_a_query_counts():
    X, _, y, qid = crowd()
    one = SklearnRanker(method="pooled").fit(X, y[:, 0], qid=qid)
    other = SklearnRanker(method="pooled").fit(X, np.exp(y[:, 0] / 3) + 10 * qid, qid=qid)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-6)


def test_a_missing_grade_is_no_judgment():
    X, _, y, qid = crowd()
    y = y[:, :2].copy()
    y[qid < 3, 0] = np.nan
    ranker = SklearnRanker().fit(X, y, qid=qid)
    assert ranker.annotators_.n_judgments.tolist() == [9, 12]


def test_the_score_is_the_mean_correlation_with_each_annotator():
    X, truth, y, qid = crowd()
    ranker = SklearnRanker(method="pooled").fit(X, truth, qid=qid)
    both = ranker.score(X, np.column_stack([truth, -truth]), qid=qid)
    assert both == pytest.approx(0, abs=1e-12)
    y = np.column_stack([truth, np.full(len(X), np.nan)])
    assert ranker.score(X, y, qid=qid) == pytest.approx(ranker.score(X, truth, qid=qid))
    assert np.isnan(ranker.score(X, np.ones(len(X))))


def test_it_can_be_cloned_searched_and_put_in_a_pipeline():
    X, _, y, qid = crowd()
    assert clone(SklearnRanker(top=3)).top == 3
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = SklearnRanker().set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(ranker, {"method": ["pooled", "borda"]}, cv=GroupKFold(3))
        search.fit(X, y[:, :2], groups=qid, qid=qid)
    assert search.best_score_ > 0.5
    pipe = make_pipeline(StandardScaler(), SklearnRanker(method="pooled"))
    assert len(pipe.fit(X, y, sklearnranker__qid=qid).predict(X)) == len(X)


def test_what_does_not_fit_together_is_refused():
    X, truth, _, qid = crowd()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SklearnRanker().fit(X, truth, qid=qid[1:])
    with pytest.raises(ValueError, match="requires y"):
        SklearnRanker().fit(X, None)


def test_without_scikit_learn_the_rest_works_and_the_message_names_the_extra():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import crowdrank as cr; cr.ltr.CrowdRanker()\n"
        "try:\n    cr.ltr.SklearnRanker\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "crowdrank[sklearn]" in done.stdout
