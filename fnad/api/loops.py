"""Loops as part of the program: `while_loop`, `fori_loop`, `scan`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from fnad.api.keeping import run_count, run_scan, run_while
from fnad.api.leaves import (
    Function,
    Leaf,
    Structure,
    leaves_of,
    path,
    type_name,
)
from fnad.api.regions import (
    Kind,
    Region,
    as_tracer,
    at,
    check_functions,
    check_structure,
    described,
    in_trace,
    joined,
    kind_of,
    operand,
    region_of,
)
from fnad.control.loop import Groups
from fnad.errors import ArgumentTypeError, RandomDrawError, ShapeError, StructureError
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval
from fnad.numpy.operands import as_symbol
from fnad.ops.conversion import convert_to
from fnad.ops.piecewise import maximum
from fnad.trace.contents import shared_states
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import symbol_of

COUNTER = Kind(Aval(I64), weak=True)


def while_loop(cond_fun: Function, body_fun: Function, init_val: Any, *, max_steps: int | None = None) -> Any:
    """Return `init_val` after `body_fun` was applied to it as long as `cond_fun` of it holds.

    The carry is a pytree of arrays and numbers; `body_fun` returns one of the same structure and shapes. Its dtypes are
    those that the carry settles on: one that starts as an integer and is added to a float is a float from the start.
    Both modes of differentiation work, and at any order: in reverse mode what the steps need is saved on stacks that
    grow with them. Give `max_steps` to have a loop that goes on after so many steps end in an error.

    Raises `ArgumentTypeError`, `StructureError` for a body that returns another pytree than it takes, `LoopLimitError`.

    >>> import fnad
    >>> def root(a):
    ...     return fnad.while_loop(lambda s: abs(s * s - a) > 1e-12, lambda s: (s + a / s) / 2, a)
    >>> round(fnad.grad(root)(4.0), 6)
    np.float64(0.25)
    """
    check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    limit = None if max_steps is None else _count(max_steps, "max_steps")
    return in_trace(body_fun, lambda init: _while(cond_fun, body_fun, init, limit), init_val, names=("init_val",))


def _while(cond_fun: Function, body_fun: Function, init: Any, limit: int | None) -> Any:
    leaves, structure = _carry(init, "init_val")
    unflatten = _single(structure)
    body, kinds = _settled(body_fun, partial(_call, body_fun, unflatten), leaves, structure, [])
    test = _repeated(cond_fun, partial(_call, cond_fun, unflatten), kinds)
    if test.program.out_avals != (Aval(BOOL),):
        found = ", ".join(map(str, test.program.out_avals)) or "nothing"
        raise ArgumentTypeError(
            f"the condition of while_loop, {described(cond_fun)}, returned {found}, not one bool",
            source=current_source(),
            remedy="compare with np.all, np.any or one element to get one bool",
        )
    consts = [as_symbol(value) for value in test.captured], [as_symbol(value) for value in body.captured]
    start = [operand(leaf, kind) for leaf, kind in zip(leaves, kinds, strict=True)]
    with at(current_source()):
        found = run_while(test.consts_first(), body.consts_first(), consts, start, limit)
    return unflatten([as_tracer(symbol, kind) for symbol, kind in zip(found, kinds)])  # noqa: B905 the steps stand behind


def _call(f: Function, unflatten: Callable[[Sequence[Tracer]], Any], tracers: list[Tracer]) -> Any:
    return f(unflatten(tracers))


def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """Return `init_val` after `body_fun(i, value)` was applied for i from `lower` to `upper`, exclusive.

    The bounds are integer scalars and may be traced. The carry is as in `while_loop`.

    Raises `ArgumentTypeError`, `StructureError`.

    >>> import fnad
    >>> fnad.grad(lambda x: fnad.fori_loop(1, 4, lambda i, s: s * x + i, 0.0))(2.0)
    np.float64(6.0)
    """
    check_functions("fori_loop", body_fun=body_fun)
    for bound in (lower, upper):
        _check_bound(bound)
    if _is_known(lower) and _is_known(upper):
        lo, hi = int(lower), int(upper)
        return in_trace(body_fun, lambda init: _fori(lo, hi, body_fun, init), init_val, names=("init_val",))
    names = "lower", "upper", "init_val"
    return in_trace(
        body_fun,
        lambda lo, hi, init: _fori(lo, hi, body_fun, init),
        lower,
        upper,
        init_val,
        names=names,
    )


def _is_known(bound: Any) -> bool:
    return isinstance(bound, (int, np.integer)) and not isinstance(bound, Tracer)


def _check_bound(bound: Any) -> None:
    is_array = isinstance(bound, (np.ndarray, np.generic))
    is_integer = bound.dtype.kind in "iu" and bound.shape == () if is_array else isinstance(bound, int)
    if not is_integer or isinstance(bound, bool):
        raise ArgumentTypeError(
            f"a bound of fori_loop is of type {type_name(bound)}, not an integer scalar",
            source=current_source(),
            remedy="convert it, n.astype(int)",
        )


def _fori(lower: Any, upper: Any, body_fun: Function, init: Any) -> Any:
    leaves, structure = _carry(init, "init_val")
    unflatten = _single(structure)
    body, kinds = _settled(body_fun, partial(_call_counted, body_fun, unflatten), leaves, structure, [COUNTER])
    low, high = (convert_to(symbol_of(bound), I64) for bound in (lower, upper))
    groups = Groups(len(body.captured), 1 + len(leaves), 0)
    consts = [as_symbol(value) for value in body.captured]
    operands = [*consts, low, *[operand(leaf, kind) for leaf, kind in zip(leaves, kinds, strict=True)]]
    with at(current_source()):
        if _is_known(lower) and _is_known(upper):
            found = run_scan(_counted(body), groups, operands, max(upper - lower, 0), reverse=False)
        else:
            found = run_count(_counted(body), groups, operands, _steps(low, high))
    return unflatten([as_tracer(symbol, kind) for symbol, kind in zip(found[1:], kinds, strict=True)])


def _call_counted(f: Function, unflatten: Callable[[Sequence[Tracer]], Any], tracers: list[Tracer]) -> Any:
    return f(tracers[0], unflatten(tracers[1:]))


def _steps(low: Symbol, high: Symbol) -> Symbol:
    return maximum(high - low, current_builder().literal(np.int64(0)))


def _counted(body: Region) -> Program:
    """Return the body as one whose first carried value counts."""
    program = body.consts_first()
    position = len(body.captured)

    def run(*args: Symbol) -> list[Symbol]:
        return [args[position] + 1, *inline(program, args)]

    return trace(run, *program.in_avals, name=program.name)


def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Return the carry after `carry, y = f(carry, x)` for each x along the leading axis of `xs`, and the ys, stacked.

    `xs` is a pytree of arrays whose leading axes are of one length; without any, `length` says how many steps there
    are. `reverse` goes from the last to the first; each y is where its x is. The carry is as in `while_loop`. `unroll`
    steps are taken in one turn of the loop.

    Raises `ArgumentTypeError`, `StructureError`, `ShapeError` for axes of different lengths.

    >>> import numpy as np, fnad
    >>> fnad.scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 4.0]))
    (np.float64(7.0), array([0., 1., 3.]))
    """
    check_functions("scan", f=f)
    width = _count(unroll, "unroll", least=1)
    names = "init", "xs"
    return in_trace(f, lambda init, xs: scan_in_trace(f, init, xs, length, reverse, width), init, xs, names=names)


