"""Functions of Python that want numbers, on traced values: of math and cmath, and the builtins.

Python's functions of C ask a value for its number. A function here is called in the place of one of them, and is that
function where no argument is traced. For traced values the result is what Python has there, a traced Python number:
`math.exp` of a float32 is a float.

Note [Errors of math]
    Where NumPy has a nan or an infinity, math raises: `math.sqrt(-1.0)`. Where the arguments have values at hand, a
    guard says that the result is finite; if it is not, Python's own function is called with the values, and raises what
    it does. Where they have none, in the body of a loop, the result is NumPy's.

Note [Choices]
    `min`, `max`, `int`, `round` and `math.floor` decide by values. Where these are at hand that is a guard, as for
    `if`. Where they are not, `np.where` chooses, and the integer is traced. In the step of a loop that is traced as one
    it chooses among numbers of one type in any case, which halves the ways through the step.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce, wraps
from inspect import signature
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from fnad.errors import ArgumentTypeError
from fnad.ir.primitive import PRIMITIVES, Primitive
from fnad.ir.size import is_size
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, I64, Dtype
from fnad.ops import conversion
from fnad.ops.comparison import isfinite, isinf, isnan
from fnad.ops.conversion import convert_to
from fnad.trace import escape, guards
from fnad.trace.attempts import is_handled
from fnad.trace.dispatch import call, call_function, weakened
from fnad.trace.handle import Elements, Handle
from fnad.trace.listed import Listed
from fnad.trace.looping import LOOPING
from fnad.trace.operators import is_python_like
from fnad.trace.wrapping import as_arrays, has_traced, is_known
from fnad.upward import UPWARD

Function: TypeAlias = Callable[..., Any]
C128 = DTYPES["c128"]

# ---- conversions -----------------------------------------------------------------------------------------------------


def like(x: Any) -> Any:
    """Zeros like a traced value, which Python refuses where it would refuse the value."""
    zeros = np.broadcast_to(np.zeros((), x.aval.dtype), x.aval.shape)
    return zeros.item() if x.is_weak else zeros[()] if x.is_scalar else zeros


def refuse(convert: Function, x: Any) -> None:
    """Raise where Python refuses to convert what is like a traced value."""
    try:
        convert(like(x))
    except TypeError as error:
        what, remedy = f"{error}, given {x.aval}", "NumPy's functions take arrays and complex numbers"
        raise ArgumentTypeError.here(what, remedy=remedy) from None


def number(x: Any, dtype: Dtype, convert: Function) -> Any:
    """`convert(x)`, which is a Python number of a dtype."""
    x = UPWARD.number_of_size(x) if is_size(x) else x
    if not isinstance(x, Handle):
        return convert(x)
    if x.is_weak and x.aval.dtype == dtype:
        return x
    refuse(convert, x)
    part = call(conversion.real, (x,), {}) if x.aval.dtype.kind == "c" != dtype.kind else x
    return weakened(call(convert_to, (part, dtype), {}))


def real(x: Any) -> Any:
    """A number as the functions of math take it: no string, which float does."""
    return number(x, F64, lambda x: math.ldexp(x, 0))


def to_float(x: Any) -> Any:
    return number(x, F64, float)


def to_complex(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """`complex(real, imag)`: real + imag * i, in parts where both are real, which an infinity needs."""
    if not any(isinstance(x, complex) for x in (real, imag)):
        parts = [np.add(to_float(part), 0.0) for part in (real, imag)]
        return weakened(call(conversion.complex_, parts, {})) if has_traced(parts) else complex(real, imag)
    re, im = number(real, C128, complex), number(imag, C128, complex)
    return re + im * 1j


def rounded(function: Function, rounding: Function) -> Function:
    """A function that makes an integer of a number: a traced one where the number is not at hand."""
    return lambda x: x if is_size(x) else function(x) if is_at_hand(x) else integer(rounding, x)


def integer(rounding: Function, x: Any) -> Any:
    """A number rounded to a traced Python integer."""
    return weakened(call(convert_to, (rounding(number(x, F64, float)), I64), {}))


def is_at_hand(*values: Any) -> bool:
    """True if there are values for traced scalars; arrays are none."""
    scalars = (x for x in values if isinstance(x, Handle) and not x.aval.shape)
    return all(guards.outermost(x.symbol) is not None for x in scalars)


# ---- errors: see Note [Errors of math] -------------------------------------------------------------------------------


def checked(function: Function, rule: Function) -> Function:
    """The rule of a function of math that raises what this does where the result is known."""

    def compute(*args: Any) -> Any:
        result = rule(*args)
        if not is_at_hand(result):
            _part_rows(result)
        elif not all_are(isfinite, [result]):
            given = [x for arg in args for x in (arg if isinstance(arg, list) else [arg]) if isinstance(x, Handle)]
            is_nan = not none_is(isnan, [result])
            if none_is(isnan, given) and (is_nan or none_is(isinf, given)):
                function(*map(value, args))
        return result

    return compute


def _part_rows(result: Handle) -> None:
    """Trace rows of `vmap` one after the other if a clause of user code handles the error of one.

    Elsewhere the clause would not run, so it is an error.
    """
    if not is_handled(ValueError, OverflowError):
        return
    if guards.rows_at_hand(result.symbol) is None:
        raise escape.truth_asked(result.aval)
    if not all_are(isfinite, [result]):
        guards.part_rows(result.symbol)
        raise escape.truth_asked(result.aval)


def all_are(predicate: Primitive, values: Sequence[Any]) -> bool:
    """True if all parts of numbers at hand are, and guard the path with it."""
    return all(is_true(predicate, part) for x in values for part in parts(x))


def none_is(predicate: Primitive, values: Sequence[Any]) -> bool:
    """True if no part of numbers at hand is, and guard the path with it."""
    return not any(is_true(predicate, part) for x in values for part in parts(x))


def parts(x: Any) -> Sequence[Symbol]:
    """The real and the imaginary part of a traced number; none of an integer, which always is finite."""
    if x.aval.dtype.kind == "c":
        return [call(part, (x,), {}).symbol for part in (conversion.real, conversion.imag)]
    return [x.symbol] if x.aval.dtype.kind == "f" else []


def is_true(predicate: Primitive, x: Symbol) -> bool:
    return bool(guards.truth(x.builder.bind(predicate, (x,), {})))


def value(x: Any) -> Any:
    """The value at hand as a Python number, in a list too."""
    if isinstance(x, list):
        return list(map(value, x))
    found = guards.value_at_hand(x.symbol) if isinstance(x, Handle) else None
    return x if found is None else found.item()


# ---- math ------------------------------------------------------------------------------------------------------------


def of_floats(compute: Function) -> Function:
    """A rule of math: on floats, with a Python number as the result."""
    return lambda *args, **options: weakened(compute(*map(real, args), **options))


def primitive(name: str) -> Function:
    return lambda *args: call(PRIMITIVES[name], args, {})


def log_to(function: Function, log: Function) -> Function:
    """The logarithm of math or cmath, to a base too, where both logarithms may raise, and the quotient."""
    known = checked(function, log)

    def one(x: Any) -> Any:
        return known(x) if isinstance(x, Handle) or is_size(x) else function(x)

    return lambda x, *base: checked(function, lambda x, base: one(x) / one(base))(x, *base) if base else one(x)


def remainder(x: Any, y: Any) -> Any:
    """The rest x - n y, for the integer n next to x / y, the even one of two: by remainders, which are exact."""
    whole, size = np.abs(x), np.abs(y)
    rest = np.fmod(whole, size)
    to_next = size - rest
    halfway = rest - 2.0 * np.fmod(0.5 * (whole - rest), size)
    return np.copysign(1.0, x) * np.where(rest < to_next, rest, np.where(rest > to_next, -to_next, halfway))


def hypot(*coordinates: Any) -> Any:
    return reduce(np.hypot, coordinates) if len(coordinates) > 1 else np.abs(*coordinates)


def dist(p: Any, q: Any) -> Any:
    return hypot(*[real(x) - real(y) for x, y in zip(p, q, strict=True)])


def fsum(seq: list[Any]) -> Any:
    return call_function(np.sum, ([real(x) for x in seq],), {})


def ldexp(x: Any, i: Any) -> Any:
    if isinstance(i, Handle):
        refuse(partial(math.ldexp, 0.0), i)
    return call_function(np.ldexp, (real(x), i), {})


def frexp(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return mantissa, call(convert_to, (exponent, I64), {})


def ulp(x: Any) -> Any:
    return np.where(np.isinf(x), np.abs(x), np.spacing(np.abs(x)))


def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    distance, tolerance = np.abs(a - b), np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol)
    return np.equal(a, b) | ((distance <= tolerance) & (distance < np.inf))


SMALLEST = sys.float_info.min
"""The smallest normal number."""

ARC = {name: f"arc{name[1:]}" for name in ("acos", "asin", "atan", "acosh", "asinh", "atanh", "atan2")}
"""NumPy's names for the inverse functions."""

