"""The ufuncs of scipy.special, called from native loops on one element at a time.

SciPy exports most of its f64 functions as C function pointers (`scipy.special.cython_special`), which are called like
any C function. For the others (f32, which SciPy does not always compute in f64; complex numbers; several results;
private functions; functions missing from older versions) the C loop of the ufunc is called for one element, which takes
some 30 ns more. Both give the ufunc's result to the bit, and without the GIL. An error that `scipy.special.errstate`
turns into an exception is raised when the program returns; the entry points do not report all errors. Functions with a
formula (`fnad.backends.llvm.formulas`) are computed by it, except for complex numbers, and some for f32 alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, TypeAlias

import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu import objects, vector_math
from fnad.backends.cpu.ufunc_loops import UfuncLoop, place, registered, registered_loop
from fnad.backends.llvm import cast
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Kinds, Value, Values, by_kind
from fnad.backends.llvm.formulas.catalogue import OWN, SPECIAL, SPECIAL_F32, WITHIN, WITHIN_F32, emitters
from fnad.backends.llvm.formulas.definition import Formula, defined
from fnad.backends.llvm.lane import Lane
from fnad.backends.llvm.scalar import llvm_type
from fnad.scalar.operation import INDEX
from fnad.scalar.scipy_ufunc import PREFIX as OPERATION
from fnad.scalar.scipy_ufunc import UFUNC, UfuncOperation, scipy_function, ufunc_operation

Dtypes: TypeAlias = Sequence[Dtype]

PREFIX = "scipy_special_"
F64 = np.dtype(np.float64)
WORD = ir.IntType(32)


def emit_ufunc(function: UfuncOperation, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit a function: a call of its entry point if it has one, else of its ufunc's loop."""
    entry = entry_point(function.ufunc, tuple(kinds))
    if entry is None:
        return call_loop(builder, function, kinds, values)
    return builder.call(declared(builder.module, entry, values), [*values, WORD(0)])


# ---- entry points ------------------------------------------------------------------------------------------------


@cache
def entry_point(name: str, dtypes: tuple[Dtype, ...]) -> str | None:
    """The symbol of the entry point of a ufunc that takes these dtypes and gives f64, if there is one."""
    found = capsules().get(name, {})
    address = next((objects.address(found[s]) for s in signatures(dtypes) if s in found), None)
    return None if address is None else registered(f"{PREFIX}{name}_{letters(dtypes)}", address)


@cache
def capsules() -> dict[str, dict[str, Any]]:
    """The capsules of cython_special by function and signature; __pyx_fuse_0_1eval_jacobi belongs to eval_jacobi."""
    found: dict[str, dict[str, Any]] = {}
    for symbol, function in import_module("scipy.special.cython_special").__pyx_capi__.items():
        name = re.sub(r"^__pyx_fuse(_\d+)+", "", symbol)
        found.setdefault(name, {})[objects.signature(function)] = function
    return found


def signatures(dtypes: Dtypes) -> list[str]:
    """The C signatures that a function of i64 and f64 may have; none for other dtypes."""
    if any(dtype not in (INDEX, F64) for dtype in dtypes):
        return []
    integers = ["Py_ssize_t", *(["long"] if np.dtype("long") == INDEX else [])]
    return [
        f"double ({', '.join(i if dtype == INDEX else 'double' for dtype in dtypes)}, int __pyx_skip_dispatch)"
        for i in integers
    ]


def letters(dtypes: Dtypes) -> str:
    return "".join(dtype.char for dtype in dtypes)


