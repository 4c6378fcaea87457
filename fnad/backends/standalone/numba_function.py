"""A program as a function that Numba-compiled code calls: fnad's native code, by its address.

Numba keeps compiled user code on disk, and code with a symbol that is not there ends the process when it is loaded. So
one symbol is linked, `fnad_lookup(key)`, which returns the address of a program by a key of its name and types. User
code from the disk then runs the program as it is now; one that is not there is a RuntimeError.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad import forks
from fnad.backends.cpu import codegen, loader
from fnad.backends.standalone.native import LoadedFunction, number
from fnad.backends.standalone.program import NO_SIZE, Parameter, Standalone
from fnad.backends.standalone.python_module import (
    dtype_text,
    number_check,
    result_checks,
    shape_check,
    size_lines,
)
from fnad.errors import ExportError
from fnad.records import NamedTuple

SIZE = 2**12
"""The number of places of the table, of keys and addresses."""

TABLE = (ctypes.c_int64 * (2 * SIZE))()
_FUNCTIONS: dict[int, LoadedFunction] = {}
_LOCK = forks.lock()
LONG, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


def numba_function(program: Standalone, arguments: str, leaves: list[str], result: str) -> Any:
    """The Numba function of a program, which returns new arrays and numbers.

    `arguments` are the parameters, `leaves` the expressions of the program's arguments in them, `result` is the
    expression of the result in the names `RESULT` with a number, as source code.
    """
    arrays = [p for p in program.results if p.aval.shape != ()]
    numbers = [p for p in program.results if p.aval.shape == ()]
    places = {**_places(program, leaves), **{p.buffer: _local(p) for p in program.results}}
    made = [f"{_local(p)} = fnad_np.empty({p.aval.shape}, fnad_{dtype_text(p.aval.dtype)})" for p in arrays]
    given = [*program.arguments, *arrays]
    checked = [line for p in program.arguments for line in _checked(p)]
    returned = ", ".join(map(_local, numbers))
    checked += [_call("fnad_call", map(_local, given), map(_local, numbers)), f"return {returned or None}"]
    lines = [*size_lines(program, lambda p: places[p.buffer]), *made, *_attempt(given, numbers, places)]
    lines += [f"{RESULT}{n} = {_local(p)}" for n, p in enumerate(program.results)]
    lines += [f"return {result}"]
    return _njit(program, arguments, leaves, lines, checked, arrays, are_new=True)


def numba_into(program: Standalone, arguments: str, leaves: list[str]) -> Any:
    """The Numba function of a program that writes results into arrays, which it takes after the arguments."""
    places = {**_places(program, leaves), **{p.buffer: p.name for p in program.results}}
    checked = [line for p in program.arguments for line in _checked(p)] + result_checks(program, _local)
    checked.append(_call("fnad_call", map(_local, program.parameters)))
    lines = _attempt(program.parameters, [], places)
    names = ", ".join([*([arguments] if arguments else []), *[p.name for p in program.results]])
    return _njit(program, names, leaves, lines, checked, program.results, are_new=False)


def _places(program: Standalone, leaves: list[str]) -> dict[str, str]:
    """The expressions of the arguments, by their buffers; numbers are variables."""
    pairs = zip(program.arguments, leaves, strict=True)
    return {p.buffer: leaf if p.aval.shape else _local(p) for p, leaf in pairs}


def _attempt(given: list[Parameter], numbers: list[Parameter], places: dict[str, str]) -> list[str]:
    """The call for arrays that are as the code takes them, and the call of `fnad_checked` for others.

    Only `fnad_checked` has variables that are arrays: Numba counts their references, which takes longer than small
    programs.
    """
    values = [places[p.buffer] for p in given]
    returned = ", ".join(map(_local, numbers))
    otherwise = f"{returned}{' = ' * bool(returned)}fnad_checked({', '.join(values)})"
    return [_call("fnad_try", values, ["fnad_done", *map(_local, numbers)]), "if not fnad_done:", f"    {otherwise}"]


def _njit(
    program: Standalone,
    parameters: str,
    leaves: list[str],
    lines: list[str],
    checked: list[str],
    arrays: list[Parameter],
    *,
    are_new: bool,
) -> Any:
    """The Numba function with these parameters that prepares the numbers among the arguments and runs the lines."""
    from numba import njit  # noqa: PLC0415 - only functions for Numba need it

    pairs = zip(program.arguments, leaves, strict=True)
    given = [line for p, leaf in pairs if p.aval.shape == () for line in _converted(p, leaf)]
    key = _registered(program)
    space: dict[str, Any] = {
        "fnad_np": np,
        "fnad_overlap": _overlap(),
        "fnad_call": _intrinsic(program, key, arrays, None),
        "fnad_try": _intrinsic(program, key, arrays, [] if are_new else arrays),
    }
    names = ", ".join(map(_local, [*program.arguments, *arrays]))
    checked = [*size_lines(program, _local), *checked]
    exec("\n    ".join([f"def fnad_checked({names}):", *checked]), space)
    space["fnad_checked"] = njit(space["fnad_checked"])
    exec("\n    ".join([f"def {program.name}({parameters}):", *given, *lines]), space)
    # A call counts the references of its arguments. Numba cannot inline new arrays into parallel loops.
    return njit(space[program.name], inline="never" if are_new else "always")


def _call(function: str, given: Iterable[str], returned: Iterable[str] = ()) -> str:
    """The call of an intrinsic, which returns numbers."""
    targets = "".join(f"{name}, " for name in returned)
    return f"{targets}{'= ' * bool(targets)}{function}({', '.join(given)})"


RESULT = "fnad_result"
"""The beginning of the names of results in the expression of the result."""


def _local(parameter: Parameter) -> str:
    """The variable of an argument or a result, which no parameter of the user's function is called."""
    return f"fnad_{parameter.buffer}"


