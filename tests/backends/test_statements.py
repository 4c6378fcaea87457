"""Blocks of Python statements."""

from __future__ import annotations

import numpy as np

from fnad.backends.numba.statements import Block, Statement
from fnad.ir.types import Aval
from fnad.lower.nodes import Buffer


def test_a_loop_that_only_stores_what_nobody_reads_goes_with_its_comment() -> None:
    buffer = Buffer("t0", Aval(np.dtype(np.float64), (3,)))
    loop = Block(
        "for i0 in range(3):", statements=[Statement("# model.py:3"), Statement("t0[i0] = v0", (buffer,), buffer)]
    )
    outer = Block(statements=[loop, Statement("a[0] = v0")])
    assert list(outer.lines("", frozenset({buffer}))) == ["a[0] = v0"]
    assert list(outer.lines("", frozenset())) == [
        "for i0 in range(3):",
        "    # model.py:3",
        "    t0[i0] = v0",
        "a[0] = v0",
    ]
