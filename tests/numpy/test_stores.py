"""Numbers stored into arrays of every dtype, in every way: what NumPy stores, and errors where NumPy raises.

NumPy stores arrays modulo the size of an integer dtype, Python numbers only if they fit, and NumPy numbers modulo the
size of an unsigned dtype, but only if they fit a signed one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.config import override
from fnad.errors import FnadError
from tests.together import drawn, some_of

DTYPES = ["?", "i1", "u1", "i4", "u8", "f4", "c16"]
PYTHON = (True, -2, 300, -1.5, 1e300, float("nan"), 2 + 1j)
PLACES = np.array([True, False, True])


def sources() -> Iterator[Any]:
    yield from PYTHON
    for dtype in map(np.dtype, DTYPES):
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        values = (True,) if dtype.kind == "b" else (limits.min, limits.max) if limits else (-1.5, 1e30, np.nan)
        for value in values:
            yield dtype.type(value)
        yield np.array(values[0], dtype)


def storing(index: Any) -> Callable[[Any, Any], Any]:
    def store(v: Any, b: Any) -> Any:
        v[index] = b
        return v

    return store


def in_place(name: str) -> Callable[[Any, Any], Any]:
    def call(v: Any, b: Any) -> Any:
        return getattr(v, name)(b)

    return call


def filled(v: Any, b: Any) -> Any:
    v.fill(b)
    return v


def flat(v: Any, b: Any) -> Any:
    v.flat[1] = b
    return v


def writing(function: Any, *before: Any, **options: Any) -> Callable[[Any, Any], Any]:
    def call(v: Any, b: Any) -> Any:
        function(v, *before, b, **options)
        return v

    return call


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "v[0] = b": storing(0),
    "v[:2] = b": storing(slice(0, 2)),
    "v[mask] = b": storing(PLACES),
    "v.fill(b)": filled,
    "v.flat[1] = b": flat,
    "np.full_like(v, b)": np.full_like,
    "np.put(v, [1], b)": writing(np.put, [1]),
    "np.copyto(v, b)": writing(np.copyto),
    "np.copyto(v, b, casting='unsafe')": writing(np.copyto, casting="unsafe"),
    "v += b": in_place("__iadd__"),
    "v *= b": in_place("__imul__"),
    "np.pad(v, 1, constant_values=b)": lambda v, b: np.pad(v, 1, constant_values=b),
}


def outcome(f: Callable[[Any, Any], Any], v: Any, b: Any) -> Any:
    """Return the dtype and bytes of a result, or None for an error that names what failed."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = f(v, b)
        except (FnadError, TypeError, ValueError, OverflowError) as error:
            return None if isinstance(error, FnadError) or f in WAYS.values() else repr(error)
        return found.dtype, found.tobytes()


def called(way: Callable[[Any, Any], Any], is_traced: bool) -> Callable[[Any, Any], Any]:
    """Return a compiled way to store a number in an array, which is traced too or a constant."""
    if is_traced:
        return fnad.jit(lambda v, b: way(v.copy(), b))
    constants = {dtype: np.ones(3, dtype) for dtype in DTYPES}
    of_dtype = {v.dtype: fnad.jit(lambda b, v=v: way(v.copy(), b)) for v in constants.values()}
    return lambda v, b: of_dtype[v.dtype](b)


@pytest.mark.parametrize(
    ("name", "is_traced", "executor"),
    [
        *((*way, "interpreter") for way in drawn(product(WAYS, (True, False)), lambda way: way[0])),
        *(("v[0] = b", True, "compiled"), ("v += b", False, "compiled")),
    ],
)
def test_a_number_is_stored_as_numpy_stores_it(name: str, is_traced: bool, executor: Any) -> None:
    """Into an array that is traced or not, as is drawn."""
    way, wrong = WAYS[name], list[Any]()
    run = called(way, is_traced)
    for dtype in DTYPES:
        for b in sources() if executor == "interpreter" else some_of([*sources()], f"{name} {dtype}", 4):
            v = np.ones(3, dtype)
            with override(executor=executor):
                expected, found = outcome(way, v.copy(), b), outcome(run, v, b)
            if found != expected:
                wrong.append((dtype, repr(b), expected, found))
    assert not wrong


def test_whether_a_number_fits_is_asked_each_time() -> None:
    def f(v: Any, b: Any) -> Any:
        v = v.copy()
        v[:2] = b
        return v

    for b in (2.5, 3.5, 4.5):
        assert fnad.jit(f)(np.ones(3, "u1"), b)[0] == int(b)
    for b in (-1.5, 1e300, float("nan")):
        with pytest.raises(fnad.errors.IntegerRangeError):
            fnad.jit(f)(np.ones(3, "u1"), b)
    compiled = fnad.jit(f)
    assert compiled(np.ones(3, "i1"), np.int16(5))[0] == 5
    with pytest.raises(fnad.errors.IntegerRangeError, match=r"a number of dtype i16 is out of bounds for int8\n  at"):
        compiled(np.ones(3, "i1"), np.int16(300))