def _converted(parameter: Parameter, leaf: str) -> list[str]:
    """The conversion of a number to what native code takes, with its check."""
    name = _local(parameter)
    converted = f"{name} = fnad_{dtype_text(parameter.aval.dtype)}({leaf})"
    return [f"fnad_given = {leaf}", converted, *number_check(name, "fnad_given", parameter)]


def _checked(parameter: Parameter) -> list[str]:
    """The check of an array, and its copy in C order, which shares no memory with results."""
    name = _local(parameter)
    if parameter.aval.shape == ():
        return []
    return [*shape_check(name, parameter), f"{name} = {name}.copy()"]


# ---- the table -------------------------------------------------------------------------------------------------------


def _registered(program: Standalone) -> int:
    """Enter the code of a program into the table; return its key."""
    _link_lookup()
    types = ", ".join(f"{parameter.name}: {parameter.aval}" for parameter in program.parameters)
    text = f"{program.name}({types})"
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little") | 1
    function = LoadedFunction(program)
    with _LOCK:
        if len(_FUNCTIONS) >= SIZE // 2 and key not in _FUNCTIONS:
            raise ExportError(f"there are {len(_FUNCTIONS)} exported functions for Numba, and no room for more")
        place = key % SIZE
        while TABLE[2 * place] not in (0, key):
            place = (place + 1) % SIZE
        TABLE[2 * place + 1] = function.address
        TABLE[2 * place] = key
        if key in _FUNCTIONS:
            _RETIRED.append(_FUNCTIONS[key])
        _FUNCTIONS[key] = function
    return key


_RETIRED: list[LoadedFunction] = []
"""Code that another thread may still run."""


