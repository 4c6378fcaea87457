"""Calls over every option of every function of NumPy's that has a rule, beside NumPy's own.

The value, the dtype, the shape and the class are equal, or both raise; what differs is in `DIFFERENT`, with the reason.
`FNAD_CALLS=500 python -m pytest tests/numpy/test_generated_calls.py` draws as many calls for each parameter.
"""

import copy
import inspect
import os
import re
import warnings
from functools import partial

import numpy as np
import optree
import pytest

from fnad.errors import FnadError, TracerEscapeError
from fnad.numpy.bodies import Body
from fnad.numpy.namespace import on_traced
from fnad.numpy.registry import RULES
from fnad.testing import precision
from tests.numpy.against_numpy import traced_at_hand
from tests.numpy.coverage import MODULES, public, rule_of
from tests.numpy.generated_calls import SEVERAL_AXES, call_of, split
from tests.together import in_groups

CALLS = int(os.environ.get("FNAD_CALLS", "5"))
ULPS = 2000

WITHOUT_NUMBERS = {"common_type", "result_type", "min_scalar_type", "empty", "empty_like", "fromiter"}
SUBSCRIPTS = {"einsum", "einsum_path", "ix_"}
LEFT_OUT = WITHOUT_NUMBERS | SUBSCRIPTS
"""Functions whose results are no numbers, or undefined; that have other tests."""

TRANSFORMS = [f"{prefix}{name}" for name in ("fft", "fft2", "fftn") for prefix in ("", "i", "r", "ir")]

DIFFERENT = {
    **dict.fromkeys(TRANSFORMS, (r"value .*(inf|nan)",)),  # scipy.fft multiplies inf in another order
    "": (r"gives float16, which is not supported",),
    "apply_over_axes": (r"out of bounds for array of dimension 0",),
    "arange": (r"a bound of arange was given as a traced value",),
    "array": (r"Unable to avoid copy",),
    "asanyarray": (r"Unable to avoid copy",),
    "asarray": (r"Unable to avoid copy",),
    "average": (r"NumPy raises ZeroDivisionError: division by zero",),
    "bincount": (
        r"Cannot cast array data from dtype\('complex",
        r"don't have the same length",
        r"takes those from 0 to minlength - 1",
    ),
    "copyto": (r"assignment destination is read-only",),
    "cov": (r"NumPy raises ZeroDivisionError",),
    "digitize": (r"bins must be monotonically increasing while tracing",),
    "eig": (r"dtype",),
    "eigvals": (r"dtype",),
    "histogram": (
        r"ge does not take c",
        r"scatter_add does not take bool",
        r"the number of bins that bins='auto' chooses",
    ),
    "histogram2d": (r"ge does not take c",),
    "histogram_bin_edges": (r"the number of bins that bins='auto' chooses",),
    "histogramdd": (r"ge does not take c",),
    "irfftn": (r"value",),
    "median": (
        r"class",
        r"inf\+nanj",
        r"newaxis",
    ),
    "nan_to_num": (r"Unable to avoid copy",),
    "nanmedian": (r"class",),
    "nanpercentile": (
        r"index 1 is out of bounds for axis 0 with size 1",
        r"Weights included NaN",
        r"class",
    ),
    "nanquantile": (r"class",),
    "partition": (r"value",),  # NumPy leaves the order open between the places that are asked for
    "percentile": (r"class",),
    "piecewise": (
        r"list index out of range",
        r"boolean index did not match",
        r"index 0 is out of bounds",
    ),
    "place": (r"Cannot cast scalar",),
    "polydiv": (r"shape",),
    "polyval": (r"class",),
    "put": (
        r"cannot replace elements of an empty array",
        r"assignment destination is read-only",
    ),
    "put_along_axis": (r"could not broadcast input array",),
    "putmask": (r"Cannot cast scalar",),
    "qr": (r"no rule for mode='raw'",),
    "quantile": (r"class",),
    "ravel": (r"asks for the layout in memory",),
    "reshape": (
        r"Unable to avoid creating a copy",
        r"asks for the layout in memory",
    ),
    "roots": (r"dtype",),
    "take": (r"indices are integers, got f64\[\]",),
    "tensordot": (r"value .*(inf|nan)",),
    **dict.fromkeys(
        ("tril_indices", "triu_indices"), (r"was given as a traced value of aval", r"NumPy raises OverflowError")
    ),
    "unique_values": (r"value",),
    "vecdot": (r"value .*(inf|nan)",),
}
"""What differs from NumPy by function, and in all under the empty name: refusals that are documented, results that are
complex whatever the values, an order that NumPy leaves open, and of an array without dimensions a NumPy scalar in the
place of such an array."""

FUNCTIONS = [
    (module, name)
    for module in ("numpy", "numpy.linalg", "numpy.fft")
    for name in public(MODULES[module])
    if name not in LEFT_OUT
    and rule_of(module, name) is not None
    and not isinstance(getattr(MODULES[module], name), np.ufunc)
]


