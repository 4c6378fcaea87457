"""Random draws as instructions: the formulas of `fnad.draws`, evaluated on LLVM values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import llvmlite.ir as ir

from fnad import draws
from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.llvm.lane import DOUBLE as REAL
from fnad.backends.llvm.lane import Lane, where

INTEGER = ir.IntType(64)


class OfLLVM:
    """Arithmetic by LLVM instructions without fast-math flags: each is rounded as written."""

    def where(self, condition: Lane, a: Any, b: Any) -> Lane:
        return where(condition, a, b)

    def sqrt(self, x: Lane) -> Lane:
        return x.sqrt()

    def real(self, n: Lane) -> Lane:
        return Lane(n.builder, n.builder.uitofp(n.value, REAL))

    def bits(self, x: Lane) -> Lane:
        return x.bits()

    def number(self, bits: Lane) -> Lane:
        return bits.as_float()


LLVM: draws.Arithmetic = OfLLVM()


def lanes(builder: Builder, values: Values) -> list[Lane]:
    return [Lane(builder, value) for value in values]


# ---- operations --------------------------------------------------------------------------------------------------


def half(number: int, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit one half of a counter's block."""
    return draws.block(*lanes(builder, values))[number].value


def distribution(draw: Callable[..., Any], builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit a draw from a distribution without parameters."""
    return draw(LLVM, *lanes(builder, values)).value


# ---- gamma -------------------------------------------------------------------------------------------------------


def emit_gamma(builder: Builder, kinds: Kinds, values: Values) -> Value:
    name = "fnad.random_gamma"
    return builder.call(builder.module.globals.get(name) or define_gamma(builder.module, name), values)


def define_gamma(module: ir.Module, name: str) -> ir.Function:
    """Define the loop over attempts, which ends with the first accepted one, or with nan after the last."""
    function = ir.Function(module, ir.FunctionType(REAL, [INTEGER, INTEGER, REAL]), name=name)
    function.linkage = "internal"
    labels = ("entry", "attempt", "decide", "refuse", "done", "small", "large")
    entry, attempt, decide, refuse, done, small, large = map(ir.IRBuilder, map(function.append_basic_block, labels))
    wanted = draws.gamma_shape(LLVM, Lane(entry, function.args[2]))
    entry.branch(attempt.block)

    stream = attempt.phi(INTEGER)
    index, key, shape, number = lanes(attempt, [*function.args[:2], wanted.value, stream])
    candidate = draws.gamma_candidate(LLVM, index, key, shape, number)
    value = (candidate.d * candidate.v).value
    attempt.cbranch(draws.gamma_surely(candidate).value, done.block, decide.block)

    accepted = draws.gamma_accepted(LLVM, draws.Candidate(*lanes(decide, [lane.value for lane in candidate])))
    decide.cbranch(accepted.value, done.block, refuse.block)

    following = refuse.add(stream, INTEGER(2))
    refuse.cbranch(refuse.icmp_unsigned("<", following, INTEGER(2 * draws.ATTEMPTS)), attempt.block, done.block)
    join(stream, {entry: INTEGER(1), refuse: following})

    found = done.phi(REAL)
    join(found, {attempt: value, decide: value, refuse: REAL(math.nan)})
    done.cbranch(done.fcmp_ordered(">=", function.args[2], REAL(1.0)), large.block, small.block)
    large.ret(found)
    small.ret((Lane(small, found) * draws.gamma_boost(LLVM, *lanes(small, function.args))).value)
    return function


def join(phi: ir.PhiInstr, values: dict[Builder, Value]) -> None:
    """The phi node of a value, by the block that control comes from."""
    for builder, value in values.items():
        phi.add_incoming(value, builder.block)


INSTRUCTIONS: Instructions = {
    "philox_low": partial(half, 0),
    "philox_high": partial(half, 1),
    "random_normal": partial(distribution, draws.normal),
    "random_exponential": partial(distribution, draws.exponential),
    "random_gumbel": partial(distribution, draws.gumbel),
    "random_laplace": partial(distribution, draws.laplace),
    "random_cauchy": partial(distribution, draws.cauchy),
    "random_gamma": emit_gamma,
}
