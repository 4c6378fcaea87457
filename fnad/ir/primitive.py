"""The record that declares a primitive, and the kinds of derivatives and lowerings.

A primitive is declared once, in the file of its family under `fnad/ops`, and only there is it known by name.
Transforms use the kind of its `derivative`, backends the kind of its `lower`, never names.

Primitives neither broadcast nor promote: operands of an elementwise primitive have one aval.

A rule is a function on symbols (`fnad.ir.symbol`); calling a primitive on symbols adds an equation to the program
under construction:

    sin = elementwise("sin", np.sin, Scalar("sin({0})"), (lambda y, x: cos(x),), ...)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, TypeAlias

from fnad.errors import FnadError, UnsupportedFunctionError
from fnad.ir.axes import Along, Axes, Contract, Elementwise, Opaque, Over
from fnad.ir.builder import current_builder
from fnad.ir.program import Params, Program
from fnad.ir.ranges import Bounds, Singular
from fnad.ir.types import Aval, Dtype
from fnad.scalar.template import check

Array: TypeAlias = Any
Rule: TypeAlias = Callable[..., Any]


# ---- derivative: stated once, the other mode follows -------------------------------------------------------------


class Partials(NamedTuple):
    """Elementwise: one function `(result, *operands, **params) -> partial` per operand; None where it is zero.

    `finite` says that no partial is ever inf or nan, even if operands are, so that a plain product with the cotangent
    suffices in place of the strong one (see Note [Strong zero] in `fnad/ops/arithmetic.py`).
    """

    functions: tuple[Rule | None, ...]
    finite: bool = False


@dataclass(frozen=True, slots=True)
class NoFormula:
    """A partial without a closed form, which raises an error where it is needed."""

    function: str
    operand: str

    def __call__(self, *_: Any, **params: Any) -> Any:
        raise UnsupportedFunctionError(
            f"there is no formula for the derivative of {self.function} with respect to {self.operand}",
            source=current_builder().source,
            remedy="differentiate with respect to other arguments, or take this one through fnad.stop_gradient",
        )


class Linear(NamedTuple):
    """Linear, jointly, in the operands `wrt` (all of them if None).

    `transpose(ct, *operands, **params)` returns one cotangent (or None) per operand; those of operands it is not linear
    in are ignored. Of operands it is linear in, only avals may be read.
    """

    transpose: Rule
    wrt: tuple[int, ...] | None = None


class Bilinear(NamedTuple):
    """Linear in each of two operands: `transposes[i](ct, x, y, **params)` is the cotangent of operand i."""

    transposes: tuple[Rule, Rule]


class Push(NamedTuple):
    """Forward rule `(primals, tangents, **params) -> tangents of the results`; a tangent may be None, a zero.

    `rule(results, primals, tangents, **params)`: `results` are the primal results, already computed.
    """

    rule: Rule


class Pull(NamedTuple):
    """Reverse rule: `rule(results, primals, cts, **params) -> cotangents of the operands` (None for a zero)."""

    rule: Rule


class NonDifferentiable:
    """Derivative zero wherever it is defined: comparisons, rounding, argmax."""


class Structured(NamedTuple):
    """Control flow, whose rules rewrite the regions of an equation.

    `push(equation, primals, tangents) -> (results, tangents of the results)`, where a tangent may be None, a zero.
    `pull(equation, primals, needed) -> (results, pullback)`: what the reverse sweep needs is computed with the results;
    `pullback(cts)` takes and returns None for a zero. `needed` marks the operands whose cotangents are needed.
    `reach(equation, active) -> flags` marks the results that carry a derivative where the `active` operands do.
    """

    push: Rule
    pull: Rule
    reach: Rule = lambda equation, active: [True] * len(equation.results)


class Unknown(NamedTuple):
    """The derivative of inexact results is not known; `error(**params)` is raised where it is required."""

    error: Callable[..., FnadError]


Derivative: TypeAlias = Partials | Linear | Bilinear | Push | Pull | Structured | NonDifferentiable | Unknown


# ---- lowering: what the fuser has to know ------------------------------------------------------------------------

LOAD = 4
"""The cost of loading or storing an element, in the unit of `Scalar.cost`."""


class Scalar(NamedTuple):
    """Elementwise: a Python expression on scalars.

    `{0}`, `{1}` stand for operands and `{dtype}` for the result's dtype; names are those of `fnad.scalar.operations`.
    The template of a primitive with params is a function of them. `cost` is in floating-point additions and
    decides whether a value is computed again or materialized.
    """

    template: str | Callable[..., str]
    cost: int = 1

    def expression(self, params: Params) -> str:
        """The template of an equation with these params."""
        return self.template if isinstance(self.template, str) else self.template(**params)


@dataclass(frozen=True, slots=True, eq=False)
class IndexMap:
    """Every element of the result is an element of the operand, or a constant.

    `index(indices, operand, result, **params)` maps index expressions (`fnad.lower.index`) of the result to those of
    the operand. `guard(indices, operand, result, **params)`, where given, returns the conditions
    `[(expression, low, high)]`, low <= expression < high, outside of which the element is zero.
    """

    index: Rule
    guard: Rule | None = None


class Concatenation:
    """The operands, one after the other along the param `axis`."""


class Iota:
    """The index along the param `axis`, as a number."""


class Fold(NamedTuple):
    """A reduction over the param `axes` with one accumulator.

    `init` and `step` are templates; `step` has `{acc}` and `{0}` (the element); `init` has `{dtype}` (that of the
    accumulator) and `{lowest}`, `{highest}` of the dtype. `sum` marks a floating-point sum, whose rounding error is
    no larger than that of pairwise summation.
    """

    init: str
    step: str
    sum: bool = False


class ArgFold(NamedTuple):
    """A reduction over one `axis` to the index of the first element that `better`s, `{0}` against `{best}`.

    `extremum` is the fold to that element itself.
    """

    better: str
    extremum: Fold


class Cumulative(NamedTuple):
    """A cumulative reduction along the param `axis`, from the end if the param `reverse` is set.

    It starts from the first element: 0.0 + -0.0 is not -0.0, and no complex number is neutral in a product with inf.
    """

    step: str


class Gather:
    """NumPy's `x[i, j, …]`: operand 0 read at the integer operands that follow, over its leading axes."""


