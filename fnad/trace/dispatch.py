"""From a NumPy call on handles to its rule on symbols, and back.

`out=` and the `where=` of ufuncs are met here, for all rules alike: they are writes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias, cast

import numpy as np

from fnad.errors import (
    ArgumentTypeError,
    AxisError,
    DtypeError,
    FnadError,
    MatrixError,
    MutationError,
    OutOfRangeError,
    ShapeError,
    UnsupportedFunctionError,
)
from fnad.ir.builder import Builder, innermost_builder
from fnad.ir.program import Source
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, NAMES, Aval, Dtype
from fnad.numpy.bodies import Body
from fnad.numpy.namespace import MAKING
from fnad.numpy.operands import HalfSymbol, as_symbol, as_weak, check_stored
from fnad.numpy.registry import OF_HALVES, RULES, UNSET, WRITERS, Bound, Rule
from fnad.numpy.views import stored
from fnad.ops.conversion import convert_to
from fnad.trace.escape import hidden_escape, nested_too_deeply, read_only, used_after_trace, write_it_in_a_file
from fnad.trace.expansion import again, follow, is_own
from fnad.trace.handle import TRACED, Handle
from fnad.trace.source import current_source, frames_of_error, line_of, user_frame
from fnad.trace.wrapping import PLAIN, as_arrays, handles_in, has_traced, is_deep, is_known, owners_of, unwrap, wrap
from fnad.upward import UPWARD

Arguments: TypeAlias = Mapping[str, Any]


WIDER = "convert it with astype(np.float32) first"

PARTS = (np.real, np.imag)
"""Functions that return the attribute of a Python number, which is one too."""


SPREADING = {f"numpy.{name}" for name in ("clip", "fix", "isposinf", "isneginf", "outer", "quantile", "percentile")}
"""Functions that fill an array given as `out` with a result that broadcasts to it, as ufuncs do."""

REDUCING = {"reduce", "accumulate", "reduceat"}
"""Methods of ufuncs that do not."""

ADVICE: dict[type[FnadError], str] = {
    AxisError: "check the axes: they are counted from 0, or from the last one as -1",
    OutOfRangeError: "check the index against the shape",
    ShapeError: "check the shapes",
    DtypeError: "check the dtypes, or convert with astype",
    ArgumentTypeError: "check the arguments: traced values go with arrays, numbers and lists of these",
    UnsupportedFunctionError: "compose it from functions and options that have a rule",
}
"""The way out of errors that have none of their own; the first that fits counts."""

RAISED: dict[type[Exception], type[FnadError]] = {
    np.exceptions.AxisError: AxisError,
    np.linalg.LinAlgError: MatrixError,
    IndexError: OutOfRangeError,
    TypeError: ArgumentTypeError,
    ValueError: ShapeError,
}
"""The fnad errors for the errors of NumPy's bodies; the first that fits counts."""


# ---- calling a rule ------------------------------------------------------------------------------------------------


SIMPLE: set[int] = {*PLAIN, id(np.float64)}
"""These, NumPy's commonest number, and the classes of traced values, as soon as there are some; by identity."""


def go_straight(args: Sequence[Any]) -> bool:
    """True if NumPy would hand arguments on to a traced value as they are: one is there, and nothing else has a say."""
    kinds = [id(type(arg)) for arg in args]
    return not TRACED.isdisjoint(kinds) and STRAIGHT.issuperset(kinds)


STRAIGHT: set[int] = {*SIMPLE, id(np.ndarray)}
"""The commonest classes of arguments, and the classes of traced values, as soon as there are some; by identity."""


def call(rule: Rule, args: Sequence[Any], kwargs: Arguments, /) -> Any:
    """Call a rule on what the user gave, with the user's line noted."""
    builder, frame = innermost_builder() or tracing_builder(args), user_frame()
    builder.source = source = None if frame is None else line_of(frame)
    if MAKING.entries:
        MAKING.note(source)
    operands, options = args, kwargs
    symbols: list[Symbol] = []
    try:
        result = again(rule, args, kwargs, symbols, builder)
        if type(result) is Symbol:
            return UPWARD.fresh_handle_of(
                result if result.builder is builder else builder.lift(result), not result.aval.shape
            )
        owners = None if result is UNSET else owners_of(args, symbols)
        if owners is not None:
            return wrap(result, owners)
        owners = {}
        operands = [unwrap(arg, owners) for arg in args]
        options = {name: unwrap(arg, owners) for name, arg in kwargs.items()} if kwargs else kwargs
        if any(type(operand) is HalfSymbol for operand in operands) and rule not in OF_HALVES:
            raise DtypeError("an operand gives float16, which is not supported but by ufuncs", remedy=WIDER)
        return wrap(follow(rule if is_own(rule) else of_user(rule), operands, options), owners)
    except FnadError as error:
        raise error.at(current_source(), remedy_of(error, (*operands, *options.values()))) from None
    except RecursionError:
        if is_deep(args):
            raise nested_too_deeply("container") from None
        raise


