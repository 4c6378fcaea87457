"""All partial derivatives of a function at once: `jacfwd`, `jacrev`, `jacobian`, `hessian`.

A Jacobian takes one direction for each element of the arguments in forward mode, one cotangent for each element of the
output in reverse mode. They are the rows of an identity, and `vmap` applies the derivative to all of them: the function
is computed once, and each operation of its derivative works on the whole stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper, wraps
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.api.functions.grad import grad
from fnad.api.functions.jet import along_curve
from fnad.api.functions.jvp import pushed_forward
from fnad.api.functions.vjp import run_cut
from fnad.api.functions.vmap import vmap
from fnad.api.running import derivations
from fnad.api.running.derivations import AS_IT_IS, Derivation, vjp
from fnad.api.running.execution import derived_within, run
from fnad.api.running.reused_traces import DifferentiatedCalls
from fnad.api.running.transformed import with_options
from fnad.api.staging.arguments import Argnums, as_positions, check_flag, differentiated, resolved, stage_in
from fnad.api.staging.inlining import inlined, traced
from fnad.api.staging.leaves import Function, argument_name, check_function, flatten, function_name, source_of
from fnad.api.staging.selection import Names
from fnad.api.staging.stage import Staged
from fnad.errors import HolomorphicError, NonDifferentiableArgumentError, NonScalarOutputError
from fnad.ir.builder import is_tracing
from fnad.ir.size import estimate
from fnad.ir.types import Aval, is_complex, is_inexact
from fnad.ops.autodiff import directions
from fnad.ops.shape import zeros_like
from fnad.trace.hooks import callee
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import symbol_of


@with_options
def jacfwd(
    f: Function,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: Names = None,
    wrt: Names = None,
) -> Function:
    """The function that computes the Jacobian of `f` in forward mode, which suits outputs larger than the arguments.

    Parameters:
        f (function): Its output is a pytree of arrays and numbers.
        argnums, argnames, wrt: As in `grad`.
        has_aux (bool): If true, `f` returns a pair (output, aux) of its output and a pytree of arrays and numbers.
        holomorphic (bool): If true, `f` is a holomorphic function of complex arguments z, and the Jacobian is df/dz.
    Returns:
        function: Takes the arguments of `f` and returns the Jacobian: for an output of shape m and an argument of shape
            n, an array of shape (*m, *n). For pytrees it has the structure of the output, with that of the argument in
            place of each leaf, or a tuple of arguments if `argnums` is a tuple. With `has_aux`, (Jacobian, aux).
    Raises:
        HolomorphicError: If an argument is complex without `holomorphic`, or real with it.
        NonDifferentiableArgumentError, ArgnumsError, ArgumentTypeError, DtypeError, AuxiliaryError: As in `grad`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.jacfwd(lambda x: np.stack([x[0] * x[1], x[1] ** 2, x[0]]))(np.array([2.0, 3.0]))
        array([[3., 2.],
               [0., 6.],
               [1., 0.]])
    """
    return _transformed("jacfwd", f, argnums, _forward, has_aux, holomorphic)


@with_options
def jacrev(
    f: Function,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: Names = None,
    wrt: Names = None,
) -> Function:
    """The function that computes the Jacobian of `f` in reverse mode, which suits arguments larger than the output.

    Parameters:
        f, argnums, has_aux, holomorphic, argnames, wrt: As in `jacfwd`; for a real output, complex arguments need no
            `holomorphic`.
    Returns:
        function: As in `jacfwd`. The Jacobian of a real output in a complex argument x + iy is df/dx - i df/dy.
    Raises:
        FnadError: As in `jacfwd`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.jacrev(lambda x: np.array([np.sum(x), x[0] * x[2]]))(np.array([2.0, 3.0, 4.0]))
        array([[1., 1., 1.],
               [4., 0., 2.]])
    """
    return _transformed("jacrev", f, argnums, _reverse, has_aux, holomorphic)


@with_options
def jacobian(
    f: Function,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: Names = None,
    wrt: Names = None,
) -> Function:
    """The function that computes the Jacobian of `f`, in the mode that needs fewer directions.

    Parameters:
        f, argnums, has_aux, holomorphic, argnames, wrt: As in `jacfwd`.
    Returns:
        function: As in `jacfwd`.
    Raises:
        FnadError: As in `jacfwd`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.jacobian(np.cumsum)(np.ones(3))
        array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]])
    """
    return _transformed("jacobian", f, argnums, _cheaper, has_aux, holomorphic)


@with_options
def hessian(
    f: Function,
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: Names = None,
    wrt: Names = None,
) -> Function:
    """The function that computes all second derivatives of `f`, in forward over reverse mode.

    Parameters:
        f (function): Returns one real element; with `holomorphic`, one complex element.
        argnums, has_aux, holomorphic, argnames, wrt: As in `jacfwd`.
    Returns:
        function: Takes the arguments of `f` and returns the Hessian: for an argument of shape n, an array of shape (*n,
            *n); for pytrees and tuples, as in `jacfwd` of `grad(f)`.
    Raises:
        NonScalarOutputError: If `f` does not return one element.
        FnadError: As in `jacfwd`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.hessian(lambda x: x[0] ** 2 * x[1])(np.array([2.0, 3.0]))
        array([[6., 4.],
               [4., 0.]])
    """
    check_function(f, "hessian")
    as_positions(argnums, "hessian")
    check_flag("hessian", has_aux)
    gradient = jacrev(_of_one_element(f, has_aux), argnums, has_aux, True) if holomorphic else grad(f, argnums, has_aux)
    return _transformed("hessian", gradient, argnums, _forward, has_aux, holomorphic)


def _of_one_element(f: Function, has_aux: bool) -> Function:
    @wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        found = callee(f)(*args, **kwargs)
        output, *beside = found if has_aux else (found,)
        if len(flatten(output)[0]) != 1 or np.size(output) != 1:
            raise NonScalarOutputError(
                f"{function_name(f)} returned more than one element, where hessian takes one complex element",
                source=source_of(f),
                remedy="reduce it, with np.sum for example, or take fnad.jacfwd of fnad.jacrev, holomorphic=True",
            )
        return (np.reshape(output, ()), *beside) if has_aux else np.reshape(output, ())

    return checked


@with_options
def laplacian(f: Function, argnums: Argnums = 0, *, argnames: Names = None, wrt: Names = None) -> Function:
    """The function that computes the Laplacian of `f`, the trace of its Hessian.

    It is one forward pass in Taylor mode (`jet`) to order 2, along all directions at once.

    Parameters:
        f (function): Its output is a pytree of arrays and numbers.
        argnums (int or tuple of ints): The positions of the arguments to differentiate in: pytrees of real arrays and
            numbers.
        argnames, wrt: As in `grad`.
    Returns:
        function: Takes the arguments of `f` and returns the Laplacian of each element of the output, with its
            structure, shapes and dtypes.
    Raises:
        NonDifferentiableArgumentError: If an argument is complex, or has integers and bools only.
        ArgnumsError, ArgumentTypeError, DtypeError: As in `grad`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
        np.float64(18.0)
    """
    check_function(f, "laplacian")

    def check(avals: Sequence[Aval]) -> None:
        if _any_complex(avals):
            raise NonDifferentiableArgumentError.here(
                f"laplacian of {function_name(f)} is asked for in complex numbers",
                remedy="let the function take the real and the imaginary part as arguments of their own",
            )

    return _of_calls("laplacian", f, argnums, check, _laplacian)


class _Leaves:
    """A pytree of arrays, taken apart: the leaves that have a derivative, and where their elements stand among all."""

    def __init__(self, tree: Any) -> None:
        values, self.structure = flatten(tree)
        arrays = [value if isinstance(value, Tracer) else np.asarray(value) for value in values]
        avals = [value.symbol.aval if isinstance(value, Tracer) else Aval(value.dtype, value.shape) for value in arrays]
        self.all, self.places = avals, [i for i, aval in enumerate(avals) if is_inexact(aval.dtype)]
        self.varying = [arrays[i] for i in self.places]
        self.avals = [avals[i] for i in self.places]
        self.ends = list(accumulate(aval.size for aval in self.avals))

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else 0

    def filled(self, varying: Sequence[Any], constant: Callable[[int], Any]) -> Any:
        """The pytree with these leaves in the place of its own, and `constant(i)` where a leaf has no derivative."""
        found = dict(zip(self.places, varying, strict=True))
        return self.structure.unflatten([found[i] if i in found else constant(i) for i in range(len(self.all))])

    def zero(self, i: int) -> Any:
        return np.zeros(self.all[i].shape, self.all[i].dtype)

    def directions(self) -> list[Any]:
        """The rows of an identity on all elements, cut into the leaves that vary."""
        return [
            traced(directions(dtype=aval.dtype, count=self.size, start=end - aval.size, shape=aval.shape))
            for aval, end in zip(self.avals, self.ends, strict=True)
        ]


Blocks: TypeAlias = list[list[Any]]
"""For each leaf of the output that has a derivative, what it is in each leaf of the arguments that has one."""


class _Call(NamedTuple):
    """A traced call, and the arguments that it is differentiated in."""

    staged: Staged
    arguments: _Leaves
    has_aux: bool

    @property
    def outputs(self) -> list[Aval]:
        """The types of the leaves of the output that have a derivative."""
        avals = self.staged.program.out_avals[: self.staged.outputs]
        return [aval for aval in avals if is_inexact(aval.dtype)]


Method: TypeAlias = Callable[[_Call], tuple[_Leaves, Blocks, Any]]
"""From a call to its output, its Jacobian, and what is beside it."""


def _transformed(
    name: str, f: Function, argnums: Argnums, method: Method, has_aux: bool, holomorphic: bool
) -> Function:
    check_function(f, name)
    check_flag(name, has_aux)
    check_flag(name, holomorphic, "holomorphic")

    def check(avals: Sequence[Aval]) -> None:
        _check_arguments(name, f, avals, holomorphic=holomorphic)

    def jacobian(call: _Call) -> Any:
        _check_output(name, f, call.arguments.avals, call.outputs, holomorphic=holomorphic)
        output, blocks, beside = method(call)
        found = _arranged(output, blocks, call.arguments, several=isinstance(argnums, (tuple, list)))
        return (found, beside) if has_aux else found

    return _of_calls(name, f, argnums, check, jacobian, has_aux)


def _of_calls(
    name: str,
    f: Function,
    argnums: Argnums,
    check: Callable[[Sequence[Aval]], None],
    derive: Callable[[_Call], Any],
    has_aux: bool = False,
) -> Function:
    """The function that computes what `derive` makes of a traced call of `f`, whose arguments `check` may refuse."""
    positions = as_positions(argnums, name)

    @partial(update_wrapper, wrapped=f)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        chosen = resolved(f, positions, len(args))
        given = tuple(args[i] for i in chosen)
        wrt, arguments = differentiated(given, lambda i: argument_name(f, chosen[i])), _Leaves(given)
        check(arguments.avals)
        staged = stage_in(f, chosen, wrt, args, kwargs, has_aux=has_aux)
        return derive(_Call(staged, arguments, has_aux))

    derivative.__name__ = function_name(f)  # for errors
    calls = DifferentiatedCalls(f, positions, False, derivative)

    def derivative_of_f(*args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return derivative(*args, **kwargs)
        staged, _ = calls.stage(args, kwargs)
        return staged.output.rebuild(run(staged.program, staged.operands, AS_IT_IS))

    return derivative_of_f


def _check_arguments(name: str, f: Function, avals: Sequence[Aval], *, holomorphic: bool) -> None:
    """Raise for complex arguments of what takes real ones, and for real ones of a holomorphic function."""
    complexes = [is_complex(aval.dtype) for aval in avals]
    if holomorphic and not all(complexes):
        real = avals[complexes.index(False)]
        raise HolomorphicError.here(
            f"{name} of {function_name(f)} is asked for as that of a holomorphic function, in an argument {real}",
            remedy="give complex arguments, x.astype(complex), or leave out holomorphic=True",
        )
    if any(complexes) and not holomorphic and name not in {"jacrev", "jacobian"}:
        raise HolomorphicError.here(
            f"{name} of {function_name(f)} is asked for in an argument {avals[complexes.index(True)]}",
            remedy="say holomorphic=True if the function is, or let it take the real and the imaginary part",
        )


def _check_output(
    name: str, f: Function, arguments: Sequence[Aval], outputs: Sequence[Aval], *, holomorphic: bool
) -> None:
    """Raise where complex arguments have complex outputs, unless the function is said to be holomorphic."""
    if not _any_complex(arguments):
        return
    wrong = [aval for aval in outputs if is_complex(aval.dtype) != holomorphic]
    if wrong and holomorphic:
        raise HolomorphicError.here(
            f"{name} of {function_name(f)} is asked for as that of a holomorphic function, of an output {wrong[0]}",
            remedy="a real function of complex arguments is not holomorphic: leave it out, with fnad.jacrev",
        )
    if wrong:
        raise HolomorphicError.here(
            f"{name} of {function_name(f)} is asked for in complex arguments, of an output {wrong[0]}",
            remedy="say holomorphic=True if the function is, or let it take and return real and imaginary parts",
        )


def _any_complex(avals: Sequence[Aval]) -> bool:
    return any(is_complex(aval.dtype) for aval in avals)


def _arranged(output: _Leaves, blocks: Blocks, arguments: _Leaves, *, several: bool) -> Any:
    """The output with, in the place of each leaf, the arguments with its derivatives in the place of theirs."""

    def row(out: Aval, varying: Sequence[Any]) -> Any:
        tree = arguments.filled(varying, lambda i: _zeros(out, arguments.all[i]))
        return tree if several else tree[0]

    def without(i: int) -> Any:
        return row(output.all[i], [_zeros(output.all[i], aval) for aval in arguments.avals])

    return output.filled([row(aval, block) for aval, block in zip(output.avals, blocks, strict=True)], without)


def _zeros(out: Aval, aval: Aval) -> Any:
    """The derivative of an element that does not change, in an argument; scalars as NumPy has them."""
    return np.zeros((*out.shape, *aval.shape), aval.dtype)[()]


# ---- the two modes ---------------------------------------------------------------------------------------------------


def _written_out(call: _Call, derivation: Callable[..., Derivation]) -> tuple[_Leaves, Blocks, Any] | None:
    """The Jacobian by a program of its own for functions of a kind; None for others."""
    staged = call.staged
    written = derived_within(staged.program, derivation(staged.wrt, staged.outputs))
    if not written:
        return None
    found: list[Any] = inlined(written[0], staged.operands)
    output = _Leaves(staged.output.rebuild(found[: staged.outputs]))
    flat, width = iter(found[len(staged.program.outputs) :]), range(len(call.arguments.avals))
    blocks = [[next(flat)[()] for _ in width] for _ in output.avals]
    return output, blocks, staged.auxiliary.rebuild(found[staged.outputs : len(staged.program.outputs)])


def _forward(call: _Call) -> tuple[_Leaves, Blocks, Any]:
    written = _written_out(call, derivations.columns) or _written_out(call, derivations.diagonals)
    if written is not None:
        return written
    arguments = call.arguments

    def along(*directions: Any) -> Any:
        given = list(map(symbol_of, directions))
        value, tangent, *beside = pushed_forward(call.staged, given, has_aux=call.has_aux)
        return tangent, (value, *beside)

    columns, (value, *beside) = vmap(along, out_axes=(0, None))(*arguments.directions())
    output, stacks = _Leaves(value), _Leaves(columns)
    blocks = [
        [_columns(stack, out, aval, end) for aval, end in zip(arguments.avals, arguments.ends, strict=True)]
        for stack, out in zip(stacks.varying, output.avals, strict=True)
    ]
    return output, blocks, *(beside or [None])


def _columns(stack: Any, out: Aval, aval: Aval, end: int) -> Any:
    """The part of a stack of columns that belongs to an argument, with the argument's axes last."""
    return np.moveaxis(stack[end - aval.size : end], 0, -1).reshape(*out.shape, *aval.shape)[()]


