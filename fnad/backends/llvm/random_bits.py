"""Random draws as instructions: the formulas of `fnad.draws`, evaluated on LLVM values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir

from fnad import draws
from fnad.backends.llvm.emitter import Builder, Emit, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import call, overloaded
from fnad.records import dataclass

INTEGER, REAL = ir.IntType(64), ir.DoubleType()

# ---- arithmetic --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A u64, f64 or bool in a register, with Python's operators; numbers become constants."""

    builder: Builder
    value: Value

    def _combined(self, instruction: str, other: Any) -> Lane:
        prefix = "f" if self.value.type == REAL else ""
        return Lane(self.builder, getattr(self.builder, prefix + instruction)(self.value, self.constant(other)))

    def _compared(self, sign: str, other: Any) -> Lane:
        compare = self.builder.fcmp_ordered if self.value.type == REAL else self.builder.icmp_unsigned
        return Lane(self.builder, compare(sign, self.value, self.constant(other)))

    def constant(self, other: Any) -> Value:
        """The value of a lane, or a number as a value of this lane's type."""
        return other.value if isinstance(other, Lane) else self.value.type(other)

    def __add__(self, other: Any) -> Lane:
        return self._combined("add", other)

    def __sub__(self, other: Any) -> Lane:
        return self._combined("sub", other)

    def __mul__(self, other: Any) -> Lane:
        return self._combined("mul", other)

    def __truediv__(self, other: Any) -> Lane:
        return self._combined("div", other)

    def __and__(self, other: Any) -> Lane:
        return self._combined("and_", other)

    def __or__(self, other: Any) -> Lane:
        return self._combined("or_", other)

    def __xor__(self, other: Any) -> Lane:
        return self._combined("xor", other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Lane:
        return self._combined("shl", other)

    def __rshift__(self, other: Any) -> Lane:
        return self._combined("lshr", other)

    def __lt__(self, other: Any) -> Lane:
        return self._compared("<", other)

    def __gt__(self, other: Any) -> Lane:
        return self._compared(">", other)


class OfLLVM:
    """Arithmetic by LLVM instructions without fast-math flags: each is rounded as written."""

    def where(self, condition: Lane, a: Any, b: Any) -> Lane:
        like = a if isinstance(a, Lane) else b
        builder = condition.builder
        return Lane(builder, builder.select(condition.value, like.constant(a), like.constant(b)))

    def sqrt(self, x: Lane) -> Lane:
        return Lane(x.builder, call(x.builder, overloaded("llvm.sqrt", REAL), REAL, x.value))

    def real(self, n: Lane) -> Lane:
        return Lane(n.builder, n.builder.uitofp(n.value, REAL))

    def bits(self, x: Lane) -> Lane:
        return Lane(x.builder, x.builder.bitcast(x.value, INTEGER))

    def number(self, bits: Lane) -> Lane:
        return Lane(bits.builder, bits.builder.bitcast(bits.value, REAL))


LLVM: draws.Arithmetic = OfLLVM()


def lanes(builder: Builder, values: Values) -> list[Lane]:
    return [Lane(builder, value) for value in values]


# ---- operations --------------------------------------------------------------------------------------------------


def half(number: int) -> Emit:
    """The emitter of one half of a counter's block."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        return draws.block(*lanes(builder, values))[number].value

    return emit


def distribution(draw: Callable[..., Any]) -> Emit:
    """The emitter of a draw from a distribution without parameters."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        return draw(LLVM, *lanes(builder, values)).value

    return emit


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
    "philox_low": half(0),
    "philox_high": half(1),
    "random_normal": distribution(draws.normal),
    "random_exponential": distribution(draws.exponential),
    "random_gumbel": distribution(draws.gumbel),
    "random_laplace": distribution(draws.laplace),
    "random_cauchy": distribution(draws.cauchy),
    "random_gamma": emit_gamma,
}
