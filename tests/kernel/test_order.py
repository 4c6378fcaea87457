"""Which loops LLVM does not vectorise, as it is told before, held against what it does."""

from __future__ import annotations

import re
from textwrap import dedent, indent

import numpy as np
import pytest

from fnad.backends.cpu.compiler import compile_kernel
from fnad.kernel.order import is_unvectorised
from fnad.kernel.statements import For, Kernel
from tests.kernel_text import parse_kernel

F64, I64 = np.dtype("f8"), np.dtype("i8")

IN_ORDER = {
    "a number in memory": """
        for i0 in range(5000):
            y[0] = y[0] * x[i0] + f64(1.0)
        """,
    "a variable": """
        c0 = y[0]
        for i0 in range(5000):
            c0 = c0 + x[i0] * c0
        y[0] = c0
        """,
    "numbers in terms of each other": """
        for i0 in range(5000):
            v0 = y[0]
            v1 = v0 + y[1]
            y[0] = x[i0] - v1
            y[1] = v0 * x[i0]
        """,
    "a condition": """
        c0 = y[0]
        for i0 in range(5000):
            c0 = select(c0 < x[i0], c0 * f64(0.5), x[i0])
        y[0] = c0
        """,
    "a fault": """
        for i0 in range(5000):
            if x[i0] < f64(0.0):
                status[0] = i64(1)
            y[i0] = strong_multiply(x[i0], x[i0])
        """,
    "an end": """
        for i0 in range(5000):
            if x[i0] < f64(0.0):
                return
            y[i0] = strong_multiply(x[i0], x[i0])
        """,
}
FREE = {
    "elements": """
        for i0 in range(5000):
            y[i0] = y[i0] * x[i0] + f64(1.0)
        """,
    "a sum": """
        acc0 = f64(0.0)
        for i0 in range(5000):
            acc0 = accumulate(acc0, x[i0] * x[i0])
        y[0] = acc0
        """,
    "an integer": """
        c0 = i64(0)
        for i0 in range(5000):
            c0 = c0 + indices[i0]
        indices[0] = c0
        """,
    "a variable of one iteration": """
        for i0 in range(5000):
            v0 = x[i0] * x[i0]
            v0 = v0 + f64(1.0)
            y[i0] = v0
        """,
    "numbers before the loop": """
        v1 = y[0]
        for i0 in range(5000):
            t[i0] = strong_multiply(v1, x[i0]) + y[1]
        """,
}


def kernel(body: str) -> Kernel:
    source = "def k(x, y, t, indices, status):\n" + indent(dedent(body).strip(), "    ")
    return parse_kernel(source, "k", [F64, F64, F64, I64, I64])


def loop_of(body: str) -> For:
    return next(statement for statement in kernel(body).body if isinstance(statement, For))


@pytest.mark.parametrize("body", IN_ORDER.values(), ids=list(IN_ORDER))
def test_loops_in_order(body: str) -> None:
    assert is_unvectorised(loop_of(body))
    assert not re.search(r"f(mul|add|sub)\b.* <\d+ x double>", compile_kernel(kernel(body)).llvm())


@pytest.mark.parametrize("body", FREE.values(), ids=list(FREE))
def test_loops_in_any_order(body: str) -> None:
    assert not is_unvectorised(loop_of(body))
    assert re.search(r"<\d+ x (double|i64)>", compile_kernel(kernel(body)).llvm())
