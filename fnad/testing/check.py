"""`check`: whether the derivatives of a function are right, in every way they may be computed.

At each of several points, a row for each of these comparisons:

    traced            the program of the function           against the function on ordinary arrays
    forward           forward mode                          against a complex step or differences of the function
    reverse           reverse mode                          against forward mode
    forward²          forward mode of forward mode          against a complex step or differences of forward mode
    reverse forward   reverse mode of forward mode          against forward mode of forward mode
    vmap              value and gradient of stacked points  against each point by itself
    compiled          value and gradient in native code     against the interpreter
    f32               value and gradient in f32             against f64, at the same numbers

The points are the one that is given, two random ones near it, and at the boundary: zeros, ties (all elements of an
array equal), small and large numbers. Differences say nothing where the function has a kink, is not finite or raises;
the table then says so. There a derivative is a convention (docs/edge_cases.md), which all modes have to share. A
derivative that is not finite where the function is smooth fails at the given and the random points.
Where a comparison fails, the first operation to blame is looked for (`fnad.testing.blame`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np

from fnad import config
from fnad.api.functions.jvp import jvp
from fnad.api.functions.vjp import vjp
from fnad.api.functions.vmap import vmap
from fnad.api.inspect.tables import columns
from fnad.api.staging.leaves import Function, check_function, function_name
from fnad.backends.base import current_backend
from fnad.control.batching import batched_program
from fnad.flatten_util import ravel_pytree
from fnad.ir.builder import trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Dtype, aval_of
from fnad.testing.blame import Blame, first_prefix, wrong_equation
from fnad.testing.gradients import as_vectors, staged_at
from fnad.testing.numbers import direction, moved, pairing, precision
from fnad.testing.truth import KINK, NOT_FINITE, Array, Truth, derivative, is_smooth, scale_of, silent
from fnad.trace.meters import counting, step
from fnad.tracebacks import boundary
from fnad.transforms.interpret import interpret
from fnad.transforms.nonfinite import first, follow
from fnad.transforms.pipeline import simplify

ROWS = 3
"""The number of points that are stacked for `vmap`."""


WITHOUT_TRUTH = "no derivative was compared with differences: give a point where the function is smooth and finite"


class CheckRow(NamedTuple):
    """One comparison at one point: the error and what is allowed of it, or why there is nothing to compare."""

    point: str
    compared: str
    against: str
    error: float = 0.0
    allowed: float = 0.0
    skipped: str = ""
    blame: Blame | None = None

    @property
    def name(self) -> str:
        """The compared derivative and its reference."""
        return f"{self.compared} / {self.against}" if self.against else self.compared

    @property
    def is_right(self) -> bool:
        """True if it did not fail."""
        return bool(self.skipped) or self.error <= self.allowed

    @property
    def cell(self) -> str:
        """The text of the table's cell."""
        return self.skipped or ("ok" if self.is_right else f"{self.error:.0e} FAILED")


class Report(NamedTuple):
    """The comparisons of a function; its text is a table of those, and the operation to blame where one fails."""

    function: str
    rows: tuple[CheckRow, ...]

    @property
    def is_right(self) -> bool:
        """True if all comparisons that could be made agree."""
        return all(row.is_right for row in self.rows)

    @property
    def blamed(self) -> tuple[Blame, ...]:
        """The operations to blame, each once."""
        found = {(b.primitive, b.source): b for row in reversed(self.rows) if (b := row.blame) is not None}
        return tuple(reversed(found.values()))

    def __str__(self) -> str:
        failed, compared = sum(not row.is_right for row in self.rows), sum(not row.skipped for row in self.rows)
        table = columns(list(self._table()))
        if not failed:
            first = f"{table}\n{self.function}: all {compared} comparisons agree"
            return first if self._has_truth else f"{first}\n{WITHOUT_TRUTH}"
        blamed = [f"to blame: {blame}" for blame in self.blamed] or ["no operation is wrong by itself"]
        return "\n".join([table, f"{self.function}: {failed} of {compared} comparisons failed", *blamed])

    __repr__ = __str__

    @property
    def _has_truth(self) -> bool:
        """True if a first derivative was compared with what is known to be right."""
        return any(row.compared == "forward" and not row.skipped for row in self.rows)

    def _table(self) -> Iterator[list[str]]:
        """A line for each comparison, a column for each point."""
        points = list(dict.fromkeys(row.point for row in self.rows))
        cells = {(row.name, row.point): row.cell for row in self.rows}
        yield ["", *points]
        for name in dict.fromkeys(row.name for row in self.rows):
            yield [name, *[cells.get((name, point), "") for point in points]]