@cache
def _link_lookup() -> Any:
    """Link `fnad_lookup` and register it with LLVM; the engine must be kept."""
    module = codegen.new_module("fnad_lookup")
    function = ir.Function(module, ir.FunctionType(LONG, [LONG]), "fnad_lookup")
    start, look, found, other, missing = (function.append_basic_block(name) for name in BLOCKS)
    builder = ir.IRBuilder(start)
    table = builder.inttoptr(LONG(ctypes.addressof(TABLE)), LONG.as_pointer())
    first = builder.urem(function.args[0], LONG(SIZE))
    builder.branch(look)
    builder.position_at_end(look)
    place = builder.phi(LONG)
    entry = builder.gep(table, [builder.mul(place, LONG(2))])
    known = builder.load(entry)
    builder.cbranch(builder.icmp_unsigned("==", known, function.args[0]), found, other)
    builder.position_at_end(found)
    builder.ret(builder.load(builder.gep(entry, [LONG(1)])))
    builder.position_at_end(other)
    following = builder.urem(builder.add(place, LONG(1)), LONG(SIZE))
    builder.cbranch(builder.icmp_unsigned("==", known, LONG(0)), missing, look)
    builder.position_at_end(missing)
    builder.ret(LONG(0))
    place.add_incoming(first, start)
    place.add_incoming(following, other)
    with loader.LOCK:
        engine = loader.link(codegen.object_code(codegen.optimized(module)))
        llvm.add_symbol("fnad_lookup", engine.get_function_address("fnad_lookup"))
    return engine


BLOCKS = ("start", "look", "found", "other", "missing")


# ---- the call --------------------------------------------------------------------------------------------------------


def _intrinsic(program: Standalone, key: int, arrays: list[Parameter], apart: list[Parameter] | None) -> Any:
    """The Numba intrinsic that runs the code of a key on arguments and result arrays, and returns numbers.

    With a list `apart`, it runs the code only if these arrays share no memory with others, and all arrays are in C
    order and of the shapes that the code takes. The first number that it returns is then True if the code ran.
    """
    from numba import types  # noqa: PLC0415
    from numba.core.errors import TypingError  # noqa: PLC0415
    from numba.extending import intrinsic  # noqa: PLC0415
    from numba.np.numpy_support import from_dtype  # noqa: PLC0415

    parameters = [*program.arguments, *arrays]
    numbers = [parameter for parameter in program.results if parameter not in arrays]
    is_checked = apart is not None

    def check(given: Any) -> None:
        for parameter, kind in zip(parameters, given, strict=True):
            dtype, ndim = from_dtype(parameter.aval.dtype), len(parameter.aval.shape)
            found = (kind.dtype, kind.ndim) if isinstance(kind, types.Array) else (kind, 0)
            if found != (dtype, ndim) or (parameter in arrays and not kind.mutable):
                raise TypingError(f"{parameter.name} of {program.name} is {parameter.aval}, not {kind}")

    def call(given: Sequence[Any]) -> Any:
        check(given)
        kinds = [from_dtype(p.aval.dtype) for p in numbers]
        returned = [types.boolean] * is_checked + kinds
        result = types.Tuple(returned) if returned else types.none
        in_order = all(kind.layout == "C" for kind in given if isinstance(kind, types.Array))

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = dict(zip([p.buffer for p in numbers], kinds, strict=True))
            results = {name: _stored(context, builder, k, context.get_constant_null(k)) for name, k in made.items()}
            done = _stored(context, builder, types.boolean, context.get_constant(types.boolean, not is_checked))
            values = _values(
                context, builder, dict(zip((p.buffer for p in parameters), zip(args, given, strict=True), strict=True))
            )
            fits: Any = ir.IntType(1)(not is_checked)
            if apart is not None and in_order:
                fits = _fits(builder, program, values, apart)
            with builder.if_then(fits):
                _run(context, builder, program, key, values, results)
                context.pack_value(builder, types.boolean, ir.IntType(1)(1), done)
            places = [(types.boolean, done)] * is_checked + [(kind, results[name]) for name, kind in made.items()]
            if not places:
                return context.get_dummy_value()
            loaded = [context.unpack_value(builder, kind, place) for kind, place in places]
            return context.make_tuple(builder, signature.return_type, loaded)

        return result(*given), emit

    names = ", ".join(f"given{n}" for n in range(len(parameters)))
    space: dict[str, Any] = {"call": call}
    exec(f"def fnad_call(_, {names}): return call([{names}])", space)  # Numba passes no *args to an intrinsic
    return intrinsic(space["fnad_call"])


class _Given(NamedTuple):
    """The address of an argument or a result of native code, and the shape of an array."""

    address: Any
    shape: Sequence[Any] | None = None