def difference(name, function, number):
    """Return how a call differs from NumPy's, or None."""
    return difference_of(function, *call_of(name, function, number))


def difference_of(function, args, kwargs):
    """Return how a call differs from NumPy's, or None."""
    arrays, call = split(args, kwargs)
    try:
        expected = call(function, copy.deepcopy(arrays))
    except Exception as error:  # noqa: BLE001
        return unless_raised(error, partial(on_first_traced, call, function, arrays))
    try:
        found, scalars = on_first_traced(call, function, arrays)
    except FnadError as error:
        return f"refused: {error}"
    return unlike(expected, found, scalars, coarsest([*arrays, *dtypes_of(kwargs)]))


def on_first_traced(call, function, arrays):
    """Trace a call on all arrays, or where the shape of the result depends on others on the first alone."""
    try:
        return traced_at_hand(lambda *xs: call(on_traced(function), xs), *copy.deepcopy(arrays))
    except TracerEscapeError:
        return traced_at_hand(
            lambda x: call(on_traced(function), [x, *copy.deepcopy(arrays[1:])]), *copy.deepcopy(arrays[:1])
        )


def unless_raised(error, run):
    """Return that only NumPy raised, or that the error speaks of what no user has heard of."""
    try:
        run()
    except Exception as own:  # noqa: BLE001
        return f"raw error: {own!r}" if "Symbol" in str(own) else None
    return f"NumPy raises {type(error).__name__}: {error}"


def dtypes_of(options):
    """Return the dtype that was asked for, if one was."""
    return [np.dtype(options["dtype"])] if options.get("dtype") else []


def coarsest(given):
    """Return the least precision of the floats among arrays and dtypes."""
    kinds = [getattr(x, "dtype", x) for x in given]
    return max((precision(dtype) for dtype in kinds if dtype.kind in "fc"), default=0)


def unlike(expected, found, scalars, coarse=0.0):
    """Return how results differ, by more than rounding in the dtype of the result or of an operand."""
    leaves, tree = optree.tree_flatten(expected)
    if optree.tree_structure(found) != tree:
        return "structure"
    for e, f in zip(map(np.asarray, leaves), optree.tree_leaves(found), strict=True):
        if e.dtype != f.dtype:
            return f"dtype {f.dtype} for {e.dtype}"
        if e.shape != f.shape:
            return f"shape {f.shape} for {e.shape}"
        tolerance = ULPS * max(precision(e.dtype), coarse) if e.dtype.kind in "fc" else 0
        if not np.allclose(f, e, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"value {f} for {e}"
    return None if scalars == [not isinstance(leaf, np.ndarray) for leaf in leaves] else f"class: {expected!r}"


def is_known(name, found):
    """Say whether a difference is one of those listed."""
    return any(re.search(pattern, found, re.DOTALL) for pattern in (*DIFFERENT.get(name, ()), *DIFFERENT[""]))


@in_groups(("module", "name"), FUNCTIONS)
def test_generated_calls_return_or_refuse_as_numpy(module, name):
    function, full = getattr(MODULES[module], name), f"{module}.{name}"
    differences = {}
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        for number in range(CALLS * len(inspect.signature(function).parameters)):
            found = difference(full, function, number)
            if found and not is_known(name, found):
                differences[number] = found
    calls = {number: f"{found} in {name}{call_of(full, function, number)}" for number, found in differences.items()}
    assert not calls


def test_bodies_of_numpy_itself_compute_when_traced():
    """A few calls of each function that is NumPy's own body, which another version may have written anew."""
    bodies = [f for f, rule in RULES.items() if isinstance(rule, Body) and f.__module__.startswith("numpy")]
    bodies = [f for f in bodies if f is not np.may_share_memory]  # which has no signature before NumPy 2.4
    bodies = [f for f in bodies if not f.__module__.startswith("numpy.polynomial")]  # see `series_calls`
    assert len(bodies) > 40
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        for function in bodies:
            module, name = function.__module__, function.__name__
            for number in range(CALLS):
                found = difference(f"{module}.{name}", function, number)
                assert not found or is_known(name, found), (name, number, found)


@pytest.mark.peers
def test_axes_of_a_scalar():
    for name in sorted(SEVERAL_AXES - LEFT_OUT):
        for axis in (-1, 0, 5, (0,), ()):
            function = getattr(np, name, None) or getattr(np.linalg, name)
            required = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
            if len(required) == 1 or name == "expand_dims":
                found = difference_of(function, [np.float64(2)], {"axis": axis})
                assert not found or is_known(name, found), (name, axis, found)


def test_a_difference_is_seen():
    assert unlike(np.float64(2), np.array(2.0), [False]).startswith("class")
    assert unlike(np.ones(2), np.ones(2, "f4"), [False]) == "dtype float32 for float64"
    assert unlike(np.ones(2), np.array([1, 1 + 1e-9]), [False]).startswith("value")
    assert unlike((1.0,), [np.array(1.0)], [True]) == "structure"
