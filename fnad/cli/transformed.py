"""The call that a command names, or that of a derivative: `explain`, `export` and `view` run something on it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fnad.api.functions.export import export
from fnad.api.functions.grad import grad, value_and_grad
from fnad.api.functions.jacobian import jacobian
from fnad.api.functions.jvp import jvp
from fnad.api.functions.lowered import ShapeDtypeStruct, eval_shape
from fnad.api.functions.vjp import vjp
from fnad.api.inspect.input_names import as_word, unique
from fnad.api.staging.leaves import Function, argument_name, flatten, function_name
from fnad.cli.calls import Types, checked_argnums, given_call
from fnad.cli.load import load_target, user_code
from fnad.cli.usage import UsageError
from fnad.ir.size import is_size
from fnad.ir.types import is_inexact

T = TypeVar("T")
OF_A_FUNCTION = {"grad": grad, "value_and_grad": value_and_grad, "jacobian": jacobian}
"""The modes that make a function of the same arguments."""


class FunctionCall(NamedTuple):
    """A function and its arguments."""

    function: Function
    args: Sequence[Any]
    kwargs: dict[str, Any]


def on_call(request: Namespace, run: Callable[..., T], *, with_names: bool = False) -> T:
    """The result of `run(f, *args, **kwargs)`; raises `UsageError` if `f` does not exist or cannot be traced.

    The arguments may have names of sizes if `with_names`.
    """
    if request.argnums is not None and request.mode is None:
        raise UsageError("--argnums says in what to differentiate: add a derivative, such as --grad")
    target = load_target(request.target)
    with user_code(target.path):
        given = given_call(target, request.args, request.values, with_names=with_names)
        if isinstance(given, Types) and not given.is_open:
            given.staged()  # which refuses a function that decides by values
        call = FunctionCall(target.function, *given.call())
        if request.mode is not None:
            call = _derivative(call, request.mode, request.argnums)
        return run(call.function, *call.args, **call.kwargs)


def _derivative(call: FunctionCall, mode: str, argnums: Sequence[int] | None) -> FunctionCall:
    """The call of a derivative; `jvp` and `vjp` differentiate in all arguments with floats unless some are chosen."""
    chosen = checked_argnums(argnums or (), len(call.args))
    if mode in OF_A_FUNCTION:
        one_or_more: Any = tuple(chosen) if len(chosen) > 1 else [*chosen, 0][0]
        return call._replace(function=OF_A_FUNCTION[mode](call.function, one_or_more))
    chosen = chosen or [i for i, arg in enumerate(call.args) if _has_floats(arg)] or [0]
    return _pushforward(call, chosen) if mode == "jvp" else _pullback(call, chosen)


def _has_floats(tree: Any) -> bool:
    leaves = [leaf if isinstance(leaf, ShapeDtypeStruct) else np.asarray(leaf) for leaf in flatten(tree)[0]]
    return any(is_inexact(leaf.dtype) for leaf in leaves)


def _pushforward(call: FunctionCall, argnums: Sequence[int]) -> FunctionCall:
    """The call with the tangents of some arguments behind the arguments: values and their tangents."""
    count = len(call.args)

    def pushforward(*given: Any, **kwargs: Any) -> Any:
        f, primals = _of_arguments(call.function, argnums, given[:count], kwargs)
        return jvp(f, primals, given[count:])

    names = [f"d{argument_name(call.function, i)}" for i in argnums]
    return _named(call, pushforward, "jvp", [call.args[i] for i in argnums], names)


def _pullback(call: FunctionCall, argnums: Sequence[int]) -> FunctionCall:
    """The call with the cotangent of the result behind the arguments: values, and the cotangents of some arguments."""

    def pullback(*given: Any, **kwargs: Any) -> Any:
        f, primals = _of_arguments(call.function, argnums, given[:-1], kwargs)
        value, pull = vjp(f, *primals)
        return value, pull(given[-1])

    has_names = any(isinstance(leaf, ShapeDtypeStruct) for leaf in flatten(call.args)[0])
    result = (_result_with_names if has_names else eval_shape)(call.function, *call.args, **call.kwargs)
    return _named(call, pullback, "vjp", [result], ["ct"])


def _result_with_names(f: Function, *args: Any, **kwargs: Any) -> Any:
    """The types of a result for arguments with names of sizes."""
    exported = export(f, *args, **kwargs)
    types = [
        ShapeDtypeStruct([str(n) if is_size(n) else n for n in aval.shape], aval.dtype)
        for aval in exported.program.out_avals
    ]
    return exported.output.structure.unflatten(types)


def _of_arguments(
    f: Function, argnums: Sequence[int], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Function, tuple[Any, ...]]:
    """A function of some arguments, and these arguments."""

    def of_chosen(*chosen: Any) -> Any:
        given = dict(zip(argnums, chosen, strict=True))
        return f(*[given.get(i, arg) for i, arg in enumerate(args)], **kwargs)

    return of_chosen, tuple(args[i] for i in argnums)


def _named(call: FunctionCall, f: Function, mode: str, args: Sequence[Any], names: Sequence[str]) -> FunctionCall:
    """The call of a derivative with arguments behind those of the function, and with names for all."""
    known = [argument_name(call.function, i) for i in range(len(call.args))]
    words = unique(map(as_word, [*known, *names]))
    parameters = [Parameter(word, Parameter.POSITIONAL_OR_KEYWORD) for word in words]
    f.__signature__ = Signature(  # type: ignore[attr-defined]
        [*parameters, Parameter("keywords", Parameter.VAR_KEYWORD)]
    )
    f.__name__ = f"{function_name(call.function)}_{mode}"
    return FunctionCall(f, [*call.args, *args], call.kwargs)
