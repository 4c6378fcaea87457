"""A program as a function that Numba-compiled code calls: fnad's native code, by its address.

Numba keeps compiled user code on disk, and code with a symbol that is not there ends the process when it is loaded. So
two symbols are linked: `fnad_table` and `fnad_lookup(key)`, which returns an address from this table. A program has two
keys: one of its code, and one of its name and types. User code calls the program that it was compiled with if the
process has exported it, and otherwise the program of this name. User code from the disk then runs a function that has
changed; one that is not there, or several of one name, is a RuntimeError.

A small program is a part of user code as well. This part runs if the table has the key of the code.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad import forks
from fnad.backends.cpu import loader, native
from fnad.backends.cpu.ufunc_loops import place as local_place
from fnad.backends.standalone import lookup_code
from fnad.backends.standalone.lookup_code import SIZE
from fnad.backends.standalone.native import LoadedFunction, function_type, number
from fnad.backends.standalone.program import NO_SIZE, Parameter, Standalone
from fnad.backends.standalone.python_module import dtype_text, number_check, result_checks, shape_check, size_lines
from fnad.errors import ExportError
from fnad.ir.size import is_size

TABLE = (ctypes.c_int64 * (2 * SIZE))()
_FUNCTIONS: dict[int, LoadedFunction | None] = {}
"""The functions by key; None for a name that several have."""

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
    checked.append(f"return fnad_call({', '.join(map(_local, given))})")
    lines = [*size_lines(program, lambda p: places[p.buffer]), *made]
    lines.append(_call([places[p.buffer] for p in given], map(_local, numbers)))
    lines += [f"{RESULT}{n} = {_local(p)}" for n, p in enumerate(program.results)]
    lines += [f"return {result}"]
    return _njit(program, arguments, leaves, lines, checked, arrays, are_new=True)


def numba_into(program: Standalone, arguments: str, leaves: list[str]) -> Any:
    """The Numba function of a program that writes results into arrays, which it takes after the arguments."""
    places = {**_places(program, leaves), **{p.buffer: p.name for p in program.results}}
    checked = [line for p in program.arguments for line in _checked(p)] + result_checks(program, _local)
    checked.append(f"fnad_call({', '.join(map(_local, program.parameters))})")
    lines = [_call([places[p.buffer] for p in program.parameters])]
    names = ", ".join([*([arguments] if arguments else []), *[p.name for p in program.results]])
    return _njit(program, names, leaves, lines, checked, program.results, are_new=False)


def _places(program: Standalone, leaves: list[str]) -> dict[str, str]:
    """The expressions of the arguments, by their buffers; numbers are variables."""
    pairs = zip(program.arguments, leaves, strict=True)
    return {p.buffer: leaf if p.aval.shape else _local(p) for p, leaf in pairs}


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
    entry = _registered(program)
    space: dict[str, Any] = {"fnad_np": np, "fnad_overlap": _overlap(), "fnad_call": _intrinsic(entry, arrays)}
    names = ", ".join(map(_local, [*program.arguments, *arrays]))
    checked = [*size_lines(program, _local), *checked]
    exec("\n    ".join([f"def fnad_checked({names}):", *checked]), space)
    space["fnad_run"] = _intrinsic(entry, arrays, Otherwise(njit(space["fnad_checked"]), [] if are_new else arrays))
    exec("\n    ".join([f"def {program.name}({parameters}):", *given, *lines]), space)
    # A call counts the references of its arguments. Numba cannot inline new arrays into parallel loops.
    return njit(space[program.name], inline="never" if are_new else "always")


def _call(given: Iterable[str], returned: Iterable[str] = ()) -> str:
    """The call that runs the program, and returns numbers."""
    targets = "".join(f"{name}, " for name in returned)
    return f"{targets}{'= ' * bool(targets)}fnad_run({', '.join(given)})"


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


class Entry(NamedTuple):
    """A program in the table: by the keys of its code and of its name and types.

    `text` is its LLVM module if it is small.
    """

    program: Standalone
    by_code: int
    by_name: int
    text: str | None


def _registered(program: Standalone) -> Entry:
    """Enter a program into the table."""
    _link_table()
    types = ", ".join(f"{parameter.name}: {parameter.aval}" for parameter in program.parameters)
    text = f"{program.qualname} {program.name}({types})"
    function = LoadedFunction(program)
    by_code, by_name = _key(function.digest + text.encode()), _key(text.encode())
    with _LOCK:
        if len(_FUNCTIONS) > SIZE // 2:
            raise ExportError(f"{SIZE // 4} functions are exported for Numba, and there is no room for more")
        if by_code not in _FUNCTIONS:
            _enter(by_code, function)
            _enter(by_name, None if by_name in _FUNCTIONS else function)
    return Entry(program, by_code, by_name, function.text)


def _key(content: bytes) -> int:
    return int.from_bytes(hashlib.sha256(content).digest()[:7], "little") | 1


def _enter(key: int, function: LoadedFunction | None) -> None:
    place = key % SIZE
    while TABLE[2 * place] not in (0, key):
        place = (place + 1) % SIZE
    TABLE[2 * place + 1] = function.address if function else 0
    TABLE[2 * place] = key
    _FUNCTIONS[key] = function


@cache
def _link_table() -> Any:
    """Link `fnad_lookup` and register it and the table with LLVM; the engine must be kept."""
    with loader.LOCK:
        llvm.add_symbol("fnad_table", ctypes.addressof(TABLE))
        engine = native.linked(["fnad_lookup"], lookup_code)
        llvm.add_symbol("fnad_lookup", engine.get_function_address("fnad_lookup"))
    return engine


# ---- the call --------------------------------------------------------------------------------------------------------


class Otherwise(NamedTuple):
    """The Numba function for arrays that are not as native code takes them.

    They are if they are in C order and of the shapes of the program, and those `apart` share no memory with others.
    """

    checked: Any
    apart: Sequence[Parameter]


def _intrinsic(entry: Entry, arrays: list[Parameter], otherwise: Otherwise | None = None) -> Any:
    """The Numba intrinsic that runs a program on arguments and result arrays, and returns numbers."""
    from numba import types  # noqa: PLC0415
    from numba.extending import intrinsic  # noqa: PLC0415
    from numba.np.numpy_support import from_dtype  # noqa: PLC0415

    program = entry.program
    parameters = [*program.arguments, *arrays]
    numbers = [parameter for parameter in program.results if parameter not in arrays]

    def call(typing: Any, given: Sequence[Any]) -> Any:
        _check_types(program, dict(zip(parameters, given, strict=True)), arrays)
        kinds = {p.buffer: from_dtype(p.aval.dtype) for p in numbers}
        result = types.Tuple(list(kinds.values())) if kinds else types.none
        in_order = all(kind.layout == "C" for kind in given if isinstance(kind, types.Array))
        if otherwise is not None:
            typing.resolve_value_type(otherwise.checked).get_call_type(typing, given, {})

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            results = {name: _stored(context, builder, k, context.get_constant_null(k)) for name, k in kinds.items()}
            buffers = (p.buffer for p in parameters)
            values = _values(context, builder, dict(zip(buffers, zip(args, given, strict=True), strict=True)))
            fits: Any = ir.IntType(1)(otherwise is None)
            small = _small(entry, otherwise.apart) if otherwise is not None else []
            if otherwise is not None and in_order:
                fits = _fits(builder, program, values, otherwise.apart, small)
            with builder.if_else(fits, likely=True) as (direct, other):
                with direct:
                    _run(context, builder, entry, values, results, small)
                with other:
                    if otherwise is not None:
                        code = otherwise.checked.overloads[signature.args]
                        found = _call_borrowing(context, builder, code, args)
                        for n, (name, kind) in enumerate(kinds.items()):
                            context.pack_value(builder, kind, builder.extract_value(found, n), results[name])
            if not kinds:
                return context.get_dummy_value()
            loaded = [context.unpack_value(builder, kind, results[name]) for name, kind in kinds.items()]
            return context.make_tuple(builder, signature.return_type, loaded)

        return result(*given), emit

    names = ", ".join(f"given{n}" for n in range(len(parameters)))
    space: dict[str, Any] = {"call": call}
    exec(f"def fnad_call(typing, {names}): return call(typing, [{names}])", space)  # Numba passes no *args
    return intrinsic(space["fnad_call"])


def _check_types(program: Standalone, given: dict[Parameter, Any], arrays: list[Parameter]) -> None:
    """Raise Numba's `TypingError` for types that are not those of the parameters; `arrays` are results."""
    from numba import types  # noqa: PLC0415
    from numba.core.errors import TypingError  # noqa: PLC0415
    from numba.np.numpy_support import from_dtype  # noqa: PLC0415

    for parameter, kind in given.items():
        dtype, ndim = from_dtype(parameter.aval.dtype), len(parameter.aval.shape)
        found = (kind.dtype, kind.ndim) if isinstance(kind, types.Array) else (kind, 0)
        if found != (dtype, ndim) or (parameter in arrays and not kind.mutable):
            raise TypingError(f"{parameter.name} of {program.name} is {parameter.aval}, not {kind}")