def _reverse(call: _Call) -> tuple[_Leaves, Blocks, Any]:
    """The Jacobian along each element of the output.

    Of a complex element, in real arguments, the cotangent 1 gives the real part, and -i the imaginary one. In complex
    arguments the cotangent 1 gives all: df/dz of a holomorphic function, df/dx - i df/dy of a real element.
    """
    staged = call.staged
    results, pull = run_cut(staged, vjp(staged.wrt, staged.outputs))
    output = _Leaves(staged.output.rebuild(results[: staged.outputs]))
    complexes = [is_complex(aval.dtype) for aval in output.avals]
    reals = [not is_complex(aval.dtype) for aval in call.arguments.avals]

    def pulled(*cts: Any) -> list[Any]:
        found = pull(list(map(symbol_of, cts)))
        if not (any(complexes) and any(reals)):
            return found
        turned = [-1j * ct if of_complex else 0 * ct for ct, of_complex in zip(cts, complexes, strict=True)]
        imaginary = pull(list(map(symbol_of, turned)))
        return [x if np.iscomplexobj(x) else x + 1j * y for x, y in zip(found, imaginary, strict=True)]

    stacks = vmap(pulled)(*output.directions()) if output.avals else []
    blocks = [
        [
            _rows(np.real(stack) if in_real and not of_complex else stack, out, end)
            for stack, in_real in zip(stacks, reals, strict=True)
        ]
        for out, end, of_complex in zip(output.avals, output.ends, complexes, strict=True)
    ]
    return output, blocks, staged.auxiliary.rebuild(results[staged.outputs :])