RAISING: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("cos", "cosh", "exp", "exp2", "expm1", "fmod", "log10", "log1p", "log2")},
    **{name: getattr(np, name) for name in ("sin", "sinh", "sqrt", "tan")},
    **{name: getattr(np, ARC[name]) for name in ("acos", "asin", "acosh", "atanh")},
    "gamma": primitive("gamma"),
    "lgamma": primitive("gammaln"),
    "pow": np.power,
    "remainder": remainder,
}
"""The replacements of functions of math that may raise, on floats."""

TOTAL: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("cbrt", "copysign", "degrees", "isfinite", "isinf", "isnan", "modf")},
    **{name: getattr(np, name) for name in ("fmax", "fmin", "nextafter", "radians", "signbit", "tanh")},
    **{name: getattr(np, ARC[name]) for name in ("asinh", "atan", "atan2")},
    "erf": primitive("erf"),
    "erfc": primitive("erfc"),
    "fabs": np.abs,
    "frexp": frexp,
    "hypot": hypot,
    "isclose": isclose,
    "isnormal": lambda x: (np.abs(x) >= SMALLEST) & np.isfinite(x),
    "issubnormal": lambda x: (x != 0.0) & (np.abs(x) < SMALLEST),
    "ulp": ulp,
}
"""The replacements of the other functions of math, on floats."""

