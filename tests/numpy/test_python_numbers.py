"""A Python number beside a traced number of NumPy, in a list or as the other operand, in every function that takes it.

Functions are tried in a few forms of arguments; what NumPy itself refuses, except for a number out of bounds, is left
out. Values and dtypes are those of NumPy, where the Python number is given and where it is traced too.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad.errors import FnadError, IntegerRangeError
from fnad.numpy.namespace import on_traced
from fnad.testing import precision
from tests.numpy.against_numpy import traced_at_hand
from tests.numpy.coverage import MODULES, public, rule_of
from tests.together import in_groups, some_of, together

FORMS: dict[str, Callable[..., Any]] = {
    "[b, k]": lambda f, b, k: f([b, k]),
    "[[k, b]]": lambda f, b, k: f([[k, b]]),
    "b, k": lambda f, b, k: f(b, k),
    "k, b": lambda f, b, k: f(k, b),
    "[b], k": lambda f, b, k: f([b], k),
    "[b, b], [k, k]": lambda f, b, k: f([b, b], [k, k]),
}

BESIDE = [
    *((dtype, number) for dtype in ("u1", "i4") for number in (-1, 2**40, 1.5, True)),
    *(("f4", number) for number in (100, 1e300, 1j)),
    ("c8", 1e300),
]

NO_OPERAND = {
    *("arange", "array_split", "bartlett", "base_repr", "binary_repr", "bincount", "blackman", "broadcast_to"),
    *("diag", "diag_indices", "diagflat", "diff", "dsplit", "empty", "empty_like", "eye", "flip", "fromiter"),
    *("full", "geomspace", "hamming", "hanning", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"),
    *("hsplit", "identity", "indices", "kaiser", "linspace", "logspace", "mask_indices", "matrix_power", "ones"),
    *("pad", "polyder", "polyint", "repeat", "reshape", "resize", "rollaxis", "rot90", "size", "split", "tile", "tri"),
    *("tril_indices", "triu_indices", "unravel_index", "vander", "vsplit", "zeros"),
}
"""Functions whose second argument is an axis or a size, or how often something is done."""

WITHOUT_VALUES = {"common_type", "einsum_path", "min_scalar_type", "result_type", "unique_values"}

DIFFERENT = {
    "allclose": "False for True",
    "around": "NumPy raises OverflowError",
    "cumprod": "raw error: TypeError('a symbol has no truth value",
    "cumsum": "raw error: TypeError('a symbol has no truth value",
    "ediff1d": "refused: Python int",
    "isclose": ("False for True", "[False] for [ True]"),
    "norm": ("raw error", "float64 () for float32 ()"),
    "roots": "complex128 (1,) for float64 (1,)",
    "round": "NumPy raises OverflowError",
    "unique": "raw error: TypeError('a symbol has no truth value",
}
"""What differs, by function: a tolerance relative to infinity, axes, orders and flags that are traced, a number that
NumPy wraps though it checks all others, results that are complex whatever the values."""


def functions() -> dict[str, Any]:
    names = [(module, name) for module in ("numpy", "numpy.linalg") for name in public(MODULES[module])]
    names = [(m, n) for m, n in names if n not in NO_OPERAND | WITHOUT_VALUES and rule_of(m, n) is not None]
    return {f"{module}.{name}": getattr(MODULES[module], name) for module, name in names}


def leaves(result: Any) -> list[Any]:
    return [np.asarray(part) for part in (result if isinstance(result, (list, tuple)) else (result,))]


def numpys(function: Any, form: Callable[..., Any], *numbers: Any) -> list[Any] | None:
    """Return what NumPy makes of a call, or "refused"; nothing where a number is out of bounds."""
    try:
        found = leaves(form(function, *numbers))
    except OverflowError:
        return None
    except Exception:  # noqa: BLE001
        return []
    return found if all(leaf.dtype.kind in "biufc" for leaf in found) else []


def difference(function: Any, form: Callable[..., Any], *numbers: Any, is_traced: bool) -> str | None:
    """Return how a call with numbers differs from NumPy's, or None."""
    own, (b, k) = on_traced(function), numbers
    expected = numpys(function, form, b, k)
    if expected == []:
        return None
    given, call = (numbers, lambda b, k: form(own, b, k)) if is_traced else ((b,), lambda b: form(own, b, k))
    try:
        found = leaves(traced_at_hand(call, *copy.deepcopy(given))[0])
    except IntegerRangeError as error:
        return None if expected is None else f"refused: {error}"
    except FnadError:
        return None
    except Exception as error:  # noqa: BLE001
        return f"raw error: {error!r}"
    return "NumPy raises OverflowError" if expected is None else unlike(found, expected)