def of_user(rule: Rule) -> Rule:
    """A rule of user code, which is converted as other user code is."""
    return rule.of(UPWARD.callee(rule.rule)) if isinstance(rule, Bound) else UPWARD.callee(rule)


def call_body(body: Callable[..., Any], args: Sequence[Any], kwargs: Arguments, /) -> Any:
    """Call a body of NumPy or SciPy on what the user gave; what it raises, and no user code, is an error of fnad."""
    try:
        return body(*args, **kwargs)
    except FnadError as error:
        raise error.at(current_source()) from None
    except tuple(RAISED) as error:
        if "Tracer" in str(error) or not frames_of_error(error):
            raise
        source = current_source()
        raise hidden_escape(error, source) or _raised(error, source, unwrap([*args, *kwargs.values()], {})) from None


def _raised(error: Exception, source: Source | None, operands: Sequence[Any]) -> FnadError:
    kind = next(kind for raised, kind in RAISED.items() if isinstance(error, raised))
    found = kind(str(error))
    return found.at(source, remedy_of(found, operands))


def remedy_of(error: FnadError, operands: Sequence[Any]) -> str | None:
    """The way out of an error that has none of its own: what to look at, and what was given."""
    advice = next((advice for kind, advice in ADVICE.items() if isinstance(error, kind)), None)
    given = " and ".join(dict.fromkeys(map(str, _avals(operands))))
    return f"{advice}; given {given}" if advice and given else advice


def _avals(operands: Sequence[Any]) -> Iterator[Aval]:
    for operand in operands:
        if isinstance(operand, (list, tuple)):
            yield from _avals(cast("Sequence[Any]", operand))
        elif isinstance(operand, Symbol):
            yield operand.aval
        elif isinstance(operand, np.ndarray) and operand.dtype in NAMES:
            yield Aval(operand.dtype, operand.shape)


def tracing_builder(values: Sequence[Any]) -> Builder:
    """The builder of the trace under way; raises `UsedAfterTraceError` where there is none, for the first handle."""
    builder = innermost_builder()
    if builder is None:
        handle = next(handles_in(values), None)
        raise used_after_trace(None if handle is None else handle.symbol)
    return builder


# ---- handles to symbols and back -------------------------------------------------------------------------------------


# ---- operators -------------------------------------------------------------------------------------------------------


def as_number(operand: Any) -> Any:
    """A Python number to compute with: a bool is the integer 0 or 1, which it is not in NumPy's arithmetic."""
    if isinstance(operand, Handle):
        return weakened(call(convert_to, (operand, I64), {})) if operand.aval.dtype == BOOL else operand
    return int(operand) if isinstance(operand, bool) else operand


def weakened(result: Any) -> Any:
    """The result as standing for a Python number."""
    if isinstance(result, tuple):
        return tuple(map(weakened, result))
    return UPWARD.handle_of(as_weak(result.symbol), is_scalar=True)