class Scatter(NamedTuple):
    """Operand 0 with operand 1 combined into it at the integer operands that follow; `{old}`, `{new}` in `step`.

    `in_runs(*operands)` is the same by a primitive of kind `ScatterRuns`, for machines with many threads.
    """

    step: str
    in_runs: Callable[..., Any] | None = None


class ScatterRuns(NamedTuple):
    """A `Scatter` whose operand 2 numbers all updates, those of one element one after the other, in their order.

    So different threads may have different elements. The step may be applied to parts of a run, and then to these.
    """

    step: str


class Accumulation(NamedTuple):
    """Every element of the operand is added to an element of the result, which begins as zeros.

    `index(indices, operand, result, **params)` maps index expressions of the operand to those of the result: the
    transpose of an `IndexMap`.
    """

    index: Rule


class DynamicSlice:
    """Operand 0 read in a box of static size at run-time starts, one integer scalar an axis."""


class DynamicUpdate:
    """Operand 0 with the box at run-time starts replaced by operand 1."""


class Contraction:
    """`dot_general`: a batched matrix product with the params `contract` and `batch`."""


class SpanContraction:
    """The products of operand 0, transposed, and operand 1, for the columns of each row from operand 2 to operand 3."""


class Routine(NamedTuple):
    """A routine for stacks of matrices in native code: its name in kernels, its errors, and other numbers it takes.

    One `in_double` computes single precision in double precision. Operands of other `kinds` of dtypes are left to the
    library.
    """

    name: str
    errors: tuple[FnadError, ...] = ()
    options: tuple[float, ...] = ()
    in_double: bool = False
    kinds: str = "biufc"


