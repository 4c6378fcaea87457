"""Loops as part of the program: `while_loop`, `fori_loop`, `scan`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from fnad.api.functions.disabled_jit import is_plain, repeated, repeated_while, scanned
from fnad.api.running.execution import in_trace
from fnad.api.staging.leaves import Function, type_name
from fnad.api.staging.marshalling import LeafType, Tree
from fnad.api.staging.regions import (
    Call,
    Likeness,
    Region,
    at,
    calling,
    check_functions,
    described,
    region_of_call,
    settled,
)
from fnad.api.staging.save_policy import run_scan, run_while
from fnad.control.loop import Groups
from fnad.errors import ArgumentTypeError, RandomDrawError, ShapeError, StructureError
from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.known import known_value
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval
from fnad.numpy.operands import as_symbol, static_int
from fnad.ops.conversion import convert_to
from fnad.ops.piecewise import maximum
from fnad.ops.shape import zeros_like
from fnad.trace import guards
from fnad.trace.capture import Trace
from fnad.trace.generators import have_drawn, shared_states
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import symbol_of
from fnad.trace.writes import without_outer_writes

COUNTER = LeafType(Aval(I64), weak=True)

CARRY = Likeness(
    "carry",
    "the carry that {f} returned",
    "the one it was given",
    "{where} is {taken} and becomes {found} in {f}",
    "a carry keeps its shape: start it in the shape that the body returns",
)


def while_loop(cond_fun: Function, body_fun: Function, init_val: Any, *, max_steps: int | None = None) -> Any:
    """The value of `init_val` after `body_fun` was applied as long as `cond_fun` was true.

    Both modes differentiate it, at any order; reverse mode saves what the steps need on stacks that grow.

    Parameters:
        cond_fun (function): Takes the carry and returns one bool.
        body_fun (function): Takes the carry and returns the next, with the same structure and shapes.
        init_val (pytree of arrays and numbers): The first carry. Its dtypes are promoted to those that `body_fun`
            returns: an integer to which floats are added is a float from the start.
        max_steps (int, optional): The number of steps after which the loop is an error.
    Returns:
        pytree: The last carry.
    Raises:
        StructureError: If `body_fun` returns another structure or shape than it takes.
        LoopLimitError: If the loop takes more than `max_steps` steps.
        ArgumentTypeError: If `cond_fun` does not return one bool, or a leaf is not an array or number.
    Examples:
        >>> import fnad
        >>> def root(a):
        ...     return fnad.while_loop(lambda s: abs(s * s - a) > 1e-12, lambda s: (s + a / s) / 2, a)
        >>> round(fnad.grad(root)(4.0), 6)
        np.float64(0.25)
    """
    check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    limit = None if max_steps is None else _count(max_steps, "max_steps")
    if is_plain():
        return repeated_while(cond_fun, body_fun, init_val, limit)
    return in_trace(body_fun, lambda init: _while(cond_fun, body_fun, init, limit), init_val, names=("init_val",))


def _while(cond_fun: Function, body_fun: Function, init: Any, limit: int | None) -> Any:
    carry = Tree.of("init_val", init)

    def arrange(tracers: list[Tracer]) -> tuple[Any]:
        return (carry.unflatten(tracers),)

    body, types = _settled(body_fun, calling(body_fun, arrange), carry)
    test = _repeated(cond_fun, calling(cond_fun, arrange), types)
    if test.program.out_avals != (Aval(BOOL),):
        found = ", ".join(map(str, test.program.out_avals)) or "nothing"
        raise ArgumentTypeError.here(
            f"the condition of while_loop, {described(cond_fun)}, returned {found}, not one bool",
            remedy="compare with np.all, np.any or one element to get one bool",
        )
    consts, start = (test.consts, body.consts), carry.operands(types)
    with at(current_source()):
        if _takes_no_step(test, body, start):
            return carry.rebuilt(start, types)
        found = run_while(test.consts_first(), body.consts_first(), consts, start, limit)
    return carry.rebuilt(found[: len(types)], types)


def _takes_no_step(test: Region, body: Region, start: Sequence[Symbol]) -> bool:
    """True if a loop from a known start is at its end at once, where a derivative is taken: a path of its own.

    The result then does not depend on what the loop would come closer to, which `branch_warnings.py` warns of.
    """
    builder, program = current_builder(), body.program
    carried = zip(start, program.inputs, program.outputs)  # noqa: B905 captured values stand behind
    changing = [x for x, before, after in carried if after is not before]
    is_differentiated = isinstance(builder, Trace) and builder.is_differentiated
    if not is_differentiated or any(known_value(x) is None for x in changing):
        return False
    return guards.truth(inline(test.program, [*start, *test.consts])[0], of_loop=True) is False


def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """The value of `init_val` after `body_fun(i, value)` was applied for i from `lower` to `upper`, exclusive.

    Parameters:
        lower, upper (integer scalars): Traced or not.
        body_fun (function): Takes (i, carry), i an int64 scalar, and returns the next carry, with the same structure
            and shapes.
        init_val (pytree of arrays and numbers): The first carry, as in `while_loop`.
    Returns:
        pytree: The last carry.
    Raises:
        ArgumentTypeError: If a bound is not an integer scalar, or a leaf is not an array or number.
        StructureError: If `body_fun` returns another structure or shape than it takes.
    Examples:
        >>> import fnad
        >>> fnad.grad(lambda x: fnad.fori_loop(1, 4, lambda i, s: s * x + i, 0.0))(2.0)
        np.float64(6.0)
    """
    check_functions("fori_loop", body_fun=body_fun)
    for bound in (lower, upper):
        _check_bound(bound)
    if is_plain():
        return repeated(lower, upper, body_fun, init_val)
    if _is_known(lower) and _is_known(upper):
        bounds = [static_int(bound, "a bound") for bound in (lower, upper)]
        return in_trace(body_fun, partial(_fori, body_fun, *bounds), init_val, names=("init_val",))
    names = "lower", "upper", "init_val"
    return in_trace(body_fun, partial(_fori, body_fun), lower, upper, init_val, names=names)


def _is_known(bound: Any) -> bool:
    return isinstance(bound, (int, np.integer)) and not isinstance(bound, Tracer)


def _check_bound(bound: Any) -> None:
    is_array = isinstance(bound, (np.ndarray, np.generic))
    is_integer = bound.dtype.kind in "iu" and bound.shape == () if is_array else isinstance(bound, int)
    if not is_integer or isinstance(bound, bool):
        raise ArgumentTypeError.here(
            f"a bound of fori_loop is of type {type_name(bound)}, not an integer scalar",
            remedy="convert it, n.astype(int)",
        )


def _fori(body_fun: Function, lower: Any, upper: Any, init: Any) -> Any:
    carry = Tree.of("init_val", init)

    def arrange(tracers: list[Tracer]) -> tuple[Tracer, Any]:
        return tracers[0], carry.unflatten(tracers[1:])

    body, types = _settled(body_fun, calling(body_fun, arrange), carry, before=[COUNTER])
    low, high = (convert_to(symbol_of(bound), I64) for bound in (lower, upper))
    groups = Groups(len(body.captured), 1 + len(types), 0)
    operands = [*body.consts, low, *carry.operands(types)]
    with at(current_source()):
        are_known = _is_known(lower) and _is_known(upper)
        steps = max(upper - lower, 0) if are_known else maximum(high - low, zeros_like(low))
        found = run_scan(_counted(body), groups, operands, steps)
    return carry.rebuilt(found[1:], types)


def _counted(body: Region) -> Program:
    """The body as one whose first carried value counts."""
    program = body.consts_first()
    position = len(body.captured)

    def run(*args: Symbol) -> list[Symbol]:
        return [args[position] + 1, *inline(program, args)]

    return trace(run, *program.in_avals, name=program.name)


def scan(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int = 1
) -> tuple[Any, Any]:
    """The last carry of `carry, y = f(carry, x)` over the rows x of `xs`, and the stacked ys.

    Parameters:
        f (function): Takes (carry, x) and returns (next carry, y), where y is a pytree of arrays and numbers, or None.
        init (pytree of arrays and numbers): The first carry, as in `while_loop`.
        xs (pytree of arrays, optional): Arrays with the same length along their first axis.
        length (int, optional): The number of steps, if there is no `xs`.
        reverse (bool): If true, go from the last row to the first; each y has the place of its x.
        unroll (int): The number of steps in one iteration of the compiled loop.
    Returns:
        tuple: (carry, ys), where ys has the structure of y and an axis more at the front.
    Raises:
        ShapeError: If the lengths differ, or a leaf of `xs` has no axis.
        StructureError: If `f` does not return a pair, or returns a carry of another structure or shape than it takes.
        ArgumentTypeError: If there is neither `xs` nor `length`, or a leaf is not an array or number.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 4.0]))
        (np.float64(7.0), array([0., 1., 3.]))
    """
    check_functions("scan", f=f)
    width = _count(unroll, "unroll", least=1)
    if is_plain() and (steps := _length(Tree.of("xs", xs), length)):
        return scanned(partial(_pair, f, f), init, xs, steps, reverse)
    names = "init", "xs"
    return in_trace(f, lambda init, xs: scan_in_trace(f, init, xs, length, reverse, width), init, xs, names=names)


def scan_in_trace(
    f: Function, init: Any, xs: Any, length: int | None, reverse: bool, width: int, named: Function | None = None
) -> tuple[Any, Any]:
    """The carry and the ys of `f(carry, x)`, as part of the trace under way; errors speak of the function `named`."""
    carry, rows = Tree.of("init", init), Tree.of("xs", xs)
    steps, count = _length(rows, length), len(carry.leaves)

    def arrange(tracers: list[Tracer]) -> tuple[Any, Any]:
        return carry.unflatten(tracers[:count]), rows.unflatten(tracers[count:])

    slices = [LeafType(leaf.aval.with_shape(leaf.aval.shape[1:])) for leaf in rows.leaves]
    named = named or f
    body, types = _settled(named, calling(partial(_pair, f, named), arrange), carry, after=slices)
    operands = [*body.consts, *carry.operands(types), *[as_symbol(leaf.value) for leaf in rows.leaves]]
    groups = Groups(len(body.captured), count, len(slices))
    with at(current_source()):
        found = run_scan(body.consts_first(), groups, operands, steps, reverse=bool(reverse), unroll=width)
    results = [*types, *[LeafType(symbol.aval) for symbol in found[count:]]]
    return body.rebuilt(found, results)


def _pair(f: Function, named: Function, carry: Any, x: Any) -> tuple[Any, Any]:
    result = f(carry, x)
    if isinstance(result, tuple) and len(cast("tuple[Any, ...]", result)) == 2:
        return cast("tuple[Any, Any]", result)
    raise StructureError.here(
        f"{described(named)} returned {type_name(result)}, where scan wants a pair",
        remedy="return (carry, y); y may be None",
    )


def _length(xs: Tree, length: int | None) -> int:
    """The number of steps of a scan; raise if the leading axes do not agree."""
    found = {} if length is None else {"length": _count(length, "length")}
    for i, leaf in enumerate(xs.leaves):
        where = xs.path(i)
        if not leaf.aval.shape:
            raise ShapeError.here(
                f"scan goes over leading axes, and {where} is {leaf.aval}",
                remedy="give an array, not a list of numbers, which is a tree; or take a number from the closure",
            )
        found[where] = leaf.aval.shape[0]
    if len(set(found.values())) > 1:
        lengths = ", ".join(f"{where} has {n}" for where, n in found.items())
        raise ShapeError.here(f"scan goes over axes of different lengths: {lengths}", remedy="cut them to one length")
    if not found:
        raise ArgumentTypeError.here("scan was given neither arrays to go over nor a length", remedy="give length=n")
    return next(iter(found.values()))


def _count(value: Any, what: str, least: int = 0) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or isinstance(value, Tracer):
        raise ArgumentTypeError.here(
            f"{what} is of type {type_name(value)}, not an int",
            remedy="it has to be known while tracing; fori_loop takes traced bounds",
        )
    if count < least:
        raise ArgumentTypeError.here(f"{what} is {count}", remedy=f"give {least} or more")
    return count


# ---- the body --------------------------------------------------------------------------------------------------------


def _settled(
    f: Function, call: Call, carry: Tree, before: Sequence[LeafType] = (), after: Sequence[LeafType] | None = None
) -> tuple[Region, list[LeafType]]:
    """Trace the body until its carry has the dtypes it takes; return it, and the types of the carry.

    Where there are rows to go over, of the types `after`, `call` returns a pair that starts with the carry.
    """
    return settled(
        f,
        carry,
        CARRY,
        lambda types: _repeated(f, call, [*before, *types, *(after or ())]),
        is_pair=after is not None,
    )


def _repeated(f: Function, call: Call, types: Sequence[LeafType]) -> Region:
    """Trace a function that every step runs; raise where it draws random numbers, which would be those of one step."""
    before = shared_states()
    with without_outer_writes(f, call) as reads:
        region = region_of_call(f, call, types)
    if have_drawn(before) or reads.environment.has_drawn:
        raise RandomDrawError.here(
            f"{described(f)}, which a loop runs at each step, draws from the generators of numpy.random or random: it "
            f"is traced once, so every step would get the same numbers",
            remedy="draw with fnad.random, from a key in the carry or among xs; or draw before the loop",
        )
    return region
