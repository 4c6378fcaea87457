"""Checks of programs and derivatives against independent numbers.

`check` is the whole table for a function, `check_grads` what a test asserts; the rest is what they are made of.
"""

from fnad.testing.blame import Blame, wrong_equation
from fnad.testing.check import Report, check
from fnad.testing.gradients import check_grads
from fnad.testing.numbers import (
    EXECUTORS,
    SCALE,
    ULPS,
    Run,
    assert_close,
    check_transposed,
    difference,
    direction,
    extended,
    magnitude,
    marks,
    mixed_difference,
    moved,
    pairing,
    precision,
    pullback,
    pushforward,
    step,
    tolerance,
)

__all__ = [
    "EXECUTORS",
    "SCALE",
    "ULPS",
    "Blame",
    "Report",
    "Run",
    "assert_close",
    "check",
    "check_grads",
    "check_transposed",
    "difference",
    "direction",
    "extended",
    "magnitude",
    "marks",
    "mixed_difference",
    "moved",
    "pairing",
    "precision",
    "pullback",
    "pushforward",
    "step",
    "tolerance",
    "wrong_equation",
]
