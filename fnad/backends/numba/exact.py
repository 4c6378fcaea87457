"""Arithmetic that must round exactly as written.

Emitted functions are compiled with `reassoc` and `contract`, under which (s - a) - b may become s - (a + b), and the
error of a sum 0. Numba's fast-math pass gives the function's flags to every floating-point instruction that has none
of its own. So the instructions made here carry one that means nothing for them: `arcp` (use reciprocals) on sums and
products, `contract` (fuse products with sums) on quotients.
"""

from __future__ import annotations

from fnad.backends.numba.operation import Builder, Value


def add(builder: Builder, a: Value, b: Value) -> Value:
    return builder.fadd(a, b, flags=("arcp",))


def subtract(builder: Builder, a: Value, b: Value) -> Value:
    return builder.fsub(a, b, flags=("arcp",))


def multiply(builder: Builder, a: Value, b: Value) -> Value:
    return builder.fmul(a, b, flags=("arcp",))


def divide(builder: Builder, a: Value, b: Value) -> Value:
    return builder.fdiv(a, b, flags=("contract",))
