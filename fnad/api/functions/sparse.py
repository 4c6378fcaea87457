"""Sparse derivatives: `sparse_jacobian`, `sparse_hessian`.

The pattern of the derivative is found from the program of its tangents (`fnad/control/sparsity.py`), once for a
program; a colouring (`fnad/control/coloring.py`) says which columns, or rows, can be computed together. One program
then computes a product for each colour, all at once, and reads the nonzeros from them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array, vstack

from fnad.api.functions.grad import check_scalar
from fnad.api.inspect.axes import axes_for
from fnad.api.running.derivations import Derivation, unchanged
from fnad.api.running.execution import run
from fnad.api.running.transformed import Transformed, with_options
from fnad.api.staging.arguments import Argnums, Differentiated, as_positions, stage_call
from fnad.api.staging.leaves import Function, check_function, function_name
from fnad.api.staging.stage import Staged
from fnad.control.batching import batched_program
from fnad.control.coloring import alone, column_colors, count_of, longest, star_colors
from fnad.control.sparsity import program_patterns
from fnad.errors import NonDifferentiableArgumentError, SparsityWarning, UnsupportedFunctionError
from fnad.ir.builder import is_tracing, trace
from fnad.ir.content import content_key
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval, Shape, is_complex, is_inexact
from fnad.ops.comparison import eq
from fnad.ops.conversion import convert_to
from fnad.ops.indexing import gather
from fnad.ops.shape import broadcast_in_dim, concatenate, copies, iota, reshape_to, slice_axis, zeros_like
from fnad.store import STORE
from fnad.tracebacks import boundary
from fnad.transforms import differentiation
from fnad.transforms.pipeline import simplify

Array: TypeAlias = "np.ndarray[Any, Any]"


class Sparsity(NamedTuple):
    """The structure of a sparse derivative.

    `pattern` is a `scipy.sparse.csr_array` of bools, True where the derivative can be other than 0. Columns of one
    number in `colors` are computed along one direction; rows, if `by` is "rows". If it is "symmetry", a nonzero may
    have been read at its mirror image.
    """

    pattern: Any
    colors: Array
    by: str

    @property
    def density(self) -> float:
        """The part of the matrix that can be other than 0."""
        return self.pattern.nnz / max(1, self.pattern.shape[0] * self.pattern.shape[1])

    def __str__(self) -> str:
        rows, columns = self.pattern.shape
        what = {"columns": "of columns", "rows": "of rows", "symmetry": "of a symmetric matrix"}[self.by]
        return (
            f"{rows} x {columns}, {self.pattern.nnz} nonzeros ({100 * self.density:.3g} %), "
            f"{count_of(self.colors)} colours {what}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows, columns = self.pattern.shape
        cell = max(1, rows // 100, columns // 100)
        found = self.pattern.tocoo()
        squares = sorted(set(zip((found.row // cell).tolist(), (found.col // cell).tolist(), strict=True)))
        path = "".join(f"M{column} {row}h1v1h-1z" for row, column in squares)
        box = f"{max(1, -(-columns // cell))} {max(1, -(-rows // cell))}"
        style = "max-width: 20em; max-height: 20em; border: 1px solid gray"
        return f'<svg viewBox="0 0 {box}" style="{style}"><path d="{path}" fill="currentColor"/></svg><div>{self}</div>'

    def plot(self, ax: Any = None) -> Any:
        """Draw the nonzeros, each in the colour of its column or row, by Matplotlib; return the axes."""
        ax = axes_for(ax, "sparsity")
        nonzeros, (rows, columns) = self.pattern.tocoo(), self.pattern.shape
        colors = self.colors[nonzeros.row if self.by == "rows" else nonzeros.col]
        size = max(0.5, 200.0 / max(rows, columns)) ** 2  # in points, of which the axes have some 300
        ax.scatter(nonzeros.col, nonzeros.row, c=colors % 10, cmap="tab10", vmin=0, vmax=9, marker="s", s=size)
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), aspect="equal", title=str(self))
        return ax


@with_options
def sparse_jacobian(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> SparseDerivative:
    """The function that computes the Jacobian of `f` as a sparse matrix.

    It runs `f` once along as many directions as the pattern has colours of columns (forward mode) or of rows (reverse
    mode), whichever are fewer. The method is that of Curtis, Powell and Reid, "On the estimation of sparse Jacobian
    matrices", 1974.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        argnums (int or tuple of ints): As in `grad`; the arguments are real.
        has_aux (bool): If true, `f` returns a pair (output, aux) of its output and anything else.
    Returns:
        SparseDerivative: Takes the arguments of `f` and returns a `scipy.sparse.csr_array` with a row for each element
            of the output and a column for each element of the arguments; with `has_aux`, (Jacobian, aux). The pattern
            follows from the program of `f`, not from values: it is the same at each call on the same path of Python's
            control flow. Its method `sparsity(*args)` returns pattern and colours.
    Raises:
        SparsityError: If the pattern has more than 1e8 entries.
        NonDifferentiableArgumentError: If an argument is complex, or has integers and bools only.
        UnsupportedFunctionError: Inside another transform, which has no sparse matrices.
    Warns:
        SparsityWarning: If more than half of a matrix of at least 10 columns and rows can differ from 0.
    Examples:
        >>> import numpy as np, fnad
        >>> jacobian = fnad.sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1])
        >>> jacobian(np.array([1.0, 2.0, 3.0])).toarray()
        array([[-1.,  4.,  0.],
               [ 0., -1.,  6.]])
        >>> print(jacobian.sparsity(np.ones(1000)))
        999 x 1000, 1998 nonzeros (0.2 %), 2 colours of columns
    """
    check_function(f, "sparse_jacobian")
    return SparseDerivative(sparse_jacobian, f, argnums, has_aux, _jacobian_problem, _jacobian_sparsity)


@with_options
def sparse_hessian(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> SparseDerivative:
    """The function that computes all second derivatives of `f` as a sparse matrix.

    By symmetry it needs fewer directions than the Jacobian of the gradient (Coleman and Moré, "Estimation of sparse
    Hessian matrices and graph coloring problems", 1984).

    Parameters:
        f (function): Returns one real element.
        argnums, has_aux: As in `sparse_jacobian`.
    Returns:
        SparseDerivative: As in `sparse_jacobian`; the matrix has a row and a column for each element of the arguments.
    Raises:
        NonScalarOutputError: If `f` does not return one real element.
        FnadError: As in `sparse_jacobian`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))(np.array([1.0, 2.0, 3.0])).toarray()
        array([[4., 2., 0.],
               [2., 6., 4.],
               [0., 4., 0.]])
    """
    check_function(f, "sparse_hessian")
    return SparseDerivative(sparse_hessian, f, argnums, has_aux, partial(_hessian_problem, f), _hessian_sparsity)


class Problem(NamedTuple):
    """The program whose Jacobian it is: (leaves…, captured…) -> (outputs…, auxiliary…)."""

    program: Program
    leaves: int
    outputs: int

    @property
    def wrt(self) -> list[bool]:
        return [i < self.leaves for i in range(len(self.program.inputs))]

    @property
    def columns(self) -> Sequence[Aval]:
        return self.program.in_avals[: self.leaves]

    @property
    def rows(self) -> Sequence[Aval]:
        return self.program.out_avals[: self.outputs]


class SparsePlan(NamedTuple):
    """The computation of a sparse derivative: the entry of the products from which each nonzero is read.

    It holds for the values `read` of inputs that were captured, by their number. The store has it under the content of
    the function's program, `transform` being the transform's name.
    """

    transform: str
    sparsity: Sparsity
    entries: Array
    read: dict[int, Array]

    def __str__(self) -> str:
        return f"{self.transform}: {self.sparsity}"

    def holds(self, operands: Sequence[Any]) -> bool:
        return all(operands[i] is value or np.array_equal(operands[i], value) for i, value in self.read.items())


class SparseDerivative(Transformed):
    """The result of `sparse_jacobian` and `sparse_hessian`."""

    __slots__ = ("_f", "_has_aux", "_positions", "_problem_of", "_sparsity_of")

    def __init__(
        self,
        transform: Function,
        f: Function,
        argnums: Argnums,
        has_aux: bool,
        problem_of: Callable[[Staged], Problem],
        sparsity_of: Callable[[Problem, Sequence[Any]], tuple[Sparsity, frozenset[int]]],
    ) -> None:
        super().__init__(transform, f, {"argnums": argnums, "has_aux": has_aux}, f)
        self._f, self._has_aux, self._positions = f, has_aux, as_positions(argnums)
        self._problem_of, self._sparsity_of = problem_of, sparsity_of

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        staged, problem, plan = self._planned(args, kwargs)
        operands = [*staged.operands, plan.sparsity.colors, plan.entries]
        data, *beside = run(problem.program, operands, _compressed(problem, plan.sparsity))
        found = _csr(plan.sparsity.pattern, data)
        return (found, staged.auxiliary.rebuild(beside)) if self._has_aux else found

    @boundary
    def sparsity(self, *args: Any, **kwargs: Any) -> Sparsity:
        """The pattern of the derivative for such arguments, and its colouring."""
        return self._planned(args, kwargs)[2].sparsity

    def _planned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Staged, Problem, SparsePlan]:
        name = self._transform.__name__
        if is_tracing():
            raise UnsupportedFunctionError.here(
                f"{name} of {function_name(self._f)} is a SciPy array, which other transforms do not take apart",
                remedy=f"call it outside of them, or use fnad.{name.removeprefix('sparse_')} there",
            )
        staged, wrt = stage_call(self._f, self._positions, self._has_aux, args, kwargs)
        _check_real(name, self._f, wrt)
        problem = self._problem_of(staged)
        plan = _plan(name, staged, problem, self._sparsity_of)
        _warn_if_dense(name, plan.sparsity)
        return staged, problem, plan


def _check_real(name: str, f: Function, wrt: Differentiated) -> None:
    if any(is_complex(aval.dtype) for aval in wrt.avals):
        raise NonDifferentiableArgumentError.here(
            f"{name} of {function_name(f)} is asked for in complex numbers",
            remedy="let the function take the real and the imaginary part as arguments of their own",
        )


def _csr(pattern: Any, data: Array) -> Any:
    """The array with these nonzeros. It has their places to itself: SciPy methods write into them."""
    return csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)


# ---- the structure ---------------------------------------------------------------------------------------------------


def _plan(name: str, staged: Staged, problem: Problem, sparsity_of: Callable[..., Any]) -> SparsePlan:
    """The plan for a program, made once for the values of what it captures."""
    key = (name, staged.leaves, staged.outputs), content_key(staged.program)
    plans: list[SparsePlan] = STORE.get(key, list)
    for plan in plans:
        if plan.holds(staged.operands):
            return plan
    sparsity, read = sparsity_of(problem, staged.operands)
    plans.append(SparsePlan(name, sparsity, _entries(sparsity), {i: np.array(staged.operands[i]) for i in read}))
    return plans[-1]


def _warn_if_dense(name: str, sparsity: Sparsity) -> None:
    dense = name.removeprefix("sparse_")
    if sparsity.density > 0.5 and min(sparsity.pattern.shape) >= 10:
        what = f"the {dense} is no sparse matrix: {sparsity}; fnad.{dense} computes all of it"
        warnings.warn(what, SparsityWarning, stacklevel=5)


def _jacobian_problem(staged: Staged) -> Problem:
    return Problem(staged.program, staged.leaves, staged.outputs)


def _hessian_problem(f: Function, staged: Staged) -> Problem:
    """The gradient, with what the function returns beside its output behind it."""
    check_scalar(staged, f)
    program = differentiation.gradient(staged.program, staged.wrt)  # loops unrolled have sharper patterns
    cut = len(program.outputs) - staged.leaves
    outputs = (*program.outputs[cut:], *program.outputs[:cut])
    return Problem(Program(program.name, program.inputs, program.equations, outputs), staged.leaves, staged.leaves)


def _jacobian_sparsity(problem: Problem, operands: Sequence[Any]) -> tuple[Sparsity, frozenset[int]]:
    """Colours of columns, or of rows if these are fewer: at least as many as the longest column has nonzeros."""
    pattern, read = _pattern(problem, operands)
    transposed = _sorted(pattern.T)
    ways = [("columns", pattern, problem.columns), ("rows", transposed, problem.rows)]
    if any(is_complex(aval.dtype) for aval in problem.rows):  # a cotangent gives the real part of a row
        return Sparsity(pattern, column_colors(pattern, _shape(problem.columns)), "columns"), read
    if longest(transposed) < longest(pattern):
        ways.reverse()
    (by, matrix, avals), (other_by, other, other_avals) = ways
    colors = column_colors(matrix, _shape(avals))
    if count_of(colors) > longest(other):
        others = column_colors(other, _shape(other_avals))
        by, colors = (by, colors) if count_of(colors) <= count_of(others) else (other_by, others)
    return Sparsity(pattern, colors, by), read


def _hessian_sparsity(problem: Problem, operands: Sequence[Any]) -> tuple[Sparsity, frozenset[int]]:
    found, read = _pattern(problem, operands)
    pattern = _sorted(found + found.T)
    columns = column_colors(pattern, _shape(problem.columns))
    if count_of(columns) <= 3:  # of a symmetric matrix two are enough where nobody but one has several neighbours
        return Sparsity(pattern, columns, "columns"), read
    stars = star_colors(pattern)
    if count_of(columns) <= count_of(stars):
        return Sparsity(pattern, columns, "columns"), read
    return Sparsity(pattern, stars, "symmetry"), read


def _pattern(problem: Problem, operands: Sequence[Any]) -> tuple[Any, frozenset[int]]:
    """The pattern of the Jacobian, from the program of tangents, and the inputs whose values it depends on."""
    tangents = simplify(differentiation.jvp(problem.program, problem.wrt))
    given, directions = len(problem.program.inputs), problem.leaves
    values = [None if w else operand for w, operand in zip(problem.wrt, operands, strict=True)]
    wrt = [*[False] * given, *[True] * directions]
    found = program_patterns(tangents, wrt, [*values, *[None] * directions])
    width = sum(aval.size for aval in problem.columns)
    of_outputs = iter(found.patterns[len(problem.program.outputs) :])
    parts = [next(of_outputs) if is_inexact(aval.dtype) else None for aval in problem.rows]
    empty = [csr_array((aval.size, width), dtype=bool) for aval in problem.rows]
    blocks = [none if part is None else part for part, none in zip(parts, empty, strict=True)]
    return _sorted(vstack(blocks, format="csr")), found.read


def _sorted(pattern: Any) -> Any:
    pattern = csr_array(pattern)
    pattern.sort_indices()
    return pattern


def _shape(avals: Sequence[Aval]) -> Shape:
    """The shape of the elements of leaves, one after the other."""
    return avals[0].shape if len(avals) == 1 else (sum(aval.size for aval in avals),)


def _entries(sparsity: Sparsity) -> Array:
    """For each nonzero its place in the products, of which there is a row for each colour."""
    pattern, colors, by = sparsity
    rows, columns = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)), pattern.indices
    if by == "rows":
        return colors[rows] * pattern.shape[1] + columns
    there = colors[columns] * pattern.shape[0] + rows
    if by == "columns":
        return there
    return np.where(alone(pattern, colors), there, colors[rows] * pattern.shape[0] + columns)


# ---- the products ----------------------------------------------------------------------------------------------------


def _compressed(problem: Problem, sparsity: Sparsity) -> Derivation:
    """(x…, colours, entries) -> (nonzeros, auxiliary…)."""
    count, nonzeros = max(1, count_of(sparsity.colors)), sparsity.pattern.nnz
    products = _along_outputs if sparsity.by == "rows" else _along_leaves

    def derive(program: Program) -> tuple[Program]:
        def nonzeros_of(*args: Symbol) -> list[Symbol]:
            *given, colors, entries = args
            found, beside = products(problem._replace(program=program), given, colors, count)
            dtype = np.result_type(*[x.dtype for x in found])
            whole = _joined([convert_to(reshape_to(x, (count, x.aval.size // count)), dtype) for x in found])
            return [gather(reshape_to(whole, (whole.aval.size,)), entries), *beside]

        avals = [Aval(I64, (len(sparsity.colors),)), Aval(I64, (nonzeros,))]
        return (trace(nonzeros_of, *program.in_avals, *avals, name=program.name),)

    return Derivation(("sparse", sparsity.by, problem.leaves, problem.outputs, count, nonzeros), derive, unchanged)


def _joined(parts: Sequence[Symbol]) -> Symbol:
    return parts[0] if len(parts) == 1 else concatenate(*parts, axis=1)


def _along_leaves(
    problem: Problem, given: Sequence[Symbol], colors: Symbol, count: int
) -> tuple[list[Symbol], list[Symbol]]:
    """The tangents of the outputs for each colour of the leaves, and what is beside the outputs."""
    pushed = differentiation.jvp(problem.program, problem.wrt)
    seeds = _seeds(colors, count, problem.columns)
    values, tangents = _stacks(pushed, len(problem.program.outputs), given, seeds, count)
    rest = iter(tangents)
    rows = [next(rest) if is_inexact(x.dtype) else copies(zeros_like(x), count) for x in values[: problem.outputs]]
    return rows, values[problem.outputs :]


def _along_outputs(
    problem: Problem, given: Sequence[Symbol], colors: Symbol, count: int
) -> tuple[list[Symbol], list[Symbol]]:
    """The cotangents of the leaves for each colour of the outputs, and what is beside the outputs."""
    swept = differentiation.joint(problem.program, problem.wrt, problem.outputs)
    seeds = _seeds(colors, count, problem.rows)
    inexact = [seed for seed, aval in zip(seeds, problem.rows, strict=True) if is_inexact(aval.dtype)]
    values, cotangents = _stacks(swept, len(problem.program.outputs), given, inexact, count)
    return cotangents, values[problem.outputs :]


def _stacks(
    program: Program, outputs: int, given: Sequence[Symbol], seeds: Sequence[Symbol], count: int
) -> tuple[list[Symbol], list[Symbol]]:
    """The first outputs, and for each of the seeds the derivatives behind them."""
    found, marks = batched_program(program, count, [*given, *seeds], [*[False] * len(given), *[True] * len(seeds)])
    pairs = list(zip(found, marks, strict=True))[outputs:]
    return found[:outputs], [x if mark else copies(x, count) for x, mark in pairs]


def _seeds(colors: Symbol, count: int, avals: Sequence[Aval]) -> list[Symbol]:
    """For each colour 1 where the elements have it, cut into leaves."""
    whole = (count, colors.aval.size)
    unit = eq(iota(dtype=I64, shape=whole, axis=0), broadcast_in_dim(colors, shape=whole, dims=(1,)))
    ends = list(accumulate(aval.size for aval in avals))
    parts = [slice_axis(unit, 1, end - aval.size, end) for aval, end in zip(avals, ends, strict=True)]
    return [
        reshape_to(convert_to(part, aval.dtype), (count, *aval.shape)) for part, aval in zip(parts, avals, strict=True)
    ]