def _call_borrowing(context: Any, builder: Any, code: Any, args: Sequence[Any]) -> Any:
    """The result of compiled Numba code for arrays without owners.

    Numba counts the references of arrays that it passes. With counts in one branch, LLVM removes none in the loop
    around it, which takes longer than small programs.
    """
    from numba import types  # noqa: PLC0415

    def borrowed(kind: Any, value: Any) -> Any:
        if not isinstance(kind, types.Array):
            return value
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = context.get_constant_null(types.voidptr)
        array.parent = context.get_constant_null(types.pyobject)
        return array._getvalue()

    given = [borrowed(kind, value) for kind, value in zip(code.signature.args, args, strict=True)]
    context.add_linking_libs([code.library])
    function, kinds = context.declare_function(builder.module, code.fndesc), code.signature
    status, result = context.call_conv.call_function(
        builder, function, kinds.return_type, kinds.args, given, attrs=("noinline",)
    )
    with builder.if_then(status.is_error, likely=False):
        raising = builder.block
        context.call_conv.return_status_propagate(builder, status)
        for store in (each for each in raising.instructions if isinstance(each, ir.instructions.StoreInstr)):
            store.set_metadata("numba_exception_output", builder.module.add_metadata([ir.IntType(1)(1)]))
    return result


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