def unlike(found: list[Any], expected: list[Any]) -> str | None:
    """Return how results differ, or None."""
    for f, e in zip(found, expected, strict=True):
        if (e.dtype, e.shape) != (f.dtype, f.shape):
            return f"{f.dtype} {f.shape} for {e.dtype} {e.shape}"
        tolerance = 1e4 * precision(e.dtype) if e.dtype.kind in "fc" else 0
        if not np.allclose(f, e, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{f} for {e}"
    return None


@in_groups("function", functions().values(), list(functions()))
def test_a_python_number_beside_a_traced_one(function: Any) -> None:
    """A third of the numbers, which are drawn, each traced too or not."""
    random = Random(function.__name__)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"), together() as check:
        for name, form in FORMS.items():
            for dtype, number in some_of(BESIDE, f"{function.__name__} {name}", len(BESIDE) // 3):
                is_traced = random.random() < 0.5
                with check((name, dtype, number, is_traced)):
                    found = difference(function, form, np.dtype(dtype).type(3), number, is_traced=is_traced)
                    assert found is None or found.startswith(DIFFERENT.get(function.__name__, ()))


# ---- written into an array -------------------------------------------------------------------------------------------


def into_copy(write: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def written(v: Any, k: Any) -> Any:
        new = v.copy()
        write(new, k)
        return new

    return written


WRITES: dict[str, Callable[..., Any]] = {
    "element": into_copy(lambda v, k: v.__setitem__(0, k)),
    "slice": into_copy(lambda v, k: v.__setitem__(slice(0, 2), k)),
    "list": into_copy(lambda v, k: v.__setitem__([0, 2], [k, k])),
    "mask": into_copy(lambda v, k: v.__setitem__(v > 0, k)),
    "fill": into_copy(lambda v, k: v.fill(k)),
    "put": into_copy(lambda v, k: np.put(v, [0], k)),
    "putmask": into_copy(lambda v, k: np.putmask(v, np.array([True, False, True]), k)),
    "full_like": np.full_like,
    "insert": lambda v, k: np.insert(v, 0, k),
    "where": lambda v, k: np.where(v > 3, v, k),
    "select": lambda v, k: np.select([v > 3], [v], k),
    "choose": lambda v, k: np.choose(1, [v, k]),
    "concatenate": lambda v, k: np.concatenate([v, k], axis=None),
    "maximum": lambda v, k: np.maximum(v, k),
    "clip": lambda v, k: np.clip(v, k, k),
}

WRITTEN = (
    *[("u1", number) for number in (3, 300, -1, 2.5, np.int16(-2))],
    *[("i4", number) for number in (2**40, 1.5, np.float64(2.7), 1j)],
    *[("i8", number) for number in (2**63, 2**70)],
    *[("u8", number) for number in (2**63, -1)],
    *[("f4", number) for number in (1e300, 1j, np.complex64(1j))],
)


@pytest.mark.parametrize("name", WRITES)
def test_a_number_written_into_an_array(name: str) -> None:
    write = WRITES[name]
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"), together() as check:
        for dtype, number in WRITTEN:
            v = np.ones(3, dtype)
            for is_traced in (False, type(number) is not int or abs(number) < 2**63):
                with check((dtype, number, is_traced)):
                    call = write if is_traced else lambda v: write(v, number)  # noqa: B023
                    given = (v, number) if is_traced else (v,)
                    try:
                        expected = [write(v, number)]
                    except (OverflowError, TypeError, ValueError):
                        with pytest.raises(FnadError):
                            traced_at_hand(call, *given)
                    else:
                        assert unlike([traced_at_hand(call, *given)[0]], expected) is None


def test_a_traced_integer_is_checked_where_it_decides() -> None:
    x, product = np.arange(3, dtype="u1"), fnad.jit(lambda x, s: x * s)
    for s in (3, 4, 3):
        assert_array_equal(product(x, s), x * s, strict=True)
    for s in (300, -1):
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            product(x, s)
    assert_array_equal(fnad.vmap(lambda x, s: x * s, in_axes=(0, None))(x, 3), x * 3, strict=True)
    with pytest.raises(TypeError, match="may not fit u8"):
        fnad.fori_loop(0, 3, lambda i, c: (c[0] * c[1], c[1]), (x, 3))


def test_none_among_floats_is_nan() -> None:
    for call in (lambda t: np.array([t, None], float), lambda t: np.array([[None, t], [1, t]], "f4")):
        assert_array_equal(fnad.jit(call)(2.0), call(2.0), strict=True)
    assert fnad.grad(lambda t: np.nansum(np.array([t, None, t], float) ** 2))(3.0) == 12
    with pytest.raises(TypeError, match="NoneType"):
        fnad.jit(lambda t: np.array([t, None], int))(2)


@pytest.mark.parametrize("dtype", ["u1", "u4", "u8", "i1", "i8", "f4", "c8", "?"])
def test_integers_written_into_new_arrays_wrap(dtype: str) -> None:
    def element(b: Any) -> Any:
        v = np.zeros(3, dtype)
        v[0] = b
        v[1:] = b + 1
        return v

    for b in (np.int16(-2), np.int16(3), np.int64(-1), np.uint8(7)):
        with warnings.catch_warnings(action="ignore"):
            assert_array_equal(fnad.jit(element)(b), element(b), strict=True)
    run = fnad.jit(element)
    for b in range(20):  # no integer is a path of its own
        assert_array_equal(run(np.int32(b)), element(np.int32(b)), strict=True)
