"""Random draws: functions of a counter and a key, element by element, so that loops draw where they need a number.

Each takes the index of the element and the key, both u64 (see `fnad.draws`, where the formulas are), and is constant
in them. Only a gamma draw moves with a parameter, its shape a. At a fixed value of the distribution function P(a, x)
it moves by

    dx/da = -∂P(a, x)/∂a / ∂P(a, x)/∂x

(Figurnov, Mohamed & Mnih, "Implicit reparameterization gradients", NeurIPS 2018, equation 5): the slope of the
quantile, whichever way x was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from fnad import draws
from fnad.errors import DtypeError, ShapeError
from fnad.ir.primitive import NonDifferentiable, Partials, Primitive, Sample, Scalar, declare
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, Aval, Dtype
from fnad.ops.arithmetic import neg
from fnad.ops.constructors import primitive, same_avals
from fnad.ops.gamma import gamma_density
from fnad.ops.incomplete import gammainc_a

U64 = DTYPES["u64"]

# ---- evaluation and inference ------------------------------------------------------------------------------------


def _blockwise(draw: Callable[..., Any], dtype: Dtype, *operands: Any) -> Any:
    """A draw for arrays of any one shape, some elements at a time."""
    rows = [np.ravel(operand) for operand in operands]
    result = np.empty(rows[0].size, dtype)
    with np.errstate(all="ignore"):
        for start in range(0, result.size, draws.CHUNK):
            block = slice(start, start + draws.CHUNK)
            result[block] = draw(*[row[block] for row in rows])
    return result.reshape(np.shape(operands[0]))


def _infer(name: str, expected: tuple[Dtype, ...], result: Dtype, *avals: Aval, **_: int) -> Aval:
    if len(avals) != len(expected):
        raise ShapeError(f"{name} takes {len(expected)} operands, got {len(avals)}")
    if tuple(aval.dtype for aval in avals) != expected:
        raise DtypeError(f"{name} takes {', '.join(map(str, expected))}, got {' and '.join(map(str, avals))}")
    return same_avals(name, [aval.with_dtype(result) for aval in avals])


def _counters() -> tuple[Any, Any]:
    index = np.array([[0, 1, 2**32 - 1], [2**32, 2**53 + 1, 2**64 - 1]], U64)
    return index, np.array([[0, 42, 2**64 - 1], [2**32, 7, 0x299F31D0A4093822]], U64)


# ---- bits --------------------------------------------------------------------------------------------------------


def _philox_template(*, stream: int, half: int) -> str:
    return f"{('philox_low', 'philox_high')[half]}({{0}}, u64({stream}), {{1}})"


@primitive(
    partial(_infer, "philox", (U64, U64), U64),
    NonDifferentiable(),
    Scalar(_philox_template, cost=60),
    lambda: [Sample(_counters(), {"stream": s, "half": h}) for s in (0, 2**64 - 1) for h in (0, 1)],
)
def philox(index: Any, key: Any, *, stream: int, half: int) -> Any:
    """A half of the Philox4x32-10 block of a counter, index and `stream`, under a key."""
    return _blockwise(lambda i, k: draws.block(i, stream, k)[half], U64, index, key)


# ---- distributions without parameters ----------------------------------------------------------------------------


def _distribution(name: str, draw: Callable[..., Any], doc: str) -> Primitive:
    return declare(
        f"random_{name}",
        partial(_infer, f"random_{name}", (U64, U64), F64),
        partial(_blockwise, lambda index, key: draw(draws.NUMPY, index, key), F64),
        NonDifferentiable(),
        Scalar(f"random_{name}({{0}}, {{1}})", cost=120),
        lambda: [Sample(_counters())],
        doc,
    )


random_normal = _distribution("normal", draws.normal, "Standard normal draw.")
random_exponential = _distribution("exponential", draws.exponential, "Exponential draw of mean 1.")
random_gumbel = _distribution("gumbel", draws.gumbel, "Standard Gumbel draw.")
random_laplace = _distribution("laplace", draws.laplace, "Standard Laplace draw.")
random_cauchy = _distribution("cauchy", draws.cauchy, "Standard Cauchy draw.")

# ---- gamma -------------------------------------------------------------------------------------------------------


def _gamma_samples() -> Iterable[Sample]:
    """Samples that differences say nothing of: they would differentiate the way x was drawn."""
    index, key = _counters()
    yield Sample((index, key, np.array([[0.4, 0.9, 1.0], [1.5, 3.0, 30.0]])), smooth=False)
    yield Sample((index, key, np.array([[0.0, -1.0, np.nan], [np.inf, 1e-3, 1e8]])), smooth=False)


def _slope(x: Symbol, index: Symbol, key: Symbol, a: Symbol) -> Symbol:
    return neg(gammainc_a(a, x) / gamma_density(a, x))


random_gamma = declare(
    "random_gamma",
    partial(_infer, "random_gamma", (U64, U64, F64), F64),
    partial(_blockwise, lambda index, key, a: draws.gamma_array(draws.NUMPY, index, key, a), F64),
    Partials((None, None, _slope)),
    Scalar("random_gamma({0}, {1}, {2})", cost=400),
    _gamma_samples,
    "Gamma draw of shape a > 0 and scale 1; nan for any other a.",
)