def _step(f: Function, carry: Any, x: Any) -> Any:
    return f(carry, x)


def scan_in_trace(
    f: Function, init: Any, xs: Any, length: int | None, reverse: bool, width: int, step: Function = _step
) -> tuple[Any, Any]:
    """Return the carry and the ys of `step(f, carry, x)`, `f` the user's function, as part of the trace under way."""
    leaves, structure = _carry(init, "init")
    rows, row_structure = leaves_of((xs,), lambda _: "xs")
    steps = _length(rows, xs, length)
    unflatten, unflatten_row = _single(structure), _single(row_structure)
    call = partial(_call_stepping, f, step, unflatten, unflatten_row, len(leaves))
    row_kinds = [Kind(leaf.aval.with_shape(leaf.aval.shape[1:]), weak=False) for leaf in rows]
    body, kinds = _settled(f, call, leaves, structure, [], row_kinds)
    operands = [
        *[as_symbol(value) for value in body.captured],
        *[operand(leaf, kind) for leaf, kind in zip(leaves, kinds, strict=True)],
        *[as_symbol(leaf.value) for leaf in rows],
    ]
    groups = Groups(len(body.captured), len(leaves), len(rows))
    with at(current_source()):
        found = run_scan(body.consts_first(), groups, operands, steps, reverse=bool(reverse), unroll=width)
    results = [*kinds, *[Kind(symbol.aval, weak=False) for symbol in found[len(kinds) :]]]
    tracers = [as_tracer(symbol, kind) for symbol, kind in zip(found, results, strict=True)]
    return cast("tuple[Any, Any]", body.structure.unflatten(tracers))


def _call_stepping(
    f: Function,
    step: Function,
    unflatten: Callable[[Sequence[Tracer]], Any],
    unflatten_row: Callable[[Sequence[Tracer]], Any],
    count: int,
    tracers: list[Tracer],
) -> Any:
    return _pair(step(f, unflatten(tracers[:count]), unflatten_row(tracers[count:])), f)


