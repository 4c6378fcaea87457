"""Lines where NumPy's promotion makes float64 of float32, as in `x / np.sqrt(d)` with a float32 array x."""

from __future__ import annotations

from fnad.ir.program import Equation, Program, Source
from fnad.ir.types import is_inexact, real_dtype
from fnad.ir.walk import all_equations
from fnad.ops.conversion import convert

NAMING = ("float64", "complex128", "astype", "dtype")
"""A line with one of these words asks for the dtype."""


def widening_lines(program: Program) -> list[Source]:
    """The user's lines where a value in single precision becomes one in double precision, and stays one."""
    changes = [(source, _change(equation)) for equation in all_equations(program) if (source := _line(equation))]
    narrowed = {source for source, change in changes if change < 0}
    widened = dict.fromkeys(source for source, change in changes if change > 0)
    return [source for source in widened if source not in narrowed and not _asks(source)]


def _line(equation: Equation) -> Source | None:
    source = equation.source
    return source if equation.primitive is convert and source is not None and not source.mode else None


def _change(equation: Equation) -> int:
    """The bytes that a real number has more after a conversion."""
    before, after = equation.operands[0].aval.dtype, equation.results[0].aval.dtype
    return real_dtype(after).itemsize - real_dtype(before).itemsize if is_inexact(before) and is_inexact(after) else 0


def _asks(source: Source) -> bool:
    return any(word in str(source) for word in NAMING)