class Library(NamedTuple):
    """A call outside the loops, run by `evaluate` on whole arrays.

    `routine` names the routine that does the work, as in LAPACK (without the letter of the dtype), NumPy or SciPy;
    `raises` says that it raises for some operands. Where no operand and no result is empty, native code has something
    else in its place, with the same values, up to rounding, and the same errors: a call of the routine
    `native(*avals, **params)` in a kernel, or `expansion(*operands, **params)`, the results by other primitives. Each
    may be None: if there is no such routine, and where the routine is better.

    `dispatched` says that `evaluate` consists of calls of NumPy's functions, which arrays of other libraries take over,
    and SciPy functions from `scipy_module`. A `Library(HOST)` is called by the host for any device: it is a function of
    user code, an error, or short. One that `fills` takes the array for its result as `out`, and may return another one.
    """

    routine: str | None = None
    raises: bool = True
    native: Callable[..., Routine | None] | None = None
    expansion: Callable[..., Any] | None = None
    dispatched: bool = False
    fills: bool = False


HOST = "host"


class GuardCheck:
    """The operand itself; if it is not the param `expected`, the run ends and reports the param `number`."""


class StepCount:
    """The operand itself, a number of steps; where the target counts steps, one of the loop `label` is counted."""


class Cond:
    """The region selected by the first operand, run on the others; False selects region 0."""


class WhileLoop:
    """The second region, repeated on the carry while the first is true; the params count the constants of each."""


class ScanLoop:
    """The region for each index of a leading axis, with a carry."""


class Inlined:
    """The region, which replaces the equation, on the operands."""


Lowering: TypeAlias = (
    Scalar
    | IndexMap
    | Concatenation
    | Iota
    | Fold
    | ArgFold
    | Cumulative
    | Gather
    | Scatter
    | ScatterRuns
    | Accumulation
    | DynamicSlice
    | DynamicUpdate
    | Contraction
    | SpanContraction
    | Library
    | GuardCheck
    | StepCount
    | Cond
    | WhileLoop
    | ScanLoop
    | Inlined
)


def implied_axes(name: str, lower: Lowering) -> Axes:
    """The relation of axes that a lowering implies."""
    match lower:
        case Scalar():
            return Elementwise()
        case Fold():
            return Over("axes")
        case ArgFold():
            return Over("axis")
        case Cumulative() | Concatenation():
            return Along("axis")
        case Contraction():
            return Contract()
        case Cond() | WhileLoop() | ScanLoop() | Inlined():
            return Opaque("what it does to axes is what its regions do")
        case _:
            raise ValueError(f"primitive {name} has to say what it does to axes")


# ---- the record --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Operands (arrays, in the order of the primitive's) and params to test a primitive with."""

    operands: tuple[Array, ...]
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    regions: tuple[Program, ...] = ()
    smooth: bool = True  # False at kinks and singular points, where finite differences are meaningless


Bounded: TypeAlias = Callable[..., bool]
IMPLIED: Any = None


def nowhere(result: Dtype, *operands: Dtype) -> bool:
    """True if results are finite for these dtypes: never."""
    return False


def everywhere(result: Dtype, *operands: Dtype) -> bool:
    """True if results are finite for these dtypes: always."""
    return True


