import numpy as np
import pytest

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.simulation.crowd import draw, parse_distribution

MOMENTS = [
    ("beta(2,1)", 2 / 3, np.sqrt(1 / 18)),
    ("uniform(0.5,1)", 0.75, 0.5 / np.sqrt(12)),
    ("normal(-1, 2)", -1.0, 2.0),
    ("Beta( 10 , 1 )", 10 / 11, np.sqrt(10 / (121 * 12))),
    ("0.8", 0.8, 0.0),
    (0.8, 0.8, 0.0),
]


@pytest.mark.parametrize(("text", "mean", "spread"), MOMENTS)
def test_a_distribution_has_the_moments_it_is_named_for(text, mean, spread):
    drawn = parse_distribution(text)(np.random.default_rng(1), 100_000)
    assert drawn.mean() == pytest.approx(mean, abs=5 * spread / np.sqrt(1e5) + 1e-9)
    assert drawn.std() == pytest.approx(spread, abs=0.02 * spread + 1e-9)


@pytest.mark.parametrize(
    "text",
    ["", "high", "beta(2)", "beta(2,1,3)", "beta(2,x)", "beta(0,1)", "uniform(1,0)", "normal(0,-1)", "nan", "inf"],
)
def test_what_cannot_be_understood_is_refused_and_quoted(text):
    with pytest.raises(SettingError, match="quality") as caught:
        parse_distribution(text, "quality")
    assert repr(text) in str(caught.value)


def test_an_unknown_family_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'uniform'"):
        parse_distribution("unifrom(0,1)")


def test_numbers_outside_the_allowed_range_are_refused():
    with pytest.raises(SettingError, match=r"quality must lie between 0 and 1, but 1\.5 gave 1\.5"):
        draw("1.5", "quality", np.random.default_rng(0), 3, 0, 1)