def declared(module: ir.Module, symbol: str, values: Values) -> ir.Function:
    """An entry point, declared as pure; its last operand means nothing to Cython."""
    known = module.globals.get(symbol)
    if known is not None:
        return known
    type_ = ir.FunctionType(ir.DoubleType(), [*(value.type for value in values), WORD])
    function = ir.Function(module, type_, name=symbol)
    for attribute in ("nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)
    return function


def register(symbol: str) -> None:
    """Register a symbol again; raises an error if SciPy has no such function."""
    *name, letters, part = symbol.removeprefix(PREFIX).split("_")
    if part in ("loop", "data"):
        ufunc = "_".join(name)
        registered_loop(scipy_function(ufunc), tuple(map(np.dtype, letters)), f"{PREFIX}{ufunc}")
    else:
        entry_point("_".join((*name, letters)), tuple(map(np.dtype, part)))


# ---- loops of ufuncs ---------------------------------------------------------------------------------------------


@cache
def loop_of(name: str, dtypes: tuple[Dtype, ...]) -> tuple[UfuncLoop, tuple[Dtype, ...]]:
    """The loop that the ufunc would choose, and the dtypes of operands and results."""
    ufunc: Any = scipy_function(name)
    resolved = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
    return registered_loop(ufunc, resolved, f"{PREFIX}{name}"), resolved


def call_loop(builder: Builder, function: UfuncOperation, kinds: Kinds, values: Values) -> Value:
    """Call the loop of a ufunc on one element; it advances the pointers to its operands, so they are set each time."""
    loop, dtypes = loop_of(function.ufunc, tuple(kinds))
    places = [place(builder, llvm_type(dtype)) for dtype in dtypes]
    for kind, value, dtype, slot in zip(kinds, values, dtypes, places, strict=False):
        builder.store(cast.cast(builder, kind, dtype, value), slot)
    loop.call(builder, places, [1], [0] * len(places))
    result = len(kinds) + (function.output or 0)
    return cast.cast(builder, dtypes[result], kinds[-1], builder.load(places[result]))


def ufunc(name: str, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit the ufunc of this name."""
    operation = ufunc_operation(name)
    assert operation is not None
    return emit_ufunc(operation, builder, kinds, values)


def within(name: str, formula: Formula, condition: Formula) -> Emit:
    """The emitter of a formula where a condition holds, elsewhere of the ufunc.

    The ufunc is called by a function of vectors that returns at once where the condition holds of all lanes.
    """
    symbol = f"{OPERATION}{name}"
    plain = partial(ufunc, symbol)

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        holds = condition(*(Lane(builder, value) for value in values)).value
        type_ = values[0].type
        outside = builder.select(holds, type_(0.0), type_(1.0))
        name = f"fnad.{symbol}_outside.{type_}"
        rest = builder.module.globals.get(name) or define_outside(builder.module, name, plain, kinds, type_)
        value = builder.call(rest, [*values, outside])
        return builder.select(holds, defined(symbol, formula, builder, kinds, values), value)

    return emit


def define_outside(module: ir.Module, symbol: str, plain: Emit, kinds: Kinds, type_: ir.Type) -> ir.Function:
    """Define the ufunc where the last operand is not 0, and its variants on vectors."""
    count = len(kinds) + 1
    function, builder = pure_function(module, symbol, type_, count)
    *operands, outside = function.args
    with builder.if_then(builder.fcmp_ordered("!=", outside, type_(0.0)), likely=False):
        builder.ret(plain(builder, kinds, operands))
    builder.ret(outside)
    variants: list[ir.Function] = []
    for lanes in sorted({width // kinds[0].itemsize for _, _, width in vector_math.instruction_sets()}):
        vectors = ir.VectorType(type_, lanes)
        variant, builder = pure_function(module, f"{symbol}.{lanes}", vectors, count)
        *operands, outside = variant.args
        is_outside = builder.fcmp_ordered("!=", outside, vectors([0.0] * lanes))
        bits = ir.IntType(lanes)
        with builder.if_then(builder.icmp_unsigned("!=", builder.bitcast(is_outside, bits), bits(0)), likely=False):
            result = outside
            for lane in map(WORD, range(lanes)):
                one = builder.call(function, [builder.extract_element(vector, lane) for vector in variant.args])
                result = builder.insert_element(result, one, lane)
            builder.ret(result)
        builder.ret(outside)
        variants.append(variant)
    mapping = ",".join(f"_ZGV_LLVM_N{v.type.pointee.args[0].count}{'v' * count}_{symbol}({v.name})" for v in variants)
    set.add(function.attributes, f'"vector-function-abi-variant"="{mapping}"')
    vector_math.keep(module, variants)
    return function


def pure_function(module: ir.Module, symbol: str, type_: ir.Type, count: int) -> tuple[ir.Function, ir.IRBuilder]:
    """Define a function of operands of one type that stays a call."""
    function = ir.Function(module, ir.FunctionType(type_, [type_] * count), symbol)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)
    return function, ir.IRBuilder(function.append_basic_block())


def in_f32(name: str, formula: Emit) -> Emit:
    """The emitter of a formula of f32, and of the ufunc for f64."""
    plain = partial(ufunc, f"{OPERATION}{name}")

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        return (formula if kinds[0].itemsize == 4 else plain)(builder, kinds, values)

    return emit


REALS: dict[str, Emit] = {
    **emitters(SPECIAL),
    **{name: within(name, *formulas) for name, formulas in WITHIN.items()},
    **{name: in_f32(name, formula) for name, formula in emitters(SPECIAL_F32).items()},
    **{name: in_f32(name, within(name, *formulas)) for name, formulas in WITHIN_F32.items()},
}

INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    **{(symbol := f"{OPERATION}{name}"): by_kind(f=emit, c=partial(ufunc, symbol)) for name, emit in REALS.items()},
    **emitters(OWN),
    UFUNC: emit_ufunc,
}