def on_reals(result: Dtype, *operands: Dtype) -> bool:
    """True if results are finite for these dtypes: if real."""
    return result.kind != "c"


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One operation of the IR.

    infer(*operand_avals, **params) -> aval, or a tuple of avals for a primitive of several results; raises ShapeError
    or DtypeError. evaluate(*arrays, **params) -> array(s) of just these avals. Both get `regions=` where there are any.

    `axes` says which elements depend on which; by default, what the lowering implies. `commutative` says that the order
    of two operands makes no difference, to the bit, unless they are complex: NumPy rounds x * y and y * x differently
    there. `bounded(result, *operands)` says for these dtypes that the result is finite wherever the operands are.
    `bounds(*operand_ranges, **params)` is the range of a real result, any number if not given; `singular` says where
    the operation or its derivative is not finite.

    `effect` marks what must happen even if no result is read: it is never dropped, merged or moved past another effect.
    `prune(equation, live) -> equation` drops what only results not marked in `live` need, and keeps the live results.
    `reduce(operands, params, regions) -> results` computes the same results from less, or returns None if it cannot.
    """

    name: str
    infer: Callable[..., Aval | tuple[Aval, ...]]
    evaluate: Callable[..., Array]
    derivative: Derivative
    lower: Lowering
    samples: Callable[[], Iterable[Sample]]
    doc: str
    effect: bool = False
    prune: Callable[..., Any] | None = None
    reduce: Callable[..., Any] | None = None
    axes: Axes = IMPLIED
    commutative: bool = False
    bounded: Bounded = nowhere
    bounds: Bounds | None = None
    singular: tuple[Singular, ...] = ()

    def __post_init__(self) -> None:
        if self.axes is IMPLIED:
            object.__setattr__(self, "axes", implied_axes(self.name, self.lower))

    def __call__(self, *operands: Any, regions: tuple[Program, ...] = (), **params: Any) -> Any:
        """Add an equation to the program under construction; return its result symbol, or a tuple of them."""
        return current_builder().bind(self, operands, params, regions)

    @property
    def raises(self) -> bool:
        """True if it raises for some operands, so that it must not run where the program would not reach it."""
        match self.lower:
            case Library(raises=raises):
                return raises
            case Gather() | Scatter() | ScatterRuns() | DynamicSlice() | DynamicUpdate() | GuardCheck():
                return True
            case _:
                return False

    def __repr__(self) -> str:
        return self.name


def templates_of(lower: Lowering) -> Iterator[str]:
    """The templates of a lowering that do not depend on params."""
    match lower:
        case Scalar(str(template), _):
            yield template
        case Fold(init, step, _):
            yield from (init, step)
        case ArgFold(better, extremum):
            yield from (better, *templates_of(extremum))
        case Cumulative(step) | Scatter(step, _) | ScatterRuns(step):
            yield step
        case _:
            pass


# ---- the registry ------------------------------------------------------------------------------------------------


class Catalogue(MutableMapping[str, Primitive]):
    """The primitives by name; those of files that have not been imported are, when one is missing or all are wanted."""

    def __init__(self, *sources: str) -> None:
        self.declared: dict[str, Primitive] = {}
        self._sources = sources

    def _import_all(self) -> None:
        # Other threads that come here meanwhile wait in the import, and an import that failed is tried again.
        for source in self._sources:
            import_module(source)
        self._sources = ()

    def __getitem__(self, name: str) -> Primitive:
        if name not in self.declared:
            self._import_all()
        return self.declared[name]

    def __setitem__(self, name: str, primitive: Primitive) -> None:
        self.declared[name] = primitive

    def __delitem__(self, name: str) -> None:
        del self.declared[name]

    def __iter__(self) -> Iterator[str]:
        self._import_all()
        return iter(self.declared)

    def __len__(self) -> int:
        self._import_all()
        return len(self.declared)


PRIMITIVES = Catalogue("fnad.ops.catalogue", "fnad.control.catalogue")

OWN: set[str] = set()
"""The primitives of fnad, which mean the same in each process; a user's may be others under the same names."""


def register(primitive: Primitive) -> Primitive:
    """Enter a primitive under its name, which must be new; its templates may use only scalar operations."""
    if primitive.name in PRIMITIVES.declared:
        raise ValueError(f"primitive {primitive.name} is declared twice")
    if _is_for_fnad(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        OWN.add(primitive.name)  # a test checks these
    else:
        for template in templates_of(primitive.lower):
            check(template)
    PRIMITIVES[primitive.name] = primitive
    return primitive


P = ParamSpec("P")


def _entered(make: Callable[P, Primitive]) -> Callable[P, Primitive]:
    def declare(*args: P.args, **fields: P.kwargs) -> Primitive:
        return register(make(*args, **fields))

    return declare


declare = _entered(Primitive)
"""Make a primitive of its fields, and enter it."""


def _is_for_fnad(frame: FrameType | None) -> bool:
    """True if it is for a module of fnad that is being imported, not through fnad functions for a user module."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("fnad."):
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False
