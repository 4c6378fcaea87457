"""Reductions of bottleneck on traced values, under any name, beside NumPy's."""

import functools
import subprocess
import sys

import numpy as np
import pytest

import fnad
from fnad.errors import TracerEscapeError

bottleneck = pytest.importorskip("bottleneck")

X = np.array([[0.3, 1.2, np.nan], [2.0, 0.5, 1.1]])


def wrapped(function):
    @functools.wraps(function)
    def run(*args, **options):
        return function(*args, **options)

    return run


def check(f, own, x):
    """The value is that of bottleneck on an array, the derivative that of NumPy's function of the name."""
    for transform in (lambda f: f, fnad.jit):
        value, slope = transform(fnad.value_and_grad(f))(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-14)
        np.testing.assert_allclose(slope, fnad.grad(own)(x), rtol=1e-14)


@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax", "nanmedian"])
@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": 0}], ids=str)
def test_reductions_that_numpy_has(name, options):
    function, own = getattr(bottleneck, name), getattr(np, name)
    x = X[:, :2] if options.get("axis") == 0 else X
    check(lambda x: np.sum(function(x, **options)), lambda x: np.sum(own(x, **options)), x)
    check(lambda x: np.sum(wrapped(function)(x, **options)), lambda x: np.sum(own(x, **options)), x)


def test_bottleneck_in_other_forms_computes_as_numpy():
    deviation = functools.partial(bottleneck.nanstd, ddof=1)
    check(lambda x: deviation(x) * bottleneck.median(x[1]), lambda x: np.nanstd(x, ddof=1) * np.median(x[1]), X)
    check(lambda x: bottleneck.ss(x[1]), lambda x: np.sum(x[1] ** 2), X)
    check(lambda x: bottleneck.nanmean([x[0, 0], x[1, 1]]), lambda x: (x[0, 0] + x[1, 1]) / 2.0, X)
    check(lambda x: x[1, bottleneck.nanargmax(x[1])], lambda x: np.max(x[1]), X)
    check(
        lambda x: np.where(np.logical_and(bottleneck.anynan(x), np.logical_not(bottleneck.allnan(x))), x[1, 0], 0.0),
        lambda x: x[1, 0],
        X,
    )
    check(lambda x: x[1, 0] * bottleneck.nansum(X), lambda x: x[1, 0] * np.nansum(X), X)


def test_what_has_no_rule_is_an_error():
    with pytest.raises(TracerEscapeError, match="asked for an ordinary array"):
        fnad.grad(lambda x: np.sum(bottleneck.move_mean(x[1], 2)[1:]))(X)


def test_rules_that_were_imported_before_are_entered(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import fnad.trace.bottleneck_functions, fnad.trace.standard_statistics
import bottleneck, fnad
from bottleneck import nanmean
from statistics import mean
print(fnad.grad(lambda x: nanmean([x, 2.0]))(1.0), fnad.grad(lambda x: mean([x, 2.0]))(1.0))
print(fnad.grad(lambda x: bottleneck.nanmean([x, 2.0]))(1.0))
"""
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.stdout == "0.5 0.5\n0.5\n", done.stderr