MOST_COPIED = 4
"""The most elements of an argument that is copied; to compare its address with those of results takes longer."""


def _small(entry: Entry, apart: Sequence[Parameter]) -> list[Parameter]:
    """The arrays that are copied before a small program runs, so that they may share memory with results."""
    arrays = [p for p in entry.program.arguments if p.aval.shape and not any(map(is_size, p.aval.shape))]
    return [p for p in arrays if p.aval.size <= MOST_COPIED] if apart and entry.text is not None else []


def _fits(
    builder: Any, program: Standalone, values: dict[str, _Given], apart: Sequence[Parameter], small: Sequence[Parameter]
) -> Any:
    """True if arrays have the shapes of the program, and some are apart from each other and from all but small ones."""
    sizes, found = _sizes(program, values), ir.IntType(1)(1)
    bounds: dict[str, tuple[Any, Any]] = {}
    for parameter in program.parameters:
        data, shape = values.get(parameter.buffer, _Given(None))
        if shape is not None:
            for n, extent in zip(shape, parameter.aval.shape, strict=True):
                found = builder.and_(found, builder.icmp_signed("==", n, number(builder, extent, sizes)))
            if parameter not in small:
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
    place = local_place(builder, context.get_data_type(kind))
    context.pack_value(builder, kind, value, place)
    return place


def _run(
    context: Any,
    builder: Any,
    entry: Entry,
    values: dict[str, _Given],
    results: dict[str, Any],
    small: Sequence[Parameter] = (),
) -> None:
    """Run a program on copies of small arrays; raise if it is not there, or ends in an error."""
    program, status = entry.program, local_place(builder, LONG)
    if entry.text is None:
        builder.store(_by_address(context, builder, entry, values, results), status)
    else:
        inlined = _linked(context, builder, entry)
        with builder.if_else(_is_entered(builder, entry.by_code), likely=True) as (is_same, otherwise):
            with is_same:
                builder.store(_called(builder, inlined, program, _with_copies(builder, values, small), results), status)
            with otherwise:
                copied = _with_copies(builder, values, small)  # which the code inlined above keeps in registers
                builder.store(_by_address(context, builder, entry, copied, results), status)
    found = builder.load(status)
    if program.sizes:
        with builder.if_then(builder.icmp_signed("==", found, LONG(NO_SIZE)), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (program.missing,))
    with builder.if_then(builder.icmp_unsigned("!=", found, LONG(0)), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (f"{program.name} ended in an error",))