def _pair(result: Any, f: Function) -> tuple[Any, Any]:
    if isinstance(result, tuple) and len(cast("tuple[Any, ...]", result)) == 2:
        return cast("tuple[Any, Any]", result)
    raise StructureError(
        f"{described(f)} returned {type_name(result)}, where scan wants a pair",
        source=current_source(),
        remedy="return (carry, y); y may be None",
    )


def _length(rows: Sequence[Leaf], xs: Any, length: int | None) -> int:
    """Return how many steps a scan takes; raise where the leading axes do not say one number."""
    found = {} if length is None else {"length": _count(length, "length")}
    for i, leaf in enumerate(rows):
        where = path((xs,), i, lambda _: "xs")
        if not leaf.aval.shape:
            raise ShapeError(
                f"scan goes over leading axes, and {where} is {leaf.aval}",
                source=current_source(),
                remedy="let the function take it from its closure, or put it in the carry",
            )
        found[where] = leaf.aval.shape[0]
    if len(set(found.values())) > 1:
        lengths = ", ".join(f"{where} has {n}" for where, n in found.items())
        raise ShapeError(
            f"scan goes over axes of different lengths: {lengths}",
            source=current_source(),
            remedy="cut them to one length",
        )
    if not found:
        raise ArgumentTypeError(
            "scan was given neither arrays to go over nor a length", source=current_source(), remedy="give length=n"
        )
    return next(iter(found.values()))


def _count(value: Any, what: str, least: int = 0) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or isinstance(value, Tracer):
        raise ArgumentTypeError(
            f"{what} is of type {type_name(value)}, not an int",
            source=current_source(),
            remedy="it has to be known while tracing; fori_loop takes traced bounds",
        )
    if count < least:
        raise ArgumentTypeError(f"{what} is {count}", source=current_source(), remedy=f"give {least} or more")
    return count


# ---- the carry -------------------------------------------------------------------------------------------------------


def _carry(init: Any, name: str) -> tuple[list[Leaf], Structure]:
    return leaves_of((init,), lambda _: name)


def _single(structure: Structure) -> Callable[[Sequence[Tracer]], Any]:
    """Return what rebuilds the one pytree of a structure of one."""
    return lambda leaves: cast("tuple[Any]", structure.unflatten(leaves))[0]


def _settled(
    f: Function,
    call: Callable[[list[Tracer]], Any],
    leaves: Sequence[Leaf],
    structure: Structure,
    before: Sequence[Kind],
    after: Sequence[Kind] | None = None,
) -> tuple[Region, list[Kind]]:
    """Trace the body until its carry has the dtypes it takes; return it, and what the carried leaves are.

    Where there are rows to go over, of the kinds `after`, `call` returns a pair that starts with the carry.
    """
    kinds = [kind_of(leaf) for leaf in leaves]
    while True:
        body = _repeated(f, call, [*before, *kinds, *(after or [])])
        found = _carried(f, body, structure, kinds, is_pair=after is not None)
        grown = [joined(kind, new) for kind, new in zip(kinds, found, strict=True)]
        if grown == kinds:
            return body.converted([kind.aval.dtype for kind in kinds]), kinds
        kinds = grown


def _repeated(f: Function, call: Callable[[list[Tracer]], Any], kinds: Sequence[Kind]) -> Region:
    """Trace a function that every step runs; raise where it draws random numbers, which would be those of one step."""
    before = shared_states()
    region = region_of(f, call, kinds)
    if shared_states() != before:
        raise RandomDrawError(
            f"{described(f)}, which a loop runs at each step, draws from the generators of numpy.random or random: it "
            f"is traced once, so every step would get the same numbers",
            source=current_source(),
            remedy="draw with fnad.random, from a key in the carry or among xs; or draw before the loop",
        )
    return region


def _carried(f: Function, body: Region, structure: Structure, kinds: Sequence[Kind], *, is_pair: bool) -> list[Kind]:
    """Return the kinds of the carry that the body returns; raise where it is another pytree, or has other shapes."""
    expected = structure.children()[0]
    found = body.structure.children()[0] if is_pair else body.structure
    check_structure(expected, found, f"the carry that {described(f)} returned", "the one it was given")
    results = body.results[: len(kinds)]
    for i, (kind, result) in enumerate(zip(kinds, results, strict=True)):
        if kind.aval.shape != result.aval.shape:
            where = path(structure.unflatten(range(len(kinds))), i, lambda _: "carry")
            raise StructureError(
                f"{where} is {kind.aval} and becomes {result.aval} in {described(f)}",
                source=current_source(),
                remedy="a carry keeps its shape: start it in the shape that the body returns",
            )
    return results