@boundary
def check(f: Function, *args: Any, **kwargs: Any) -> Report:
    """The comparisons above for `f(*args, **kwargs)`, of whose arguments all floats are differentiated.

    The report says in its text which failed and which operation is to blame; `assert report.is_right` is a test. What
    `f` raises at the given point is raised, and what its derivatives raise there. A row takes some milliseconds, that
    of native code once the time to compile the gradient.

    >>> import numpy as np, fnad
    >>> fnad.testing.check(np.sin, 0.5).is_right
    True
    """
    check_function(f, "check")
    g, xs = as_vectors(f, args, kwargs)
    points = list(points_of(xs))
    with counting(["point"], [[0, -1]]):
        found = [row for point, at in points for row in _rows(CheckedPoint(g, point, at), len(points))]
    return Report(function_name(f), tuple(found))


def _rows(point: CheckedPoint, points: int) -> list[CheckRow]:
    rows = list(point.rows())
    step("point", points)
    return rows


def points_of(xs: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
    """The points to check at, from the one that is given, by name."""
    yield "given", list(xs)
    for number in (1, 2):
        yield f"random {number}", _near(xs, 100 * number)
    yield "zeros", [np.zeros_like(x) for x in xs]
    yield "ties", [np.full_like(x, np.mean(x) if x.size else 0.0) for x in xs]
    yield "small", [x * x.dtype.type(1e-6) for x in xs]
    yield "large", [x * x.dtype.type(1e3) for x in xs]


def _near(xs: Sequence[Array], seed: int) -> list[Array]:
    return moved(xs, (0.1, _directions(xs, seed)))


def _directions(xs: Sequence[Array], seed: int) -> list[Array]:
    """A random direction for each array, as long as the array's elements are large."""
    size = [x.dtype.type(max(1.0, scale_of(x)) if np.isfinite(x).all() else 1.0) for x in xs]
    return [direction(Aval(x.dtype, x.shape), seed + i) * s for i, (x, s) in enumerate(zip(xs, size, strict=True))]


class CheckedPoint:
    """The comparisons of a function from arrays to one vector at one point."""

    def __init__(self, g: Function, name: str, xs: list[Array]) -> None:
        self.g, self.name, self.xs = g, name, xs
        self.is_given = name == "given"
        self.may_fail = name in {"given", "random 1", "random 2"}
        us, vs = _directions(xs, 1), _directions(xs, 11)
        self.forward: Function = lambda *xs: jvp(g, xs, tuple(us[: len(xs)]))[1]
        self.us, self.vs = us, vs
        self.allowed = max(_allowed(x.dtype) for x in xs)

    def rows(self) -> Iterator[CheckRow]:
        """A row for each comparison; one that says why if the function cannot be computed here."""
        with silent():
            try:
                y = np.asarray(self.g(*self.xs))
            except Exception as error:  # whatever the user's function raises where it is not defined
                if self.is_given:
                    raise
                yield CheckRow(self.name, "traced", "plain NumPy", skipped=f"raises {type(error).__name__}")
                return
            self.ct = direction(Aval(y.dtype, y.shape), 21)
            for compare, *named in self._comparisons():
                yield from self._guarded(compare, (named[0], named[1]), y)

    def _guarded(
        self, compare: Callable[[Array], Iterator[CheckRow]], named: tuple[str, str], y: Array
    ) -> Iterator[CheckRow]:
        try:
            with config.override(executor="interpreter", debug_nans=False):
                found = list(compare(y))
        except Exception as error:
            if self.is_given and compare not in (self._vmap, self._f32):
                raise
            found = [CheckRow(self.name, *named, skipped=f"raises {type(error).__name__}")]
        yield from found

    def _comparisons(self) -> Iterator[tuple[Callable[[Array], Iterator[CheckRow]], str, str]]:
        yield self._traced, "traced", "plain NumPy"
        yield self._forward, "forward", "difference"
        yield self._reverse, "reverse", "forward"
        yield self._second, "forward²", "difference"
        yield self._vmap, "vmap", "loop"
        yield self._compiled, "compiled", "interpreter"
        if self.may_fail and any(precision(x.dtype) < 1e-9 for x in self.xs):
            yield self._f32, "f32", "f64"

    # ---- the comparisons -----------------------------------------------------------------------------------------

    def _traced(self, y: Array) -> Iterator[CheckRow]:
        found = interpret(*staged_at(self.g, self.xs))[0]
        yield self._row("traced", "plain NumPy", found, y)

    def _forward(self, _: Array) -> Iterator[CheckRow]:
        yield self._against_truth("forward", self.g, self.us, self.forward(*self.xs))

    def _second(self, _: Array) -> Iterator[CheckRow]:
        twice = np.asarray(jvp(self.forward, tuple(self.xs), tuple(self.vs))[1])
        yield self._against_truth("forward²", self.forward, self.vs, twice)
        pulled = vjp(self.forward, *self.xs)[1](self.ct)
        expected = pairing([self.ct], [twice])
        size = scale_of(expected, self.ct * twice)
        yield self._pair("reverse forward", "forward²", pairing(pulled, self.vs), expected, size, self.forward)

    def _reverse(self, _: Array) -> Iterator[CheckRow]:
        pushed = np.asarray(self.forward(*self.xs))
        pulled, expected = vjp(self.g, *self.xs)[1](self.ct), pairing([self.ct], [pushed])
        size = scale_of(expected, self.ct * pushed, *map(np.multiply, pulled, self.us))
        yield self._pair("reverse", "forward", pairing(pulled, self.us), expected, size, self.g)

    def _vmap(self, _: Array) -> Iterator[CheckRow]:
        points = [self.xs, *[_near(self.xs, 30 + i) for i in range(ROWS - 1)]] if self.may_fail else [self.xs] * ROWS
        try:
            expected = np.stack([self._both(*xs) for xs in points])
        except Exception:  # noqa: BLE001 whatever the user's function raises near the point
            points = [self.xs] * ROWS
            expected = np.stack([self._both(*xs) for xs in points])
        found = vmap(self._both)(*[np.stack(each) for each in zip(*points, strict=True)])
        row = self._row("vmap", "loop", found, expected)
        if not row.is_right:
            program, operands = staged_at(self._both, self.xs)
            differ = partial(_stack_differs, points=points, captured=operands[len(self.xs) :])
            row = row._replace(blame=first_prefix(program, differ, "a stack differs from its rows"))
        yield row

    def _compiled(self, _: Array) -> Iterator[CheckRow]:
        program, operands = staged_at(self._both, self.xs)
        row = self._row("compiled", "interpreter", _native(program, operands)[0], interpret(program, operands)[0])
        if not row.is_right:
            differ = partial(_native_differs, operands=operands)
            row = row._replace(blame=first_prefix(program, differ, "native code differs"))
        yield row

    def _f32(self, _: Array) -> Iterator[CheckRow]:
        short = [x.astype(np.complex64 if x.dtype.kind == "c" else np.float32) for x in self.xs]
        long = [x.astype(original.dtype) for x, original in zip(short, self.xs, strict=True)]
        expected, found = self._both(*long), self._both(*short)
        row = self._row("f32", "f64", found, expected, 3 * _allowed(np.dtype("f4")))
        yield row._replace(blame=None if row.is_right else _first_loss(self._both, short, long))

    # ---- rows ----------------------------------------------------------------------------------------------------

    def _both(self, *xs: Any) -> Any:
        """The value and the cotangents of the arguments as one vector."""
        value, pull = vjp(self.g, *xs)
        return np.concatenate([value, ravel_pytree(pull(np.asarray(self.ct, value.dtype)))[0]])

    def _against_truth(self, compared: str, f: Function, us: Sequence[Array], found: Array) -> CheckRow:
        truth = derivative(f, self.xs, us)
        if not isinstance(truth, Truth):
            return CheckRow(self.name, compared, "difference", skipped=truth)
        found = np.asarray(found)
        if not np.isfinite(found).all():
            if not self.may_fail:
                return CheckRow(self.name, compared, "difference", skipped=NOT_FINITE)
            return CheckRow(self.name, compared, "difference", np.inf, 0.0, blame=_origin(f, self.xs, us))
        error = float(np.max(np.abs(found - truth.value), initial=0.0)) / scale_of(truth.value)
        row = CheckRow(self.name, compared, "difference", error, truth.allowed / scale_of(truth.value))
        if row.is_right:
            return row
        if not is_smooth(f, self.xs, us, truth):
            return CheckRow(self.name, compared, "difference", skipped=KINK)
        return row._replace(blame=wrong_equation(*staged_at(f, self.xs)))

    def _pair(self, compared: str, against: str, found: float, expected: float, size: float, f: Function) -> CheckRow:
        if not np.isfinite([found, expected]).all():
            return CheckRow(self.name, compared, against, skipped=NOT_FINITE)
        row = CheckRow(self.name, compared, against, abs(found - expected) / size, self.allowed)
        return row if row.is_right else row._replace(blame=wrong_equation(*staged_at(f, self.xs)))

    def _row(self, compared: str, against: str, found: Any, expected: Any, allowed: float | None = None) -> CheckRow:
        allowed = self.allowed if allowed is None else allowed
        found, expected = np.asarray(found), np.asarray(expected)
        if found.shape != expected.shape:
            return CheckRow(self.name, compared, against, np.inf, allowed)
        finite = np.isfinite(expected)
        if (finite != np.isfinite(found)).any():
            return CheckRow(self.name, compared, against, np.inf, allowed)
        if not finite.any() and finite.size:
            return CheckRow(self.name, compared, against, skipped=NOT_FINITE)
        error = float(np.max(np.abs(found - expected), initial=0.0, where=finite)) / scale_of(expected[finite])
        return CheckRow(self.name, compared, against, error, allowed)


def _allowed(dtype: Dtype) -> float:
    """The relative error allowed of two ways to compute the same."""
    return 1e-9 if precision(dtype) < 1e-9 else 1e-3


def _native(program: Program, operands: Sequence[Array]) -> list[Array]:
    return current_backend().compiler.compile_program(simplify(program))(operands)


def _native_differs(prefix: Program, operands: Sequence[Array]) -> bool:
    return not all(starmap(_close, zip(_native(prefix, operands), interpret(prefix, operands), strict=True)))


def _stack_differs(prefix: Program, points: Sequence[Sequence[Array]], captured: Sequence[Array]) -> bool:
    """True if a program applied to stacked points gives something else than applied to each."""
    stacks = [np.stack(each) for each in zip(*points, strict=True)]
    marks = [True] * len(stacks) + [False] * len(captured)
    is_stack: list[bool] = []

    def run(*symbols: Symbol) -> list[Symbol]:
        results, is_stack[:] = batched_program(prefix, len(points), symbols, marks)
        return results

    many = interpret(trace(run, *[aval_of(x) for x in (*stacks, *captured)]), [*stacks, *captured])
    rows = [interpret(prefix, [*xs, *captured]) for xs in points]
    return not all(
        _close(found[i] if stacked else found, row)
        for found, stacked, each in zip(many, is_stack, zip(*rows, strict=True), strict=True)
        for i, row in enumerate(each)
    )


def _close(found: Array, expected: Array, allowed: float | None = None) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    allowed = _allowed(expected.dtype) if allowed is None else allowed
    return np.allclose(found, expected, 0.0, allowed * scale_of(expected[np.isfinite(expected)]), equal_nan=True)


def _origin(f: Function, xs: Sequence[Array], us: Sequence[Array]) -> Blame | None:
    """The place where a derivative becomes infinite or nan."""
    program, operands = staged_at(lambda *xs: jvp(f, xs, tuple(us))[1], xs)
    origin = first(follow(program, operands)[1])
    return None if origin is None else Blame(origin.equation, f"{origin.call} = {origin.value}", origin.steps)


def _first_loss(f: Function, short: Sequence[Array], long: Sequence[Array]) -> Blame | None:
    """The first equation whose result in f32 is not that in f64, where both programs are the same but for dtypes."""
    programs = [staged_at(f, xs) for xs in (short, long)]
    primitives = [[e.primitive for e in program.equations] for program, _ in programs]
    if primitives[0] != primitives[1]:
        return None

    def values(program: Program, operands: Sequence[Array]) -> list[list[Any]]:
        every = [var for e in program.equations for var in e.results]
        rest = iter(interpret(Program(program.name, program.inputs, program.equations, tuple(every)), operands))
        return [[next(rest) for _ in e.results] for e in program.equations]

    for equation, low, high in zip(programs[0][0].equations, *starmap(values, programs), strict=True):
        if not all(_close(a, b, 1e-3) for a, b in zip(low, high, strict=True)):
            return Blame(equation, "f32 is too short for it here")
    return None
