"""`while_loop`: a body run as long as a test of the carry holds.

Operands are constants of the test, constants of the body, the carry at the start; results the carry at the end, how
many steps were taken, and residual stacks: what each step returned beside its carry, in rows whose number only the run
decides. They are what reverse mode goes back over: a scan of as many steps as were taken. A loop that goes on after
`max_steps` ends in the error that the param `failure` describes, or in a `LoopLimitError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, TypeAlias

import numpy as np

from fnad.control.invariant import gains, specialized, unchanged
from fnad.control.loop import Flags, Groups, Rows, live_body, pulled, pushed, settled, sweep_back, with_tangents
from fnad.control.scan import listed, split_tangents, spread_among, sweep_over
from fnad.errors import FAILURES, ShapeError, VerificationError, endless
from fnad.ir.builder import trace
from fnad.ir.primitive import Primitive, Sample, Structured, WhileLoop, register
from fnad.ir.program import Equation, Params, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, UNKNOWN, Aval
from fnad.ir.walk import use_counts
from fnad.ops.comparison import lt
from fnad.transforms.interpret import check_time, region_runner
from fnad.transforms.joint import Cotangent, Pullback
from fnad.transforms.jvp import Tangent

Failure: TypeAlias = tuple[str, str, str]
"""An error: its name in `fnad.errors.FAILURES`, what happened, and the remedy."""


def _groups(equation: Equation) -> Groups:
    consts = equation.params["body_consts"]
    return Groups(consts, len(equation.regions[1].inputs) - consts, 0)


def _infer_while(
    *avals: Aval,
    test_consts: int,
    body_consts: int,
    max_steps: int | None,
    regions: tuple[Program, ...],
    failure: Failure | None = None,
) -> tuple[Aval, ...]:
    test, body = regions
    carry = avals[test_consts + body_consts :]
    if failure is not None and failure[0] not in FAILURES:
        raise VerificationError(f"a loop may not fail with {failure[0]}", remedy=f"take one of {', '.join(FAILURES)}")
    if test.in_avals != (*avals[:test_consts], *carry) or test.out_avals != (Aval(BOOL),):
        raise ShapeError(f"the test of a loop over {listed(carry)} takes {listed(test.in_avals)} to {test.out_avals}")
    if body.in_avals != avals[test_consts:]:
        raise ShapeError(f"the body of a loop over {listed(carry)} takes {listed(body.in_avals)}")
    if body.out_avals[: len(carry)] != carry:
        raise ShapeError(f"the carry {listed(carry)} of a loop becomes {listed(body.out_avals[: len(carry)])}")
    return (*carry, Aval(I64), *[aval.with_shape((UNKNOWN, *aval.shape)) for aval in body.out_avals[len(carry) :]])


def _evaluate_while(
    *operands: Any,
    test_consts: int,
    body_consts: int,
    max_steps: int | None,
    regions: tuple[Program, ...],
    failure: Failure | None = None,
) -> tuple[Any, ...]:
    test, body = map(region_runner, regions)
    of_test, of_body = operands[:test_consts], operands[test_consts : test_consts + body_consts]
    carry = operands[test_consts + body_consts :]
    count, steps = len(carry), 0
    stacks: list[list[Any]] = [[] for _ in regions[1].outputs[count:]]
    while test([*of_test, *carry])[0]:
        check_time()
        if steps == max_steps:
            raise endless(steps, failure)
        found = body([*of_body, *carry])
        carry = found[:count]
        for stack, row in zip(stacks, found[count:], strict=True):
            stack.append(row)
        steps += 1
    rows = zip(stacks, regions[1].out_avals[count:], strict=True)
    return (*carry, np.int64(steps), *[np.array(t, a.dtype).reshape(steps, *a.shape) for t, a in rows])


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _parts(equation: Equation, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what the test takes for itself, and what the body takes."""
    count = equation.params["test_consts"]
    return values[:count], values[count:]


