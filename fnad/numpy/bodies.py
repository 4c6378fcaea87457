"""NumPy and SciPy functions that are what their own bodies make of traced values.

What such a body computes with, ufuncs, other functions, methods and indexing, is dispatched to traced values by itself.
What is not, `asarray(m)`, `empty(n)` that is filled afterwards and lists of traced values, takes them here: the body is
made once more of the same code, over globals with `fnad.numpy` in the place of NumPy, and so are the functions that it
finds there. NumPy's functions and modules are left alone.

A function is listed here if its program is not larger than that of a rule and its derivatives are as good. It must not
branch on a traced value, which would be a guard. To trace a body takes two to four times as long as a rule, 0.1 to 0.3
ms, so what is called in inner loops, as `np.diff` is, has a rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from fnad.numpy.namespace import followed, on_trace
from fnad.numpy.registry import RULES
from fnad.upward import UPWARD

SHAPES = (
    *(np.array_split, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.dsplit, np.flip, np.fliplr, np.flipud),
    *(np.hsplit, np.matrix_transpose, np.rollaxis, np.rot90, np.split, np.vsplit, np.linalg.matrix_transpose),
)
"""Views: what is seen of traced values through a body is theirs."""

WHAT_IS_KNOWN = (np.iscomplexobj, np.isrealobj, np.ndim, np.shape, np.size)

ELEMENTS = (
    *(np.angle, np.append, np.iscomplex, np.isneginf, np.isposinf, np.isreal, np.nan_to_num),
    *(np.select, np.sort_complex, np.tril, np.triu),
)

SUMS = (*(np.cumulative_prod, np.cumulative_sum, np.nancumprod, np.nancumsum, np.nanprod, np.nansum, np.unwrap),)

OTHERS = (
    *(np.corrcoef, np.diag_indices_from, np.histogram2d, np.ix_, np.trapezoid, np.tril_indices_from),
    *(np.triu_indices_from, np.polyadd, np.polyder, np.polyint, np.polysub, np.polyval),
)

SETS = (
    *(np.setxor1d, np.trim_zeros, np.union1d, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values),
)
"""Their results have as many elements as masks have true ones."""

FFT = (np.fft.fftshift, np.fft.ifftshift)

LINALG = (
    *(np.linalg.cross, np.linalg.diagonal, np.linalg.matmul, np.linalg.matrix_norm, np.linalg.matrix_power),
    *(np.linalg.multi_dot, np.linalg.outer, np.linalg.svdvals, np.linalg.tensordot, np.linalg.tensorinv),
    *(np.linalg.tensorsolve, np.linalg.trace, np.linalg.vector_norm),
)

FILLED = (np.empty, np.full, np.ones, np.zeros)
"""The functions that make arrays into which traced values are written."""

SUBSTITUTES: dict[str, Callable[..., Any]] = {}
"""The replacements of SciPy's own functions for any kind of array, by name."""


class Body:
    """A body in the place of a rule: it is called on what the user gave, not on symbols."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


_made: dict[FunctionType, FunctionType] = {}
_namespaces: dict[str, dict[str, Any]] = {}


def anew(function: FunctionType) -> FunctionType:
    """A NumPy or SciPy function made of the same code, over globals that take traced values."""
    if function not in _made:
        namespace = _namespace(function.__globals__)
        closure = tuple(map(_cell_taking_traced, function.__closure__ or ())) or None
        code = UPWARD.converted_code(function.__code__, function.__globals__) or function.__code__
        made = FunctionType(code, namespace, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__, made.__dict__ = function.__kwdefaults__, function.__dict__
        _made[function] = made
    return _made[function]


def _namespace(original: dict[str, Any]) -> dict[str, Any]:
    name = original["__name__"]
    if name not in _namespaces:
        _namespaces[name] = {key: _taking_traced(value) for key, value in original.items()}
    return _namespaces[name]


def _cell_taking_traced(cell: CellType) -> CellType:
    """The replacement of a closure cell of a body: SciPy's decorators keep the decorated function in a cell."""
    content: Any = cell.cell_contents if cell != CellType() else None
    is_scipys = isinstance(content, FunctionType) and content.__module__.startswith("scipy.")
    return CellType(anew(content)) if is_scipys else cell