def _values(context: Any, builder: Any, given: dict[str, Any]) -> dict[str, _Given]:
    """The addresses that native code takes, from Numba's values and their types."""
    from numba import types  # noqa: PLC0415

    found: dict[str, _Given] = {}
    for buffer, (value, kind) in given.items():
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            found[buffer] = _Given(array.data, [builder.extract_value(array.shape, n) for n in range(kind.ndim)])
        else:
            found[buffer] = _Given(_stored(context, builder, kind, value))
    return found


def _fits(builder: Any, program: Standalone, values: dict[str, _Given], apart: Sequence[Parameter]) -> Any:
    """True if arrays have the shapes of the program, and some are apart from each other and from the others."""
    sizes, found = _sizes(program, values), ir.IntType(1)(1)
    bounds: dict[str, tuple[Any, Any]] = {}
    for parameter in program.parameters:
        data, shape = values.get(parameter.buffer, _Given(None))
        if shape is not None:
            for n, extent in zip(shape, parameter.aval.shape, strict=True):
                found = builder.and_(found, builder.icmp_signed("==", n, number(builder, extent, sizes)))
            first = builder.ptrtoint(data, LONG)
            bounds[parameter.buffer] = first, builder.add(first, number(builder, parameter.aval.nbytes, sizes))
    for result in apart:
        first, end = bounds.pop(result.buffer)
        for start, stop in bounds.values():
            are_apart = builder.or_(builder.icmp_unsigned("<=", stop, first), builder.icmp_unsigned("<=", end, start))
            found = builder.and_(found, are_apart)
    return found


def _sizes(program: Standalone, values: dict[str, _Given]) -> list[Any]:
    """The sizes of the axes that a program leaves open."""
    axes = [program.axis_of(size) for size in program.sizes]
    return [(values[parameter.buffer].shape or ())[axis] for parameter, axis in axes]


@cache
def _overlap() -> Any:
    """The Numba intrinsic that is true if two contiguous arrays share memory; `.ctypes` would count references."""
    from numba import types  # noqa: PLC0415
    from numba.extending import intrinsic  # noqa: PLC0415

    @intrinsic
    def overlap(_: Any, a: Any, b: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            bounds: list[tuple[Any, Any]] = []
            for kind, value in zip(signature.args, args, strict=True):
                array = context.make_array(kind)(context, builder, value)
                first = builder.ptrtoint(array.data, LONG)
                bounds.append((first, builder.add(first, builder.mul(array.nitems, array.itemsize))))
            (first, end), (other, other_end) = bounds
            return builder.and_(builder.icmp_unsigned("<", first, other_end), builder.icmp_unsigned("<", other, end))

        return types.boolean(a, b), emit

    return overlap


def _stored(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The address of a number, on the stack."""
    with builder.goto_entry_block():
        place = builder.alloca(context.get_data_type(kind))
    context.pack_value(builder, kind, value, place)
    return place


def _run(
    context: Any, builder: Any, program: Standalone, key: int, values: dict[str, _Given], results: dict[str, Any]
) -> None:
    """Call the code of a key; raise if it is not there, or ends in an error."""
    lookup = builder.module.globals.get("fnad_lookup")
    if lookup is None:
        lookup = ir.Function(builder.module, ir.FunctionType(LONG, [LONG]), "fnad_lookup")
    address = builder.call(lookup, [LONG(key)])
    with builder.if_then(builder.icmp_unsigned("==", address, LONG(0)), likely=False):
        text = f"{program.name} is not there: export it in this process, as fnad.export(f, ...).njit()"
        context.call_conv.return_user_exc(builder, RuntimeError, (text,))
    places = {**{buffer: given.address for buffer, given in values.items()}, **results}
    pointers = [builder.bitcast(places[p.buffer], BYTES) for p in program.parameters]
    given = [*_sizes(program, values), *pointers]
    kind = ir.FunctionType(LONG, [value.type for value in given])
    status = builder.call(builder.inttoptr(address, kind.as_pointer()), given)
    if program.sizes:
        with builder.if_then(builder.icmp_signed("==", status, LONG(NO_SIZE)), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (program.missing,))
    with builder.if_then(builder.icmp_unsigned("!=", status, LONG(0)), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (f"{program.name} ended in an error",))
