import numpy as np
import pytest
from hypothesis import given, settings

from crowdrank import models
from crowdrank.errors import SettingError
from crowdrank.online import Elo
from tests.strategies import comparisons


@settings(max_examples=30, deadline=None)
@given(votes=comparisons())
def test_a_fold_is_the_fit_of_the_model(votes):
    online, batch = Elo(step=20.0, scale=300.0, initial=100.0), models.Elo(step=20.0, scale=300.0, initial=100.0)
    beliefs = online.fold(online.start(votes.items), votes)
    np.testing.assert_array_equal(beliefs.mean, batch.fit(votes).scores)


@pytest.mark.parametrize("wrong", [{"step": 0.0}, {"scale": -400.0}, {"initial": np.inf}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        Elo(**wrong)