def _is_opened(module: str) -> bool:
    """True if what a body finds in a module is made anew: in NumPy's, and SciPy's."""
    return module.startswith(("numpy", "scipy"))


def _taking_traced(value: Any) -> Any:
    """The replacement of a global in a body that is made anew."""
    if isinstance(value, ModuleType):
        return _Names(value) if _is_opened(value.__name__) else value
    if any(value is function for function in FILLED):
        return on_trace(value)
    if value is np.asarray_chkfinite:  # which decides by the values: what is not finite is nan in the results
        return _taking_traced(np.asarray)
    if isinstance(value, FunctionType) and (value.__module__ or "").startswith("scipy."):
        return SUBSTITUTES.get(value.__name__, _Helper(value))
    if isinstance(value, type) and (value.__module__ or "").startswith("scipy."):
        return SUBSTITUTES.get(value.__name__, value)
    is_helper = isinstance(value, FunctionType) and (value.__module__ or "").startswith("numpy.") and value not in RULES
    return _Helper(cast("FunctionType", value)) if is_helper else followed(value)


class _Helper:
    """A function that a body finds among its globals, to be made anew when it is called."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rule = UPWARD.standing_for(self.function)
        has_rule = rule is not self.function and "_no_deco" not in kwargs  # which asks for the body in a decorator
        return (rule if has_rule else anew(self.function))(*args, **kwargs)


class _Names:
    """A module among the globals of a body."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        value = vars(self)[name] = _taking_traced(found)
        return value


XP: Any = _Names(np)
"""NumPy's names for bodies."""


def _where(cond: Any, args: Any, f1: Any, f2: Any = None, /, *, fill_value: Any = None, xp: Any = None) -> Any:
    """One function where a condition holds, and another one or a number elsewhere."""
    given = args if isinstance(args, (list, tuple)) else (args,)
    return XP.where(cond, f1(*given), f2(*given) if f2 is not None else fill_value)


class _At:
    """Elements of an array that are to be replaced in a copy: `at(x)[i].set(y)`, `at(x)[i].divide(y)`."""

    def __init__(self, x: Any, index: Any = None) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.x, index)

    def set(self, value: Any, **_: Any) -> Any:
        """The array with other elements."""
        x = XP.array(self.x)
        x[self.index] = value
        return x


def _elements(function: Callable[..., Any]) -> Any:
    """The method of `_At` that computes elements from those that are there and others."""
    return lambda at, value, **_: at.set(function(at.x[at.index], value))


for _name, _ufunc in {"min": np.minimum, "max": np.maximum}.items():
    setattr(_At, _name, _elements(_ufunc))
for _name in ("add", "subtract", "multiply", "divide", "power"):
    setattr(_At, _name, _elements(getattr(np, _name)))


def _output(output: Any, input: Any, shape: Any = None, complex_output: bool = False) -> Any:
    """The array that a filter of scipy.ndimage writes into."""
    if output is None or isinstance(output, (str, type, np.dtype)):
        return on_trace(np.zeros)(shape or input.shape, dtype=input.dtype if output is None else output)
    return output


SUBSTITUTES.update(
    _get_output=_output,
    _square_of_sums=lambda a, axis=0: XP.sum(a, axis=axis) ** 2,
    apply_where=_where,
    array_namespace=lambda *_, **__: XP,
    at=_At,
    create_diagonal=lambda x, offset=0, **_: XP.diag(x, offset),
)


class BodyOf(Body):
    """The body of a function, made anew at the first call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return anew(self.function)(*args, **kwargs)


for _function in (*SHAPES, *WHAT_IS_KNOWN, *ELEMENTS, *SUMS, *OTHERS, *SETS, *FFT, *LINALG):
    RULES[_function] = BodyOf(inspect.unwrap(_function))


def _ptp(a: Any, *args: Any, **kwargs: Any) -> Any:
    """NumPy's body leaves it to ufuncs to make an array of a list."""
    return anew(inspect.unwrap(np.ptp))(XP.asarray(a), *args, **kwargs)


RULES[np.ptp] = Body(_ptp)
