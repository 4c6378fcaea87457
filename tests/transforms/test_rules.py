"""Each rule of the tables, proved on random instances of its left side.

An instance is a program: the pattern with random operands and params. It is evaluated before and after the rule, on
special values where the rule says that it holds to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from fnad.errors import OutOfRangeError
from fnad.ir.builder import Builder
from fnad.ir.primitive import DynamicUpdate, Scalar
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval, Dtype, Shape, is_inexact, real_dtype
from fnad.ir.verifier import verify
from fnad.ir.walk import equal_up_to_names
from fnad.ops.arithmetic import mul, neg
from fnad.ops.arithmetic import sub as difference
from fnad.ops.constructors import ANY, COMPLEXES, REALS
from fnad.ops.conversion import convert
from fnad.ops.elementary import sin
from fnad.ops.shape import constant, iota, ones_like, zeros_like
from fnad.transforms.dce import dce
from fnad.transforms.flatten import PIECEWISE
from fnad.transforms.interpret import interpret
from fnad.transforms.pattern import (
    Alias,
    Anything,
    Application,
    ConstantPattern,
    Finite,
    NumberPattern,
    OperandPattern,
    Rule,
    by_rules,
)
from fnad.transforms.pipeline import RULES
from fnad.transforms.rewrite import rewrite
from fnad.transforms.rules.exponentials import WRITTEN_OUT
from tests.random_programs import SIZES as SMALL_SIZES
from tests.random_programs import infer, random_array, random_params, random_shape, signatures
from tests.together import in_groups

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, np.inf, -np.inf, np.nan, 1e-40, 1e-310, 1e300)
EXTREMES = (2.0**-1030, 2.0**-1074, 2.0**1023, -(2.0**-1022), 2.0**-149, 2.0**127)
CONSTANTS = (0.0, -0.0, 1.0, -1.0, 0.5, -4.0, 3.0, np.inf, np.nan, *EXTREMES)
SIZES = (*SMALL_SIZES, 8, 8, 8, 8)
INSTANCES = 24
"""How many instances of a left side a rule has to change, and to keep the value of."""


# ---- instances of a pattern --------------------------------------------------------------------------------------


class Instance:
    """Operands for the names of a pattern, and the program of its left side."""

    def __init__(self, random: Random, rule: Rule) -> None:
        self.random = random
        self.shape = random_shape(random, sizes=SIZES)
        self.builder = Builder()
        self.names: dict[str, Symbol] = {}
        self.rests: dict[str, list[Symbol]] = {}
        self.box: Shape | None = None
        with self.builder.active():
            symbol = self.apply(rule.pattern, None, rule.on)
            self.program = None if symbol is None else self.builder.finish("left", [symbol])

    def make(self, pattern: OperandPattern, dtype: Dtype | None) -> Symbol | None:
        match pattern:
            case Anything(name):
                return self.named(name, dtype or F64)
            case NumberPattern(value):
                return constant(value, dtype or F64, self.shape)
            case ConstantPattern(_):
                return constant(self.number(dtype or F64), dtype or F64, self.shape)
            case Finite(_):
                return self.finite(dtype or F64)
            case Alias(_, inner):
                return self.make(inner, dtype)
            case Application():
                return self.apply(pattern, dtype)
            case _:
                raise AssertionError(pattern)

    def named(self, name: str, dtype: Dtype) -> Symbol | None:
        if name not in self.names:
            shape = self.shape if self.random.random() < 0.7 else random_shape(self.random, sizes=SIZES)
            self.names[name] = self.builder.input(Aval(dtype, shape))
        found = self.names[name]
        return found if found.dtype == dtype else None

    def number(self, dtype: Dtype) -> Any:
        if not is_inexact(dtype):
            return self.random.choice(CONSTANTS[:4] if dtype.kind == "i" else (0, 1, 3))
        with np.errstate(over="ignore"):
            return dtype.type(self.random.choice(CONSTANTS))

    def finite(self, dtype: Dtype) -> Symbol:
        number = constant(self.random.choice((0.5, -3.0)), dtype, self.shape)
        index = iota(dtype=dtype, shape=self.shape, axis=0) if self.shape else number
        return self.random.choice((number, index, sin(index)))

    def apply(self, pattern: Application, dtype: Dtype | None, on: frozenset[Dtype] = ANY) -> Symbol | None:
        """Add the equation that a pattern stands for, with a result of the given dtype, on a first operand of `on`."""
        primitive = pattern.primitive
        takes_dtype = primitive in (convert, iota)
        choices = [
            operands
            for operands, result in signatures(primitive).items()
            if (takes_dtype or dtype in (None, result)) and (not operands or operands[0] in on)
        ]
        operands = self.operands(pattern, self.random.choice(choices)) if choices else None
        if operands is None:
            return None
        params = random_params(self.random, primitive, [symbol.aval for symbol in operands])
        if takes_dtype and dtype is not None:
            params["dtype"] = dtype
        taken = infer(primitive, [symbol.aval for symbol in operands], params)
        return None if taken is None else primitive(*operands, **params)

    def operands(self, pattern: Application, dtypes: Sequence[Dtype]) -> list[Symbol] | None:
        found: list[Symbol | None] = []
        for operand, dtype in zip(pattern.operands, dtypes, strict=False):
            if found and found[0] is not None and isinstance(pattern.primitive.lower, DynamicUpdate):
                self.shape = self.box_in(found[0].shape)
            like = found[0] if found and isinstance(pattern.primitive.lower, Scalar) else None
            found.append(self.make_like(operand, dtype, like))
        made = [symbol for symbol in found if symbol is not None]
        if len(made) < len(found):
            return None
        return made if pattern.rest is None else [*made, *self.rest(pattern.rest, made, dtypes)]

    def rest(self, name: str, first: Sequence[Symbol], dtypes: Sequence[Dtype]) -> list[Symbol]:
        """Return the operands that a starred name stands for: arrays, or the starts of a box."""
        if name not in self.rests:
            count = first[0].ndim if first else self.random.randint(1, 3)
            arrays = [self.named(f"{name}{n}", dtypes[0]) for n in range(0 if first else count)]
            starts = [constant(self.random.choice((0, 0, 1, 2, 3, -1, -2)), I64) for _ in range(count if first else 0)]
            self.rests[name] = [symbol for symbol in (*arrays, *starts) if symbol is not None]
        return self.rests[name]

    def box_in(self, shape: Shape) -> Shape:
        """Return the shape of a box in an array, often that of the box before."""
        if self.box is None or len(self.box) != len(shape) or self.random.random() < 0.3:
            self.box = tuple(self.random.randint(0, n) for n in shape)
        return self.box

    def make_like(self, pattern: OperandPattern, dtype: Dtype, like: Symbol | None) -> Symbol | None:
        """Make an operand, in some attempts to give it the shape of the one beside it."""
        for _ in range(30):
            found = self.make(pattern, dtype)
            if found is None or like is None or found.shape == like.shape:
                return found
        return None


def changed(rule: Rule, seed: int) -> tuple[Program, Program] | None:
    """Return an instance of the left side and what the rule makes of it; None where it does not apply."""
    left = Instance(Random(seed), rule).program
    if left is None:
        return None
    right = dce(rewrite(left, by_rules([rule])))
    return None if equal_up_to_names(right, left) else (left, right)


# ---- the proof ---------------------------------------------------------------------------------------------------


def special_array(random: Random, aval: Aval) -> Any:
    """Return an array in which special values are as frequent as ordinary ones."""
    array = np.array(random_array(random, aval))
    if is_inexact(aval.dtype):
        parts = array.reshape(-1).view(real_dtype(aval.dtype))
        with np.errstate(over="ignore"):
            parts[:] = [random.choice(SPECIAL) if random.random() < 0.5 else part for part in parts]
    return array


def same_bits(found: Any, expected: Any, *, signed_zero: bool) -> bool:
    """Say whether arrays are equal, nan to nan, and zeros in their sign."""
    if expected.dtype.kind not in "fc":
        return np.array_equal(found, expected)
    parts = [(found.real, expected.real), (found.imag, expected.imag)]
    return all(
        np.array_equal(f, e, equal_nan=True)
        and (not signed_zero or np.array_equal(np.signbit(f)[~np.isnan(e)], np.signbit(e)[~np.isnan(e)]))
        for f, e in parts
    )


def holds(rule: Rule, found: Any, expected: Any) -> bool:
    if rule.up_to == "rounding":
        tolerance = 1e-5 if expected.dtype.itemsize <= 4 or expected.dtype == np.complex64 else 1e-12
        return np.allclose(found, expected, rtol=tolerance, atol=tolerance)
    return same_bits(found, expected, signed_zero=rule.up_to == "nothing")


ALL = (*RULES, *PIECEWISE, *WRITTEN_OUT)


def evaluate(program: Program, arguments: Sequence[Any]) -> Any:
    """Return the output; an index out of range is an output, too."""
    try:
        return np.asarray(interpret(program, arguments)[0])
    except OutOfRangeError:
        return np.array("out of range")


def prove(rule: Rule) -> int:
    """Assert that both sides of a rule are equal on its instances; return how many these were."""
    make = random_array if rule.up_to == "rounding" else special_array
    fired = 0
    for seed in range(30 * INSTANCES):
        sides = changed(rule, seed)
        if sides is None:
            continue
        left, right = sides
        verify(right)
        random = Random(seed)
        arguments = [make(random, aval) for aval in left.in_avals]
        expected, found = evaluate(left, arguments), evaluate(right, arguments)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), print_program(left)
        assert holds(rule, found, expected), (print_program(left), print_program(right), arguments, expected, found)
        fired += 1
        if fired == INSTANCES:
            break
    return fired


@pytest.mark.slow
@in_groups("rule", ALL, ids=[rule.equation for rule in ALL])
def test_both_sides_are_equal(rule: Rule) -> None:
    assert prove(rule) >= INSTANCES // 4


FALSE = (
    Rule("mul(x, 0) = 0", zeros_like, REALS),
    Rule("add(x, 0.0) = x", lambda x: x, REALS),
    Rule("sub(x, x) = 0", zeros_like, REALS),
    Rule("sub(0.0, x) = neg(x)", neg, REALS),
    Rule("div(x, x) = 1", ones_like, REALS),
    Rule("mul(x, 1) = x", lambda x: x, COMPLEXES),
    Rule("strong_mul(ct, p) = mul(ct, p)", mul, REALS, up_to="the sign of zero"),
    Rule("sub(add(x, y), y) = x", lambda x, y: x, REALS),
    Rule("transpose(transpose(x)) = x", lambda x: x),
)


@pytest.mark.parametrize("left", ["sub(x, x := sin(y))", "sub(constant(x), constant(x))", "sub(finite(x), finite(x))"])
def test_a_name_that_is_written_twice_is_one_value(left: str) -> None:
    def times(*numbers: int) -> int:
        """Count how often the pattern matches a difference of two of these values."""
        with (builder := Builder()).active():
            made = [sin(builder.input(Aval(F64, ()))), constant(0.5, F64), constant(-0.0, F64)]
            program = builder.finish("left", [difference(*[made[n] for n in numbers])])
        found: list[Any] = []
        rewrite(program, by_rules([Rule(f"{left} = 0", lambda *values: found.append(values))]))
        return len(found)

    pairs = {(i, j): times(i, j) for i in range(3) for j in range(3)}
    assert any(pairs.values())
    assert not any(pairs[i, j] for i, j in pairs if i != j)


@pytest.mark.parametrize("rule", FALSE, ids=[rule.equation for rule in FALSE])
def test_a_false_rule_is_refuted(rule: Rule) -> None:
    with pytest.raises(AssertionError):
        prove(rule)