def _linked(context: Any, builder: Any, entry: Entry) -> Any:
    """The function of a small program, which Numba links into user code before LLVM inlines.

    Fast-math flags of user code are only on its own instructions.
    """
    name = f"fnad_{entry.by_code:x}"
    if name not in _LIBRARIES:
        head = rf"^define (.*)@{entry.program.name}(\(.*) {{$"
        text = re.sub(head, rf"define \1@{name}\2 alwaysinline {{", str(entry.text), flags=re.MULTILINE)
        module = llvm.parse_assembly(text)
        library = context.codegen().create_library(name)
        library.add_llvm_module(module)
        library.finalize()
        _LIBRARIES[name] = library
    context.add_linking_libs([_LIBRARIES[name]])
    return builder.module.globals.get(name) or ir.Function(builder.module, function_type(entry.program), name)


_LIBRARIES: dict[str, Any] = {}
"""Numba's libraries of small programs, by their names."""


def _is_entered(builder: Any, key: int) -> Any:
    """True if a key has its first place in the table; others are found by `fnad_lookup`."""
    table = builder.module.globals.get("fnad_table")
    if table is None:
        table = ir.GlobalVariable(builder.module, ir.ArrayType(LONG, 2 * SIZE), "fnad_table")
    return builder.icmp_unsigned("==", builder.load(builder.gep(table, [LONG(0), LONG(2 * (key % SIZE))])), LONG(key))


def _by_address(context: Any, builder: Any, entry: Entry, values: dict[str, _Given], results: dict[str, Any]) -> Any:
    """The status of the program that the table has under one of its keys; raise if there is none."""
    lookup = builder.module.globals.get("fnad_lookup")
    if lookup is None:
        lookup = ir.Function(builder.module, ir.FunctionType(LONG, [LONG]), "fnad_lookup")
    place = local_place(builder, LONG)
    builder.store(builder.call(lookup, [LONG(entry.by_code)]), place)
    with builder.if_then(builder.icmp_unsigned("==", builder.load(place), LONG(0)), likely=False):
        builder.store(builder.call(lookup, [LONG(entry.by_name)]), place)
    address = builder.load(place)
    with builder.if_then(builder.icmp_unsigned("==", address, LONG(0)), likely=False):
        name = entry.program.name
        text = f"{name} is not there: export it in this process, as fnad.export(f, ...).njit(). If several functions "
        text += f"are called {name}, remove the code that Numba keeps on disk"
        context.call_conv.return_user_exc(builder, RuntimeError, (text,))
    function = builder.inttoptr(address, function_type(entry.program).as_pointer())
    return _called(builder, function, entry.program, values, results)


def _with_copies(builder: Any, values: dict[str, _Given], small: Sequence[Parameter]) -> dict[str, _Given]:
    """The addresses, with those of copies for small arrays; they are copied by elements, which registers hold."""
    found = dict(values)
    for parameter in small:
        given, size = values[parameter.buffer], parameter.aval.dtype.itemsize
        element = ir.DoubleType() if parameter.aval.dtype.kind == "f" and size == 8 else ir.IntType(8 * size)
        place = local_place(builder, ir.ArrayType(element, parameter.aval.size))
        source = builder.bitcast(given.address, element.as_pointer())
        for n in range(parameter.aval.size):
            value = builder.load(builder.gep(source, [LONG(n)]), align=min(size, 8))
            builder.store(value, builder.gep(place, [LONG(0), LONG(n)]))
        found[parameter.buffer] = given._replace(address=place)
    return found


def _called(
    builder: Any, function: Any, program: Standalone, values: dict[str, _Given], results: dict[str, Any]
) -> Any:
    """The status of a call. The numbers of its memory are copies: the other ones can then stay in registers."""
    numbers = {buffer: given.address for buffer, given in values.items() if given.shape is None} | results
    copies = {buffer: local_place(builder, place.type.pointee) for buffer, place in numbers.items()}
    for buffer, place in numbers.items():
        builder.store(builder.load(place), copies[buffer])
    places = {buffer: given.address for buffer, given in values.items()} | copies
    pointers = [builder.bitcast(places[p.buffer], BYTES) for p in program.parameters]
    status = builder.call(function, [*_sizes(program, values), *pointers])
    for buffer, place in results.items():
        builder.store(builder.load(copies[buffer]), place)
    return status
