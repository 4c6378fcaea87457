"""Small programs for the tests of the IR, and primitives that have what those of `fnad.ops` lack."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fnad.ir.axes import Opaque
from fnad.ir.builder import Builder, trace
from fnad.ir.primitive import PRIMITIVES, Library, NonDifferentiable, Primitive, Sample
from fnad.ir.program import Program, Source
from fnad.ir.types import F64, Aval
from fnad.ops.arithmetic import mul
from fnad.ops.elementary import sin
from fnad.ops.shape import reduce_sum

VECTOR = Aval(F64, (3,))

LOSS = """\
loss(a: f64[3], b: f64[3]) -> f64[] {
  c: f64[3] = sin(a)
  d: f64[3] = mul(c, b)
  e: f64[] = reduce_sum(d) axes=(0,)
  f: f64[] = mul(2.0:f64, e)
  return f
}"""


def loss() -> Program:
    """Return the program of `LOSS`."""
    return trace(lambda a, b: [2.0 * reduce_sum(mul(sin(a), b), axes=(0,))], VECTOR, VECTOR, name="loss")


def with_sources(*lines: int) -> Program:
    """Return a program of one `sin` a line, each said to stand at that line of model.py."""
    builder = Builder()
    with builder.active():
        x = builder.input(VECTOR)
        for line in lines:
            builder.source = Source("/home/user/model.py", line, "loss")
            x = sin(x)
        return builder.finish("loss", [x])


def _declare(name: str, results: int) -> Primitive:
    def infer(x: Aval, /, **params: object) -> tuple[Aval, ...]:
        return (x,) * results

    def samples() -> Iterator[Sample]:
        yield Sample((np.zeros(3),))

    return Primitive(
        name,
        infer,
        lambda x: (x,) * results,
        NonDifferentiable(),
        Library(),
        samples,
        "For the tests.",
        axes=Opaque("it is only built"),
    )


twice = _declare("twice", results=2)
nothing = _declare("nothing", results=0)
branch = _declare("branch", results=1)


def declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter the primitives of this file into the registry for one test."""
    for primitive in (twice, nothing, branch):
        monkeypatch.setitem(PRIMITIVES, primitive.name, primitive)