# ---- NumPy's two protocols -------------------------------------------------------------------------------------------


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a ufunc, or of a method of one."""
    is_call = method == "__call__"
    if ufunc not in RULES:
        import_module("fnad.numpy.scipy_ufuncs").special_rule(ufunc)
    if (writer := WRITERS.get((ufunc, method))) is not None:
        return write_into(ufunc_name(ufunc, method), writer, inputs, kwargs)
    rule = RULES.get(ufunc if is_call else (ufunc, method))
    if rule is None:
        return call_on_known(ufunc_name(ufunc, method), getattr(ufunc, method), inputs, kwargs)
    kwargs.pop("array", None)  # an operand given by keyword is among the inputs too
    kwargs.pop("indices", None)
    if not kwargs:
        return call(rule, inputs, kwargs)
    outs = kwargs.pop("out", (None,))
    where = kwargs.pop("where", True) if is_call else True
    if all(out is None for out in outs):
        if where is not True:
            raise undefined_elements(ufunc_name(ufunc, method))
        return call_with_options(ufunc_name(ufunc, method), rule, inputs, kwargs)
    ordinary = [out for out in outs if out is not None and not isinstance(out, Handle)]
    if ordinary:
        if is_call and ordinary[0].dtype == object:
            return import_module("fnad.trace.objects").in_place(ufunc, inputs, {"out": outs, "where": where, **kwargs})
        raise ordinary_out(ordinary[0])
    result = call_with_options(ufunc_name(ufunc, method), rule, inputs, kwargs)
    if method in REDUCING:
        check_shape_of_out(ufunc_name(ufunc, method), result, outs[0])
    return store_all(ufunc_name(ufunc, method), result, outs, where, kwargs.get("casting", SAME_KIND))


def ufunc_name(ufunc: np.ufunc, method: str) -> str:
    """The way a user writes a ufunc or a method of it."""
    name = ufunc.__name__
    for module in (np, *(sys.modules.get(m) for m in ("scipy.special", "scipy.special._ufuncs"))):
        if getattr(module, name, None) is ufunc:
            name = f"{cast('ModuleType', module).__name__}.{name}"
            break
    return name if method == "__call__" else f"{name}.{method}"


def call_function(function: Any, args: Sequence[Any], kwargs: Arguments) -> Any:
    """The result of an array function."""
    rule = RULES.get(function)
    if rule is None and function not in WRITERS:
        return call_on_known(function_name(function), function, args, kwargs)
    if rule is None:
        return write_into(function_name(function), WRITERS[function], args, kwargs)
    if isinstance(rule, Body):
        return call_body(rule, args, kwargs)
    at = parameters(rule)[0]
    if kwargs or (at is not None and at < len(args)):  # one of the arguments by position may be `out`
        return call_with_options(function_name(function), rule, args, kwargs)
    if function in PARTS and isinstance(args[0], Handle) and args[0].is_weak:
        return weakened(call(rule, (as_number(args[0]),), kwargs))
    return call(rule, args, kwargs)


def on_traced(function: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is another one if an argument is traced."""

    @wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return (other if has_traced((args, kwargs)) else function)(*args, **kwargs)

    return call


def number_of_size(size: Any) -> Handle:
    """A size that is a symbol as a traced Python number."""
    return UPWARD.handle_of(as_weak(as_symbol(size)), is_scalar=True)


UPWARD.number_of_size = number_of_size


def may_share_memory(a: Any, b: Any, /, max_work: int | None = 0) -> bool:
    """True if two values are seen in one memory; that of a traced value has no part in an ordinary array's."""
    return isinstance(a, Handle) and isinstance(b, Handle) and a.shares_memory(b)


RULES[np.may_share_memory] = Body(may_share_memory)


@cache
def function_name(function: Any) -> str:
    """The way a user writes a function."""
    return f"{function.__module__}.{function.__qualname__}"


def call_on_known(name: str, function: Any, args: Sequence[Any], kwargs: Arguments) -> Any:
    """NumPy's result for arguments that depend on no input; raises if one does."""
    if not is_known((args, kwargs)):
        raise no_rule(name, function)
    return function(*as_arrays(args), **as_arrays(kwargs))


def no_rule(name: str, function: Any) -> UnsupportedFunctionError:
    """The error for a function without a rule."""
    if name.endswith(" (vectorized)"):
        return UnsupportedFunctionError.here(
            f"numpy.frompyfunc({name.removesuffix(' (vectorized)')}, ...) returns an array of objects, which "
            "traced values are not",
            remedy="np.vectorize calls a function as often, and returns an array of numbers",
        )
    remedy = "compose it from functions that have one"
    is_named = "." in name and name.replace(".", "").isidentifier()
    is_method = isinstance(getattr(function, "__self__", None), np.ufunc) and function.__name__ != "__call__"
    if is_named and not is_method:  # which is a new object at each look
        remedy += f", or give it a rule: fnad.register_rule({name}, rule)"
    return UnsupportedFunctionError.here(f"{name} has no rule for traced values", remedy=remedy)


def undefined_elements(name: str) -> UnsupportedFunctionError:
    """The error for a ufunc with `where` and no `out`."""
    return UnsupportedFunctionError.here(
        f"{name} with where= and without out= leaves elements undefined",
        remedy="choose with np.where(condition, result, other), or give an array as out=",
    )