def _push(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    groups, (test, body) = _groups(equation), equation.regions
    of_test, operands = _parts(equation, primals)
    given = _parts(equation, tangents)[1]
    marked = settled(body, groups, [tangent is not None for tangent in given])
    way = pushed(body, groups, marked)
    both = with_tangents(groups, marked, operands, given)
    params = {**equation.params, "body_consts": way.groups.consts}
    regions = _test_beside_tangents(test, body, groups, way.carry), way.body
    found = while_loop(*of_test, *both, **params, regions=regions)
    steps = groups.carry + sum(way.carry)
    results, moved = split_tangents([*found[:steps], *found[steps + 1 :]], way.carry, way.ys)
    count = groups.carry
    return [*results[:count], found[steps], *results[count:]], [*moved[:count], None, *moved[count:]]


def _test_beside_tangents(test: Program, body: Program, groups: Groups, active: Flags) -> Program:
    """Return the test on a carry that the tangents stand behind, which it does not read."""
    avals = compress(groups.split(body.in_avals)[1], active)
    return Program(test.name, (*test.inputs, *map(Var, avals)), test.equations, test.outputs)


def _pull(equation: Equation, primals: Sequence[Symbol], needed: Flags) -> tuple[list[Symbol], Pullback]:
    groups, (test, body) = _groups(equation), equation.regions
    of_test, operands = _parts(equation, primals)
    way = pulled(body, groups, _parts(equation, needed)[1])
    found = while_loop(*primals, **equation.params, regions=(test, way.forward))
    count = groups.carry
    steps, ends = found[count], count + 1 + len(body.outputs) - count

    def pullback(cts: Sequence[Cotangent]) -> list[Cotangent]:
        kept = found[ends:]
        rows = Rows((), kept[: way.parts.kept], kept[way.parts.kept :])
        back = sweep_over([steps], None, reverse=True)
        consts = groups.split(operands)[0]
        return [*[None] * len(of_test), *sweep_back(way, body, consts, rows, [*cts[:count], *cts[count + 1 :]], back)]

    return found[:ends], lambda cts: [ct if n else None for ct, n in zip(pullback(cts), needed, strict=True)]


def _prune(equation: Equation, live: Flags) -> Equation:
    """Return the loop without results that nobody reads and what only they need; the test needs what it reads."""
    groups, (test, body) = _groups(equation), equation.regions
    count = groups.carry
    read = use_counts(test)
    tested = [var in read for var in test.inputs]
    of_test, of_carry = _parts(equation, tested)
    kept, inputs, outputs = live_body(body, groups, [*live[:count], *live[count + 1 :]], of_carry)
    consts, carry, _ = groups.split(inputs)
    test_operands, operands = _parts(equation, equation.operands)
    return replace(
        equation,
        results=tuple(compress(equation.results, [*outputs[:count], True, *outputs[count:]])),
        operands=(*compress(test_operands, of_test), *compress(operands, inputs)),
        params={**equation.params, "test_consts": sum(of_test), "body_consts": sum(consts)},
        regions=(
            Program(test.name, tuple(compress(test.inputs, [*of_test, *carry])), test.equations, test.outputs),
            kept,
        ),
    )


def repeat_while(
    test: Callable[[Sequence[Symbol]], Symbol],
    body: Callable[[Sequence[Symbol], Sequence[Symbol]], Sequence[Symbol]],
    consts: Sequence[Symbol],
    carry: Sequence[Symbol],
) -> list[Symbol]:
    """Return the carry after `carry = body(consts, carry)` as long as `test(carry)`; neither uses other symbols."""
    of_carry, of_consts = [c.aval for c in carry], [c.aval for c in consts]
    count = len(consts)
    regions = (
        trace(lambda *state: [test(state)], *of_carry, name="test"),
        trace(lambda *args: body(args[:count], args[count:]), *of_consts, *of_carry, name="body"),
    )
    params = {"test_consts": 0, "body_consts": count, "max_steps": None}
    return list(while_loop(*consts, *carry, **params, regions=regions)[: len(carry)])


# ---- less to do ------------------------------------------------------------------------------------------------------


def _reduce(operands: Sequence[Symbol], params: Params, regions: tuple[Program, ...]) -> Sequence[Symbol] | None:
    """Return the results with what is the same in every step put before the loop; its test runs once at least."""
    test, body = regions
    first, second = params["test_consts"], params["test_consts"] + params["body_consts"]
    init, size = operands[second:], len(operands) - second
    same = unchanged(body.inputs[second - first :], body.outputs[:size], init)
    fixed = [
        dict(zip([*consts, *compress(carry, same)], [*given, *compress(init, same)], strict=True))
        for consts, carry, given in (
            (test.inputs[:first], test.inputs[first:], operands[:first]),
            (body.inputs[: second - first], body.inputs[second - first :], operands[first:second]),
        )
    ]
    if not any(same) and not gains(test, fixed[0], runs=True) and not gains(body, fixed[1], runs=False):
        return None
    moving = [not s for s in same]
    inner = Program(body.name, body.inputs, body.equations, (*compress(body.outputs, moving), *body.outputs[size:]))
    of_test, of_body = specialized(test, fixed[0], runs=True), specialized(inner, fixed[1], runs=False)
    left = {**params, "test_consts": len(of_test.consts), "body_consts": len(of_body.consts)}
    given = *of_test.consts, *of_body.consts, *compress(init, moving)
    found = while_loop(*given, **left, regions=(of_test.region, of_body.region))
    return (*spread_among(init, moving, found), *found[sum(moving) :])


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """A value that grows by a factor until it exceeds a limit."""
    scalar = Aval(np.dtype("f8"))
    test = trace(lambda limit, s, i: [lt(s, limit)], scalar, scalar, Aval(I64), name="test")
    body = trace(lambda a, s, i: [a * s + 0.125, i + 1], scalar, scalar, Aval(I64), name="step")
    for start in (0.5, 20.0):
        operands = np.float64(10.0), np.float64(1.5), np.float64(start), np.int64(0)
        yield Sample(operands, {"test_consts": 1, "body_consts": 1, "max_steps": None}, (test, body))


while_loop = register(
    Primitive(
        "while_loop",
        _infer_while,
        _evaluate_while,
        Structured(_push, _pull),
        WhileLoop(),
        _samples,
        "The second region on the carry, as long as the first says so.",
        prune=_prune,
        reduce=_reduce,
    )
)
