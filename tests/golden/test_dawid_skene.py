"""Dawid and Skene's EM, without priors, converges to the same result as another library.

The numbers are crowd-kit 1.4.2's: `DawidSkene(n_iter=20_000, tol=1e-14).fit(answers).probas_[1]`, to six digits.
"""

from __future__ import annotations

import numpy as np

from crowdrank import DawidSkene, Ratings

# One row per annotator, one digit per item.
ANSWERS = (
    "1100010000011001010100010011011110001110",
    "1100011110001101110010110010001110011110",
    "1101111100011000110000100011001101010110",
    "0001100000001001111111010010001111001111",
)
PROBABILITIES = [
    1.0,
    1.0,
    0.036991,
    1.0,
    1.0,
    1.0,
    1.0,
    1.0,
    0.511135,
    0.036991,
    0.036991,
    1.0,
    1.0,
    0.511135,
    0.036991,
    0.993249,
    1.0,
    1.0,
    0.16356,
    0.843875,
    0.841836,
    0.16356,
    1.0,
    0.993249,
    0.036991,
    0.036991,
    1.0,
    1.0,
    0.036991,
    0.51498,
    1.0,
    1.0,
    0.993249,
    1.0,
    0.036991,
    1.0,
    0.993249,
    1.0,
    1.0,
    0.16356,
]


def answers() -> Ratings:
    rows = [(f"i{i:02d}", int(said), f"w{k}") for k, row in enumerate(ANSWERS) for i, said in enumerate(row)]
    item, grade, annotator = zip(*rows, strict=True)
    return Ratings.of(item, grade, annotator=annotator)


def test_probabilities_of_classes_are_the_other_librarys():
    model = DawidSkene(annotator_prior_count=1e-9, query_prior_count=1e-9, tolerance=1e-12, max_steps=20_000)
    np.testing.assert_allclose(model.fit(answers()).scores, PROBABILITIES, atol=2e-6)


def test_with_what_annotators_are_credited_with_they_are_not():
    assert np.max(np.abs(DawidSkene().fit(answers()).scores - PROBABILITIES)) > 0.1
