"""Formulas: expressions of primitives as text, the notation of the tables of special functions.

    y * (psi(a) - psi(a + b))

A formula is an expression of its operands in Python's notation. It may call any primitive and any formula by name, also
those declared later or in other files: names are looked up at the first use. `pi`, `sqrt_pi`, `sqrt_2pi`, `inf` and
`nan` are numbers; a number among the operands of a primitive is a constant of the shape and the real dtype of the last
of the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fnad.forks import cached_property
from fnad.ir.primitive import PRIMITIVES
from fnad.ir.symbol import Symbol
from fnad.ir.types import real_dtype
from fnad.ops.shape import full_like, ones_like, zeros_like

T = TypeVar("T")

WORDS: dict[str, Any] = {
    "inf": math.inf,
    "nan": math.nan,
    "ones_like": ones_like,
    "pi": math.pi,
    "zeros_like": zeros_like,
    "sqrt_pi": math.sqrt(math.pi),
    "sqrt_2pi": math.sqrt(2 * math.pi),
}
"""The names in formulas besides primitives."""


class Formula:
    """An expression of operands; called with symbols it adds its equations to the program under construction."""

    def __init__(self, operands: Sequence[str], text: str) -> None:
        self.operands, self.text = operands, text

    def __call__(self, *values: Any) -> Symbol:
        result = eval(self._code, self._names, dict(zip(self.operands, values, strict=True)))
        return result if isinstance(result, Symbol) else _constant(result, values)

    def check(self) -> None:
        """Raise `ValueError` where it names what there is not."""
        _ = self._names

    @cached_property
    def _code(self) -> Any:
        return compile(f"({self.text})", f"<formula {self.text}>", "eval")

    @cached_property
    def _names(self) -> dict[str, Any]:
        names = [name for name in self._code.co_names if name not in self.operands]
        return {"__builtins__": {}, **{name: self._named(name) for name in names}}

    def _named(self, name: str) -> Any:
        if name not in WORDS and name in PRIMITIVES:
            return on_numbers(PRIMITIVES[name])
        if name in WORDS:
            return WORDS[name]
        raise ValueError(f"the formula {self.text!r} names {name}, which is no primitive and no formula")


def formula(signature: str, text: str) -> Formula:
    """Declare a formula that others may name: `formula("delta(phi, m)", "sqrt(1.0 - m * sin(phi) * sin(phi))")`."""
    name, operands = parse_signature(signature)
    return word(name, Formula(operands, text))


def word(name: str, value: T) -> T:
    """Enter what formulas may name, under a new name."""
    if name in WORDS or name in PRIMITIVES.declared:
        raise ValueError(f"{name} is declared twice")
    WORDS[name] = value
    return value


def parse_signature(signature: str) -> tuple[str, list[str]]:
    """Split `f(x, y)` into the name and the operands."""
    found = re.fullmatch(r"(\w+)\(([\w\s,:]+)\)", signature)
    if found is None:
        raise ValueError(f"a signature is like f(x, y), not {signature}")
    return found[1], [operand.strip() for operand in found[2].split(",")]


def on_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with numbers taken for constants."""

    def call(*operands: Any, **params: Any) -> Any:
        return function(*[x if isinstance(x, Symbol) else _constant(x, operands) for x in operands], **params)

    return call


def _constant(value: Any, beside: Sequence[Any]) -> Symbol:
    like = [x.aval for x in beside if isinstance(x, Symbol) and x.dtype.kind != "b"]
    if not like:
        raise ValueError(f"in a formula {value} stands beside no operand whose shape and dtype it could have")
    return full_like(like[-1].with_dtype(real_dtype(like[-1].dtype)), value)
