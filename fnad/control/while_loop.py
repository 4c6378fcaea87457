"""`while_loop`: a body run as long as a test of the carry holds.

Operands are constants of the test, constants of the body, the carry at the start; results the carry at the end, how
many steps were taken, and residual stacks: what each step returned beside its carry, in rows whose number only the run
decides. They are what reverse mode goes back over: a scan of as many steps as were taken. A loop that goes on after
`max_steps` ends in the error that the param `failure` describes, or in a `LoopLimitError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from fnad.control import loop
from fnad.control.invariant import LoopPart
from fnad.control.loop import Groups, Loop, lessened, restored
from fnad.control.region_rules import check_avals, on_inputs
from fnad.control.scan import bind_scan
from fnad.control.signatures import Flags, Regions, Symbols
from fnad.errors import Failure, FailureKind, VerificationError, endless
from fnad.ir.builder import trace
from fnad.ir.primitive import Sample, WhileLoop
from fnad.ir.program import Equation, Params, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, UNKNOWN, Aval
from fnad.ir.walk import use_counts
from fnad.ops.comparison import lt
from fnad.ops.constructors import primitive
from fnad.transforms.interpret import NEVER, check_time, region_runner


def _infer(
    *avals: Aval,
    test_consts: int,
    body_consts: int,
    max_steps: int | None,
    regions: Regions,
    failure: Failure | None = None,
) -> tuple[Aval, ...]:
    test, body = regions
    carry = avals[test_consts + body_consts :]
    if failure is not None and failure[0] not in list(FailureKind):
        remedy = f"take one of {', '.join(FailureKind)}"
        raise VerificationError(f"a loop may not fail with {failure[0]}", remedy=remedy)
    check_avals("the test of a loop takes", test.in_avals, (*avals[:test_consts], *carry))
    check_avals("the test of a loop returns", test.out_avals, (Aval(BOOL),))
    check_avals("the body of a loop takes", body.in_avals, avals[test_consts:])
    check_avals("the carry of a loop becomes", body.out_avals[: len(carry)], carry)
    return (*carry, Aval(I64), *[aval.with_shape((UNKNOWN, *aval.shape)) for aval in body.out_avals[len(carry) :]])


# ---- as a loop -------------------------------------------------------------------------------------------------------


def while_as_loop(params: Params, regions: Regions) -> Loop:
    """The loop for rules of loops on a while loop."""
    test, body = regions
    head, consts = params["test_consts"], params["body_consts"]
    carry = len(body.inputs) - consts

    def bind(body: Program, groups: Groups, given: Symbols, operands: Symbols) -> list[Symbol]:
        # the test does not read what is carried beside what was: tangents
        unread = map(Var, groups.split(body.in_avals)[1][carry:])
        wider = replace(test, inputs=(*test.inputs, *unread))
        own = {**params, "body_consts": groups.consts}
        return list(while_loop(*given, *operands, **own, regions=(wider, body)))

    return Loop(body, Groups(consts, carry, 0), head, counts=True, length=None, reverse=False, bind=bind)


def _prune(equation: Equation, live: Flags) -> Equation:
    """The loop without results that nobody reads and what only they need; the test needs what it reads."""
    test, count = equation.regions[0], equation.params["test_consts"]
    read = use_counts(test)
    tested = [var in read for var in test.inputs]
    whole = while_as_loop(equation.params, equation.regions)
    pruned, (consts, carry, _) = loop.prune(whole, equation, live, tested[count:])
    if pruned is equation and all(tested[:count]):
        return equation
    return replace(
        pruned,
        operands=(*compress(pruned.operands, tested[:count]), *pruned.operands[count:]),
        params={**equation.params, "test_consts": sum(tested[:count]), "body_consts": sum(consts)},
        regions=(on_inputs(test, [*tested[:count], *carry]), pruned.regions[1]),
    )


# ---- less to do ------------------------------------------------------------------------------------------------------


def _reduce(operands: Symbols, params: Params, regions: Regions) -> Symbols | None:
    """The results with what is the same in every step put before the loop."""
    (test, body), count = regions, params["test_consts"]
    groups = while_as_loop(params, regions).groups
    consts, init, _ = groups.split(operands[count:])
    # its test runs once at least, its body need not
    less = lessened(body, groups, consts, init, LoopPart(test, operands[:count], runs=True), runs=False)
    if less is None:
        return None
    (of_test, of_body), moving = less
    left = {**params, "test_consts": len(of_test.consts), "body_consts": len(of_body.consts)}
    given = *of_test.consts, *of_body.consts, *compress(init, moving)
    found = while_loop(*given, **left, regions=(of_test.region, of_body.region))
    return restored(found, init, moving)


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """A value that grows by a factor until it exceeds a limit."""
    scalar = Aval(np.dtype("f8"))
    test = trace(lambda limit, s, i: [lt(s, limit)], scalar, scalar, Aval(I64), name="test")
    body = trace(lambda a, s, i: [a * s + 0.125, i + 1], scalar, scalar, Aval(I64), name="step")
    for start in (0.5, 20.0):
        operands = np.float64(10.0), np.float64(1.5), np.float64(start), np.int64(0)
        yield Sample(operands, {"test_consts": 1, "body_consts": 1, "max_steps": None}, (test, body))


@primitive(_infer, loop.derivative(while_as_loop, bind_scan), WhileLoop(), _samples, prune=_prune, reduce=_reduce)
def while_loop(
    *operands: Any,
    test_consts: int,
    body_consts: int,
    max_steps: int | None,
    regions: Regions,
    failure: Failure | None = None,
    deadline: float = NEVER,
) -> Any:
    """The second region on the carry, as long as the first returns true."""
    test, body = map(region_runner, regions)
    of_test, of_body = operands[:test_consts], operands[test_consts : test_consts + body_consts]
    carry = operands[test_consts + body_consts :]
    count, steps = len(carry), 0
    stacks: list[list[Any]] = [[] for _ in regions[1].outputs[count:]]
    while test([*of_test, *carry], deadline)[0]:
        check_time(deadline)
        if steps == max_steps:
            raise endless(steps, failure)
        found = body([*of_body, *carry], deadline)
        carry = found[:count]
        for stack, row in zip(stacks, found[count:], strict=True):
            stack.append(row)
        steps += 1
    rows = zip(stacks, regions[1].out_avals[count:], strict=True)
    return (*carry, np.int64(steps), *[np.array(t, a.dtype).reshape(steps, *a.shape) for t, a in rows])