def _rows(stack: Any, out: Aval, end: int) -> Any:
    """The part of a stack of rows that belongs to a leaf of the output."""
    return stack[end - out.size : end].reshape(*out.shape, *stack.shape[1:])[()]


def _cheaper(call: _Call) -> tuple[_Leaves, Blocks, Any]:
    arguments, outputs = call.arguments, call.outputs
    of_parts = _any_complex(arguments.avals) and not _any_complex(outputs)
    is_narrow = estimate(sum(aval.size for aval in outputs)) < estimate(arguments.size)
    if is_narrow and not of_parts:
        return _written_out(call, derivations.diagonals) or _reverse(call)
    return (_reverse if of_parts else _forward)(call)


# ---- order 2 in Taylor mode ------------------------------------------------------------------------------------------


def _laplacian(call: _Call) -> Any:
    arguments = call.arguments

    def second(*directions: Any) -> Any:
        given = list(map(symbol_of, directions))
        return along_curve(call.staged, [given, list(map(zeros_like, given))])[1][1]

    if arguments.size == 1:
        return second(*[np.ones_like(leaf) for leaf in arguments.varying])
    stacks, structure = flatten(vmap(second)(*arguments.directions()))
    return structure.unflatten([np.sum(stack, axis=0) for stack in stacks])