# ---- cmath -----------------------------------------------------------------------------------------------------------

COMPLEX: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("cos", "cosh", "exp", "log10", "sin", "sinh", "sqrt", "tan", "tanh")},
    **{name: getattr(np, ARC[name]) for name in ("acos", "asin", "atan", "acosh", "asinh", "atanh")},
}
"""The replacements of functions of cmath that may raise, on complex numbers."""

COMPLEX_TOTAL: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("isfinite", "isinf", "isnan")},
    "isclose": isclose,
    "phase": np.angle,
    "polar": lambda z: (np.abs(z), np.angle(z)),
}
"""The replacements of the other functions of cmath, on complex numbers."""


def of_complex(compute: Function) -> Function:
    """A rule of cmath: on complex numbers, with a Python number as the result."""
    return lambda *args, **options: weakened(compute(*[number(x, C128, complex) for x in args], **options))


def rect(r: Any, phi: Any) -> Any:
    r, phi = real(r), real(phi)
    return to_complex(r * np.cos(phi), r * np.sin(phi))


# ---- builtins --------------------------------------------------------------------------------------------------------


class Asking(type):
    """The class of what stands for `type`, and is equal to it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            return args[0].__class__ if isinstance(args[0], (Handle, Elements)) else type(*args)
        made = type(*args, **kwargs)
        if made.__module__ == __name__:  # that of the caller
            made.__module__ = sys._getframe(1).f_globals.get("__name__", "builtins")  # pyright: ignore[reportPrivateUsage]
        return made

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is type

    def __hash__(cls) -> int:
        return hash(type)

    def __repr__(cls) -> str:
        return repr(type)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, type)


class_of = Asking("type", (type,), {"__module__": "builtins", "__doc__": type.__doc__})
"""The replacement of `type` in traced code: for a traced value, the class of the value it represents."""


def are_alike(*values: Any) -> bool:
    """True for traced numbers of one type."""
    kinds = {(x.aval, x.is_weak) if isinstance(x, Handle) and x.is_scalar else None for x in values}
    return len(kinds) == 1 and None not in kinds


def extreme(function: Function, is_better: Function) -> Function:
    """`min` or `max`. See Note [Choices]."""

    def choose(first: Any, *others: Any, **options: Any) -> Any:
        values: Sequence[Any] = (first, *others) if others else first
        decides = is_at_hand(*values) and not (LOOPING.steps and are_alike(*values))
        if options.keys() - {"default"} or decides or any(np.ndim(x) for x in values):
            return function(values, **options)
        return reduce(better, values)

    def better(x: Any, y: Any) -> Any:
        found = call_function(np.where, (is_better(y, x), y, x), {})
        return weakened(found) if is_python_like(x) and is_python_like(y) else found[()] if are_alike(x, y) else found

    return choose


def nearest(x: Any, ndigits: Any = None) -> Any:
    """`round(x)`: an integer unless it says to how many digits."""
    return round(x, ndigits) if ndigits is not None or is_at_hand(x) else integer(np.rint, x)


# ---- all of them -----------------------------------------------------------------------------------------------------


def _of_modules() -> Iterator[tuple[Function, Function]]:
    for module, of_numbers, raising, total in (
        (math, of_floats, RAISING, TOTAL),
        (cmath, of_complex, COMPLEX, COMPLEX_TOTAL),
    ):
        for name, compute in raising.items():
            yield getattr(module, name), checked(getattr(module, name), of_numbers(compute))
        for name, compute in total.items():
            if hasattr(module, name):  # some are new in Python 3.15
                yield getattr(module, name), of_numbers(compute)


STANDARD: dict[Any, Function] = {
    **dict(_of_modules()),
    cmath.log: log_to(cmath.log, of_complex(np.log)),
    cmath.rect: rect,
    complex: to_complex,
    float: to_float,
    int: rounded(int, np.trunc),
    math.ceil: rounded(math.ceil, np.ceil),
    math.dist: lambda p, q: weakened(dist(p, q)),
    math.floor: rounded(math.floor, np.floor),
    math.fsum: checked(math.fsum, lambda seq: weakened(fsum(seq))),
    math.log: log_to(math.log, of_floats(np.log)),
    math.ldexp: checked(math.ldexp, lambda x, i: weakened(ldexp(x, i))),
    math.trunc: rounded(math.trunc, np.trunc),
    max: extreme(max, np.greater),
    min: extreme(min, np.less),
    round: nearest,
}
"""The replacements of functions if an argument is traced."""

LISTING: set[Function] = {math.dist, math.fsum}
"""Functions that go over their arguments; `min` and `max` do if there is one."""


METHODS: dict[Function, str] = {int: "__int__", complex: "__complex__"}
"""The method of an object that tells its number to a function; that of all others is `__float__`."""


def as_number(x: Any, method: str) -> Any:
    """The traced number that an object converts to, which Python's functions refuse; in a list too."""
    if isinstance(x, list):
        return [as_number(one, method) for one in x]
    tell = getattr(type(x), method, None)
    found = tell(x) if isinstance(tell, FunctionType) else x
    return found if isinstance(found, Handle) else x


def on_numbers(function: Function) -> Function:
    """A function that follows its rule where an argument is traced."""
    rule = STANDARD[function]

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if function in (min, max) and len(args) == 1 and type(args[0]) is Listed and not kwargs:
            return args[0].best(function)
        if kwargs and function in LISTING:
            given = signature(function).bind(*args, **kwargs)
            args, kwargs = given.args, given.kwargs
        if function in LISTING or (function in (min, max) and len(args) == 1):
            args = tuple(list(arg) if isinstance(arg, Iterable) else arg for arg in args)
        if not has_traced((args, kwargs)):
            try:
                return function(*args, **kwargs)
            except TypeError:
                args = tuple(as_number(arg, METHODS.get(function, "__float__")) for arg in args)
                if not has_traced(args):
                    raise
        if is_known((args, kwargs)):
            return function(*as_arrays(args), **as_arrays(kwargs))
        return rule(*args, **kwargs)

    return call