def call_with_options(name: str, rule: Rule, args: Sequence[Any], kwargs: Arguments) -> Any:
    """Call a rule with options: one that it does not take is an error that names it; `out` is written to."""
    out, options = None, kwargs
    if "out" in kwargs:
        out, options = kwargs["out"], {option: value for option, value in kwargs.items() if option != "out"}
    at, names = parameters(rule)
    if at is not None and at < len(args):
        out, args = args[at], (*args[:at], None, *args[at + 1 :])
    for option in options:
        if names is not None and option not in names:
            raise UnsupportedFunctionError.here(f"{name} has no rule for the option {option}=", remedy="leave it out")
    if out is not None and not isinstance(out, Handle):
        raise ordinary_out(out)
    result = call(rule, args, options)
    if out is None:
        return result
    if name not in SPREADING:
        check_shape_of_out(name, result, out)
    return store_all(name, result, (out,), True, options.get("casting", SAME_KIND))


def ordinary_out(out: Any) -> FnadError:
    """The error for a result that would be written into an ordinary array: `c += t`, `np.add(c, t, out=c)`."""
    return refused_write(
        out,
        "a traced value cannot be written into an ordinary array",
        write_it_in_a_file()
        or "write c = c + t, or make the array with fnad.numpy (zeros, empty, array) in place of numpy",
    )


def is_written(array: np.ndarray[Any, Any]) -> bool:
    """True if NumPy writes to an ordinary array; in a second run those from outside are protected."""
    return array.flags.writeable or MAKING.is_traced


def refused_write(array: Any, what: str, remedy: str) -> FnadError:
    """The error of a write into an ordinary array; a second run follows, unless NumPy does not write to it either."""
    if isinstance(array, np.ndarray) and not is_written(array):
        return read_only()
    return MAKING.refuse(MutationError.here(what, remedy=remedy))


def check_shape_of_out(name: str, result: Any, out: Any) -> None:
    """Raise as NumPy where a result that does not spread over `out` has not its shape."""
    if np.shape(out) != result.aval.shape:
        raise ShapeError.here(
            f"{name} has a result of shape {result.aval.shape}, and out= is of shape {np.shape(out)}",
            remedy="give an array of the shape of the result",
        )


@cache
def parameters(rule: Rule) -> tuple[int | None, tuple[str, ...] | None]:
    """The place of `out` in a rule's parameters, if it has it, and their names; None if it sees to what it is given."""
    if isinstance(rule, Bound):
        return parameters(rule.rule) if rule.convention is None else (_place_of_out(rule.convention.positional), None)
    code = rule.__code__
    takes_more = code.co_flags & inspect.CO_VARKEYWORDS
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return _place_of_out(names[: code.co_argcount]), None if takes_more else names


def _place_of_out(names: tuple[str, ...]) -> int | None:
    return names.index("out") if "out" in names else None


# ---- writing ---------------------------------------------------------------------------------------------------------


def assign(rule: Rule, target: Handle, *args: Any, **kwargs: Any) -> None:
    """Write into a traced value what a rule returns for it and the arguments."""
    target.write(call(rule, (target, *args), kwargs).symbol)


def check_number(value: Any, dtype: Dtype) -> None:
    """Raise where NumPy does because a signed integer dtype does not have a NumPy number that is stored in it."""
    number = value.symbol if isinstance(value, Handle) and value.is_scalar and not value.is_weak else value
    if dtype.kind != "i" or (not isinstance(number, Symbol) and not issubclass(type(number), np.generic)):
        return
    try:
        check_stored(number, dtype)
    except FnadError as error:
        raise error.at(current_source()) from None


def write_into(name: str, writer: Rule, args: Sequence[Any], kwargs: Arguments) -> None:
    """Call a function that writes into its first argument, which has to be a traced value."""
    if not args or not isinstance(args[0], Handle):
        raise refused_write(
            args[0] if args else None,
            f"{name} cannot write a traced value into an ordinary array",
            write_it_in_a_file() or "make the array with fnad.numpy (zeros, empty, full, array) in place of numpy",
        )
    assign(writer, *args, **kwargs)


SAME_KIND = "same_kind"
"""NumPy's default for `casting`."""


def store_all(name: str, result: Any, outs: Sequence[Any], where: Any, casting: Any) -> Any:
    """Store the results of a ufunc into those outs that are given; return what the call returns."""
    if not isinstance(result, tuple):
        return store(name, result, outs[0], where, casting)
    pairs = zip(result, outs, strict=True)
    return tuple(r if out is None else store(name, r, out, where, casting) for r, out in pairs)


def store(name: str, result: Any, out: Any, where: Any = True, casting: Any = SAME_KIND) -> Any:
    """Write a result into `out`, cast and broadcast as NumPy does; return it, or what takes its place."""
    if not isinstance(out, Handle):
        return UPWARD.handle_of(call(stored, (name, result, out, where, casting), {}).symbol)
    out.check_writeable()
    out.write(call(stored, (name, result, out, where, casting), {}).symbol)
    return out
