"""Primitives that concern only differentiation."""

from __future__ import annotations

from typing import Any

from fnad.ir.primitive import NoFormula, NonDifferentiable, Partials, Primitive, Sample, Scalar, everywhere, register
from fnad.ops.constructors import ANY, LINE, elementwise
from fnad.ops.shape import sample

stop_gradient = elementwise(
    "stop_gradient",
    lambda x: x,
    "{0}",
    NonDifferentiable(),
    domain=ANY,
    over=(LINE,),
    cost=0,
    bounded=everywhere,
    bounds=lambda x: x,
    doc="The value itself, taken as a constant by every derivative.",
)


class _NamedByParams(NoFormula):
    """The error for a missing partial, of the function and the operand that the params name."""

    def __call__(self, *_: Any, **params: Any) -> Any:
        return NoFormula(**params)()


without_formula = register(
    Primitive(
        "without_formula",
        lambda x, *, function, operand: x,
        lambda x, *, function, operand: x,
        Partials((_NamedByParams("without_formula", "x"),)),
        Scalar(lambda *, function, operand: "{0}", 0),
        lambda: [Sample((sample((2, 3)),), {"function": "f", "operand": "x"}, smooth=False)],
        "The value itself; its derivative is an error that names the `operand` of the `function` that has no formula.",
    )
)
