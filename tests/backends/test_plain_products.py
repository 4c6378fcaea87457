"""Jacobians of gathered rows: their products are plain ones until a result is nan."""

import numpy as np
import pytest

import fnad

ROWS = np.random.default_rng(0).standard_normal((7, 6)) + 3
PLACES = np.arange(5000) * 5 % 7


def error(row):
    """Return two numbers of a row, whose derivatives are infinite where its first three numbers are 0."""
    turn, far = row[:3], np.sqrt(np.sum(row[:3] * row[:3]))
    cross = np.stack([turn[1] * row[5] - turn[2] * row[4], turn[2] * row[3] - turn[0] * row[5]])
    return (cross * row[4] + np.sin(far) * row[3:5]) / (row[5] + cross * far)


def jacobians(rows, places):
    return fnad.vmap(fnad.jacrev(error))(rows[places])


COMPILED = fnad.jit(jacobians)


def changed(**numbers):
    rows = ROWS.copy()
    for name, number in numbers.items():
        rows[3, {"first": slice(0, 3), "fourth": 3, "fifth": 4}[name]] = number
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        changed(first=0.0),
        changed(first=0.0, fourth=0.0, fifth=0.0),
        changed(fourth=np.nan),
        changed(fifth=np.inf),
    ],
    ids=["finite", "infinite partials", "zeros", "nan", "inf"],
)
def test_they_are_those_of_the_interpreter(rows, dtype):
    given = rows.astype(dtype)
    with fnad.config.override(executor="compiled"):
        found = [COMPILED(given, PLACES) for _ in range(2)][1]
    with fnad.config.override(executor="interpreter"):
        expected = fnad.jit(jacobians)(given, PLACES)
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_their_products_are_plain_at_first(dtype):
    with fnad.config.override(executor="compiled"):
        assert "check0 != check0" in COMPILED.lower(ROWS.astype(dtype), PLACES).as_text("source")


def test_no_nan_comes_of_a_cotangent_that_is_zero():
    with fnad.config.override(executor="compiled"):
        found = COMPILED(changed(first=0.0, fourth=0.0, fifth=0.0), PLACES)
    assert np.isfinite(found).all()


def test_a_bad_place_is_an_error():
    compiled = fnad.jit(jacobians)
    for _ in range(3):
        compiled(ROWS, PLACES)
    with pytest.raises(IndexError):
        compiled(ROWS, PLACES + 2)
