"""A program as a function that Numba-compiled code calls: fnad's native code, by its address.

Numba keeps compiled user code on disk, and code with a symbol that is not there ends the process when it is loaded. So
one symbol is linked, `fnad_lookup(key)`, which returns the address of a program by a key of its name and types. User
code from the disk then runs the program as it is now; one that is not there is a RuntimeError.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad import forks
from fnad.backends.cpu import codegen, loader
from fnad.backends.standalone.native import LoadedFunction
from fnad.backends.standalone.program import NO_SIZE, Parameter, Standalone
from fnad.backends.standalone.python_module import (
    dtype_text,
    number_check,
    result_checks,
    shape_check,
    shared_with_results,
    size_lines,
)
from fnad.errors import ExportError

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
    lines = [f"{_local(p)} = fnad_np.empty({p.aval.shape}, fnad_{dtype_text(p.aval.dtype)})" for p in arrays]
    lines += [_call(program, [*program.arguments, *arrays], numbers)]
    lines += [f"{RESULT}{n} = {_local(p)}" for n, p in enumerate(program.results)]
    lines += [f"return {result}"]
    return _njit(program, arguments, leaves, lines, arrays, numbers)


def numba_into(program: Standalone, arguments: str, leaves: list[str]) -> Any:
    """The Numba function of a program that writes results into arrays, which it takes after the arguments."""
    lines = [f"{_local(p)} = {p.name}" for p in program.results]
    lines += result_checks(program, _local)
    arrays = [p for p in program.arguments if p.aval.shape != ()]
    shared = [shared_with_results(program, parameter, _local) for parameter in arrays]
    if shared:  # a variable that is an array or its copy would have its references counted in each call
        lines += [f"if {' or '.join(shared)}:", f"    {_call(program, program.parameters, [], copied=arrays)}", "else:"]
    lines += [f"{'    ' * bool(shared)}{_call(program, program.parameters, [])}"]
    names = ", ".join([*([arguments] if arguments else []), *[p.name for p in program.results]])
    return _njit(program, names, leaves, lines, program.results, [])


def _njit(
    program: Standalone,
    parameters: str,
    leaves: list[str],
    lines: list[str],
    arrays: list[Parameter],
    numbers: list[Parameter],
) -> Any:
    """The Numba function with these parameters that prepares the arguments and runs the lines."""
    from numba import njit  # noqa: PLC0415 - only functions for Numba need it

    given = [f"{_local(p)} = {leaf}" for p, leaf in zip(program.arguments, leaves, strict=True)]
    given += size_lines(program, _local)
    given += [line for parameter in program.arguments for line in _prepared(parameter)]
    text = [f"def {program.name}({parameters}):", *[f"    {line}" for line in given]]
    space: dict[str, Any] = {
        "njit": njit,
        "fnad_np": np,
        "fnad_overlap": _overlap(),
        "fnad_call": _intrinsic(program, _registered(program), arrays, numbers),
    }
    exec("\n".join([*text, *[f"    {line}" for line in lines]]), space)
    return njit(space[program.name])


def _call(
    program: Standalone, given: list[Parameter], numbers: list[Parameter], copied: Sequence[Parameter] = ()
) -> str:
    """The call of the native code, which returns numbers."""
    returned = "".join(f"{_local(p)}, " for p in numbers)
    sizes = "".join(f"{size}, " for size in program.sizes)
    arrays = "".join(f"{_local(p)}{'.copy()' * (p in copied)}, " for p in given)
    return f"{returned}{'= ' * bool(numbers)}fnad_call(({sizes}), ({arrays}))"


RESULT = "fnad_result"
"""The beginning of the names of results in the expression of the result."""


def _local(parameter: Parameter) -> str:
    """The variable of an argument or a result, which no parameter of the user's function is called."""
    return f"fnad_{parameter.buffer}"


def _prepared(parameter: Parameter) -> list[str]:
    """The check of an argument, and its conversion to what native code takes."""
    name, aval = _local(parameter), parameter.aval
    if aval.shape == ():
        converted = f"{name} = fnad_{dtype_text(aval.dtype)}({name})"
        return [f"fnad_given = {name}", converted, *number_check(name, "fnad_given", parameter)]
    return [*shape_check(name, parameter), f"{name} = fnad_np.ascontiguousarray({name})"]


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


def _intrinsic(program: Standalone, key: int, arrays: list[Parameter], numbers: list[Parameter]) -> Any:
    """The Numba intrinsic that runs the code of a key on arguments and result arrays, and returns numbers."""
    from numba import types  # noqa: PLC0415
    from numba.core.errors import TypingError  # noqa: PLC0415
    from numba.extending import intrinsic  # noqa: PLC0415
    from numba.np.numpy_support import from_dtype  # noqa: PLC0415

    parameters = [*program.arguments, *arrays]

    def check(given: Any) -> None:
        for parameter, kind in zip(parameters, given, strict=True):
            dtype, ndim = from_dtype(parameter.aval.dtype), len(parameter.aval.shape)
            found = (kind.dtype, kind.ndim) if isinstance(kind, types.Array) else (kind, 0)
            if found != (dtype, ndim) or (parameter in arrays and not kind.mutable):
                raise TypingError(f"{parameter.name} of {program.name} is {parameter.aval}, not {kind}")

    @intrinsic
    def call(_: Any, sizes: Any, given: Any) -> Any:
        check(given)
        result = types.Tuple([from_dtype(p.aval.dtype) for p in numbers]) if numbers else types.none

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            places: dict[str, Any] = {}
            for n, (parameter, kind) in enumerate(zip(parameters, signature.args[1], strict=True)):
                value = builder.extract_value(args[1], n)
                if isinstance(kind, types.Array):
                    places[parameter.buffer] = context.make_array(kind)(context, builder, value).data
                else:
                    places[parameter.buffer] = _stored(context, builder, kind, value)
            kinds = dict(zip([p.buffer for p in numbers], signature.return_type if numbers else (), strict=True))
            for buffer, kind in kinds.items():
                places[buffer] = _stored(context, builder, kind, context.get_constant_null(kind))
            numbered = [builder.extract_value(args[0], n) for n in range(len(program.sizes))]
            pointers = [builder.bitcast(places[p.buffer], BYTES) for p in program.parameters]
            _run(context, builder, program, key, [*numbered, *pointers])
            if not numbers:
                return context.get_dummy_value()
            loaded = [context.unpack_value(builder, kind, places[buffer]) for buffer, kind in kinds.items()]
            return context.make_tuple(builder, signature.return_type, loaded)

        return result(sizes, given), emit

    return call


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


def _run(context: Any, builder: Any, program: Standalone, key: int, given: list[Any]) -> None:
    """Call the code of a key; raise if it is not there, or ends in an error."""
    lookup = builder.module.globals.get("fnad_lookup")
    if lookup is None:
        lookup = ir.Function(builder.module, ir.FunctionType(LONG, [LONG]), "fnad_lookup")
    address = builder.call(lookup, [LONG(key)])
    with builder.if_then(builder.icmp_unsigned("==", address, LONG(0)), likely=False):
        text = f"{program.name} is not there: export it in this process, as fnad.export(f, ...).njit()"
        context.call_conv.return_user_exc(builder, RuntimeError, (text,))
    kind = ir.FunctionType(LONG, [value.type for value in given])
    status = builder.call(builder.inttoptr(address, kind.as_pointer()), given)
    if program.sizes:
        with builder.if_then(builder.icmp_signed("==", status, LONG(NO_SIZE)), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (program.missing,))
    with builder.if_then(builder.icmp_unsigned("!=", status, LONG(0)), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (f"{program.name} ended in an error",))
