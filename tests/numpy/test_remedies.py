"""What is found when a program runs says the way out too, and where, interpreted and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import grad, jit
from fnad.errors import DomainError, FactorizationError, FnadError

MASK = np.array([1.0, -1, 0])
ONES = np.ones((3, 3))
CASES: dict[str, tuple[Any, Any, type[Exception], str, str]] = {
    "no element": (lambda x: np.max(x[x > 5]), MASK, DomainError, "no element is selected", "give `initial`"),
    "singular": (np.linalg.inv, np.zeros((2, 2)), FactorizationError, "Singular matrix", "pinv"),
    "not positive": (np.linalg.cholesky, -np.eye(2), FactorizationError, "positive definite", "small multiple"),
    "singular system": (lambda x: np.linalg.solve(x, x[0]), np.zeros((2, 2)), FactorizationError, "ingular", "pinv"),
    "no singular values": (np.linalg.svdvals, ONES * np.nan, FactorizationError, "converge", "look for nan"),
    "not converged": (np.linalg.eigvalsh, ONES * np.nan, FactorizationError, "converge", "look for nan"),
    "quantile": (lambda x: np.quantile(x, x[0] + 5), MASK, DomainError, "in the range", "clip"),
    "choice": (lambda x: np.choose((x > 0) + 1, [x, x]), MASK, DomainError, "invalid entry", "mode='clip'"),
    "all nan": (lambda x: np.nanargmax(x), MASK * np.nan, DomainError, "All-NaN", "np.where"),
    "rank": (lambda x: np.linalg.lstsq(x[:, :2], x[0])[1], ONES, DomainError, "full rank", "unused"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_that_a_program_raises_says_where_and_what_to_do(name: str) -> None:
    f, x, error, what, remedy = CASES[name]
    scalar = lambda x: np.sum(f(x)) * np.sum(x)  # noqa: E731
    for run in (jit(scalar), grad(scalar)):
        with pytest.raises(error) as raised:
            run(x)
        lines = str(raised.value).splitlines()
        assert len(lines) == 3
        assert what in lines[0]
        assert "test_remedies.py" in lines[1]
        assert remedy in lines[2]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: np.vstack([x, x[:, :2]]), "must match exactly"),
        (lambda x: np.rollaxis(x, 5), "axis 5 is out of bounds"),
        (lambda x: np.rot90(x, axes=(0, 0)), "Axes must be different"),
        (lambda x: np.linalg.multi_dot([x]), "at least two arrays"),
        (lambda x: np.linalg.cross(x, x[:, :2]), "3-dimensional vectors"),
        (lambda x: np.unwrap(x, axis="first"), "'str' object cannot be interpreted as an integer"),
    ],
)
def test_an_error_of_numpys_own_body_says_where_and_what_to_do(call: Any, what: str) -> None:
    with pytest.raises(Exception, match=what) as numpys:
        call(ONES)
    builtin = next(c for c in numpys.type.__mro__ if c.__module__ == "builtins")
    with pytest.raises(FnadError, match=what) as raised:
        grad(lambda x: np.sum(call(x)))(ONES)
    assert isinstance(raised.value, builtin)
    lines = str(raised.value).splitlines()
    assert "test_remedies.py" in lines[1]
    assert "check the" in lines[-1]


def test_a_body_of_numpys_is_made_anew_and_numpys_own_is_left_alone() -> None:
    before = {name: id(value) for name, value in np.vstack.__wrapped__.__globals__.items()}  # pyright: ignore[reportFunctionMemberAccess]
    np.testing.assert_array_equal(grad(lambda t: np.sum(np.vstack([[t, 2 * t], [1.0, t]]) ** 2))(3.0), 36)
    np.testing.assert_array_equal(np.vstack([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
    assert before == {name: id(value) for name, value in np.vstack.__wrapped__.__globals__.items()}  # pyright: ignore[reportFunctionMemberAccess]
